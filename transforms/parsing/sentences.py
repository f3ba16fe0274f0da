"""Text to sentences of tokens, without a model: the front end of a parser that needs no tags first.

Tokens are those of spaCy's English tokeniser; sentences end by the rules of `transforms.parsing.sentence_ends`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, cast

import spacy
import spacy.tokenizer
from spacy.attrs import ORTH

from transforms.parsing.sentence_ends import sentence_starts

MAX_CHUNK_CHARS = 250
"""Longer text without whitespace is tokenised in parts: spaCy's time grows with the square of its length."""

KEPT_CHUNKS = 200_000
"""Chunks whose tokens are kept between texts; with more than that many, all are forgotten and learned again."""

ZONE_CHUNKS = 500
"""Chunks that spaCy sees before it forgets their words again."""


class Tokens(NamedTuple):
    """A sentence of n tokens, none of them whitespace; `starts` and `ends` are code points of the text."""

    words: list[str]
    starts: list[int]
    ends: list[int]


class Tokenizer:
    """spaCy's English tokeniser, and sentences by `sentence_starts`; one thread.

    A chunk, which is text between whitespace, has the same tokens wherever it stands. So they are kept, and spaCy sees
    each distinct chunk once.
    """

    def __init__(self) -> None:
        self._kept: dict[str, _ChunkTokens | None] = {}
        self._renew()

    def _renew(self) -> None:
        """Start again: for all its zones of memory, spaCy's vocabulary takes some of it for each new word."""
        self._kept.clear()
        self._nlp = spacy.blank("en")
        self._tokenizer = cast(spacy.tokenizer.Tokenizer, self._nlp.tokenizer)
        self._tokenizer.add_special_case("<unk>", [{ORTH: "<unk>"}])  # WikiText's
        # A word's shape, norm and the like, which nothing here reads, would take a third of the time for new words.
        self._nlp.vocab.lex_attr_getters = {}  # type: ignore[attr-defined]
        self._special = frozenset(self._tokenizer.rules or ())

    def sentences(self, texts: Sequence[str]) -> list[list[Tokens]]:
        """The sentences of each text (one paragraph, no line break in it); whitespace gives none."""
        return [self._sentences(text) for text in texts]

    def _sentences(self, text: str) -> list[Tokens]:
        words, starts, ends = self._tokens(text)
        bounds = [0]
        for start in sentence_starts(text)[1:]:
            bounds.append(bisect_left(starts, start, bounds[-1]))
        bounds.append(len(words))
        return [Tokens(words[i:j], starts[i:j], ends[i:j]) for i, j in pairwise(bounds) if i < j]

    def _tokens(self, text: str) -> Tokens:
        self._learn(set(_CHUNK.findall(text)))
        words: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        for match in _CHUNK.finditer(text):
            chunk, start = match[0], match.start()
            inner = self._kept[chunk]
            starts.append(start)
            if inner is None:
                words.append(chunk)
            else:
                words += inner.words
                edges = [start + edge for edge in inner.edges]
                starts += edges
                ends += edges
            ends.append(match.end())
        return Tokens(words, starts, ends)

    def _learn(self, chunks: set[str]) -> None:
        if len(self._kept) > KEPT_CHUNKS:
            self._renew()
        new = list(chunks.difference(self._kept))
        for first in range(0, len(new), ZONE_CHUNKS):
            with self._nlp.memory_zone():
                for chunk in new[first : first + ZONE_CHUNKS]:
                    edges = self._edges(chunk)
                    words = tuple(chunk[i:j] for i, j in pairwise([0, *edges, len(chunk)]))
                    self._kept[chunk] = _ChunkTokens(words, tuple(edges)) if edges else None

    def _edges(self, chunk: str) -> list[int]:
        """Where in a chunk its second token begins, and the others."""
        plain = _PLAIN.fullmatch(chunk)
        if plain and chunk not in self._special and plain[1] not in self._special:
            return [plain.end(1)] if plain[2] else []
        return [token.idx for token in self._tokenizer(_HALF_PAIR.sub("\ufffd", chunk))][1:]


class _ChunkTokens(NamedTuple):
    """The tokens of a chunk of several, and where in it one ends and the next begins."""

    words: tuple[str, ...]
    edges: tuple[int, ...]


_CHUNK = re.compile(rf"\S{{1,{MAX_CHUNK_CHARS}}}")
_PLAIN = re.compile(r"([A-Za-z]+)([,;:!?]?)")
"""Chunks that spaCy splits before the mark alone, if they and the word are no special cases of its: most of them."""

_HALF_PAIR = re.compile("[\ud800-\udfff]")  # of surrogates, which spaCy cannot encode
