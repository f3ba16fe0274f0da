"""The paper's filter for training pairs, against scipy and its rules for repeated words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from transforms.paraphrase.options import TrainingPairRules
from transforms.paraphrase.training_pairs import kendall_tau, normalised, precision, training_pairs, why_not

texts = st.lists(st.sampled_from("one two three four five Five, the a not".split()), max_size=9).map(" ".join)


@given(texts, texts)
@examples(60)
def test_tau_is_scipys(one: str, other: str) -> None:
    from scipy.stats import kendalltau

    left, places = list(normalised(other)), []
    for word in normalised(one):
        if word in left:
            places.append(left.index(word))
            left[places[-1]] = ""
    expected = kendalltau(range(len(places)), places).statistic if len(places) > 1 else -1
    assert kendall_tau(one, other) == pytest.approx(expected)


@given(texts, texts)
@examples(60)
def test_precision_counts_each_word_once(one: str, other: str) -> None:
    own, found = list(normalised(one)), 0
    for word in normalised(other):
        if word in own:
            own.remove(word)
            found += 1
    both = not normalised(one) and not normalised(other)
    assert precision(one, other) == pytest.approx(1 if both else found / max(len(normalised(other)), 1))


TABLE = [
    ("the king came home", "home was where he went", ""),
    ("a broad street", "wide road", ""),
    ("soon", "in a time that is very short indeed", "length_difference"),
    ("soon", "in a time that is short", ""),  # a difference of 5
    ("the old man", "the old fellow", "precision"),
    ("one two", "one and two are the words", "same_order"),  # a precision of 0.4
    ("one two", "two and one are the words", ""),
    ("broad street", "широкая улица", "not_english"),
    ("silnice do lesa", "velmi cesta", "not_english"),
    ("main road", "silnice do lesa", ""),  # one text is English
    ("", "", "precision"),
]


@pytest.mark.parametrize(("phrase", "paraphrase", "reason"), TABLE)
def test_reasons(phrase: str, paraphrase: str, reason: str) -> None:
    english = frozenset("the king came home was where he went a broad street wide road main soon one two and".split())

    def known(text: str) -> float:
        return sum(each in english for each in text.split()) / max(len(text.split()), 1)

    rules = TrainingPairRules()
    assert why_not(phrase, paraphrase, rules, known if "silnice" in paraphrase + phrase else None) == reason
    any_pair = TrainingPairRules(max_tau=2, max_precision=2, max_length_difference=99, min_english=0)
    letters = reason if "улица" in paraphrase else ""
    assert why_not(phrase, paraphrase, any_pair, known) == letters


def test_the_ledger_of_pairs_adds_up() -> None:
    kept, filtered = training_pairs([row[:2] for row in TABLE[:8]], TrainingPairRules())
    assert kept == [row[:2] for row in TABLE[:8] if not row[2]]
    assert dict(filtered) == {"length_difference": 1, "precision": 1, "same_order": 1, "not_english": 1}
