"""Turney: which of five words means the same as a bigram."""

from __future__ import annotations

import numpy as np

from trainers.evaluation.files import lines_of, malformed
from trainers.evaluation.measures import mean_of
from trainers.evaluation.model import Model
from trainers.evaluation.task import Measure, Outcome, Setting, Task

FILE = "turney/turney.txt"
FIELDS = 8
QUESTIONS = 2_180


def run(model: Model, setting: Setting) -> Outcome:
    """The candidate of the largest dot product is chosen; of equal ones none is right."""
    path = setting.data / FILE
    rows = []
    for number, line in lines_of(path):
        fields = line.split(" | ")
        if len(fields) != FIELDS:
            raise malformed(path, number, "bigram with its seven words, ' | ' between them")
        bigram, correct, _, _, *others = fields
        rows.append((bigram, correct, *others))
    vectors = model.encode([text for row in rows for text in row]).reshape(len(rows), -1, model.dimension)
    scores = np.einsum("nd,ncd->nc", vectors[:, 0], vectors[:, 1:])
    items = np.array([" | ".join(row) for row in rows], dtype=object)
    right = scores[:, 0] > scores[:, 1:].max(axis=1)
    remarks = [] if len(rows) == QUESTIONS else [f"{len(rows):,} of {QUESTIONS:,} questions"]
    return Outcome([{"item": items, "right": right}], {"questions": len(rows)}, remarks)


TASKS = (
    Task(
        name="turney",
        title="Turney",
        files=(FILE,),
        protocol="accuracy: the candidate of five whose vector has the largest dot product with the bigram's "
        "(Phrase-BERT, section 4.1)",
        measures=(Measure("accuracy", mean_of("right")),),
        run=run,
    ),
)
