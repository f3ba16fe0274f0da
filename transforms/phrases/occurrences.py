"""Occurrences of phrases in a shard of sentences, found for all its constituents at once with NumPy.

The speed rests on one array: the normalised text of the shard, every token in its normalised form with one space
where the text has white space. A phrase is a slice of it, and a polynomial hash over prefix sums gives the hash of
any slice in a few operations. So no string is made for an occurrence, only for a distinct phrase.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.records import PHRASE_LABELS, UNKNOWN_TOKEN
from transforms.phrases.normalise import (
    DETERMINERS,
    PRONOUNS,
    PhraseRules,
    is_number,
    is_punctuation,
    normalise_token,
)

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

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
    doc = pc.dictionary_encode(_single(sentences, "doc_id"))
    tokens = _single(sentences, "tokens")
    first = _offsets(tokens)
    flat = tokens.flatten()
    start_char = flat.field("start_char").to_numpy().astype(np.int64)
    end_char = flat.field("end_char").to_numpy().astype(np.int64)
    raw = _slices(_single(sentences, "text"), _single(sentences, "start_char"), first, start_char, end_char)
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
    constituents = _single(sentences.combine_chunks(), "constituents")
    owner = np.repeat(np.arange(len(constituents)), np.diff(_offsets(constituents)))
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
    keep(_next_not(punctuation)[start] < end, "punctuation")
    whole_start, whole_end = start, end
    end = _previous_not(trimmed)[end - 1] + 1
    leading = _next_not(trimmed | determiner if rules.strip_determiners else trimmed)[start]
    # A lone determiner stands for a noun: "this".
    start = np.where(leading < end, leading, _next_not(trimmed)[start])
    if rules.strip_punctuation:
        pairs = _Pairs(tokens)
        start, end = pairs.mend(start, end, whole_start, whole_end)
        keep(pairs.complete(start, end), "unbalanced")
    if rules.drop_pronouns:
        pronoun = tokens.has(lambda form: form.lower() in PRONOUNS)
        keep(_next_not(pronoun | determiner | punctuation)[start] < end, "pronoun")
    if rules.drop_numbers:
        keep(_next_not(tokens.has(is_number))[start] < end, "number")
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


def slice_strings(buffer: U8, start: I64, end: I64) -> pa.StringArray:
    """The slices `buffer[start:end]`, whole UTF-8 characters, as an array of strings."""
    lengths = end - start
    edges = np.zeros(len(start) + 1, dtype=np.int64)
    np.cumsum(lengths, out=edges[1:])
    data = buffer[np.repeat(start - edges[:-1], lengths) + np.arange(edges[-1])]
    large = pa.LargeStringArray.from_buffers(len(start), pa.py_buffer(edges), pa.py_buffer(data))
    return large.cast(pa.string())


def slice_hashes(buffer: U8, start: I64, end: I64) -> tuple[U64, U64]:
    """Two 64-bit hashes of each slice `buffer[start:end]`, a function of its bytes alone.

    A polynomial hash modulo 2^64 over random values of the bytes, from prefix sums: one pass over the buffer, three
    operations a slice. It groups phrases inside a process; keys on storage are xxh3 of the phrase.
    """
    longest = len(buffer) + 1
    high, low = (
        _mix(_slice_hash(buffer, start, end, _hash_tables(seed, longest)) + (end - start).astype(np.uint64))
        for seed in (1, 2)
    )
    return high, low


def strings_hashes(strings: pa.Array) -> tuple[U64, U64]:
    """The `slice_hashes` of whole strings."""
    data, edges = string_bytes(strings)
    return slice_hashes(data, edges[:-1], edges[1:])


def _slice_hash(buffer: U8, start: I64, end: I64, tables: tuple[U64, U64, U64]) -> U64:
    values, powers, inverses = tables
    prefix = np.zeros(len(buffer) + 1, dtype=np.uint64)
    np.cumsum(values[buffer] * powers[: len(buffer)], out=prefix[1:])
    return (prefix[end] - prefix[start]) * inverses[start]


_TABLES: dict[int, tuple[U64, U64, U64]] = {}


def _hash_tables(seed: int, size: int) -> tuple[U64, U64, U64]:
    """Values of the 256 bytes, and the powers of an odd base and of its inverse modulo 2^64, at least `size` each."""
    known = _TABLES.get(seed)
    if known is None or len(known[1]) < size:
        values = _mix(np.arange(256, dtype=np.uint64) + np.uint64(1000 * seed))
        base = int(_mix(np.array([seed], dtype=np.uint64))[0]) | 1
        size = 1 << (size - 1).bit_length()
        known = _TABLES[seed] = values, _powers(base, size), _powers(pow(base, -1, 1 << 64), size)
    return known


def _powers(base: int, size: int) -> U64:
    powers = np.full(size, base, dtype=np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)


def _mix(x: U64) -> U64:
    """The finaliser of splitmix64: a bijection that spreads every bit (Steele, Lea and Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


mix64 = _mix


def _next_not(flags: Bools) -> I64:
    """[n] the first place at or after each where the flag is not set; n where there is none."""
    n = len(flags)
    places = np.where(flags, n, np.arange(n))
    return np.minimum.accumulate(places[::-1])[::-1]


def _previous_not(flags: Bools) -> I64:
    """[n] the last place at or before each where the flag is not set; -1 where there is none."""
    places = np.where(flags, -1, np.arange(len(flags)))
    return np.maximum.accumulate(places)


def _slices(text: pa.Array, text_start: pa.Array, first: I64, start_char: I64, end_char: I64) -> pa.StringArray:
    """The tokens as strings, from character offsets in the document."""
    data, edges = string_bytes(text)
    begins = character_starts(data)
    # Characters are counted through all sentences of the shard.
    character = np.searchsorted(begins, edges[:-1])
    shift = np.repeat(character - text_start.to_numpy().astype(np.int64), np.diff(first))
    return slice_strings(data, begins[start_char + shift], begins[end_char + shift])


def _single(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    column = table.column(name)
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else (pa.array([], column.type))
    )


def _offsets(array: Any) -> I64:
    """The offsets of a list or string array, [n + 1]."""
    if pa.types.is_list(array.type):
        offsets = array.offsets.to_numpy().astype(np.int64)
        return offsets - offsets[0]  # `flatten` of a slice begins with its first element
    raw = np.frombuffer(array.buffers()[1] or b"\0\0\0\0", dtype=np.int32)
    return raw[array.offset : array.offset + len(array) + 1].astype(np.int64)


def string_bytes(strings: Any) -> tuple[U8, I64]:
    """The UTF-8 bytes of n strings, one behind the other, and their edges in them, [n + 1]."""
    edges = _offsets(strings)
    raw = np.frombuffer(strings.buffers()[2] or b"", dtype=np.uint8)
    return raw[edges[0] : edges[-1]], edges - edges[0]


def character_starts(data: U8) -> I64:
    """[characters + 1] the byte at which each character of UTF-8 begins, and the end."""
    return np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))
