"""The words of a phrase that a paraphrase may not hold, and the check of the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from transforms.paraphrase.constraints import banned_words, kept_words, violations
from transforms.paraphrase.words import STOPWORDS, content_words, stem, word_forms, words


@pytest.mark.parametrize(
    ("phrase", "exact"),
    [
        ("of the same", ""),
        ("The Old Man", "man old"),
        ("well-known king's sons'", "king known sons"),
        ("don't know, can't won't", "know"),
        ("don juan won", "don juan won"),
        ("in the U.S. of 1,300.5 km²", "1 300 5 km2 u"),
        ("Café ﬁnal straße", "cafe final strasse"),
        ("vitamin d and c", "c vitamin"),
        ("completely out of art", "art completely"),
        ("mother_in_law’s", "law mother"),
        ("—", ""),
    ],
)
def test_exact_words(phrase: str, exact: str) -> None:
    assert " ".join(banned_words(phrase, inflections=False)) == exact


@pytest.mark.parametrize(
    ("phrase", "banned", "free"),
    [
        ("ran", "run runs ran running", "runway runner ranch"),
        ("better men", "good best better man men", "well human"),
        ("children", "child children", "childhood"),
        ("cities", "city cities", "citizen"),
        ("thought", "think thinks thinking thoughts thoughtful", "though"),
        ("nations", "nation national nationality nationalize", "native"),
        ("lying", "lie lies lied lay", "liar"),
        ("news", "news", "new"),
        ("kardashians tweeted", "kardashian tweet tweets tweeting", "twee"),
        ("the 1990s", "1990 1990s", "199"),
        ("ice-cream", "ice cream icecream creams iced", "creamy"),
        ("19th", "19th", "19"),
        ("the doings", "doings", "do does done"),
    ],
)
def test_other_forms(phrase: str, banned: str, free: str) -> None:
    found = banned_words(phrase, inflections=True)
    assert set(banned.split()) <= set(found)
    assert set(free.split()).isdisjoint(found)
    assert set(banned_words(phrase, inflections=False)) <= set(found)
    assert STOPWORDS.isdisjoint(found)


@pytest.mark.parametrize(
    ("surface", "entity_type", "names", "numbers"),
    [
        ("two old men of Athens", "OTHER", "athens", "two"),
        ("Old men", "OTHER", "", ""),
        ("Old men", "", "", ""),
        ("Old Men", "OTHER", "old men", ""),
        ("Athens", "GPE", "athens", ""),
        ("Twenty days", "DATE", "", "twenty"),
        ("NASA", "OTHER", "nasa", ""),
        ("iPhone sales", "OTHER", "iphone", ""),
        ("The 20th of May 1984", "DATE", "", "20th 1984"),
        ("The O'Neill-Smith's car", "PERSON", "o neill smith", ""),
    ],
)
def test_names_and_numbers(surface: str, entity_type: str, names: str, numbers: str) -> None:
    def kept(*keep: str) -> list[str]:
        return kept_words(surface.lower(), surface=surface, entity_type=entity_type, keep=keep)

    assert " ".join(kept("names")) == " ".join(each for each in names.split() if each not in STOPWORDS)
    assert " ".join(kept("numbers")) == numbers
    banned = banned_words(surface.lower(), inflections=True, kept=kept("names", "numbers"))
    assert set(banned).isdisjoint([*names.split(), *numbers.split()])


@pytest.mark.parametrize(
    ("text", "exact", "strict"),
    [
        ("Running a RUN-up", ["run"], ["running", "run"]),
        ("the runway", [], []),
        ("r.u.n", [], ["r u n"]),
        ("a nation's re-run", ["run"], ["run"]),
        ("of many kings", [], ["kings"]),
        ("foot ball, foot-ball", [], ["foot ball", "foot ball"]),
        ("an ünläut", ["unlaut"], ["unlaut"]),
    ],
)
def test_violations(text: str, exact: list[str], strict: list[str]) -> None:
    banned = ["run", "king", "football", "unlaut"]
    assert violations(text, banned) == exact
    assert violations(text, banned, inflections=True) == strict


@given(st.text())
def test_words_are_those_of_each_character(text: str) -> None:
    """What counts as a letter does not depend on what is beside it: the constraint sees one token at a time."""
    assert words(text) == words("".join(" " if not words(each) and each.isspace() else each for each in text))
    assert words(text) == words(text.upper()) or not text.isascii()
    assert [word for each in text.split() for word in words(each)] == words(text)


@examples(200)
@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_words_of_two_parts(one: str, other: str) -> None:
    assert words(one + " " + other) == words(one) + words(other)
    assert "".join(words(one + other)) == "".join(words(one)) + "".join(words(other))


@examples(100)
@given(st.lists(st.sampled_from(word_forms().tables.all()), min_size=1, max_size=3))
def test_no_form_escapes(chosen: list[str]) -> None:
    """A phrase breaks its own constraint, by each word of content; so does each inflection."""
    phrase = " ".join(chosen)
    banned = banned_words(phrase, inflections=True)
    assert violations(phrase, banned) == content_words(phrase)
    for word in content_words(phrase):
        for form in word_forms().inflections(word) - STOPWORDS:
            assert violations(form, banned) == [form]


def test_lemmas_with_a_stem_are_banned() -> None:
    """All lemmas with the stem of a word: the check by stems finds only what no table knows."""
    lemmas = [each for each in word_forms().tables.all()[::37] if each not in STOPWORDS and len(each) > 2]
    for one in lemmas[::10]:
        banned = banned_words(one, inflections=True)
        for other in lemmas:
            assert (stem(one) == stem(other)) <= (other in banned)
