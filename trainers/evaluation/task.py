"""What a task of the evaluation is: its files, its protocol, and what it finds for each item.

A task keeps what it found for each item (a question, a pair, a mention), not only the score: the score is a function of
the items, so that its spread and the difference of two models can be estimated by drawing items again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trainers.evaluation.measures import Columns, Score
from trainers.evaluation.model import Model

ITEM = "item"
"""The column that says which item it is."""

OR = " or "


class Measure(NamedTuple):
    """A score of a task.

    of       the score of items that are drawn with weights (trainers/evaluation/measures.py)
    scale    what the score is multiplied with to be printed: 100 for per cent
    group    the column by whose values items are drawn again (tables of AutoFJ), empty if by themselves
    """

    name: str
    of: Score
    scale: float = 100.0
    group: str = ""

    def score(self, items: Columns) -> float:
        """The score of the items themselves."""
        return float(self.of(items, np.ones((1, len(items[ITEM]))))[0])


class Outcome(NamedTuple):
    """What a task found.

    items    for each seed its items; one entry for a task without randomness. Items of one seed are the same, in the
             same order, whatever the model. The column `item` has what identifies each: the texts of the question, or a
             place in a file; items of two seeds that have the same are one item when items are drawn again
    read     what was read from the files, by unit ("questions", "pairs")
    remarks  why its scores are not those of the published protocol: "1,688 of 3,345 pairs"; empty if they are
    """

    items: Sequence[Columns]
    read: Mapping[str, int]
    remarks: Sequence[str] = ()


class Setting(NamedTuple):
    """What a task is run with. `note` is called with a few words on what is done now."""

    data: Path
    seeds: Sequence[int]
    note: Callable[[str], None] = lambda words: None


@dataclass(frozen=True)
class Task:
    """A task.

    name         as it is given to --tasks
    title        as tables show it
    files        what it reads, below --data: paths, or patterns of them; the format is that of docs/evaluation.md.
                 With OR between: those that are there are read, and one is enough
    protocol     a sentence: how the score comes about, with the paper and its section
    measures     its scores; the first is the one that tables show
    run          raises UserError that names the file, the line and the remedy
    in_context   it needs vectors of spans in sentences (`Model.encode_spans`)
    seeded       its scores depend on a seed (a split, first weights, first centroids)
    version      raised by hand when the same model would have other items: earlier results are computed again
    """

    name: str
    title: str
    files: tuple[str, ...]
    protocol: str
    measures: tuple[Measure, ...]
    run: Callable[[Model, Setting], Outcome]
    in_context: bool = False
    seeded: bool = False
    version: int = 1
