"""Models of literal vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trainers.evaluation.model import F32, Passage


class Literal:
    """A model that gives each text the vector that a table has for it, or the same vector to all texts."""

    contextual = False

    def __init__(self, vectors: Mapping[str, Sequence[float]] | Sequence[float]) -> None:
        self.name, self.vectors = "literal", vectors
        self.dimension = len(next(iter(vectors.values())) if isinstance(vectors, Mapping) else vectors)
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> F32:
        self.asked += texts
        table = self.vectors
        rows = [table[text] if isinstance(table, Mapping) else table for text in texts]
        return np.array(rows, np.float32).reshape(-1, self.dimension)

    def encode_spans(self, passages: Sequence[Passage]) -> F32:
        raise NotImplementedError

    def remarks(self) -> list[str]:
        return []
