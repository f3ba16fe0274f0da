"""The best labels against all sequences of labels."""

from __future__ import annotations

from itertools import product

import numpy as np

from transforms.entities.best_labels import best_labels

OUT, B1, I1, E1, S1, B2, I2, E2, S2 = range(9)
CLOSED = (OUT, E1, S1, E2, S2)
FREE = {OUT, B1, S1, B2, S2}
AFTER = {**dict.fromkeys(CLOSED, FREE), B1: {I1, E1}, I1: {I1, E1}, B2: {I2, E2}, I2: {I2, E2}}


def legal(labels: tuple[int, ...]) -> bool:
    return all(later in AFTER[label] for label, later in zip((OUT, *labels), (*labels, OUT), strict=True))


def test_they_have_the_highest_sum_of_all_that_make_entities() -> None:
    generator = np.random.default_rng(1)
    scores = generator.normal(size=(40, 4, 9)).astype(np.float32)
    words = generator.integers(0, 5, 40)
    found = best_labels(scores, words)
    for rows, count, labels in zip(scores, words.tolist(), found.tolist(), strict=True):
        best = max(filter(legal, product(range(9), repeat=count)), key=lambda each: sum(rows[range(count), each]))
        assert labels == [*best, *[OUT] * (4 - count)]
