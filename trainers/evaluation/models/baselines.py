"""Models that know nothing: what chance and shared letters or words give. Deterministic by hash; without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import xxhash

from trainers.evaluation.model import F32, Contextless, FoundModel
from trainers.evaluation.models.options import ModelOptions

VERSION = 1
DIMENSION = 256
SIZES = (2, 3, 4)
"""How long the pieces of "characters" are."""


def find(name: str, options: ModelOptions) -> FoundModel | None:
    if name not in BASELINES:
        return None
    return FoundModel(name, {"baseline": name, "version": VERSION}, lambda: Baseline(name))


class Baseline(Contextless):
    """The mean over the parts of a text of the Gaussian vectors that their hashes give."""

    dimension = DIMENSION

    def __init__(self, name: str) -> None:
        self.name = name
        self._parts = BASELINES[name]

    def encode(self, texts: Sequence[str]) -> F32:
        found = np.zeros((len(texts), DIMENSION), np.float32)
        known: dict[str, F32] = {}
        for row, text in enumerate(texts):
            parts = [*self._parts(text)]
            for part in parts:
                if part not in known:
                    known[part] = _gaussian(f"{self.name}\0{part}")
            if parts:
                found[row] = np.mean([known[part] for part in parts], axis=0)
        return found


def _gaussian(text: str) -> F32:
    drawn = np.random.default_rng(xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")))
    return drawn.standard_normal(DIMENSION, dtype=np.float32)


def _words(text: str) -> Iterable[str]:
    return text.lower().split()


def _pieces(text: str) -> Iterable[str]:
    """The runs of characters in each word, with its ends marked.

    >>> [each for each in _pieces("at") if len(each) < 4]
    ['^a', 'at', 't$', '^at', 'at$']
    """
    for word in _words(text):
        marked = f"^{word}$"
        for size in SIZES:
            yield from (marked[at : at + size] for at in range(len(marked) - size + 1))


BASELINES: dict[str, Callable[[str], Iterable[str]]] = {
    "random": lambda text: [text],
    "random-words": _words,
    "characters": _pieces,
}
"""What the parts of a text are: the whole text (chance), its words (shared words), runs of its characters."""
