from __future__ import annotations

import pytest

from transforms.parsing.evaluation import Agreement, evaluate
from transforms.parsing.interface import Constituent, RefusedSentence

NP = Constituent("NP", 0, 2)
VP = Constituent("VP", 2, 5)
PP = Constituent("PP", 3, 5)
S = Constituent("S", 0, 5)


@pytest.mark.parametrize(
    ("gold", "predicted", "total"),
    [
        ([[NP, VP, PP, S]], [[NP, VP, PP, S]], Agreement(3, 3, 3)),  # S is not one of the labels
        ([[NP, VP]], [[NP, Constituent("VP", 2, 4)]], Agreement(2, 2, 1)),
        ([[NP]], [[Constituent("ADJP", 0, 2)]], Agreement(1, 1, 0)),
        ([[NP, NP]], [[NP, NP, NP]], Agreement(1, 1, 1)),  # a set for each sentence
        ([[NP], [NP]], [[NP], []], Agreement(2, 1, 1)),
        ([[NP]], [RefusedSentence(0, 0, "too_many_tokens")], Agreement(1, 0, 0)),
        ([[]], [[]], Agreement(0, 0, 0)),
    ],
)
def test_counts(gold, predicted, total) -> None:
    assert evaluate(gold, predicted).total == total


def test_f1_is_micro_and_by_label() -> None:
    evaluation = evaluate([[NP, VP, PP]], [[NP, PP, Constituent("PP", 4, 5)]])
    assert evaluation.total.f1 == pytest.approx(2 / 3)
    assert {label: round(agreement.f1, 3) for label, agreement in evaluation.by_label.items()} == {
        "NP": 1.0,
        "VP": 0.0,
        "PP": 0.667,
        "ADJP": 0.0,
        "ADVP": 0.0,
    }
    assert (Agreement(4, 2, 1).precision, Agreement(4, 2, 1).recall) == (0.5, 0.25)


def test_every_sentence_needs_a_prediction() -> None:
    with pytest.raises(ValueError, match="zip"):
        evaluate([[NP]], [])
