"""Near duplicates of documents or paragraphs: texts that share most of their shingles, runs of `words` words.

The resemblance of two texts is the Jaccard index of their sets of shingles (Broder 1997, "On the resemblance and
containment of documents"). Candidates are found by MinHash: texts are compared if all hashes of a band of their
signatures agree (Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", section 3.4). All pairs of candidates
are then compared exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from transforms.arrays import I64, U64, mix64, run_begins, slice_hashes

HASHES = 112
"""Hash functions of a signature, as in FineWeb (Penedo et al. 2024, section 3.3)."""

MOST_ROWS = 16

NEIGHBOURS = 8
"""Each text is compared with at most this many before it that have the same band, so that the work stays linear."""

_WORD = re.compile(r"[^\W_]+")
_PIECE = 1 << 18
_BASE = np.uint64(0x9E3779B97F4A7C15)


class Bands(NamedTuple):
    """A signature has `bands` groups of `rows` hashes."""

    bands: int
    rows: int


def banding(jaccard: float) -> Bands:
    """The bands in which at least 95 of 100 pairs with this Jaccard index agree somewhere, with the fewest others.

    A pair with the index s agrees in a band of r rows with probability s^r, in one of b bands with 1 - (1 - s^r)^b.
    FineWeb has 14 bands of 8 rows, which find 77 of 100 pairs at .75 and more of those that are more alike.

    >>> banding(0.75), banding(0.5)
    (Bands(bands=18, rows=6), Bands(bands=37, rows=3))
    """
    rows = max(r for r in range(1, MOST_ROWS + 1) if 1 - (1 - jaccard**r) ** (HASHES // r) >= 0.95)
    return Bands(HASHES // rows, rows)


class Shingles(NamedTuple):
    """The hashes of texts' shingles in order of the text; those of text i are `hashes[edges[i]:edges[i + 1]]`."""

    hashes: U64
    edges: I64


def shingles(texts: Sequence[str], words: int) -> Shingles:
    """The shingles of texts. A word is a run of letters and digits, in lower case.

    A text of fewer words has one shingle of all of them, a text without a word none.

    >>> a, b, c = (shingles([text], 2).hashes for text in ("The old  man!", "the old, old man", "THE"))
    >>> len(a), len(b), len(c), int(a[0] == b[0]), int(a[1] == b[2])
    (2, 3, 1, 1, 1)
    """
    found = [_WORD.findall(text.lower()) for text in texts]
    counts = np.array([len(each) for each in found], dtype=np.int64)
    edges = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.where(counts > words, counts - words + 1, counts > 0), out=edges[1:])
    # Each text is followed by words whose hash is zero, so that a short text has a shingle as well.
    gaps = words * np.arange(len(texts))
    flat = np.zeros(int(counts.sum()) + words * len(texts), dtype=np.uint64)
    flat[np.repeat(gaps, counts) + np.arange(counts.sum())] = _word_hashes(list(chain.from_iterable(found)))
    starts = np.repeat(gaps + np.cumsum(counts) - counts - edges[:-1], np.diff(edges)) + np.arange(edges[-1])
    hashes = flat[starts]
    for place in range(1, words):
        hashes = hashes * _BASE + flat[starts + place]
    return Shingles(mix64(hashes), edges)


def _word_hashes(words: list[str]) -> U64:
    data = np.frombuffer(" ".join([*words, ""]).encode(), dtype=np.uint8)
    ends = np.flatnonzero(data == ord(" "))
    starts = np.append(0, ends + 1)[:-1]
    # In pieces, because the tables of `slice_hashes` are as long as what it is given.
    hashes = [np.zeros(0, dtype=np.uint64)]
    first = 0
    while first < len(starts):
        last = max(int(np.searchsorted(ends, starts[first] + _PIECE)), first + 1)
        base = starts[first]
        piece = data[base : ends[last - 1]]
        hashes.append(slice_hashes(piece, starts[first:last] - base, ends[first:last] - base)[0])
        first = last
    return np.concatenate(hashes)


_SEEDS = mix64(np.arange(2 * HASHES, dtype=np.uint64) + np.uint64(0x6E656172))
_FACTORS, _TERMS = _SEEDS[:HASHES] | np.uint64(1), _SEEDS[HASHES:]


def band_keys(found: Shingles, bands: Bands) -> U64:
    """[texts, bands] a hash of each band of each text's signature. Each text must have a shingle.

    Hash function i is x -> factor_i x + term_i modulo 2^64, of which a signature has the lowest value over the text's
    shingles.
    """
    starts = found.edges[:-1]
    keys = np.empty((bands.bands, len(starts)), dtype=np.uint64)
    hashed = np.empty_like(found.hashes)
    for band in range(bands.bands):
        key = np.full(len(starts), band, dtype=np.uint64)
        for function in range(band * bands.rows, (band + 1) * bands.rows):
            np.multiply(found.hashes, _FACTORS[function], out=hashed)
            np.add(hashed, _TERMS[function], out=hashed)
            key = mix64(key) + np.minimum.reduceat(hashed, starts)
        keys[band] = mix64(key)
    return keys.T


def neighbours(bucket: U64, item: I64, most: int) -> tuple[I64, I64]:
    """The distinct pairs (a, b), a before b, of each item with the `most` ones before it in its bucket.

    Rows are sorted by bucket, then by item.

    >>> neighbours(np.array([1, 1, 1, 7], np.uint64), np.array([3, 5, 9, 3]), most=1)
    (array([3, 5]), array([5, 9]))
    """
    first, second = [item[:0]], [item[:0]]
    for step in range(1, min(most, len(item) - 1) + 1):
        same = bucket[step:] == bucket[:-step]
        if not same.any():
            break
        first.append(item[:-step][same])
        second.append(item[step:][same])
    return distinct_pairs(np.concatenate(first), np.concatenate(second))


def distinct_pairs(a: I64, b: I64) -> tuple[I64, I64]:
    """Pairs in order, each once."""
    order = np.lexsort((b, a))
    a, b = a[order], b[order]
    new = run_begins(a, b)
    return a[new], b[new]


def jaccard(a: U64, b: U64) -> float:
    """The Jaccard index of two sets, sorted arrays without repetitions that are not empty.

    >>> jaccard(np.array([1, 2, 4], np.uint64), np.array([2, 4, 9], np.uint64))
    0.5
    """
    if len(a) > len(b):
        a, b = b, a
    place = np.searchsorted(b, a)
    shared = int(np.count_nonzero(b[np.minimum(place, len(b) - 1)] == a))
    return shared / (len(a) + len(b) - shared)


def clusters(a: I64, b: I64) -> tuple[I64, I64]:
    """The items of pairs, in order, and the first item of each one's cluster (connected component).

    In each round every cluster joins the first one that a pair connects it to, and then all items follow to the end of
    the chain, as in Shiloach and Vishkin 1982.

    >>> clusters(np.array([1, 2, 5]), np.array([4, 4, 6]))
    (array([1, 2, 4, 5, 6]), array([1, 1, 1, 5, 5]))
    """
    item = np.unique(np.concatenate([a, b]))
    first, second = (np.searchsorted(item, each).astype(np.int32) for each in (a, b))
    root = np.arange(len(item), dtype=np.int32)
    while len(first):
        one, other = root[first], root[second]
        apart = one != other
        first, second, one, other = first[apart], second[apart], one[apart], other[apart]
        np.minimum.at(root, np.maximum(one, other), np.minimum(one, other))
        while (root[root] != root).any():
            root = root[root]
    return item, item[root]
