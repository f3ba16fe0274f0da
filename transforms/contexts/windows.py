"""Masked contexts: a window of a document's text around a phrase, the phrase replaced by a mask.

Phrase-BERT, section 3: c+ is "of length 120 tokens", p included, with p replaced by a single [MASK]. Tokens are the
parser's. A window never leaves its document, nor crosses a sentence that was rejected (its tokens are unknown).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import xxhash

from transforms.phrases.occurrences import I64, Tokens

_LINE_BREAK = re.compile(r"\s*\n\s*")


class WindowRules(NamedTuple):
    """How contexts are cut; part of the fingerprint."""

    window: int = 120  # tokens in all, the phrase included
    placement: str = "random"  # where the phrase stands in it: "random" (by hash) or "centre"
    mask_token: str = "[MASK]"
    mask_others: bool = True  # other occurrences of the phrase in the window are masked, too


class Context(NamedTuple):
    """A cut context: `context[mask_start:]` begins with the mask of the occurrence itself."""

    surface: str
    context: str
    mask_start: int
    start_char: int
    end_char: int


def row_key(*, seed: int, doc_id: str, start_char: int, phrase: str) -> bytes:
    """The identity of a context as 128 bits of xxh3: its place in the dataset, and where chance is needed, chance."""
    return xxhash.xxh3_128_digest(f"{doc_id}\0{start_char}\0{phrase}".encode(), seed=seed)


def is_validation(doc_id: str, *, rate: float, seed: int) -> bool:
    """Whether a document belongs to the validation split: by hash, so that no document is in both."""
    return rate > 0 and xxhash.xxh3_64_intdigest(f"split\0{doc_id}".encode(), seed=seed) < rate * 2.0**64


def runs(tokens: Tokens, texts: Sequence[str]) -> tuple[I64, I64]:
    """For each sentence, the first token and the token after the last that a window around it may hold.

    `texts` holds the document's text for each sentence. A run ends where the document ends, or where text that is
    in no sentence stands between two of them.
    """
    n = len(tokens.document)
    ends_run = np.ones(n, dtype=bool)
    first = tokens.first
    for sentence in range(n - 1):
        if tokens.document[sentence] != tokens.document[sentence + 1]:
            continue
        last, following = first[sentence + 1] - 1, first[sentence + 1]
        between = texts[sentence][tokens.end_char[last] : tokens.start_char[following]]
        ends_run[sentence] = bool(between) and not between.isspace()
    ends = np.flatnonzero(ends_run)
    run = np.searchsorted(ends, np.arange(n))
    begins = np.concatenate(([0], ends[:-1] + 1)) if n else ends
    return first[begins[run]], first[ends[run] + 1]


def window_bounds(start: int, end: int, low: int, high: int, *, rules: WindowRules, chance: int) -> tuple[int, int]:
    """The tokens [first, last) of the window around the phrase [start, end) within the run [low, high).

    As long as the rules say wherever the run is; `chance` decides how many of the tokens stand before the phrase.
    """
    room = max(rules.window - (end - start), 0)
    before = room // 2 if rules.placement == "centre" else chance % (room + 1)
    first = max(start - before, low)
    last = min(first + rules.window, high)
    first = max(min(first, last - rules.window), low)
    return min(first, start), max(last, end)


def cut_context(
    tokens: Tokens, text: str, start: int, end: int, bounds: tuple[int, int], rules: WindowRules
) -> Context:
    """Cut the window `bounds` out of the document's text and mask the phrase [start, end); all are tokens."""
    first, last = bounds
    spans = [(start, end)]
    if rules.mask_others:
        spans = sorted([*spans, *_others(tokens, start, end, first, last)])
    pieces: list[str] = []
    length = mask_start = 0
    here = int(tokens.start_char[first])
    for span_start, span_end in spans:
        piece = _LINE_BREAK.sub(" ", text[here : tokens.start_char[span_start]])
        pieces += (piece, rules.mask_token)
        length += len(piece)
        if span_start == start:
            mask_start = length
        length += len(rules.mask_token)
        here = int(tokens.end_char[span_end - 1])
    pieces.append(_LINE_BREAK.sub(" ", text[here : tokens.end_char[last - 1]]))
    start_char, end_char = int(tokens.start_char[start]), int(tokens.end_char[end - 1])
    return Context(text[start_char:end_char], "".join(pieces), mask_start, start_char, end_char)


def _others(tokens: Tokens, start: int, end: int, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Other occurrences of the words [start, end) in the window, from left to right, none overlapping another."""
    starts, ends = tokens.byte_start[first:last], tokens.byte_end[first:last]
    base = int(starts[0])
    window = tokens.buffer[base : ends[-1]].tobytes()
    low, high = int(tokens.byte_start[start]) - base, int(tokens.byte_end[end - 1]) - base
    phrase = window[low:high]
    at = window.find(phrase)
    while at >= 0:
        behind = at + len(phrase)
        if behind <= low or at >= high:
            head = int(np.searchsorted(starts, at + base))
            tail = int(np.searchsorted(ends, behind + base))
            if head < len(starts) and starts[head] == at + base and tail < len(ends) and ends[tail] == behind + base:
                yield first + head, first + tail + 1
                at = window.find(phrase, behind)
                continue
        at = window.find(phrase, at + 1)
