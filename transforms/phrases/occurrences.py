"""Occurrences of phrases in a shard of sentences, found for all its constituents at once with NumPy.

The speed rests on one array: the normalised text of the shard, every token in its normalised form with one space
where the text has white space. A phrase is a slice of it, and a polynomial hash over prefix sums gives the hash of
any slice in a few operations. So no string is made for an occurrence, only for a distinct phrase.
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
from transforms.phrases.normalise import (
    DETERMINERS,
    PRONOUNS,
    PhraseRules,
    is_number,
    is_punctuation,
    normalise_token,
)

SENTENCE_COLUMNS = (
    "doc_id",
    "start_char",
    "text",
    "tokens.list.element.start_char",
    "tokens.list.element.end_char",
    "constituents",
)
"""The columns of a sentences shard that are needed here."""


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
    form: I64  # [n] number of the token's normalised form
    forms: list[str]

    def has(self, test: Callable[[str], bool]) -> Bools:
        """[n] which tokens pass a test on their normalised form."""
        return np.fromiter(map(test, self.forms), dtype=bool, count=len(self.forms))[self.form]


class Occurrences(NamedTuple):
    """The occurrences of phrases in a shard, k in number, in order of the text."""

    start: I64  # [k] first token, counted in the shard
    end: I64  # [k] token after the last
    sentence: I64  # [k] number of the sentence
    label: npt.NDArray[np.int8]  # [k] place in PHRASE_LABELS
    hash_hi: U64  # [k] hash of the phrase's bytes (see `slice_hashes`)
    hash_lo: U64  # [k]
    read: int  # constituents of the wanted labels
    filtered: dict[str, int]  # those that are no occurrence, by reason


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
        forms=forms,
    )


def find_occurrences(sentences: pa.Table, tokens: Tokens, rules: PhraseRules) -> Occurrences:
    """All occurrences of phrases among the constituents of a shard (see `transforms/phrases/normalise.py`)."""
    constituents = single(sentences.combine_chunks(), "constituents")
    owner = np.repeat(np.arange(len(constituents)), np.diff(offsets_of(constituents)))
    flat = constituents.flatten()
    label = pc.index_in(flat.field("label"), pa.array(PHRASE_LABELS)).fill_null(-1).to_numpy().astype(np.int8)
    wanted = np.isin(label, [PHRASE_LABELS.index(each) for each in rules.labels])
    label, owner = label[wanted], owner[wanted]
    start = flat.field("start_token").to_numpy()[wanted].astype(np.int64) + tokens.first[owner]
    end = flat.field("end_token").to_numpy()[wanted].astype(np.int64) + tokens.first[owner]
    read = len(label)
    filtered: dict[str, int] = {}

    def keep(kept: Bools, reason: str) -> None:
        nonlocal start, end, label, owner
        dropped = len(kept) - int(np.count_nonzero(kept))
        if dropped:
            filtered[reason] = filtered.get(reason, 0) + dropped
            start, end, label, owner = start[kept], end[kept], label[kept], owner[kept]

    unknown = np.concatenate(([0], np.cumsum(tokens.has(lambda form: UNKNOWN_TOKEN in form))))
    keep(unknown[end] == unknown[start], "unknown_token")
    punctuation = tokens.has(is_punctuation)
    determiner = tokens.has(lambda form: form.lower() in DETERMINERS)
    nothing = np.zeros(len(punctuation), dtype=bool)
    trimmed = punctuation if rules.strip_punctuation else nothing
    # A constituent of punctuation only is no phrase whatever the options say.
    keep(next_not(punctuation)[start] < end, "punctuation")
    whole_start, whole_end = start, end
    end = previous_not(trimmed)[end - 1] + 1
    leading = next_not(trimmed | determiner if rules.strip_determiners else trimmed)[start]
    # A lone determiner stands for a noun: "this".
    start = np.where(leading < end, leading, next_not(trimmed)[start])
    if rules.strip_punctuation:
        pairs = _Pairs(tokens)
        start, end = pairs.mend(start, end, whole_start, whole_end)
        keep(pairs.complete(start, end), "unbalanced")
    if rules.drop_pronouns:
        pronoun = tokens.has(lambda form: form.lower() in PRONOUNS)
        keep(next_not(pronoun | determiner | punctuation)[start] < end, "pronoun")
    if rules.drop_numbers:
        keep(next_not(tokens.has(is_number))[start] < end, "number")
    keep(end - start <= rules.max_tokens, "too_long")
    # Of constituents over the same words the first label counts; the order is then that of the text.
    order = np.lexsort((label, end, start))
    start, end, label, owner = start[order], end[order], label[order], owner[order]
    first = np.ones(len(start), dtype=bool)
    first[1:] = (start[1:] != start[:-1]) | (end[1:] != end[:-1])
    keep(first, "same_words")
    hi, lo = slice_hashes(tokens.buffer, tokens.byte_start[start], tokens.byte_end[end - 1])
    return Occurrences(start, end, owner, label, hi, lo, read, filtered)


class _Pairs:
    """Brackets and double quotes, which a phrase may hold in pairs only."""

    def __init__(self, tokens: Tokens) -> None:
        depth = [
            sum(form.count(each) for each in "([{") - sum(form.count(each) for each in ")]}") for form in tokens.forms
        ]
        quotes = [form.count('"') for form in tokens.forms]
        # One entry more, for the token behind the last.
        self._depth, self._quotes = (np.append(np.array(each, np.int64)[tokens.form], 0) for each in (depth, quotes))
        self._depths, self._all_quotes = (np.cumsum(each) - each for each in (self._depth, self._quotes))

    def _open(self, start: I64, end: I64) -> tuple[I64, Bools]:
        """How many more brackets open than close in the spans, and whether a quote is without its other."""
        depth = self._depths[end] - self._depths[start]
        return depth, (self._all_quotes[end] - self._all_quotes[start]) % 2 == 1

    def complete(self, start: I64, end: I64) -> Bools:
        depth, odd = self._open(start, end)
        return (depth == 0) & ~odd

    def mend(self, start: I64, end: I64, first: I64, last: I64) -> tuple[I64, I64]:
        """Take back the bracket or quote next to a span, within [first, last), whose other half is inside."""
        depth, odd = self._open(start, end)
        behind = (end < last) & (((depth > 0) & (self._depth[end] < 0)) | (odd & (self._quotes[end] == 1)))
        end = end + behind
        depth, odd = self._open(start, end)
        before = np.maximum(start - 1, 0)
        opens = ((depth < 0) & (self._depth[before] > 0)) | (odd & (self._quotes[before] == 1))
        return start - ((start > first) & opens), end


def _slices(text: pa.Array, text_start: pa.Array, first: I64, start_char: I64, end_char: I64) -> pa.StringArray:
    """The tokens as strings, from character offsets in the document."""
    data, edges = string_bytes(text)
    begins = character_starts(data)
    # Characters are counted through all sentences of the shard.
    character = np.searchsorted(begins, edges[:-1])
    shift = np.repeat(character - text_start.to_numpy().astype(np.int64), np.diff(first))
    return slice_strings(data, begins[start_char + shift], begins[end_char + shift])
