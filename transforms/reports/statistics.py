"""A dataset in numbers: distributions of what its rows hold, and sample rows.

However large a dataset is, the work is bounded: at most `SHARDS` shards are opened, evenly spread, and of their row
groups so many are read, evenly spread too, that the columns needed take about `BUDGET` bytes. The choice depends on
nothing but the dataset.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.manifest import Manifest
from schemas.measures import Measure
from schemas.shown import Shown
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file

SHARDS = 32
BUDGET = 64 << 20
_CATEGORIES = 12
_POINTS = 240
_NARROW = 40
_NICE = [digit * 10**power for power in range(19) for digit in (1, 2, 5)]


class Bin(NamedTuple):
    """Values from `start` to `end`, both inclusive; `end` is None where the bin is open."""

    start: int
    end: int | None
    times: int

    @property
    def label(self) -> str:
        if self.end is None:
            return f"≥ {self.start:,}"
        return f"{self.start:,}" if self.start == self.end else f"{self.start:,}–{self.end:,}"


class Histogram(NamedTuple):
    """How often which numbers occur; `values` are counted in `unit`."""

    title: str
    unit: str
    bins: list[Bin]
    least: int
    median: float
    mean: float
    p95: float
    most: int


class Categories(NamedTuple):
    """The most frequent values with their counts, the count of all others, and how many distinct ones there are."""

    title: str
    unit: str
    values: list[tuple[str, int]]
    others: int
    distinct: int


class Ranks(NamedTuple):
    """Frequency against rank: (rank, frequency) of some ranks, evenly spread on a logarithmic scale."""

    title: str
    unit: str
    points: list[tuple[int, int]]


Distribution = Histogram | Categories | Ranks


class Rows(NamedTuple):
    """Rows that were read: the columns asked for, where in the dataset each row stands, and the rows of the dataset."""

    table: pa.Table
    positions: np.ndarray
    of: int

    @property
    def are_all(self) -> bool:
        return len(self.positions) == self.of


class Survey(NamedTuple):
    """What was found of a dataset: distributions from `rows` of `of` rows, and sample rows."""

    rows: int
    of: int
    distributions: list[Distribution]
    samples: list[Shown]


def survey(folder: Folder, manifest: Manifest, *, samples: int = 10, budget: int = BUDGET) -> Survey:
    """Measure a dataset as its kind says, and take sample rows."""
    kind = manifest.kind
    measures = kind.measures
    columns = sorted({name for each in measures for name in each.columns})
    with ExitStack() as opened:
        groups = _groups(folder, manifest, columns, budget, opened)
        tables = [each.reader.read_row_group(each.number, columns=columns) for each in groups]
        table = pa.concat_tables(tables) if tables else manifest.schema.empty_table().select(columns)
        positions = [np.arange(each.first, each.first + each.rows) for each in groups]
        rows = Rows(table, np.concatenate(positions) if positions else np.arange(0), manifest.rows)
        picked = _by_rank(groups, samples) if kind.order == "rank" else _first_rows(groups, samples)
        distributions = [found for each in measures if (found := distribution(each, rows)) is not None]
        samples_ = [kind.show(row, manifest.options) for row in picked]
        return Survey(len(rows.positions), manifest.rows, distributions, samples_)


class _Group(NamedTuple):
    """A row group: its place in its file, and the place of its first row in the dataset."""

    reader: pq.ParquetFile
    number: int
    first: int
    rows: int
    bytes: int


def _groups(folder: Folder, manifest: Manifest, columns: Sequence[str], budget: int, opened: ExitStack) -> list[_Group]:
    """The row groups to read: of some shards, evenly spread, as many as fit into the budget, evenly spread."""
    shards, first = [], 0
    for shard in manifest.shards:
        if shard.rows:
            shards.append((shard.path, first))
        first += shard.rows
    groups = []
    for place in spread(len(shards), SHARDS):
        path, first = shards[place]
        reader = opened.enter_context(parquet_file(folder, path))
        for number in range(reader.num_row_groups):
            group = reader.metadata.row_group(number)
            groups.append(_Group(reader, number, first, group.num_rows, _bytes(group, columns)))
            first += group.num_rows
    total = sum(each.bytes for each in groups)
    most = len(groups) if total <= budget else max(1, len(groups) * budget // total)
    return [groups[place] for place in spread(len(groups), most)]


def _bytes(group: Any, columns: Sequence[str]) -> int:
    found = (group.column(place) for place in range(group.num_columns))
    return sum(each.total_uncompressed_size for each in found if each.path_in_schema.split(".")[0] in columns)


def spread(length: int, number: int) -> list[int]:
    """At most so many indices of a sequence of that length, evenly spread: the middles of equal parts."""
    if number >= length:
        return list(range(length))
    return [(2 * place + 1) * length // (2 * number) for place in range(number)]


def _first_rows(groups: Sequence[_Group], number: int) -> list[dict[str, Any]]:
    """The first rows of some row groups: of a shuffled dataset a random sample."""
    chosen = spread(len(groups), number)
    found: list[dict[str, Any]] = []
    for done, place in enumerate(chosen):
        rows = -(-(number - len(found)) // (len(chosen) - done))
        reader = groups[place].reader
        batch = next(reader.iter_batches(batch_size=rows, row_groups=[groups[place].number]), None)
        found += batch.to_pylist() if batch else []
    return found


def _by_rank(groups: Sequence[_Group], number: int) -> list[dict[str, Any]]:
    """Rows ever further apart: of a dataset in order of frequency some that are frequent and some that are rare."""
    starts = np.cumsum([0, *(each.rows for each in groups)])
    total = int(starts[-1])
    if not total:
        return []
    wanted = sorted({min(round(total ** (step / (number - 1))), total) - 1 for step in range(number)})
    found = []
    for start, group in zip(starts, groups, strict=False):
        inside = [place - start for place in wanted if start <= place < start + group.rows]
        if inside:
            found += group.reader.read_row_group(group.number).take(pa.array(inside)).to_pylist()
    return found


def distribution(measure: Measure, rows: Rows) -> Distribution | None:
    """What a measure finds of rows; None where nothing can be said."""
    if measure.of_all and not rows.are_all:
        return None
    values = measure.values(rows.table)
    title, unit = measure.title, measure.unit
    if measure.against == "row":
        return ranks(title, unit, rows.positions + 1, values.to_numpy())
    if measure.against == "rank":
        return ranks(title, unit, np.arange(1, len(values) + 1), np.sort(values.to_numpy())[::-1])
    return histogram(title, unit, values) if pa.types.is_integer(values.type) else categories(title, unit, values)


def histogram(title: str, unit: str, values: pa.Array | pa.ChunkedArray) -> Histogram | None:
    """The histogram of whole numbers of 0 or more.

    Bins hold one number each where the numbers lie close together; they widen in steps of 1, 2 and 5 where 1 of 100
    numbers is far from the median; else they are of equal width, the last one open and begun where 1 of 100 lies.
    """
    numbers = np.asarray(values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy())
    if not len(numbers):
        return None
    numbers = numbers.astype(np.int64)
    least, most = int(numbers.min()), int(numbers.max())
    median, p95, p99 = (float(each) for each in np.percentile(numbers, [50, 95, 99]))
    edges = _edges(least, most, median, p99)
    counts, _ = np.histogram(numbers, bins=[*edges, np.inf])
    last = len(edges) - 1
    # The width of the last bin is known, and it is open only if something lies above.
    step = edges[-1] - edges[-2] if last else 1
    end = edges[-1] + step - 1
    bins = [Bin(edges[place], edges[place + 1] - 1, int(counts[place])) for place in range(last)]
    if bins and bins[0].start == 0 < least:
        bins[0] = bins[0]._replace(start=1)  # no document and no phrase has a length of 0
    bins.append(Bin(edges[-1], end if most <= end else None, int(counts[-1])))
    return Histogram(title, unit, bins, least, median, float(numbers.mean()), p95, most)


def _edges(least: int, most: int, median: float, p99: float) -> list[int]:
    """The first number of each bin."""
    if most - least < _NARROW:
        return list(range(least, most + 1))
    if p99 > 20 * max(median, 1):
        steps = [0, *_NICE]
        first = max(place for place, step in enumerate(steps) if step <= least)
        return [step for step in steps[first:] if step <= most]
    width = next(step for step in _NICE if (p99 - least) / step <= 24)
    start = least // width * width
    return list(range(start, int(max(p99, start)) + 1, width))


def categories(title: str, unit: str, values: pa.Array | pa.ChunkedArray) -> Categories | None:
    """The most frequent values, ties by the value."""
    if not len(values):
        return None
    counts = [(str(each["values"]), int(each["counts"])) for each in pc.value_counts(_whole(values)).to_pylist()]
    counts.sort(key=lambda each: (-each[1], each[0]))
    shown = counts if len(counts) <= _CATEGORIES + 1 else counts[:_CATEGORIES]
    return Categories(title, unit, shown, sum(count for _, count in counts[len(shown) :]), len(counts))


def ranks(title: str, unit: str, rank: np.ndarray, frequency: np.ndarray) -> Ranks | None:
    """Points of a curve, evenly spread by the logarithm of the rank; `rank` is ascending and begins with 1 or later."""
    if len(rank) < 2:
        return None
    wanted = np.geomspace(rank[0], rank[-1], num=_POINTS)
    places = np.unique(np.searchsorted(rank, wanted).clip(max=len(rank) - 1))
    return Ranks(title, unit, [(int(rank[place]), int(frequency[place])) for place in places])


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
