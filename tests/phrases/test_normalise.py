"""The form of a token in a phrase, and what counts as punctuation and as a number (docs/phrases.md)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.phrases.normalise import is_number, is_punctuation, normalise_token


@pytest.mark.parametrize(
    ("token", "form"),
    [
        ("Whale", "whale"),
        ("NATO", "nato"),
        ("U.S.", "u.s."),
        # canonical composition, also of what lower-casing decomposes
        ("Cafe\u0301", "caf\u00e9"),
        ("\u212bngstr\u00f6m", "\u00e5ngstr\u00f6m"),
        ("J\u030can", "\u01f0an"),
        # scripts with their own case rules
        ("Straße", "straße"),
        ("STRASSE", "strasse"),
        ("GROẞ", "groß"),
        ("İstanbul", "i\u0307stanbul"),
        ("ISPARTA", "isparta"),
        ("ΟΔΟΣ", "οδος"),
        ("Ǆ", "ǆ"),
        ("東京", "東京"),
        # typographic apostrophes and quotes
        ("don\u2019t", "don't"),
        ("\u2018tis", "'tis"),
        ("Hawai\u02bci", "hawai'i"),
        ("\u201cso\u201d", '"so"'),
        # compatibility characters stay
        ("\u00bd", "\u00bd"),
        ("x\u00b2", "x\u00b2"),
    ],
)
def test_forms(token, form):
    assert normalise_token(token) == form


def test_case_is_kept_on_request():
    assert normalise_token("Don\u2019t", lowercase=False) == "Don't"


@given(st.text(min_size=1), st.booleans())
def test_a_form_is_its_own_form(token, lowercase):
    form = normalise_token(token, lowercase=lowercase)
    assert normalise_token(form, lowercase=lowercase) == form
    assert normalise_token(unicodedata.normalize("NFD", token), lowercase=lowercase) == form
    assert form


@pytest.mark.parametrize("token", [*".,;:!?-–—…()[]{}'\"«»*/\\|_~^`+=<>", "...", "--", "''", "®", "™", "→", "•", "😀"])
def test_punctuation(token):
    assert is_punctuation(token)


@pytest.mark.parametrize("token", ["❤️", "👨‍👩‍👧", "👍🏽", "\u0301", "\ufe0f"])
def test_signs_with_marks_are_punctuation(token):
    assert is_punctuation(token)


@pytest.mark.parametrize("token", ["$", "€", "£", "%", "‰", "#", "&", "@", "°", "′", "″", "§", "¶", "♀", "♂"])
def test_signs_that_carry_meaning_are_none(token):
    assert not is_punctuation(token)


@pytest.mark.parametrize("token", ["a", "'s", "u.s.", "c++", "5", "½", "-5", "x²", "東", "$5", "#1", "1️⃣"])
def test_what_holds_a_letter_or_a_digit_is_no_punctuation(token):
    assert not is_punctuation(token)


@pytest.mark.parametrize(
    "token", ["1984", "3.5", "1,000", "1/2", "-5", "10:30", "½", "$", "%", "Two", "hundred", "millions", "twenty-five"]
)
def test_numbers(token):
    assert is_number(token)


@pytest.mark.parametrize("token", ["first", "1st", "1980s", "b2b", "dozen", "half", "twenty-first", "two-thirds", "x²"])
def test_what_is_no_number(token):
    assert not is_number(token)
