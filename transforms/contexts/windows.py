"""Masked contexts: a window of a document's text around a phrase, the phrase replaced by a mask.

Phrase-BERT, section 3: c+ is "of length 120 tokens", p included, with p replaced by a single [MASK]. Tokens are the
parser's. A window stays in its document and does not cross text that is in no sentence, because the tokens of a
rejected sentence are unknown. Line breaks in a window become one space, unknown words (U+FFFD) a token that an encoder
knows.

All contexts of a shard are cut at once: each window is a few slices of one buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.terms import UNKNOWN_TOKEN
from transforms.arrays import I64, U8, character_starts, slice_strings, string_bytes
from transforms.contexts.options import WindowRules
from transforms.phrases.tokens import Tokens


class ShardText(NamedTuple):
    """The text of a shard's documents, one after the other; n tokens, s sentences.

    Runs of line breaks are one space, and each U+FFFD is the token for unknown words.
    """

    buffer: U8  # UTF-8
    character: I64  # [bytes + 1] how many characters begin before a byte
    byte_start: I64  # [n] where a token begins in `buffer`
    byte_end: I64  # [n]
    document: I64  # [s] the row of each sentence's document
    unknown: I64  # where the tokens for unknown words begin in `buffer`

    def unknown_words(self, first: I64, last: I64) -> I64:
        """[k] how many unknown words the windows of tokens [first, last) have."""
        start, end = (np.searchsorted(self.unknown, each) for each in (self.byte_start[first], self.byte_end[last - 1]))
        return end - start


class Contexts(NamedTuple):
    """k contexts; `context[mask_start:]` begins with the mask of the occurrence itself."""

    surface: pa.StringArray
    context: pa.StringArray
    mask_start: I64  # [k] in characters


def read_text(tokens: Tokens, documents: pa.Table, *, unknown_token: str) -> ShardText:
    """The text of a shard of documents (columns doc_id, text), with where the tokens of its sentences are.

    Of several line breaks in a row the first stays, as a space. In "a\\n\\nb" byte 2 is dropped and `moved` is 0 0 0 1
    1, so "b" moves from byte 3 to byte 2. The three bytes of U+FFFD count as dropped, less those of the token.
    """
    row = pc.index_in(tokens.doc_ids, documents.column("doc_id").combine_chunks()).to_numpy().astype(np.int64)
    raw, edges = string_bytes(documents.column("text").combine_chunks())
    begins = character_starts(raw)
    first_character = np.searchsorted(begins, edges[:-1])
    document = row[tokens.document]
    shift = np.repeat(first_character[document], np.diff(tokens.first))
    broken = raw == ord("\n")
    again = np.zeros(len(raw) + 1, dtype=bool)
    again[1:-1] = broken[1:] & broken[:-1]
    buffer = np.where(broken, np.uint8(ord(" ")), raw)[~again[:-1]]
    unknown = _places(raw, _UNKNOWN)
    dropped: npt.NDArray[np.integer | np.bool_] = again
    if len(unknown):
        token = unknown_token.encode()
        dropped = again.astype(np.int16)
        dropped[unknown + len(_UNKNOWN) - 1] = len(_UNKNOWN) - len(token)
        buffer = np.frombuffer(buffer.tobytes().replace(_UNKNOWN, token), dtype=np.uint8)
    moved = np.cumsum(dropped, dtype=np.int64) - dropped
    starts, ends = begins[tokens.start_char + shift], begins[tokens.end_char + shift]
    return ShardText(
        buffer=buffer,
        character=_characters(buffer),
        byte_start=starts - moved[starts],
        byte_end=ends - moved[ends],
        document=document,
        unknown=unknown - moved[unknown],
    )


_UNKNOWN = UNKNOWN_TOKEN.encode()


def _places(buffer: U8, sought: bytes) -> I64:
    """Where some bytes, of which none overlap, begin in a buffer."""
    place = np.flatnonzero(buffer[: len(buffer) - len(sought) + 1] == sought[0])
    for number, byte in enumerate(sought):
        place = place[buffer[place + number] == byte]
    return place


def _characters(buffer: U8) -> I64:
    counts = np.zeros(len(buffer) + 1, dtype=np.int64)
    np.cumsum((buffer & 0xC0) != 0x80, out=counts[1:])
    return counts


def runs(tokens: Tokens, text: ShardText) -> tuple[I64, I64]:
    """[s] the run of tokens [low, high) that a window around a phrase of each sentence may hold.

    A run ends where the document ends, or where text between two sentences is in no sentence. With sentences of tokens
    [0, 3), [3, 5) and [5, 9), the last of them in another document, `low` is 0 0 5 and `high` is 5 5 9. With a rejected
    sentence between the first two, `low` is 0 3 5 and `high` is 3 5 9.
    """
    n = len(tokens.document)
    if not n:
        return tokens.first[:-1], tokens.first[:-1]
    ends_run = np.ones(n, dtype=bool)
    following = tokens.first[1:-1]
    solid = np.zeros(len(text.buffer) + 1, dtype=np.int64)
    np.cumsum(text.buffer != ord(" "), out=solid[1:])
    between = solid[text.byte_start[following]] - solid[text.byte_end[following - 1]]
    ends_run[:-1] = (tokens.document[1:] != tokens.document[:-1]) | (between > 0)
    ends = np.flatnonzero(ends_run)
    run = np.searchsorted(ends, np.arange(n))
    begins = np.concatenate(([0], ends[:-1] + 1))
    return tokens.first[begins[run]], tokens.first[ends[run] + 1]


def window_bounds(start: I64, end: I64, low: I64, high: I64, *, rules: WindowRules, chance: I64) -> tuple[I64, I64]:
    """The windows [first, last) around the phrases [start, end) within the runs [low, high); all are tokens, [k].

    A window has `rules.window` tokens if its run has as many. `chance` decides how many of them come before the phrase.

    Three windows of 5 tokens around phrases of 2 in a run of 100. Of the 3 tokens that remain, 7 % 4 = 3 come before
    the first two phrases and 4 % 4 = 0 before the last. The second window is moved to begin at 0, the third to end at
    100.

    >>> bounds = window_bounds(
    ...     start=np.array([10, 1, 98]), end=np.array([12, 3, 100]), low=np.array([0]), high=np.array([100]),
    ...     rules=WindowRules(window=5), chance=np.array([7, 7, 4]),
    ... )
    >>> [each.tolist() for each in bounds]
    [[7, 0, 95], [12, 5, 100]]
    """
    room = np.maximum(rules.window - (end - start), 0)
    before = room // 2 if rules.placement == "centre" else chance % (room + 1)
    first = np.maximum(start - before, low)
    last = np.minimum(first + rules.window, high)
    first = np.maximum(np.minimum(first, last - rules.window), low)
    return np.minimum(first, start), np.maximum(last, end)


def cut_contexts(
    tokens: Tokens, text: ShardText, start: I64, end: I64, first: I64, last: I64, *, rules: WindowRules
) -> Contexts:
    """Cut the windows [first, last) and mask the phrases [start, end) in them; all are tokens, [k].

    For the phrase "cat", token 1 of "the cat saw a cat", in a window of all 5 tokens:

        masked spans    bytes [4, 7) and, with `mask_others`, [14, 17)
        pieces          "the ", the mask, " saw a ", the mask, ""
        mask_start      4, the characters before the mask of [4, 7)
    """
    mask_start, mask_end = text.byte_start[start], text.byte_end[end - 1]
    spans = np.stack([np.arange(len(start)), mask_start, mask_end], axis=1)
    if rules.mask_others:
        others = list(_others(tokens, start, end, first, last))
        if others:
            row, head, tail = np.array(others, dtype=np.int64).T
            spans = np.concatenate([spans, np.stack([row, text.byte_start[head], text.byte_end[tail]], axis=1)])
            spans = spans[np.lexsort((spans[:, 1], spans[:, 0]))]
    # The mask is appended to the buffer.
    mask = np.frombuffer(rules.mask_token.encode(), dtype=np.uint8)
    n = len(text.buffer)
    pieces, number, edges = _pieces(spans, text.byte_start[first], text.byte_end[last - 1], mask=(n, n + len(mask)))
    context = _joined(np.concatenate([text.buffer, mask]), pieces, edges)
    characters = np.concatenate([text.character, text.character[-1] + np.arange(1, len(rules.mask_token) + 1)])
    # `characters` counts to the end of the mask, whose bytes may be more than its characters.
    ends_at = np.where(pieces[:, 1] == n + len(mask), len(characters) - 1, pieces[:, 1])
    before = np.concatenate(([0], np.cumsum(characters[ends_at] - characters[pieces[:, 0]])))
    own = number[spans[:, 1] == mask_start[spans[:, 0]]]
    return Contexts(
        surface=slice_strings(text.buffer, mask_start, mask_end),
        context=context,
        mask_start=before[own + 1] - before[edges[:-1]],
    )


def _pieces(spans: I64, begin: I64, end: I64, *, mask: tuple[int, int]) -> tuple[I64, I64, I64]:
    """The slices of a buffer that make up k contexts: text, mask, text ... mask, text; 2j + 1 of them for j spans.

    `spans` [j, 3] are row, start and end of what is masked, in order, at least one for each row. `begin` and `end` [k]
    are the bytes of each row's window, `mask` those of the mask. Returns the pieces [p, 2], the number of the piece
    before each span [j], and the number of the first piece of each row, with p at the end [k + 1].

    Row 0 has the window [0, 17) and two spans, row 1 the window [3, 9) and one:

    >>> spans = np.array([[0, 4, 7], [0, 14, 17], [1, 4, 7]])
    >>> pieces, number, edges = _pieces(spans, np.array([0, 3]), np.array([17, 9]), mask=(17, 23))
    >>> pieces.tolist()
    [[0, 4], [17, 23], [7, 14], [17, 23], [17, 17], [3, 4], [17, 23], [7, 9]]
    >>> number, edges
    (array([0, 2, 5]), array([0, 5, 8]))
    """
    row, span_start, span_end = spans.T
    number = 2 * np.arange(len(spans)) + row
    is_last = np.append(row[1:] != row[:-1], True) if len(row) else np.zeros(0, dtype=bool)
    is_first = np.roll(is_last, 1)
    pieces = np.empty((2 * len(spans) + len(begin), 2), dtype=np.int64)
    pieces[number, 0] = np.where(is_first, begin[row], np.roll(span_end, 1))
    pieces[number, 1] = span_start
    pieces[number + 1] = mask
    pieces[number[is_last] + 2, 0] = span_end[is_last]
    pieces[number[is_last] + 2, 1] = end
    return pieces, number, np.append(0, number[is_last] + 3)


def _joined(buffer: U8, pieces: I64, edges: I64) -> pa.StringArray:
    """Strings made of slices of the buffer: string i joins the pieces [edges[i], edges[i + 1])."""
    source = buffer.tobytes()
    data = b"".join([source[start:end] for start, end in pieces.tolist()])
    lengths = np.concatenate(([0], np.cumsum(pieces[:, 1] - pieces[:, 0])))
    large = pa.LargeStringArray.from_buffers(len(edges) - 1, pa.py_buffer(lengths[edges]), pa.py_buffer(data))
    return large.cast(pa.string())


def _others(tokens: Tokens, start: I64, end: I64, first: I64, last: I64) -> Iterator[tuple[int, int, int]]:
    """Other occurrences of each row's phrase in its window: (row, first token, last token); none overlap."""
    data = tokens.buffer.tobytes()
    places = (tokens.byte_start[start], tokens.byte_end[end - 1], tokens.byte_start[first], tokens.byte_end[last - 1])
    for row, (low, high, left, right) in enumerate(zip(*(each.tolist() for each in places), strict=True)):
        phrase = data[low:high]
        at = data.find(phrase, left, right)
        if at == low:
            at = data.find(phrase, high, right)
        while at >= 0:
            after = at + len(phrase)
            step = at + 1
            if after <= low or at >= high:
                head = int(np.searchsorted(tokens.byte_start, at))
                tail = int(np.searchsorted(tokens.byte_end, after))
                starts_token = head < len(tokens.byte_start) and tokens.byte_start[head] == at
                if starts_token and tokens.byte_end[tail] == after:
                    yield row, head, tail
                    step = after
            at = data.find(phrase, step, right)
