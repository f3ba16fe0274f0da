"""Pairs: mentions -> two mentions of one entity, or of one surface.

Group, Pair     exchange by key (an entity, a surface): at most m mentions in turns, each with k partners
Fetch           from the shards of mentions that have them: what a pair keeps of a mention
OrderPairs      exchange by the hash of the pair: its two sides joined, near copies left out, in order
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.exchange import n_ranges, read_range, read_sorted, write_parts, write_ranges
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.contexts import RowRange, split_role
from pipelines.stages.units import (
    LICENCE_COLUMNS,
    Range,
    Shards,
    count_licences,
    range_units,
    shard_units,
    shards_a_unit,
)
from schemas.errors import UserError
from schemas.kinds.mention_pairs import MASKED_MENTION_PAIRS, MENTION_PAIRS, PAIRED_FIELDS
from schemas.manifest import SPLITS, read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from schemas.terms import PAIR_KINDS
from transforms.mentions.masking import cached_masker, masked_pairs
from transforms.mentions.options import CopyRules, MaskRules, PairRules
from transforms.mentions.pairs import (
    MEMBER_COLUMNS,
    MEMBERS,
    choose_pairs,
    largest_key,
    lowest,
    members_of,
    near_copies,
)

MEMBERS_A_RANGE = 4_000_000
PAIRS_A_SHARD = 100_000
ROW_GROUP = 8_192
SIDES_A_FILE = 4_000_000
MOST_PAIRS_OF_A_KEY = 200_000_000
"""With --all-pairs: those of a key with about 20,000 mentions."""

PAIR_SIDES = pa.schema(
    [
        ("key_hi", pa.uint64()),
        ("key_lo", pa.uint64()),
        ("side", pa.uint8()),
        ("kind", pa.uint8()),
        ("unmasked", pa.uint8()),
        ("validation", pa.bool_()),
        ("shard", pa.int32()),
        ("row", pa.int32()),
    ]
)
"""One of the two mentions of a pair, by its shard and row; the key is that of the pair."""

FETCHED = pa.schema(
    [*(PAIR_SIDES.field(name) for name in ("key_hi", "key_lo", "side", "kind", "unmasked")), *PAIRED_FIELDS]
)
"""One of the two mentions of a pair, with the columns that the pair keeps."""


@dataclass(frozen=True)
class Group(Stage):
    """Map of the exchange by key: in some shards, the first mentions of each group of an entity or a surface."""

    name: ClassVar[str] = "group"
    version: ClassVar[int] = 2
    Unit: ClassVar[type] = Shards

    rules: PairRules
    validation_rate: float
    seed: int
    mentions: str = location()

    def plan(self, work: Work) -> list[Shards]:
        folder = Folder(self.mentions)
        rows = read_manifest(folder).rows * len(self.rules.kinds)
        return shard_units(folder, n_ranges(rows, rows_a_range=MEMBERS_A_RANGE))

    def process(self, unit: Shards, write: TaskWriter) -> None:
        members = MEMBERS.empty_table()
        for shard, path in enumerate(write.each(unit.paths, 0.9), start=unit.first):
            mentions = read_parquet(Folder(self.mentions), path, [*MEMBER_COLUMNS, *LICENCE_COLUMNS])
            write.counters["mentions"] += mentions.num_rows
            count_licences(mentions, write.counters)
            new = members_of(
                mentions, shard=shard, rules=self.rules, seed=self.seed, validation_rate=self.validation_rate
            )
            members = lowest(pa.concat_tables([members, new]), rules=self.rules)
        write_ranges(write, "members", members, ranges=unit.ranges)


@dataclass(frozen=True)
class Pair(Stage):
    """Reduce of the exchange by key: the pairs of each key, by the unit that has their mentions."""

    name: ClassVar[str] = "pair"
    counts: ClassVar[str] = "candidate pairs"
    Unit: ClassVar[type] = Range

    rules: PairRules
    seed: int
    mentions: str = location()

    def most_rows(self, work: Work) -> int | None:
        if self.rules.all_pairs:
            return None
        # A pair has two rows.
        return 2 * self.rules.partners * sum(file.rows for file in work.files("group", "members"))

    def plan(self, work: Work) -> list[Range]:
        return range_units(work, "group")

    def process(self, unit: Range, write: TaskWriter) -> None:
        files = write.work.files("group", "members")
        members = read_range(write.work.folder, write.each(files, 0.1), unit.number, MEMBERS)
        with write.part(0.2):
            members = lowest(members, rules=self.rules)
        if (most := largest_key(members, rules=self.rules)) > MOST_PAIRS_OF_A_KEY:
            raise UserError(
                f"--all-pairs: one entity or surface alone has {most:,} pairs of mentions; leave out --all-pairs, and "
                "limit them with --mentions-per-key and --partners"
            )
        sides, share = PAIR_SIDES.empty_table(), 0.0
        with write.part(0.9, lambda: share):
            for chosen, counts in choose_pairs(members, rules=self.rules, seed=self.seed):
                share = counts.share
                write.ledger.read += counts.candidates
                write.ledger.filtered.update(counts.filtered)
                write.ledger.written += chosen.num_rows
                validation = chosen.column("validation").to_numpy(zero_copy_only=False)
                write.counters["chosen_for_validation"] += int(validation.sum())
                sides = pa.concat_tables([sides, _side(chosen, 1), _side(chosen, 2)])
                if sides.num_rows >= SIDES_A_FILE:
                    self._write(sides, write)
                    sides = PAIR_SIDES.empty_table()
        self._write(sides, write)

    def _write(self, sides: pa.Table, write: TaskWriter) -> None:
        mentions = Folder(self.mentions)
        part = sides.column("shard").to_numpy() // shards_a_unit(mentions)
        write_parts(write, "sides", sides.combine_chunks(), part, parts=len(shard_units(mentions, 0)))


def _side(chosen: pa.Table, side: int) -> pa.Table:
    """Side 1 or 2 of each pair (PAIR_SIDES).

    A pair of row 4 of shard 0 with row 7 of shard 2 has the sides (side 1, shard 0, row 4) and (side 2, shard 2,
    row 7). Both have the key of the pair, by which `_joined` finds them again.
    """
    columns = {
        **{name: chosen.column(name) for name in ("key_hi", "key_lo", "kind", "unmasked", "validation")},
        **{name: chosen.column(f"{name}_{side}") for name in ("shard", "row")},
        "side": pa.array(np.full(chosen.num_rows, side, dtype=np.uint8)),
    }
    return pa.table([columns[name] for name in PAIR_SIDES.names], schema=PAIR_SIDES)


class PairedShards(NamedTuple):
    """Consecutive shards of mentions, `first` the number of the first; `number` is that of the unit."""

    number: int
    first: int
    paths: list[str]
    ranges: list[int]  # of the exchange by pair, for each split


@dataclass(frozen=True)
class Fetch(Stage):
    """The mentions of pairs that are in some shards; map of the exchange by the hash of the pair."""

    name: ClassVar[str] = "fetch"
    Unit: ClassVar[type] = PairedShards

    mentions: str = location()

    def plan(self, work: Work) -> list[PairedShards]:
        pairs = sum(each.ledger.written for each in work.completions("pair") if each.ledger)
        validation = work.counter("pair", "chosen_for_validation")
        ranges = [n_ranges(pairs - validation, rows_a_range=PAIRS_A_SHARD), -(-validation // PAIRS_A_SHARD)]
        return [
            PairedShards(number, unit.first, unit.paths, ranges)
            for number, unit in enumerate(shard_units(Folder(self.mentions), 0))
        ]

    def process(self, unit: PairedShards, write: TaskWriter) -> None:
        folder, work = Folder(self.mentions), write.work
        files = work.files("pair", "sides")
        sides = read_range(work.folder, write.each(files, 0.2), unit.number, PAIR_SIDES)
        tables = []
        for shard, path in enumerate(write.each(unit.paths, 0.8), start=unit.first):
            here = sides.filter(pc.equal(sides.column("shard"), shard))
            if not here.num_rows:
                continue
            mentions = read_parquet(folder, path, _PAIRED)
            own = mentions.take(here.column("row"))
            columns = [own.column(name) if name in _PAIRED else here.column(name) for name in FETCHED.names]
            tables.append(pa.table([*columns, here.column("validation")], schema=_FETCHED_OF_SPLIT))
        fetched = pa.concat_tables([_FETCHED_OF_SPLIT.empty_table(), *tables]).combine_chunks()
        validation = fetched.column("validation")
        fetched = fetched.drop_columns("validation")
        splits = list(zip(SPLITS[:2], unit.ranges, (pc.invert(validation), validation), strict=True))
        for split, ranges, mask in write.each(splits):
            if ranges:
                write_ranges(write, split_role("fetched", split), fetched.filter(mask), ranges=ranges)


_FETCHED_OF_SPLIT = FETCHED.append(PAIR_SIDES.field("validation"))


@dataclass(frozen=True)
class OrderPairs(Stage):
    """Reduce of the exchange by pair: a shard of the dataset in hash order, the two sides of each pair in one row."""

    name: ClassVar[str] = "order_pairs"
    version: ClassVar[int] = 2
    counts: ClassVar[str] = "pairs"
    Unit: ClassVar[type] = RowRange

    copies: CopyRules
    masks: MaskRules | None

    def plan(self, work: Work) -> list[RowRange]:
        units = work.units("fetch")
        ranges = units[0][3] if units else [1, 0]
        return [RowRange(split, index, n) for split, n in zip(SPLITS[:2], ranges, strict=True) for index in range(n)]

    def process(self, unit: RowRange, write: TaskWriter) -> None:
        files = write.work.files("fetch", split_role("fetched", unit.split))
        sides = read_sorted(write.work.folder, write.each(files, 0.3), unit.number, FETCHED)
        with write.part(0.4):
            pairs = _joined(sides)
            texts = (pairs.column(f"text_{side}").to_pylist() for side in (1, 2))
            copies = near_copies(*texts, least=self.copies.near_copies)
        write.ledger.read += pairs.num_rows
        write.ledger.filtered.update({"near_copy": int(copies.sum())} if copies.any() else {})
        pairs = pairs.filter(pa.array(~copies)).combine_chunks()
        write.ledger.written += pairs.num_rows
        write.counters["validation"] += pairs.num_rows if unit.split == "validation" else 0
        for kind in PAIR_KINDS:
            write.counters[f"{kind}_pairs"] += pc.sum(pc.equal(pairs.column("kind"), kind)).as_py() or 0
        if self.masks is None:
            write.table(unit.split, pairs, row_group_rows=ROW_GROUP)
            return
        with write.busy("loading the tokenizer"):
            masker = cached_masker(self.masks)
        with write.file(unit.split, MASKED_MENTION_PAIRS) as write_group:
            for start in write.each(range(0, pairs.num_rows, ROW_GROUP)):
                piece = pairs.slice(start, ROW_GROUP).combine_chunks()
                anchor, positive = masked_pairs(piece, masker)
                write_group(pa.table([*piece.columns, anchor, positive], schema=MASKED_MENTION_PAIRS))


def _joined(sides: pa.Table) -> pa.Table:
    """The pairs (MENTION_PAIRS) of sides (FETCHED), in order of their keys. ValueError if a pair has only one side.

    Sides 2 1 1 2 of the pairs 3 3 5 5: sorted by key and side, rows 1 0 2 3 are the sides 1 2 1 2. The rows at even
    places, 1 and 2, are the first mentions, those at odd places, 0 and 3, the second.
    """
    order = [("key_hi", "ascending"), ("key_lo", "ascending"), ("side", "ascending")]
    sides = sides.take(pc.sort_indices(sides, sort_keys=order))
    each = np.arange(0, sides.num_rows, 2)
    one, other = sides.take(pa.array(each)), sides.take(pa.array(each + 1))
    if not (
        one.column("key_hi").equals(other.column("key_hi")) and one.column("key_lo").equals(other.column("key_lo"))
    ):
        raise ValueError("a pair with one side")
    kind = one.column("kind")
    of_entity = pc.equal(kind, PAIR_KINDS.index("entity"))
    page = pc.if_else(pc.equal(one.column("entity_id"), ""), one.column("target_title"), one.column("entity_id"))
    section = one.column("section")
    entity = pc.if_else(pc.equal(section, ""), page, pc.binary_join_element_wise(page, section, "#"))
    columns = {
        "kind": pc.take(pa.array(PAIR_KINDS), kind.combine_chunks()),
        "key": pc.if_else(of_entity, entity, one.column("mention")),
        **{f"{name}_1": one.column(name) for name in _PAIRED},
        **{f"{name}_2": other.column(name) for name in _PAIRED},
        "unmasked": one.column("unmasked"),
    }
    return pa.table([columns[name] for name in MENTION_PAIRS.names], schema=MENTION_PAIRS)


_PAIRED = [each.name for each in PAIRED_FIELDS]
