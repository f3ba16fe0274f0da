"""Which operation is applied to a phrase in each of its draws: a pure function of the phrase, the draw and the seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.kinds.augmentations import Operation
from transforms.arrays import I64, U64, mix64
from transforms.augmentation.interface import Augmenter, share_of
from transforms.augmentation.registry import GRANULARITY, UNCHANGED


class Drawn(NamedTuple):
    """What was drawn for n phrases: the text (null: no operation changes the phrase), the operation and the attempt."""

    augmented: pa.StringArray
    operation: I64  # -1 for none
    attempt: I64  # 0 for the first


def operations_of(names: Sequence[str], shares: Mapping[str, float]) -> list[Operation]:
    """The operations with their shares, which add up to 1.

    The share of a granularity is divided among those of its operations that have no share of their own. That of a
    granularity without an operation is spread over the others.

    >>> operations_of(["keyboard", "swap_tokens"], {"character": 1, "phrase": 1, "unchanged": 1})
    [Operation(name='keyboard', granularity='character', share=0.5), \
Operation(name='unchanged', granularity='unchanged', share=0.5)]
    """
    granularity = {name: GRANULARITY[name] for name in names} | {UNCHANGED: UNCHANGED}
    group = {name: name if name in shares else granularity[name] for name in granularity}
    groups = [*group.values()]
    own = {name: shares.get(group[name], 0.0) / groups.count(group[name]) for name in group}
    total = sum(own.values())
    return [Operation(name, granularity[name], share / total) for name, share in own.items() if share > 0]


def draw(
    phrases: pa.StringArray,
    seeds: U64,
    operations: Sequence[Operation],
    augmenters: Mapping[str, Augmenter],
    *,
    attempts: int,
) -> Drawn:
    """Augment each phrase by an operation that its seed chooses.

    If the operation changes nothing but case, the next attempt chooses again, by another seed. It never chooses to
    leave the phrase unchanged, so that a run has no more of those than its shares say.
    """
    n = len(phrases)
    operation, attempt, place = np.full(n, -1), np.full(n, -1), np.full(n, -1)
    made: list[pa.Array] = []
    size = 0
    pending = np.arange(n)
    for number in range(attempts):
        tried = mix64(seeds[pending] ^ mix64(np.array([number], np.uint64)))
        shares = np.array([one.share if number == 0 or one.name != UNCHANGED else 0.0 for one in operations])
        if not len(pending) or not shares.any():
            break
        chance = share_of(tried) * shares.sum()
        chosen = np.minimum(np.searchsorted(np.cumsum(shares), chance, side="right"), np.flatnonzero(shares)[-1])
        own_seeds = mix64(~tried)  # the operation that was chosen says something of `tried`
        for index, one in enumerate(operations):
            rows = np.flatnonzero(chosen == index)
            if not len(rows):
                continue
            before = phrases.take(pa.array(pending[rows]))
            if one.name == UNCHANGED:
                after, differs = before, np.ones(len(rows), bool)
            else:
                after = augmenters[one.name].augment(before, own_seeds[rows])
                differs = ~same_but_for_case(before, after)
            done = pending[rows[differs]]
            place[done] = size + np.flatnonzero(differs)
            operation[done], attempt[done] = index, number
            made.append(after)
            size += len(after)
        pending = pending[operation[pending] < 0]
    every = pa.concat_arrays([pa.nulls(0, pa.string()), *made])
    return Drawn(every.take(pa.array(place, mask=place < 0)), operation, attempt)


def same_but_for_case(one: pa.StringArray, other: pa.StringArray) -> np.ndarray:
    """[n] whether two texts differ in case at most, or the other is null."""
    same = pc.equal(pc.utf8_lower(one), pc.utf8_lower(other))
    found: np.ndarray = pc.fill_null(same, True).to_numpy(zero_copy_only=False)
    return found
