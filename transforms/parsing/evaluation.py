"""The agreement of predicted constituents with a treebank: micro-F1 over labelled spans, a set for each sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from schemas.terms import PHRASE_LABELS
from transforms.parsing.interface import Constituent, RefusedSentence


class Agreement(NamedTuple):
    """Numbers of labelled spans: in the gold trees, predicted, and in both."""

    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.correct / (self.gold + self.predicted) if self.gold + self.predicted else 0.0


class Evaluation(NamedTuple):
    """The agreement on each label, and in `total` on all labels together, whose F1 is the micro average."""

    total: Agreement
    by_label: dict[str, Agreement]


def evaluate(
    gold: Iterable[Sequence[Constituent]],
    predicted: Iterable[Sequence[Constituent] | RefusedSentence],
    *,
    labels: Sequence[str] = PHRASE_LABELS,
) -> Evaluation:
    """Compare sentence by sentence. A repeated span counts once; a refused sentence has no spans.

    Raises ValueError if the numbers of predictions and gold sentences differ.
    """
    in_gold: Counter[str] = Counter()
    in_predicted: Counter[str] = Counter()
    in_both: Counter[str] = Counter()
    for gold_spans, prediction in zip(gold, predicted, strict=True):
        expected = set(gold_spans)
        found = set() if isinstance(prediction, RefusedSentence) else set(prediction)
        in_gold.update(span.label for span in expected)
        in_predicted.update(span.label for span in found)
        in_both.update(span.label for span in expected & found)
    by_label = {label: Agreement(in_gold[label], in_predicted[label], in_both[label]) for label in labels}
    return Evaluation(Agreement(*map(sum, zip(*by_label.values(), strict=True))), by_label)
