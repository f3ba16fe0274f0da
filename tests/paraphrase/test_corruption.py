"""Corrupted phrases: one word of content replaced."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from transforms.paraphrase.corruption import (
    NO_CONTENT,
    NO_REPLACEMENT,
    WORDS,
    Vocabulary,
    content_pieces,
    corrupted,
    count_words,
    group_of,
    vocabulary_table,
)
from transforms.paraphrase.words import word_forms, words

PHRASES = [
    ("the old man's house", "NP", 9),
    ("narrow streets of london", "NP", 5),
    ("walked to the station", "VP", 4),
    ("opened the doors", "VP", 3),
    ("very happy", "ADJP", 3),
    ("quite unhappy", "ADJP", 2),
    ("in 1984", "PP", 2),
    ("in 1872", "PP", 1),
    ("an apple", "NP", 2),
    ("a pear", "NP", 1),
    ("an orange", "NP", 1),
    ("well-known houses", "NP", 1),
    ("of it", "PP", 7),
]


def table(phrases: list[tuple[str, str, int]] = PHRASES, most: int = 100) -> pa.Table:
    return vocabulary_table(count_words(*zip(*phrases, strict=True)), most=most)


@pytest.mark.parametrize(
    ("phrase", "label", "pieces"),
    [
        ("of the", "PP", []),
        ("", "NP", []),
        ("the old man's house", "NP", ["old inside", "man head", "house head"]),
        ("walked to the station", "VP", ["walked verb", "station head"]),
        ("very happy", "ADJP", ["happy adjective"]),
        ("so very gravely", "ADVP", ["gravely adverb"]),
        ("O’Neill’s U.S. (1,300.5)", "NP", ["o’neill head", "u.s head", "1,300.5 head"]),
        ("don't co-operate", "VP", ["co-operate verb"]),
    ],
)
def test_pieces(phrase: str, label: str, pieces: list[str]) -> None:
    found = content_pieces(phrase, label)
    assert [f"{each.text} {each.place}" for each in found] == pieces
    assert [phrase[each.start : each.end].lower() for each in found] == [each.text for each in found]


def test_vocabulary() -> None:
    found = table()
    assert found.schema == WORDS
    assert found.column("word").to_pylist() == sorted(
        "old man house narrow streets london walked station opened doors happy unhappy 1984 1872 apple pear orange "
        "well-known houses".split()
    )
    rows = {each["word"]: each for each in found.to_pylist()}
    assert rows["house"] == {"word": "house", "count": 9, "group": "n:singular v:base, head"}
    assert rows["1984"]["group"] == rows["1872"]["group"] == "number 4, head"
    assert table(most=3).column("word").to_pylist() == ["house", "man", "old"]
    halves = count_words(*zip(*PHRASES[:6], strict=True)) + count_words(*zip(*PHRASES[6:], strict=True))
    assert vocabulary_table(halves, most=100).equals(found)
    assert vocabulary_table(Counter(), most=5).equals(WORDS.empty_table())


@pytest.mark.parametrize(
    ("phrase", "label", "replacements"),
    [
        ("in 1900", "PP", {"1984", "1872"}),
        ("unhappier", "ADJP", None),
        ("an apple", "NP", {"orange"}),
        ("so happy", "ADJP", {"unhappy"}),
        ("asked them", "VP", {"walked", "opened"}),
    ],
)
def test_replacements_of_like_form(phrase: str, label: str, replacements: set[str] | None) -> None:
    vocabulary = Vocabulary(table())
    found = {corrupted(phrase, seed, vocabulary, label=label).replacement for seed in range(60)}
    if replacements is None:  # no such form: any word, but for what is one word with it
        assert found == set(vocabulary.words) - {"happy", "unhappy"} | ({"happy"} & found)
    else:
        assert found <= replacements
        assert found


def test_of_like_frequency() -> None:
    nouns = [each for each in word_forms().tables.all()[:2000] if group_of(each, "head") == "n:singular, head"]
    rows = [(each, "NP", 1 + place) for place, each in enumerate(nouns)]
    vocabulary = Vocabulary(table(rows, most=10_000))
    counts = {word: count for word, _, count in rows}
    assert len(nouns) > 300
    for word in nouns[::100]:
        found = [counts[each] for each in vocabulary.like(word, "head")]
        assert found == sorted(found)
        assert len(found) == 101
        assert max(abs(each - counts[word]) for each in found) <= 101


def test_none() -> None:
    vocabulary = Vocabulary(table())
    assert corrupted("of the", 0, vocabulary) == (None, "", "", NO_CONTENT)
    alone = Vocabulary(table([("houses", "NP", 1)]))
    assert corrupted("a house", 0, alone) == (None, "house", "", NO_REPLACEMENT)
    assert corrupted("a house", 0, Vocabulary(WORDS.empty_table())) == (None, "house", "", NO_REPLACEMENT)


@examples(150)
@given(
    st.sampled_from(PHRASES),
    st.integers(0, 2**64 - 1),
    st.sampled_from(["like", "uniform"]),
    st.lists(st.sampled_from(PHRASES), min_size=3, max_size=13),
)
def test_one_word_differs(
    row: tuple[str, str, int], seed: int, replacement: str, others: list[tuple[str, str, int]]
) -> None:
    phrase, label, _ = row
    vocabulary = Vocabulary(table(others))
    found = corrupted(phrase, seed, vocabulary, label=label, replacement=replacement)
    assert found == corrupted(phrase, seed, Vocabulary(table(others)), label=label, replacement=replacement)
    if found.text is None:
        assert found.reason
        return
    assert found.replacement in vocabulary.words
    changed = [pair for pair in zip(phrase.split(" "), found.text.split(" "), strict=True) if pair[0] != pair[1]]
    assert len(changed) == 1
    assert changed[0][0].replace(found.word, found.replacement, 1) == changed[0][1]
    for one in words(found.word):
        assert word_forms().family(one).isdisjoint(words(found.replacement))


def test_each_word_is_replaced_about_as_often() -> None:
    vocabulary = Vocabulary(table())
    replaced = Counter(corrupted("the old man's house", seed, vocabulary).word for seed in range(300))
    assert set(replaced) == {"old", "man", "house"}
    assert min(replaced.values()) > 60
    drawn = Counter(corrupted("gardens", seed, vocabulary, replacement="uniform").replacement for seed in range(600))
    assert set(drawn) == set(vocabulary.words)
    assert max(drawn.values()) < 70
