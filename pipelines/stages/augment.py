"""Augment: phrases (and pairs of texts that mean the same) -> augmented phrases.

SendPhrases, SendPairs    maps of the exchange by phrase, which brings a phrase and its paraphrases together
Augment                   reduce: the draws of the phrases of a range, a shard of the dataset
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from pipelines.engine.exchange import n_ranges, read_range, read_sorted, write_ranges
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.units import Range, Shards, range_units, shard_units
from schemas.errors import UserError
from schemas.keys import draw_key, halves, match_keys, order_by_key
from schemas.kinds.augmentations import AUGMENTATIONS, Operation
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.arrays import single
from transforms.augmentation.drawing import draw
from transforms.augmentation.interface import Augmenter
from transforms.augmentation.paraphrases import CANDIDATES, candidates, merged
from transforms.augmentation.registry import FROM_PAIRS, UNCHANGED, augmenter_identity, load_augmenter
from transforms.phrases.counting import phrase_keys

DRAWS_A_RANGE = 250_000
PAIRS_A_RANGE = 1_000_000
BATCH = 1 << 14
"""Draws that are made at once."""

SENT = pa.schema([("key_hi", pa.uint64()), ("key_lo", pa.uint64()), ("phrase", pa.string())])
"""A phrase by the 128-bit hash of its `match_keys`."""

PAIRS = pa.schema([*list(SENT)[:2], *CANDIDATES])
"""A candidate by the hash of its key."""


def _ranges(phrases: str, pairs: str, draws: int) -> int:
    """The number of ranges, and of shards."""
    by_draws = n_ranges(read_manifest(Folder(phrases)).rows * draws, rows_a_range=DRAWS_A_RANGE)
    by_pairs = n_ranges(read_manifest(Folder(pairs)).rows, rows_a_range=PAIRS_A_RANGE) if pairs else 1
    return max(by_draws, by_pairs)


@dataclass(frozen=True)
class SendPhrases(Stage):
    """Map of the exchange by phrase: the phrases of some shards."""

    name: ClassVar[str] = "send_phrases"
    Unit: ClassVar[type] = Shards

    draws: int
    phrases: str = location()
    pairs: str = location(default="")

    def plan(self, work: Work) -> list[Shards]:
        return shard_units(Folder(self.phrases), _ranges(self.phrases, self.pairs, self.draws))

    def process(self, unit: Shards, write: TaskWriter) -> None:
        tables = [SENT.empty_table()]
        for path in write.each(unit.paths, 0.8):
            phrases = single(read_parquet(Folder(self.phrases), path, ["phrase"]), "phrase")
            tables.append(pa.table([*phrase_keys(match_keys(phrases)), phrases], schema=SENT))
        write_ranges(write, "sent", pa.concat_tables(tables).combine_chunks(), ranges=unit.ranges)


@dataclass(frozen=True)
class SendPairs(Stage):
    """Map of the exchange by phrase: the texts of the pairs of some shards, each as a paraphrase of the other."""

    name: ClassVar[str] = "send_pairs"
    Unit: ClassVar[type] = Shards

    draws: int
    pairs: str = location()
    phrases: str = location()

    def plan(self, work: Work) -> list[Shards]:
        return shard_units(Folder(self.pairs), _ranges(self.phrases, self.pairs, self.draws))

    def process(self, unit: Shards, write: TaskWriter) -> None:
        folder = Folder(self.pairs)
        alike = read_manifest(folder).kind.alike
        assert alike is not None
        tables = [PAIRS.empty_table()]
        for path in write.each(unit.paths, 0.8):
            pairs = read_parquet(folder, path, [name for name in alike if name])
            weight = single(pairs, alike.weight) if alike.weight else pa.array(np.ones(pairs.num_rows, np.int64))
            found = candidates(single(pairs, alike.one), single(pairs, alike.other), weight)
            tables.append(pa.table([*phrase_keys(found.column("key")), *found.columns], schema=PAIRS))
        write_ranges(write, "paired", pa.concat_tables(tables).combine_chunks(), ranges=unit.ranges)


@dataclass(frozen=True)
class Augment(Stage):
    """Reduce of the exchange by phrase: the draws of a range of phrases, in order of hash: a shard of the dataset.

    `options` are those of the operations, by name; `places` are those of them that do not change the output.
    """

    name: ClassVar[str] = "augment"
    version: ClassVar[int] = 2
    counts: ClassVar[str] = "draws"
    Unit: ClassVar[type] = Range

    draws: int
    seed: int
    operations: tuple[Operation, ...]
    options: tuple[tuple[str, Any], ...]
    phrases: str = location()
    places: tuple[tuple[str, Any], ...] = location(default=())

    def plan(self, work: Work) -> list[Range]:
        return range_units(work, "send_phrases")

    def most_rows(self, work: Work) -> int:
        return read_manifest(Folder(self.phrases)).rows * self.draws

    def settings(self) -> dict[str, Any]:
        found = super().settings()
        return found | dict(found.pop("options"))

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        wanted = {each["operation"]: each for each in json.loads(json.dumps(list(models)))}
        for each in self._loaded():
            here = json.loads(json.dumps(augmenter_identity(each, dict(self.options + self.places))))
            there = wanted.get(each)
            if here != there:
                raise UserError(
                    f"--operations {each}: is {here} on the workers and {there} here; give both the same model and "
                    "libraries"
                )

    def _loaded(self) -> list[str]:
        """The operations that do something, without those that are made of the pairs of a range."""
        return [each.name for each in self.operations if each.name not in (*FROM_PAIRS, UNCHANGED)]

    def process(self, unit: Range, write: TaskWriter) -> None:
        with write.busy("loading the operations"):
            augmenters = {name: _cached(name, self.options + self.places) for name in self._loaded()}
        with write.part(0.1):
            sent = write.work.files("send_phrases", "sent")
            phrases = single(read_sorted(write.work.folder, sent, unit.number, SENT), "phrase")
        for each in self.operations:
            if each.name in FROM_PAIRS:
                paired = write.work.files("send_pairs", "paired")
                table = merged(read_range(write.work.folder, paired, unit.number, PAIRS).select(CANDIDATES.names))
                augmenters[each.name] = load_augmenter(each.name, {"candidates": table})
        step = max(BATCH // self.draws, 1)
        tables = [_KEYED.empty_table()]
        for first in write.each(range(0, len(phrases), step), 0.9):
            tables.append(self._draw(phrases.slice(first, step), augmenters, write))
        table = pa.concat_tables(tables).combine_chunks()
        order = order_by_key(table.column("key_hi").to_numpy(), table.column("key_lo").to_numpy())
        write.table("train", table.select(AUGMENTATIONS.names).take(pa.array(order)).cast(AUGMENTATIONS))

    def _draw(self, phrases: pa.StringArray, augmenters: Mapping[str, Augmenter], write: TaskWriter) -> pa.Table:
        """The rows of some phrases, with their keys (_KEYED)."""
        every = phrases.take(pa.array(np.repeat(np.arange(len(phrases)), self.draws)))
        number = np.tile(np.arange(self.draws, dtype=np.int32), len(phrases))
        texts = phrases.to_pylist()
        hi, lo = halves(draw_key(text, each, seed=self.seed) for text in texts for each in range(self.draws))
        drawn = draw(every, hi, self.operations, augmenters)
        kept = np.flatnonzero(drawn.operation >= 0)
        write.ledger.read += len(every)
        write.ledger.written += len(kept)
        write.ledger.filtered["nothing_to_change"] += len(every) - len(kept)
        operation = drawn.operation[kept]
        counts = np.bincount(operation, minlength=len(self.operations)).tolist()
        write.counters += Counter(
            {f"operation:{each.name}": n for each, n in zip(self.operations, counts, strict=True)}
        )
        write.counters += Counter(
            {f"nothing:{each.name}": n for each, n in zip(self.operations, drawn.failed.tolist(), strict=True)}
        )
        rows = pa.array(kept)
        augmented = drawn.augmented.take(rows)
        table = pa.table(
            [
                hi[kept],
                lo[kept],
                every.take(rows),
                number[kept],
                augmented,
                pa.array([each.granularity for each in self.operations], pa.string()).take(pa.array(operation)),
                pa.array([each.name for each in self.operations], pa.string()).take(pa.array(operation)),
            ],
            schema=_KEYED,
        )
        distinct = table.group_by(["phrase", "augmented"]).aggregate([]).num_rows
        write.counters["repeated"] += table.num_rows - distinct
        return table


_KEYED = pa.schema([*list(SENT)[:2], *AUGMENTATIONS])


@functools.lru_cache(maxsize=32)
def _cached(operation: str, options: tuple[tuple[str, Any], ...]) -> Augmenter:
    """An operation, loaded once per process."""
    return load_augmenter(operation, dict(options))
