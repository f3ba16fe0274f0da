"""The sets that are made of pairs of phrases: labelled pairs, and pairs with contrast phrases.

SendPairs          map of the exchange by phrase: each pair, to both of its phrases
GatherPhrases      reduce: the distinct phrases of a range, numbered in order of hash
DrawNegatives      reduce: the pairs of a phrase, each with a random phrase as a negative
DrawContrasts      reduce: the pairs of a phrase, each with random contrast phrases
SendWords          map of the exchange by word: pairs that share one word, and phrases with that word
MatchWords         reduce: the pairs of a word, each with a negative that shares the word, too
ReadLabelled       map of the exchange by pair: labelled pairs from files
SortLabelled       reduce of the exchange by pair: labelled pairs in order of hash, counted
CutLabelled        the first of them, as many positives as negatives, in splits: shards of the dataset
OrderContrasts     reduce of the exchange by pair: pairs with contrasts in splits: shards of the dataset
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.exchange import KEY, n_ranges, read_range, read_sorted, write_ranges
from pipelines.engine.stage import File, Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.extract_pairs import ReadFiles, keyed
from pipelines.stages.units import Range, Shards, range_units, shard_units
from schemas.keys import pair_key, pair_name, split_of
from schemas.kinds.contrast_pairs import CONTRAST_PAIRS
from schemas.kinds.labelled_pairs import LABELLED_PAIRS
from schemas.kinds.phrase_pairs import PHRASE_PAIRS
from schemas.manifest import SPLITS, read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file, read_parquet
from transforms.arrays import I64, single
from transforms.pairs.drawing import Wanted, draw
from transforms.pairs.formats import PairRow
from transforms.pairs.overlap import is_plain, matches, phrase_order, shared_word
from transforms.phrases.counting import phrase_keys

ROWS_A_RANGE = 500_000
ROWS_A_SHARD = 250_000
ROW_GROUP = 65_536

_KEYS = [("key_hi", pa.uint64()), ("key_lo", pa.uint64())]
SENT = pa.schema(
    [*_KEYS, ("phrase", pa.string()), ("other", pa.string()), ("forward", pa.bool_()), *list(PHRASE_PAIRS)[2:]]
)
"""A pair by the hash of one of its phrases. `forward`: that is the first."""
PHRASES = pa.schema([("phrase", pa.string())])
LABELLED = pa.schema([*_KEYS, *LABELLED_PAIRS])
CONTRASTED = pa.schema([*_KEYS, *CONTRAST_PAIRS])
"""Rows by the hash of their pair."""
WORDS = pa.schema([*_KEYS, ("word", pa.string()), *((each.name, each.type) for each in PHRASE_PAIRS)])
"""A pair by the hash of the word that it shares; a phrase with the word where there is no paraphrase."""


class RangeTo(NamedTuple):
    """A range of keys of an exchange, whose rows go to another exchange with the ranges `out`."""

    number: int
    ranges: int
    out: int


def _write_splits(write: TaskWriter, table: pa.Table, names: Sequence[str], shares: Sequence[float], seed: int) -> None:
    """Rows, in order, as a shard of each split."""
    texts = [table.column(name).to_pylist() for name in names]
    split = np.array([split_of(pair_name(*pair), shares=shares, seed=seed) for pair in zip(*texts, strict=True)], int)
    for number, name in enumerate(SPLITS[: len(shares)]):
        write.table(name, table.filter(pa.array(split == number)), row_group_rows=ROW_GROUP)


def _in_order(table: pa.Table, other: str) -> pa.Table:
    """Rows in order of the hash of their pair; both directions of a pair by the bytes of the phrase."""
    keys = [(name, "ascending") for name in (*KEY, "phrase", other)]
    return table.take(pc.sort_indices(table, sort_keys=keys)).combine_chunks()


# ---- Random phrases


@dataclass(frozen=True)
class SendPairs(Stage):
    """Map of the exchange by phrase: the pairs of some shards, each to both of its phrases."""

    name: ClassVar[str] = "send_phrase_pairs"
    Unit: ClassVar[type] = Shards

    draws: int
    pairs: str = location()

    def plan(self, work: Work) -> list[Shards]:
        rows = read_manifest(Folder(self.pairs)).rows * (2 + self.draws)
        return shard_units(Folder(self.pairs), n_ranges(rows, rows_a_range=ROWS_A_RANGE))

    def process(self, unit: Shards, write: TaskWriter) -> None:
        tables = [SENT.empty_table()]
        for path in write.each(unit.paths, 0.8):
            pairs = read_parquet(Folder(self.pairs), path, PHRASE_PAIRS.names)
            texts = single(pairs, "phrase"), single(pairs, "paraphrase")
            rest = pairs.columns[2:]
            for forward, (one, other) in ((True, texts), (False, texts[::-1])):
                side = pa.array(np.full(len(one), forward))
                tables.append(pa.table([*phrase_keys(one), one, other, side, *rest], schema=SENT))
        write_ranges(write, "sent", pa.concat_tables(tables).combine_chunks(), ranges=unit.ranges)


@dataclass(frozen=True)
class GatherPhrases(Stage):
    """Reduce of the exchange by phrase: the distinct phrases of a range, in order of hash. All files are their list."""

    name: ClassVar[str] = "gather_phrases"
    Unit: ClassVar[type] = Range

    def plan(self, work: Work) -> list[Range]:
        return range_units(work, "send_phrase_pairs")

    def process(self, unit: Range, write: TaskWriter) -> None:
        files = write.work.files("send_phrase_pairs", "sent")
        schema = pa.schema([*_KEYS, ("phrase", pa.string())])
        table = read_sorted(write.work.folder, write.each(files, 0.8), unit.number, schema)
        write.table("phrases", pa.table([pc.unique(single(table, "phrase"))], schema=PHRASES), row_group_rows=ROW_GROUP)


class _Phrases:
    """The phrases of all ranges by their numbers, read from their files, one row group at a time."""

    def __init__(self, folder: Folder, files: Sequence[File]) -> None:
        self._folder, self._files = folder, files
        self._starts = [0, *itertools.accumulate(file.rows for file in files)]

    def __len__(self) -> int:
        return self._starts[-1]

    def look_up(self, numbers: I64) -> list[str]:
        """The phrases of some numbers, which ascend."""
        found: list[str] = []
        for file, (first, end) in zip(self._files, itertools.pairwise(self._starts), strict=True):
            here = numbers[np.searchsorted(numbers, first) : np.searchsorted(numbers, end)] - first
            if not len(here):
                continue
            with parquet_file(self._folder, file.path) as reader:
                for group in range(reader.num_row_groups):
                    begin = group * ROW_GROUP
                    some = here[np.searchsorted(here, begin) : np.searchsorted(here, begin + ROW_GROUP)] - begin
                    if len(some):
                        table = reader.read_row_group(group, use_threads=False)
                        found += single(table, "phrase").take(pa.array(some)).to_pylist()
        return found


@dataclass(frozen=True)
class _Draw(Stage):
    """Reduce of the exchange by phrase: random phrases for the pairs of the phrases of a range."""

    counts: ClassVar[str] = "pairs"
    Unit: ClassVar[type] = RangeTo
    lacking: ClassVar[str]  # the reason for which a pair without enough phrases is filtered

    draws: int
    seed: int
    pairs: str = location()

    def plan(self, work: Work) -> list[RangeTo]:
        rows = read_manifest(Folder(self.pairs)).rows
        out = n_ranges(rows * (1 + self.draws), rows_a_range=ROWS_A_RANGE)
        return [RangeTo(*each, out) for each in range_units(work, "send_phrase_pairs")]

    def drawn(self, unit: RangeTo, write: TaskWriter, *, apart: bool) -> Iterator[tuple[tuple[Any, ...], list[str]]]:
        """Each pair (phrase, other, score, relation, origin) with the phrases drawn for it."""
        files = write.work.files("send_phrase_pairs", "sent")
        table = read_range(write.work.folder, write.each(files, 0.2), unit.number, SENT)
        known: dict[str, set[str]] = defaultdict(set)
        for phrase, other in zip(*(table.column(name).to_pylist() for name in ("phrase", "other")), strict=True):
            known[phrase] |= {phrase, other}
        keys = [(name, "ascending") for name in (*KEY, "phrase", "other")]
        forward = table.filter(table.column("forward"))
        forward = forward.take(pc.sort_indices(forward, sort_keys=keys)).select(["phrase", "other", *_REST])
        rows = [*zip(*(each.to_pylist() for each in forward.columns), strict=True)]
        wanted = [Wanted(row[0], row[1], known[row[0]]) for row in rows]
        phrases = _Phrases(write.work.folder, write.work.files("gather_phrases", "phrases"))
        with write.part(0.7):
            found = draw(wanted, self.draws, phrases=len(phrases), seed=self.seed, look_up=phrases.look_up, apart=apart)
        for row, own in zip(rows, found, strict=True):
            write.ledger.read += 1
            if len(own) < self.draws:
                write.ledger.filtered[self.lacking] += 1
            else:
                write.ledger.written += 1
                yield row, own


_REST = PHRASE_PAIRS.names[2:]


@dataclass(frozen=True)
class DrawNegatives(_Draw):
    """Each pair as a positive, and its phrase with a random phrase as a negative."""

    name: ClassVar[str] = "draw_negatives"
    lacking: ClassVar[str] = "no_negative"

    def process(self, unit: RangeTo, write: TaskWriter) -> None:
        rows = list[tuple[Any, ...]]()
        for (phrase, other, score, _, origin), (negative,) in self.drawn(unit, write, apart=True):
            rows += [(phrase, other, 1, score, origin), (phrase, negative, 0, None, "drawn")]
        write_ranges(write, "rows", keyed(rows, LABELLED, seed=self.seed), ranges=unit.out)


@dataclass(frozen=True)
class DrawContrasts(_Draw):
    """Each pair with random contrast phrases."""

    name: ClassVar[str] = "draw_contrasts"
    lacking: ClassVar[str] = "too_few_phrases"

    def process(self, unit: RangeTo, write: TaskWriter) -> None:
        rows = [(phrase, other, found) for (phrase, other, *_), found in self.drawn(unit, write, apart=False)]
        write_ranges(write, "rows", keyed(rows, CONTRASTED, seed=self.seed), ranges=unit.out)


@dataclass(frozen=True)
class OrderContrasts(Stage):
    """Reduce of the exchange by pair: pairs with contrasts in order of hash, a shard of each split."""

    name: ClassVar[str] = "order_contrasts"
    counts: ClassVar[str] = "pairs"
    Unit: ClassVar[type] = Range

    splits: tuple[float, ...]
    seed: int

    def plan(self, work: Work) -> list[Range]:
        units = work.units("draw_contrasts")
        return [Range(index, units[0][2]) for index in range(units[0][2] if units else 0)]

    def process(self, unit: Range, write: TaskWriter) -> None:
        files = write.work.files("draw_contrasts", "rows")
        table = read_range(write.work.folder, write.each(files, 0.5), unit.number, CONTRASTED)
        write.ledger.read += table.num_rows
        write.ledger.written += table.num_rows
        rows = _in_order(table, "paraphrase").select(CONTRAST_PAIRS.names).cast(CONTRAST_PAIRS)
        _write_splits(write, rows, ("phrase", "paraphrase"), self.splits, self.seed)


# ---- One shared word


@dataclass(frozen=True)
class SendWords(Stage):
    """Map of the exchange by word: the pairs of some shards that share one word, and the phrases with each word."""

    name: ClassVar[str] = "send_words"
    counts: ClassVar[str] = "pairs"
    Unit: ClassVar[type] = Shards

    words: int
    phrases_per_word: int
    seed: int
    pairs: str = location()

    def plan(self, work: Work) -> list[Shards]:
        rows = read_manifest(Folder(self.pairs)).rows * (1 + 2 * self.words)
        return shard_units(Folder(self.pairs), n_ranges(rows, rows_a_range=ROWS_A_RANGE))

    def process(self, unit: Shards, write: TaskWriter) -> None:
        phrases: dict[str, set[str]] = defaultdict(set)
        shared: list[tuple[Any, ...]] = []
        for path in write.each(unit.paths, 0.8):
            pairs = read_parquet(Folder(self.pairs), path, PHRASE_PAIRS.names)
            for row in zip(*(each.to_pylist() for each in pairs.columns), strict=True):
                write.ledger.read += 1
                both = row[:2]
                if any(len(each.split(" ")) != self.words for each in both):
                    write.ledger.filtered["other_length"] += 1
                elif not all(is_plain(each, self.words) for each in both):
                    write.ledger.filtered["function_word"] += 1
                else:
                    for each in both:
                        for word in each.split(" "):
                            phrases[word].add(each)
                    if word := shared_word(*both):
                        shared.append((word, *row))
                    else:
                        write.ledger.filtered["other_overlap"] += 1
        kept = {word: {*first_phrases(own, self.phrases_per_word, self.seed)} for word, own in phrases.items()}
        rows: list[tuple[Any, ...]] = [
            (word, each, None, None, None, None) for word, own in kept.items() for each in sorted(own)
        ]
        for row in shared:
            if {*row[1:3]} <= kept[row[0]]:
                rows.append(row)
                write.ledger.written += 1
            else:
                write.ledger.filtered["beyond_phrases"] += 1
        columns = [*zip(*rows, strict=True)] or [()] * (len(WORDS) - 2)
        keys = phrase_keys(pa.array(columns[0], pa.string()))
        arrays = [pa.array(each, field.type) for each, field in zip((*keys, *columns), WORDS, strict=True)]
        write_ranges(write, "words", pa.table(arrays, schema=WORDS), ranges=unit.ranges)


def first_phrases(phrases: set[str], most: int, seed: int) -> list[str]:
    """The phrases of lowest hash, in its order."""
    return sorted(phrases, key=lambda each: phrase_order(each, seed))[:most]


@dataclass(frozen=True)
class MatchWords(Stage):
    """Reduce of the exchange by word: each pair of a word as a positive, and a negative that shares the word, too."""

    name: ClassVar[str] = "match_words"
    counts: ClassVar[str] = "pairs"
    Unit: ClassVar[type] = RangeTo

    phrases_per_word: int
    seed: int
    pairs: str = location()

    def plan(self, work: Work) -> list[RangeTo]:
        out = n_ranges(read_manifest(Folder(self.pairs)).rows * 2, rows_a_range=ROWS_A_SHARD)
        return [RangeTo(*each, out) for each in range_units(work, "send_words")]

    def process(self, unit: RangeTo, write: TaskWriter) -> None:
        files = write.work.files("send_words", "words")
        table = read_range(write.work.folder, write.each(files, 0.4), unit.number, WORDS)
        positives: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        phrases: dict[str, set[str]] = defaultdict(set)
        for word, *row in zip(*(each.to_pylist() for each in table.columns[2:]), strict=True):
            if row[1] is None:
                phrases[word].add(row[0])
            else:
                positives[word].append(tuple(row))
        rows = list[tuple[Any, ...]]()
        for word in write.each(sorted(positives), 0.8):
            known = first_phrases(phrases[word], self.phrases_per_word, self.seed)
            within = {*known}
            own = sorted(
                (row for row in positives[word] if row[0] in within and row[1] in within),
                key=lambda row: (pair_key(*row[:2], seed=self.seed), row[0]),
            )
            write.ledger.read += len(positives[word])
            if beyond := len(positives[word]) - len(own):
                write.ledger.filtered["beyond_phrases"] += beyond
            for number, negative in matches(word, [row[:2] for row in own], known, seed=self.seed):
                phrase, other, score, _, origin = own[number]
                if negative is None:
                    write.ledger.filtered["no_negative"] += 1
                    continue
                write.ledger.written += 1
                rows += [(phrase, other, 1, score, origin), (phrase, negative, 0, None, "matched")]
        write_ranges(write, "rows", keyed(rows, LABELLED, seed=self.seed), ranges=unit.out)


# ---- Labelled files


@dataclass(frozen=True)
class ReadLabelled(ReadFiles):
    """Map of the exchange by pair: short pairs of sentences from files, with their labels."""

    name: ClassVar[str] = "read_labelled"

    max_tokens: int = 0
    seed: int = 0

    def left_out_for(self, write: TaskWriter) -> Callable[[PairRow], str | None]:
        return self._reason

    def _reason(self, row: PairRow) -> str | None:
        if row.phrase == row.paraphrase:
            return "identical"
        longest = max(len(each.split(" ")) for each in row[:2])
        return "long_sentence_pair" if longest > self.max_tokens else None

    def values(self, row: PairRow, origin: str) -> tuple[Any, ...]:
        return (*row[:2], int(row.label), row.score, origin)

    def table(self, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        return keyed(rows, LABELLED, seed=self.seed)


# ---- Order


class SortedRange(NamedTuple):
    """A range of the exchange by pair, and the stage that wrote it."""

    number: int
    ranges: int
    after: str
    role: str


@dataclass(frozen=True)
class SortLabelled(Stage):
    """Reduce of the exchange by pair: the labelled pairs of a range in order of hash, counted by label.

    A pair that has both labels is left out.
    """

    name: ClassVar[str] = "sort_labelled"
    counts: ClassVar[str] = "rows"
    Unit: ClassVar[type] = SortedRange

    def plan(self, work: Work) -> list[SortedRange]:
        for stage, role in (("read_labelled", "pairs"), ("match_words", "rows"), ("draw_negatives", "rows")):
            if work.is_planned(stage):
                units = work.units(stage)
                ranges = units[0][-1] if units else 0
                return [SortedRange(index, ranges, stage, role) for index in range(ranges)]
        return []

    def process(self, unit: SortedRange, write: TaskWriter) -> None:
        files = write.work.files(unit.after, unit.role)
        table = _in_order(read_range(write.work.folder, write.each(files, 0.5), unit.number, LABELLED), "other")
        rows = [*zip(*(each.to_pylist() for each in table.columns), strict=True)]
        labels: dict[str, set[int]] = defaultdict(set)
        for _, _, phrase, other, label, *_ in rows:
            labels[pair_name(phrase, other)].add(label)
        kept, last = list[int](), None
        for number, (_, _, phrase, other, _, *_) in enumerate(rows):
            if len(labels[pair_name(phrase, other)]) > 1:
                write.ledger.filtered["both_labels"] += 1
            elif (phrase, other) == last:
                write.ledger.filtered["repeated_row"] += 1
            else:
                kept.append(number)
            last = phrase, other
        table = table.take(pa.array(kept, pa.int64()))
        write.ledger.read += len(rows)
        write.ledger.written += len(kept)
        found = Counter(table.column("label").to_pylist())
        write.counters.update({"negatives": found[0], "positives": found[1]})
        write.table("sorted", table.select(LABELLED_PAIRS.names))


@dataclass(frozen=True)
class CutLabelled(Stage):
    """The rows of lowest hash, as many of each label, in order: a shard of each split."""

    name: ClassVar[str] = "cut_labelled"
    counts: ClassVar[str] = "rows"
    Unit: ClassVar[type] = Range

    rows: int | None
    splits: tuple[float, ...]
    seed: int

    def plan(self, work: Work) -> list[Range]:
        units = work.units("sort_labelled")
        return [Range(index, len(units)) for index in range(len(units))]

    def most_rows(self, work: Work) -> int | None:
        return self.rows

    def process(self, unit: Range, write: TaskWriter) -> None:
        (file,) = (each for each in write.work.completions("sort_labelled")[unit.number].files)
        with parquet_file(write.work.folder, file.path) as reader:
            table = reader.read(use_threads=False)
        labels = table.column("label").to_numpy()
        kept = np.zeros(len(labels), dtype=bool)
        for label, left in enumerate(self._left(write.work, unit.number)):
            kept[np.flatnonzero(labels == label)[:left]] = True
        write.ledger.read += len(kept)
        write.ledger.written += int(kept.sum())
        if not kept.all():
            write.ledger.filtered["beyond_rows"] += int((~kept).sum())
        rows = table.filter(pa.array(kept)).combine_chunks().cast(LABELLED_PAIRS)
        _write_splits(write, rows, ("phrase", "other"), self.splits, self.seed)

    def _left(self, work: Work, number: int) -> Iterator[int]:
        """How many rows of each label, negatives first, are still to be taken after the ranges before this one."""
        done = [each.counters for each in work.completions("sort_labelled")]
        counts = [[each.get(name, 0) for each in done] for name in ("negatives", "positives")]
        most = min(*map(sum, counts), *([self.rows // 2] if self.rows is not None else []))
        return (max(most - sum(each[:number]), 0) for each in counts)
