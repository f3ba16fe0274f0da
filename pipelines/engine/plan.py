"""`--plan`: what a run would make, take and need, measured on a sample of its real input. It knows no stage by name.

The real stages do a part of the input in a temporary folder, then a larger part that holds the one before, and so on
until the next would take too long. The figures of the whole follow from those of the parts:

- A stage whose units name raw input, or files of a dataset, grows with the input.
- The time of one that compares all with all grows with the square (`Stage.compares_all`).
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
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, NamedTuple

import pyarrow as pa
from rich.table import Table

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.executors import Executor, InlineExecutor, StageRun
from pipelines.engine.machine import available_memory, free_disk
from pipelines.engine.phase import current_phase
from pipelines.engine.progress import shown
from pipelines.engine.stage import (
    WORK,
    Completion,
    Stage,
    StageError,
    Tally,
    Work,
    files_named,
    locations,
    published,
    too_many_rejects,
)
from pipelines.engine.task_writer import peak_memory
from schemas.dataset import Dataset
from schemas.kinds import SIDES
from schemas.manifest import MANIFEST, SPLITS, Ledger, Shard, StageReport, read_manifest
from schemas.storage.folder import AtomicFile, Folder
from schemas.storage.parquet import parquet_writer
from transforms.reports.figures import between, roughly, rounded, share, size, text_of, whole_percent

RAW_SECONDS, SECONDS = 20.0, 80.0
"""Seconds for the sample of raw input, and for all."""
REST = 10.0
"""Seconds for what is computed from the sample, at most."""
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
    """A part of the input that goes through stages. Datasets by their URI in the run."""

    folder: Folder
    size: float
    datasets: dict[str, Dataset] = field(default_factory=dict)
    done: dict[tuple[str, str], Done] = field(default_factory=dict)  # by URI and stage
    seconds: float = 0.0


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


def grow(
    run: Callable[[int], Part],
    sizes: Sequence[float],
    *,
    first: int,
    seconds: float,
    stop: Callable[[], None] = lambda: None,
) -> list[Part]:
    """Parts of more and more pieces of such sizes, as long as the next part is expected to end in time.

    One that does not, is given up if `stop` can end it; but the first is always done.
    """
    end, ends = time.monotonic() + seconds, list(itertools.accumulate(sizes))
    number, parts = min(first, len(ends)), list[Part]()
    given_up = threading.Event()

    def give_up() -> None:
        given_up.set()
        stop()

    while True:
        limit = threading.Timer(max(end - time.monotonic(), 0), give_up)
        if parts:
            limit.start()
        try:
            parts.append(run(number))
        except StageError:
            if given_up.is_set():
                return parts
            raise
        finally:
            limit.cancel()
        # What processes load once makes the first part slow.
        times = (0.8 if len(parts) > 1 else 1.6) * (end - time.monotonic()) / max(parts[-1].seconds, 0.01)
        if number == len(ends) or times * ends[number - 1] < max(ends[number], 1.5 * ends[number - 1]):
            return parts
        number = max(bisect.bisect_right(ends, min(times, 8.0) * ends[number - 1]), number + 1)


def moved(build: DatasetBuild, folder: Folder, others: Mapping[str, Folder]) -> DatasetBuild:
    """The same build in another folder, and from others."""
    stages = []
    for stage in build.stages:
        uris = {name: others[uri].uri for name, uri in locations(stage).items() if uri in others}
        stages.append(replace(stage, **uris))  # type: ignore[type-var]
    return replace(build, output=folder, stages=tuple(stages))


def run_part(builds: Sequence[DatasetBuild], executor: Executor, part: Part, units: list[Any] | None = None) -> Part:
    """Do all stages of some builds; `units`: those of the first stage, if not all."""
    began = time.monotonic()
    for build in builds:
        uri, folder = build.output.uri, part.folder / build.output.name
        here = moved(build, folder, {uri: each.folder for uri, each in part.datasets.items()})
        here.begin(resume=False)
        if units is not None and not part.done:
            here.work.stage_folder(here.stages[0].name).write("plan.json", json.dumps(units).encode())
        for stage in here.stages:
            executor.run(StageRun(here.work, stage, run="", max_reject_rate=1.0))
            part.done[uri, stage.name] = Done(here.work.units(stage.name), here.work.completions(stage.name))
        link(folder / WORK, part.folder / WORK / folder.name)
        part.datasets[uri] = Dataset(folder, here.finish())
    part.seconds = time.monotonic() - began
    return part


def link(of: Folder, to: Folder) -> None:
    """The same files in another folder."""
    shutil.copytree(of.path, to.path, copy_function=os.link, dirs_exist_ok=True)


def raw_parts(build: DatasetBuild, sampled: DatasetBuild, executor: Sampling, folder: Folder, first: int) -> list[Part]:
    """Parts of raw input. `sampled`: the build with a first stage of small units."""
    stage = sampled.stages[0]
    units = list(stage.plan(build.work))
    # The first N rows are at the beginning.
    order = spread(len(units)) if build.stages[0].most_rows(build.work) is None else list(range(len(units)))
    whole, sizes = raw_size(build), [stage.size(units[unit]) or 1.0 for unit in order]

    def run(number: int) -> Part:
        part = Part(folder / f"raw{number}", min(sum(sizes[:number]) or 1.0, whole))
        executor.part = f"from {share(part.size, whole)} of the input"
        if part.size == whole:
            return run_part([build], executor, part)
        return run_part([sampled], executor, part, [[*units[unit]] for unit in sorted(order[:number])])

    return grow(run, sizes, first=first, seconds=RAW_SECONDS)


def raw_size(build: DatasetBuild) -> float:
    """The size of all raw input in the measure of the first stage; its units, where that has none."""
    return sum(build.stages[0].size(unit) or 1.0 for unit in build.stages[0].plan(build.work)) or 1.0


class Sampling(Executor):
    """Another executor; shows what it does of which part of the input, and for how long."""

    def __init__(self, executor: Executor) -> None:
        self.inline = isinstance(executor, InlineExecutor)
        self._executor, self._began = executor, time.monotonic()
        self._stage: StageRun | None = None
        self.part = ""
        self._shown = shown(self._line)

    def __enter__(self) -> Sampling:
        self._executor.__enter__()
        self._shown.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.__exit__(kind, error, trace)
        self._executor.__exit__(kind, error, trace)

    def run(self, stage: StageRun) -> None:
        self._stage = stage
        self._executor.run(stage)

    def stop(self) -> None:
        self._executor.stop()

    def _line(self) -> str:
        """ "8 s of at most 90 s: parse of x-sentences, 34 % of 24 documents, 0.8 % of the input"."""
        passed, run, what = time.monotonic() - self._began, self._stage, current_phase().what
        if run and not what and run.work.is_planned(run.stage.name):
            done = run.work.finished(run.stage.name)
            at_work = self._executor.at_work()[0]
            busy = [each.busy_with for each in at_work]
            doing = sum(each.fraction for each in at_work if each.stage == run.stage.name and each.unit not in done)
            done_share = (len(done) + doing) / max(len(run.work.units(run.stage.name)), 1)
            so_far = busy[0] if all(busy) and busy else whole_percent(done_share)
            what = f"{run.stage.name} of {run.work.folder.name}, {so_far}"
        what = ", ".join(filter(None, [what or "preparing", self.part]))
        most = f" of at most {SECONDS + REST:.0f} s" if passed < SECONDS + REST else ", longer than it should take"
        return f"{passed:.0f} s{most}: {what}"


class Pieces:
    """Pieces of datasets that mirror each other, in an order in which any first few are evenly spread.

    A piece is a shard of each; where there is one dataset, some rows of a shard, of which larger shards are made.
    """

    def __init__(self, sources: Mapping[str, Dataset], stage: Stage) -> None:
        """`stage`: the first one that reads them."""
        self._sources, self._apart = sources, len(sources) == 1
        shards = [each.manifest.shards for each in sources.values()]
        found: list[tuple[int, int, int, int, list[pa.Table]]] = []
        read, seen, self._largest = 0, 0, 1
        for turn, number in enumerate(spread(len(shards[0]))):
            if read > MOST_READ:
                break
            tables = [each.table(own[number]) for each, own in zip(sources.values(), shards, strict=True)]
            if self._apart:
                tables = [stage.shorter(tables[0])]
            here, rows = nbytes(tables), max(tables[0].num_rows, 1)
            read, seen, self._largest = read + here, seen + shards[0][number].bytes, max(self._largest, here)
            step = -(-rows // PIECES) if self._apart else rows
            for rank, cut in enumerate(spread(-(-rows // step))):
                pieces = [table.slice(cut * step, step) if self._apart else table for table in tables]
                found.append((rank, turn, number, cut, pieces))
        found.sort(key=lambda piece: piece[:2])
        self._pieces = [(number, cut, tables) for _, _, number, cut, tables in found]
        self._all = len({number for number, _, _ in self._pieces}) == len(shards[0])
        self.sizes = [nbytes(tables) or 1 for _, _, tables in self._pieces]
        self.size = sum(self.sizes) * sum(shard.bytes for shard in shards[0]) / max(seen, 1) or 1.0
        """Bytes in memory of all."""

    def take(self, number: int, folder: Folder, *, workers: int) -> Part:
        """The first pieces as datasets in a folder."""
        pieces = sorted(self._pieces[:number], key=lambda piece: piece[:2])
        part = Part(folder, sum(self.sizes[:number]) or 1.0)
        if self._apart and not (number == len(self.sizes) and self._all):
            n = max(math.ceil(part.size / self._largest), min(max(workers, LEAST_SHARDS), number))
            cuts = itertools.pairwise(len(pieces) * cut // n for cut in range(n + 1))
            groups = [pieces[start:end] for start, end in cuts]
        else:
            groups = [list(group) for _, group in itertools.groupby(pieces, lambda piece: piece[0])]
        for place, (uri, source) in enumerate(self._sources.items()):
            tables = [pa.concat_tables([tables[place] for _, _, tables in group]) for group in groups]
            part.datasets[uri] = write_part(source, tables, folder / source.folder.name, share=part.size / self.size)
        return part


def nbytes(tables: Iterable[pa.Table]) -> int:
    return sum(table.nbytes for table in tables)


def write_part(source: Dataset, tables: Sequence[pa.Table], to: Folder, *, share: float) -> Dataset:
    """A dataset of some shards, with its share of the side tables and of the counters."""
    shards = [_write(table, to, f"data/train-{number:05}.parquet") for number, table in enumerate(tables)]
    sides: dict[str, list[Shard]] = {side: [] for side in source.manifest.sides}
    for side, files in source.manifest.sides.items():
        left = math.ceil(source.manifest.side_rows(side) * share)
        for number in spread(len(files)):
            if left > 0:
                sides[side].append(_write(source.table(files[number]).slice(0, left), to, files[number].path))
                left -= sides[side][-1].rows
    stages = [
        each._replace(counters={name: round(n * share) for name, n in each.counters.items()})
        for each in source.manifest.stages
    ]
    part = Dataset(to, replace(source.manifest, splits={"train": shards}, sides=sides, stages=stages))
    to.write(MANIFEST, part.manifest.to_json().encode())
    return part


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


def given(found: Figures) -> float:
    """What a stage gives to those after it: by its ledger, or its rows."""
    return found["ledger", "written"] or rows_of(found)


def combines(found: Figures) -> bool:
    """Whether a stage makes fewer rows of what it reads, or may: those that it makes are not in its ledger."""
    return rows_of(found) != found["ledger", "written"]


def scaled(found: Figures, times: Mapping[str, float]) -> Figures:
    """Figures of which some are multiplied."""
    return Figures({key: number * times.get(key[0], 1.0) for key, number in found.items()})


def at(end: int, least: float, most: float) -> float:
    """The least, the most, or for the likeliest their geometric mean."""
    return least ** ((1 - end) / 2) * most ** ((1 + end) / 2)


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
    what they are pairs of, and ever faster, until all partners are found: least is in proportion, most rises on.
    """
    points = [(math.log(s), math.log(v)) for s, v in zip(sizes, values, strict=True) if v > 0 and s > 0]
    steps = [(x1 - x0, y1 - y0) for (x0, y0), (x1, y1) in itertools.pairwise(points) if x1 > x0 + 0.05]
    slopes = [min(max(y / x, 0.0), 2.0) for x, y in steps]
    low, high = 0.5, 1.0
    if slopes:
        last, before = slopes[-1], slopes[-2] if len(slopes) > 1 else slopes[-1]
        if last > 1:
            low, high = 1.0, min(last + max(last - before, 0.1), 2.0)
        else:
            low, high = max(last - 2 * max(before - last, 0.03 if len(slopes) > 1 else 0.1), min(last, 0.5)), last
    return values[-1] * max(whole / max(sizes[-1], 1), 1e-9) ** ((low + high + end * (high - low)) / 2)


def squared(values: Sequence[float], sizes: Sequence[float], whole: float, end: int) -> float:
    """The time of a stage that compares all with all: what it takes once, and a part that grows with the square.

    The part is at most all, and at least what the last two parts differ by; of one part, what makes time grow with the
    size alone.
    """
    value, size = values[-1], sizes[-1]
    least = value / size / (whole + size)
    if len(sizes) > 1 and size > sizes[-2]:
        least = min(max(value - values[-2], 0.0) / (size**2 - sizes[-2] ** 2), value / size**2)
    return value + at(end, max(least, value / size**2 / 1e3), value / size**2) * (whole**2 - size**2)


class Seen(NamedTuple):
    """A stage on parts of the input: their sizes, what it did on each, and the bytes of files that units may name."""

    stage: Stage
    sizes: list[float]
    done: list[Done]
    values: list[Figures]
    files: Mapping[str, int]

    @property
    def units(self) -> int:
        return max(len(self.done[-1].units), 1)


def by_units(seen: Seen, real: Stage, units: Sequence[list[Any]], whole: float, end: int) -> Figures:
    """The figures of a stage that reads its input unit by unit; none, if it does not. `units` of the whole, `real`."""
    last, found = seen.done[-1], Figures()
    raw = [seen.stage.size(seen.stage.Unit(*unit)) for unit in last.units]
    named = [float(sum(seen.files.get(name, 0) for name in files_named(unit))) for unit in last.units]
    all_raw = sum(real.size(real.Unit(*unit)) for unit in units)
    for sizes, target in ((raw, all_raw), (named, whole * sum(named) / seen.sizes[-1])):
        each = [(size, figures([done])) for size, done in zip(sizes, last.completions, strict=True) if size]
        own = [size for size, _ in each]
        for key in dict.fromkeys(key for _, one in each for key in one):
            values = [one[key] for _, one in each]
            number = linear(values, own, target, end)
            if key == TIME and end < 0:  # the first unit of a process loads things for all
                typical = statistics.median(value / size for value, size in zip(values, own, strict=True))
                number = min(number, sum(values) + typical * max(target - sum(own), 0))
            found[key] += number
    # A unit that is larger than in the sample has fewer distinct things for its size, and packs better.
    larger = max(whole / seen.sizes[-1] * seen.units / max(len(units), 1), 1.0)
    less = at(end, larger**-0.3, 1) if combines(seen.values[-1]) else 1.0
    return scaled(found, {"rows": less, "bytes": less * at(end, larger**-0.06, 1)})


def by_rows(seen: Seen, whole: float, rows: float, end: int) -> Figures:
    """The figures for so many rows; the bytes of one go on changing as they did between the last parts."""
    last, sizes = seen.values[-1], seen.sizes
    found = Figures({key: value * rows / rows_of(last) for key, value in last.items()})
    if len(sizes) > 1 and sizes[-1] > sizes[-2]:
        steps = min(max(math.log(whole / sizes[-1]) / math.log(sizes[-1] / sizes[-2]), 0), 2)
        for role in [role for what, role in last if what == "bytes" and seen.values[-2][what, role]]:
            before, after = (each["bytes", role] / max(each["rows", role], 1) for each in seen.values[-2:])
            change = min(max((after / before) ** steps, 0.6), 2.0)
            found["bytes", role] *= at(end, min(change, 1), max(change, 1))
    return found


def by_base(seen: Seen, units: int, base: Base, end: int) -> Figures:
    """The figures of a stage that brings together what the first of its dataset gave.

    What is bounded in each unit grows with the units.
    """
    least = units / seen.units if end >= 0 else 0.0
    return Figures(
        {
            key: max(power([each[key] for each in seen.values], base.parts, base.whole, end), least * value)
            for key, value in seen.values[-1].items()
        }
    )


class Base(NamedTuple):
    """What the first stage of a dataset gave to the others in each part, and is expected to give."""

    parts: list[float]
    whole: float


class World:
    """The datasets of a run as they are expected at one end of the range, each from those before.

    A folder holds what stages need of them to plan their units.
    """

    def __init__(self, folder: Folder, end: int, *, workers: int, busy: float) -> None:
        self._folder, self._end, self._workers, self._busy = folder, end, workers, busy
        self._folders: dict[str, Folder] = {}
        # Of each stage so far: its rows in the parts, those expected, and the share that limits had left by then.
        self._rows: list[tuple[list[float], float, float]] = []
        self._left = 1.0
        self.more_memory = 0.0

    def dataset(self, build: DatasetBuild, sampled: DatasetBuild, parts: Sequence[Part], whole: float) -> Forecast:
        """A dataset of which parts were made, of input of a size. `sampled`: the build as the parts have it."""
        uri, last = build.output.uri, parts[-1]
        folder = self._folders[uri] = self._folder / build.output.name
        link(last.datasets[uri].folder, folder)
        link(last.folder / WORK / folder.name, folder / WORK)
        here = moved(build, folder, self._folders)
        files = {file.path: file.bytes for each in last.datasets.values() for file in published(each.manifest)}
        lines: list[Line] = []
        base: Base | None = None
        for stage, real in zip(sampled.stages, here.stages, strict=True):
            done = [part.done[uri, stage.name] for part in parts]
            seen = Seen(stage, [part.size for part in parts], done, [figures(each.completions) for each in done], files)
            units = [[*unit] for unit in real.plan(here.work)]
            expected = self._expect(seen, real, here.work, units, whole, base)
            base = base or Base([given(each) for each in seen.values], given(expected))
            _write_stage(here.work, stage, units, done[-1].completions, expected)
            lines.append(self._line(seen, len(units), expected, base))
        return self._publish(build, folder, lines, last)

    def _expect(
        self, seen: Seen, real: Stage, work: Work, units: list[list[Any]], whole: float, base: Base | None
    ) -> Figures:
        """The figures of a stage."""
        last, rows, end = seen.values[-1], [rows_of(each) for each in seen.values], self._end
        same = next((each for each in reversed(self._rows) if rows[-1] and each[0] == rows), None)
        with_input = by_units(seen, real, units, whole, end)
        # What limits have left out by now may be missing here as well.
        if same:
            expected = by_rows(seen, whole, same[1] * at(end, self._left / same[2], 1), end)
        elif with_input:
            left = at(end, self._left, 1) if combines(last) else 1.0
            expected = scaled(with_input, {"rows": left, "bytes": left})
        else:
            expected = by_base(seen, len(units), base or Base([len(each.units) for each in seen.done], len(units)), end)
        if same or not with_input:  # time goes with the rows, or with the input
            more = rows_of(expected) / rows[-1] if rows[-1] else 1.0
            both = [last[TIME] * more, with_input[TIME] or last[TIME] * whole / seen.sizes[-1]]
            expected[TIME] = at(end, *sorted(both))
        if real.compares_all:
            expected[TIME] = squared([each[TIME] for each in seen.values], seen.sizes, whole, end)
        # Of moments a sample tells little, and machines are never equally busy.
        expected[TIME] *= (1.2 if last[TIME] > 1 else 1.5) ** end / (self._busy if end < 0 else 1)
        packs = (1.2 if same else 1.08) ** end if whole > 1.01 * seen.sizes[-1] else 1.0
        most = real.most_rows(work)
        left = 1.0 if most is None else min(most / max(rows_of(expected), 1), 1.0)
        self._left *= 1.0 if with_input else left
        self._rows.append((rows, rows_of(expected) * left, self._left))
        return Figures({key: number * left for key, number in scaled(expected, {"bytes": packs}).items()})

    def _line(self, seen: Seen, units: int, expected: Figures, base: Base) -> Line:
        n, seconds = max(units, 1), expected[TIME]
        at_once = min(n, self._workers)
        # Workers that take the next unit as soon as they are free end within one unit of each other.
        wall = seconds / at_once + seconds / n * (1 - 1 / at_once) * (1 + self._end) / 2
        # A unit holds its part of what it makes, or of what the first stage gave.
        here, there = max(rows_of(seen.values[-1]), base.parts[-1]), max(rows_of(expected), base.whole)
        self.more_memory = max(self.more_memory, (there / n - here / seen.units) * BYTES_A_ROW)
        return Line(seen.stage, units, expected, wall)

    def _publish(self, build: DatasetBuild, folder: Folder, lines: list[Line], last: Part) -> Forecast:
        """The dataset that stages wrote; its manifest, of files of the sample again and again."""
        uri, manifest = build.output.uri, last.datasets[build.output.uri].manifest
        done = [last.done[uri, line.stage.name] for line in lines]
        made = figures(each for one in done for each in one.completions)

        def kept(what: str, roles: Iterable[str], in_part: float) -> float:
            """What was written in some roles, less what took the place of other."""
            written = sum(sum_of(line.figures, what, roles) for line in lines)
            return written * in_part / max(sum_of(made, what, roles), 1)

        rows = kept("rows", SPLITS, manifest.rows)
        size = kept("bytes", [*SPLITS, *SIDES], sum(file.bytes for file in published(manifest)))
        shards = max(sum(self._shards(line, each) for line, each in zip(lines, done, strict=True)), 1)
        files = itertools.islice(itertools.cycle(manifest.shards or [Shard("none", 0, 0, "")]), shards)
        splits, sides = {"train": [file._replace(rows=round(rows / shards)) for file in files]}, dict(manifest.sides)
        for side in sides:
            more = sum(line.figures["rows", side] for line in lines) / max(manifest.side_rows(side), 1)
            sides[side] = sides[side] * max(round(more), 1)
        reports = [
            StageReport(each.stage.name, each.stage.version, each.units, *_ledger(each.stage, each.figures))
            for each in lines
        ]
        expected = replace(manifest, splits=splits, sides=sides, stages=reports)
        folder.write(MANIFEST, expected.to_json().encode())
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
    read = {uri for build in builds for stage in build.stages for uri in locations(stage).values()}
    sources = {each.uri: Dataset(each, read_manifest(each)) for each, _ in chain[:first] if each.uri in read}
    sampling = Sampling(executor)
    with tempfile.TemporaryDirectory(prefix="phrasemill-plan-") as temp, sampling:
        folder, measured, part_of_raw = Folder(temp), list[Part](), 1.0
        forecasts: list[list[Forecast]] = [[], [], []]
        worlds = [World(folder / f"world{end}", end, workers=workers, busy=busy) for end in (-1, 0, 1)]
        sampled = [
            replace(each, stages=tuple(stage.sample(folder / stage.name) for stage in each.stages)) for each in builds
        ]
        times = [1.0, 1.0, 1.0]
        if not sources:
            whole, uri = raw_size(builds[0]), builds[0].output.uri
            parts = raw_parts(builds[0], sampled[0], sampling, folder, workers)
            measured, part_of_raw = parts[-1:], parts[-1].size / whole
            sources = {uri: parts[-1].datasets[uri]}
            for world, found in zip(worlds, forecasts, strict=True):
                found.append(world.dataset(builds[0], sampled[0], parts, whole))
            made = max(sum(file.bytes for file in published(sources[uri].manifest)), 1)
            times = [found[0].kept / made for found in forecasts]
            builds, sampled = builds[1:], sampled[1:]
        if builds:
            ordered = {uri: each for uri, each in sources.items() if each.manifest.kind.order == "source"}
            pieces = Pieces(ordered or sources, sampled[0].stages[0])

            def run(number: int) -> Part:
                part = pieces.take(number, folder / f"part{number}", workers=workers)
                sampling.part = f"from {share(part_of_raw * part.size, pieces.size)} of the input"
                return run_part(sampled, sampling, part)

            left = SECONDS - (time.monotonic() - began)
            parts = grow(run, pieces.sizes, first=workers, seconds=left, stop=sampling.stop)
            sampling.part = ""
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
        start=tuple(idle * 1.3**end + (0 if sampling.inline else BEAM_SECONDS[end]) for end in (-1, 0, 1)),
        # Of two processes that do the same, one takes a fifth more.
        worker_memory=tuple(peak * (1 + 0.2 * end) + worlds[2].more_memory * (1 + end) / 2 for end in (-1, 0, 1)),
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
    long = "more if it takes longer to load the parser, and to parse one document a worker"
    print(f"measuring a sample of the input, at most {SECONDS + REST:.0f} s ({long})", file=sys.stderr)
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
                between(sorted(each.units for each in line), rounded),
                between(sorted(rows_of(each.figures) for each in line), rounded),
                between(sorted(sum_of(each.figures, "bytes") for each in line), size),
                _time(sorted(each.figures[TIME] for each in line)),
                _time(sorted(each.wall for each in line)),
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


def _time(ends: Sequence[float]) -> str:
    return "< 1 s" if ends[-1] < 1 else between(ends, roughly)


def _is(needed: Ends, there: float) -> str:
    return "is" if needed[0] > there else "may be"
