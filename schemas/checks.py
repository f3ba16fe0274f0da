"""What the checks of all record types share: how they say what is broken, and how they find what stands twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from schemas.dataset import Dataset, RowGroup
from schemas.manifest import Shard

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


class Broken(NamedTuple):
    """Rows of a row group, numbered in it, that break a rule; `show` gives what a row has and what it should."""

    rule: str
    rows: I64
    show: Callable[[int], str]


class Violation(NamedTuple):
    """A rule broken by rows that are known only when all were read; rows are numbered in the shard."""

    shard: Shard
    rule: str
    rows: I64
    detail: str


class Checks(Protocol):
    """The checks of one record type."""

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        """Check the next row group; a split's row groups come in order, one split behind the other."""
        ...

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        """Check what is known only when all rows were seen."""
        ...

    def totals(self) -> Iterator[str]:
        """What the rows, added up, say otherwise than the manifest."""
        ...


def where(mask: Any) -> I64:
    """The rows at which a mask (NumPy or Arrow, null as false) is true."""
    if isinstance(mask, pa.Array | pa.ChunkedArray):
        mask = pc.fill_null(mask, False)
    return np.flatnonzero(np.asarray(mask, dtype=bool))


def quoted(value: object, most: int = 60) -> str:
    """A value as it stands in a finding: quoted and cut."""
    if not isinstance(value, str):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return json.dumps(value if len(value) <= most else value[: most - 3] + "...", ensure_ascii=False)


def hashes(strings: pa.Array | pa.ChunkedArray) -> U64:
    """[n] 64 bits of xxh3 of each string."""
    values = strings.cast(pa.binary()).to_pylist()
    return np.fromiter(map(xxhash.xxh3_64_intdigest, values), np.uint64, len(values))


class NoChecks:
    """For records without rules of their own."""

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        yield from ()

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        yield from ()

    def totals(self) -> Iterator[str]:
        yield from ()


class Apart:
    """Finds values that stand in two rows, shards or splits (`by`), in 8 bytes a value.

    The values are those of a column; or those that `of` makes of columns, one array or more with a value for each row.
    A null is no value.
    """

    def __init__(
        self, *columns: str, by: str, of: Callable[[pa.Table], Sequence[pa.Array | pa.ChunkedArray]] | None = None
    ) -> None:
        self._columns, self._by = columns, by
        self._of = of or (lambda table: [table.column(columns[0])])
        self._seen: dict[str, list[U64]] = {}

    def add(self, group: RowGroup, split: str) -> None:
        key = {"row": "", "shard": group.shard.path, "split": split}[self._by]
        for values in self._of(group.table):
            found = values.drop_null()
            self._seen.setdefault(key, []).append(hashes(found if self._by == "row" else pc.unique(found)))

    def end(self, dataset: Dataset, rule: str) -> Iterator[Violation]:
        """A violation for each shard that repeats a value. Equal hashes are looked up: it is never a mere collision."""
        parts = [np.concatenate(each) for each in self._seen.values()]
        if self._by != "row":
            parts = [np.unique(part) for part in parts]
        seen = np.sort(np.concatenate([np.empty(0, np.uint64), *parts]))
        twice = np.unique(seen[1:][seen[1:] == seen[:-1]])
        if not len(twice):
            return
        first: dict[str, tuple[str, str]] = {}
        for split, shards in dataset.manifest.splits.items():
            for shard in shards:
                found: dict[int, str] = {}
                for group in dataset.row_groups(shard, columns=self._columns):
                    for row, value in self._among(group.table, twice):
                        place = f"row {group.first_row + row:,} of {shard.path}"
                        key = {"row": place, "shard": shard.path, "split": split}[self._by]
                        if first.setdefault(value, (key, place))[0] != key:
                            name = quoted(value.replace("\0", " "))
                            found.setdefault(group.first_row + row, f"{name} stands in {first[value][1]}")
                if found:
                    yield Violation(shard, rule, np.array([*found]), next(iter(found.values())))

    def _among(self, table: pa.Table, sought: U64) -> list[tuple[int, str]]:
        """The rows whose values have one of these hashes, in order, with the value."""
        found: list[tuple[int, str]] = []
        for values in self._of(table):
            rows = where(pc.and_(pc.is_valid(values), pa.array(np.isin(hashes(pc.fill_null(values, "")), sought))))
            found += zip(rows.tolist(), values.take(pa.array(rows)).to_pylist(), strict=True)
        return sorted(found)


def nested(lists: pa.ListArray, names: Iterable[str]) -> tuple[I64, npt.NDArray[np.bool_], list[Any]]:
    """A column of lists of structs, flat: the row of each item, whether it is its row's first, the named fields.

    Integers come as int64, strings as an Arrow array.
    """
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    owner = np.repeat(np.arange(len(lists)), lengths)
    first = np.ones(len(owner), dtype=bool)
    first[1:] = owner[1:] != owner[:-1]
    items = lists.flatten()
    fields = [items.field(name) for name in names]
    return (
        owner,
        first,
        [each.to_numpy().astype(np.int64) if pa.types.is_integer(each.type) else each for each in fields],
    )


def broken_items(rule: str, wrong: npt.NDArray[np.bool_], owner: I64, show: Callable[[int], str]) -> Broken:
    """A rule on the items of lists, as one on rows: `show` takes an item, the first wrong one of the row is shown."""
    items = np.flatnonzero(wrong)
    rows, place = np.unique(owner[items], return_index=True)
    first = dict(zip(rows.tolist(), items[place].tolist(), strict=True))
    return Broken(rule, rows, lambda row: show(first[row]))
