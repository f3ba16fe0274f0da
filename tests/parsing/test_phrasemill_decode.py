"""Choosing among spans that cross, by hand and compared with the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.parsing.interface import Constituent
from transforms.parsing.phrasemill.decode import UNARY_ORDER, constituents, without_modifiers

LABELS = ("NP", "VP", "PP", "ADJP", "ADVP", "S", "SBAR")


def decoded(spans: list[tuple[str, int, int, float]]) -> list[tuple[str, int, int]]:
    rows = np.array([(0, LABELS.index(label), start, end) for label, start, end, _ in spans], np.int64).reshape(-1, 4)
    (found,) = constituents(rows, np.array([score for *_, score in spans], np.float32), LABELS, 1)
    return [tuple(each) for each in found]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], []),
        (  # nothing crosses: all stay, with any scores
            [("NP", 3, 4, -1), ("VP", 1, 4, 0), ("S", 0, 4, 3), ("NP", 0, 1, 9)],
            [("S", 0, 4), ("NP", 0, 1), ("VP", 1, 4), ("NP", 3, 4)],
        ),
        (  # neighbours and spans with a common end do not cross
            [("NP", 0, 2, 1), ("NP", 2, 3, 1), ("NP", 1, 2, 1), ("NP", 0, 3, 1)],
            [("NP", 0, 3), ("NP", 0, 2), ("NP", 1, 2), ("NP", 2, 3)],
        ),
        (  # a unary chain
            [(label, 0, 2, 1) for label in LABELS],
            [("SBAR", 0, 2), ("S", 0, 2), ("VP", 0, 2), ("PP", 0, 2), ("NP", 0, 2), ("ADVP", 0, 2), ("ADJP", 0, 2)],
        ),
        ([("NP", 0, 2, 1.0), ("VP", 1, 3, 1.5)], [("VP", 1, 3)]),
        ([("NP", 0, 2, 1.5), ("VP", 1, 3, 1.0)], [("NP", 0, 2)]),
        (  # a better span crosses the middle one, so the span that the middle one crosses stays
            [("NP", 0, 2, 1), ("NP", 1, 3, 2), ("NP", 2, 4, 3)],
            [("NP", 0, 2), ("NP", 2, 4)],
        ),
        # Equal scores: the earlier start, the longer span, the label.
        ([("NP", 1, 3, 1), ("VP", 0, 2, 1)], [("VP", 0, 2)]),
        ([("NP", 0, 2, 1), ("NP", 0, 3, 1), ("NP", 1, 4, 1)], [("NP", 0, 3), ("NP", 0, 2)]),
        (  # spans that cross only before or after others that nest
            [("S", 0, 9, 9), ("NP", 1, 4, 3), ("PP", 2, 4, 5), ("NP", 3, 4, 5), ("VP", 3, 9, 4)],
            [("S", 0, 9), ("NP", 1, 4), ("PP", 2, 4), ("NP", 3, 4)],
        ),
    ],
)
def test_decode(spans, expected):
    assert decoded(spans) == expected


@pytest.mark.parametrize(
    ("tagged", "kept"),
    [
        ("an/DT export-oriented/JJ economy/NN", False),
        ("a/DT well-known/JJ old/JJ man/NN", False),
        ("two/CD 10-lap/JJ races/NNS", False),
        ("he/PRP is/VBZ well-known/JJ", True),
        ("it/PRP is/VBZ non-biodegradable/JJ ./.", True),
        ("an/DT oriented/JJ economy/NN", True),
        ("a/DT -/HYPH economy/NN", True),
    ],
)
def test_no_adjp_over_a_hyphenated_word_in_front_of_a_noun(tagged: str, kept: bool) -> None:
    words, tags = zip(*(each.rsplit("/", 1) for each in tagged.split()), strict=True)
    place = next((n for n, word in enumerate(words) if "-" in word or word == "oriented"))
    found = [
        Constituent("NP", 0, len(words)),
        Constituent("ADJP", place, place + 1),
        Constituent("NP", place, place + 1),
    ]
    assert without_modifiers(words, tags, found) == [each for each in found if kept or each.label != "ADJP"]


def test_sentences_are_kept_apart():
    spans = np.array([[2, 0, 0, 2], [0, 1, 1, 3], [2, 1, 1, 3], [0, 0, 0, 4]])
    scores = np.array([1, 1, 2, 1], np.float32)
    assert constituents(spans, scores, LABELS, 4) == [
        [Constituent("NP", 0, 4), Constituent("VP", 1, 3)],
        [],
        [Constituent("VP", 1, 3)],
        [],
    ]


def crossing(one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    return one[1] < other[1] < one[2] < other[2] or other[1] < one[1] < other[2] < one[2]


def by_definition(spans: list[tuple[str, int, int, float]]) -> list[tuple[str, int, int]]:
    kept: list[tuple[str, int, int]] = []
    for label, start, end, _ in sorted(spans, key=lambda s: (-s[3], s[1], -s[2], UNARY_ORDER.index(s[0]))):
        if not any(crossing((label, start, end), other) for other in kept):
            kept.append((label, start, end))
    return sorted(kept, key=lambda s: (s[1], -s[2], UNARY_ORDER.index(s[0])))


SPANS = st.tuples(st.sampled_from(LABELS), st.integers(0, 9), st.integers(1, 6)).map(
    lambda s: (s[0], s[1], s[1] + s[2])
)
SCORED = st.dictionaries(SPANS, st.sampled_from([-1.0, 0.5, 0.75, 3.0]), max_size=40).map(
    lambda spans: [(*span, score) for span, score in spans.items()]
)


@given(SCORED, st.randoms())
def test_decoding_is_what_its_definition_says_in_any_order(spans, random):
    expected = by_definition(spans)
    random.shuffle(spans)
    assert decoded(spans) == expected


@given(st.lists(SCORED, min_size=1, max_size=6))
def test_together_as_alone(sentences):
    rows = [(k, LABELS.index(s[0]), s[1], s[2]) for k, spans in enumerate(sentences) for s in spans]
    scores = np.array([s[3] for spans in sentences for s in spans], np.float32)
    together = constituents(np.array(rows, np.int64).reshape(-1, 4), scores, LABELS, len(sentences))
    assert [[tuple(each) for each in found] for found in together] == [decoded(spans) for spans in sentences]
