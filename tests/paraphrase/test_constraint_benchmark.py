"""The independent check of the constraint (benchmarks/constraint.py) against the constraint's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.constraint import Checker
from tests.properties import examples
from transforms.augmentation.wordnet import WordNet
from transforms.paraphrase.constraints import banned_words, violations
from transforms.paraphrase.words import word_forms


@pytest.fixture(scope="module")
def checker(database: WordNet) -> Checker:
    return Checker()


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("the Runner ran", "on the runway, re-RAN", "word ran/ran"),
        ("better men", "a good man of human art", "form good/better, form man/men"),
        ("don't know it", "knowledge; don't you", ""),
        ("café", "CAFÉS", "form cafes/cafe"),
        ("of the kings", "kingly", "stem kingly/kings"),
    ],
)
def test_what_it_finds(checker: Checker, phrase: str, text: str, found: str) -> None:
    said = [f"{each.kind} {each.word}/{each.of}" for each in checker.overlaps(phrase, text)]
    assert ", ".join(said) == found


@pytest.mark.heavy
@examples(150)
@given(
    st.lists(st.sampled_from(word_forms().tables.all()), min_size=1, max_size=3),
    st.lists(st.sampled_from(word_forms().tables.all()), min_size=1, max_size=3),
    st.data(),
)
def test_what_the_check_lets_pass_it_lets_pass(
    checker: Checker, chosen: list[str], others: list[str], data: st.DataObject
) -> None:
    """A text that our own strict check finds nothing in has no word, form or stem in common with the phrase."""
    phrase = " ".join(chosen)
    form = data.draw(st.sampled_from(sorted({chosen[0], *word_forms().family(chosen[0])})))
    text = " ".join([*others, form][data.draw(st.integers(0, 1)) :])
    banned = banned_words(phrase, inflections=True)
    if not violations(text, banned, inflections=True):
        assert not checker.overlaps(phrase, text)
    if not violations(text, banned_words(phrase, inflections=False)):
        assert not checker.overlaps(phrase, text, exact=True)
