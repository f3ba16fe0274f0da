"""Count: sentences -> phrases. The exact frequencies of all phrases, and the most frequent phrases.

With the entities of the sentences, the types of phrases are counted, too (CountTypes, AddUpTypes, SelectTyped).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import pyarrow as pa

from pipelines.engine.exchange import merge_sorted, n_ranges, read_range, write_ranges
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.units import All, Range, Shards, range_units, shard_units
from schemas.kinds.typed_phrases import TYPE_COUNTER
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.arrays import I64
from transforms.phrases.counting import (
    COUNTS,
    FREQUENCIES,
    ORDER,
    TOTALS,
    TYPE,
    TYPES,
    ShardCounts,
    count_shard,
    cut_at,
    frequencies_of,
    merge_counts,
    to_phrases,
    to_typed_phrases,
    total_counts,
    with_storage_keys,
)
from transforms.phrases.entity_types import entity_types
from transforms.phrases.occurrences import Occurrences
from transforms.phrases.options import PhraseRules, TypeRules
from transforms.phrases.tokens import SENTENCE_COLUMNS, Tokens

TOKENS_A_RANGE = 4_000_000
MERGE_ROWS = 1 << 21
"""The most rows that the merge of all ranges has in memory."""
PHRASES_A_SHARD = 1_000_000


def read_sentences(sentences: Folder, path: str) -> pa.Table:
    """The columns of a shard that counting and choosing need."""
    return read_parquet(sentences, path, list(SENTENCE_COLUMNS))


@dataclass(frozen=True)
class Count(Stage):
    """Map of the exchange by phrase: the counts of some shards of sentences."""

    name: ClassVar[str] = "count"
    version: ClassVar[int] = 3
    counts: ClassVar[str] = "constituents"
    Unit: ClassVar[type] = Shards

    rules: PhraseRules
    sentences: str = location()

    def plan(self, work: Work) -> list[Shards]:
        folder = Folder(self.sentences)
        return shard_units(folder, n_ranges(read_manifest(folder).counter("tokens"), rows_a_range=TOKENS_A_RANGE))

    def process(self, unit: Shards, write: TaskWriter) -> None:
        tables = []
        for place in write.each(range(len(unit.paths)), 0.8):
            shard = self._count(unit, place)
            tables.append(shard.table)
            write.ledger.read += shard.read
            write.ledger.written += shard.written
            write.ledger.filtered.update(shard.filtered)
            write.counters["tokens"] += shard.tokens
        write_ranges(write, "counts", with_storage_keys(merge_counts(tables)), ranges=unit.ranges)

    def _count(self, unit: Shards, place: int) -> ShardCounts:
        """Count a shard of a unit."""
        return count_shard(read_sentences(Folder(self.sentences), unit.paths[place]), self.rules)


@dataclass(frozen=True)
class AddUp(Stage):
    """Reduce of the exchange by phrase: the totals of a range of phrases, the most frequent first."""

    name: ClassVar[str] = "add_up"
    version: ClassVar[int] = 2
    Unit: ClassVar[type] = Range
    columns: ClassVar[pa.Schema] = COUNTS

    max_phrases: int | None
    min_frequency: int

    def plan(self, work: Work) -> list[Range]:
        return range_units(work, "count")

    def most_rows(self, work: Work) -> int | None:
        return None if self.max_phrases is None else self.max_phrases * len(self.plan(work))

    def process(self, unit: Range, write: TaskWriter) -> None:
        files = write.work.files("count", "counts")
        counts = read_range(write.work.folder, write.each(files, 0.3), unit.number, self.columns)
        with write.part(0.8):
            totals = total_counts(counts)
        write.counters["candidates"] += totals.num_rows
        totals = totals.slice(0, int((totals.column("frequency").to_numpy() >= self.min_frequency).sum()))
        write.table("frequencies", frequencies_of(totals))
        rows = max(MERGE_ROWS // unit.ranges, 1024)
        write.table("totals", totals.slice(0, self.max_phrases), row_group_rows=rows)


@dataclass(frozen=True)
class Select(Stage):
    """The `max_phrases` most frequent phrases of all ranges, ties by the phrase's hash: the phrases dataset."""

    name: ClassVar[str] = "select"
    version: ClassVar[int] = 3
    counts: ClassVar[str] = "phrases"
    Unit: ClassVar[type] = All
    columns: ClassVar[pa.Schema] = TOTALS

    max_phrases: int | None

    def most_rows(self, work: Work) -> int | None:
        return self.max_phrases

    def plan(self, work: Work) -> list[All]:
        return [All()]

    def process(self, unit: All, write: TaskWriter) -> None:
        for table in self._shards(write):
            write.table("train", self._records(table, write))
            write.ledger.written += table.num_rows
        write.ledger.read += write.work.counter("add_up", "candidates")
        cut = cut_at(self._frequencies(write), self.max_phrases)
        write.ledger.filtered["tied_at_cut"] += cut.tied
        write.ledger.filtered["too_rare"] += write.ledger.read - cut.kept - cut.tied
        write.counters["selected"] += cut.kept
        write.counters["lowest_frequency"] += cut.lowest

    def _records(self, totals: pa.Table, write: TaskWriter) -> pa.Table:
        return to_phrases(totals)

    def _frequencies(self, write: TaskWriter) -> pa.Table:
        """How many phrases of all ranges have a frequency: a range has a few thousand different ones at most."""
        files = write.work.files("add_up", "frequencies")
        tables = [read_parquet(write.work.folder, file.path, FREQUENCIES.names) for file in files]
        return pa.concat_tables([FREQUENCIES.empty_table(), *(each.cast(FREQUENCIES) for each in tables)])

    def _shards(self, write: TaskWriter) -> Iterator[pa.Table]:
        files = write.work.files("add_up", "totals")
        rows = sum(file.rows for file in files)
        most = left = rows if self.max_phrases is None else min(rows, self.max_phrases)
        written = False
        waiting = self.columns.empty_table()
        with write.part(1.0, lambda: 1 - left / max(most, 1)):
            for table in merge_sorted(write.work.folder, files, sort_keys=ORDER):
                table = table.slice(0, left)
                left -= table.num_rows
                waiting = pa.concat_tables([waiting, table])
                while waiting.num_rows >= PHRASES_A_SHARD:
                    written = True
                    yield waiting.slice(0, PHRASES_A_SHARD).combine_chunks()
                    waiting = waiting.slice(PHRASES_A_SHARD)
                if left == 0:
                    break
        if waiting.num_rows or not written:
            yield waiting.combine_chunks()


class AnnotatedShards(NamedTuple):
    """Consecutive shards of sentences, as `Shards`, and those of their entities."""

    first: int
    paths: list[str]
    ranges: int
    entities: list[str]


@dataclass(frozen=True, kw_only=True)
class CountTypes(Count):
    """The same, by the types of the occurrences. Shard i of the entities is about shard i of the sentences."""

    Unit: ClassVar[type] = AnnotatedShards

    types: TypeRules
    entity_types: tuple[str, ...]
    entities: str = location()

    def plan(self, work: Work) -> list[AnnotatedShards]:  # type: ignore[override]
        entities = [shard.path for shard in read_manifest(Folder(self.entities)).shards]
        units = super().plan(work)
        return [AnnotatedShards(*unit, entities[unit.first : unit.first + len(unit.paths)]) for unit in units]

    def _count(self, unit: AnnotatedShards, place: int) -> ShardCounts:  # type: ignore[override]
        sentences = read_sentences(Folder(self.sentences), unit.paths[place])
        entities = read_parquet(Folder(self.entities), unit.entities[place], ["entities"])

        def typing(tokens: Tokens, found: Occurrences) -> I64:
            types = entity_types(sentences, tokens, found, entities, self.entity_types, self.types.entity_match)
            return found.label * len(self.entity_types) + types

        return count_shard(sentences, self.rules, typing)


@dataclass(frozen=True)
class AddUpTypes(AddUp):
    columns: ClassVar[pa.Schema] = COUNTS.append(TYPE)


@dataclass(frozen=True)
class SelectTyped(Select):
    """The same, with the type of each phrase. How many phrases have a type is counted."""

    columns: ClassVar[pa.Schema] = TOTALS.append(TYPES)

    entity_types: tuple[str, ...]

    def _records(self, totals: pa.Table, write: TaskWriter) -> pa.Table:
        table = to_typed_phrases(totals, self.entity_types)
        for row in table.column("type").value_counts().to_pylist():
            write.counters[TYPE_COUNTER.format(row["values"])] += row["counts"]
        return table
