"""What the evaluation asks of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from transforms.encoders.interface import F32, Passage

__all__ = ["F32", "FoundModel", "Model", "Passage"]


class Model(Protocol):
    """A loaded model. A vector depends only on its text, up to floating point.

    name        as it was given
    dimension   of its vectors
    contextual  whether a span's vector depends on its sentence
    """

    name: str
    dimension: int
    contextual: bool

    def encode(self, texts: Sequence[str]) -> F32:
        """[n, dimension] a vector for each text, as the model gives it: of length 1 only if the model makes it so."""
        ...

    def encode_spans(self, passages: Sequence[Passage]) -> F32:
        """[n, dimension] a vector for each span in its sentence."""
        ...

    def remarks(self) -> list[str]:
        """What has to be said of the texts since the last call, such as the share of words that are unknown."""
        ...


class FoundModel(NamedTuple):
    """A model that is not loaded yet.

    name       as it was given
    identity   what decides its vectors: names, hashes of files, options and versions; for JSON and fingerprints
    load       loads it; UserError if a library is missing or a file damaged
    """

    name: str
    identity: Mapping[str, Any]
    load: Callable[[], Model]


class Contextless:
    """What models have in common whose spans do not depend on their sentences: the span as a text of its own."""

    contextual = False

    def encode(self, texts: Sequence[str]) -> F32:
        raise NotImplementedError

    def encode_spans(self, passages: Sequence[Passage]) -> F32:
        return self.encode([" ".join(tokens[start:end]) for tokens, start, end in passages])

    def remarks(self) -> list[str]:
        return []
