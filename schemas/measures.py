"""Distributions that a report shows of rows, declared by each kind and drawn by `transforms/reports`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Values: TypeAlias = pa.Array | pa.ChunkedArray


class Measure(NamedTuple):
    """A distribution of `values` of the rows (their `columns`), counted in `unit`.

    `against`: "" draws numbers as a histogram and texts as the most frequent values; "rank" draws numbers in
    descending order against their rank; "row" draws them against the row's number, for datasets in order of rank.
    `of_all`: only if all rows are read, because ranks cannot be told from a sample.
    """

    title: str
    unit: str
    columns: tuple[str, ...]
    values: Callable[[pa.Table], Values]
    against: str = ""
    of_all: bool = False


def value(title: str, unit: str, column: str) -> Measure:
    """The values of a column: numbers, or texts with few distinct values."""
    return Measure(title, unit, (column,), lambda table: table.column(column))


def words(title: str, *columns: str) -> Measure:
    """The number of words of texts on one line, whose words are separated by single spaces."""

    def values(table: pa.Table) -> Values:
        blanks = [pc.count_substring(chunk, " ") for name in columns for chunk in table.column(name).chunks]
        return pc.add(pa.chunked_array(blanks, pa.int32()), 1)

    return Measure(title, "words", columns, values)


def characters(title: str, column: str) -> Measure:
    return Measure(title, "characters", (column,), lambda table: pc.utf8_length(table.column(column)))


def length(title: str, unit: str, column: str) -> Measure:
    """The lengths of a column of lists."""
    return Measure(title, unit, (column,), lambda table: pc.list_value_length(table.column(column)))


def item_value(title: str, unit: str, column: str, field: str) -> Measure:
    """The values of a field of the structs in a column of lists."""
    return Measure(title, unit, (column,), lambda table: _field(table, column, field))


def item_extent(title: str, unit: str, column: str, start: str, end: str) -> Measure:
    """The lengths of the spans in a column of lists."""
    return Measure(
        title, unit, (column,), lambda table: pc.subtract(_field(table, column, end), _field(table, column, start))
    )


def _field(table: pa.Table, column: str, field: str) -> Values:
    return pc.struct_field(pc.list_flatten(table.column(column)), field)


def share_before(title: str, start: str, text: str) -> Measure:
    """Where in a text something begins, in per cent of the text: character 3 of 12 is 25."""

    def values(table: pa.Table) -> Values:
        before = pc.multiply(pc.cast(table.column(start), pa.int64()), 100)
        return pc.divide(before, pc.max_element_wise(pc.utf8_length(table.column(text)), 1))

    return Measure(title, "% of the text", (start, text), values)


def frequency_by_row(title: str, unit: str, column: str) -> Measure:
    """Frequency against rank, for a dataset whose rows are in order of frequency."""
    return Measure(title, unit, (column,), lambda table: table.column(column), against="row")


def frequency_by_rank(title: str, unit: str, name: str, column: str) -> Measure:
    """The frequency (`column`) of each distinct `name`, against its rank."""

    def values(table: pa.Table) -> Values:
        return table.select([name, column]).group_by(name).aggregate([(column, "max")]).column(f"{column}_max")

    return Measure(title, unit, (name, column), values, against="rank", of_all=True)


def rows_by_rank(title: str, unit: str, *columns: str) -> Measure:
    """The number of rows for each distinct value of some columns, against its rank."""

    def values(table: pa.Table) -> Values:
        return table.group_by(list(columns)).aggregate([([], "count_all")]).column("count_all")

    return Measure(title, unit, columns, values, against="rank")


def likeness(title: str, unit: str, one: str, other: str, *, only: tuple[str, str] = ("", "")) -> Measure:
    """How two texts of a row differ. `only` is a column and a value: only of rows with this value."""
    column, wanted = only

    def values(table: pa.Table) -> Values:
        rows = table.filter(pc.equal(table.column(column), wanted)) if column else table
        first, second = rows.column(one), rows.column(other)
        folded = pc.equal(pc.utf8_lower(first), pc.utf8_lower(second))
        parts = zip(first.to_pylist(), second.to_pylist(), strict=True)
        within = pa.array([a in b or b in a for a, b in parts], pa.bool_())
        found = pc.if_else(within, "one is part of the other", "otherwise")
        found = pc.if_else(folded, "in case only", found)
        return pc.if_else(pc.equal(first, second), "not at all", found)

    return Measure(title, unit, (one, other, *([column] if column else [])), values)
