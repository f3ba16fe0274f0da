"""`--plan`: what a run would make, take and need, measured on a sample of its real input. It knows no stage by name.

The real stages do a part of the input in a temporary folder, then a larger part that holds the one before, and so on
until the next would take too long. Figures of the whole follow from those of the parts:

- A stage whose units name raw input, or files of a dataset, grows with the input.
- Others bring together what those wrote, and grow by a power of it (Heaps' law). The exponent is that between the last
  two parts.
- A stage that had as many rows as an earlier one, in each part, has as many in the whole.
- A stage makes no more rows than it says itself (`Stage.most_rows`).

Units are those that the stages plan over datasets of the foreseen size: manifests and completion records with foreseen
numbers, once for each end of the range and once for the middle.

A range holds how much the units of the sample differ (nine times of ten, were they drawn by lot), what exponents lose
from part to part, and 15 % or more for the speed of the machine. It does not hold what the sample does not show: input
that is different elsewhere, duplicates (few meet in a sample), a machine that is busier later. With --resume, the
figures are those of the whole.
"""

from __future__ import annotations

import bisect
import itertools
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
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
LEAST_SHARDS = 8
"""Shards of a part, were they smaller than they will be: fewer would not tell how shards differ."""
GRAINS = 64
"""Pieces into which a shard is cut, where shards need not mirror those of another dataset."""
BEAM_SECONDS = np.array([2.0, 4.0, 8.0])
"""Seconds that Beam takes to start, which a plan does without."""
BYTES_A_ROW = 250
"""Memory of a worker for each row that its unit has beyond those of the sample's units."""

Span = npt.NDArray[np.float64]
"""Low, middle and high of a quantity. Sums and products take the ends together: a corpus is large in all or in none."""
Figures = Counter[tuple[str, str]]
"""What units did, in figures that add up: ("rows", role), ("bytes", role), ("ledger", "read"), ("seconds", "") ..."""
Foreseen = dict[tuple[str, str], Span]
"""The same of a stage of the whole."""


class Done(NamedTuple):
    """What a stage did on a part of the input."""

    units: list[list[Any]]
    completions: list[Completion]


class Part(NamedTuple):
    """A part of the input that went through stages. `files`: the bytes of the files that units name."""

    size: float
    done: dict[tuple[str, str], Done]  # by dataset and stage
    manifests: dict[str, Manifest]
    files: dict[str, int]
    folder: Folder
    seconds: float


class Line(NamedTuple):
    """A stage of the whole: its units, what they do, and how long that takes from first to last."""

    stage: Stage
    units: Span
    figures: Foreseen
    wall: Span

    @property
    def bytes(self) -> Span:
        return sum((each for (what, _), each in self.figures.items() if what == "bytes"), start=exactly(0))


class Forecast(NamedTuple):
    """A dataset of the whole; `passing` are bytes that lie there only until it is done."""

    build: DatasetBuild
    lines: list[Line]
    rows: Span
    kept: Span
    passing: Span


class Plan(NamedTuple):
    """What is known before a run. `start`: seconds in which no worker works."""

    forecasts: list[Forecast]
    share: float
    seconds: float
    start: Span
    worker_memory: Span
    main_memory: float

    @property
    def wall(self) -> Span:
        return sum((line.wall for each in self.forecasts for line in each.lines), start=self.start)

    @property
    def disk(self) -> Span:
        """The most bytes at one time: what passes between stages goes when its dataset is done."""
        kept = np.cumsum([each.kept for each in self.forecasts], axis=0)
        return np.max([all_kept + each.passing for all_kept, each in zip(kept, self.forecasts, strict=True)], axis=0)


def exactly(value: float) -> Span:
    return np.full(3, float(value))


# ---- The sample


def spread(n: int) -> list[int]:
    """The numbers below n, any first few of them evenly spread: 4, 0, 6, 2, 5, 1, 7, 3 of 8."""
    bits = max(n - 1, 0).bit_length()
    mirrored = (int(f"{number:0{bits}b}"[::-1], 2) for number in range(1 << bits))
    return [(number + n // 2) % n for number in mirrored if number < n]


def grow(run: Callable[[int], Part], sizes: Sequence[float], *, first: int, seconds: float) -> list[Part]:
    """Parts of more and more pieces of such sizes, as long as the next part is expected to end in time."""
    began, ends = time.monotonic(), list(itertools.accumulate(sizes))
    number = min(first, len(ends))
    parts = [run(number)]
    while number < len(ends):
        left = seconds - (time.monotonic() - began)
        # What processes load once makes the first part slow.
        times = min(8.0, (0.8 if len(parts) > 1 else 1.6) * left / max(parts[-1].seconds, 0.01))
        larger = bisect.bisect_right(ends, times * ends[number - 1])
        if times < 1.5 or larger <= number:
            break
        number = larger
        parts.append(run(number))
    return parts


def moved(build: DatasetBuild, places: Mapping[str, Folder]) -> DatasetBuild:
    """The same build in and from other folders."""
    stages = []
    for stage in build.stages:
        values = {each.name: getattr(stage, each.name) for each in fields(stage)}  # type: ignore[arg-type]
        uris = {name: places[value].uri for name, value in values.items() if isinstance(value, str) and value in places}
        stages.append(replace(stage, **uris))  # type: ignore[type-var]
    return replace(build, output=places[build.output.uri], stages=tuple(stages))


def run_part(
    builds: Sequence[DatasetBuild],
    executor: Executor,
    folder: Folder,
    *,
    size: float,
    places: Mapping[str, Folder] = {},
    files: Mapping[str, int] = {},
    units: list[Any] | None = None,
) -> Part:
    """Do all stages of some builds in a folder; `units`, where given, are those of the first stage."""
    began = time.monotonic()
    part = Part(size, {}, {}, dict(files), folder, 0.0)
    places = {**places, **{build.output.uri: folder / build.output.name for build in builds}}
    for build in (moved(each, places) for each in builds):
        build.begin(resume=False)
        if units is not None and not part.done:
            build.work.stage_folder(build.stages[0].name).write("plan.json", json.dumps(units).encode())
        for stage in build.stages:
            executor.run(StageRun(build.work, stage, run="", max_reject_rate=1.0))
            done = Done(build.work.units(stage.name), build.work.completions(stage.name))
            part.done[build.output.name, stage.name] = done
        _link(build.output / WORK, folder / "work" / build.output.name)
        part.manifests[build.output.name] = manifest = build.finish()
        published = [*manifest.shards, *itertools.chain(*manifest.sides.values())]
        part.files.update({file.path: file.bytes for file in published})
    return part._replace(seconds=time.monotonic() - began)


def _link(of: Folder, to: Folder) -> None:
    """The same files in another folder."""
    shutil.copytree(of.path, to.path, copy_function=os.link, dirs_exist_ok=True)


def raw_parts(
    build: DatasetBuild, sampled: DatasetBuild, executor: Executor, folder: Folder, workers: int
) -> list[Part]:
    """Parts of raw input. `sampled`: the build with a first stage of small units."""
    stage, sample = build.stages[0], sampled.stages[0]
    units = [[*unit] for unit in sample.plan(build.work)]
    sizes = [sample.size(sample.Unit(*unit)) or 1.0 for unit in units]
    whole = raw_size(build)
    # The first N documents are at the beginning.
    order = spread(len(units)) if stage.most_rows(build.work) is None else list(range(len(units)))

    def run(number: int) -> Part:
        chosen, to = sorted(order[:number]), folder / f"raw{number}"
        size = sum(sizes[unit] for unit in chosen)
        if size >= whole:
            return run_part([build], executor, to, size=whole)
        return run_part([sampled], executor, to, size=size, units=[units[unit] for unit in chosen])

    return grow(run, [sizes[unit] for unit in order], first=workers, seconds=RAW_SECONDS)


def raw_size(build: DatasetBuild) -> float:
    """The size of all raw input, in the measure of the first stage; the number of its units, if that has none."""
    stage = build.stages[0]
    return sum(stage.size(unit) or 1.0 for unit in stage.plan(build.work))


class Source(NamedTuple):
    """A dataset from which parts are taken: `uri` is how stages name it, `folder` where it lies."""

    uri: str
    folder: Folder
    manifest: Manifest


class Grains:
    """Pieces of datasets that mirror each other, in an order in which any first few of them are evenly spread.

    A piece is a shard of each; where there is one dataset, rows of a shard, of which larger shards are put together.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        shards = sources[0].manifest.shards
        found: list[tuple[int, int, int, int, list[pa.Table]]] = []
        read, seen, self._largest = 0, 0, 1
        for turn, number in enumerate(spread(len(shards))):
            if read > MOST_READ:
                break
            tables = [_read(source, number) for source in sources]
            here, rows = _bytes(tables), tables[0].num_rows
            read, seen, self._largest = read + here, seen + shards[number].bytes, max(self._largest, here)
            step = max(-(-rows // GRAINS), 1) if len(sources) == 1 else max(rows, 1)
            cuts = list(range(0, rows, step)) or [0]
            for rank, cut in enumerate(spread(len(cuts))):
                at = cuts[cut]
                found.append((rank, turn, number, at, [table.slice(at, step) for table in tables]))
        found.sort(key=lambda grain: grain[:2])
        self._grains = [(number, at, tables) for _, _, number, at, tables in found]
        self.sizes = [_bytes(tables) or 1 for _, _, tables in self._grains]
        self._all = len({number for number, _, _ in self._grains}) == len(shards)
        self.size = read * sum(shard.bytes for shard in shards) / max(seen, 1) or 1.0
        """Bytes in memory of all of the datasets."""

    def take(self, number: int, folder: Folder, *, workers: int) -> tuple[float, dict[str, Folder], dict[str, int]]:
        """The first pieces as datasets in a folder: their size, where each dataset is now, and the bytes of its files."""
        grains = sorted(self._grains[:number], key=lambda grain: grain[:2])
        size = sum(_bytes(tables) for _, _, tables in grains)
        if len(self._sources) > 1 or (number == len(self.sizes) and self._all):
            groups = [
                [tables for _, _, tables in group] for _, group in itertools.groupby(grains, lambda each: each[0])
            ]
        else:
            shards = max(math.ceil(size / self._largest), min(max(workers, LEAST_SHARDS), number))
            cuts = [len(grains) * cut // shards for cut in range(shards + 1)]
            groups = [[tables for _, _, tables in grains[start:end]] for start, end in itertools.pairwise(cuts)]
        places, files = {}, Counter[str]()
        for place, source in enumerate(self._sources):
            to = places[source.uri] = folder / source.folder.name
            tables = [pa.concat_tables([each[place] for each in group]) for group in groups]
            files.update(_write_sample(source, tables, to, part=size / self.size))
        return max(size, 1.0), places, dict(files)


def _bytes(tables: Iterable[pa.Table]) -> int:
    return sum(table.nbytes for table in tables)


def _read(source: Source, number: int) -> pa.Table:
    with parquet_file(source.folder, source.manifest.shards[number].path) as reader:
        return reader.read(use_threads=False)


def _write_sample(source: Source, tables: Sequence[pa.Table], to: Folder, *, part: float) -> dict[str, int]:
    """A dataset of some shards, with as much of the side tables and of the counters. Returns the bytes of its files."""
    manifest = source.manifest
    shards = [_write(table, to, f"data/train-{number:05}.parquet") for number, table in enumerate(tables)]
    sides = {side: list(_side(source, side, to, part=part)) for side in manifest.sides}
    stages = [
        each._replace(counters={name: round(n * part) for name, n in each.counters.items()}) for each in manifest.stages
    ]
    to.write(MANIFEST, replace(manifest, splits={"train": shards}, sides=sides, stages=stages).to_json().encode())
    return {file.path: file.bytes for file in (*shards, *itertools.chain(*sides.values()))}


def _side(source: Source, side: str, to: Folder, *, part: float) -> Iterator[Shard]:
    """So much of a side table, of files evenly spread."""
    files = source.manifest.sides[side]
    left = math.ceil(sum(file.rows for file in files) * part)
    for number in spread(len(files)):
        if left > 0:
            with parquet_file(source.folder, files[number].path) as reader:
                table = reader.read(use_threads=False).slice(0, left)
            left -= table.num_rows
            yield _write(table, to, files[number].path)


def _write(table: pa.Table, to: Folder, name: str) -> Shard:
    with AtomicFile(to, name) as sink, parquet_writer(sink, table.schema) as writer:
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
    return Shard(name, table.num_rows, sink.bytes, sink.sha256)


# ---- From parts to the whole


def figures(completions: Iterable[Completion]) -> Figures:
    """What units did, in figures that add up."""
    found = Figures()
    for each in completions:
        found["seconds", ""] += each.seconds  # type: ignore[assignment]
        found.update({("counter", name): number for name, number in each.counters.items()})
        for file in each.files:
            found["rows", file.role] += file.rows
            found["bytes", file.role] += file.bytes
        for name in ("read", "written") if each.ledger else ():
            found["ledger", name] += getattr(each.ledger, name)
        found["ledger", "rejected"] += each.ledger.rejected.total() if each.ledger else 0
    return found


def rows_of(found: Mapping[tuple[str, str], Any]) -> Any:
    """The rows that a stage made: those that are published, of a stage that publishes none those for a later one."""
    roles = [role for what, role in found if what == "rows" and role not in SIDES]
    chosen = [role for role in roles if role in SPLITS] or roles
    return sum((found["rows", role] for role in chosen), start=0 * found["seconds", ""])


def linear(values: Sequence[float], sizes: Sequence[float], whole: Span) -> Span:
    """The sum of a quantity over a whole of a size, from units of the sample and their sizes.

    The half width is Student's t (90 %) times the standard error of the ratio value/size, for the share that was not
    seen. One unit says nothing of how units differ: then it is half.
    """
    value, size, n = sum(values), sum(sizes), len(values)
    if not value:
        return exactly(0)
    unseen = max(1 - size / whole[1], 0)
    half = 0.5
    if n > 1:
        variance = sum((v - value / size * s) ** 2 for v, s in zip(values, sizes, strict=True)) * n / size**2
        half = min(1.65 * (1 + 2 / (n - 1)) * math.sqrt(variance / (n - 1)) / (value / size), 1.0)
    half *= math.sqrt(unseen)
    return value * whole / size * np.array([1 / (1 + half), 1, 1 + half])


def power(values: Sequence[float], sizes: Sequence[float], whole: Span) -> Span:
    """What a quantity is at a size, from its values at smaller ones: distinct things grow less than what they are of.

    The exponent falls from part to part. High: it stays; low: it falls twice as much again.
    """
    if not values[-1]:
        return exactly(0)
    points = [(math.log(s), math.log(v)) for s, v in zip(sizes, values, strict=True) if v > 0 and s > 0]
    slopes = [max((y1 - y0) / (x1 - x0), 0) for (x0, y0), (x1, y1) in itertools.pairwise(points) if x1 > x0 + 0.05]
    if not slopes:
        low, high = 0.5, 1.0
    elif slopes[-1] > 1:
        low, high = 1.0, slopes[-1]
    else:
        high = slopes[-1]
        fall = max(slopes[-2] - high, 0.03) if len(slopes) > 1 else 0.1
        low = max(high - 2 * fall, min(high, 0.5))
    times = np.maximum(whole / sizes[-1], 1e-9)
    return np.sort(values[-1] * times ** np.array([low, (low + high) / 2, high]))


def seconds(values: Sequence[float], sizes: Sequence[float], whole: Span) -> Span:
    """Worker time at a size: in proportion to it, or where parts show that it grows less, between that they allow for.

    That is a power of the size, and a part that grows with it beside one that does not.
    """
    value, size = values[-1], sizes[-1]
    found = value * whole / size
    if len(values) > 1 and size > sizes[-2] and values[-2] > 0 and value > 0:
        exponent = min(max(math.log(value / values[-2]) / math.log(size / sizes[-2]), 0), 2)
        if abs(exponent - 1) > 0.1:
            slope = max(value - values[-2], 0) / (size - sizes[-2])
            both = np.sort([value * (whole / size) ** exponent, value + slope * (whole - size)], axis=0)
            found = np.array([both[0][0], both.mean(axis=0)[1], both[1][2]])
    # Of moments a sample gives little, and machines are never equally busy.
    return found * (np.array([0.85, 1, 1.2]) if value > 1 else np.array([0.6, 1, 1.5]))


class Measured(NamedTuple):
    """A stage on parts of the input: their sizes, what it did on each, and the bytes of the files that units name."""

    stage: Stage
    sizes: list[float]
    done: list[Done]
    files: Mapping[str, int]

    @property
    def values(self) -> list[Figures]:
        return [figures(each.completions) for each in self.done]

    def reads(self, unit: Sequence[Any]) -> tuple[float, float]:
        """The bytes of raw input and of files of datasets that a unit reads, 0 where it names none."""
        return self.stage.size(self.stage.Unit(*unit)), float(sum(self.files.get(name, 0) for name in _names(unit)))


def _names(value: Any) -> Iterator[str]:
    """The strings in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _names(each)


def by_units(measured: Measured, whole: Span, raw: Span) -> Foreseen | None:
    """The figures of a stage that reads its input unit by unit; None if it does not. `raw`: the size of raw input."""
    last = measured.done[-1]
    reads = [measured.reads(unit) for unit in last.units]
    found: Foreseen = {}
    for column, all_of_it in enumerate((raw, None)):
        chosen = [number for number, read in enumerate(reads) if read[column]]
        weights = [reads[number][column] for number in chosen]
        target = whole * sum(weights) / measured.sizes[-1] if all_of_it is None else all_of_it
        each = [figures([last.completions[number]]) for number in chosen]
        for key in {key for one in each for key in one}:
            found[key] = found.get(key, exactly(0)) + linear([one[key] for one in each], weights, target)
    return found or None


def by_power(values: Sequence[Figures], sizes: Sequence[float], whole: Span) -> Foreseen:
    """The figures of a stage that brings together what others wrote, by the size of that."""
    return {key: power([each[key] for each in values], sizes, whole) for key in values[-1]}


def by_rows(values: Sequence[Figures], sizes: Sequence[float], whole: Span, rows: Span) -> Foreseen:
    """The figures of a stage of which the rows are known; bytes a row go on as they changed between the last parts."""
    last = values[-1]
    found = {key: value * rows / rows_of(last) for key, value in last.items()}
    for role in [role for what, role in last if what == "bytes"] if len(values) > 1 and sizes[-1] > sizes[-2] else ():
        a_row = [each["bytes", role] / max(each["rows", role], 1) for each in values[-2:]]
        change = a_row[1] / a_row[0] if a_row[0] else 1.0
        steps = min(max(math.log(whole[1] / sizes[-1]) / math.log(sizes[-1] / sizes[-2]), 0), 2)
        change = min(max(change**steps, 0.6), 2.0)
        found["bytes", role] = np.sort(found["bytes", role] * [1, change**0.5, change])
    return found


class Forecaster:
    """Foresees the datasets of a run one after the other; each builds on what was foreseen of those before."""

    def __init__(self, folder: Folder, workers: int) -> None:
        self._folders = [folder / end for end in ("low", "middle", "high")]
        self._workers = workers
        self._places: list[dict[str, Folder]] = [{}, {}, {}]
        self._rows: list[tuple[list[int], Span]] = []  # of each stage so far: in the parts, in the whole
        self.more_memory = 0.0

    def dataset(self, build: DatasetBuild, sampled: DatasetBuild, parts: Sequence[Part], whole: Span) -> Forecast:
        """A dataset of a whole of some size, from parts of it. `sampled`: the build as the parts have it."""
        name, last = build.output.name, parts[-1]
        for places, folder in zip(self._places, self._folders, strict=True):
            places[build.output.uri] = folder / name
            _link(last.folder / name, folder / name)
            _link(last.folder / "work" / name, folder / name / WORK)
        ends = [moved(build, places) for places in self._places]
        lines: list[Line] = []
        first: tuple[list[float], Span] | None = None
        for number, stage in enumerate(sampled.stages):
            done = [part.done[name, stage.name] for part in parts]
            measured = Measured(stage, [part.size for part in parts], done, last.files)
            units, grown = self._stage(measured, ends, number, whole, first)
            first = first or ([_base(each) for each in measured.values], _base(grown))
            lines.append(self._line(measured, np.array([float(len(each)) for each in units]), grown, first))
        return self._publish(build, lines, ends, last)

    def _stage(
        self,
        measured: Measured,
        ends: Sequence[DatasetBuild],
        number: int,
        whole: Span,
        first: tuple[list[float], Span] | None,
    ) -> tuple[list[list[list[Any]]], Foreseen]:
        """The units and figures of a stage. `first`: what the first of its dataset writes, in the parts and the whole."""
        stages, works = [each.stages[number] for each in ends], [each.work for each in ends]
        units = [[[*unit] for unit in each.plan(work)] for each, work in zip(stages, works, strict=True)]
        values, sizes = measured.values, measured.sizes
        more_units = np.array([len(each) for each in units]) / max(len(measured.done[-1].units), 1)
        rows = [rows_of(each) for each in values]
        same = next((foreseen for of_parts, foreseen in reversed(self._rows) if rows[-1] and of_parts == rows), None)
        raw = [sum(each.size(each.Unit(*unit)) for unit in of) for each, of in zip(stages, units, strict=True)]
        if same is not None:
            grown = by_rows(values, sizes, whole, same)
        elif found := by_units(measured, whole, np.array(raw)):
            grown = found
            larger = max(whole[1] / sizes[-1] / max(more_units[1], 1e-9), 1.0)
            if rows[-1] != values[-1]["ledger", "written"]:  # distinct things of a unit, and units that are larger
                grown = {key: each * larger ** self._less(measured) for key, each in grown.items()}
            for what, role in grown:
                if what == "bytes":  # larger files pack better
                    grown[what, role] = np.sort(grown[what, role] * larger ** np.array([-0.06, -0.03, 0]))
        elif first is None:
            grown = {key: value * more_units for key, value in values[-1].items()}
        else:
            grown = by_power(values, *first)
            # What is bounded in each unit grows with the units.
            least = np.array([0, 1, 1]) * more_units
            grown = {key: np.maximum(each, least * values[-1][key]) for key, each in grown.items()}
        if not any(raw) or first is None:
            grown["seconds", ""] = seconds([each["seconds", ""] for each in values], sizes, whole)
        bounds = [each.most_rows(work) for each, work in zip(stages, works, strict=True)]
        bound = np.array([math.inf if each is None else each for each in bounds])
        within = np.minimum(bound / np.maximum(rows_of(grown), 1), 1)
        grown = {key: np.sort(each * within) for key, each in grown.items()}
        self._rows.append((rows, rows_of(grown)))
        for end, work in enumerate(works):
            _write_work(work, measured, units[end], {key: each[end] for key, each in grown.items()})
        return units, grown

    def _less(self, measured: Measured) -> Span:
        """The exponents by which figures of a unit of more input grow less than it does."""
        units = [len(each.units) for each in measured.done]
        slopes = [0.6, 1.0]
        if len(units) > 1 and units[-1] == units[-2] and measured.sizes[-1] > 1.2 * measured.sizes[-2]:
            before, after = (max(rows_of(each), 1) for each in measured.values[-2:])
            slope = min(math.log(after / before) / math.log(measured.sizes[-1] / measured.sizes[-2]), 1.0)
            slopes = [slope - 0.1, slope]
        return np.array([slopes[0], sum(slopes) / 2, slopes[1]]) - 1

    def _line(self, measured: Measured, units: Span, grown: Foreseen, first: tuple[list[float], Span]) -> Line:
        work, n = grown["seconds", ""], np.maximum(units, 1)
        at_once = np.minimum(n, self._workers)
        # Workers that take the next unit as soon as they are free end within one unit of each other.
        wall = work / at_once + work / n * (1 - 1 / at_once) * np.array([0, 0.5, 1])
        # A unit holds its part of what it makes, or of what the first stage made.
        seen = max(rows_of(measured.values[-1]), first[0][-1]) / max(len(measured.done[-1].units), 1)
        rows = max(rows_of(grown)[2], first[1][2]) / n[1]
        self.more_memory = max(self.more_memory, (rows - seen) * BYTES_A_ROW)
        return Line(measured.stage, units, grown, wall)

    def _publish(self, build: DatasetBuild, lines: list[Line], ends: Sequence[DatasetBuild], last: Part) -> Forecast:
        """The dataset that stages wrote; also its manifest at each end."""
        manifest = last.manifests[build.output.name]
        made = figures(each for line in lines for each in last.done[build.output.name, line.stage.name].completions)
        sides = [file for files in manifest.sides.values() for file in files]

        def kept(what: str, roles: Iterable[str], published: float) -> Span:
            """Of what was written in some roles; some of it may take the place of other."""
            keys = [(what, role) for role in roles]
            times = published / max(sum(made[key] for key in keys), 1)
            return times * sum((line.figures.get(key, exactly(0)) for line in lines for key in keys), start=exactly(0))

        rows = kept("rows", SPLITS, manifest.rows)
        size = kept("bytes", [*SPLITS, *SIDES], sum(file.bytes for file in [*manifest.shards, *sides]))
        shards = sum((self._shards(line, last.done[build.output.name, line.stage.name]) for line in lines), exactly(0))
        for end, of in enumerate(ends):
            _write_manifest(of.output, manifest, lines, end, rows=rows[end], shards=max(round(shards[end]), 1))
        written = sum((line.bytes for line in lines), start=exactly(0))
        return Forecast(build, lines, rows, size, np.maximum(written - size, 0))

    def _shards(self, line: Line, done: Done) -> Span:
        """The shards that a stage publishes: as many a unit as in the sample, but raw input makes as many as are full."""
        files = [
            file for each in done.completions for file in each.files if file.role in SPLITS and not file.supersedes
        ]
        if not files or not line.stage.size(line.stage.Unit(*done.units[0])):
            return line.units * len(files) / max(len(done.units), 1)
        grown = sum(line.figures.get(("bytes", role), exactly(0)) for role in SPLITS)
        full = max(file.bytes for file in files)
        same = grown[1] == sum(file.bytes for file in files)
        return exactly(len(files)) if same else np.maximum(grown / full + line.units / 2, line.units)


def _base(found: Mapping[tuple[str, str], Any]) -> Any:
    """How much a first stage gives to those after it: what its ledger wrote, or its rows."""
    return found["ledger", "written"] if ("ledger", "written") in found else rows_of(found)


def _write_work(
    work: Work, measured: Measured, units: Sequence[list[Any]], found: Mapping[tuple[str, str], float]
) -> None:
    """A stage as if it were done: its plan, and one completion record with the files of the sample."""
    done, folder = measured.done[-1].completions, work.stage_folder(measured.stage.name)
    made = figures(done)
    files = [
        file._replace(rows=round(file.rows * found["rows", file.role] / max(made["rows", file.role], 1)))
        for each in done
        for file in each.files
    ]
    read, written = (round(found.get(("ledger", name), 0)) for name in ("read", "written"))
    counters = {name: round(number) for (what, name), number in found.items() if what == "counter"}
    record = Completion(0, files, Ledger(measured.stage.counts, read, written), counters, 0.0)
    folder.write("plan.json", json.dumps(units).encode())
    folder.write("completions.json", json.dumps([json.loads(record.to_json())]).encode())


def _write_manifest(
    to: Folder, manifest: Manifest, lines: Sequence[Line], end: int, *, rows: float, shards: int
) -> None:
    """The manifest of a dataset as if it were done; its files are those of the sample, again and again."""
    files = itertools.islice(itertools.cycle(manifest.shards or [Shard("", 0, 0, "")]), shards)
    splits = {"train": [file._replace(rows=round(rows / shards)) for file in files]}
    reports, sides = [], {}
    for line in lines:
        found = {key: round(each[end]) for key, each in line.figures.items()}
        counters = {name: number for (what, name), number in found.items() if what == "counter"}
        ledger = Ledger(line.stage.counts, found.get(("ledger", "read"), 0), found.get(("ledger", "written"), 0))
        reports.append(StageReport(line.stage.name, line.stage.version, round(line.units[end]), ledger, counters))
        for side, of_sample in manifest.sides.items():
            if wanted := found.get(("rows", side), 0):
                have = sum(file.rows for file in of_sample)
                times = max(round(wanted / max(have, 1)), 1)
                sides[side] = of_sample * times
    to.write(MANIFEST, replace(manifest, splits=splits, sides=sides, stages=reports).to_json().encode())


# ---- The plan


def plan(
    chain: Sequence[tuple[Folder, DatasetBuild | None]],
    todo: Sequence[DatasetBuild],
    executor: Executor,
    *,
    workers: int,
) -> Plan:
    """Measure a sample of the input of the datasets `todo`, and foresee them. `chain`: all datasets of the run in order."""
    began, worked = time.monotonic(), time.process_time()
    builds = [build for _, build in chain[next(n for n, (_, each) in enumerate(chain) if each in todo) :] if build]
    made = {build.output.uri for build in builds}
    read = {uri for build in builds for stage in build.stages for uri in _places_read(stage)}
    given = [Source(each.uri, each, read_manifest(each)) for each, _ in chain if each.uri in read - made]
    last: list[Part] = []
    with tempfile.TemporaryDirectory(prefix="phrasemill-plan-") as temp, executor:
        folder = Folder(temp)
        forecaster = Forecaster(folder, workers)
        sampled = [
            replace(build, stages=tuple(stage.sample(folder / stage.name) for stage in build.stages))
            for build in builds
        ]
        forecasts, times, part_of_raw = [], exactly(1), 1.0
        if not given:
            parts = raw_parts(builds[0], sampled[0], executor, folder, workers)
            whole = raw_size(builds[0])
            forecasts.append(forecaster.dataset(builds[0], sampled[0], parts, exactly(whole)))
            last, part_of_raw = parts[-1:], parts[-1].size / whole
            name, manifest = builds[0].output.name, parts[-1].manifests[builds[0].output.name]
            times = forecasts[0].kept / max(_kept_bytes(manifest), 1)
            given = [Source(builds[0].output.uri, parts[-1].folder / name, manifest)]
            builds, sampled = builds[1:], sampled[1:]
        if builds:
            grains = Grains([each for each in given if each.manifest.kind.order == "source"] or given)

            def run(number: int) -> Part:
                to = folder / f"part{number}"
                size, places, files = grains.take(number, to, workers=workers)
                return run_part(sampled, executor, to, size=size, places=places, files=files)

            parts = grow(run, grains.sizes, first=workers, seconds=SECONDS - (time.monotonic() - began))
            for build, as_sampled in zip(builds, sampled, strict=True):
                forecasts.append(forecaster.dataset(build, as_sampled, parts, times * grains.size))
            last.append(parts[-1])
            part_of_raw *= parts[-1].size / grains.size
    completions = [each for part in last for done in part.done.values() for each in done.completions]
    peak = max(each.peak_memory for each in completions)
    at_work = sum(
        sum(each.seconds for each in done.completions) / max(min(len(done.units), workers), 1)
        for part in last
        for done in part.done.values()
    )
    return Plan(
        [each for each in forecasts if each.build in todo],
        share=min(part_of_raw, 1.0),
        seconds=time.monotonic() - began,
        start=(worked + max(sum(part.seconds for part in last) - at_work, 0)) * np.array([0.7, 1, 1.3]) + BEAM_SECONDS,
        worker_memory=peak + forecaster.more_memory * np.array([0, 0.5, 1]),
        main_memory=peak_memory(),
    )


def _places_read(stage: Stage) -> set[str]:
    """What may be the datasets that a stage reads."""
    values = (getattr(stage, each.name) for each in fields(stage) if "location" in each.metadata)  # type: ignore[arg-type]
    return {value for value in values if isinstance(value, str)}


def _kept_bytes(manifest: Manifest) -> int:
    return sum(file.bytes for file in [*manifest.shards, *itertools.chain(*manifest.sides.values())])


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
    print(
        f"measuring a sample of the input, {SECONDS:.0f} s or more where a document alone takes long ...",
        file=sys.stderr,
    )
    found = plan(chain, todo, executor, workers=workers)
    free, available = free_disk(chain[-1][0], [build.output for build in todo]), available_memory()
    print("\n".join(text(found, free, available, local=local, workers=workers)))
    if local:
        print("\n".join(warnings(found, free, available, workers=workers, max_reject_rate=max_reject_rate)))
    print(f"\nto run it: {run}")


def text(found: Plan, free: int | None, available: int, *, local: bool, workers: int) -> Iterator[str]:
    """What a run makes, takes and needs. `free`: bytes of the disk, None on a store that does not say."""
    whole = found.share >= 1
    what = "all of the input" if whole else f"{share(found.share, 1)} of the input"
    yield f"measured on {what}, in {roughly(found.seconds)}" + ("" if whole else '; "a-b": likely to be between')
    yield ""
    table = Table(box=None, pad_edge=False)
    for name in ("", "units", "rows", "writes", "worker time", *(["time"] if local else [])):
        table.add_column(name, justify="right" if name else "left")
    for each in found.forecasts:
        rows = f"{between(each.rows, rounded)} {each.build.kind.rows}"
        table.add_row(str(each.build.output), "", rows, f"{between(each.kept, size)} kept")
        for line in each.lines:
            cells = between(line.units, rounded), between(rows_of(line.figures), rounded), between(line.bytes, size)
            times = between(line.figures["seconds", ""], roughly), between(line.wall, roughly)
            table.add_row(f"  {line.stage.name}", *cells, *times[: 1 + local])
    work = sum((line.figures["seconds", ""] for each in found.forecasts for line in each.lines), start=exactly(0))
    kept = sum((each.kept for each in found.forecasts), start=exactly(0))
    table.add_row("in all", "", "", f"{between(kept, size)} kept", between(work, roughly), between(found.wall, roughly))
    yield from text_of(table)
    yield ""
    if not local:
        yield f"time     {between(work, roughly)} of the cores of a machine like this, shared by the workers"
    has = "of a store that does not say what it has" if free is None else f"of {size(free)} for the output"
    yield f"disk     {between(found.disk, size)} at the fullest, {has}"
    each_worker = between(found.worker_memory, size)
    if local:
        in_all = between(memory(found, workers), size)
        yield f"memory   {in_all} ({workers} workers of {each_worker}), of {size(available)}"
    else:
        yield f"memory   {each_worker} a worker"


def memory(found: Plan, workers: int) -> Span:
    return found.worker_memory * workers + found.main_memory


def warnings(found: Plan, free: int | None, available: int, *, workers: int, max_reject_rate: float) -> Iterator[str]:
    """What does not fit, or may not, with what to do about it."""
    if free is not None and found.disk[2] > free:
        yield (
            f"warning: the disk {_verb(found.disk, free)} too small: it has {size(free)} for the "
            f"{between(found.disk, size)} that the run needs at one time; choose another --output, free some, or take "
            "less (--sample-documents, --max-documents)"
        )
    in_all = memory(found, workers)
    if in_all[2] > available:
        fitting = max(int((available - found.main_memory) // found.worker_memory[2]), 0)
        remedy = f"--workers={fitting}" if fitting else "not even one worker fits: take a machine with more"
        yield (
            f"warning: memory {_verb(in_all, available)} too small: {size(available)} are free for the "
            f"{between(in_all, size)} of {workers} workers; {remedy}"
        )
    for line in (line for each in found.forecasts for line in each.lines):
        read, rejected = (line.figures.get(("ledger", name), exactly(0))[1] for name in ("read", "rejected"))
        if too_many_rejects(Tally(read=round(read), rejected=round(rejected)), rate=max_reject_rate, expected=read):
            yield (
                f"warning: {line.stage.name} rejects {share(rejected, read)} of its {line.stage.counts}, more than "
                f"--max-reject-rate={max_reject_rate:g}; the run would stop"
            )


def _verb(needed: Span, there: float) -> str:
    return "is" if needed[0] > there else "may be"
