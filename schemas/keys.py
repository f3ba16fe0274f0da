"""Hashes that decide the places of rows. They depend on the data and the seed alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash


def row_key(*, seed: int, doc_id: str, start_char: int, phrase: str) -> bytes:
    """The 128-bit xxh3 of a context's identity. It decides the context's place, and replaces random numbers.

    The rows of a split are in order of these bytes, across shards. So a prefix of a shard is a random sample.
    """
    return xxhash.xxh3_128_digest(f"{doc_id}\0{start_char}\0{phrase}".encode(), seed=seed)


def draw_key(phrase: str, draw: int, *, seed: int) -> bytes:
    """The 128-bit xxh3 of a draw for a phrase. It decides the place of what is drawn, and replaces random numbers."""
    return xxhash.xxh3_128_digest(f"{draw}\0{phrase}".encode(), seed=seed)


def pair_key(one: str, other: str, *, seed: int = 0) -> bytes:
    """The 128-bit xxh3 of two phrases, the same in both directions. It decides the place of the pair."""
    return xxhash.xxh3_128_digest(pair_name(one, other).encode(), seed=seed)


def pair_name(one: str, other: str) -> str:
    """What is the same for both directions of a pair; it decides the split of the pair."""
    return "\0".join(sorted((one, other)))


def halves(keys: Iterable[bytes]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """[n], [n] the upper and lower 64 bits of 128-bit keys, whose 16 bytes are two big-endian numbers."""
    both = np.frombuffer(b"".join(keys), dtype=">u8").astype(np.uint64)
    return both[0::2].copy(), both[1::2].copy()


def match_keys(phrases: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """What spellings of one phrase in upper and lower case have in common: the text in lower case, in NFC."""
    return pc.utf8_normalize(pc.utf8_lower(phrases), "NFC")


def is_validation(doc_id: str, *, rate: float, seed: int) -> bool:
    """Whether a document belongs to the validation split, by its hash. So no document is in both splits."""
    return rate > 0 and xxhash.xxh3_64_intdigest(f"split\0{doc_id}".encode(), seed=seed) < rate * 2.0**64


def split_of(name: str, *, shares: Sequence[float], seed: int) -> int:
    """The number of the split to which the hash of a name assigns it: with the shares 70 15 15, 0 for most names."""
    place = xxhash.xxh3_64_intdigest(f"split\0{name}".encode(), seed=seed) / 2.0**64 * sum(shares)
    ends = itertools.accumulate(shares)
    return next((number for number, end in enumerate(ends) if place < end), len(shares) - 1)


def order_by_key(hi: npt.NDArray[np.uint64], *more: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """[n] the rows in order of a key in several columns; rows of one key keep their order.

    `hi` is a hash, so most rows are in their place once it is sorted: only runs with one `hi` and more than one key are
    sorted again.

    >>> order_by_key(np.array([5, 3, 5], np.uint64), np.array([9, 0, 1], np.uint64))
    array([1, 2, 0])
    """
    order = np.argsort(hi, kind="stable")
    same = hi[order[1:]] == hi[order[:-1]]
    if not same.any():
        return order
    differs = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in more])
    run = np.concatenate(([0], np.cumsum(~same)))
    several = np.zeros(len(hi), dtype=bool)
    several[run[1:][same & differs]] = True
    rows = np.flatnonzero(several[run])
    again = order[rows]
    order[rows] = again[np.lexsort((*(key[again] for key in reversed(more)), run[rows]))]
    return order
