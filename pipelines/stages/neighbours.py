"""Neighbours: phrases -> for each those that are most similar by edits. A unit is a strip of the matrix of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from schemas.dataset import Dataset
from schemas.kinds.neighbours import NEIGHBOURS
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from transforms.arrays import I64, single
from transforms.negatives.neighbours import Search, columns_of, require_compiler
from transforms.negatives.options import NeighbourRules

ROWS_A_UNIT = 16_384
COLUMNS_A_PART = 1 << 20
"""The phrases that are in memory with those of a unit, until the row group that brings them to so many."""


class Strip(NamedTuple):
    """Consecutive phrases of a dataset, whose neighbours among all of them are sought."""

    first: int
    rows: int
    paths: list[str]  # of all phrases


@dataclass(frozen=True)
class FindNeighbours(Stage):
    """The neighbours of some phrases among all, which pass by in parts."""

    name: ClassVar[str] = "find_neighbours"
    counts: ClassVar[str] = "phrases"
    compares_all: ClassVar[bool] = True
    Unit: ClassVar[type] = Strip

    rules: NeighbourRules
    phrases: str = location()

    def plan(self, work: Work) -> list[Strip]:
        manifest = read_manifest(Folder(self.phrases))
        rows, paths = manifest.rows, [each.path for each in manifest.shards]
        return [Strip(first, min(ROWS_A_UNIT, rows - first), paths) for first in range(0, rows, ROWS_A_UNIT)]

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        require_compiler()

    def process(self, unit: Strip, write: TaskWriter) -> None:
        dataset = Dataset.open(self.phrases)
        own = _slice(dataset, unit.first, unit.rows)
        search = Search(own, unit.first, self.rules)
        for first, phrases in _parts(dataset):
            with write.part(len(phrases) / (len(dataset) - first), search.progress):
                search.among(columns_of(phrases, first))
        found = search.neighbours()
        lists = pa.ListArray.from_arrays(
            pa.array(np.append(0, np.cumsum(found.found)), pa.int32()),
            pa.StructArray.from_arrays(
                [pa.array(found.place), _texts(dataset, found.place), pa.array(found.similarity.astype(np.float32))],
                fields=list(NEIGHBOURS.field("neighbours").type.value_type),
            ),
        )
        write.table("train", pa.table([own, lists.cast(NEIGHBOURS.field("neighbours").type)], schema=NEIGHBOURS))
        write.ledger.read += unit.rows
        write.ledger.written += unit.rows
        write.counters["neighbours"] += len(found.place)
        write.counters["without_neighbours"] += int((found.found == 0).sum())


def _slice(dataset: Dataset, first: int, rows: int) -> pa.Array:
    """The phrases [first, first + rows)."""
    tables, before = [], 0
    for shard in dataset.shards():
        start, end = max(first - before, 0), min(first + rows - before, shard.rows)
        if start < end:
            tables.append(dataset.table(shard, columns=["phrase"]).slice(start, end - start))
        before += shard.rows
    return single(pa.concat_tables(tables), "phrase")


def _parts(dataset: Dataset) -> Iterator[tuple[int, pa.Array]]:
    """All phrases in parts, each with the place of its first."""
    first, rows, tables = 0, 0, []
    for table in dataset.tables(columns=["phrase"]):
        tables.append(table)
        rows += table.num_rows
        if rows >= COLUMNS_A_PART:
            yield first, single(pa.concat_tables(tables), "phrase")
            first, rows, tables = first + rows, 0, []
    if rows:
        yield first, single(pa.concat_tables(tables), "phrase")


def _texts(dataset: Dataset, places: I64) -> pa.Array:
    """[n] the phrases at some places of the dataset."""
    order = np.argsort(places, kind="stable")
    in_order, taken = places[order], [pa.array([], pa.string())]
    for first, phrases in _parts(dataset):
        start, end = np.searchsorted(in_order, [first, first + len(phrases)])
        taken.append(phrases.take(pa.array(in_order[start:end] - first)))
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(taken).take(pa.array(back))
