"""How far a training is: a bar or lines on stderr, and the losses over time."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from transforms.reports.figures import duration

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

REPORT_SECONDS = 10.0
POINTS = 200
"""About how many times the losses are kept."""


@dataclass
class History:
    """What a training has been so far; part of its checkpoint.

    losses    [[steps done, {name: mean since the one before}], ...]
    scores    of the evaluation, by steps done
    held_out  [[steps done, score], ...]
    seconds   that the steps have taken, `waiting` of them for rows
    """

    losses: list[Any] = field(default_factory=list)
    scores: dict[str, Any] = field(default_factory=dict)
    held_out: list[Any] = field(default_factory=list)
    examples: int = 0
    seconds: float = 0.0
    waiting: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)
    summed: int = 0

    def state(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def since_best(self) -> int:
        """How many scores on held-out rows came after the best one, the first of equal ones."""
        scores = [score for _, score in self.held_out]
        return len(scores) - 1 - scores.index(max(scores))

    @property
    def examples_a_second(self) -> float:
        return self.examples / self.seconds if self.seconds else 0.0

    @property
    def share_waiting(self) -> float:
        return self.waiting / self.seconds if self.seconds else 0.0


class Progress:
    """Shows the steps from `first` on: a bar if stderr is a terminal, otherwise a line about every ten seconds.

    Silent unless `shown`: only one of several processes shows it.
    """

    def __init__(self, steps: int, first: int, history: History, *, shown: bool = True) -> None:
        self.history, self._steps, self._first, self._shown = history, steps, first, shown
        self._every = max(1, steps // POINTS)
        self._began = (history.seconds, history.examples)
        self._said = time.monotonic()
        self._since: dict[str, float] = {}
        self._steps_since = 0
        self._bar: Bar | None = None
        if shown and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("steps, {task.description}"))
            self._bar = Progress(*columns, console=Console(stderr=True, highlight=False))
            self._task = self._bar.add_task("", total=steps, completed=first)
            self._bar.start()

    def note(
        self, step: int, losses: Mapping[str, float], *, examples: int, seconds: float, waiting: float = 0.0
    ) -> dict[str, float] | None:
        """A step is done. Gives the mean losses at each point that is kept."""
        history, done = self.history, step + 1
        history.examples += examples
        history.seconds += seconds
        history.waiting += waiting
        for name, value in losses.items():
            history.sums[name] = history.sums.get(name, 0.0) + value
            self._since[name] = self._since.get(name, 0.0) + value
        history.summed += 1
        self._steps_since += 1
        if self._shown:
            self._show(done)
        if done % self._every and done < self._steps:
            return None
        point = {name: value / history.summed for name, value in history.sums.items()}
        history.losses.append([done, point])
        history.sums, history.summed = {}, 0
        return point

    def _show(self, done: int) -> None:
        now = time.monotonic()
        if now - self._said < (1.0 if self._bar else REPORT_SECONDS) and done < self._steps:
            return
        seconds = self.history.seconds - self._began[0]
        rate = (self.history.examples - self._began[1]) / max(seconds, 1e-9)
        left = duration(seconds / max(done - self._first, 1) * (self._steps - done))
        losses = ", ".join(f"{name} {value / self._steps_since:.4f}" for name, value in self._since.items())
        words = f"{losses}, {rate:,.0f} examples/s, {left} left"
        if self._bar:
            self._bar.update(self._task, completed=done, description=words)
        else:
            print(f"step {done:,} of {self._steps:,}: {words}", file=sys.stderr, flush=True)
        self._said, self._since, self._steps_since = now, {}, 0

    def say(self, words: str) -> None:
        if self._bar:
            self._bar.console.print(words, markup=False)
        elif self._shown:
            print(words, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar:
            self._bar.stop()
