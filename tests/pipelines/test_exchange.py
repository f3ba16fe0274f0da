"""The exchange: for any rows and ranges, each row comes out once, those of a key together and in order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from toy import CountWords

from pipelines.engine.exchange import (
    merge_sorted,
    n_ranges,
    order_by_key,
    range_starts,
    read_range,
    read_sorted,
    write_parts,
    write_ranges,
)
from pipelines.engine.stage import File, Work
from pipelines.engine.task_writer import TaskWriter
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file

TOP = 2**64 - 1
ROWS = pa.schema([("key_hi", pa.uint64()), ("key_lo", pa.uint64()), ("value", pa.string()), ("number", pa.int64())])
Row = tuple[int, int, str, int]


def table(rows: Sequence[Row]) -> pa.Table:
    columns: list[Sequence[object]] = list(zip(*rows, strict=True)) or [()] * 4
    return pa.table([pa.array(column, type_) for column, type_ in zip(columns, ROWS.types, strict=True)], schema=ROWS)


def tuples(table: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in table.to_pylist()]


def writer(folder: Path) -> TaskWriter:
    return TaskWriter(Work(Folder(str(folder))), CountWords(texts=()), 0, "attempt")


def written(folder: Path, tables: Sequence[pa.Table], ranges: int) -> tuple[Folder, list[File]]:
    """One file of an exchange for each table."""
    write = writer(folder)
    for each in tables:
        write_ranges(write, "rows", each, ranges=ranges)
    return write.work.folder, write.files


HALF = st.one_of(st.sampled_from([0, 1, 2**63 - 1, 2**63, TOP - 1, TOP]), st.integers(0, TOP), st.integers(0, 3))
ROW = st.tuples(HALF, HALF, st.text(max_size=2), st.integers(-2, 2))
FILES = st.lists(st.lists(ROW, max_size=12), max_size=5)


@examples(20)
@given(files=FILES, ranges=st.integers(1, 9))
def test_rows_come_out_once_in_order_of_key_then_of_files(tmp_path_factory, files, ranges):
    folder, names = written(tmp_path_factory.mktemp("exchange"), [table(rows) for rows in files], ranges)
    found = [tuples(read_sorted(folder, names, index, ROWS)) for index in range(ranges)]
    everything = [row for rows in files for row in rows]
    assert [row for rows in found for row in rows] == sorted(everything, key=lambda row: row[:2])
    for index, rows in enumerate(found):
        assert all(row[0] * ranges >> 64 == index for row in rows)
        assert sorted(tuples(read_range(folder, names, index, ROWS))) == sorted(rows)
    for file, rows in zip(names, files, strict=True):
        with parquet_file(folder, file.path) as reader:
            assert reader.num_row_groups == ranges
            assert tuples(reader.read()) == sorted(rows, key=lambda row: row[:2])
        assert file.rows == len(rows)


def test_the_columns_asked_for_are_read(tmp_path):
    folder, names = written(tmp_path, [table([(1, 2, "x", 3)])], 2)
    keys = pa.schema([ROWS.field("key_hi"), ROWS.field("key_lo"), ROWS.field("number")])
    assert read_sorted(folder, names, 0, keys).to_pylist() == [{"key_hi": 1, "key_lo": 2, "number": 3}]
    assert read_sorted(folder, names, 1, keys) == keys.empty_table()
    assert read_sorted(folder, [], 0, keys) == keys.empty_table()


@given(st.integers(1, 4096))
def test_a_range_begins_exactly_where_the_one_before_ends(ranges):
    starts = [int(each) for each in range_starts(ranges)]
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    for index, start in enumerate(starts):
        assert start * ranges >> 64 == index
        if index:
            assert (start - 1) * ranges >> 64 == index - 1
    assert TOP * ranges >> 64 == ranges - 1


@pytest.mark.parametrize("ranges", [1, 2, 3, 7, 4096])
def test_the_keys_at_the_borders(tmp_path, ranges):
    starts = [int(each) for each in range_starts(ranges)]
    edges = sorted({0, TOP, *starts, *(start - 1 for start in starts if start)})
    folder, names = written(tmp_path, [table([(edge, 0, "", 0) for edge in reversed(edges)])], ranges)
    for index in {0, ranges // 2, ranges - 1}:
        found = [row[0] for row in tuples(read_sorted(folder, names, index, ROWS))]
        assert found == [edge for edge in edges if edge * ranges >> 64 == index]


@given(st.lists(st.tuples(HALF, HALF), max_size=30))
def test_the_order_of_keys_is_stable(keys):
    hi, lo = np.array(keys, dtype=np.uint64).reshape(-1, 2).T
    wanted = sorted(range(len(keys)), key=lambda place: keys[place])
    assert order_by_key(hi, lo).tolist() == wanted


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 5), ROW), max_size=30), st.integers(6, 8))
def test_parts(tmp_path_factory, rows, parts):
    write = writer(tmp_path_factory.mktemp("parts"))
    part = np.array([number for number, _ in rows], dtype=np.int64)
    write_parts(write, "rows", table([row for _, row in rows]), part, parts=parts)
    with parquet_file(write.work.folder, write.files[0].path) as reader:
        assert reader.num_row_groups == parts
        for index in range(parts):
            assert tuples(reader.read_row_group(index)) == [row for number, row in rows if number == index]


@pytest.mark.parametrize(
    ("rows", "ranges"), [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3), (40_960, 4096), (10**12, 4096)]
)
def test_the_number_of_ranges(rows, ranges):
    assert n_ranges(rows, rows_a_range=10) == ranges


ORDERS = (
    (("number", "descending"), ("value", "ascending")),
    (("value", "ascending"),),
    (("key_hi", "ascending"), ("number", "descending"), ("value", "descending")),
)


def in_order(rows: Sequence[Row], order: Sequence[tuple[str, str]]) -> list[Row]:
    """The rows sorted by columns; Python's strings sort as their UTF-8 bytes do."""
    found = list(rows)
    for name, direction in reversed(order):
        column = ROWS.get_field_index(name)
        found.sort(key=lambda row: row[column], reverse=direction == "descending")
    return found


@examples(40)
@given(
    files=st.lists(st.lists(ROW, max_size=15), max_size=4),
    order=st.sampled_from(ORDERS),
    group=st.integers(1, 4),
    wanted=st.integers(0, 60),
)
def test_a_merge_of_sorted_files(tmp_path_factory, files, order, group, wanted):
    write = writer(tmp_path_factory.mktemp("merge"))
    for rows in files:
        write.table("rows", table(in_order(rows, order)), row_group_rows=group)
    merged = merge_sorted(write.work.folder, write.files, sort_keys=order)
    found = [row for each in merged for row in tuples(each)]
    columns = [ROWS.get_field_index(name) for name, _ in order]
    everything = in_order([row for rows in files for row in rows], order)
    assert [[row[column] for column in columns] for row in found] == [
        [row[column] for column in columns] for row in everything
    ]
    assert sorted(found) == sorted(everything)
    # A caller that stops early gets the beginning of the same merge.
    early: list[Row] = []
    for each in merge_sorted(write.work.folder, write.files, sort_keys=order):
        early += tuples(each)
        if len(early) >= wanted:
            break
    assert early[:wanted] == found[:wanted]


def test_a_merge_holds_a_row_group_of_each_file(tmp_path):
    """It reads a block only when it is needed, and never yields more rows than are in memory."""
    write = writer(tmp_path)
    for number in range(3):
        rows = [(0, 0, "", -(3 * place + number)) for place in range(40)]
        write.table("rows", table(rows), row_group_rows=4)
    sizes = [each.num_rows for each in merge_sorted(write.work.folder, write.files, sort_keys=ORDERS[0])]
    assert sum(sizes) == 120
    assert max(sizes) <= 12


def test_a_merge_of_nothing(tmp_path):
    write = writer(tmp_path)
    write.table("rows", table([]))
    with write.file("rows", ROWS):
        pass  # a file without row groups
    assert [parquet_file(write.work.folder, file.path).num_row_groups for file in write.files] == [1, 0]
    assert [each.num_rows for each in merge_sorted(write.work.folder, write.files, sort_keys=ORDERS[0])] == []
    assert list(merge_sorted(write.work.folder, [], sort_keys=ORDERS[0])) == []
