"""Duplicates: documents with one id or one text, paragraphs with one text. Shards that lose something are rewritten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.exchange import read_sorted, write_parts
from pipelines.engine.stage import File, Stage, Work
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.units import Range
from schemas.kinds.documents import DOCUMENTS, DUPLICATE_EXCERPT
from schemas.storage.parquet import parquet_file, read_parquet
from transforms.arrays import I64, Bools
from transforms.sources.duplicates import (
    DROPS,
    ID,
    KEYS,
    MIN_PARAGRAPH,
    PARAGRAPH_BITS,
    find_drops,
    item_of,
    without_paragraphs,
)
from transforms.sources.items import Link

SHARDS_A_GROUP, TEXT_A_GROUP = 64, 64 << 20
"""The most shards of a group, and the most characters of a group of several shards."""


class Group(NamedTuple):
    """Consecutive shards of the extract stage, group number `number`."""

    number: int


class Places:
    """Where items are: the documents of the extract stage are counted through all of its shards."""

    def __init__(self, work: Work) -> None:
        self.shards = work.files("extract", "train")
        self.first = np.cumsum([0, *(file.rows for file in self.shards)])
        characters = max(work.counter("extract", "characters"), 1)
        self.shards_a_group = min(max(TEXT_A_GROUP * len(self.shards) // characters, 1), SHARDS_A_GROUP)
        self.groups = -(-len(self.shards) // self.shards_a_group)

    def shard(self, items: I64) -> I64:
        """[items] the number of the shard of each; shards of 2, 3 and 1 documents begin at 0 2 5."""
        return np.searchsorted(self.first, items >> PARAGRAPH_BITS, side="right") - 1

    def group(self, items: I64) -> I64:
        return self.shard(items) // self.shards_a_group

    def shards_of(self, group: int) -> range:
        return range(group * self.shards_a_group, min((group + 1) * self.shards_a_group, len(self.shards)))


def write_drops(write: TaskWriter, places: Places, drops: pa.Table) -> None:
    """Write DROPS, a row group for each group of shards."""
    if drops.num_rows:
        write_parts(write, "drops", drops, places.group(drops.column("item").to_numpy()), parts=places.groups)


def groups_with(work: Work, files: list[File]) -> list[Group]:
    """The groups for which files have rows."""
    found: set[int] = set()
    for file in files:
        with parquet_file(work.folder, file.path) as reader:
            found.update(n for n in range(reader.num_row_groups) if reader.metadata.row_group(n).num_rows)
    return [Group(number) for number in sorted(found)]


def _documents_before(work: Work) -> dict[int, int]:
    """For each unit of extract, the number of documents before its first."""
    numbers, documents = {}, 0
    for each in work.completions("extract"):
        numbers[each.unit] = documents
        documents += sum(file.rows for file in each.files if file.role == "train")
    return numbers


class _Find(Stage):
    """Reduce of the exchange by key: drops all but the first document or paragraph of each key.

    The keys of a unit count documents from 0 in that unit. `process` counts them in the whole dataset.
    """

    Unit: ClassVar[type] = Range

    def wanted(self, keys: pa.Table, work: Work) -> pa.Array:
        """[keys] which keys to look at, as booleans."""
        raise NotImplementedError

    def plan(self, work: Work) -> list[Range]:
        files = work.files("extract", "keys")
        if not files:
            return []
        with parquet_file(work.folder, files[0].path) as reader:
            ranges = reader.num_row_groups
        return [Range(index, ranges) for index in range(ranges)]

    def process(self, unit: Range, write: TaskWriter) -> None:
        work = write.work
        before = _documents_before(work)
        tables = []
        for each in write.each(work.completions("extract"), 0.7):
            files = [file for file in each.files if file.role == "keys"]
            keys = read_sorted(work.folder, files, unit.number, KEYS)
            item = pc.add(keys.column("item"), before[each.unit] << PARAGRAPH_BITS)
            tables.append(keys.set_column(keys.column_names.index("item"), "item", item))
        keys = pa.concat_tables(tables)
        keys = keys.filter(self.wanted(keys, work))
        order = [(name, "ascending") for name in ("key_hi", "key_lo", "kind", "item")]
        drops = find_drops(keys.take(pc.sort_indices(keys, sort_keys=order)).combine_chunks())
        write_drops(write, Places(work), drops)


@dataclass(frozen=True)
class FindDuplicateIds(_Find):
    """Documents with the id of an earlier one, whether their text is the same or not."""

    name: ClassVar[str] = "find_duplicate_ids"
    version: ClassVar[int] = 2

    def wanted(self, keys: pa.Table, work: Work) -> pa.Array:
        return pc.equal(keys.column("kind"), ID)


@dataclass(frozen=True)
class FindDuplicates(_Find):
    """Documents or paragraphs with the text of an earlier one. Documents dropped for their id are not looked at."""

    name: ClassVar[str] = "find_duplicates"
    version: ClassVar[int] = 2

    def wanted(self, keys: pa.Table, work: Work) -> pa.Array:
        files = work.files("find_duplicate_ids", "drops")
        dropped = [read_parquet(work.folder, file.path, ["item"]).column("item").to_numpy() for file in files]
        gone = is_in_dropped(keys.column("item").to_numpy(), np.concatenate([np.zeros(0, np.int64), *dropped]))
        return pc.and_(pc.not_equal(keys.column("kind"), ID), pa.array(~gone))


def is_in_dropped(items: I64, dropped: I64) -> Bools:
    """[items] whether an item, or the document that it is in, was dropped."""
    return np.isin(items, dropped) | np.isin(items >> PARAGRAPH_BITS << PARAGRAPH_BITS, dropped)


def drop_files(work: Work) -> list[File]:
    """The files of DROPS of all stages so far. A later row on an item replaces an earlier one."""
    stages = ("find_duplicate_ids", "find_duplicates", "cluster")
    return [file for stage in stages if work.is_closed(stage) for file in work.files(stage, "drops")]


def drops_of(work: Work, group: int) -> pa.Table:
    """DROPS of a group of shards."""
    tables = [DROPS.empty_table()]
    for file in drop_files(work):
        with parquet_file(work.folder, file.path) as reader:
            tables.append(reader.read_row_group(group, use_threads=False).cast(DROPS))
    return pa.concat_tables(tables).combine_chunks()


_WHOLE = -1


class _Dropped(NamedTuple):
    """A row of DROPS."""

    item: int
    first: int
    reason: str
    repeats: str
    jaccard: float


@dataclass(frozen=True)
class Drop(Stage):
    """Rewrites the shards from which something is dropped. The others stay as they are.

    What is dropped of a document is {paragraph: row of DROPS}, the whole document is paragraph _WHOLE.
    """

    name: ClassVar[str] = "drop"
    version: ClassVar[int] = 2
    counts: ClassVar[str] = "documents"
    Unit: ClassVar[type] = Group

    def plan(self, work: Work) -> list[Group]:
        return groups_with(work, drop_files(work))

    def process(self, unit: Group, write: TaskWriter) -> None:
        places = Places(write.work)
        drops = drops_of(write.work, unit.number)
        shards: dict[int, dict[int, dict[int, _Dropped]]] = {}
        for shard, row in zip(places.shard(drops.column("item").to_numpy()).tolist(), drops.to_pylist(), strict=True):
            dropped = _Dropped(**row)
            number = (dropped.item >> PARAGRAPH_BITS) - int(places.first[shard])
            paragraph = dropped.item - item_of(dropped.item >> PARAGRAPH_BITS) - 1
            shards.setdefault(shard, {}).setdefault(number, {})[paragraph] = dropped
        for shard in write.each(sorted(shards)):
            self._rewrite(places.shards[shard], shards[shard], write)

    def _rewrite(self, shard: File, drops: dict[int, dict[int, _Dropped]], write: TaskWriter) -> None:
        documents = read_parquet(write.work.folder, shard.path).to_pylist()
        kept: list[dict[str, Any]] = []
        for number, document in enumerate(documents):
            write.ledger.read += 1
            kept += self._kept(document, drops.get(number, {}), write)
        write.ledger.written += len(kept)
        # The extract stage has counted the licences of all documents.
        dropped = Counter(each["licence"] for each in documents) - Counter(each["licence"] for each in kept)
        write.counters.update({f"dropped_licence:{licence}": n for licence, n in dropped.items()})
        table = pa.Table.from_pylist(kept, schema=DOCUMENTS)
        write.table("train", table, supersedes=shard.path, row_group_rows=1 << 30)

    def _kept(
        self, document: dict[str, Any], drops: dict[int, _Dropped], write: TaskWriter
    ) -> Iterator[dict[str, Any]]:
        """What stays of a document, if anything does."""
        whole = drops.get(_WHOLE)
        if whole and whole.reason == "duplicate_id":
            text, doc_id = document["text"], document["doc_id"]
            write.reject(whole.reason, source=document["source"], position=doc_id, excerpt=text)
            return
        if whole:
            write.ledger.filtered[whole.reason] += 1
            _note(document, _WHOLE, document["text"], whole, write)
            return
        if drops:
            lines = document["text"].split("\n")
            for paragraph, dropped in sorted(drops.items()):
                write.counters[f"{dropped.reason}s"] += 1
                write.counters["duplicate_characters"] += len(lines[paragraph])
                _note(document, paragraph, lines[paragraph], dropped, write)
            text, links = without_paragraphs(document["text"], [Link(**link) for link in document["links"]], drops)
            # Short lines are never duplicates, so a copied document still has those.
            if all(len(line) < MIN_PARAGRAPH for line in text.split("\n")):
                write.ledger.filtered["duplicate_paragraph"] += 1
                return
            document |= {"text": text, "links": [link._asdict() for link in links]}
        yield document


def _note(document: dict[str, Any], paragraph: int, text: str, dropped: _Dropped, write: TaskWriter) -> None:
    """Write a row of the side table of duplicates."""
    row = {
        "doc_id": document["doc_id"],
        "paragraph": paragraph,
        "repeats": dropped.repeats or document["doc_id"],
        "reason": dropped.reason,
        "jaccard": dropped.jaccard,
        "excerpt": text[:DUPLICATE_EXCERPT],
    }
    write.side("duplicates", row)
