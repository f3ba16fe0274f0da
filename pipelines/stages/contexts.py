"""Contexts: sentences + phrases + documents -> one masked context for each chosen occurrence.

Choose, Keep    exchange by phrase: the m occurrences of lowest hash; only their places are exchanged
Cut             for the shards of documents that have them: windows, masks
Order           exchange by the hash of the row: the order, and the negative of each row
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.exchange import n_ranges, read_range, read_sorted, write_parts, write_ranges
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.count import read_sentences
from pipelines.stages.units import Shards, shard_units, shards_a_unit
from schemas.keys import halves, is_validation, row_key
from schemas.kinds import phrases as phrases_kind
from schemas.kinds.contexts import CONTEXTS
from schemas.manifest import SPLITS, read_manifest
from schemas.negatives import KEY_COLUMNS, Circle, Keys, find_negatives
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file, read_parquet
from transforms.arrays import U64
from transforms.contexts.choosing import CHOSEN, Vocabulary, keep_lowest, occurrences_of
from transforms.contexts.options import WindowRules
from transforms.contexts.windows import cut_contexts, read_text, runs, window_bounds
from transforms.phrases.occurrences import find_occurrences
from transforms.phrases.options import PhraseRules
from transforms.phrases.tokens import read_tokens

ROWS_A_RANGE = 4_000_000
CONTEXTS_A_SHARD = 50_000
ROW_GROUP = 8_192

KEPT = pa.schema(
    [
        *(field for field in CHOSEN if field.name not in ("phrase_index", "priority")),
        ("phrase", pa.string()),
        ("label", pa.string()),
        ("frequency", pa.int64()),
    ]
)
"""A chosen occurrence, and the columns of its phrase."""

CUT = pa.schema(
    [
        ("key_hi", pa.uint64()),
        ("key_lo", pa.uint64()),
        *(field for field in CONTEXTS if field.name != "negative"),
    ]
)
"""A context without its negative; the key is `row_key`."""


class PhraseRange(NamedTuple):
    """The phrases with the numbers [first, end)."""

    part: int
    first: int
    end: int


class CutShards(NamedTuple):
    """Consecutive shards of sentences, and the shards of documents with the same numbers."""

    number: int
    first: int  # the number of the first shard
    sentences: list[str]
    documents: list[str]
    ranges: list[int]  # of the exchange by row, for each split


class RowRange(NamedTuple):
    """A range of row keys of a split: a shard of the dataset."""

    split: str
    number: int
    ranges: int


def _phrase_ranges(phrases: Folder, sentences: Folder, most: int) -> list[PhraseRange]:
    """Equal ranges of phrase numbers, so that the candidates of each fit into memory.

    10 phrases in 6 parts: each range has ceil(10 / 6) = 2 phrases, and that makes 5 ranges, [0, 2) to [8, 10).
    """
    manifest = read_manifest(phrases)
    units = len(shard_units(sentences, 0))
    parts = n_ranges(min(phrases_kind.occurrences(manifest), units * most * manifest.rows), rows_a_range=ROWS_A_RANGE)
    width = max(-(-manifest.rows // parts), 1)
    parts = max(-(-manifest.rows // width), 1)
    return [PhraseRange(part, part * width, min((part + 1) * width, manifest.rows)) for part in range(parts)]


@functools.lru_cache(maxsize=1)
def _vocabulary(phrases: str, fingerprint: str) -> Vocabulary:
    """The vocabulary, loaded once per process and fingerprint: the dataset at a path may change meanwhile."""
    folder = Folder(phrases)
    tables = []
    for shard in read_manifest(folder).shards:
        tables.append(read_parquet(folder, shard.path, ["phrase"]))
    return Vocabulary.of(pa.concat_tables(tables).column("phrase").combine_chunks())


def _read_phrases(phrases: Folder, first: int, end: int) -> pa.Table:
    """The phrases with the numbers [first, end), which count on from shard to shard.

    Phrases [4, 7) of shards with 5 and 3 rows: one row from row 4 of the first, two rows from row 0 of the second.
    """
    tables = []
    start = 0
    for shard in read_manifest(phrases).shards:
        if start < end and first < start + shard.rows:
            table = read_parquet(phrases, shard.path, ["phrase", "label", "frequency"])
            tables.append(table.slice(max(first - start, 0), end - max(first, start)))
        start += shard.rows
    empty = pa.schema([KEPT.field(name) for name in ("phrase", "label", "frequency")]).empty_table()
    return pa.concat_tables([empty, *(each.cast(empty.schema) for each in tables)]).combine_chunks()


@dataclass(frozen=True)
class Choose(Stage):
    """Map of the exchange by phrase: in some shards, the m occurrences of lowest hash of each phrase."""

    name: ClassVar[str] = "choose"
    version: ClassVar[int] = 2
    counts: ClassVar[str] = "occurrences"
    Unit: ClassVar[type] = Shards

    rules: PhraseRules
    contexts_per_phrase: int
    seed: int
    sentences: str = location()
    phrases: str = location()

    def plan(self, work: Work) -> list[Shards]:
        sentences = Folder(self.sentences)
        return shard_units(sentences, len(_phrase_ranges(Folder(self.phrases), sentences, self.contexts_per_phrase)))

    def process(self, unit: Shards, write: TaskWriter) -> None:
        phrases, sentences = Folder(self.phrases), Folder(self.sentences)
        manifest = read_manifest(phrases)
        vocabulary = _vocabulary(self.phrases, manifest.fingerprint)
        chosen = CHOSEN.empty_table()
        for shard, path in enumerate(write.each(unit.paths, 0.9), start=unit.first):
            table = read_sentences(sentences, path)
            tokens = read_tokens(table, lowercase=self.rules.lowercase)
            found = find_occurrences(table, tokens, self.rules)
            candidates = occurrences_of(vocabulary, tokens, found, shard=shard, seed=self.seed)
            write.ledger.read += len(found.start)
            write.ledger.written += candidates.num_rows
            if len(found.start) > candidates.num_rows:
                write.ledger.filtered["not_in_vocabulary"] += len(found.start) - candidates.num_rows
            write.counters["tokens"] += len(tokens.form)
            chosen = keep_lowest(pa.concat_tables([chosen, candidates]).combine_chunks(), most=self.contexts_per_phrase)
        width = max(-(-manifest.rows // unit.ranges), 1)
        part = chosen.column("phrase_index").to_numpy() // width
        write_parts(write, "chosen", chosen, part, parts=unit.ranges)


@dataclass(frozen=True)
class Keep(Stage):
    """Reduce of the exchange by phrase: the m occurrences of lowest hash of all, by the unit of their documents."""

    name: ClassVar[str] = "keep"
    version: ClassVar[int] = 2
    Unit: ClassVar[type] = PhraseRange

    contexts_per_phrase: int
    sentences: str = location()
    phrases: str = location()

    def most_rows(self, work: Work) -> int:
        return read_manifest(Folder(self.phrases)).rows * self.contexts_per_phrase

    def plan(self, work: Work) -> list[PhraseRange]:
        return _phrase_ranges(Folder(self.phrases), Folder(self.sentences), self.contexts_per_phrase)

    def process(self, unit: PhraseRange, write: TaskWriter) -> None:
        files = write.work.files("choose", "chosen")
        candidates = read_range(write.work.folder, write.each(files, 0.3), unit.part, CHOSEN)
        with write.part(0.6):
            kept = keep_lowest(candidates, most=self.contexts_per_phrase)
        write.counters["selected"] += kept.num_rows
        phrases = _read_phrases(Folder(self.phrases), unit.first, unit.end)
        own = phrases.take(pc.subtract(kept.column("phrase_index"), unit.first))
        kept = pa.table(
            [own.column(name) if name in own.column_names else kept.column(name) for name in KEPT.names], schema=KEPT
        )
        sentences = Folder(self.sentences)
        part = kept.column("shard").to_numpy() // shards_a_unit(sentences)
        write_parts(write, "kept", kept, part, parts=len(shard_units(sentences, 0)))


@dataclass(frozen=True)
class Cut(Stage):
    """Masked windows around the chosen occurrences; map of the exchange by the hash of the row."""

    name: ClassVar[str] = "cut"
    counts: ClassVar[str] = "occurrences"
    version: ClassVar[int] = 2
    Unit: ClassVar[type] = CutShards

    window: WindowRules
    rules: PhraseRules
    validation_rate: float
    seed: int
    sentences: str = location()
    documents: str = location()

    def plan(self, work: Work) -> list[CutShards]:
        documents = [shard.path for shard in read_manifest(Folder(self.documents)).shards]
        rows = work.counter("keep", "selected")
        shares = (1 - self.validation_rate, self.validation_rate)
        ranges = [n_ranges(int(rows * share), rows_a_range=CONTEXTS_A_SHARD) if share else 0 for share in shares]
        return [
            CutShards(number, unit.first, unit.paths, documents[unit.first : unit.first + len(unit.paths)], ranges)
            for number, unit in enumerate(shard_units(Folder(self.sentences), 0))
        ]

    def process(self, unit: CutShards, write: TaskWriter) -> None:
        files = write.work.files("keep", "kept")
        kept = read_range(write.work.folder, files, unit.number, KEPT)
        tables = []
        shards = list(zip(unit.sentences, unit.documents, strict=True))
        for place, paths in enumerate(write.each(shards, 0.8)):
            here = kept.filter(pc.equal(kept.column("shard"), unit.first + place))
            if here.num_rows:
                tables.append(self._cut_shard(here, *paths, write))
        cut = pa.concat_tables([CUT.empty_table(), *tables]).combine_chunks()
        write.ledger.read += kept.num_rows
        write.ledger.written += cut.num_rows
        validation = self._validation(cut)
        splits = list(zip(SPLITS[:2], unit.ranges, (pc.invert(validation), validation), strict=True))
        for split, ranges, mask in write.each(splits):
            if ranges:
                write_ranges(write, split_role("cut", split), cut.filter(mask), ranges=ranges)

    def _cut_shard(self, kept: pa.Table, sentences_path: str, documents_path: str, write: TaskWriter) -> pa.Table:
        """The contexts (CUT) of the occurrences `kept` (KEPT) of one shard.

        `start` and `end` become numbers of tokens in the shard: tokens [3, 5) of a sentence whose first token is
        number 50 are [53, 55).
        """
        sentences = read_sentences(Folder(self.sentences), sentences_path)
        tokens = read_tokens(sentences, lowercase=self.rules.lowercase)
        write.counters["tokens"] += len(tokens.form)
        with parquet_file(Folder(self.documents), documents_path) as reader:
            columns = ["doc_id", "source", "title", "url", "licence", "text"]
            documents = reader.read(columns=columns, use_threads=False).combine_chunks()
        text = read_text(tokens, documents, unknown_token=self.window.unknown_token)
        low, high = runs(tokens, text)
        sentence, start, end = (
            kept.column(name).to_numpy().astype(np.int64) for name in ("sentence", "start_token", "end_token")
        )
        start, end = start + tokens.first[sentence], end + tokens.first[sentence]
        doc_id = documents.column("doc_id").take(pa.array(text.document[sentence])).to_pylist()
        key_hi, key_lo = self._row_keys(doc_id, tokens.start_char[start].tolist(), kept.column("phrase").to_pylist())
        first, last = window_bounds(
            start,
            end,
            low[sentence],
            high[sentence],
            rules=self.window,
            chance=(key_lo >> np.uint64(1)).astype(np.int64),
        )
        known = np.flatnonzero(text.unknown_words(first, last) <= self.window.max_unknown_words)
        if len(known) < len(start):
            write.ledger.filtered["unknown_words"] += len(start) - len(known)
            kept = kept.take(pa.array(known))
            sentence, start, end, first, last = (each[known] for each in (sentence, start, end, first, last))
            key_hi, key_lo = key_hi[known], key_lo[known]
        owner = documents.drop_columns("text").take(pa.array(text.document[sentence]))
        doc_id = owner.column("doc_id").to_pylist()
        cut = cut_contexts(tokens, text, start, end, first, last, rules=self.window)
        sentence_start = sentences.column("start_char").to_numpy()[sentence].tolist()
        columns_of_rows = {
            "key_hi": key_hi,
            "key_lo": key_lo,
            **cut._asdict(),
            "sentence_id": [f"{each}#{at}" for each, at in zip(doc_id, sentence_start, strict=True)],
            "start_char": tokens.start_char[start],
            "end_char": tokens.end_char[end - 1],
            **{name: owner.column(name) for name in ("doc_id", "source", "title", "url", "licence")},
            **{name: kept.column(name) for name in ("phrase", "label", "frequency")},
        }
        licences = dict(zip(doc_id, owner.column("licence").to_pylist(), strict=True))
        write.counters.update(f"licence:{licence}" for licence in licences.values())
        return pa.table({name: columns_of_rows[name] for name in CUT.names}, schema=CUT)

    def _row_keys(self, doc_ids: list[str], starts: list[int], phrases: list[str]) -> tuple[U64, U64]:
        places = zip(doc_ids, starts, phrases, strict=True)
        return halves(
            row_key(seed=self.seed, doc_id=doc_id, start_char=at, phrase=phrase) for doc_id, at, phrase in places
        )

    def _validation(self, cut: pa.Table) -> pa.Array:
        """[n] whether each row is of the validation split."""
        doc_ids = cut.column("doc_id").to_pylist()
        chosen = {each: is_validation(each, rate=self.validation_rate, seed=self.seed) for each in set(doc_ids)}
        return pa.array([chosen[each] for each in doc_ids], pa.bool_())


def split_role(kind: str, split: str) -> str:
    """The role of a split's file that a later stage reads."""
    return f"{kind}-{split}"


@dataclass(frozen=True)
class Order(Stage):
    """Reduce of the exchange by row: a shard of the dataset in hash order, each row with its negative.

    `schemas/negatives.py` says which row that is. The search continues in the next shards, and after the last one in
    the first.
    """

    name: ClassVar[str] = "order"
    counts: ClassVar[str] = "contexts"
    version: ClassVar[int] = 2
    Unit: ClassVar[type] = RowRange

    negatives: str
    mask_token: str

    def plan(self, work: Work) -> list[RowRange]:
        units = work.units("cut")
        ranges = units[0][4] if units else [1, 0]
        return [RowRange(split, index, n) for split, n in zip(SPLITS[:2], ranges, strict=True) for index in range(n)]

    def process(self, unit: RowRange, write: TaskWriter) -> None:
        with write.part(0.4):
            circle = _Circle(write, unit)
        table = circle.own
        phrases = table.column("phrase").to_pylist()
        with write.part():
            negative, counters = find_negatives(
                circle, unit.number, phrases, negatives=self.negatives, mask=self.mask_token
            )
        write.counters.update(counters)
        columns = [
            pa.array(negative, pa.string()) if name == "negative" else table.column(name) for name in CONTEXTS.names
        ]
        write.ledger.read += table.num_rows
        write.ledger.written += table.num_rows
        write.table(unit.split, pa.table(columns, schema=CONTEXTS), row_group_rows=ROW_GROUP)


class _Circle(Circle):
    """The ranges of a split; the unit's own stays in memory."""

    def __init__(self, write: TaskWriter, unit: RowRange) -> None:
        self._write, self._number = write, unit.number
        self._files = write.work.files("cut", split_role("cut", unit.split))
        self.ranges = unit.ranges
        self.own = self._range(unit.number, CUT)

    def keys(self, number: int) -> Keys:
        return Keys.of(self.own if number == self._number else self._range(number, _CUT_KEYS))

    def contexts(self, number: int) -> pa.ChunkedArray:
        table = self.own if number == self._number else self._range(number, _CUT_CONTEXTS)
        return table.column("context")

    def each(self, numbers: Sequence[int]) -> Iterable[int]:
        return self._write.each(numbers, 0.6)

    def _range(self, index: int, schema: pa.Schema) -> pa.Table:
        return read_sorted(self._write.work.folder, self._write.each(self._files), index, schema)


_CUT_KEYS = pa.schema([CUT.field(name) for name in ("key_hi", "key_lo", *KEY_COLUMNS)])
_CUT_CONTEXTS = pa.schema([CUT.field(name) for name in ("key_hi", "key_lo", "context")])
