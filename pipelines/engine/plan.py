"""`--plan`: what a run would make, take and need, measured on a sample of its real input. It knows no stage by name.

The real stages do a part of the input in a temporary folder, then a larger part that holds the one before, and so on
until the next would take too long. The figures of the whole follow from those of the parts:

- A stage whose units name raw input, or files of a dataset, grows with the input.
- Others bring together what those wrote, and grow by a power of it (Heaps' law). The exponent is that between the last
  two parts.
- A stage that had the rows of an earlier one, in each part, has them in the whole.
- A stage makes no more rows than it says itself (`Stage.most_rows`).

Units are those that the stages plan over datasets of the expected size: manifests and completion records with expected
numbers, and files of the sample.

All is expected three times: as little, as likely and as much as the sample allows. The range holds how much the units
of the sample differ (Student's t, 90 %), what exponents lose from part to part, and for times an idle machine and one
20 % slower than now. It does not hold what the sample does not show: input that is different elsewhere, duplicates (few
meet in a sample), a machine that is busier later. With --resume the figures are those of the whole.
"""

from __future__ import annotations

import bisect
import itertools
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import pyarrow as pa
from rich.table import Table

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.executors import Executor, StageRun
from pipelines.engine.machine import available_memory, free_disk
from pipelines.engine.stage import WORK, Completion, Stage, Tally, Work, too_many_rejects
from pipelines.engine.task_writer import peak_memory
from schemas.kinds import SIDES
from schemas.manifest import MANIFEST, SPLITS, Ledger, Manifest, Shard, StageReport, read_manifest
from schemas.storage.folder import AtomicFile, Folder
from schemas.storage.parquet import parquet_file, parquet_writer
from transforms.reports.figures import between, roughly, rounded, share, size, text_of

RAW_SECONDS, SECONDS = 20.0, 85.0
"""Seconds for the sample of raw input, and for all."""
MOST_READ = 256 << 20
"""Bytes in memory of the datasets from which parts are taken."""
PIECES, LEAST_SHARDS = 64, 8
"""Into how many a shard is cut, where shards need not mirror those of another dataset; shards of a part, at least."""
BYTES_A_ROW = 250
"""Memory of a worker for each row that a unit has beyond those of the sample's."""
BEAM_SECONDS = {-1: 2.0, 0: 4.0, 1: 8.0}
"""What Beam takes to start, which a plan does without."""

TIME = ("seconds", "")


class Figures(dict[tuple[str, str], float]):
    """What units did, in figures that add up: ("rows", role), ("bytes", role), ("ledger", "read"), TIME ...; else 0."""

    def __missing__(self, key: tuple[str, str]) -> float:
        return 0.0


class Done(NamedTuple):
    """What a stage did on a part of the input."""

    units: list[list[Any]]
    completions: list[Completion]


@dataclass
class Part:
    """A part of the input that goes through stages: datasets by their URI in the run, and what their stages did."""

    folder: Folder
    size: float
    places: dict[str, Folder] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=dict)
    done: dict[tuple[str, str], Done] = field(default_factory=dict)  # by URI and stage
    seconds: float = 0.0

    def files(self) -> dict[str, int]:
        """The bytes of each file that units may name."""
        return {file.path: file.bytes for manifest in self.manifests.values() for file in published(manifest)}


class Line(NamedTuple):
    """A stage of the whole; `wall` in seconds."""

    stage: Stage
    units: int
    figures: Figures
    wall: float


class Forecast(NamedTuple):
    """A dataset of the whole; `passing` are bytes that lie there only until it is done."""

    build: DatasetBuild
    lines: list[Line]
    rows: float
    kept: float
    passing: float


# ---- The sample


def spread(n: int) -> list[int]:
    """The numbers below n, any first few of them evenly spread: 4, 0, 6, 2, 5, 1, 7, 3 of 8."""
    bits = max(n - 1, 0).bit_length()
    mirrored = (int(f"{number:0{bits}b}"[::-1], 2) for number in range(1 << bits))
    return [(number + n // 2) % n for number in mirrored if number < n]


def grow(run: Callable[[int], Part], sizes: Sequence[float], *, first: int, seconds: float) -> list[Part]:
    """Parts of more and more pieces of such sizes, as long as the next part is expected to end in time."""
    end, ends = time.monotonic() + seconds, list(itertools.accumulate(sizes))
    number, parts = min(first, len(ends)), list[Part]()
    while True:
        parts.append(run(number))
        # What processes load once makes the first part slow.
        times = (0.8 if len(parts) > 1 else 1.6) * (end - time.monotonic()) / max(parts[-1].seconds, 0.01)
        if number == len(ends) or times * ends[number - 1] < max(ends[number], 1.5 * ends[number - 1]):
            return parts
        number = max(bisect.bisect_right(ends, min(times, 8.0) * ends[number - 1]), number + 1)


def moved(build: DatasetBuild, places: Mapping[str, Folder]) -> DatasetBuild:
    """The same build in and from other folders."""
    stages = []
    for stage in build.stages:
        uris = {name: places[value].uri for name, value in locations(stage) if value in places}
        stages.append(replace(stage, **uris))  # type: ignore[type-var]
    return replace(build, output=places[build.output.uri], stages=tuple(stages))


def locations(stage: Stage) -> Iterator[tuple[str, str]]:
    """The fields of a stage that may say where a dataset lies."""
    for each in fields(stage):  # type: ignore[arg-type]
        if "location" in each.metadata and isinstance(value := getattr(stage, each.name), str):
            yield each.name, value


def run_part(builds: Sequence[DatasetBuild], executor: Executor, part: Part, units: list[Any] | None = None) -> Part:
    """Do all stages of some builds; `units`: those of the first stage, if not all."""
    began = time.monotonic()
    for build in builds:
        uri = build.output.uri
        part.places[uri] = part.folder / build.output.name
        here = moved(build, part.places)
        here.begin(resume=False)
        if units is not None and not part.done:
            here.work.stage_folder(here.stages[0].name).write("plan.json", json.dumps(units).encode())
        for stage in here.stages:
            executor.run(StageRun(here.work, stage, run="", max_reject_rate=1.0))
            part.done[uri, stage.name] = Done(here.work.units(stage.name), here.work.completions(stage.name))
        link(here.output / WORK, part.folder / WORK / build.output.name)
        part.manifests[uri] = here.finish()
    part.seconds = time.monotonic() - began
    return part


def link(of: Folder, to: Folder) -> None:
    """The same files in another folder."""
    shutil.copytree(of.path, to.path, copy_function=os.link, dirs_exist_ok=True)


def published(manifest: Manifest) -> list[Shard]:
    return [*manifest.shards, *itertools.chain(*manifest.sides.values())]


def raw_parts(build: DatasetBuild, sampled: DatasetBuild, executor: Executor, folder: Folder, first: int) -> list[Part]:
    """Parts of raw input. `sampled`: the build with a first stage of small units."""
    stage = sampled.stages[0]
    units = list(stage.plan(build.work))
    # The first N rows are at the beginning.
    order = spread(len(units)) if build.stages[0].most_rows(build.work) is None else list(range(len(units)))
    whole, sizes = raw_size(build), [stage.size(units[unit]) or 1.0 for unit in order]

    def run(number: int) -> Part:
        part = Part(folder / f"raw{number}", min(sum(sizes[:number]), whole))
        if part.size == whole:
            return run_part([build], executor, part)
        return run_part([sampled], executor, part, [[*units[unit]] for unit in sorted(order[:number])])

    return grow(run, sizes, first=first, seconds=RAW_SECONDS)


def raw_size(build: DatasetBuild) -> float:
    """The size of all raw input in the measure of the first stage; its units, where that has none."""
    return sum(build.stages[0].size(unit) or 1.0 for unit in build.stages[0].plan(build.work))


class Source(NamedTuple):
    """A dataset from which parts are taken: its URI in the run, and where it lies."""

    uri: str
    folder: Folder
    manifest: Manifest

    def read(self, file: Shard) -> pa.Table:
        with parquet_file(self.folder, file.path) as reader:
            return reader.read(use_threads=False)


class Pieces:
    """Pieces of datasets that mirror each other, in an order in which any first few are evenly spread.

    A piece is a shard of each; where there is one dataset, some rows of a shard, of which larger shards are made.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources, shards = sources, sources[0].manifest.shards
        found: list[tuple[int, int, int, int, list[pa.Table]]] = []
        read, seen, self._largest = 0, 0, 1
        for turn, number in enumerate(spread(len(shards))):
            if read > MOST_READ:
                break
            tables = [source.read(source.manifest.shards[number]) for source in sources]
            here, rows = nbytes(tables), tables[0].num_rows
            read, seen, self._largest = read + here, seen + shards[number].bytes, max(self._largest, here)
            step = max(-(-rows // PIECES), 1) if len(sources) == 1 else max(rows, 1)
            cuts = range(0, max(rows, 1), step)
            for rank, cut in enumerate(spread(len(cuts))):
                pieces = [table.slice(cuts[cut], step) if len(sources) == 1 else table for table in tables]
                found.append((rank, turn, number, cut, pieces))
        found.sort(key=lambda piece: piece[:2])
        self._pieces = [(number, cut, tables) for _, _, number, cut, tables in found]
        self._all = len({number for number, _, _ in self._pieces}) == len(shards)
        self.sizes = [nbytes(tables) or 1 for _, _, tables in self._pieces]
        self.size = sum(self.sizes) * sum(shard.bytes for shard in shards) / max(seen, 1) or 1.0
        """Bytes in memory of all."""

    def take(self, number: int, folder: Folder, *, workers: int) -> Part:
        """The first pieces as datasets in a folder."""
        pieces = sorted(self._pieces[:number], key=lambda piece: piece[:2])
        part = Part(folder, sum(self.sizes[:number]))
        if len(self._sources) > 1 or (number == len(self.sizes) and self._all):
            groups = [list(group) for _, group in itertools.groupby(pieces, lambda piece: piece[0])]
        else:
            shards = max(math.ceil(part.size / self._largest), min(max(workers, LEAST_SHARDS), number))
            cuts = [len(pieces) * cut // shards for cut in range(shards + 1)]
            groups = [pieces[start:end] for start, end in itertools.pairwise(cuts)]
        for place, source in enumerate(self._sources):
            to = part.places[source.uri] = folder / source.folder.name
            tables = [pa.concat_tables([tables[place] for _, _, tables in group]) for group in groups]
            part.manifests[source.uri] = write_dataset(source, tables, to, share=part.size / self.size)
        return part


def nbytes(tables: Iterable[pa.Table]) -> int:
    return sum(table.nbytes for table in tables)


def write_dataset(source: Source, tables: Sequence[pa.Table], to: Folder, *, share: float) -> Manifest:
    """A dataset of some shards, with its share of the side tables and of the counters."""
    shards = [_write(table, to, f"data/train-{number:05}.parquet") for number, table in enumerate(tables)]
    sides: dict[str, list[Shard]] = {side: [] for side in source.manifest.sides}
    for side, files in source.manifest.sides.items():
        left = math.ceil(sum(file.rows for file in files) * share)
        for number in spread(len(files)):
            if left > 0:
                sides[side].append(_write(source.read(files[number]).slice(0, left), to, files[number].path))
                left -= sides[side][-1].rows
    stages = [
        each._replace(counters={name: round(n * share) for name, n in each.counters.items()})
        for each in source.manifest.stages
    ]
    manifest = replace(source.manifest, splits={"train": shards}, sides=sides, stages=stages)
    to.write(MANIFEST, manifest.to_json().encode())
    return manifest


def _write(table: pa.Table, to: Folder, name: str) -> Shard:
    with AtomicFile(to, name) as sink, parquet_writer(sink, table.schema) as writer:
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
    return Shard(name, table.num_rows, sink.bytes, sink.sha256)


# ---- From parts to the whole; `end` is -1 for as little as the sample allows, 0 for the likeliest, 1 for as much


def figures(completions: Iterable[Completion]) -> Figures:
    """What units did."""
    found = Figures()
    for each in completions:
        found[TIME] += each.seconds
        for name, number in each.counters.items():
            found["counter", name] += number
        for file in each.files:
            found["rows", file.role] += file.rows
            found["bytes", file.role] += file.bytes
        if each.ledger:
            found["ledger", "read"] += each.ledger.read
            found["ledger", "written"] += each.ledger.written
            found["ledger", "rejected"] += each.ledger.rejected.total()
    return found


def sum_of(found: Figures, what: str, roles: Iterable[str] = ()) -> float:
    """The sum of a figure over some roles, by default all."""
    chosen = (number for (name, role), number in found.items() if name == what and (not roles or role in roles))
    return sum(chosen, start=0.0)


def rows_of(found: Figures) -> float:
    """The rows that a stage makes: those that are published, or where none are, those that a later stage reads."""
    roles = {role for what, role in found if what == "rows"} - SIDES.keys()
    return sum_of(found, "rows", roles & {*SPLITS} or roles or {""})


def written(found: Figures) -> float:
    """What a stage gives to those after it: by its ledger, or its rows."""
    return found["ledger", "written"] or rows_of(found)


def linear(values: Sequence[float], sizes: Sequence[float], whole: float, end: int) -> float:
    """The sum of a quantity over a whole of a size, from units of the sample and their sizes.

    Half the range is Student's t (90 %) times the standard error of the ratio value/size, for the share that was not
    seen. One unit does not tell how units differ: then it is half of the value.
    """
    value, size, n = sum(values), sum(sizes), len(values)
    if not value:
        return 0.0
    half = 0.5
    if n > 1:
        variance = sum((v - value / size * s) ** 2 for v, s in zip(values, sizes, strict=True)) * n / (n - 1)
        half = min(1.65 * (1 + 2 / (n - 1)) * math.sqrt(variance) / value, 1.0)
    return value * whole / size * (1 + half * math.sqrt(max(1 - size / whole, 0))) ** end


def power(values: Sequence[float], sizes: Sequence[float], whole: float, end: int) -> float:
    """A quantity at a size, from its values at smaller ones: there are fewer distinct things than things.

    Most: the last exponent stays; least: it falls on, by twice what it fell from part to part. Pairs grow faster than
    what they are pairs of, until all partners are found: then the least is in proportion.
    """
    points = [(math.log(s), math.log(v)) for s, v in zip(sizes, values, strict=True) if v > 0 and s > 0]
    slopes = [max((y1 - y0) / (x1 - x0), 0) for (x0, y0), (x1, y1) in itertools.pairwise(points) if x1 > x0 + 0.05]
    low, high = 0.5, 1.0
    if slopes:
        high = slopes[-1]
        fall = max(slopes[-2] - high, 0.03) if len(slopes) > 1 else 0.1
        low = 1.0 if high > 1 else max(high - 2 * fall, min(high, 0.5))
    return values[-1] * max(whole / max(sizes[-1], 1), 1e-9) ** ((low + high + end * (high - low)) / 2)


def names(value: Any) -> Iterator[str]:
    """The strings in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from names(each)


class StageParts(NamedTuple):
    """A stage as it went on parts of the input, and its units of the whole. `sampled`: as the parts have it."""

    sampled: Stage
    real: Stage
    units: list[list[Any]]
    parts: Sequence[Part]
    done: list[Done]
    end: int

    @property
    def values(self) -> list[Figures]:
        return [figures(each.completions) for each in self.done]

    @property
    def sizes(self) -> list[float]:
        return [part.size for part in self.parts]

    def by_units(self, whole: float) -> Figures:
        """The figures where it reads its input unit by unit; else none."""
        files, last, found = self.parts[-1].files(), self.done[-1], Figures()
        reads = [
            (self.sampled.size(self.sampled.Unit(*unit)), float(sum(files.get(name, 0) for name in names(unit))))
            for unit in last.units
        ]
        raw = sum(self.real.size(self.real.Unit(*unit)) for unit in self.units)
        for column in (0, 1):
            chosen = [number for number, read in enumerate(reads) if read[column]]
            sizes = [reads[number][column] for number in chosen]
            target = whole * sum(sizes) / self.sizes[-1] if column else raw
            each = [figures([last.completions[number]]) for number in chosen]
            for key in dict.fromkeys(key for one in each for key in one):
                values = [one[key] for one in each]
                number = linear(values, sizes, target, self.end)
                if key == TIME and self.end < 0:  # the first unit of a process loads things for all
                    typical = statistics.median(v / s for v, s in zip(values, sizes, strict=True))
                    number = min(number, sum(values) + typical * max(target - sum(sizes), 0))
                found[key] += number
        # A unit that is larger than in the sample has fewer distinct things for its size, and packs better.
        larger = max(whole / self.sizes[-1] * len(last.units) / max(len(self.units), 1), 1.0)
        less = larger ** ((self.end - 1) / 2 * 0.3) if rows_of(self.values[-1]) != written(self.values[-1]) else 1.0
        packs = larger ** ((self.end - 1) / 2 * 0.06)
        for what, role in found:
            found[what, role] *= {"rows": less, "bytes": less * packs}.get(what, 1.0)
        return found

    def by_rows(self, whole: float, rows: float) -> Figures:
        """The figures for so many rows; the bytes of one go on changing as they did between the last parts."""
        last, sizes = self.values[-1], self.sizes
        found = Figures({key: value * rows / rows_of(last) for key, value in last.items()})
        if len(sizes) > 1 and sizes[-1] > sizes[-2]:
            steps = min(max(math.log(whole / sizes[-1]) / math.log(sizes[-1] / sizes[-2]), 0), 2)
            for role in [role for what, role in last if what == "bytes" and self.values[-2][what, role]]:
                before, after = (each["bytes", role] / max(each["rows", role], 1) for each in self.values[-2:])
                change = min(max((after / before) ** steps, 0.6), 2.0)
                found["bytes", role] *= change ** ((1 + self.end if change > 1 else 1 - self.end) / 2)
        return found

    def by_base(self, base: Sequence[float], whole: float) -> Figures:
        """The figures where it brings together what the first stage of its dataset gave: so much of it, and the whole.

        What is bounded in each unit grows with the units.
        """
        more, last = len(self.units) / max(len(self.done[-1].units), 1) * (self.end >= 0), self.values[-1]
        return Figures(
            {
                key: max(power([each[key] for each in self.values], base, whole, self.end), more * value)
                for key, value in last.items()
            }
        )


class World:
    """The datasets of a run as they are expected at one end of the range, each on the ground of those before.

    They lie in a folder, as far as stages plan from them.
    """

    def __init__(self, folder: Folder, end: int, *, workers: int, busy: float) -> None:
        self._folder, self._end, self._workers, self._busy = folder, end, workers, busy
        self._places: dict[str, Folder] = {}
        # Of each stage so far: its rows in the parts, those expected, and the share that was left by limits until then.
        self._rows: list[tuple[list[float], float, float]] = []
        self._left = 1.0
        self.more_memory = 0.0

    def dataset(self, build: DatasetBuild, sampled: DatasetBuild, parts: Sequence[Part], whole: float) -> Forecast:
        """A dataset of which parts were made, of input of a size. `sampled`: the build as the parts have it."""
        uri, last = build.output.uri, parts[-1]
        to = self._places[uri] = self._folder / build.output.name
        link(last.places[uri], to)
        link(last.folder / WORK / build.output.name, to / WORK)
        here = moved(build, self._places)
        lines: list[Line] = []
        base: tuple[list[float], float] | None = None
        for stage, real in zip(sampled.stages, here.stages, strict=True):
            done = [part.done[uri, stage.name] for part in parts]
            units = [[*unit] for unit in real.plan(here.work)]
            stages = StageParts(stage, real, units, parts, done, self._end)
            expected = self._expect(stages, here.work, whole, base)
            base = base or ([written(each) for each in stages.values], written(expected))
            _write_stage(here.work, stage, units, done[-1].completions, expected)
            lines.append(self._line(stages, expected, base))
        return self._publish(build, here, lines, last)

    def _expect(self, of: StageParts, work: Work, whole: float, base: tuple[list[float], float] | None) -> Figures:
        """The figures of a stage. `base`: what the first of its dataset gave in the parts, and is expected to give."""
        last, rows, end = of.values[-1], [rows_of(each) for each in of.values], self._end
        by_units = of.by_units(whole)
        same = next((each for each in reversed(self._rows) if rows[-1] and each[0] == rows), None)
        if same:
            # What limits have left out since may be missing here as well.
            expected = of.by_rows(whole, same[1] * (self._left / same[2]) ** ((1 - end) / 2))
        elif by_units:
            expected = by_units
            if rows[-1] != written(last):  # nor has a unit more of a thing than there are
                for key in [key for key in expected if key[0] in ("rows", "bytes")]:
                    expected[key] *= self._left ** ((1 - end) / 2)
        else:
            expected = of.by_base(*(base or ([len(each.units) for each in of.done], len(of.units))))
        if whole > 1.01 * of.sizes[-1]:  # how files pack
            for key in [key for key in expected if key[0] == "bytes"]:
                expected[key] *= (1.2 if same else 1.08) ** end
        if same or not by_units:  # time goes with the rows, or with the input
            times = sorted([expected[TIME], (by_units or {TIME: last[TIME] * whole / of.sizes[-1]})[TIME]])
            expected[TIME] = times[0] ** ((1 - end) / 2) * times[1] ** ((1 + end) / 2)
        # Of moments a sample tells little, and machines are never equally busy.
        expected[TIME] *= (1.2 if last[TIME] > 1 else 1.5) ** end / (self._busy if end < 0 else 1)
        most = of.real.most_rows(work)
        left = 1.0 if most is None else min(most / max(rows_of(expected), 1), 1)
        self._left *= 1.0 if by_units else left
        self._rows.append((rows, rows_of(expected) * left, self._left))
        return Figures({key: number * left for key, number in expected.items()})

    def _line(self, of: StageParts, expected: Figures, base: tuple[list[float], float]) -> Line:
        n, seconds = max(len(of.units), 1), expected[TIME]
        at_once = min(n, self._workers)
        # Workers that take the next unit as soon as they are free end within one unit of each other.
        wall = seconds / at_once + seconds / n * (1 - 1 / at_once) * (1 + self._end) / 2
        # A unit holds its part of what it makes, or of what the first stage gave.
        here = max(rows_of(of.values[-1]), base[0][-1]) / max(len(of.done[-1].units), 1)
        there = max(rows_of(expected), base[1]) / n
        self.more_memory = max(self.more_memory, (there - here) * BYTES_A_ROW)
        return Line(of.sampled, len(of.units), expected, wall)

    def _publish(self, build: DatasetBuild, here: DatasetBuild, lines: list[Line], last: Part) -> Forecast:
        """The dataset that stages wrote; its manifest, of files of the sample again and again."""
        uri, manifest = build.output.uri, last.manifests[build.output.uri]
        made = [figures(last.done[uri, line.stage.name].completions) for line in lines]

        def kept(what: str, roles: Iterable[str], in_part: float) -> float:
            """What was written in some roles, less what took the place of other."""
            whole = sum(sum_of(line.figures, what, roles) for line in lines)
            return whole * in_part / max(sum(sum_of(each, what, roles) for each in made), 1)

        rows = kept("rows", SPLITS, manifest.rows)
        size = kept("bytes", [*SPLITS, *SIDES], sum(file.bytes for file in published(manifest)))
        shards = max(sum(self._shards(line, last.done[uri, line.stage.name]) for line in lines), 1)
        files = itertools.islice(itertools.cycle(manifest.shards or [Shard("", 0, 0, "")]), shards)
        reports, sides = [], dict(manifest.sides)
        for line in lines:
            reports.append(
                StageReport(line.stage.name, line.stage.version, line.units, *_ledger(line.stage, line.figures))
            )
            for side in {name for what, name in line.figures if what == "rows"} & sides.keys():
                times = round(line.figures["rows", side] / max(manifest.side_rows(side), 1))
                sides[side] = sides[side] * max(times, 1)
        splits = {"train": [file._replace(rows=round(rows / shards)) for file in files]}
        expected = replace(manifest, splits=splits, sides=sides, stages=reports)
        here.output.write(MANIFEST, expected.to_json().encode())
        return Forecast(build, lines, rows, size, max(sum(sum_of(line.figures, "bytes") for line in lines) - size, 0))

    def _shards(self, line: Line, done: Done) -> int:
        """The shards of a stage: as many a unit as in the sample, but of raw input as many as become full."""
        files = [
            file for each in done.completions for file in each.files if file.role in SPLITS and not file.supersedes
        ]
        if not files or not line.stage.size(line.stage.Unit(*done.units[0])):
            return round(line.units * len(files) / max(len(done.units), 1))
        size = sum_of(line.figures, "bytes", SPLITS)
        if abs(size / sum(file.bytes for file in files) - 1) < 1e-9:  # all of it
            return len(files)
        full = size / max(file.bytes for file in files)
        return max(round(full + line.units * (1 + self._end) / 4), line.units)


def _ledger(stage: Stage, found: Figures) -> tuple[Ledger, dict[str, int]]:
    """The ledger and the counters of a stage."""
    ledger = Ledger(stage.counts, round(found["ledger", "read"]), round(found["ledger", "written"]))
    return ledger, {name: round(number) for (what, name), number in found.items() if what == "counter"}


def _write_stage(work: Work, stage: Stage, units: list[Any], done: Sequence[Completion], found: Figures) -> None:
    """A stage as if it were done: its plan, and one completion record, with the files of the sample."""
    made, folder = figures(done), work.stage_folder(stage.name)
    files = [
        file._replace(rows=round(file.rows * found["rows", file.role] / max(made["rows", file.role], 1)))
        for each in done
        for file in each.files
    ]
    record = Completion(0, files, *_ledger(stage, found), 0.0)
    folder.write("plan.json", json.dumps(units).encode())
    folder.write("completions.json", json.dumps([json.loads(record.to_json())]).encode())


# ---- The plan


Ends = tuple[float, ...]
"""A quantity as expected at the ends of the range and in the middle, sorted."""


class Plan(NamedTuple):
    """What is known before a run. `forecasts`: the datasets as expected at each end, and in the middle."""

    forecasts: list[list[Forecast]]
    share: float
    seconds: float
    start: Ends  # seconds in which no worker works
    worker_memory: Ends
    main_memory: float

    def each(self, figure: Callable[[list[Forecast]], float]) -> Ends:
        return tuple(sorted(map(figure, self.forecasts)))

    @property
    def wall(self) -> Ends:
        stages = self.each(lambda forecasts: sum(line.wall for each in forecasts for line in each.lines))
        return tuple(map(sum, zip(self.start, stages, strict=True)))

    @property
    def disk(self) -> Ends:
        """The most bytes at one time: what passes between stages goes when its dataset is done."""

        def most(forecasts: list[Forecast]) -> float:
            kept = itertools.accumulate(each.kept for each in forecasts)
            return max(so_far + each.passing for so_far, each in zip(kept, forecasts, strict=True))

        return self.each(most)

    def memory(self, workers: int) -> Ends:
        return tuple(each * workers + self.main_memory for each in self.worker_memory)


def plan(
    chain: Sequence[tuple[Folder, DatasetBuild | None]],
    todo: Sequence[DatasetBuild],
    executor: Executor,
    *,
    workers: int,
) -> Plan:
    """Measure a sample of the input of the datasets `todo`. `chain`: all datasets of the run in order."""
    began, worked = time.monotonic(), time.process_time()
    # How much slower than on an idle machine, by what waits for the processors before this begins.
    busy = max((os.getloadavg()[0] + workers) / (os.cpu_count() or 1), 1.0)
    first = next(number for number, (_, build) in enumerate(chain) if build in todo)
    builds = [build for _, build in chain[first:] if build]
    read = {uri for build in builds for stage in build.stages for _, uri in locations(stage)}
    given = [Source(each.uri, each, read_manifest(each)) for each, _ in chain[:first] if each.uri in read]
    with tempfile.TemporaryDirectory(prefix="phrasemill-plan-") as temp, executor:
        folder, measured, part_of_raw = Folder(temp), list[Part](), 1.0
        forecasts: list[list[Forecast]] = [[], [], []]
        worlds = [World(folder / f"world{end}", end, workers=workers, busy=busy) for end in (-1, 0, 1)]
        sampled = [
            replace(each, stages=tuple(stage.sample(folder / stage.name) for stage in each.stages)) for each in builds
        ]
        times = [1.0, 1.0, 1.0]
        if not given:
            whole, uri = raw_size(builds[0]), builds[0].output.uri
            parts = raw_parts(builds[0], sampled[0], executor, folder, workers)
            measured, part_of_raw = parts[-1:], parts[-1].size / whole
            given = [Source(uri, parts[-1].places[uri], parts[-1].manifests[uri])]
            for world, found in zip(worlds, forecasts, strict=True):
                found.append(world.dataset(builds[0], sampled[0], parts, whole))
            made = max(sum(file.bytes for file in published(given[0].manifest)), 1)
            times = [found[0].kept / made for found in forecasts]
            builds, sampled = builds[1:], sampled[1:]
        if builds:
            pieces = Pieces([each for each in given if each.manifest.kind.order == "source"] or given)

            def run(number: int) -> Part:
                return run_part(sampled, executor, pieces.take(number, folder / f"part{number}", workers=workers))

            parts = grow(run, pieces.sizes, first=workers, seconds=SECONDS - (time.monotonic() - began))
            measured, part_of_raw = [*measured, parts[-1]], part_of_raw * parts[-1].size / pieces.size
            for world, found, more in zip(worlds, forecasts, times, strict=True):
                for build, as_sampled in zip(builds, sampled, strict=True):
                    found.append(world.dataset(build, as_sampled, parts, more * pieces.size))
    done = [each for part in measured for each in part.done.values()]
    at_work = sum(figures(each.completions)[TIME] / max(min(len(each.units), workers), 1) for each in done)
    idle = worked + max(sum(part.seconds for part in measured) - at_work, 0)
    peak = max(each.peak_memory for one in done for each in one.completions)
    return Plan(
        [[each for each in found if each.build in todo] for found in forecasts],
        share=min(part_of_raw, 1.0),
        seconds=time.monotonic() - began,
        start=tuple(idle * 1.3**end + BEAM_SECONDS[end] for end in (-1, 0, 1)),
        worker_memory=tuple(peak + worlds[2].more_memory * share for share in (0.0, 0.5, 1.0)),
        main_memory=peak_memory(),
    )


def show(
    chain: Sequence[tuple[Folder, DatasetBuild | None]],
    todo: Sequence[DatasetBuild],
    executor: Executor,
    *,
    local: bool,
    workers: int,
    max_reject_rate: float,
    run: str,
) -> None:
    """Measure and print: what `--plan` does. `local`: whether the run is on this machine; `run`: its command."""
    if not todo:
        print("nothing to do: all is there already")
        return
    long = "more where one document takes long"
    print(f"measuring a sample of the input, at most about {SECONDS:.0f} s ({long}) ...", file=sys.stderr)
    found = plan(chain, todo, executor, workers=workers)
    free, available = free_disk(chain[-1][0], [build.output for build in todo]), available_memory()
    lines = [*text(found, free, available, local=local, workers=workers)]
    if local:
        lines += warnings(found, free, available, workers=workers, max_reject_rate=max_reject_rate)
    print("\n".join([*lines, "", f"to run it: {run}"]))


def text(found: Plan, free: int | None, available: int, *, local: bool, workers: int) -> Iterator[str]:
    """What a run makes, takes and needs. `free`: bytes of the disk, None for a store that does not say."""
    measured = "all of" if found.share >= 1 else f"{share(found.share, 1)} of"
    yield f'measured on {measured} the input, in {roughly(found.seconds)}; "a-b": likely to be between'
    table = Table(box=None, pad_edge=False)
    for name in ("", "units", "rows", "writes", "worker time", *(["time"] if local else [])):
        table.add_column(name, justify="right" if name else "left")
    for forecast in zip(*found.forecasts, strict=True):
        rows, kept = (sorted(getattr(each, name) for each in forecast) for name in ("rows", "kept"))
        build = forecast[0].build
        made = f"{between(rows, rounded)} {build.kind.rows}", f"{between(kept, size)} kept"
        table.add_row(str(build.output), "", *made)
        for line in zip(*(each.lines for each in forecast), strict=True):
            cells = [
                between(sorted(map(figure, line)), say)
                for figure, say in (
                    (lambda each: each.units, rounded),
                    (lambda each: rows_of(each.figures), rounded),
                    (lambda each: sum_of(each.figures, "bytes"), size),
                    (lambda each: each.figures[TIME], roughly),
                    (lambda each: each.wall, roughly),
                )
            ]
            table.add_row(f"  {line[0].stage.name}", *cells[: 4 + local])
    work = between(found.each(lambda all_: sum(line.figures[TIME] for each in all_ for line in each.lines)), roughly)
    all_kept = between(found.each(lambda all_: sum(each.kept for each in all_)), size)
    table.add_row("in all", "", "", f"{all_kept} kept", work, *([between(found.wall, roughly)] if local else []))
    yield from ["", *text_of(table), ""]
    if not local:
        yield f"time     {work} of a core of a machine like this one, shared by the workers"
    has = "of a store that does not say what it has" if free is None else f"of {size(free)} for the output"
    yield f"disk     {between(found.disk, size)} at the fullest, {has}"
    a_worker = between(found.worker_memory, size)
    if local:
        yield f"memory   {between(found.memory(workers), size)} ({workers} workers of {a_worker}), of {size(available)}"
    else:
        yield f"memory   {a_worker} a worker"


def warnings(found: Plan, free: int | None, available: int, *, workers: int, max_reject_rate: float) -> Iterator[str]:
    """What does not fit, or may not, with what to do about it."""
    if free is not None and found.disk[-1] > free:
        yield (
            f"warning: the disk {_is(found.disk, free)} too small: it has {size(free)} for the "
            f"{between(found.disk, size)} that the run needs at one time; choose another --output, free some, or take "
            "less (--sample-documents, --max-documents)"
        )
    memory = found.memory(workers)
    if memory[-1] > available:
        fitting = max(int((available - found.main_memory) // found.worker_memory[-1]), 0)
        remedy = f"--workers={fitting}" if fitting else "not even one worker fits: take a machine with more"
        yield (
            f"warning: memory {_is(memory, available)} too small: {size(available)} are free for the "
            f"{between(memory, size)} of {workers} workers; {remedy}"
        )
    for line in (line for each in found.forecasts[1] for line in each.lines):
        read, rejected = line.figures["ledger", "read"], line.figures["ledger", "rejected"]
        if too_many_rejects(Tally(round(read), rejected=round(rejected)), rate=max_reject_rate, expected=read):
            yield (
                f"warning: {line.stage.name} rejects {share(rejected, read)} of its {line.stage.counts}, more than "
                f"--max-reject-rate={max_reject_rate:g}; the run would stop"
            )


def _is(needed: Ends, there: float) -> str:
    return "is" if needed[0] > there else "may be"
