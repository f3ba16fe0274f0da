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
    """What was drawn for n phrases.

    `failed` counts, for each operation, how often it was chosen and had nothing to change.
    """

    augmented: pa.StringArray  # null where no operation changes the phrase
    operation: I64  # -1 for none
    failed: I64


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
    if not total - own[UNCHANGED] > 0:
        raise ValueError("no operation has a share")
    return [Operation(name, granularity[name], share / total) for name, share in own.items() if share > 0]


def draw(
    phrases: pa.StringArray, seeds: U64, operations: Sequence[Operation], augmenters: Mapping[str, Augmenter]
) -> Drawn:
    """Augment each phrase by an operation that its seed chooses.

    If that changes nothing, or nothing but case, another one is chosen by the next seed, until all were tried. Only the
    first choice may leave the phrase unchanged, so that there are no more of those than their share.
    """
    n = len(phrases)
    operation, place = np.full(n, -1), np.full(n, -1)
    failed = np.zeros(len(operations), np.int64)
    made: list[pa.Array] = [pa.nulls(0, pa.string())]
    size = attempt = 0
    left = np.tile([each.share for each in operations], (n, 1))  # the shares of what was not tried
    pending = np.arange(n)
    while len(pending):
        tried = mix64(seeds[pending] ^ mix64(np.array([attempt], np.uint64)))
        until = np.cumsum(left[pending], axis=1)
        chosen = (until <= (share_of(tried) * until[:, -1])[:, None]).sum(axis=1)
        left[pending, chosen] = 0
        own_seeds = mix64(~tried)  # the operation that was chosen says something of `tried`
        for index, each in enumerate(operations):
            rows = np.flatnonzero(chosen == index)
            before = phrases.take(pa.array(pending[rows]))
            if each.name == UNCHANGED:
                after, differs = before, np.ones(len(rows), bool)
                left[:, index] = 0
            elif len(rows):
                after = augmenters[each.name].augment(before, own_seeds[rows])
                differs = ~same_but_for_case(before, after)
            else:
                continue
            done = pending[rows[differs]]
            operation[done], place[done] = index, size + np.flatnonzero(differs)
            failed[index] += len(rows) - len(done)
            made.append(after)
            size += len(after)
        pending = pending[(operation[pending] < 0) & left[pending].any(axis=1)]
        attempt += 1
    augmented = pa.concat_arrays(made).take(pa.array(place, mask=place < 0))
    return Drawn(augmented, operation, failed)


def same_but_for_case(one: pa.StringArray, other: pa.StringArray) -> np.ndarray:
    """[n] whether two texts differ in case at most, or the other is null."""
    same = pc.equal(pc.utf8_lower(one), pc.utf8_lower(other))
    found: np.ndarray = pc.fill_null(same, True).to_numpy(zero_copy_only=False)
    return found
