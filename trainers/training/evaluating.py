"""Evaluation of a model while it is trained, with what `trainers.evaluate` has: scores, and how far they are apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from trainers.evaluation.models.registry import find_model
from trainers.evaluation.options import Evaluation
from trainers.evaluation.registry import all_tasks
from trainers.evaluation.run import evaluate
from trainers.evaluation.table import as_json
from trainers.training.options import Training

Scores = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""What is known of each measure of each task: mean, deviation, interval, and the difference to another model."""


class _Said(NamedTuple):
    """Says what is done on a line of its own, once it is done."""

    say: Callable[[str], None]

    def doing(self, words: str) -> None:
        pass

    def done(self, words: str) -> None:
        self.say(words)


def scores_of(
    model: Path, results: Path, options: Training, say: Callable[[str], None], *, against: Path | None = None
) -> Scores:
    """The scores of a saved model; the results, such as those of each item, are kept in a folder.

    `against`: the results of a model whose scores are compared. UserError if something is missing.
    """
    assert options.evaluation is not None
    chosen = Evaluation(
        model=str(model),
        tasks=options.tasks,
        data=options.evaluation,
        output=results,
        seeds=options.seeds,
        against=(str(against),) if against else (),
    )
    threads = torch.get_num_threads()  # encoders take one
    try:
        report = json.loads(as_json(evaluate(chosen, lambda name, own: find_model(name), _Said(say), all_tasks())))
    finally:
        torch.set_num_threads(threads)
    kept = ("mean", "deviation", "interval")
    found = {
        task: {measure: {name: one[name] for name in kept} for measure, one in said["measures"].items()}
        for task, said in report["tasks"].items()
    }
    for each in (row for rows in report["against"].values() for row in rows):
        found[each["task"]][each["measure"]] |= {"before": each["other"], "difference": each["difference"]}
        found[each["task"]][each["measure"]] |= {"difference_interval": each["interval"], "p": each["p"]}
    return found


def mean_of(scores: Scores) -> float:
    """The mean over tasks of their first measure."""
    first = [next(iter(measures.values()))["mean"] for measures in scores.values()]
    return sum(first) / len(first)
