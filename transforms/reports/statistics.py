"""A dataset in numbers: distributions of the values of its rows, and sample rows.

The work is bounded for a dataset of any size: at most `SHARDS` shards are opened, evenly spread. Of their row groups
some are read, evenly spread too, whose needed columns have about `BUDGET` bytes. The choice depends only on the
dataset.
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
    """The number of values (`times`) from `start` to `end`, both inclusive; `end` is None if the bin is open."""

    start: int
    end: int | None
    times: int

    @property
    def label(self) -> str:
        if self.end is None:
            return f"≥ {self.start:,}"
        return f"{self.start:,}" if self.start == self.end else f"{self.start:,}–{self.end:,}"


class Histogram(NamedTuple):
    """A histogram of whole numbers; `unit` is what they count."""

    title: str
    unit: str
    bins: list[Bin]
    least: int
    median: float
    mean: float
    p95: float
    most: int


class Categories(NamedTuple):
    """The most frequent values with their counts, the count of all others, and the number of distinct values."""

    title: str
    unit: str
    values: list[tuple[str, int]]
    others: int
    distinct: int


class Ranks(NamedTuple):
    """Frequency against rank: (rank, frequency) for some ranks, evenly spread on a logarithmic scale."""

    title: str
    unit: str
    points: list[tuple[int, int]]


Distribution = Histogram | Categories | Ranks


class Rows(NamedTuple):
    """Rows that were read: some columns, the number of each row in the dataset, and the dataset's number of rows."""

    table: pa.Table
    positions: np.ndarray
    of: int

    @property
    def are_all(self) -> bool:
        return len(self.positions) == self.of


class Survey(NamedTuple):
    """Distributions of `rows` of the `of` rows of a dataset, and sample rows."""

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
    """A row group: its number in its file, and the number of its first row in the dataset."""

    reader: pq.ParquetFile
    number: int
    first: int
    rows: int
    bytes: int


def _groups(folder: Folder, manifest: Manifest, columns: Sequence[str], budget: int, opened: ExitStack) -> list[_Group]:
    """The row groups to read: of some shards, evenly spread, those that fit into the budget, evenly spread."""
    shards, first = [], 0
    for shard in manifest.shards:
        if shard.rows:
            shards.append((shard.path, first))
        first += shard.rows
    groups = []
    for place in spread(len(shards), SHARDS):
        path, first = shards[place]
        reader = opened.enter_context(parquet_file(folder, path, manifest.schema))
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
    """At most `number` indices of a sequence of this length, evenly spread: the middles of equal parts.

    >>> spread(10, 3)
    [1, 5, 8]
    """
    if number >= length:
        return list(range(length))
    return [(2 * place + 1) * length // (2 * number) for place in range(number)]


def _first_rows(groups: Sequence[_Group], number: int) -> list[dict[str, Any]]:
    """The first rows of some row groups: a random sample if the dataset is shuffled."""
    chosen = spread(len(groups), number)
    found: list[dict[str, Any]] = []
    for done, place in enumerate(chosen):
        rows = -(-(number - len(found)) // (len(chosen) - done))
        reader = groups[place].reader
        batch = next(reader.iter_batches(batch_size=rows, row_groups=[groups[place].number]), None)
        found += batch.to_pylist() if batch else []
    return found


def _by_rank(groups: Sequence[_Group], number: int) -> list[dict[str, Any]]:
    """Rows at growing distances, for a dataset in order of frequency: frequent ones and rare ones.

    3 of 100 rows are those with the ranks 1, 10 and 100: 100 to the power of 0, 1/2 and 1.
    """
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
    """The distribution that a measure describes; None if there are no values, or too few rows for it."""
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

    If the range is narrow, each bin is one number. If the 99th percentile is far above the median, bins widen in steps
    of 1, 2 and 5. Otherwise they have equal widths, and the last one is open, from about the 99th percentile on.
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
    # The last bin is open only if there are numbers above its width.
    step = edges[-1] - edges[-2] if last else 1
    end = edges[-1] + step - 1
    bins = [Bin(edges[place], edges[place + 1] - 1, int(counts[place])) for place in range(last)]
    if bins and bins[0].start == 0 < least:
        bins[0] = bins[0]._replace(start=1)  # no document and no phrase has a length of 0
    bins.append(Bin(edges[-1], end if most <= end else None, int(counts[-1])))
    return Histogram(title, unit, bins, least, median, float(numbers.mean()), p95, most)


def _edges(least: int, most: int, median: float, p99: float) -> list[int]:
    """The first number of each bin: a narrow range, one far above its median, any other.

    >>> _edges(least=3, most=6, median=4, p99=6)
    [3, 4, 5, 6]
    >>> _edges(least=3, most=900, median=4, p99=300)
    [2, 5, 10, 20, 50, 100, 200, 500]
    >>> _edges(least=7, most=120, median=60, p99=100)[:4]  # 5 is the first width for at most 24 bins up to 100
    [5, 10, 15, 20]
    """
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
    """The most frequent values, ties by value; None if there are none."""
    if not len(values):
        return None
    counts = [(str(each["values"]), int(each["counts"])) for each in pc.value_counts(_whole(values)).to_pylist()]
    counts.sort(key=lambda each: (-each[1], each[0]))
    shown = counts if len(counts) <= _CATEGORIES + 1 else counts[:_CATEGORIES]
    return Categories(title, unit, shown, sum(count for _, count in counts[len(shown) :]), len(counts))


def ranks(title: str, unit: str, rank: np.ndarray, frequency: np.ndarray) -> Ranks | None:
    """Points of a curve, evenly spread by the logarithm of the rank; None if there are fewer than two.

    `rank` is ascending and begins with 1 or more. Of 4 points from rank 1 to 1,000, the ranks are 1, 10, 100 and 1,000.
    """
    if len(rank) < 2:
        return None
    wanted = np.geomspace(rank[0], rank[-1], num=_POINTS)
    places = np.unique(np.searchsorted(rank, wanted).clip(max=len(rank) - 1))
    return Ranks(title, unit, [(int(rank[place]), int(frequency[place])) for place in places])


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
