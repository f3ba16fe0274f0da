"""Vectors of words: a phrase is the mean of its words' vectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from schemas.errors import UserError
from trainers.evaluation.model import F32, Contextless, FoundModel
from trainers.evaluation.models.options import ModelOptions
from transforms.word_vectors import SUFFIXES, WordVectors, locate_vectors, read_word_vectors, sha256_of_vectors

VERSION = 1

T = TypeVar("T")

_PARTS = re.compile(r"\w+")


def find(name: str, options: ModelOptions) -> FoundModel | None:
    try:
        place = locate_vectors(name)
    except OSError:
        if name.endswith(SUFFIXES):
            raise UserError(f"MODEL {name}: no such file") from None
        return None
    if place.is_dir() and not (place / "vocab" / "vectors").is_file():
        raise UserError(f"MODEL {name}: is a spaCy pipeline without vectors; give one that has some (_md, _lg)")
    identity = {"word vectors": place.name, "version": VERSION, "sha256": _named(lambda: sha256_of_vectors(place))}
    if options.words is not None:
        identity["words"] = options.words
    return FoundModel(name, identity, lambda: MeanOfWords(name, _read(place, options.words)))


def _named(read: Callable[[], T]) -> T:
    try:
        return read()
    except UserError as error:
        raise UserError(f"MODEL {error}") from error


def _read(place: Path, most: int | None) -> WordVectors:
    found = _named(lambda: read_word_vectors(place, most=most))
    if not found.rows:
        raise UserError(f"MODEL {place}: has no vectors of words")
    return found


class OfWords(Contextless):
    """A model of the words that it knows: a word is what stands between blanks, as it is, or in lower case, or else its
    parts of letters and digits alone. Unknown words are left out.
    """

    def __init__(self, rows: Mapping[str, int]) -> None:
        self._rows = rows
        self._words: dict[str, list[int]] = {}
        self._texts: dict[str, bool] = {}

    def rows_of(self, text: str) -> list[int]:
        """The rows of a text's words."""
        return [row for word in text.split() for row in self._rows_of(word)]

    def noted(self, texts: Sequence[str]) -> list[list[int]]:
        """The rows of the words of each text; `remarks` then says how many are unknown."""
        found = [self.rows_of(text) for text in texts]
        self._texts |= zip(texts, map(bool, found), strict=True)
        return found

    def _rows_of(self, word: str) -> list[int]:
        if word not in self._words:
            whole = self._row(word)
            parts = [self._row(each) for each in _PARTS.findall(word)] if whole is None else [whole]
            self._words[word] = [each for each in parts if each is not None]
        return self._words[word]

    def _row(self, word: str) -> int | None:
        return self._rows.get(word, self._rows.get(word.lower()))

    def remarks(self) -> list[str]:
        """How many of the distinct words are unknown, and how many of the distinct texts have no known word."""
        words, texts = len(self._words), len(self._texts)
        unknown = sum(not rows for rows in self._words.values())
        empty = sum(not known for known in self._texts.values())
        self._words, self._texts = {}, {}
        if not unknown:
            return []
        said = f"{unknown:,} of {words:,} words unknown ({unknown / words:.1%})"
        return [f"{said}, {empty:,} of {texts:,} texts without a known word" if empty else said]


class MeanOfWords(OfWords):
    """A text without a known word has the vector 0."""

    def __init__(self, name: str, vectors: WordVectors) -> None:
        super().__init__(vectors.rows)
        self.name = name
        self._matrix = vectors.matrix
        self.dimension: int = self._matrix.shape[1]

    def encode(self, texts: Sequence[str]) -> F32:
        found = np.zeros((len(texts), self.dimension), np.float32)
        for at, rows in enumerate(self.noted(texts)):
            if rows:
                found[at] = np.mean(self._matrix[rows], axis=0, dtype=np.float32)
        return found
