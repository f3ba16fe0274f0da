"""Random phrases for pairs, and negatives that share a word: kernels on literal pairs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from transforms.pairs.drawing import Wanted, draw
from transforms.pairs.overlap import is_plain, matches, phrase_order, shared_word


def drawn(pairs, draws, phrases, *, taken=None, seed=0, apart=False):
    """What `draw` gives for pairs of these phrases."""
    taken = taken or {one: {one, *(pair[1] for pair in pairs if pair[0] == one)} for one, _ in pairs}
    wanted = [Wanted(one, other, taken[one]) for one, other in pairs]

    def look_up(numbers):
        assert (np.diff(numbers) > 0).all()
        return [phrases[number] for number in numbers.tolist()]

    return draw(wanted, draws, phrases=len(phrases), seed=seed, look_up=look_up, apart=apart)


PHRASES = [f"phrase {number}" for number in range(40)]


def test_all_phrases_are_drawn_alike():
    pairs = [(f"a {n}", f"b {n}") for n in range(800)]
    counts = Counter(each for row in drawn(pairs, 9, PHRASES) for each in row)
    assert set(counts) == set(PHRASES)
    expected = 800 * 9 / 40
    # A chi-square of 39 degrees of freedom is above 80 once in ten thousand times.
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 80


@examples(30)
@given(
    st.lists(st.tuples(st.sampled_from(PHRASES[:6]), st.sampled_from(PHRASES[:9])), unique=True, max_size=9),
    st.integers(1, 20),
    st.booleans(),
)
def test_no_phrase_is_drawn_that_is_taken_or_was_drawn(pairs, draws, apart):
    pairs = [(one, other) for one, other in pairs if one != other]
    before = {one: {one, *(two for first, two in pairs if first == one)} for one, _ in pairs}
    found = drawn(pairs, draws, PHRASES, apart=apart)
    for (one, _), own in zip(pairs, found, strict=True):
        assert len({*own}) == len(own)
        assert not {*own} & before[one]
        assert apart or len(own) == draws
    if apart:
        for one in before:
            every = [each for pair, own in zip(pairs, found, strict=True) if pair[0] == one for each in own]
            assert len({*every}) == len(every)


def test_a_draw_does_not_depend_on_other_pairs():
    pairs = [(f"a {n}", f"b {n}") for n in range(30)]
    whole = drawn(pairs, 5, PHRASES)
    assert [drawn([pair], 5, PHRASES)[0] for pair in pairs] == whole
    assert drawn(pairs[::-1], 5, PHRASES) == whole[::-1]
    assert drawn(pairs, 5, PHRASES, seed=1) != whole
    assert [row[:3] for row in whole] == drawn(pairs, 3, PHRASES)


@pytest.mark.parametrize(("phrases", "count"), [([], 0), (["a"], 0), (["a", "b", "c"], 1), (["a", "c", "d"], 2)])
def test_too_few_phrases(phrases, count):
    (found,) = drawn([("a", "b")], 2, phrases)
    assert sorted(found) == sorted({*phrases} - {"a", "b"})
    assert len(found) == count


@pytest.mark.parametrize(
    ("phrase", "words", "plain"),
    [
        ("big car", 2, True),
        ("big red car", 2, False),
        ("car", 2, False),
        ("big red car", 3, True),
        ("big .", 2, False),
        ("'s car", 2, False),
        ("the car", 2, True),
        ("have cars", 2, False),
    ],
)
def test_which_phrases_may_share_a_word(phrase, words, plain):
    assert is_plain(phrase, words) is plain


def test_the_shared_word():
    assert shared_word("big car", "large car") == "car"
    assert shared_word("big car", "large boat") == ""
    assert shared_word("big car", "car big") == ""
    assert shared_word("car car", "car park") == "car"


def ordered(phrases):
    return sorted(phrases, key=lambda each: phrase_order(each, 0))


def test_a_negative_shares_the_word_and_is_no_paraphrase():
    positives = [("big car", "large car"), ("large car", "huge car"), ("old car", "ancient car")]
    phrases = ordered({each for pair in positives for each in pair} | {"car park", "big park"})
    found = [each.negative for each in matches("car", positives, phrases, seed=0)]
    assert found[0] in {"old car", "ancient car", "car park"}
    assert found[1] in {"old car", "ancient car", "car park"}
    assert found[2] in {"big car", "large car", "huge car", "car park"}


def test_a_pair_without_a_negative():
    positives = [("big car", "large car"), ("large car", "huge car")]
    phrases = ordered({"big car", "large car", "huge car"})
    assert [each.negative for each in matches("car", positives, phrases, seed=0)] == [None, None]
    # One phrase beside them: each phrase gets it once.
    found = matches("car", [*positives, ("large car", "big car")], ordered([*phrases, "car park"]), seed=0)
    assert [each.negative for each in found] == ["car park", "car park", None]


WORDS = "big large huge old new red".split()


@examples(30)
@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), unique=True), st.integers(0, 3))
def test_matches(pairs, seed):
    positives = [(f"{one} car", f"{other} car") for one, other in pairs if one != other]
    phrases = ordered({each for pair in positives for each in pair} | {"car park", "car wash"})
    known = {frozenset(pair) for pair in positives}
    found = matches("car", positives, phrases, seed=seed)
    negatives = [frozenset((positives[number][0], negative)) for number, negative in found if negative]
    assert [number for number, _ in found] == [*range(len(positives))]
    assert len({*negatives}) == len(negatives)
    assert not known & {*negatives}
    assert all(shared_word(*each) == "car" for each in negatives)
    assert matches("car", positives, phrases, seed=seed) == found
