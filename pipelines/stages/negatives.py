"""Hard negatives: neighbours + embeddings -> the neighbours of each phrase that mean something else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from pipelines.engine.exchange import KEY, n_ranges, read_sorted, write_ranges
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.units import All, Range
from schemas.kinds.embeddings import vectors
from schemas.kinds.hard_negatives import HARD_NEGATIVES, MEAN_COSINE
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file, read_parquet
from transforms.arrays import I64, offsets_of, run_starts, single
from transforms.negatives.filtering import (
    F32,
    Candidates,
    cosines,
    hard_negatives,
    unit_vectors,
)
from transforms.negatives.options import HardNegativeRules
from transforms.phrases.counting import phrase_keys

STRIP_ROWS = 1 << 16
"""Phrases whose neighbours and vectors are in memory, while the vectors of all pass by."""
ROWS_A_RANGE = 250_000
ROW_GROUP = 1 << 16

_FILTERED = pa.schema([(name, pa.uint64()) for name in KEY] + list(HARD_NEGATIVES))


class Strip(NamedTuple):
    """Consecutive shards of the neighbours: the phrases [row, row + rows) of all."""

    paths: list[str]
    row: int
    rows: int
    ranges: int


@dataclass(frozen=True)
class MeasureCosine(Stage):
    """The mean cosine of all pairs of phrases: the square of the mean vector's length, in millionths."""

    name: ClassVar[str] = "measure_cosine"
    Unit: ClassVar[type] = All

    embeddings: str = location()

    def plan(self, work: Work) -> list[All]:
        return [All()]

    def process(self, unit: All, write: TaskWriter) -> None:
        groups = [*row_groups(Folder(self.embeddings))]
        sums = [each.vectors().sum(axis=0, dtype=np.float64) for each in write.each(groups) if each.rows]
        mean = np.sum(sums, axis=0) / max(sum(each.rows for each in groups), 1)
        write.counters[MEAN_COSINE] += round(1e6 * float(np.square(mean).sum()))


@dataclass(frozen=True)
class FilterNegatives(Stage):
    """Map of the exchange by phrase: the hard negatives of some phrases.

    The vectors of all phrases pass by once for each unit, a row group at a time, so memory depends on neither.
    """

    name: ClassVar[str] = "filter_negatives"
    version: ClassVar[int] = 2
    counts: ClassVar[str] = "candidates"
    Unit: ClassVar[type] = Strip

    rules: HardNegativeRules
    neighbours: str = location()
    embeddings: str = location()

    def plan(self, work: Work) -> list[Strip]:
        manifest = read_manifest(Folder(self.neighbours))
        ranges = n_ranges(manifest.rows, rows_a_range=ROWS_A_RANGE)
        strips = [Strip([], 0, 0, ranges)]
        for shard in manifest.shards:
            last = strips[-1]
            if last.rows and last.rows + shard.rows > STRIP_ROWS:
                strips.append(last := Strip([], last.row + last.rows, 0, ranges))
            strips[-1] = last._replace(paths=[*last.paths, shard.path], rows=last.rows + shard.rows)
        return strips

    def process(self, unit: Strip, write: TaskWriter) -> None:
        folder = Folder(self.neighbours)
        table = pa.concat_tables([read_parquet(folder, path) for path in unit.paths])
        phrases, lists = single(table, "phrase"), single(table, "neighbours")
        owner = np.repeat(np.arange(len(lists)), np.diff(offsets_of(lists)))
        items = lists.flatten()
        row, other = items.field("row").to_numpy(), items.field("phrase")
        cosine = self._cosines(unit, owner, row, write)
        found = hard_negatives(
            phrases,
            Candidates(owner, other, items.field("edit_similarity").to_numpy(), cosine),
            self.rules,
            mean=write.work.counter("measure_cosine", MEAN_COSINE) / 1e6 if self.rules.cosine == "centred" else 0.0,
        )
        write.ledger.read += len(owner)
        write.ledger.written += len(found.kept)
        write.ledger.filtered.update(found.filtered)
        write.counters["phrases"] += len(phrases)
        starts = run_starts(owner[found.kept])
        own = phrases.take(pa.array(owner[found.kept][starts]))
        with_neighbours = int((np.diff(offsets_of(lists)) > 0).sum())
        write.counters["without_neighbours"] += len(phrases) - with_neighbours
        write.counters["without_negatives"] += with_neighbours - len(own)
        kept = pa.array(found.kept)
        negatives = pa.StructArray.from_arrays(
            [
                other.take(kept),
                items.field("edit_similarity").take(kept),
                pa.array(cosine[found.kept]),
                pa.array(found.difference),
            ],
            fields=list(HARD_NEGATIVES.field("negatives").type.value_type),
        )
        edges = pa.array(np.append(starts, len(found.kept)), pa.int32())
        column = pa.ListArray.from_arrays(edges, negatives, type=HARD_NEGATIVES.field("negatives").type)
        keys = map(pa.array, phrase_keys(own))
        write_ranges(write, "negatives", pa.table([*keys, own, column], schema=_FILTERED), ranges=unit.ranges)

    def _cosines(self, unit: Strip, owner: I64, row: I64, write: TaskWriter) -> F32:
        """[candidates] the cosine of each phrase of the strip, `owner`, and its neighbour in `row` of all."""
        groups = [*row_groups(Folder(self.embeddings))]
        end = unit.row + unit.rows
        own = [
            each.vectors()[max(unit.row - each.row, 0) : max(end - each.row, 0)]
            for each in write.each([each for each in groups if each.row < end and unit.row < each.row + each.rows], 0.1)
        ]
        mine = np.concatenate(own) if own else np.empty((0, 0), np.float32)
        order = np.argsort(row, kind="stable")
        cuts = np.searchsorted(row[order], [each.row for each in groups] + [np.iinfo(np.int64).max])
        cosine = np.empty(len(owner), np.float32)
        for number, group in enumerate(write.each(groups, 0.8)):
            here = order[cuts[number] : cuts[number + 1]]
            if len(here):
                cosine[here] = cosines(mine, group.vectors(), (owner[here], row[here] - group.row))
        return cosine


class RowGroup(NamedTuple):
    """A row group of a dataset of embeddings: the rows [row, row + rows) of all."""

    folder: Folder
    path: str
    number: int
    row: int
    rows: int

    def vectors(self) -> F32:
        """[rows, dimension] its vectors, of length 1."""
        with parquet_file(self.folder, self.path) as reader:
            table = reader.read_row_group(self.number, columns=["embedding"], use_threads=False)
        return unit_vectors(vectors(table))


def row_groups(embeddings: Folder) -> Iterator[RowGroup]:
    row = 0
    for shard in read_manifest(embeddings).shards:
        with parquet_file(embeddings, shard.path) as reader:
            sizes = [reader.metadata.row_group(number).num_rows for number in range(reader.num_row_groups)]
        for number, rows in enumerate(sizes):
            yield RowGroup(embeddings, shard.path, number, row, rows)
            row += rows


@dataclass(frozen=True)
class OrderNegatives(Stage):
    """Reduce of the exchange by phrase: the shards of the dataset, in order of the phrases' hashes."""

    name: ClassVar[str] = "order_negatives"
    counts: ClassVar[str] = "phrases"
    Unit: ClassVar[type] = Range

    def plan(self, work: Work) -> list[Range]:
        ranges = work.units("filter_negatives")[0][3]
        return [Range(number, ranges) for number in range(ranges)]

    def process(self, unit: Range, write: TaskWriter) -> None:
        files = write.work.files("filter_negatives", "negatives")
        table = read_sorted(write.work.folder, write.each(files), unit.number, _FILTERED).select(HARD_NEGATIVES.names)
        write.ledger.read += table.num_rows
        write.ledger.written += table.num_rows
        write.table("train", table.cast(HARD_NEGATIVES), row_group_rows=ROW_GROUP)
