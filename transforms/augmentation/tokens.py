"""Augmentations of the order of tokens. A token is what stands between white space: nothing is tokenised again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.characters import Trait
from transforms.arrays import U64
from transforms.augmentation.edits import Characters, choose, replaced
from transforms.augmentation.interface import Augmenter, pick


class SwapTokens(Augmenter):
    """Two tokens change places: adjacent ones (`swap` "adjacent") or any two ("any"). What is between them stays.

    Null also if it chooses two that are equal.
    """

    def __init__(self, *, swap: str) -> None:
        self._any = swap == "any"

    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        found = Characters.of(phrases)
        space = np.append(found.has(Trait.SPACE), True)
        edge = np.zeros(len(space), bool)
        edge[found.first] = True
        edge[1:] |= space[1:] != space[:-1]
        edge = np.flatnonzero(edge)
        token = ~space[edge]  # whether a token begins at each edge, and ends at the next
        start, stop = found.start[edge[token]], found.start[np.append(edge[1:], 0)[token]]
        if not len(start):
            return pa.nulls(len(seeds), pa.string())
        first = np.searchsorted(start, found.edges)
        if self._any:
            one = choose(np.ones(len(start), bool), first, seeds)
            other = first[:-1] + pick(seeds, 1, np.maximum(np.diff(first) - 1, 0))
            other = np.where(np.diff(first) > 1, other + (other >= one), one)
            one, other = np.minimum(one, other), np.maximum(one, other)
            known = (one >= 0) & (one != other)
        else:
            sites = np.ones(len(start), bool)
            sites[first[1:][np.diff(first) > 0] - 1] = False
            one = choose(sites, first, seeds)
            known, other = one >= 0, np.minimum(one + 1, len(start) - 1)
        known &= ~found.has(Trait.JOINS_PREVIOUS)[edge[token]][one]  # a mark that begins a phrase would join a blank
        pieces = start[other], stop[other], stop[one], start[other], start[one], stop[one]
        swapped = replaced(found.data, found.edges, known, start[one], stop[other], found.data, *pieces)
        return pc.if_else(pc.equal(swapped, phrases), pa.scalar(None, pa.string()), swapped)
