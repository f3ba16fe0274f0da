"""Words with near vectors instead of a word of a phrase, from a spaCy pipeline or a text file of vectors.

Words with near vectors are used alike, and may mean the contrary. WordNet says what else must hold: the same part of
speech, no antonym, and not another of the same kind, as morning and evening are two parts of a day. The neighbours are
those of the lemma, and take the form of the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from schemas.errors import UserError
from transforms.arrays import U64
from transforms.augmentation.synonyms import Synonym, Synonyms
from transforms.augmentation.wordnet import Key, Member, Sense, WordNet, wordnet
from transforms.word_vectors import F32, locate_vectors, read_word_vectors, sha256_of_vectors

MOST_WORDS = 200_000
"""How many words of a file are read: files have the commonest first."""

_BLOCK = 256
_PLAIN = re.compile(r"[a-z]+(?:-[a-z]+)*")


class NearestWord(Synonym):
    """One word of content becomes another one, in its form; the cosine of their vectors is `min_cosine` at least."""

    def __init__(self, *, vectors: str | None, min_cosine: float) -> None:
        self._synonyms: NearWords = NearWords(wordnet(), read_vectors(_place(vectors)), min_cosine)

    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        self._synonyms.look_up(phrases.to_pylist())
        return super().augment(phrases, seeds)

    @classmethod
    def identity(cls, *, vectors: str | None = None, **options: Any) -> dict[str, Any]:
        return {
            **super().identity(),
            "operation": "nearest_word",
            "vectors": _place(vectors).name,
            "vectors_sha256": sha256_of_vectors(_place(vectors)),
        }


class Vectors(NamedTuple):
    """[n] words, commonest first, and [n, d] their vectors of length 1."""

    words: list[str]
    matrix: F32


class NearWords(Synonyms):
    """The lemmas with near vectors, cached by lemma."""

    def __init__(self, database: WordNet, vectors: Vectors, min_cosine: float) -> None:
        super().__init__(database)
        self._words, self._matrix = vectors
        self._row = {word: row for row, word in enumerate(self._words)}
        self._min_cosine = min_cosine
        self._near: dict[str, list[str]] = {}

    def look_up(self, phrases: Iterable[str]) -> None:
        """Find the neighbours of all lemmas in phrases at once: products of blocks, not of single vectors."""
        words = {word for phrase in phrases for word in _PLAIN.findall(phrase.lower())}
        lemmas = {lemma for word in words for part in self._parts(word) for lemma in self._inflection.forms(word, part)}
        wanted = sorted(lemma for lemma in lemmas if lemma in self._row and lemma not in self._near)
        for first in range(0, len(wanted), _BLOCK):
            block = wanted[first : first + _BLOCK]
            for word, cosines in zip(
                block, self._matrix[[self._row[each] for each in block]] @ self._matrix.T, strict=True
            ):
                # Rounded, so that the last bits of a product decide nothing.
                near = np.flatnonzero(np.round(cosines, 4) >= self._min_cosine)
                self._near[word] = [self._words[each] for each in near]

    def _shared(self, lemma: str, part: str) -> Iterator[Member]:
        own = _related(self._senses(lemma, part))
        for near in self._near.get(lemma, ()):
            if near == lemma or not (senses := self._senses(near, part)):
                continue
            theirs = _related(senses)
            beside = own.broader & theirs.broader and not own.synsets & theirs.synsets  # morning and evening
            if not beside and not own.antonyms & theirs.synsets and self._usable(near, lemma, part):
                yield Member(near)


class _Related(NamedTuple):
    synsets: set[Key]
    antonyms: set[Key]
    broader: set[Key]


def _related(senses: tuple[Sense, ...]) -> _Related:
    """What WordNet says of a word in all of its senses."""
    return _Related(
        {each.synset for each in senses},
        {each for sense in senses for each in sense.antonyms},
        {each for sense in senses for each in sense.broader},
    )


def _place(name: str | None) -> Path:
    """The folder of a spaCy pipeline, or a file."""
    if not name:
        raise UserError(
            "--vectors: nearest_word needs vectors of words: a spaCy pipeline such as en_core_web_md, or a text file "
            "in word2vec's, GloVe's or fastText's format"
        )
    try:
        return locate_vectors(name)
    except OSError as error:
        raise UserError(f"--vectors {name}: neither a file nor a spaCy pipeline: {error}") from error


def read_vectors(place: Path) -> Vectors:
    """The vectors of words in lower case. UserError for a file that is none of vectors."""
    try:
        if place.is_file():
            rows, table = read_word_vectors(place, most=MOST_WORDS, wanted=_PLAIN.fullmatch)
        else:
            rows, table = read_word_vectors(place)
    except UserError as error:
        raise UserError(f"--vectors {error}") from error
    first: dict[int, str] = {}
    for word, row in rows.items():
        first.setdefault(row, word)  # the others are rare words that were given this vector
    chosen = [row for row in sorted(first) if _PLAIN.fullmatch(first[row])][:MOST_WORDS]
    if not chosen:
        raise UserError(f"--vectors {place}: has no vectors of words in lower case; give another")
    matrix: F32 = np.array(table[chosen], np.float32)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.where(lengths > 0, lengths, np.float32(1))
    return Vectors([first[row] for row in chosen], matrix)
