"""Neighbours by edit similarity: all pairs by RapidFuzz are the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from transforms.negatives import neighbours
from transforms.negatives.neighbours import Search, columns_of
from transforms.negatives.options import NeighbourRules

Found = list[list[tuple[int, float]]]


def find(phrases: Sequence[str], rules: NeighbourRules = NeighbourRules(), *, part: int = 1 << 20, rows: int = 1 << 20) -> Found:
    """The neighbours of each phrase (place, similarity), with so many rows a strip and columns a part."""
    found: Found = []
    for first in range(0, len(phrases), rows):
        search = Search(pa.array(phrases[first : first + rows], pa.string()), first, rules)
        for start in range(0, len(phrases), part):
            search.among(columns_of(pa.array(phrases[start : start + part], pa.string()), start))
        of_all = search.neighbours()
        pairs = list(zip(of_all.place.tolist(), of_all.similarity.tolist(), strict=True))
        ends = np.cumsum(of_all.found).tolist()
        found += [pairs[end - count : end] for end, count in zip(ends, of_all.found.tolist(), strict=True)]
    return found


def by_brute_force(phrases: Sequence[str], rules: NeighbourRules = NeighbourRules()) -> Found:
    from rapidfuzz import fuzz
    from rapidfuzz.process import cdist

    found: Found = []
    key = [xxhash.xxh3_128_digest(each.encode("utf-8", "surrogatepass")) for each in phrases]
    for first in range(0, len(phrases), 256):
        similarity = cdist(phrases[first : first + 256], phrases, scorer=fuzz.ratio, dtype=np.float64) / 100
        for row, of_row in enumerate(similarity, first):
            of_row[row] = 0
            near = np.flatnonzero(of_row > rules.min_edit_similarity + 1e-9).tolist()
            near.sort(key=lambda other: (-round(float(of_row[other]), 9), key[other]))
            found.append([(other, round(float(of_row[other]), 9)) for other in near[: rules.candidates]])
    return found


def rounded(found: Found) -> Found:
    return [[(place, round(similarity, 9)) for place, similarity in of_row] for of_row in found]
