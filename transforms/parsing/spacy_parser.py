"""The parser `spacy`: spaCy's tagger and dependency parser, and constituents from them by `spacy_rules`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from spacy.attrs import DEP, HEAD, IDX, IS_SPACE, LENGTH, SENT_START, TAG
from spacy.tokens import Doc
from thinc.api import use_ops
from threadpoolctl import ThreadpoolController

from transforms.activity import noting
from transforms.parsing import identities
from transforms.parsing.interface import Constituent, ParsedSentence, RefusedSentence, Sentence
from transforms.parsing.spacy_files import check_labels
from transforms.parsing.spacy_rules import constituents
from transforms.parsing.tokens import load_spacy
from transforms.parsing.trees import Refusal, each_or_alone

UNUSED = ("ner", "lemmatizer", "attribute_ruler", "entity_linker", "textcat", "textcat_multilabel", "spancat")
PIECE_CHARS = BATCH_CHARS = 10_000
BATCH_SENTENCES = 100
KEPT_STRINGS = 500_000
"""The most words that spaCy may keep, at about 400 bytes each; further ones are dropped after their batch."""

_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*\s")


class Piece(NamedTuple):
    """A part of one of the texts of a call: the text's number, and the offset of the part in it."""

    number: int
    start_char: int
    text: str


class SpacyParser:
    """spaCy's English pipeline, with one thread in a process.

    `model` is the name of an installed pipeline or a path, by default `en_core_web_sm` or its substitute. A sentence of
    more than `max_tokens` tokens is refused; a text of more than 10,000 characters is parsed in the parts made by
    `cut`. Raises OSError without a pipeline, ValueError if its labels are not ClearNLP's.

    Batches depend only on the input of the call: texts in order, up to 10,000 characters. spaCy's network has no
    padding that sorting by length would save. In 161,449 tokens of books and Wikipedia no sentence changed with the
    size and order of the batches, although floating point does not guarantee this.
    """

    def __init__(self, model: str = "", *, max_tokens: int = 250) -> None:
        with use_ops("numpy", use_blis=False):  # NumPy's own BLAS: three times as fast, 1.4 times in all
            self.nlp = load_spacy(model, exclude=UNUSED)
        self._blas = ThreadpoolController()
        check_labels(self.nlp.path, self.nlp.pipe_labels)
        self.max_tokens = max_tokens
        self.identity = identities.spacy(model)

    def parse_texts(self, texts: Sequence[str]) -> list[list[Sentence]]:
        found: list[list[Sentence]] = [[] for _ in texts]
        note = noting(sum(map(len, texts)))
        with self._blas.limit(limits=1):
            for batch in _batches(texts):
                for piece, sentences in zip(batch, self._parse(batch), strict=True):
                    found[piece.number].extend(sentences)
                note(sum(len(piece.text) for piece in batch), len(batch))
        return found

    def parse_tokens(self, sentences: Sequence[Sequence[str]]) -> list[list[Constituent] | RefusedSentence]:
        found: list[list[Constituent] | RefusedSentence] = []
        with self._blas.limit(limits=1):
            for first in range(0, len(sentences), BATCH_SENTENCES):
                with self._bounded_vocabulary():
                    batch = sentences[first : first + BATCH_SENTENCES]
                    docs = self.nlp.pipe(self._doc(words) for words in batch if len(words) <= self.max_tokens)
                    for words in batch:
                        refused = len(words) > self.max_tokens
                        found.append(RefusedSentence(0, 0, "too_many_tokens") if refused else self._phrases(next(docs)))
        return found

    def _parse(self, batch: list[Piece]) -> Iterator[list[Sentence]]:
        def parse(numbers: list[int]) -> list[list[Sentence]]:
            pieces = [batch[number] for number in numbers]
            docs = self.nlp.pipe(piece.text for piece in pieces)
            return [self._sentences(doc, piece.start_char) for piece, doc in zip(pieces, docs, strict=True)]

        with self._bounded_vocabulary():
            for number, sentences in each_or_alone(parse, list(range(len(batch)))):
                if isinstance(sentences, Refusal):  # for half a surrogate pair, for example
                    start, text = batch[number].start_char, batch[number].text
                    sentences = [RefusedSentence(start, start + len(text), *sentences)]
                yield sentences

    def _doc(self, words: Sequence[str]) -> Doc:
        # A space after every word: closer to GUM's tags (.966) than spaces guessed from the punctuation (.960).
        return Doc(self.nlp.vocab, words=list(words), sent_starts=[place == 0 for place in range(len(words))])

    def _phrases(self, doc: Doc) -> list[Constituent]:
        offsets, deps, tags = doc.to_array([HEAD, DEP, TAG]).astype(np.int64).T
        return constituents((offsets + np.arange(len(doc))).tolist(), self._strings(deps), self._strings(tags))

    def _sentences(self, doc: Doc, start_char: int) -> list[Sentence]:
        """The sentences of a Doc that begins at `start_char` of its text, without white space tokens."""
        columns = doc.to_array([SENT_START, HEAD, DEP, TAG, IDX, LENGTH, IS_SPACE]).astype(np.int64)
        sent_starts, offsets, deps, tags, starts, lengths, is_space = columns.T
        is_word = is_space == 0
        heads = _heads_among_words(offsets + np.arange(len(doc)), is_word)
        numbers = np.cumsum(sent_starts == 1)[is_word]
        starts = starts[is_word] + start_char
        token_starts, token_ends = starts.tolist(), (starts + lengths[is_word]).tolist()
        dep_names, tag_names = self._strings(deps[is_word]), self._strings(tags[is_word])
        found: list[Sentence] = []
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for first, last in pairwise(bounds if len(numbers) else ()):
            start, end = token_starts[first], token_ends[last - 1]
            if last - first > self.max_tokens:
                found.append(RefusedSentence(start, end, "too_many_tokens"))
                continue
            sentence_tags = tag_names[first:last]
            phrases = constituents((heads[first:last] - first).tolist(), dep_names[first:last], sentence_tags)
            found.append(
                ParsedSentence(start, end, token_starts[first:last], token_ends[first:last], sentence_tags, phrases)
            )
        return found

    def _strings(self, hashes: np.ndarray) -> list[str]:
        strings = self.nlp.vocab.strings
        return [strings[key] for key in hashes.astype(np.uint64).tolist()]

    def _bounded_vocabulary(self) -> AbstractContextManager[object]:
        return self.nlp.memory_zone() if len(self.nlp.vocab.strings) > KEPT_STRINGS else nullcontext()


def cut(text: str, max_chars: int = PIECE_CHARS) -> Iterator[tuple[int, int]]:
    """Spans of at most `max_chars` characters that hold all of a text except white space around them.

    A longer text is cut after the last end of a sentence in the second half of these characters (a full stop,
    question or exclamation mark or ellipsis, closing quotation marks and brackets, white space), or else at the last
    white space there, or else at the limit.
    """
    start, length = 0, len(text.rstrip())
    while start < length:
        if text[start].isspace():
            start += 1
            continue
        end = min(start + max_chars, length)
        if end < length:
            middle = start + max_chars // 2
            ends = [match.end() for match in _SENTENCE_END.finditer(text, middle, end)]
            blanks = [place + 1 for place in range(end - 1, middle, -1) if text[place].isspace()]
            end = (ends[-1:] or blanks[:1] or [end])[0]
        yield start, end
        start = end


def _batches(texts: Sequence[str]) -> Iterator[list[Piece]]:
    batch: list[Piece] = []
    chars = 0
    for number, text in enumerate(texts):
        for start, end in cut(text):
            if batch and chars + end - start > BATCH_CHARS:
                yield batch
                batch, chars = [], 0
            batch.append(Piece(number, start, text[start:end]))
            chars += end - start
    if batch:
        yield batch


def _heads_among_words(heads: np.ndarray, is_word: np.ndarray) -> np.ndarray:
    """The heads, counted in words. A word that depends on white space depends on its head instead, or is a root."""
    if is_word.all():
        return heads
    for _ in range(len(heads)):
        above = np.where(is_word[heads], heads, heads[heads])
        if (above == heads).all():
            break
        heads = above
    heads = np.where(is_word[heads], heads, np.arange(len(heads)))
    return (np.cumsum(is_word) - 1)[heads][is_word]
