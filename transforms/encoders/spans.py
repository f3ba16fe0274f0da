"""Spans of tokens as spans of sub-tokens. Offsets are counted, never looked up in the text: a word may occur twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from transforms.encoders.interface import Passage


class Placed(NamedTuple):
    """A sentence as a text, and where the span is in it; the sentence begins at `start_sentence`."""

    text: str
    start_sentence: int
    start_char: int
    end_char: int


class Window(NamedTuple):
    """Which sub-tokens of a sentence are kept, and which of those kept are the span's."""

    kept: list[int]
    span: list[int]


def placed(passage: Passage, *, prefix: str = "") -> Placed:
    """The tokens with blanks between, after the prefix.

    >>> placed(Passage(["a", "cat", "a"], 2, 3), prefix="query: ")
    Placed(text='query: a cat a', start_sentence=7, start_char=13, end_char=14)
    """
    tokens, start, end = passage
    if not 0 <= start < end <= len(tokens):
        raise ValueError(f"no tokens {start} to {end} in a sentence of {len(tokens)}")
    start_char = len(prefix) + sum(len(each) + 1 for each in tokens[:start])
    end_char = start_char + len(" ".join(tokens[start:end]))
    return Placed(prefix + " ".join(tokens), len(prefix), start_char, end_char)


def masked(passage: Passage, mask: str, masks: int) -> Passage:
    """The passage with masks in the place of the span: so many, or (0) one a token."""
    tokens, start, end = passage
    number = masks or end - start
    return Passage([*tokens[:start], *[mask] * number, *tokens[end:]], start, start + number)


def window(offsets: Sequence[tuple[int, int]], place: Placed, most: int) -> Window:
    """The sub-tokens that are kept, at most `most`, with the span in the middle unless the sentence ends before.

    `offsets` are those of each sub-token in the text; without a character: special ones. Special sub-tokens at both
    ends, and those of the prefix, are kept; of a span too long for the rest, the beginning.
    """
    number = len(offsets)
    inside = [n for n, (start, end) in enumerate(offsets) if start < place.end_char and end > place.start_char]
    if number <= most:
        return Window([*range(number)], inside)
    body = [n for n, (start, end) in enumerate(offsets) if start < end and end > place.start_sentence]
    first, last = body[0], body[-1] + 1  # of the sentence
    room = max(1, most - first - (number - last))
    start_span, end_span = (inside[0], inside[-1] + 1) if inside else (first, first)
    middle = (start_span + end_span - room) // 2
    begin = max(first, min(middle, start_span, last - room))
    kept = [*range(first), *range(begin, begin + room), *range(last, number)]
    return Window(kept, [n for n, each in enumerate(kept) if start_span <= each < end_span])
