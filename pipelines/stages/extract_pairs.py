"""Pairs of phrases: files of them -> the distinct pairs that are kept.

ReadPairs     map of the exchange by pair: the pairs of some bytes of the input
MergePairs    reduce: each pair once, a shard of the dataset
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.exchange import KEY, n_ranges, read_range, write_ranges
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.extract import Reading, SourceFile, check_files, parts_of
from pipelines.stages.units import Range
from schemas.errors import CorruptInput, UserError
from schemas.keys import halves, pair_key
from schemas.kinds.phrase_pairs import PHRASE_PAIRS
from transforms.arrays import run_begins
from transforms.pairs.formats import PAIR_FORMATS, PairItem, PairRow
from transforms.pairs.options import PairRules
from transforms.pairs.rules import dropped_for, read_words, rules_of
from transforms.sources.formats import Segment
from transforms.sources.items import Corrupt, Filtered, Rejected
from transforms.sources.streams import SUFFIXES

UNIT_BYTES = 1 << 26
PAIRS_A_FILE = 250_000
PAIRS_A_RANGE = 1_000_000
ROW_GROUP = 65_536
_BYTES_A_PAIR = {"ppdb": 500, "paws": 150, "json": 40, "tsv": 30}
_PACKED = 8
"""Bytes of text to expect of a compressed byte."""

KEYED = pa.schema([("key_hi", pa.uint64()), ("key_lo", pa.uint64()), *PHRASE_PAIRS])


class PairSegments(NamedTuple):
    """Pieces of input files, [file, start byte, end byte], and the number of ranges of the exchange."""

    parts: list[list[int]]
    ranges: int


@dataclass(frozen=True)
class ReadFiles(Stage):
    """Map of the exchange by pair. A line is a pair, or filtered by a rule, or rejected because it is broken.

    A compressed file is one unit, so there is a checkpoint after every PAIRS_A_FILE pairs.
    """

    counts: ClassVar[str] = "lines"
    Unit: ClassVar[type] = PairSegments

    formats: tuple[tuple[str, int], ...]  # formats of the files, with the versions of their readers
    on_corrupt: str
    files: tuple[SourceFile, ...] = location()

    def plan(self, work: Work) -> list[PairSegments]:
        pairs = sum(int(self._text(number, each.file.size)) for number, each in enumerate(self.files))
        ranges = n_ranges(pairs, rows_a_range=PAIRS_A_RANGE)
        return [PairSegments(parts, ranges) for parts in parts_of(self.files, PAIR_FORMATS, UNIT_BYTES)]

    def _text(self, number: int, size: int) -> float:
        """The pairs to expect of some bytes of a file, roughly."""
        source = self.files[number]
        packed = Path(source.file.path).suffix.lower() in SUFFIXES
        return size * (_PACKED if packed else 1) / _BYTES_A_PAIR[source.format]

    def size(self, unit: PairSegments) -> float:
        return sum(self._text(number, end - start) for number, start, end in unit.parts)

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        check_files(self.files)

    @property
    def score_name(self) -> str:
        """The feature of PPDB that is the score."""
        return ""

    @abstractmethod
    def left_out_for(self, write: TaskWriter) -> Callable[[PairRow], str | None]:
        """A function that says why a pair is left out; None if it is kept."""

    @abstractmethod
    def values(self, row: PairRow, origin: str) -> tuple[Any, ...]:
        """What is written of a pair, after the hash of its phrases: those first."""

    @abstractmethod
    def table(self, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        """The `values` of pairs, by the hash of their phrases."""

    def process(self, unit: PairSegments, write: TaskWriter) -> None:
        part, items = write.resumed or (0, 0)
        left_out = self.left_out_for(write)
        reading, rows = Reading(unit.parts), list[tuple[Any, ...]]()
        with write.part(0.98, reading.share):
            for place, source, item in self._items(unit, part, items, reading):
                write.ledger.read += 1
                if not isinstance(item, PairRow):
                    self._leave_out(item, source, write)
                elif reason := left_out(item):
                    write.ledger.filtered[reason] += 1
                else:
                    rows.append(self.values(item, source.format))
                    write.ledger.written += 1
                if len(rows) >= PAIRS_A_FILE:
                    self._flush(rows, unit, write)
                    write.checkpoint(place)
        self._flush(rows, unit, write)

    def _items(
        self, unit: PairSegments, part: int, skip: int, reading: Reading
    ) -> Iterator[tuple[list[int], SourceFile, PairItem]]:
        """The items of a unit after the first `skip` of a part, each with the place after it: part, items of it."""
        for number in range(part, len(unit.parts)):
            file, start, end = unit.parts[number]
            reading.begin(number)
            source = self.files[file]
            read = PAIR_FORMATS[source.format].read
            found = read(source.filesystem, source.file, Segment(start, end), score=self.score_name, skip=skip)
            for items, item in enumerate(found, start=skip + 1):
                yield [number, items], source, item
            skip = 0

    def _leave_out(self, item: Filtered | Rejected | Corrupt, source: SourceFile, write: TaskWriter) -> None:
        name = source.file.name
        if isinstance(item, Filtered):
            write.ledger.filtered[item.reason] += 1
        elif isinstance(item, Rejected):
            write.reject(
                item.reason, source=name, position=item.position, excerpt=item.excerpt, exception=item.exception
            )
        elif self.on_corrupt == "skip":
            exception = item.message.replace(source.file.path, name)
            write.reject(
                item.reason, source=name, position=f"byte {item.byte}", excerpt=item.excerpt, exception=exception
            )
        else:
            raise CorruptInput(item.message)

    def _flush(self, rows: list[tuple[Any, ...]], unit: PairSegments, write: TaskWriter) -> None:
        """Write the pairs read so far, and forget them."""
        if rows:
            write_ranges(write, "pairs", self.table(rows), ranges=unit.ranges)
            rows.clear()


def keyed(rows: Sequence[tuple[Any, ...]], schema: pa.Schema, *, seed: int = 0) -> pa.Table:
    """Rows, whose first two values are phrases, by the hash of their pair."""
    columns = [*zip(*rows, strict=True)] or [()] * (len(schema) - 2)
    keys = halves(pair_key(*row[:2], seed=seed) for row in rows)
    arrays = [pa.array(each, field.type) for each, field in zip((*keys, *columns), schema, strict=True)]
    return pa.table(arrays, schema=schema)


@dataclass(frozen=True)
class ReadPairs(ReadFiles):
    """Map of the exchange by pair: the pairs of files that the rules keep."""

    name: ClassVar[str] = "read_pairs"

    rules: PairRules = field(default_factory=PairRules)
    vocabulary_sha256: str = ""
    vocabulary: str = location(default="")

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        super().check_machine(models)
        if self.vocabulary and not Path(self.vocabulary).is_file():
            raise UserError(f"--vocabulary {self.vocabulary}: is not there for the workers; put it where they reach it")

    @property
    def score_name(self) -> str:
        return self.rules.score

    def left_out_for(self, write: TaskWriter) -> Callable[[PairRow], str | None]:
        with write.busy("reading the vocabulary"):
            rules = rules_of(self.rules, _words(self.vocabulary) if self.vocabulary else None)
        return lambda row: dropped_for(row, rules)

    def values(self, row: PairRow, origin: str) -> tuple[Any, ...]:
        return (*row[:4], origin)

    def table(self, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        return keyed(rows, KEYED)


@functools.lru_cache(maxsize=1)
def _words(path: str) -> frozenset[str]:
    return read_words(Path(path))


@dataclass(frozen=True)
class MergePairs(Stage):
    """Reduce of the exchange by pair: each pair once, with its best score; in order of hash, a shard of the dataset.

    `maps`: the stages that send pairs; the last of a unit of theirs is the number of ranges.
    """

    name: ClassVar[str] = "merge_pairs"
    counts: ClassVar[str] = "pairs"
    Unit: ClassVar[type] = Range

    one_direction: bool
    maps: tuple[str, ...] = location(default=("read_pairs",))

    def plan(self, work: Work) -> list[Range]:
        units = [unit for name in self.maps for unit in work.units(name)]
        ranges = units[0][-1] if units else 0
        return [Range(index, ranges) for index in range(ranges)]

    def process(self, unit: Range, write: TaskWriter) -> None:
        files = [file for name in self.maps for file in write.work.files(name, "pairs")]
        table = read_range(write.work.folder, write.each(files, 0.5), unit.number, KEYED)
        write.ledger.read += table.num_rows
        pairs, repeated = each_once(table)
        write.ledger.filtered.update({"repeated": repeated} if repeated else {})
        kept, reversed_ = one_of_two(pairs)
        write.counters["both_directions"] += reversed_
        if self.one_direction:
            pairs = kept
            write.ledger.filtered.update({"reversed": reversed_} if reversed_ else {})
        write.ledger.written += pairs.num_rows
        write.table("train", pairs.select(PHRASE_PAIRS.names).cast(PHRASE_PAIRS), row_group_rows=ROW_GROUP)


def each_once(table: pa.Table) -> tuple[pa.Table, int]:
    """The distinct pairs (KEYED) in order of hash, phrase and paraphrase, and how many rows repeat another.

    Of rows of one pair the one with the highest score is kept; ties by relation and origin, nulls last.
    """
    order = [(name, "ascending") for name in (*KEY, "phrase", "paraphrase")]
    order += [("score", "descending"), ("relation", "ascending"), ("origin", "ascending")]
    table = table.take(pc.sort_indices(table, sort_keys=order)).combine_chunks()
    kept = _new(table, ("phrase", "paraphrase"))
    return table.filter(pa.array(kept)), int(len(kept) - kept.sum())


def one_of_two(pairs: pa.Table) -> tuple[pa.Table, int]:
    """Distinct pairs in one direction each, and how many were left out: those with the lower score."""
    order = [*((name, "ascending") for name in KEY), ("score", "descending"), ("phrase", "ascending")]
    pairs = pairs.take(pc.sort_indices(pairs, sort_keys=order)).combine_chunks()
    kept = _new(pairs, KEY)
    return pairs.filter(pa.array(kept)), int(len(kept) - kept.sum())


def _new(table: pa.Table, columns: Sequence[str]) -> np.ndarray:
    """[n] whether each row differs from the one before it in these columns."""
    codes = (table.column(name).combine_chunks() for name in columns)
    numbers = [
        each.dictionary_encode().indices.to_numpy() if pa.types.is_string(each.type) else each.to_numpy()
        for each in codes
    ]
    return run_begins(*numbers)
