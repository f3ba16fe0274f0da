"""Overlaps with evaluation texts: tables, and a comparison with brute force."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlapping import is_known, words
from properties import examples

from transforms.decontamination.options import OverlapRules
from transforms.decontamination.overlaps import EvaluationTexts, Overlap, Place

SAID = "he took it all in good part and said that it would be a long way to the sea"


def overlaps(evaluation, texts, **rules):
    """The rows with an overlap, each with the words that are in both."""
    known = EvaluationTexts([(Place(0, n), text) for n, text in enumerate(evaluation)], OverlapRules(**rules))
    return [(each.row, each.words) for each in known.overlaps(pa.array(texts, pa.string()))]


@pytest.mark.parametrize(
    ("evaluation", "text", "words"),
    [
        ("old man", "old man", "old man"),
        ("The Old-Man !", "old man's", None),
        ("The Old Man !", "an old-man", "old man"),
        ("old man", "the old man and the sea", None),
        ("a caf\u00e9 noir", "the cafe\u0301 NOIR", "caf\u00e9 noir"),
        ("I do n't know", "I don\u2019t know.", "i don t know"),
        ("man", "man", None),
        ("the man", "man", None),
        ("U.S.", "u s", None),
        ("old-fashioned", "old fashioned", None),
        ("the", "the", None),
        ("8 - 3", "8 3", None),
        ("8 men", "8 men", "8 men"),
        (SAID, "... IN GOOD PART, and said that it would?", "in good part and said that it would"),
        (SAID, "in good part and said that it might", None),
        (SAID, SAID, "he took it all in good part and said that it would be a long way to the sea"),
        ("it was a long way down to sea", "it was a long way down to sea level", "it was a long way down to sea"),
        ("a long way down to the sea", "it is a long way down to the sea", None),
    ],
)
def test_one_text_and_another(evaluation, text, words):
    assert overlaps([evaluation], [text]) == ([] if words is None else [(0, words)])


def test_the_options():
    assert overlaps(["man", "the man", "8"], ["man", "8"], min_words=1) == [(0, "man")]
    assert overlaps(["old man", "an old sea dog"], ["old man", "old sea dog"], min_words=3) == [(1, "old sea dog")]
    assert overlaps([SAID], ["a long way", "a long walk"], shared_words=3) == [(0, "a long way")]
    assert overlaps([SAID], ["a long walk"], shared_words=2) == [(0, "a long")]


def test_one_overlap_a_row_and_file_with_its_first_place():
    texts = [(Place(0, 7), "old man"), (Place(0, 3), "an Old Man"), (Place(1, 2), "the sea dog"), (Place(1, 1), SAID)]
    known = EvaluationTexts([*texts, (Place(1, 9), "old man")], OverlapRules(shared_words=3))
    assert known.of_files(3) == [1, 3, 0]
    found = known.overlaps(pa.array(["", "sea", "old man", f"{SAID} old man", "a sea dog"]))
    assert found == [
        Overlap(2, "old man", Place(0, 3)),
        Overlap(2, "old man", Place(1, 9)),
        Overlap(3, "he took it", Place(1, 1)),
        Overlap(4, "sea dog", Place(1, 2)),
    ]


def test_nothing_to_look_for():
    assert overlaps(["man", "8 3", ""], ["man", ""]) == []
    assert overlaps([], ["man"]) == []
    assert overlaps(["old man"], []) == []


# ---- By brute force


pieces = st.sampled_from(
    ["the", "A", "old", "Old", "old-old", "se\u0301a", "s\u00e9a", "do", "n't", "N\u2019T", "8", ",", "U.S.", ""]
)
texts = st.lists(st.lists(pieces, max_size=7).map(" ".join), max_size=20)


@examples(12)
@given(evaluation=texts, texts=texts, least=st.integers(1, 3), shared=st.integers(2, 4))
def test_the_same_as_brute_force(evaluation, texts, least, shared):
    rules = OverlapRules(min_words=least, shared_words=shared)
    expected = [row for row, text in enumerate(texts) if is_known(evaluation, text, rules)]
    found = overlaps(evaluation, texts, min_words=least, shared_words=shared)
    assert [row for row, _ in found] == expected
    for row, same in found:
        assert f" {same} " in f" {' '.join(words(texts[row]))} "
