"""Forms of words."""

from __future__ import annotations

import pytest

from transforms.augmentation.inflection import VOWEL_SOUND, Inflection
from transforms.augmentation.wordnet import ADJECTIVE, ADVERB, NOUN, VERB, WordNet


@pytest.fixture(scope="module")
def inflection(database: WordNet) -> Inflection:
    return Inflection(database)


@pytest.mark.parametrize(
    ("word", "part", "lemma", "forms"),
    [
        ("mice", NOUN, "mouse", "plural"),
        ("children", NOUN, "child", "plural"),
        ("potatoes", NOUN, "potato", "plural"),
        ("women", NOUN, "woman", "plural"),
        ("germans", NOUN, "german", "plural"),
        ("buses", NOUN, "bus", "plural"),
        ("criteria", NOUN, "criterion", "plural"),
        ("cities", NOUN, "city", "plural"),
        ("sheep", NOUN, "sheep", "singular plural"),
        ("monarchs", NOUN, "monarch", "plural"),
        ("churches", NOUN, "church", "plural"),
        ("searches", NOUN, "search", "plural"),
        ("bodies of water", NOUN, "body of water", "plural"),
        ("young ladies", NOUN, "young lady", "plural"),
        ("went", VERB, "go", "past"),
        ("gone", VERB, "go", "participle"),
        ("goes", VERB, "go", "s"),
        ("has", VERB, "have", "s"),
        ("put", VERB, "put", "base past participle"),
        ("found", VERB, "find", "past participle"),
        ("admitted", VERB, "admit", "past participle"),
        ("travelled", VERB, "travel", "past participle"),
        ("traveled", VERB, "travel", "past participle"),
        ("learnt", VERB, "learn", "past participle"),
        ("lying", VERB, "lie", "ing"),
        ("seeing", VERB, "see", "ing"),
        ("tries", VERB, "try", "s"),
        ("played", VERB, "play", "past participle"),
        ("took part", VERB, "take part", "past"),
        ("bigger", ADJECTIVE, "big", "er"),
        ("happiest", ADJECTIVE, "happy", "est"),
        ("wider", ADJECTIVE, "wide", "er"),
        ("narrower", ADJECTIVE, "narrow", "er"),
        ("better", ADJECTIVE, "good", "er"),
        ("worst", ADJECTIVE, "bad", "est"),
        ("best", ADVERB, "well", "est"),
    ],
)
def test_forms(inflection: Inflection, word: str, part: str, lemma: str, forms: str) -> None:
    found = inflection.forms(word, part)
    assert found[lemma] == frozenset(forms.split())
    if " " not in forms and word not in ("traveled", "learnt"):
        assert inflection.inflect(lemma, part, forms) == word


def test_what_is_not_a_form(inflection: Inflection) -> None:
    assert list(inflection.forms("hoped", VERB)) == ["hope"]  # not "hop"
    assert list(inflection.forms("men", NOUN)) == ["man"]
    assert not inflection.forms("readed", VERB)
    assert inflection.inflect("beautiful", ADJECTIVE, "er") is None
    assert inflection.inflect("okay", ADJECTIVE, "est") is None
    assert inflection.inflect("twenty-four hours", NOUN, "plural") is None  # a plural itself


def test_which_article_stands_before_a_word() -> None:
    with_an = "hour honest heir honour apple 8 11 unimportant unending uninhabited ugly 80".split()
    with_a = "house honey hero union use utopia one once european ubiquitous u.s. 1".split()
    assert [each for each in (*with_an, *with_a) if VOWEL_SOUND.match(each)] == with_an
