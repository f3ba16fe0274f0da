"""Near duplicates: documents or paragraphs that resemble an earlier one, by two exchanges.

Sign       for a group of shards: the bands of each text's signature; map of the exchange by band
Match      for a range of bands: pairs of texts that share a band; map of the exchange by the earlier text's group
Send       for a group of shards: the shingles of texts that are to be compared with texts of other groups
Compare    for a group of shards: its texts with all later ones that they are paired with, exactly
Cluster    all pairs that are alike enough: what to drop, and the first text of its cluster

An item is a document or a paragraph (`transforms/sources/duplicates.py`); items and pairs do not depend on the shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.exchange import key_columns, n_ranges, read_range, read_sorted, write_parts, write_ranges
from pipelines.engine.stage import File, Stage, Work
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.duplicates import Group, Places, drops_of, groups_with, is_in_dropped, write_drops
from pipelines.stages.units import All, Range
from schemas.storage.parquet import read_parquet
from transforms.arrays import I64, U64, offsets_of
from transforms.sources.duplicates import DROPS, PARAGRAPH_BITS, item_of, paragraphs_of
from transforms.sources.near_duplicates import (
    NEIGHBOURS,
    Shingles,
    band_keys,
    banding,
    clusters,
    distinct_pairs,
    jaccard,
    neighbours,
    shingles,
)
from transforms.sources.options import NearRules

Item = TypeVar("Item")

BANDS_A_RANGE = 1_000_000
BANDS_A_FILE = 2_000_000
SHINGLES_A_FILE = 4_000_000
DROPS_A_FILE = 500_000

BANDS = pa.schema([("key_hi", pa.uint64()), ("key_lo", pa.uint64())])
"""The hash of a band, and the item. So a range is sorted by band and then by item."""

PAIRS = pa.schema([("a", pa.int64()), ("b", pa.int64())])
WANTED = pa.schema([("item", pa.int64()), ("group", pa.int64())])
"""An item whose shingles are to be sent to a group."""

_IN_DOCUMENT = (1 << PARAGRAPH_BITS) - 1

SENT = pa.schema([("item", pa.int64()), ("shingles", pa.list_(pa.uint64()))])
LINKED = pa.schema([("item", pa.int64()), ("first", pa.int64()), ("jaccard", pa.float64()), ("doc_id", pa.string())])
"""An item with the first one of its cluster, as far as one unit of Compare sees it, and the id of that one's document.

`jaccard`: the highest of the item with another one.
"""


class Signing(NamedTuple):
    """A group of shards; `ranges` of the exchange by band."""

    group: int
    ranges: int


def _gathered(items: Iterable[Item], size: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """Items in lists, each of which ends with the item that brings its size to `most`."""
    waiting: list[Item] = []
    total = 0
    for each in items:
        waiting.append(each)
        total += size(each)
        if total >= most:
            yield waiting
            waiting, total = [], 0
    if waiting:
        yield waiting


@dataclass(frozen=True)
class Sign(Stage):
    """Map of the exchange by band. Exact duplicates are not looked at."""

    name: ClassVar[str] = "sign"
    Unit: ClassVar[type] = Signing

    rules: NearRules
    paragraphs: bool

    def plan(self, work: Work) -> list[Signing]:
        texts = sum(each.rows for each in work.files("extract", "keys"))
        ranges = n_ranges(texts * banding(self.rules.near_jaccard).bands, rows_a_range=BANDS_A_RANGE)
        return [Signing(group, ranges) for group in range(Places(work).groups)]

    def process(self, unit: Signing, write: TaskWriter) -> None:
        places = Places(write.work)
        dropped = drops_of(write.work, unit.group).column("item").to_numpy()
        shards = write.each(places.shards_of(unit.group))
        bands = (self._bands(places, shard, dropped, write) for shard in shards)
        for tables in _gathered(bands, lambda table: table.num_rows, BANDS_A_FILE):
            write_ranges(write, "bands", pa.concat_tables(tables).combine_chunks(), ranges=unit.ranges)

    def _bands(self, places: Places, shard: int, dropped: I64, write: TaskWriter) -> pa.Table:
        texts = read_parquet(write.work.folder, places.shards[shard].path, ["text"]).column("text").to_pylist()
        found = enumerate(texts, int(places.first[shard]))
        if self.paragraphs:
            pieces = [(item_of(number, n), line) for number, text in found for n, line in paragraphs_of(text)]
        else:
            pieces = [(item_of(number), text) for number, text in found]
        items = np.array([item for item, _ in pieces], dtype=np.int64)
        stays = np.flatnonzero(~is_in_dropped(items, dropped))
        of_texts = shingles([pieces[n][1] for n in stays], self.rules.near_words)
        lengths = np.diff(of_texts.edges)
        items = items[stays][lengths > 0]
        write.counters["texts_signed"] += len(items)
        if not len(items):
            return BANDS.empty_table()
        edges = np.append(0, of_texts.edges[1:][lengths > 0])
        bands = banding(self.rules.near_jaccard)
        keys = band_keys(Shingles(of_texts.hashes, edges), bands)
        return pa.table([keys.ravel(), np.repeat(items, bands.bands).astype(np.uint64)], schema=BANDS)


@dataclass(frozen=True)
class Match(Stage):
    """Reduce of the exchange by band: each text with those right before it among all that share a band."""

    name: ClassVar[str] = "match"
    Unit: ClassVar[type] = Range

    def plan(self, work: Work) -> list[Range]:
        units = work.units("sign")
        ranges = units[0][1] if units else 0
        return [Range(index, ranges) for index in range(ranges)]

    def process(self, unit: Range, write: TaskWriter) -> None:
        places = Places(write.work)
        files = write.work.files("sign", "bands")
        band, item = key_columns(read_sorted(write.work.folder, write.each(files, 0.6), unit.number, BANDS))
        # A band that very many texts share makes many pairs, so they are made of some rows at a time.
        for start in write.each(range(0, len(item), BANDS_A_RANGE)):
            some = slice(max(start - NEIGHBOURS, 0), start + BANDS_A_RANGE)
            self._write(*neighbours(band[some], item[some].astype(np.int64), NEIGHBOURS), places, write)

    def _write(self, a: I64, b: I64, places: Places, write: TaskWriter) -> None:
        if not len(a):
            return
        group_a, group_b = places.group(a), places.group(b)
        write_parts(write, "pairs", pa.table([a, b], schema=PAIRS), group_a, parts=places.groups)
        away = group_a != group_b
        target, later = distinct_pairs(group_a[away], b[away])
        if len(target):
            table = pa.table([later, target], schema=WANTED)
            write_parts(write, "wanted", table, places.group(later), parts=places.groups)


class _Set(NamedTuple):
    """The shingles of an item, sorted and each once, and the id of its document."""

    item: int
    shingles: U64
    doc_id: str


def _sets(work: Work, places: Places, items: I64, words: int, write: TaskWriter, share: float) -> Iterator[_Set]:
    """The sets of shingles of items, which are in order."""
    shard = places.shard(items)
    for number in write.each(np.unique(shard).tolist(), share):
        table = read_parquet(work.folder, places.shards[number].path, ["doc_id", "text"])
        here = items[shard == number]
        rows = ((here >> PARAGRAPH_BITS) - places.first[number]).tolist()
        texts, ids, lines = [], [], [""]
        for n, (row, item) in enumerate(zip(rows, here.tolist(), strict=True)):
            if n == 0 or row != rows[n - 1]:
                text = table.column("text")[row].as_py()
                lines = [text, *text.split("\n")]
            texts.append(lines[item & _IN_DOCUMENT])
            ids.append(table.column("doc_id")[row].as_py())
        found = shingles(texts, words)
        for item, doc_id, (start, end) in zip(here.tolist(), ids, pairwise(found.edges.tolist()), strict=True):
            yield _Set(item, np.unique(found.hashes[start:end]), doc_id)


@dataclass(frozen=True)
class Send(Stage):
    """Map of the exchange by group: the shingles of texts of a group that other groups ask for."""

    name: ClassVar[str] = "send"
    Unit: ClassVar[type] = Group

    rules: NearRules

    def plan(self, work: Work) -> list[Group]:
        return groups_with(work, work.files("match", "wanted"))

    def process(self, unit: Group, write: TaskWriter) -> None:
        work, places = write.work, Places(write.work)
        wanted = read_range(work.folder, work.files("match", "wanted"), unit.number, WANTED)
        item, target = distinct_pairs(wanted.column("item").to_numpy(), wanted.column("group").to_numpy())
        items, starts = np.unique(item, return_index=True)
        sets = _sets(work, places, items, self.rules.near_words, write, 0.9)
        groups = np.split(target, starts[1:])
        sent = ((group, each) for each, to in zip(sets, groups, strict=True) for group in to.tolist())
        for some in _gathered(sent, lambda pair: len(pair[1].shingles), SHINGLES_A_FILE):
            self._write(some, places, write)

    def _write(self, waiting: list[tuple[int, _Set]], places: Places, write: TaskWriter) -> None:
        sets = [each.shingles for _, each in waiting]
        lists = pa.ListArray.from_arrays(np.cumsum([0, *map(len, sets)], dtype=np.int32), np.concatenate(sets))
        table = pa.table([[each.item for _, each in waiting], lists], schema=SENT)
        write_parts(write, "shingles", table, np.array([group for group, _ in waiting]), parts=places.groups)


@dataclass(frozen=True)
class Compare(Stage):
    """Reduce of the exchange by group: the exact resemblance of pairs whose earlier text is in the group.

    In memory are the shingles of the group's own texts, and of those that one file brings.
    """

    name: ClassVar[str] = "compare"
    Unit: ClassVar[type] = Group

    rules: NearRules

    def plan(self, work: Work) -> list[Group]:
        return groups_with(work, work.files("match", "pairs"))

    def process(self, unit: Group, write: TaskWriter) -> None:
        work, places = write.work, Places(write.work)
        pairs = read_range(work.folder, work.files("match", "pairs"), unit.number, PAIRS)
        b, a = distinct_pairs(pairs.column("b").to_numpy(), pairs.column("a").to_numpy())
        here = places.group(b) == unit.number
        own = np.unique(np.concatenate([a, b[here]]))
        sets = {each.item: each for each in _sets(work, places, own, self.rules.near_words, write, 0.4)}
        similarity = np.zeros(len(a))

        def compare(item: int, found: U64) -> None:
            for n in range(np.searchsorted(b, item), np.searchsorted(b, item, side="right")):
                similarity[n] = jaccard(sets[a[n]].shingles, found)

        for item in write.each(np.unique(b[here]).tolist(), 0.5):
            compare(item, sets[item].shingles)
        for file in write.each(work.files("send", "shingles")):
            sent = read_range(work.folder, [file], unit.number, SENT)
            lists = sent.column("shingles").chunk(0) if sent.num_rows else pa.array([], SENT.field("shingles").type)
            edges, flat = offsets_of(lists), lists.flatten().to_numpy()
            for n, item in enumerate(sent.column("item").to_pylist()):
                compare(item, flat[edges[n] : edges[n + 1]])
        alike = similarity >= self.rules.near_jaccard
        write.counters["pairs_compared"] += len(a)
        write.counters["pairs_alike"] += int(alike.sum())
        if alike.any():
            write.table("linked", _linked(a[alike], b[alike], similarity[alike], sets))


def _linked(a: I64, b: I64, similarity: np.ndarray, sets: dict[int, _Set]) -> pa.Table:
    item, first = clusters(a, b)
    best = np.zeros(len(item))
    for end in (a, b):
        np.maximum.at(best, np.searchsorted(item, end), similarity)
    return pa.table([item, first, best, [sets[each].doc_id for each in first.tolist()]], schema=LINKED)


@dataclass(frozen=True)
class Cluster(Stage):
    """The clusters of all pairs: all texts but the first of each are dropped.

    What was dropped as an exact copy of one of these repeats the first of its cluster as well.
    """

    name: ClassVar[str] = "cluster"
    Unit: ClassVar[type] = All

    def plan(self, work: Work) -> list[All]:
        return [All()] if work.files("compare", "linked") else []

    def process(self, unit: All, write: TaskWriter) -> None:
        work, places = write.work, Places(write.work)
        files = work.files("compare", "linked")
        linked, firsts, similarity = (self._column(work, files, name) for name in LINKED.names[:3])
        with write.part(0.3):
            item, first = clusters(firsts, linked)
        del firsts
        best = np.zeros(len(item))
        np.maximum.at(best, np.searchsorted(item, linked), similarity)
        del linked, similarity
        heads = item[item == first]
        write.counters["clusters"] += len(heads)
        with write.part(0.3):
            ids = self._ids(work, files, heads)
        gone = item != first
        item, first, best = item[gone], first[gone], best[gone]
        for start in write.each(range(0, len(item), DROPS_A_FILE), 0.5):
            some = slice(start, start + DROPS_A_FILE)
            of_paragraph = pa.array((item[some] & _IN_DOCUMENT) > 0)
            reason = pc.if_else(of_paragraph, "near_duplicate_paragraph", "near_duplicate")
            repeats = ids.take(pa.array(np.searchsorted(heads, first[some])))
            write_drops(write, places, pa.table([item[some], first[some], reason, repeats, best[some]], schema=DROPS))
        for file in write.each(work.files("find_duplicates", "drops")):
            copies = read_parquet(work.folder, file.path)
            copies = copies.filter(pa.array(np.isin(copies.column("first").to_numpy(), item)))
            head = first[np.searchsorted(item, copies.column("first").to_numpy())]
            repeats = ids.take(pa.array(np.searchsorted(heads, head)))
            columns = [copies.column("item"), head, copies.column("reason"), repeats, copies.column("jaccard")]
            write_drops(write, places, pa.table(columns, schema=DROPS))

    def _column(self, work: Work, files: list[File], name: str) -> np.ndarray:
        return np.concatenate([read_parquet(work.folder, each.path, [name]).column(name).to_numpy() for each in files])

    def _ids(self, work: Work, files: list[File], heads: I64) -> pa.Array:
        """[heads] the ids of the documents of the first items of clusters. Each is in one row that names it first."""
        ids, places = [pa.array([], pa.string())], [heads[:0]]
        for file in files:
            rows = read_parquet(work.folder, file.path)
            item = rows.column("item").to_numpy()
            place = np.minimum(np.searchsorted(heads, item), len(heads) - 1)
            here = (item == rows.column("first").to_numpy()) & (heads[place] == item)
            ids.append(rows.column("doc_id").filter(pa.array(here)).combine_chunks())
            places.append(place[here])
        return pa.concat_arrays(ids).take(pa.array(np.argsort(np.concatenate(places))))
