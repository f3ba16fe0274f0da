"""Augmentations of the order of tokens. A token is what stands between white space: nothing is tokenised again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.characters import Trait
from transforms.arrays import U64, slice_hashes
from transforms.augmentation.edits import Characters, choose, joined, shifted
from transforms.augmentation.interface import Augmenter, pick


class SwapTokens(Augmenter):
    """Two different tokens change places: adjacent ones (`swap` "adjacent") or any two ("any").

    What stands between them stays.
    """

    def __init__(self, *, swap: str) -> None:
        self._any = swap == "any"

    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        found = Characters.of(phrases)
        space = found.has(Trait.SPACE)
        new_phrase = np.zeros(len(space) + 1, bool)
        new_phrase[found.first] = True
        begins = ~space
        begins[1:] &= space[:-1] | new_phrase[1:-1]
        ends = ~space & (shifted(space) | new_phrase[1:])
        begin, end = np.flatnonzero(begins), np.flatnonzero(ends)
        row = found.row[begin]
        start, stop = found.start[begin], found.start[end + 1]
        hashes = slice_hashes(found.data, start, stop)[0]
        sites = np.zeros(len(begin), bool)
        sites[:-1] = row[1:] == row[:-1]
        if self._any:
            one = choose(np.ones(len(begin), bool), row, seeds)
            tokens = np.bincount(row, minlength=len(seeds))
            first = np.cumsum(tokens) - tokens
            other = first + pick(seeds, 1, np.maximum(tokens - 1, 0))
            other += other >= one
            known = tokens > 1
            one, other = np.where(known, np.minimum(one, other), 0), np.where(known, np.maximum(one, other), 0)
            known &= hashes[one] != hashes[other] if len(hashes) else False
        else:
            sites[:-1] &= hashes[1:] != hashes[:-1]
            one = choose(sites, row, seeds)
            known = one >= 0
            one = np.where(known, one, 0)
            other = np.where(known, one + 1, 0)
        if not len(begin):
            return pa.nulls(len(seeds), pa.string())
        edges = found.phrase_start(), start[one], start[other], stop[other], stop[one], start[other]
        return joined(found.data, known, *edges, start[one], stop[one], stop[other], found.phrase_end())
