"""The PPDB test of Pairwise-GRU: which of 100 phrases is the paraphrase, of which 99 are random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schemas.dataset import Dataset
from schemas.errors import UserError
from trainers.evaluation.measures import Columns
from trainers.evaluation.model import Model
from trainers.evaluation.task import Outcome, Setting, Task
from trainers.evaluation.tasks.turney import MEASURES, is_first
from trainers.evaluation.vectors import encoded, products, unit

FOLDER, SPLIT = "ppdb_choice", "test"
COLUMNS = ("phrase", "paraphrase", "contrasts")
PAIRS, CONTRASTS = 40_617, 99
"""Of the paper: a tenth of 406,170 pairs."""

_AT_ONCE = 64


def choices(model: Model, rows: Sequence[Sequence[str]]) -> Columns:
    """The items of rows: a phrase, its paraphrase, and as many contrasts in each. Of equal ones none is right.

    The vectors of all distinct texts are in memory.
    """
    texts = {text: place for place, text in enumerate(dict.fromkeys(text for row in rows for text in row))}
    vectors = encoded(model, list(texts))
    items = {"item": np.array([" | ".join(row[:2]) for row in rows], dtype=object)}
    for name, values in (("right", vectors), ("right_by_cosine", unit(vectors))):
        right = []
        for start in range(0, len(rows), _AT_ONCE):
            asked = np.array([[texts[text] for text in row] for row in rows[start : start + _AT_ONCE]])
            right.append(is_first(products(values[asked[:, :1]], values[asked[:, 1:]])))
        items[name] = np.concatenate(right)
    return items


def run(model: Model, setting: Setting) -> Outcome:
    """The candidate of the largest dot product is chosen."""
    dataset = Dataset.open(str(setting.data / FOLDER))
    if not {*COLUMNS} <= {*dataset.manifest.schema.names}:
        raise UserError(f"{dataset.folder}: has {dataset.manifest.record}: give what phrasemill contrast-pairs writes")
    rows = [
        [row["phrase"], row["paraphrase"], *row["contrasts"]]
        for table in dataset.tables(SPLIT, columns=COLUMNS)
        for row in table.to_pylist()
    ]
    if not rows:
        raise UserError(f"{dataset.folder}: no pair is in the split {SPLIT!r}: give contrast-pairs more pairs")
    items = choices(model, rows)
    remarks = []
    if len(rows[0]) - 2 != CONTRASTS:
        remarks.append(f"{len(rows[0]) - 2} contrasts, not {CONTRASTS}")
    if len(rows) != PAIRS:
        remarks.append(f"{len(rows):,} pairs; the {PAIRS:,} of the paper were drawn at random and are not released")
    return Outcome([items], {"pairs": len(rows)}, remarks)


TASKS = (
    Task(
        name="ppdb_choice",
        title="PPDB, 1 of 100",
        files=(f"{FOLDER}/manifest.json",),
        protocol="accuracy: the candidate, of the paraphrase and 99 random phrases, whose vector has the largest dot "
        "product with the phrase's (Pairwise-GRU, section 4)",
        measures=MEASURES,
        run=run,
    ),
)
