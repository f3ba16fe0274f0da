"""What TensorBoard shows of a training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trainers.training.evaluating import Scores, mean_of
from trainers.training.progress import History

FOLDER = "tensorboard"


class Events:
    """Events in a folder, from step `first` on; later ones of an interrupted training are not shown."""

    def __init__(self, output: Path, first: int) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        self._writer = SummaryWriter(str(output / FOLDER), purge_step=first + 1 if first else None)

    def losses(self, done: int, losses: Mapping[str, float], *, rate: float, history: History) -> None:
        for name, value in losses.items():
            self._add(f"loss/{name}", value, done)
        self._add("training/rate", rate, done)
        self._add("training/examples a second", history.examples_a_second, done)
        self._add("training/share of time waiting for data", history.share_waiting, done)

    def scores(self, done: int, scores: Scores) -> None:
        for task, measures in scores.items():
            for measure, said in measures.items():
                self._add(f"evaluation/{task} {measure}", said["mean"], done)
        self._add("evaluation/mean", mean_of(scores), done)

    def held_out(self, done: int, score: float) -> None:
        self._add("held out", score, done)

    def _add(self, name: str, value: float, done: int) -> None:
        self._writer.add_scalar(name, value, done)

    def close(self) -> None:
        self._writer.close()
