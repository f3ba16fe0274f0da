"""From the spans that the network finds likely to constituents that form a tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from transforms.parsing.interface import Constituent

UNARY_ORDER = ("SBAR", "S", "VP", "PP", "NP", "ADVP", "ADJP")
"""Labels over the same words, the outermost first: the order of 3,745 of 3,746 such pairs in GUM's training part."""


def constituents(
    spans: NDArray[np.int64], scores: NDArray[np.float32], labels: Sequence[str], sentences: int
) -> list[list[Constituent]]:
    """The constituents of each of `sentences` sentences, in the order of a `ParsedSentence`.

    `spans` [M, 4]: sentence, label, start, end (exclusive), each once; `scores` [M]. Of crossing spans the highest
    scores win: from the highest score down, a span is kept if it crosses none kept before. Ties: the earlier start,
    then the longer span, then the label that comes first in `UNARY_ORDER`.
    """
    places = np.array([UNARY_ORDER.index(label) for label in labels], np.int64)
    sentence, start, end, place = spans[:, 0], spans[:, 2], spans[:, 3], places[spans[:, 1]]
    order = np.lexsort((place, -end, start, sentence))
    sentence, start, end, place = sentence[order], start[order], end[order], place[order]
    names = np.array(UNARY_ORDER, object)[place].tolist()
    found = list(map(Constituent, names, start.tolist(), end.tolist()))
    limits = np.searchsorted(sentence, np.arange(sentences + 1)).tolist()
    by_sentence = [found[first:last] for first, last in pairwise(limits)]

    for number, first in enumerate(limits[:-1]):
        if _cross(by_sentence[number]):
            ranked = np.argsort(-scores[order[first : limits[number + 1]]], kind="stable")
            by_sentence[number] = _uncrossed(by_sentence[number], ranked.tolist())
    return by_sentence


def without_modifiers(words: Sequence[str], tags: Sequence[str], found: list[Constituent]) -> list[Constituent]:
    """The constituents without an ADJP over one word with a hyphen in front of a noun: "an [export-oriented] economy".

    GUM, on which the network was trained, cuts words at hyphens and brackets the parts. Words that come whole have no
    such bracket in other treebanks. After the noun and the verb it stays: "it is [non-biodegradable]".
    """
    modifiers = {
        each
        for each in found
        if each.label == "ADJP"
        and each.end_token - each.start_token == 1
        and _HYPHENATED.search(words[each.start_token])
        and each.end_token < len(tags)
        and tags[each.end_token][:2] in ("NN", "JJ", "VB", "CD")
    }
    return [each for each in found if each not in modifiers] if modifiers else found


_HYPHENATED = re.compile(r"\w-\w")


def _cross(spans: Iterable[Constituent]) -> bool:
    """Whether any two spans cross; `spans` are in order of start, longest first."""
    ends: list[int] = []  # of the open spans
    for _, start, end in spans:
        while ends and ends[-1] <= start:
            ends.pop()
        if ends and end > ends[-1]:
            return True
        ends.append(end)
    return False


def _uncrossed(spans: Sequence[Constituent], ranked: Iterable[int]) -> list[Constituent]:
    """The spans that cross none kept before them, in their order; `ranked` has their numbers, the best first.

    A span [start, end) crosses a kept one if a fencepost inside it is the start of a kept span that ends after `end`,
    or the end of one that starts before `start`. Here [1, 3) is kept first; [0, 2) crosses it at fencepost 1.

    >>> spans = [Constituent("S", 0, 4), Constituent("NP", 0, 2), Constituent("VP", 1, 3)]
    >>> [tuple(each) for each in _uncrossed(spans, ranked=[2, 0, 1])]
    [('S', 0, 4), ('VP', 1, 3)]
    """
    n = max(span.end_token for span in spans)
    latest_end = [0] * n  # of the spans kept that start at a fencepost
    earliest_start = [n] * n  # of the spans kept that end at it
    kept: list[int] = []
    for number in ranked:
        _, start, end = spans[number]
        inside = slice(start + 1, end)
        if max(latest_end[inside], default=0) <= end and min(earliest_start[inside], default=n) >= start:
            latest_end[start] = max(latest_end[start], end)
            if end < n:
                earliest_start[end] = min(earliest_start[end], start)
            kept.append(number)
    return [spans[number] for number in sorted(kept)]
