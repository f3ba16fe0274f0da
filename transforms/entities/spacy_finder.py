"""The entity finder `spacy`: the recogniser of names of a spaCy pipeline, alone, over given tokens.

spaCy decides one token after the other, for each sentence. Its small pipelines decide from vectors that do not depend
on the decisions, so here all tokens of a batch are decided at once (`_Greedy`), and a word's vector is made once.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from spacy import attrs
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model, use_ops
from threadpoolctl import ThreadpoolController

from transforms.entities import identities
from transforms.entities.interface import Entity, Words, types_of
from transforms.entities.spacy_model import recogniser
from transforms.parsing.spacy_files import find_spacy
from transforms.parsing.tokens import load_spacy

BATCH_TOKENS = 1_000
"""Tokens of a batch: few enough for the processor's cache."""
KEPT_STRINGS = 500_000
"""The most words that spaCy may keep, at about 400 bytes each; further ones are dropped after the call."""

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]


class SpacyFinder:
    """The recogniser of a spaCy pipeline (the name of an installed one, or a path), with one thread in a process.

    By default that of `en_core_web_sm` or its substitute, which gives OntoNotes' 18 types. Only it and what it reads
    run: no tokenizer, tagger or parser. Each sentence is a document of its own. `types` gives types other names
    (`types_of`). Raises OSError without a pipeline, ValueError if it has no such component.
    """

    def __init__(self, model: str = "", *, types: str = "") -> None:
        files = find_spacy(model)
        used = recogniser(files)
        with use_ops("numpy", use_blis=False):  # NumPy's own BLAS: three times as fast
            self._nlp = load_spacy(model, exclude=used.others)
        component = self._nlp.get_pipe(used.name)
        self._types = types_of(component.labels, types)  # type: ignore[attr-defined]
        self._greedy = None if used.reads else _Greedy.of(component)
        self._blas = ThreadpoolController()
        self.identity = identities.spacy(model, types=types)

    def find(self, sentences: Sequence[Words]) -> list[list[Entity]]:
        with self._blas.limit(limits=1), self._bounded_vocabulary():
            words = [each.words for each in sentences]
            spans = self._greedy.spans(self._nlp, words) if self._greedy else _spans(self._nlp, sentences)
            return [[*self._named(each)] for each in spans]

    def _named(self, spans: Spans) -> Iterator[Entity]:
        for start, end, label in spans:
            if type_ := self._types[label]:
                yield Entity(start, end, type_)

    def _bounded_vocabulary(self) -> AbstractContextManager[object]:
        return self._nlp.memory_zone() if len(self._nlp.vocab.strings) > KEPT_STRINGS else nullcontext()


Spans: TypeAlias = list[tuple[int, int, str]]
"""The spans of a sentence, with the model's labels."""


def _spans(nlp: Language, sentences: Sequence[Words]) -> Iterator[Spans]:
    """By spaCy's own code, for any recogniser."""
    docs = [Doc(nlp.vocab, words=words, spaces=space_after) for words, space_after in sentences]
    for doc in nlp.pipe(docs):
        yield [(each.start, each.end, each.label_) for each in doc.ents]


_OF_WORDS = {attrs.ORTH, attrs.LOWER, attrs.NORM, attrs.PREFIX, attrs.SUFFIX, attrs.SHAPE}
"""Attributes of a token that depend on its word alone."""


class _Moves(NamedTuple):
    """The moves that begin when no entity is open, and for each type those that go on with one and end it.

    Columns of the scores: `rows` are those of the first, in the model's order, with the letter (B, U or O) and the type
    of each; `goes_on` and `ends` have one for each type.
    """

    types: list[str]
    rows: I64
    letters: npt.NDArray[np.str_]
    type_of_row: I64
    goes_on: I64
    ends: I64

    @classmethod
    def of(cls, names: Sequence[str]) -> _Moves:
        """From the model's names for its moves: B-ORG, I-ORG, L-ORG, U-ORG, O."""
        types = sorted({name[2:] for name in names} - {""})
        rows = [row for row, name in enumerate(names) if name == "O" or (name[0] in "BU" and name[2:])]
        number = {type_: place for place, type_ in enumerate(types)}
        return cls(
            types,
            np.array(rows),
            np.array([names[row][0] for row in rows]),
            np.array([number.get(names[row][2:], -1) for row in rows]),
            np.array([names.index(f"I-{type_}") for type_ in types]),
            np.array([names.index(f"L-{type_}") for type_ in types]),
        )


class _Greedy:
    """spaCy's greedy recogniser, over arrays: the same spans as its own code, in less than half of the time.

    It goes through a sentence from left to right. While no entity is open, its move depends on the token alone: out,
    an entity of one token, or the beginning of a longer one. Within an entity it depends on the token, the one before,
    and the first one: on, or the end. So the moves of all tokens are scored as if none was in an entity; then, from
    every beginning, token by token, where it would end; and at last those that begin inside of another are dropped.
    """

    def __init__(self, embed: Any, encode: Any, project: Any, lower: Any, upper: Any, moves: _Moves) -> None:
        self._embed, self._encode, self._project, self._moves = embed, encode, project, moves
        weights = lower.get_param("W")
        features, self._hidden, self._pieces, width = weights.shape
        self._weights = [np.ascontiguousarray(each.reshape(-1, width).T) for each in weights]
        self._bias = lower.get_param("b").reshape(-1)
        padding = lower.get_param("pad").reshape(features, -1)
        self._closed_bias = self._bias + padding[1] + padding[2]
        self._upper, self._upper_bias = upper.get_param("W"), upper.get_param("b")
        self._closed = np.ascontiguousarray(self._upper[moves.rows].T)

    @classmethod
    def of(cls, component: Any) -> _Greedy | None:
        """None for a recogniser of another architecture."""
        model: Model[Any, Any] = component.model
        if component.cfg.get("beam_width") != 1 or model.name != "parser_model" or model.attrs["unseen_classes"]:
            return None
        encoder, lower, upper = model.layers
        if len(encoder.layers) != 3 or not model.attrs["has_upper"] or lower.get_dim("nF") != 3:
            return None
        tok2vec, to_array, project = encoder.layers
        if to_array.name != "list2array" or not (tok2vec.has_ref("embed") and tok2vec.has_ref("encode")):
            return None
        embed = tok2vec.get_ref("embed")
        read = {column for layer in embed.walk() for column in layer.attrs.get("columns", ())}
        if not read or not {attrs.IDS.get(each, each) for each in read} <= _OF_WORDS:
            return None
        names = [component.moves.get_class_name(number) for number in range(component.moves.n_moves)]
        return cls(embed, tok2vec.get_ref("encode"), project, lower, upper, _Moves.of(names))

    def spans(self, nlp: Language, sentences: Sequence[Sequence[str]]) -> Iterator[Spans]:
        """The spans of each sentence of words."""
        numbers: dict[str, int] = {}
        words = np.array([numbers.setdefault(word, len(numbers)) for words in sentences for word in words], np.int64)
        (vectors,) = self._embed.predict([Doc(nlp.vocab, words=list(numbers))])
        edges = np.cumsum([0, *map(len, sentences)])
        for first, last in _batches(edges):
            bounds = edges[first : last + 1]
            found: list[Spans] = [[] for _ in range(first, last)]
            if bounds[0] < bounds[-1]:
                of_sentences = np.split(vectors[words[bounds[0] : bounds[-1]]], bounds[1:-1] - bounds[0])
                vectors_in_context = self._project.predict(np.concatenate(self._encode.predict(of_sentences)))
                starts, ends, types = self._decide(vectors_in_context, np.diff(bounds).cumsum())
                owners = np.searchsorted(bounds, starts + bounds[0], side="right") - 1
                shift = bounds[owners] - bounds[0]
                columns = (owners, starts - shift, ends - shift, types)
                for owner, start, end, type_ in zip(*(each.tolist() for each in columns), strict=True):
                    found[owner].append((start, end, self._moves.types[type_]))
            yield from found

    def _decide(self, vectors: F32, ends: I64) -> tuple[I64, I64, I64]:
        """[k], [k], [k] the start, end and type of the entities in consecutive sentences, in tokens.

        The tokens have the `vectors` [n, width]; sentence i ends at `ends[i]`.
        """
        moves = self._moves
        is_last = np.zeros(len(vectors), dtype=bool)
        is_last[ends - 1] = True
        scores = self._hidden_of(vectors @ self._weights[0] + self._closed_bias) @ self._closed
        scores += self._upper_bias[moves.rows]
        scores[np.ix_(is_last, moves.letters == "B")] = -np.inf  # what begins there cannot go on
        best = scores.argmax(axis=1)
        letters, types = moves.letters[best], moves.type_of_row[best]
        ends_at = np.zeros(len(vectors), dtype=np.int64)  # of the entity that begins at a token; 0: none does
        alone, start = (np.flatnonzero(letters == letter) for letter in "UB")
        ends_at[alone] = alone + 1
        at = start + 1
        while len(at):
            features = (
                vectors[each] @ weights for each, weights in zip((at, start, at - 1), self._weights, strict=True)
            )
            hidden = self._hidden_of(sum(features, self._bias))
            on, over = (
                np.einsum("ij,ij->i", hidden, self._upper[rows]) + self._upper_bias[rows]
                for rows in (moves.goes_on[types[start]], moves.ends[types[start]])
            )
            done = (over > on) | is_last[at]
            ends_at[start[done]] = at[done] + 1
            at, start = at[~done] + 1, start[~done]
        starts = np.flatnonzero(ends_at)
        # What begins inside of the last entity that was taken is none.
        taken, end = np.zeros(len(starts), dtype=bool), 0
        for place, (begins, stops) in enumerate(zip(starts.tolist(), ends_at[starts].tolist(), strict=True)):
            if begins >= end:
                taken[place], end = True, stops
        starts = starts[taken]
        return starts, ends_at[starts], types[starts]

    def _hidden_of(self, features: F32) -> F32:
        """The hidden layer: the largest of the pieces of each of its units."""
        pieces = features.reshape(len(features), self._hidden, self._pieces)
        return functools.reduce(np.maximum, (pieces[:, :, piece] for piece in range(self._pieces)))


def _batches(edges: I64) -> Iterator[tuple[int, int]]:
    """Runs of consecutive sentences, [first, last), of about BATCH_TOKENS tokens; sentence i ends at edges[i + 1]."""
    first = 0
    while first < len(edges) - 1:
        last = int(np.searchsorted(edges, edges[first] + BATCH_TOKENS, side="left"))
        last = min(max(last, first + 1), len(edges) - 1)
        yield first, last
        first = last
