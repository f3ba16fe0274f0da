"""Negatives of contexts: the next row in hash order of another phrase and another document (Phrase-BERT's c-)."""

from __future__ import annotations

import numpy as np

from transforms.arrays import I64


class Eligible:
    """Finds the first of a shard's n rows, from a place on, whose phrase and document both differ from a given row's.

    With `any_document` only the phrase has to differ. Rows that agree in one key are skipped a run at a time. Here the
    query is phrase 7 of document 2: row 0 has its phrase, so the search goes to the end of the run of 7, row 2. That
    row has its document, so the search goes to the end of the run of 2, row 3.

    >>> rows = Eligible(phrase=np.array([7, 7, 8, 8]), document=np.array([1, 2, 2, 3]))
    >>> rows.first(phrase=np.array([7]), document=np.array([2]), start=np.array([0]))
    array([3])
    """

    def __init__(self, phrase: I64, document: I64, *, any_document: bool = False) -> None:
        self._keys = (phrase,) if any_document else (phrase, document)
        self._next = [_run_ends(key) for key in self._keys]
        self._n = len(phrase)

    def first(self, phrase: I64, document: I64, start: I64) -> I64:
        """For each query the first eligible row at or after `start`; n if there is none."""
        place = np.array(start, dtype=np.int64)
        open_ = np.flatnonzero(place < self._n)
        while len(open_):
            here = place[open_]
            beyond = here
            for key, ends, wanted in zip(self._keys, self._next, (phrase, document), strict=False):
                beyond = np.maximum(beyond, np.where(key[here] == wanted[open_], ends[here], here))
            place[open_] = beyond
            open_ = open_[(beyond > here) & (beyond < self._n)]
        return place


def _run_ends(key: I64) -> I64:
    """[n] the end of the run of equal values that each row is in.

    >>> _run_ends(np.array([7, 7, 8, 8, 8]))
    array([2, 2, 5, 5, 5])
    """
    n = len(key)
    last = np.ones(n, dtype=bool)
    last[:-1] = key[1:] != key[:-1]
    ends = np.flatnonzero(last) + 1
    return ends[np.searchsorted(ends, np.arange(n), side="right")] if n else ends
