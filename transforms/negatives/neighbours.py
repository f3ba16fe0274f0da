"""Neighbours: the phrases that are most similar to a phrase by edits, exactly.

The similarity of two texts of m and n code points is 2 L / (m + n), where L is the length of their longest common
subsequence: 1 - (insertions and deletions) / (m + n), RapidFuzz's ratio. No normalisation, no case folding.

All pairs are looked at, most of them in two machine instructions (`compiled.py`): columns lie in runs of one length,
and a column is passed over if its bag of characters, a word of 64 bits, shows that L is too small. What is left is
tried by the bags of the column's halves, then L is computed. Nothing is approximate, and the order in which columns
come does not matter: neighbours are in order of similarity and of their keys' hashes.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import UserError
from transforms.arrays import I64, U8, U64, run_begins, string_bytes
from transforms.negatives.options import NeighbourRules
from transforms.phrases.counting import phrase_keys

U32 = npt.NDArray[np.uint32]
F64 = npt.NDArray[np.float64]

CHARACTERS = 0x110000
BINS = 48
BITS = 64
SAMPLE = 20_000
"""Phrases from which the bits of the bins are chosen. They change how long it takes, not what is found."""
COLUMNS_A_BLOCK = 4096
"""Columns that stay in the cache while all rows of a group look at them."""
ROWS_A_GROUP = 256


def require_compiler() -> Any:
    """The module of compiled loops. UserError if numba, which compiles them, is not installed."""
    try:
        return importlib.import_module("transforms.negatives.compiled")
    except ImportError as error:
        raise UserError(f"neighbours need {error.name}: pip install 'phrasemill[negatives]'") from error


class Texts(NamedTuple):
    """n texts: the code points of all, and where each begins, [n + 1]."""

    characters: U32
    edges: I64


def texts_of(phrases: pa.Array) -> Texts:
    """
    >>> texts_of(pa.array(["ab", "é"]))
    Texts(characters=array([ 97,  98, 233], dtype=uint32), edges=array([0, 2, 3]))
    """
    lengths = pc.utf8_length(phrases).to_numpy(zero_copy_only=False)
    joined = bytearray(string_bytes(phrases)[0].tobytes().decode().encode("utf-32-le"))
    return Texts(np.frombuffer(joined, np.uint32), np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))))


class Bins(NamedTuple):
    """Which bits of a bag stand for which characters.

    Each character has a bin, and each bin some bits from `first_bit` on: the n-th is set if the text has n of its
    characters.
    """

    bin_of: U8  # [CHARACTERS]
    bits: I64  # [BINS]
    first_bit: I64  # [BINS]


def choose_bins(texts: Texts) -> Bins:
    """The bits that part texts like these best: those that about half of them have.

    The most frequent characters have bins of their own as long as there are any; the others share all bins.
    """
    edges = texts.edges[: SAMPLE + 1]
    characters = texts.characters[: edges[-1]]
    known, times = np.unique(characters, return_counts=True)
    bin_of = _bin_of_others().copy()
    bin_of[known[np.argsort(-times, kind="stable")]] = np.arange(len(known)) % BINS
    n = len(edges) - 1
    text = np.repeat(np.arange(n), np.diff(edges))
    counts = np.bincount(text * BINS + bin_of[characters], minlength=n * BINS).reshape(n, BINS)
    having = np.stack([(counts >= most).mean(axis=0) if n else np.zeros(BINS) for most in range(1, BITS + 1)])
    best = np.argsort(-(having * (1 - having)).ravel(), kind="stable")[:BITS]
    bits = np.bincount(best % BINS, minlength=BINS)
    return Bins(bin_of, bits, np.cumsum(bits) - bits)


@functools.cache
def _bin_of_others() -> U8:
    return np.resize(np.arange(BINS, dtype=np.uint8), CHARACTERS)


class Rows(NamedTuple):
    """Phrases whose neighbours are sought: their texts, bags, and places among all phrases."""

    characters: U32
    edges: I64
    bag: U64
    before: U64
    after: U64
    place: I64


class Columns(NamedTuple):
    """Phrases that may be neighbours, in order of their lengths and of what their bags do not hold.

    `runs` [runs, 4]: where some of one length begin and end, their length, and their characters beyond their bags.
    `blocks` [blocks + 1]: the runs of each block, and `block_size` is the most columns of one.
    """

    characters: U32
    edges: I64
    bag: U64
    first_half: U64
    second_half: U64
    place: I64
    key_hi: U64
    key_lo: U64
    runs: I64
    blocks: I64
    block_size: int
    bins: Bins


def columns_of(phrases: pa.Array, first_place: int) -> Columns:
    """Consecutive phrases as columns; `first_place` is that of the first among all."""
    compiled, texts = require_compiler(), texts_of(phrases)
    bins = choose_bins(texts)
    length = np.diff(texts.edges)
    beyond = length - compiled.sizes(compiled.bags(texts.characters, texts.edges[:-1], texts.edges[1:], *bins))
    order = np.lexsort((beyond, length))
    length, beyond, texts = length[order], beyond[order], Texts(*compiled.taken(*texts, order))
    begins = run_begins(length, beyond)
    begins[::COLUMNS_A_BLOCK] = True
    starts = np.flatnonzero(begins)
    start, middle, end = texts.edges[:-1], texts.edges[:-1] + length // 2, texts.edges[1:]
    key_hi, key_lo = phrase_keys(phrases)
    return Columns(
        texts.characters,
        texts.edges,
        compiled.bags(texts.characters, start, end, *bins),
        compiled.bags(texts.characters, start, middle, *bins),
        compiled.bags(texts.characters, middle, end, *bins),
        first_place + order,
        key_hi[order],
        key_lo[order],
        np.stack([starts, np.append(starts[1:], len(length)), length[starts], beyond[starts]], axis=1),
        np.append(np.flatnonzero(starts % COLUMNS_A_BLOCK == 0), len(starts)),
        min(COLUMNS_A_BLOCK, len(length)),
        bins,
    )


class Best(NamedTuple):
    """The best neighbours of n rows so far, in any order: [n, candidates] each, of which `found` are filled.

    `worst` is the place of the worst in a row that is full.
    """

    similarity: F64
    place: I64
    key_hi: U64
    key_lo: U64
    found: I64
    worst: I64


class Neighbours(NamedTuple):
    """The neighbours of n phrases, the most similar first: how many each has, [n], and those of all."""

    found: I64
    place: I64
    similarity: F64


class Search:
    """Seeks the neighbours of consecutive phrases; all phrases come as columns, in parts, in any order.

    `first_place` is the place of the first phrase among all. `progress` says how far it is among the columns that
    came last.
    """

    def __init__(self, phrases: pa.Array, first_place: int, rules: NeighbourRules) -> None:
        self._texts, self._rules = texts_of(phrases), rules
        self._place = first_place + np.arange(len(phrases))
        shape = len(phrases), rules.candidates
        key_hi, key_lo = np.zeros((2, *shape), np.uint64)
        found, worst = np.zeros((2, len(phrases)), np.int64)
        self._best = Best(np.zeros(shape), np.zeros(shape, np.int64), key_hi, key_lo, found, worst)
        self._masks, self._slots = np.zeros(CHARACTERS, np.uint64), np.zeros(CHARACTERS, np.int32)
        self._groups_done = 0

    def among(self, columns: Columns) -> None:
        """Look at all of some columns."""
        compiled, texts, bins = require_compiler(), self._texts, columns.bins
        bag = compiled.bags(texts.characters, texts.edges[:-1], texts.edges[1:], *bins)
        before, after = compiled.bags_to_each(texts.characters, texts.edges, *bins)
        rows = Rows(texts.characters, texts.edges, bag, before, after, self._place)
        length = np.diff(texts.edges)
        length_of_block = columns.runs[columns.blocks[:-1], 2]
        for number, group in enumerate(self._groups(length)):
            self._groups_done = number
            # The nearest lengths first: the sooner a row has good neighbours, the more is passed over.
            nearest = np.argsort(np.abs(length_of_block - length[group].mean()), kind="stable")
            least = self._rules.min_edit_similarity
            compiled.search(rows, group, columns, nearest, least, self._best, self._masks, self._slots)

    def _groups(self, length: I64) -> list[I64]:
        """Rows of about one length."""
        order = np.argsort(length, kind="stable")
        return np.split(order, range(ROWS_A_GROUP, len(order), ROWS_A_GROUP)) if len(order) else []

    def progress(self) -> float:
        return self._groups_done * ROWS_A_GROUP / max(len(self._place), 1)

    def neighbours(self) -> Neighbours:
        """Those of all columns that came."""
        best = self._best
        row, n_th = np.nonzero(np.arange(self._rules.candidates) < best.found[:, None])
        place, similarity = best.place[row, n_th], best.similarity[row, n_th]
        order = np.lexsort((best.key_lo[row, n_th], best.key_hi[row, n_th], -similarity, row))
        return Neighbours(best.found, place[order], similarity[order])
