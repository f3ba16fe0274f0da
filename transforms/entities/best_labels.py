"""The best labels for the words of sentences, of those that make entities: O, or B I* E, or S, of one type."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]

BEGIN, INSIDE, END, SINGLE = range(4)
"""The labels of type t have the numbers 1 + 4 t + these, and O has 0."""

NEVER = -1e9


def best_labels(scores: NDArray[np.float32], words: Ints) -> Ints:
    """[B, N] the labels with the highest sum of scores [B, N, 1 + 4 types]; after `words` [B] words they are O.

    Viterbi's algorithm. Before a word either no entity is open, or one of some type.
    """
    size, places, labels = scores.shape
    types = labels // 4
    padding = np.full(labels, NEVER, np.float32)
    padding[0] = 0
    scores = np.where((np.arange(places) < words[:, None])[:, :, None], scores, padding)
    by_type = scores[:, :, 1:].reshape(size, places, types, 4)
    number = 1 + 4 * np.arange(types)
    closing = np.concatenate([[0], number + SINGLE, number + END])  # the labels after which no entity is open
    of_type = np.concatenate([np.full(1 + types, -1), np.arange(types)])  # the entity that was open before them

    closed = np.zeros((size, 1), np.float32)
    open_ = np.full((size, types), NEVER, np.float32)
    closed_by = np.empty((places, size), np.int64)  # places in `closing`
    goes_on = np.empty((places, size, types), bool)
    for at in range(places):
        begin, inside, end, single = (by_type[:, at, :, letter] for letter in (BEGIN, INSIDE, END, SINGLE))
        sums = np.concatenate([closed + scores[:, at, :1], closed + single, open_ + end], axis=1)
        closed_by[at] = sums.argmax(axis=1)
        goes_on[at] = open_ + inside > closed + begin
        open_ = np.maximum(open_ + inside, closed + begin)
        closed = sums.max(axis=1, keepdims=True)

    found = np.empty((size, places), np.int64)
    rows, type_ = np.arange(size), np.full(size, -1)  # -1: no entity is open after the word
    for at in reversed(range(places)):
        on = goes_on[at, rows, type_]
        opened = type_ >= 0
        found[:, at] = np.where(opened, 1 + 4 * type_ + np.where(on, INSIDE, BEGIN), closing[closed_by[at]])
        type_ = np.where(opened, np.where(on, type_, -1), of_type[closed_by[at]])
    return found
