"""Text to sentences of tokens, without a model: the front end of a parser that needs no tags as input.

Tokens are those of spaCy's English tokeniser, cut at all dashes. Sentences end by the rules of
`transforms.parsing.sentence_ends`.
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
"""The most characters of a chunk; a longer one is tokenised in parts, because spaCy's time is quadratic in them."""

KEPT_CHUNKS = 200_000
"""The most chunks whose tokens are kept between texts; beyond that all are dropped."""

ZONE_CHUNKS = 500
"""The number of chunks in one of spaCy's memory zones, which drops their words at its end."""


class Tokens(NamedTuple):
    """A sentence of n tokens, none of them white space; `starts` and `ends` are code points of the text."""

    words: list[str]
    starts: list[int]
    ends: list[int]


class Tokenizer:
    """spaCy's English tokeniser, cut at dashes, and sentences by `sentence_starts`; one thread.

    A chunk is text between white space. Its tokens are the same wherever it occurs, so they are kept, and spaCy
    tokenises each distinct chunk once.
    """

    def __init__(self) -> None:
        self._kept: dict[str, _ChunkTokens | None] = {}
        self._renew()

    def _renew(self) -> None:
        """Start again, because spaCy's vocabulary grows with each new word, in spite of memory zones."""
        self._kept.clear()
        self._nlp = spacy.blank("en")
        self._tokenizer = cast(spacy.tokenizer.Tokenizer, self._nlp.tokenizer)
        self._tokenizer.add_special_case("<unk>", [{ORTH: "<unk>"}])  # WikiText's
        # A word's shape, norm and the like are not used here, and would take a third of the time for new words.
        self._nlp.vocab.lex_attr_getters = {}  # type: ignore[attr-defined]
        self._special = frozenset(self._tokenizer.rules or ())

    def sentences(self, texts: Sequence[str]) -> list[list[Tokens]]:
        """The sentences of each text (one paragraph, no line break in it); white space has none."""
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
        """Where the tokens of a chunk begin, without the first."""
        plain = _PLAIN.fullmatch(chunk)
        if plain and chunk not in self._special and plain[1] not in self._special:
            return [plain.end(1)] if plain[2] else []
        edges: list[int] = []
        at = 0
        for number, piece in enumerate(_DASH.split(chunk) if self._has_dashes(chunk) else [chunk]):
            if piece:
                inner = [] if number % 2 else self._tokenizer(_HALF_PAIR.sub("\ufffd", piece))
                edges += [at, *(at + token.idx for token in inner if token.idx)]
                at += len(piece)
        return edges[1:]

    def _has_dashes(self, chunk: str) -> bool:
        """Whether a chunk is cut at dashes; not in an address or among spaCy's special cases."""
        return ("—" in chunk or "--" in chunk or "–" in chunk) and "://" not in chunk and chunk not in self._special


class _ChunkTokens(NamedTuple):
    """The tokens of a chunk that has several, and the offsets at which one ends and the next begins."""

    words: tuple[str, ...]
    edges: tuple[int, ...]


_CHUNK = re.compile(rf"\S{{1,{MAX_CHUNK_CHARS}}}")
_PLAIN = re.compile(r"([A-Za-z]+)([,;:!?]?)")
"""Most chunks: spaCy splits them only before the mark, unless they or the word are among its special cases."""

_DASH = re.compile(r"(—+|--+|(?<=[^\w%])–+|–+(?=[^\w%]))")
"""spaCy cuts at a dash between letters only, and leaves "girl?--there" whole. An en dash may be part of "1914–18"."""

_HALF_PAIR = re.compile("[\ud800-\udfff]")  # of surrogates, which spaCy cannot encode
