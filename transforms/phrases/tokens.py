"""The tokens of a shard of sentences as flat arrays, and its normalised text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.arrays import I64, U8, character_starts, offsets_of, single, slice_strings, string_bytes
from transforms.phrases.normalise import normalise_token

SENTENCE_COLUMNS = (
    "doc_id",
    "start_char",
    "text",
    "tokens.list.element.start_char",
    "tokens.list.element.end_char",
    "tokens.list.element.tag",
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

    def of_forms(self, value: Callable[[str], int]) -> npt.NDArray[np.int32]:
        """[n] a value of each token's normalised form."""
        return np.fromiter(map(value, self.forms), np.int32, len(self.forms))[self.form]


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


def _slices(text: pa.Array, text_start: pa.Array, first: I64, start_char: I64, end_char: I64) -> pa.StringArray:
    """The tokens as strings; their offsets are characters of the document."""
    data, edges = string_bytes(text)
    begins = character_starts(data)
    # From characters of the document to characters of all sentences of the shard, one after the other.
    character = np.searchsorted(begins, edges[:-1])
    shift = np.repeat(character - text_start.to_numpy().astype(np.int64), np.diff(first))
    return slice_strings(data, begins[start_char + shift], begins[end_char + shift])
