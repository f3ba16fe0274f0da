"""How many keys there are, and with how many mentions each, in a corpus of which a sample is known.

A key is an entity, a surface, or both together. Distinct keys grow with mentions by a power whose exponent falls, since
the world has so many entities. Where the exponent is b, keys with j mentions or more are to all keys about as the
product of (i - b) / i for i < j (Pitman and Yor 1997, of a process whose distinct values grow by the power b): where
few new keys come, those known come again. So both follow from the exponent; what the sample has is scaled by that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.stage import File, Work
from pipelines.planning.estimates import Estimate
from schemas.storage.parquet import parquet_file
from schemas.terms import PAIR_KINDS
from transforms.arrays import I64

_LEAST, _MOST = 0.15, 0.95
"""Exponents: that of a closed world at its end, and that of an open one in which next to nothing comes again."""

_WIDER = (0.6, 1.7)
"""How far the truth lay beyond, where an eighth of the documents of 130 articles stood for all: 34 times of 36 it lies
within. The high end is 4 to 12 times the low one.
"""


class Keys(NamedTuple):
    """Keys of a sample."""

    parts: Sequence[tuple[float, float]]  # mentions and distinct keys of nested parts of the sample, the smallest first
    shares: Sequence[float]  # of the distinct keys of the sample, those with 1, 2, ... mentions or more

    def seen(self, weights: Sequence[float]) -> float:
        """In the sample: for each key with j mentions the sum of the first j weights."""
        distinct = self.parts[-1][1] if self.parts else 0
        return distinct * sum(weight * _or_last(self.shares, j) for j, weight in enumerate(weights))

    def foretell(self, mentions: Estimate, weights: Sequence[float]) -> Estimate:
        """The same among so many mentions: with exponents that stay, fall, and fall fast."""
        if not self.parts or not self.parts[-1][1]:
            return Estimate.exactly(0)
        slope, bend = _fit(self.parts)
        bends = (0.0, min(max(bend, 0.005), 0.08), min(max(2 * bend, 0.02), 0.3))
        ends = [
            self._at(amount, weights, slope=slope, bend=each)
            for amount in (mentions.low, mentions.high)
            for each in bends
        ]
        middle = self._at(mentions.middle, weights, slope=slope, bend=bends[1])
        return Estimate(_WIDER[0] * min(*ends, middle), middle, _WIDER[1] * max(*ends, middle))

    def _at(self, mentions: float, weights: Sequence[float], *, slope: float, bend: float) -> float:
        known, distinct = self.parts[-1]
        if mentions <= 0:
            return 0.0
        x = math.log(mentions / known)
        curved = min(x, (slope - _LEAST) / bend) if bend and x > 0 else x
        falling = bend if x > 0 else 0
        now = slope - falling * curved
        log = slope * curved - falling / 2 * curved**2 + now * (x - curved)
        total, before, ratio = 0.0, 1.0, 1.0
        for j, weight in enumerate(weights, start=1):
            if j > 1:
                # The product that is now, over that of the sample.
                ratio *= (j - 1 - now) / (j - 1 - slope)
            share = _or_last(self.shares, j - 1) * ratio
            if j > len(self.shares):
                share *= len(self.shares) / j
            before = min(share, before)
            total += weight * before
        return distinct * math.exp(log) * total


def _fit(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The exponent by which distinct keys grow at the end of nested parts, and how fast that falls."""
    logs = [(math.log(mentions), math.log(distinct)) for mentions, distinct in parts if mentions and distinct]
    slopes = [(y - y0) / (x - x0) for (x0, y0), (x, y) in pairwise(logs) if x > x0]
    if not slopes:
        return 0.8, 0.05
    bend = max((slopes[-2] - slopes[-1]) / math.log(2), 0) if len(slopes) > 1 else 0.05
    # The slope between two parts is that of the middle between them.
    slope = slopes[-1] - bend * (logs[-1][0] - logs[-2][0]) / 2
    return min(max(slope, _LEAST), _MOST), bend


def _or_last(shares: Sequence[float], place: int) -> float:
    return shares[min(place, len(shares) - 1)] if shares else 0.0


def pairs_of_a_key(n: int, *, partners: int) -> int:
    """Candidate pairs among n mentions on a ring, each paired with the next `partners`."""
    return min(n * partners, n * (n - 1) // 2)


def pair_weights(*, mentions_per_key: int, partners: int) -> list[float]:
    """How many more candidate pairs a key has with each further mention, up to those that take part."""
    counts = [pairs_of_a_key(n, partners=partners) for n in range(mentions_per_key + 1)]
    return [float(more - less) for less, more in pairwise(counts)]


# ---- What is measured

Figures: TypeAlias = tuple[list[tuple[float, float]], list[float]]
"""The fields of Keys, as JSON has them."""


def keys_of_kind(work: Work, kind: str) -> Figures:
    """Entities, or surfaces that several entities share, with their mentions."""
    tables, mentions = [], []
    for each in work.completions("group"):
        files = [table_of(work, file).select(["key_hi", "kind", "entity"]) for file in each.files]
        table = pa.concat_tables(files)
        tables.append(table.filter(pc.equal(table.column("kind"), PAIR_KINDS.index(kind))))
        mentions.append(each.counters.get("mentions", 0))

    def times(tables: list[pa.Table]) -> I64:
        table = pa.concat_tables(tables)
        found = table.group_by("key_hi").aggregate([("entity", "count"), ("entity", "count_distinct")])
        if kind == "surface":
            found = found.filter(pc.greater(found.column("entity_count_distinct"), 1))
        return found.column("entity_count").to_numpy()

    return _nested_keys(tables, mentions, times)


def keys_of_aliases(work: Work) -> Figures:
    """Surfaces of entities with their mentions."""
    tables, mentions = [], []
    for each in work.completions("count_surfaces"):
        tables.append(
            pa.concat_tables([table_of(work, file).select(["key_hi", "surface", "count"]) for file in each.files])
        )
        mentions.append(each.counters.get("mentions", 0))

    def times(tables: list[pa.Table]) -> I64:
        found = pa.concat_tables(tables).group_by(["key_hi", "surface"]).aggregate([("count", "sum")])
        return found.column("count_sum").to_numpy()

    return _nested_keys(tables, mentions, times)


def _nested_keys(tables: list[pa.Table], mentions: list[int], times: Callable[[list[pa.Table]], I64]) -> Figures:
    """What of keys is to be known of a sample, from the mentions of its units; `times` counts those of each key."""
    parts = []
    counts = np.zeros(0, np.int64)
    for ways in (4, 2, 1):
        if len(tables) >= ways:
            found = [times(tables[way::ways]) for way in range(ways)]
            parts.append((sum(mentions) / ways, sum(map(len, found)) / ways))
            counts = found[0]
    shares = [float((counts >= least).mean()) for least in range(1, 101)] if len(counts) else []
    return parts, shares


def table_of(work: Work, file: File) -> pa.Table:
    """All of a file of a stage."""
    with parquet_file(work.folder, file.path) as reader:
        return reader.read(use_threads=False)
