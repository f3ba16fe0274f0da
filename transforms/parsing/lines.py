"""Which lines of a document are one text for the parser: lines of verse, and of items wrapped at a fixed width.

A document has a line for each paragraph, heading and list item; a sentence crosses lines only in verse and in what
`transforms.sources.text.unwrap` leaves alone. Line by line those are fragments: of prose that is broken after 45
characters the parser finds half of the constituents. So a line is joined to the next one, if no empty line is between
them, where no sentence ends and where enough lines of the block show that its lines run on: a comma or an "of" at the
end, an "and" or a small letter at the beginning. `docs/parsers.md` has the figures.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from transforms.parsing.sentence_ends import sentence_starts

MAX_LINE = 400
"""Code points of a line that is joined, at most; a longer one is a paragraph. Whitman has verses of this length."""

MAX_JOINED = 500
"""Code points of joined lines, at most, about 120 tokens: verse has sentences of a page, beyond a parser's limit."""


def parts(text: str) -> Iterator[tuple[int, int]]:
    """The parts [start, end) of a document, in code points, that are parsed as one text each; every other one is "\\n".

    >>> text = "Song\\n\\nTyger! Tyger! burning bright\\nIn the forests of the night,\\nWhat hand or eye"
    >>> [text[start:end] for start, end in parts(text)]
    ['Song', 'Tyger! Tyger! burning bright\\nIn the forests of the night,\\nWhat hand or eye']
    """
    block: list[tuple[int, str]] = []  # short lines, none of them empty, one after the other
    start = 0
    for line in text.split("\n"):
        if 0 < len(line) <= MAX_LINE:
            block.append((start, line))
        else:
            yield from _of_block(block)
            block = []
            if line:
                yield start, start + len(line)
        start += len(line) + 1
    yield from _of_block(block)


def _of_block(block: Sequence[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    if len(block) < 2:
        if block:
            yield block[0][0], block[0][0] + len(block[0][1])
        return
    joins = _joins([line for _, line in block])
    first = 0
    for last, joined in enumerate([*joins, False]):
        if not joined:
            yield from _within_limit(block[first : last + 1])
            first = last + 1


def _within_limit(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    """Joined lines, with a cut between two lines of each sentence that is too long."""
    first = lines[0][0]
    text = " ".join(line for _, line in lines)
    edges = [0]
    if len(text) > MAX_JOINED:
        begins = [start - first for start, _ in lines[1:]]
        for start, end in pairwise([*sentence_starts(text), len(text)]):
            edges += _cuts(text, start, end, begins[bisect_right(begins, start) : bisect_left(begins, end)])
    for start, end in pairwise([*edges, len(text) + 1]):
        yield first + start, first + end - 1


def _cuts(text: str, start: int, end: int, begins: Sequence[int]) -> list[int]:
    """Which of the lines that begin in a sentence are cut off, so that its parts are short enough.

    Of the lines after a semicolon or colon, else of those after a comma, else of all, the most central one is cut off.
    """
    if end - start <= MAX_JOINED or not begins:
        return []

    def rank(at: int) -> tuple[bool, bool, float]:
        return text[at - 2] not in ";:", text[at - 2] != ",", abs(at - (start + end) / 2)

    place = min(range(len(begins)), key=lambda place: rank(begins[place]))
    cut = begins[place]
    return [*_cuts(text, start, cut, begins[:place]), cut, *_cuts(text, cut, end, begins[place + 1 :])]


def _joins(block: Sequence[str]) -> list[bool]:
    """For each line of a block but the last, whether the next one is joined to it."""
    runs_on = [_can_run_on(above, below) for above, below in pairwise(block)]
    if len(block) > 3 and {line[-1] for line in block[:-1]} == {";"}:
        return [False] * len(runs_on)  # a list
    linked = 0
    capital = _begins_with_capital(block[0])
    for number, (above, below) in enumerate(pairwise(block)):
        if runs_on[number] and _is_linked(above, below, capital):
            linked += 1
        else:
            capital = _begins_with_capital(below)
    return runs_on if linked * 2 >= sum(runs_on) else [False] * len(runs_on)


def _can_run_on(above: str, below: str) -> bool:
    """Whether no sentence, heading, item of a list, or speech ends between two lines."""
    if _ENDED.search(above):
        return _is_lower(below)
    if _HEADING.fullmatch(above) or _HEADING.fullmatch(below) or _ITEM.match(below):
        return False
    if above.isupper() != below.isupper():
        return False
    if _is_title(below) or (above[-1].isalnum() and _is_title(above)):
        return False
    return not (_ANNOUNCES.search(above) and below[0] in "\"'")


def _is_linked(above: str, below: str, capital: bool) -> bool:
    """Whether the lines themselves show that a sentence runs on; `capital`: it began with a capital."""
    if _is_lower(below):
        return capital or above[-1] in ",;"
    return above[-1] in ",;" or _last_word(above) in _BEFORE_MORE or _first_word(below) in _AFTER_MORE


def _is_lower(line: str) -> bool:
    return line.lstrip(_OPENING)[:1].islower()


def _begins_with_capital(line: str) -> bool:
    return line.lstrip(_OPENING)[:1].isupper()


def _is_title(line: str) -> bool:
    """Whether a line is a name or a title: every word of more than three letters begins with a capital."""
    words = [word for word in _WORD.findall(line) if len(word) > 3]
    return bool(words) and all(word[0].isupper() for word in words) and not line.isupper()


def _first_word(line: str) -> str:
    return line.lstrip(_OPENING).partition(" ")[0].rstrip(",").lower()


def _last_word(line: str) -> str:
    word = line.rpartition(" ")[2]
    return word.lower() if line.isupper() else word


_OPENING = " \"'([_—-"
_WORD = re.compile(r"[^\W\d_]+")
_ENDED = re.compile(r"(?:[.!?…]|[-—][\"'])[\"')\]]*\Z")
_ANNOUNCES = re.compile(r"[:—]\Z")
_HEADING = re.compile(r"\W*(?:\d+|[IVXLC]+)\W*")
_ITEM = re.compile(r"(?:\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,5})[.)]|[-*•}])\s|[A-Z][\w.]{0,12}\. ")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BEFORE_MORE = _words(
    "a an the and or nor but of to in on at by for with from into unto upon as than that which who whose whom my thy "
    "his her its our your their is are was were be shall will would may might can could must not no when where if "
    "while though so such very more most has have had"
)
_AFTER_MORE = _words(
    "and or nor but that which who whom whose of with to for from by upon unto as than when where while till until if "
    "though although because since ere lest in on at into is was are were shall will would can may doth hath then so "
    "nor through without within like"
)
