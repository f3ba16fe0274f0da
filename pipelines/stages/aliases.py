"""Aliases: mentions -> pairs of surfaces of one entity, with counts. They are paraphrases that people wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipelines.engine.exchange import n_ranges, read_range, write_ranges
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.units import LICENCE_COLUMNS, Range, Shards, count_licences, range_units, shard_units
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.mentions.aliases import MENTION_COLUMNS, SURFACES, alias_pairs, count_surfaces, merge_surfaces

MENTIONS_A_RANGE = 4_000_000
ROW_GROUP = 65_536


@dataclass(frozen=True)
class CountSurfaces(Stage):
    """Map of the exchange by entity: in some shards, how often each entity has each surface."""

    name: ClassVar[str] = "count_surfaces"
    Unit: ClassVar[type] = Shards

    mentions: str = location()

    def plan(self, work: Work) -> list[Shards]:
        folder = Folder(self.mentions)
        return shard_units(folder, n_ranges(read_manifest(folder).rows, rows_a_range=MENTIONS_A_RANGE))

    def process(self, unit: Shards, write: TaskWriter) -> None:
        tables = []
        for path in write.each(unit.paths, 0.8):
            mentions = read_parquet(Folder(self.mentions), path, [*MENTION_COLUMNS, *LICENCE_COLUMNS])
            write.counters["mentions"] += mentions.num_rows
            count_licences(mentions, write.counters)
            tables.append(count_surfaces(mentions))
        write_ranges(write, "surfaces", merge_surfaces(tables), ranges=unit.ranges)


@dataclass(frozen=True)
class PairAliases(Stage):
    """Reduce of the exchange by entity: the pairs of its most frequent surfaces."""

    name: ClassVar[str] = "pair_aliases"
    version: ClassVar[int] = 2
    counts: ClassVar[str] = "candidate pairs"
    Unit: ClassVar[type] = Range

    aliases_per_entity: int
    min_count: int

    def plan(self, work: Work) -> list[Range]:
        return range_units(work, "count_surfaces")

    def process(self, unit: Range, write: TaskWriter) -> None:
        files = write.work.files("count_surfaces", "surfaces")
        surfaces = read_range(write.work.folder, write.each(files, 0.3), unit.number, SURFACES)
        with write.part(0.4):
            surfaces = merge_surfaces([surfaces])
        with write.part(0.7):
            pairs, filtered = alias_pairs(
                surfaces, aliases_per_entity=self.aliases_per_entity, min_count=self.min_count
            )
        write.ledger.read += pairs.num_rows + filtered.total()
        write.ledger.written += pairs.num_rows
        write.ledger.filtered.update(filtered)
        write.table("train", pairs, row_group_rows=ROW_GROUP)
