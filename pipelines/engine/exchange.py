"""The exchange: bring together what belongs together, in bounded memory, exactly, with the same bytes everywhere.

    map unit i      -> one file (or a few), rows sorted by key, one row group for each of R ranges of the key
    reduce range r  -> reads row group r of every file, merges, reduces

It is an external sort through Parquet files on storage, and needs no runner's shuffle. A key is 128 bits in two
columns, `key_hi` and `key_lo`; the range of a row is fixed by the highest bits of `key_hi`, so keys must be hashes
(evenly spread). R follows from the amount of data alone.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence

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
    """How many ranges keep a reduce at about `rows_a_range` rows."""
    return min(max(-(-rows // rows_a_range), 1), at_most)


def range_starts(ranges: int) -> U64:
    """The lowest `key_hi` of each range: equal parts of the 64-bit numbers."""
    return np.array([-(-(r << 64) // ranges) for r in range(ranges)], dtype=np.uint64)


def write_ranges(write: TaskWriter, role: str, table: pa.Table, *, ranges: int) -> None:
    """Write a map unit's rows in order of key, one row group a range. Rows of one key keep their order."""
    hi, lo = key_columns(table)
    order = order_by_key(hi, lo)
    if (order[1:] < order[:-1]).any():  # else it stands in order, and need not be in memory twice
        table = table.take(pa.array(order))
    cuts = [*np.searchsorted(hi[order], range_starts(ranges), side="left").tolist(), len(hi)]
    _write_groups(write, role, table, cuts)


def write_parts(write: TaskWriter, role: str, table: pa.Table, part: npt.NDArray[np.integer], *, parts: int) -> None:
    """Write rows as one file with a row group for each part number, for a reduce by a number instead of a key."""
    if len(part) and (part.min() < 0 or part.max() >= parts):
        raise ValueError(f"{role}: parts from {part.min()} to {part.max()}, of {parts}")
    order = np.argsort(part, kind="stable")
    cuts = np.searchsorted(part[order], np.arange(parts + 1), side="left").tolist()
    _write_groups(write, role, table.take(pa.array(order)), cuts)


def _write_groups(write: TaskWriter, role: str, table: pa.Table, cuts: list[int]) -> None:
    with write.file(role, table.schema) as write_group:
        for start, end in itertools.pairwise(cuts):
            write_group(table.slice(start, end - start))


def key_columns(table: pa.Table) -> tuple[U64, U64]:
    return tuple(table.column(name).to_numpy() for name in KEY)


def read_range(folder: Folder, files: Sequence[File], index: int, schema: pa.Schema) -> pa.Table:
    """Row group `index` of every file, one behind the other in the order of the files; the columns of `schema`."""
    tables = [schema.empty_table()]
    for file in files:
        with parquet_file(folder, file.path) as reader:
            tables.append(reader.read_row_group(index, columns=schema.names, use_threads=False))
    return pa.concat_tables([each.cast(schema) for each in tables]).combine_chunks()


def read_sorted(folder: Folder, files: Sequence[File], index: int, schema: pa.Schema) -> pa.Table:
    """Range `index` of an exchange, merged: sorted by key, rows of one key in the order of the files."""
    table = read_range(folder, files, index, schema)
    order = order_by_key(*key_columns(table))
    return table.take(pa.array(order))


def merge_sorted(folder: Folder, files: Sequence[File], *, sort_keys: Sequence[tuple[str, str]]) -> Iterator[pa.Table]:
    """Merge files that are each sorted by `sort_keys` (pyarrow's form), in memory of one row group a file.

    Yields tables whose concatenation is the merge; a caller that stops early reads no further.
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
        # All rows up to the lowest of the blocks' last rows are in the blocks at hand.
        last, number = heapq.heappop(waiting)
        taken = []
        for each in sorted(blocks):
            block = blocks[each]
            end = block.num_rows if each == number else _upper_bound(block, key, last)
            taken.append(block.slice(0, end))
            blocks[each] = block.slice(end)
        merged = pa.concat_tables(taken).combine_chunks()
        yield merged.take(pc.sort_indices(merged, sort_keys=list(sort_keys)))
        following = next(readers[number], None)
        if following is None:
            del blocks[number]
        else:
            blocks[number] = following
            heapq.heappush(waiting, (key(following, following.num_rows - 1), number))


def _row_groups(folder: Folder, file: File) -> Iterator[pa.Table]:
    """The row groups one by one; the file is not kept open in between, for there may be thousands of them."""
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
    """A value that compares the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return other.value < self.value  # type: ignore[operator]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.value == other.value


def _sort_value(sort_keys: Sequence[tuple[str, str]]) -> Callable[[pa.Table, int], tuple[object, ...]]:
    """A row's place in the order, as a Python value. Strings compare by UTF-8 bytes, as pyarrow sorts them."""

    def value(table: pa.Table, row: int) -> tuple[object, ...]:
        parts: list[object] = []
        for name, direction in sort_keys:
            part = table.column(name)[row].as_py()
            part = part.encode() if isinstance(part, str) else part
            parts.append(_Descending(part) if direction == "descending" else part)
        return tuple(parts)

    return value


def _upper_bound(table: pa.Table, key: Callable[[pa.Table, int], tuple[object, ...]], bound: object) -> int:
    """How many rows of a sorted table are not above the bound."""
    low, high = 0, table.num_rows
    while low < high:
        middle = (low + high) // 2
        if bound < key(table, middle):  # type: ignore[operator]
            high = middle
        else:
            low = middle + 1
    return low
