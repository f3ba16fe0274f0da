"""Hard negatives: of the neighbours of a phrase, those that mean something else (PEARL, section 3.2).

A candidate is near in letters if its edit similarity is high, and near in meaning if its cosine is. Those whose
similarity exceeds the cosine by a margin are negatives, the largest differences first.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.arrays import I64, places_in_runs, run_begins, run_starts
from transforms.negatives.options import HardNegativeRules
from transforms.negatives.variants import is_variant
from transforms.phrases.counting import phrase_keys

F32 = npt.NDArray[np.float32]


class Candidates(NamedTuple):
    """Candidates of some phrases. Those of one `owner`, a phrase by number, are side by side."""

    owner: I64
    phrase: pa.Array
    edit_similarity: F32
    cosine: F32


class Negatives(NamedTuple):
    """Which candidates are kept, in order: of each phrase the largest difference first. And why others are not."""

    kept: I64
    difference: F32
    filtered: Counter[str]


def hard_negatives(
    phrases: pa.Array, candidates: Candidates, rules: HardNegativeRules, *, mean: float = 0.0
) -> Negatives:
    """The hard negatives among candidates of `phrases`, by the number of their owner. Hashes of them break ties.

    `mean` is the mean cosine of all pairs of phrases, for centred cosines.
    """
    owner, cosine = candidates.owner, candidates.cosine
    if rules.cosine == "scaled":
        cosine = scaled(cosine, owner)
    elif rules.cosine == "centred":
        cosine = centred(cosine, mean)
    difference = (candidates.edit_similarity.astype(np.float64) - cosine).astype(np.float32)
    left = np.flatnonzero(difference > np.float32(rules.min_difference))
    filtered = Counter(below_difference=len(owner) - len(left))
    if not rules.keep_variants:
        pairs = phrases.take(pa.array(owner[left])).to_pylist(), candidates.phrase.take(pa.array(left)).to_pylist()
        variant = np.fromiter(map(is_variant, *pairs), dtype=bool, count=len(left))
        filtered["variant"] += int(variant.sum())
        left = left[~variant]
    hi, lo = phrase_keys(candidates.phrase.take(pa.array(left)))
    left = left[np.lexsort((lo, hi, -difference[left], owner[left]))]
    best = places_in_runs(run_begins(owner[left])) < rules.negatives
    filtered["beyond_top_k"] += len(left) - int(best.sum())
    return Negatives(left[best], difference[left[best]], filtered)


def centred(cosine: F32, mean: float) -> F32:
    """The cosines, moved so that the mean of all pairs is 0 and 1 stays 1.

    >>> centred(np.array([0.8, 0.9, 1], np.float32), 0.8).round(2)
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return ((cosine.astype(np.float64) - mean) / max(1 - mean, 1e-6)).astype(np.float32)


def scaled(cosine: F32, owner: I64) -> F32:
    """The cosines of each phrase's candidates, moved so that its lowest is 0 and its highest 1, as in PEARL's code.

    Where all are equal there is nothing to scale: they stay as they are.

    >>> scaled(np.array([0.7, 0.8, 0.9, 0.5], np.float32), np.array([0, 0, 0, 1])).round(1)
    array([0. , 0.5, 1. , 0.5], dtype=float32)
    """
    if not len(cosine):
        return cosine
    starts = run_starts(owner)
    run = np.cumsum(run_begins(owner)) - 1
    low, high = (each.reduceat(cosine, starts)[run] for each in (np.minimum, np.maximum))
    width = (high - low).astype(np.float64)
    apart = width > 0
    found = (cosine - low) / np.where(apart, width, 1)
    return np.where(apart, found, cosine).astype(np.float32)


def cosines(own: F32, others: F32, pairs: tuple[I64, I64]) -> F32:
    """[m] the cosine of vector pairs[0][i] of `own` and vector pairs[1][i] of `others`, each of length 1 or 0.

    Each is summed by itself, so it is the same whatever the others are.
    """
    found = np.empty(len(pairs[0]), np.float32)
    for start in range(0, len(found), _PAIRS):
        part = slice(start, start + _PAIRS)
        found[part] = (own[pairs[0][part]] * others[pairs[1][part]]).sum(axis=1, dtype=np.float32)
    return np.clip(found, -1, 1)


_PAIRS = 4096
"""Pairs whose vectors are in memory, and in the cache, at a time."""


def unit_vectors(vectors: npt.NDArray[np.float16]) -> F32:
    """[n, dimension] the vectors with length 1; one of length 0 stays as it is."""
    found = vectors.astype(np.float32)
    length = np.sqrt((found * found).sum(axis=1, dtype=np.float32))
    return found / np.where(length > 0, length, 1).astype(np.float32)[:, None]
