"""Decontamination: a dataset -> the same without the rows that hold texts of evaluation sets.

Decontaminate    for a shard: its rows without overlaps, and a list of the overlaps
FindNegatives    contexts alone: the negatives again, because each is the context of another row
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.contexts import ROW_GROUP, RowRange, split_role
from schemas import overlaps
from schemas.kind import Kind
from schemas.kinds.contexts import CONTEXTS
from schemas.manifest import SPLITS, Manifest, read_manifest
from schemas.negatives import KEY_COLUMNS, Circle, Keys, find_negatives
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file, read_parquet
from transforms.arrays import offsets_of, single
from transforms.decontamination.files import EvaluationFile, texts_of
from transforms.decontamination.options import OverlapRules
from transforms.decontamination.overlaps import EvaluationTexts, Overlap, Place

BATCH = 1 << 14
"""Rows that are compared at a time: bounds memory."""


class SplitShard(NamedTuple):
    """A shard of a split of the dataset. The shard of the same number is made from it."""

    split: str
    path: str
    is_first: bool


@functools.lru_cache(maxsize=1)
def evaluation_texts(files: tuple[EvaluationFile, ...], rules: OverlapRules) -> EvaluationTexts:
    """The texts of evaluation sets, read once a process."""
    return EvaluationTexts(
        ((Place(number, each.place), each.text) for number, file in enumerate(files) for each in texts_of(file)), rules
    )


@dataclass(frozen=True)
class Decontaminate(Stage):
    """The rows of each shard without overlaps, or with `mark` all rows; and a list of the overlaps.

    `ordered_again`: another stage makes the shards, of what this one leaves.
    """

    name: ClassVar[str] = "decontaminate"
    counts: ClassVar[str] = "rows"
    Unit: ClassVar[type] = SplitShard

    rules: OverlapRules
    evaluation_formats: tuple[tuple[str, int], ...]  # of the files, with the versions of their readers
    mark: bool
    ordered_again: bool = location()
    dataset: str = location()
    files: tuple[EvaluationFile, ...] = location()

    def plan(self, work: Work) -> list[SplitShard]:
        shards = [
            (split, shard.path)
            for split, shards in read_manifest(Folder(self.dataset)).splits.items()
            for shard in shards
        ]
        return [SplitShard(*each, is_first=number == 0) for number, each in enumerate(shards)]

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        evaluation_texts(self.files, self.rules)

    def process(self, unit: SplitShard, write: TaskWriter) -> None:
        with write.busy("reading the evaluation sets"):
            known = evaluation_texts(self.files, self.rules)
        manifest = read_manifest(Folder(self.dataset))
        if unit.is_first:
            write.counters.update({f"licence:{name}": number for name, number in manifest.licences.items()})
        role = split_role("left", unit.split) if self.ordered_again else unit.split
        first = 0
        with (
            parquet_file(Folder(self.dataset), unit.path, manifest.schema) as reader,
            write.file(role, manifest.schema) as put,
        ):
            for number in write.each(range(reader.num_row_groups)):
                table = reader.read_row_group(number, use_threads=False)
                left = self._without_overlaps(table, first, unit.path, manifest, known, write)
                first += table.num_rows
                if left.num_rows:  # `datasets` fails on row groups without rows
                    put(left)

    def _without_overlaps(
        self, table: pa.Table, first: int, shard: str, manifest: Manifest, known: EvaluationTexts, write: TaskWriter
    ) -> pa.Table:
        """A row group without the rows that have overlaps. `first`: the number of its first row in the shard."""
        left = [table.slice(0, 0)]
        for start in write.each(range(0, table.num_rows, BATCH)):
            rows = table.slice(start, BATCH)
            found = [*overlaps_of(rows, manifest.kind, manifest.options, known)]
            for column, _, each in found:
                file = self.files[each.where.file].name
                write.counters[overlaps.counter(column, file)] += 1
                values = (shard, first + start + each.row, column, each.words, file, each.where.place)
                write.side(overlaps.SIDE, dict(zip(overlaps.OVERLAPS.names, values, strict=True)))
            write.counters[overlaps.ROWS] += len({each.row for _, _, each in found})
            left.append(rows if self.mark else without(rows, [(column, item) for column, item, _ in found]))
        kept = pa.concat_tables(left)
        write.ledger.read += table.num_rows
        write.ledger.written += kept.num_rows
        write.ledger.filtered.update({"evaluation_text": n} if (n := table.num_rows - kept.num_rows) else {})
        for check in manifest.kind.checks(manifest):
            write.counters.update(check.counters(kept))
        if "tokens" in kept.column_names:
            write.counters["tokens"] += pc.sum(pc.list_value_length(kept.column("tokens"))).as_py() or 0
        return kept


def overlaps_of(
    table: pa.Table, kind: Kind, options: Mapping[str, Any], known: EvaluationTexts
) -> Iterator[tuple[str, int, Overlap]]:
    """The overlaps of rows, each with its column and the number of its text in that: the row, or the item of lists."""
    table = kind.unmasked(table, options)
    for name in kind.texts:
        column, _, field = name.partition(".")
        texts = single(table, column)
        owner = np.arange(len(texts))
        if field:
            owner = np.repeat(owner, np.diff(offsets_of(texts)))
            texts = texts.flatten().field(field)
        for each in known.overlaps(texts):
            yield name, each.row, each._replace(row=int(owner[each.row]))


def without(table: pa.Table, texts: Sequence[tuple[str, int]]) -> pa.Table:
    """Rows less those with one of these texts (column, number). Lists lose items; rows whose lists lose all go, too.

    >>> rows = pa.table({"phrase": ["a", "b"], "near": [[{"phrase": "c"}], [{"phrase": "a"}, {"phrase": "d"}]]})
    >>> without(rows, [("near.phrase", 0), ("near.phrase", 1)]).to_pylist()
    [{'phrase': 'b', 'near': [{'phrase': 'd'}]}]
    """
    kept = np.ones(table.num_rows, dtype=bool)
    for name in dict.fromkeys(name for name, _ in texts):
        column, _, field = name.partition(".")
        gone = np.array([number for of, number in texts if of == name], np.int64)
        if not field:
            kept[gone] = False
            continue
        lists = single(table, column)
        stays = np.ones(len(lists.flatten()), dtype=bool)
        stays[gone] = False
        edges = np.append(0, np.cumsum(stays))[offsets_of(lists)]
        kept &= (np.diff(edges) > 0) | (np.diff(offsets_of(lists)) == 0)
        items = lists.flatten().filter(pa.array(stays))
        shorter = pa.ListArray.from_arrays(pa.array(edges.astype(np.int32)), items, type=lists.type)
        table = table.set_column(table.column_names.index(column), table.schema.field(column), shorter)
    return table.filter(pa.array(kept))


@dataclass(frozen=True)
class FindNegatives(Stage):
    """The contexts that are left, each with its negative among them (`schemas/negatives.py`)."""

    name: ClassVar[str] = "find_negatives"
    counts: ClassVar[str] = "contexts"
    Unit: ClassVar[type] = RowRange

    negatives: str
    mask_token: str

    def plan(self, work: Work) -> list[RowRange]:
        found = ((split, len(work.files("decontaminate", split_role("left", split)))) for split in SPLITS)
        return [RowRange(split, number, n) for split, n in found for number in range(n)]

    def process(self, unit: RowRange, write: TaskWriter) -> None:
        circle = _Left(write, unit)
        table = circle.read(unit.number, CONTEXTS.names)
        phrases = table.column("phrase").to_pylist()
        found, counters = find_negatives(circle, unit.number, phrases, negatives=self.negatives, mask=self.mask_token)
        write.counters.update(counters)
        place = CONTEXTS.get_field_index("negative")
        table = table.set_column(place, CONTEXTS.field(place), pa.array(found, pa.string()))
        write.ledger.read += table.num_rows
        write.ledger.written += table.num_rows
        write.table(unit.split, table, row_group_rows=ROW_GROUP)


class _Left(Circle):
    """The shards of a split, as far as they are left."""

    def __init__(self, write: TaskWriter, unit: RowRange) -> None:
        self._write, self.ranges = write, unit.ranges
        self._files = write.work.files("decontaminate", split_role("left", unit.split))

    def read(self, number: int, columns: Sequence[str]) -> pa.Table:
        return read_parquet(self._write.work.folder, self._files[number].path, list(columns))

    def keys(self, number: int) -> Keys:
        return Keys.of(self.read(number, KEY_COLUMNS))

    def contexts(self, number: int) -> pa.ChunkedArray:
        return self.read(number, ["context"]).column("context")

    def each(self, numbers: Sequence[int]) -> Iterable[int]:
        return self._write.each(numbers)
