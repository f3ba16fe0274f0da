"""Negatives of contexts: the next row in hash order of another phrase and another document (Phrase-BERT's c-)."""

from __future__ import annotations

import numpy as np

from transforms.arrays import I64


class Eligible:
    """Finds, in a shard's rows, the first row from a place on that differs from given rows in phrase and document.

    Rows are numbered in the shard, [n]. With `any_document` only the phrase has to differ.
    """

    def __init__(self, phrase: I64, document: I64, *, any_document: bool = False) -> None:
        self._keys = (phrase,) if any_document else (phrase, document)
        self._next = [_run_ends(key) for key in self._keys]
        self._n = len(phrase)

    def first(self, phrase: I64, document: I64, start: I64) -> I64:
        """For each query the first eligible row at or after `start`, n where there is none."""
        place = np.array(start, dtype=np.int64)
        open_ = np.flatnonzero(place < self._n)
        while len(open_):
            here = place[open_]
            beyond = here
            for key, ends, wanted in zip(self._keys, self._next, (phrase, document), strict=False):
                # A row that is the same in one key is passed together with the whole run of that key.
                beyond = np.maximum(beyond, np.where(key[here] == wanted[open_], ends[here], here))
            place[open_] = beyond
            open_ = open_[(beyond > here) & (beyond < self._n)]
        return place


def _run_ends(key: I64) -> I64:
    """[n] where the run of equal values that each row stands in ends."""
    n = len(key)
    last = np.ones(n, dtype=bool)
    last[:-1] = key[1:] != key[:-1]
    ends = np.flatnonzero(last) + 1
    return ends[np.searchsorted(ends, np.arange(n), side="right")] if n else ends
