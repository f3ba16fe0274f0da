"""Turney: which of five words means the same as a bigram."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from trainers.evaluation.files import lines_of, malformed
from trainers.evaluation.measures import Columns, mean_of
from trainers.evaluation.model import F32, Model
from trainers.evaluation.task import Measure, Outcome, Setting, Task
from trainers.evaluation.vectors import F64, encoded, products, unit

FILE = "turney/turney.txt"
FIELDS = 8
QUESTIONS = 2_180


def is_first(scores: F64) -> F64:
    """[n] 1 where the first of a row's scores is larger than all others, else 0: of equal ones none is right.

    The released code takes the first of the largest, and the first is the correct one: a model that gives one vector
    for all texts has 100 per cent there.
    """
    return (scores[:, 0] > scores[:, 1:].max(axis=1)).astype(np.float64)


def chosen(model: Model, questions: Sequence[Sequence[str]]) -> Columns:
    """The items of questions: a text, the text that is right, and others. By dot product, and by cosine."""
    vectors = encoded(model, [text for each in questions for text in each]).reshape(len(questions), -1, model.dimension)

    def right(vectors: F32) -> F64:
        return is_first(products(vectors[:, :1], vectors[:, 1:]))

    items = np.array([" | ".join(each) for each in questions], dtype=object)
    cosine = unit(vectors.reshape(-1, model.dimension)).reshape(vectors.shape)
    return {"item": items, "right": right(vectors), "right_by_cosine": right(cosine)}


MEASURES = (Measure("accuracy", mean_of("right")), Measure("accuracy by cosine", mean_of("right_by_cosine")))


def run(model: Model, setting: Setting) -> Outcome:
    """The candidate of the largest dot product is chosen."""

    def questions() -> Iterator[tuple[str, ...]]:
        path = setting.data / FILE
        for number, line in lines_of(path):
            fields = line.split(" | ")
            if len(fields) != FIELDS or not all(fields):
                raise malformed(path, number, "bigram with seven words after it, ' | ' between them")
            bigram, correct, _, _, *others = fields
            yield bigram, correct, *others

    found = list(questions())
    remarks = [] if len(found) == QUESTIONS else [f"{len(found):,} of {QUESTIONS:,} questions"]
    return Outcome([chosen(model, found)], {"questions": len(found)}, remarks)


TASKS = (
    Task(
        name="turney",
        title="Turney",
        files=(FILE,),
        protocol="accuracy: the candidate of five whose vector has the largest dot product with the bigram's "
        "(Phrase-BERT, section 4.1)",
        measures=MEASURES,
        run=run,
    ),
)
