"""Checks of which kinds are composed: rules for a row, and rules between rows, shards and splits.

A check gets the rows of a dataset one row group at a time, in order, and yields the rows that break a rule. Rules
between shards keep 64-bit hashes: 8 to 32 bytes for each row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from schemas.dataset import Dataset, RowGroup
from schemas.keys import is_validation, split_of
from schemas.manifest import SPLITS, Manifest, Shard

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Show = Callable[[int], str]

WIKIDATA_ID = r"^Q[1-9][0-9]*$"


class Broken(NamedTuple):
    """Rows of a row group, numbered in it, that break a rule. `show(row)` says what the row has and what it should."""

    rule: str
    rows: I64
    show: Show


class Violation(NamedTuple):
    """A rule broken by rows of a shard, numbered in it, that is known only after all rows were read."""

    shard: Shard
    rule: str
    rows: I64
    detail: str


class Check:
    """A rule for the rows of a dataset. Subclasses override what they need."""

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        """Check the next row group. They come in order, one split after the other."""
        yield from ()

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        """Check what is known only after all rows were read."""
        yield from ()

    def totals(self) -> Iterator[tuple[str, str]]:
        """What contradicts the sums of the rows: (the side table, or "" for the manifest, what is wrong)."""
        yield from ()

    def counters(self, table: pa.Table) -> Mapping[str, int]:
        """What rows add to the counters that `totals` compares."""
        return {}


class Rows(Check):
    """A check of each row by itself."""

    def __init__(self, broken: Callable[[pa.Table], Iterator[Broken]]) -> None:
        self._broken = broken

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        return self._broken(group.table)


# ---- Rules about columns


def where(mask: Any) -> I64:
    """The rows at which a mask (NumPy or Arrow, null is false) is true."""
    if isinstance(mask, pa.Array | pa.ChunkedArray):
        mask = pc.fill_null(mask, False)
    return np.flatnonzero(np.asarray(mask, dtype=bool))


def rows_of(rows: Sequence[int]) -> I64:
    return np.array(rows, dtype=np.int64)


def quoted(value: object, most: int = 60) -> str:
    """A value for a finding: quoted and cut."""
    if not isinstance(value, str):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return json.dumps(value if len(value) <= most else value[: most - 3] + "...", ensure_ascii=False)


def showing(values: pa.ChunkedArray) -> Show:
    """Shows a row by its value in a column."""
    return lambda row: quoted(values[row].as_py())


def is_empty(table: pa.Table, column: str, show: Show, name: str = "") -> Broken:
    return Broken(f"{name or 'the ' + column} is empty", where(pc.equal(table.column(column), "")), show)


def is_not_one_of(table: pa.Table, column: str, known: Sequence[str], show: Show) -> Broken:
    values = table.column(column)
    wrong = pc.invert(pc.is_in(values, pa.array(known)))
    rule = f"{column} is not one of {', '.join(known)}"
    return Broken(rule, where(wrong), lambda row: f"{show(row)}: {quoted(values[row].as_py())}")


def is_no_wikidata_id(values: pa.ChunkedArray, name: str, show: Show) -> Broken:
    wrong = pc.and_(pc.invert(pc.match_substring_regex(values, WIKIDATA_ID)), pc.not_equal(values, ""))
    rule = f"{name} is neither empty nor a Wikidata id"
    return Broken(rule, where(wrong), lambda row: f"{show(row)}: {quoted(values[row].as_py())}")


def is_of_other_source(table: pa.Table) -> Broken:
    ids, sources = (table.column(name).to_pylist() for name in ("doc_id", "source"))
    return Broken(
        "doc_id does not begin with the source",
        where([not doc_id.startswith(f"{source}:") for doc_id, source in zip(ids, sources, strict=True)]),
        lambda row: f"{quoted(ids[row])}, source {quoted(sources[row])}",
    )


# ---- Rules about lists of structs


def nested(lists: pa.ListArray, names: Iterable[str]) -> tuple[I64, Bools, list[Any]]:
    """The items of a column of lists of structs: the row of each item, whether it is its row's first, the named fields.

    Integers become int64, strings stay an Arrow array.

    >>> lists = pa.array([[{"at": 7}, {"at": 9}], [], [{"at": 5}]])
    >>> nested(lists, ["at"])
    (array([0, 0, 2]), array([ True, False,  True]), [array([7, 9, 5])])
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


def broken_items(rule: str, wrong: Bools, owner: I64, show: Show) -> Broken:
    """A rule on the items of lists as a rule on rows. `show` takes an item: the first wrong one of the row.

    Items 0 and 1 of row 0 and items 2 and 3 of row 4, of which 1 2 3 are wrong: rows 0 and 4, which show 1 and 2.
    """
    items = np.flatnonzero(wrong)
    rows, place = np.unique(owner[items], return_index=True)
    first = dict(zip(rows.tolist(), items[place].tolist(), strict=True))
    return Broken(rule, rows, lambda row: show(first[row]))


def broken_spans(name: str, start: I64, end: I64, first: Bools, owner: I64, show: Show) -> Iterator[Broken]:
    """Rows with spans in their lists that are empty, or begin before the span before them ends."""
    yield broken_items(f"{name} is empty or ends before it starts", start >= end, owner, show)
    yield broken_items(f"{name} begins before the one before it ends", begins_early(start, end, first), owner, show)


def begins_early(start: I64, end: I64, first: Bools) -> Bools:
    """Whether each span begins before the one before it ends. The `first` span of a list has none before it.

    Spans [0, 3) [2, 5) of one list and [1, 2) of the next: only the second begins early.
    """
    early = np.zeros(len(start), dtype=bool)
    early[1:] = (start[1:] < end[:-1]) & ~first[1:]
    return early


# ---- Rules between rows


def hashes(strings: pa.Array | pa.ChunkedArray) -> U64:
    """[n] the 64-bit xxh3 of each string."""
    values = strings.cast(pa.binary()).to_pylist()
    return np.fromiter(map(xxhash.xxh3_64_intdigest, values), np.uint64, len(values))


def row_hashes(table: pa.Table, names: Sequence[str]) -> U64:
    """[n] a hash of the named columns of each row."""
    if not table.num_rows:
        return np.empty(0, np.uint64)
    return hashes(pc.binary_join_element_wise(*(table.column(name).cast(pa.string()) for name in names), "\0"))


class Unique(Check):
    """Finds values that are in two rows, shards or splits (`by`), in 8 bytes for each value.

    The values are those of a column, or those that `of` makes from columns: arrays with a value for each row. A null is
    not a value.
    """

    def __init__(
        self,
        rule: str,
        *columns: str,
        by: str = "row",
        of: Callable[[pa.Table], Sequence[pa.Array | pa.ChunkedArray]] | None = None,
    ) -> None:
        self._rule, self._columns, self._by = rule, columns, by
        self._of = of or (lambda table: [table.column(columns[0])])
        self._seen: dict[str, list[U64]] = {}

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        key = {"row": "", "shard": group.shard.path, "split": split}[self._by]
        for values in self._of(group.table):
            found = values.drop_null()
            self._seen.setdefault(key, []).append(hashes(found if self._by == "row" else pc.unique(found)))
        yield from ()

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        """A violation for each shard that repeats a value. Values with equal hashes are read again and compared."""
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
                            found.setdefault(group.first_row + row, f"{name} is in {first[value][1]}")
                if found:
                    yield Violation(shard, self._rule, np.array([*found]), next(iter(found.values())))

    def _among(self, table: pa.Table, sought: U64) -> list[tuple[int, str]]:
        """The rows with a value whose hash is `sought`, in order, with the value."""
        found: list[tuple[int, str]] = []
        for values in self._of(table):
            rows = where(pc.and_(pc.is_valid(values), pa.array(np.isin(hashes(pc.fill_null(values, "")), sought))))
            found += zip(rows.tolist(), values.take(pa.array(rows)).to_pylist(), strict=True)
        return sorted(found)


class Ordered(Check):
    """Rows are in strictly ascending order of `keys`, across the shards of a split."""

    def __init__(self, rule: str, keys: Callable[[pa.Table], list[Any]], show: Callable[[pa.Table], Show]) -> None:
        self._rule, self._keys, self._show = rule, keys, show
        self._last: dict[str, Any] = {}

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        keys = self._keys(group.table)
        last = self._last.get(split)
        wrong = [
            row
            for row, key in enumerate(keys)
            if (before := keys[row - 1] if row else last) is not None and before >= key
        ]
        if keys:
            self._last[split] = keys[-1]
        yield Broken(self._rule, rows_of(wrong), self._show(group.table))


class SideBySide(Check):
    """Rows of one owner are next to each other in their shard, and in order.

    `owner` gives the owner of each row; one whose name begins with a null character may come again. `place` gives
    [start, end) of each row: the next row of the same owner starts at that end or after it.
    """

    def __init__(
        self,
        apart: str,
        early: str,
        owner: Callable[[pa.Table], list[str]],
        place: Callable[[pa.Table], tuple[Sequence[Any], Sequence[Any]]],
        show: Callable[[pa.Table], Show],
    ) -> None:
        self._apart, self._early = apart, early
        self._owner, self._place, self._show = owner, place, show
        self._shard = ""
        self._last: str | None = None
        self._end: Any = None
        self._begun: set[str] = set()

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        if group.shard.path != self._shard:
            self._shard, self._last, self._end, self._begun = group.shard.path, None, None, set()
        apart: list[int] = []
        early: dict[int, Any] = {}
        starts, ends = self._place(group.table)
        for row, (owner, start, end) in enumerate(zip(self._owner(group.table), starts, ends, strict=True)):
            if owner != self._last:
                if owner in self._begun and not owner.startswith("\0"):
                    apart.append(row)
                self._begun.add(owner)
            elif start < self._end:
                early[row] = self._end
            self._last, self._end = owner, end
        show = self._show(group.table)
        yield Broken(self._apart, rows_of(apart), show)
        yield Broken(self._early, rows_of([*early]), lambda row: f"{show(row)}{_after(early[row])}")


def _after(end: object) -> str:
    return f", the one before ends at {end:,}" if isinstance(end, int) else ""


class InSplit(Check):
    """Rows are in the split to which the hash of each of their `owners` assigns them. An unknown owner is None.

    `shares`: the sizes of the splits; by default --validation-rate says them.
    """

    def __init__(
        self,
        what: str,
        owners: Callable[[pa.Table], list[list[str | None]]],
        manifest: Manifest,
        shares: Sequence[float] = (),
    ) -> None:
        self._what, self._owners, self._seed = what, owners, manifest.seed or 0
        if shares:
            self._split = lambda owner: SPLITS[split_of(owner, shares=shares, seed=self._seed)]
        else:
            rate = float(manifest.options["validation_rate"])
            self._split = lambda owner: SPLITS[is_validation(owner, rate=rate, seed=self._seed)]

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        wanted: dict[str, str] = {}
        wrong: dict[int, str] = {}
        for owners in self._owners(group.table):
            for row, owner in enumerate(owners):
                if owner is None:
                    continue
                if owner not in wanted:
                    wanted[owner] = self._split(owner)
                if wanted[owner] != split:
                    wrong.setdefault(row, owner)
        yield Broken(self._what, rows_of(sorted(wrong)), lambda row: quoted(wrong[row].replace("\0", " ")))


class Licences(Check):
    """The documents of the rows have the licences that the manifest counts.

    `of_all`: every document has a row. Otherwise the manifest may count more. `are_documents`: each row is a document.
    """

    def __init__(self, manifest: Manifest, *, of_all: bool = True, are_documents: bool = False) -> None:
        self._said, self._of_all, self._are_documents = manifest.licences, of_all, are_documents
        self._documents: dict[str, list[U64]] = {}

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        licences = group.table.column("licence")
        for licence in pc.unique(licences).to_pylist():
            own = group.table.column("doc_id").filter(pc.equal(licences, licence))
            self._documents.setdefault(licence, []).append(hashes(own if self._are_documents else pc.unique(own)))
        yield from ()

    def totals(self) -> Iterator[tuple[str, str]]:
        for licence in sorted({*self._said, *self._documents}):
            said = self._said.get(licence, 0)
            documents = np.concatenate([np.empty(0, np.uint64), *self._documents.get(licence, [])])
            found = len(documents if self._are_documents else np.unique(documents))
            if found > said or (self._of_all and found < said):
                yield "", f"licences: {found:,} documents are {quoted(licence)}; the manifest says {said:,}"


class Counters(Check):
    """The values of a column are as frequent as the manifest's counters say. `name.format(value)` is the counter."""

    def __init__(self, column: str, values: Sequence[str], name: str, manifest: Manifest) -> None:
        self._column, self._values, self._name, self._manifest = column, values, name, manifest
        self._found: Counter[str] = Counter()

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        self._found.update(group.table.column(self._column).to_pylist())
        yield from ()

    def totals(self) -> Iterator[tuple[str, str]]:
        for value in self._values:
            name = self._name.format(value)
            if self._found[value] != (said := self._manifest.counter(name)):
                yield "", f"{self._found[value]:,} rows count as {quoted(name)}; the manifest says {said:,}"

    def counters(self, table: pa.Table) -> Mapping[str, int]:
        return Counter(map(self._name.format, table.column(self._column).to_pylist()))


# ---- Rules between a dataset and the one that it was made from


def are_rows_of(
    columns: Sequence[str], rule: str, suffix: str = ""
) -> Callable[[Dataset, Dataset], Iterator[Violation]]:
    """A check for rows whose columns (named with `suffix`) do not equal those of any row of the source dataset.

    It compares hashes of rows. `rule` has {} for the source.
    """
    own = [f"{name}{suffix}" for name in columns]

    def check(dataset: Dataset, source: Dataset) -> Iterator[Violation]:
        known = [row_hashes(table, columns) for table in source.tables(columns=columns)]
        found = np.unique(np.concatenate([np.empty(0, np.uint64), *known]))
        for shard in dataset.shards():
            wrong: list[int] = []
            detail = ""
            for group in dataset.row_groups(shard, columns=own):
                absent = np.flatnonzero(~np.isin(row_hashes(group.table, own), found)).tolist()
                if absent and not wrong:
                    row = group.table.slice(absent[0], 1).to_pylist()[0]
                    detail = ", ".join(quoted(row[name]) for name in own[:4])
                wrong += [group.first_row + row for row in absent]
            if wrong:
                yield Violation(shard, rule.format(source.folder), rows_of(wrong), detail)

    return check


class Wrong:
    """Collects the rows of a shard that break rules, each with a detail."""

    def __init__(self) -> None:
        self._rules: dict[str, dict[int, str]] = {}

    def add(self, rule: str, row: int, detail: str) -> None:
        self._rules.setdefault(rule, {})[row] = detail

    def violations(self, shard: Shard, rows: range | None = None, first_row: int = 0) -> Iterator[Violation]:
        """A violation for each rule, of all rows or only of `rows`, the first of which is row `first_row` of the shard.

        For a table of several row groups, one of which has the rows [3, 6) and begins its shard: row 4 is its row 1.
        """
        for rule, details in self._rules.items():
            here = [row for row in sorted(details) if rows is None or row in rows]
            if here:
                shift = first_row - rows.start if rows is not None else 0
                yield Violation(shard, rule, rows_of(here) + shift, details[here[0]])
