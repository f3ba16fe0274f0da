"""Synonyms from WordNet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from transforms.augmentation.inflection import FORMS, Inflection
from transforms.augmentation.synonyms import Synonym, Synonyms
from transforms.augmentation.wordnet import WordNet


@pytest.fixture(scope="module")
def synonyms(database: WordNet) -> Synonyms:
    return Synonyms(database)


@pytest.fixture(scope="module")
def augmenter(database: WordNet) -> Synonym:
    return Synonym()


@pytest.fixture(scope="module")
def inflection(database: WordNet) -> Inflection:
    return Inflection(database)


@pytest.mark.parametrize(
    ("phrase", "word", "expected"),
    [
        ("better cars", "cars", "autos automobiles motorcars"),
        ("our largest shop", "largest", "biggest"),
        ("bigger shops", "bigger", "larger"),
        ("had begun", "begun", "started commenced"),
        ("bought a hat", "bought", "purchased"),
        ("hid him", "hid", "concealed"),
        ("spoke of it", "spoke", "talked"),  # the past
        ("the children", "children", "kids youngsters"),
        ("such young ladies", "young ladies", "girls|young women"),
        ("takes place", "takes place", "happens|occurs|comes about"),
        ("ran quickly", "quickly", "rapidly speedily"),
        ("my Automobile's doors", "Automobile", ""),  # a name
        ("Automobile owners", "Automobile", "Car Motorcar"),  # the first word of a sentence
        ("the (clumsy) owners,", "owners", "proprietors"),
        ("an old car", "car", "auto automobile motorcar"),
        ("a car", "car", "motorcar"),  # and not "a auto"
        ("in the shop", "shop", "store"),
        ("shop", "shop", ""),  # a noun or a verb
        ("the main street", "main", ""),  # WordNet knows it as one word
        ("New York", "York", ""),
        ("of course", "course", ""),
        ("bought it", "bought", ""),  # to buy it is to die
        ("192.168.1.1", "192.168.1.1", ""),
        ("living beings", "living", ""),
        ("very material help", "material", ""),
        ("john", "john", ""),  # WordNet knows a toilet too
        ("café-shop naïvely", "naïvely", ""),
    ],
)
def test_synonyms(synonyms: Synonyms, phrase: str, word: str, expected: str) -> None:
    found = {phrase[each.start : each.end]: each.synonyms for each in synonyms.replaceable(phrase)}
    assert list(found.get(word, ())) == expected.split("|" if "|" in expected else None)


WORDS = """
    the my of in to a an and car cars children begun bigger largest quickly young ladies took place shop owners talk
    speak spoke, 192.168.1.1 New York naïvely (baggage) motorcar's Government mice 日本 👍🏽 é
""".split()


@examples(60)
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=8))
def test_one_word_is_replaced_and_a_row_depends_on_itself_alone(
    augmenter: Synonym, inflection: Inflection, phrases: list[str]
) -> None:
    seeds = np.arange(len(phrases), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    made = augmenter.augment(pa.array(phrases), seeds).to_pylist()
    for phrase, seed, text in zip(phrases, seeds, made, strict=True):
        assert augmenter.augment(pa.array([phrase]), np.array([seed])).to_pylist() == [text]
        options = augmenter._synonyms.replaceable(phrase)
        assert (text is None) == (not options)
        if text is not None:
            fits = [
                (phrase[each.start : each.end], synonym)
                for each in options
                for synonym in each.synonyms
                if text == phrase[: each.start] + synonym + phrase[each.end :]
            ]
            assert fits
            before, after = (each.lower() for each in fits[0])
            assert before != after
            assert any(_same_form(inflection, before, after, part) for part in FORMS)


def _same_form(inflection: Inflection, one: str, other: str, part: str) -> bool:
    forms = [frozenset.union(frozenset(), *inflection.forms(each, part).values()) for each in (one, other)]
    return bool(forms[0] & forms[1]) and not set(inflection.forms(one, part)) & set(inflection.forms(other, part))


def test_seeds_choose_among_all(augmenter: Synonym) -> None:
    phrases = pa.array(["children in cars"] * 400)
    made = augmenter.augment(phrases, np.arange(400, dtype=np.uint64)).to_pylist()
    assert set(made) == {
        "kids in cars",
        "youngsters in cars",
        "children in autos",
        "children in automobiles",
        "children in motorcars",
    }
