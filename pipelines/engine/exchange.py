"""The exchange: brings the rows of a key together, exactly, in bounded memory, with the same bytes everywhere.

    map unit i      -> one file (or a few), rows sorted by key, one row group for each of R ranges of the key
    reduce range r  -> reads row group r of every file, merges, reduces

It is an external sort through Parquet files on storage and needs no runner's shuffle. A key has 128 bits in two
columns, `key_hi` and `key_lo`. The highest bits of `key_hi` decide the range of a row, so keys must be hashes: evenly
spread. R depends on the amount of data alone.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.stage import File
from pipelines.engine.task_writer import TaskWriter
from schemas.keys import order_by_key
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file

U64 = npt.NDArray[np.uint64]

KEY = ("key_hi", "key_lo")


def n_ranges(rows: int, *, rows_a_range: int, at_most: int = 4096) -> int:
    """The number of ranges for which a reduce reads about `rows_a_range` rows.

    >>> [n_ranges(rows, rows_a_range=100) for rows in (0, 250, 1_000_000)]
    [1, 3, 4096]
    """
    return min(max(-(-rows // rows_a_range), 1), at_most)


def range_starts(ranges: int) -> U64:
    """[ranges] the lowest `key_hi` of each range: equal parts of the 64-bit numbers.

    >>> range_starts(4) >> np.uint64(60)
    array([ 0,  4,  8, 12], dtype=uint64)
    """
    return np.array([-(-(r << 64) // ranges) for r in range(ranges)], dtype=np.uint64)


def write_ranges(write: TaskWriter, role: str, table: pa.Table, *, ranges: int) -> None:
    """Write a map unit's rows in order of key, one row group for each range. Rows of one key keep their order.

    Keys 9 2 7 2 (times 2^60) in 4 ranges: in order, rows 1 3 2 0 have the keys 2 2 7 9. The ranges begin at 0 4 8 12,
    so the row groups are cut at 0 2 3 4 4: keys [2 2], [7], [9] and [].
    """
    hi, lo = key_columns(table)
    order = order_by_key(hi, lo)
    if (order[1:] < order[:-1]).any():  # a table that is in order already is not copied
        table = table.take(pa.array(order))
    cuts = [*np.searchsorted(hi[order], range_starts(ranges), side="left").tolist(), len(hi)]
    _write_groups(write, role, table, cuts)


def write_parts(write: TaskWriter, role: str, table: pa.Table, part: npt.NDArray[np.integer], *, parts: int) -> None:
    """Write rows as one file with a row group for each of `parts` numbers, for a reduce by number instead of by key.

    Rows of the parts 2 0 2, of 3: in order they are rows 1 0 2, cut at 0 1 1 3. The row groups are [1], [] and [0 2].
    """
    if len(part) and (part.min() < 0 or part.max() >= parts):
        raise ValueError(f"{role}: parts from {part.min()} to {part.max()}, of {parts}")
    order = np.argsort(part, kind="stable")
    cuts = np.searchsorted(part[order], np.arange(parts + 1), side="left").tolist()
    _write_groups(write, role, table.take(pa.array(order)), cuts)


def _write_groups(write: TaskWriter, role: str, table: pa.Table, cuts: list[int]) -> None:
    with write.file(role, table.schema) as write_group:
        for start, end in write.each(list(itertools.pairwise(cuts))):
            write_group(table.slice(start, end - start))


def key_columns(table: pa.Table) -> tuple[U64, U64]:
    return tuple(table.column(name).to_numpy() for name in KEY)


def read_range(folder: Folder, files: Iterable[File], index: int, schema: pa.Schema) -> pa.Table:
    """Row group `index` of every file, in the order of the files; the columns of `schema`.

    Of two files with the row groups [a b] [c] and [d] [e f], index 1 gives c e f.
    """
    tables = [schema.empty_table()]
    for file in files:
        with parquet_file(folder, file.path) as reader:
            tables.append(reader.read_row_group(index, columns=schema.names, use_threads=False))
    return pa.concat_tables([each.cast(schema) for each in tables]).combine_chunks()


def read_sorted(folder: Folder, files: Iterable[File], index: int, schema: pa.Schema) -> pa.Table:
    """Range `index` of an exchange: sorted by key, rows of one key in the order of the files.

    Keys 2 7 of the first file and 2 5 of the second give 2 2 5 7, the 2 of the first file first.
    """
    table = read_range(folder, files, index, schema)
    order = order_by_key(*key_columns(table))
    return table.take(pa.array(order))


def merge_sorted(folder: Folder, files: Sequence[File], *, sort_keys: Sequence[tuple[str, str]]) -> Iterator[pa.Table]:
    """Merge files that are each sorted by `sort_keys` (pyarrow's form), with one row group of each file in memory.

    Yields tables whose concatenation is the merge. Files are read as far as the caller consumes the tables.

    Each step yields all rows up to the lowest last row of the blocks in memory, and then reads the next block of the
    file that it is from. Files with the row groups [1 4] [9] and [2 3] [5 6]: the last rows are 4 and 3, so the first
    table is 1 2 3. What is left of the first block is [4], the next of the second file is [5 6]: the second table is 4.
    Then follow 5 6 and 9.
    """
    key = _sort_value(sort_keys)
    readers = [_row_groups(folder, file) for file in files]
    waiting: list[tuple[object, int]] = []
    blocks: dict[int, pa.Table] = {}
    for number, groups in enumerate(readers):
        block = next(groups, None)
        if block is not None:
            blocks[number] = block
            heapq.heappush(waiting, (key(block, block.num_rows - 1), number))
    while waiting:
        last, number = heapq.heappop(waiting)
        taken = []
        for each in sorted(blocks):
            block = blocks[each]
            end = block.num_rows if each == number else _upper_bound(block, key, last)
            taken.append(block.slice(0, end))
            blocks[each] = block.slice(end)
        merged = pa.concat_tables(taken).combine_chunks()
        yield merged.take(pc.sort_indices(merged, sort_keys=list(sort_keys)))
        new = next(readers[number], None)
        if new is None:
            del blocks[number]
        else:
            blocks[number] = new
            heapq.heappush(waiting, (key(new, new.num_rows - 1), number))


def _row_groups(folder: Folder, file: File) -> Iterator[pa.Table]:
    """The row groups of a file that have rows. The file is closed in between: there may be thousands of files."""
    index, end = 0, 1
    while index < end:
        with parquet_file(folder, file.path) as reader:
            end = reader.num_row_groups
            if not end:
                return
            table = reader.read_row_group(index, use_threads=False)
        index += 1
        if table.num_rows:
            yield table


class _Descending:
    """A value in descending order."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return other.value < self.value  # type: ignore[operator]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.value == other.value


def _sort_value(sort_keys: Sequence[tuple[str, str]]) -> Callable[[pa.Table, int], tuple[object, ...]]:
    """A function from a table and a row to a Python value that compares as pyarrow sorts: strings by UTF-8 bytes."""

    def value(table: pa.Table, row: int) -> tuple[object, ...]:
        parts: list[object] = []
        for name, direction in sort_keys:
            part = table.column(name)[row].as_py()
            part = part.encode() if isinstance(part, str) else part
            parts.append(_Descending(part) if direction == "descending" else part)
        return tuple(parts)

    return value


def _upper_bound(table: pa.Table, key: Callable[[pa.Table, int], tuple[object, ...]], bound: object) -> int:
    """The number of rows of a sorted table that are at most `bound`: rows 2 3 5 and bound 3 give 2."""
    low, high = 0, table.num_rows
    while low < high:
        middle = (low + high) // 2
        if bound < key(table, middle):  # type: ignore[operator]
            high = middle
        else:
            low = middle + 1
    return low
