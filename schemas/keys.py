"""Hashes that decide where rows stand: the same for the same data and seed, whatever made them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xxhash


def row_key(*, seed: int, doc_id: str, start_char: int, phrase: str) -> bytes:
    """The identity of a context as 128 bits of xxh3: its place in the dataset, and where chance is needed, chance.

    The rows of a split are in order of these bytes, over all shards; so a prefix of a shard is a random sample.
    """
    return xxhash.xxh3_128_digest(f"{doc_id}\0{start_char}\0{phrase}".encode(), seed=seed)


def is_validation(doc_id: str, *, rate: float, seed: int) -> bool:
    """Whether a document belongs to the validation split: by hash, so that no document is in both."""
    return rate > 0 and xxhash.xxh3_64_intdigest(f"split\0{doc_id}".encode(), seed=seed) < rate * 2.0**64


def order_by_key(hi: npt.NDArray[np.uint64], lo: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The stable order of rows by a key of 128 bits in two columns."""
    order = np.argsort(hi, kind="stable")
    sorted_hi = hi[order]
    if len(hi) > 1 and (sorted_hi[1:] == sorted_hi[:-1]).any():
        order = np.lexsort((lo, hi))
    return order
