"""Occurrences of phrases in a shard of sentences, found for all its constituents at once with NumPy.

It is fast because of one array: the normalised text of the shard, each token in its normalised form, with one space
where the text has white space. A phrase is a slice of it, and a polynomial hash over prefix sums gives the hash of
any slice in a few operations. So a string is made for each distinct phrase only, not for each occurrence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.terms import PHRASE_LABELS, UNKNOWN_TOKEN
from transforms.arrays import (
    I64,
    U8,
    U64,
    Bools,
    character_starts,
    next_not,
    offsets_of,
    previous_not,
    single,
    slice_hashes,
    slice_strings,
    string_bytes,
)
from transforms.phrases.normalise import DETERMINERS, PRONOUNS, is_number, is_punctuation, normalise_token
from transforms.phrases.options import PhraseRules

SENTENCE_COLUMNS = (
    "doc_id",
    "start_char",
    "text",
    "tokens.list.element.start_char",
    "tokens.list.element.end_char",
    "constituents",
)
"""The columns of a sentences shard that this module reads."""


class Tokens(NamedTuple):
    """The tokens of a shard of sentences as flat arrays, n tokens in s sentences.

    `buffer` is the normalised text in UTF-8; token t is `buffer[byte_start[t]:byte_end[t]]`.
    """

    buffer: U8
    byte_start: I64  # [n]
    byte_end: I64  # [n]
    start_char: I64  # [n] in the document's text
    end_char: I64  # [n]
    first: I64  # [s + 1] the first token of each sentence
    document: I64  # [s] number of the sentence's document, in order of the shard
    doc_ids: pa.StringArray  # [documents]
    form: I64  # [n] number of the token in `words`
    words: list[str]  # the different tokens as the text has them
    forms: list[str]  # their normalised forms

    def has(self, test: Callable[[str], bool]) -> Bools:
        """[n] which tokens pass a test of their normalised form."""
        return np.fromiter(map(test, self.forms), dtype=bool, count=len(self.forms))[self.form]


class Occurrences(NamedTuple):
    """The k occurrences of phrases in a shard, in order of the text."""

    start: I64  # [k] first token, counted in the shard
    end: I64  # [k] token after the last
    sentence: I64  # [k] number of the sentence
    label: npt.NDArray[np.int8]  # [k] place in PHRASE_LABELS
    hash_hi: U64  # [k] hash of the phrase's bytes (see `slice_hashes`)
    hash_lo: U64  # [k]
    read: int  # constituents of the wanted labels
    filtered: dict[str, int]  # how many of them are no occurrence, by reason


def read_tokens(sentences: pa.Table, *, lowercase: bool) -> Tokens:
    """Flatten a shard of sentences (the columns SENTENCE_COLUMNS) and normalise its tokens."""
    sentences = sentences.combine_chunks()
    doc = pc.dictionary_encode(single(sentences, "doc_id"))
    tokens = single(sentences, "tokens")
    first = offsets_of(tokens)
    flat = tokens.flatten()
    start_char = flat.field("start_char").to_numpy().astype(np.int64)
    end_char = flat.field("end_char").to_numpy().astype(np.int64)
    raw = _slices(single(sentences, "text"), single(sentences, "start_char"), first, start_char, end_char)
    encoded = raw.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    forms = [normalise_token(word, lowercase=lowercase) for word in words]
    form = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    spaced = np.ones(len(form), dtype=bool)
    spaced[1:] = start_char[1:] > end_char[:-1]
    spaced[first[:-1][np.diff(first) > 0]] = True
    pieces = pa.array([*forms, *(" " + each for each in forms)], pa.string())
    joined = pieces.take(pa.array(form + spaced * len(forms)))
    buffer, edges = string_bytes(joined)
    return Tokens(
        buffer=buffer,
        byte_start=edges[:-1] + spaced,
        byte_end=edges[1:],
        start_char=start_char,
        end_char=end_char,
        first=first,
        document=doc.indices.to_numpy().astype(np.int64),
        doc_ids=doc.dictionary,
        form=form,
        words=words,
        forms=forms,
    )


def find_occurrences(sentences: pa.Table, tokens: Tokens, rules: PhraseRules) -> Occurrences:
    """All occurrences of phrases among the constituents of a shard, by the steps of `transforms/phrases/normalise.py`.

    Each step is done for all constituents at once. Take the NP [0, 5) of the tokens ( the old man ) . as an example.
    The next token that is neither punctuation nor a determiner is 2 2 2 3 6 6 (`next_not`), the previous one that is
    not punctuation -1 1 2 3 3 3 (`previous_not`). The phrase begins at next_not[0] = 2 and ends at previous_not[4] + 1
    = 4: "old man".
    """
    found = _Candidates(sentences, tokens, rules)
    unknown = np.concatenate(([0], np.cumsum(tokens.has(lambda form: UNKNOWN_TOKEN in form))))
    found.keep(unknown[found.end] == unknown[found.start], "unknown_token")
    punctuation = tokens.has(is_punctuation)
    determiner = tokens.has(lambda form: form.lower() in DETERMINERS)
    # Constituents of punctuation only are left out whatever the options are.
    found.keep(next_not(punctuation)[found.start] < found.end, "punctuation")
    trimmed = punctuation if rules.strip_punctuation else np.zeros(len(punctuation), dtype=bool)
    whole_start, whole_end = found.start, found.end
    found.trim(trimmed, trimmed | determiner if rules.strip_determiners else trimmed)
    if rules.strip_punctuation:
        pairs = _Pairs(tokens)
        found.start, found.end = pairs.mend(found.start, found.end, whole_start, whole_end)
        found.keep(pairs.complete(found.start, found.end), "unbalanced")
    if rules.drop_pronouns:
        pronoun = tokens.has(lambda form: form.lower() in PRONOUNS)
        found.keep(next_not(pronoun | determiner | punctuation)[found.start] < found.end, "pronoun")
    if rules.drop_numbers:
        found.keep(next_not(tokens.has(is_number))[found.start] < found.end, "number")
    found.keep(found.end - found.start <= rules.max_tokens, "too_long")
    found.keep_one_label()
    hi, lo = slice_hashes(tokens.buffer, tokens.byte_start[found.start], tokens.byte_end[found.end - 1])
    return Occurrences(found.start, found.end, found.sentence, found.label, hi, lo, found.read, found.filtered)


class _Candidates:
    """The constituents of the wanted labels that may still become occurrences, as the arrays of `Occurrences`."""

    def __init__(self, sentences: pa.Table, tokens: Tokens, rules: PhraseRules) -> None:
        constituents = single(sentences.combine_chunks(), "constituents")
        sentence = np.repeat(np.arange(len(constituents)), np.diff(offsets_of(constituents)))
        flat = constituents.flatten()
        label = pc.index_in(flat.field("label"), pa.array(PHRASE_LABELS)).fill_null(-1).to_numpy().astype(np.int8)
        wanted = np.isin(label, [PHRASE_LABELS.index(each) for each in rules.labels])
        self.label, self.sentence = label[wanted], sentence[wanted]
        first = tokens.first[self.sentence]
        self.start = flat.field("start_token").to_numpy()[wanted].astype(np.int64) + first
        self.end = flat.field("end_token").to_numpy()[wanted].astype(np.int64) + first
        self.read = len(self.label)
        self.filtered: dict[str, int] = {}

    def keep(self, kept: Bools, reason: str) -> None:
        """Keep these candidates; the others are filtered for a reason."""
        dropped = len(kept) - int(np.count_nonzero(kept))
        if dropped:
            self.filtered[reason] = self.filtered.get(reason, 0) + dropped
            self._take(kept)

    def trim(self, trimmed: Bools, leading: Bools) -> None:
        """Remove tokens from the ends: `trimmed` from both, `leading` from the start unless nothing else is left."""
        self.end = previous_not(trimmed)[self.end - 1] + 1
        start = next_not(leading)[self.start]
        # A determiner alone stands for a noun: "this".
        self.start = np.where(start < self.end, start, next_not(trimmed)[self.start])

    def keep_one_label(self) -> None:
        """Keep the first label of candidates over the same words, and put them in order of the text."""
        self._take(np.lexsort((self.label, self.end, self.start)))
        first = np.ones(len(self.start), dtype=bool)
        first[1:] = (self.start[1:] != self.start[:-1]) | (self.end[1:] != self.end[:-1])
        self.keep(first, "same_words")

    def _take(self, rows: I64 | Bools) -> None:
        self.start, self.end = self.start[rows], self.end[rows]
        self.label, self.sentence = self.label[rows], self.sentence[rows]


class _Pairs:
    """Brackets and double quotes, which a phrase may hold in pairs only."""

    def __init__(self, tokens: Tokens) -> None:
        depth = [
            sum(form.count(each) for each in "([{") - sum(form.count(each) for each in ")]}") for form in tokens.forms
        ]
        quotes = [form.count('"') for form in tokens.forms]
        # One more entry, for the token after the last.
        self._depth, self._quotes = (np.append(np.array(each, np.int64)[tokens.form], 0) for each in (depth, quotes))
        self._depths, self._all_quotes = (np.cumsum(each) - each for each in (self._depth, self._quotes))

    def _open(self, start: I64, end: I64) -> tuple[I64, Bools]:
        """How many more brackets open than close in each span, and whether it has an odd number of quotes."""
        depth = self._depths[end] - self._depths[start]
        return depth, (self._all_quotes[end] - self._all_quotes[start]) % 2 == 1

    def complete(self, start: I64, end: I64) -> Bools:
        depth, odd = self._open(start, end)
        return (depth == 0) & ~odd

    def mend(self, start: I64, end: I64, first: I64, last: I64) -> tuple[I64, I64]:
        """Add the bracket or quote next to a span, within [first, last), whose other half is inside.

        "acid (h2so4" becomes "acid (h2so4)": one more bracket opens than closes, and the next token closes one.
        """
        depth, odd = self._open(start, end)
        closes = (end < last) & (((depth > 0) & (self._depth[end] < 0)) | (odd & (self._quotes[end] == 1)))
        end = end + closes
        depth, odd = self._open(start, end)
        before = np.maximum(start - 1, 0)
        opens = ((depth < 0) & (self._depth[before] > 0)) | (odd & (self._quotes[before] == 1))
        return start - ((start > first) & opens), end


def _slices(text: pa.Array, text_start: pa.Array, first: I64, start_char: I64, end_char: I64) -> pa.StringArray:
    """The tokens as strings; their offsets are characters of the document."""
    data, edges = string_bytes(text)
    begins = character_starts(data)
    # From characters of the document to characters of all sentences of the shard, one after the other.
    character = np.searchsorted(begins, edges[:-1])
    shift = np.repeat(character - text_start.to_numpy().astype(np.int64), np.diff(first))
    return slice_strings(data, begins[start_char + shift], begins[end_char + shift])
