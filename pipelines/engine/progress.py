"""What a run shows of its progress, and the figures for `python -m pipelines.status`.

On a terminal, a live bar for each stage; otherwise a line when a stage ends, and at intervals while it runs.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TextIO

from pipelines.engine.stage import Fault, Stage, Tally
from pipelines.engine.stopping import at_stop, not_at_stop
from transforms.reports.figures import duration, plural, size

_LINE_EVERY = 30.0
"""Seconds between the lines of a stage if there is no terminal."""


class AtWork(NamedTuple):
    """A worker with a unit: its process, what it has done of the unit, its memory in bytes."""

    pid: int
    stage: str
    unit: int
    tally: Tally
    memory: int


@dataclass
class StageFigures:
    """The progress of a stage. `before` (units) and `tally_before`: what earlier runs did. Times are Unix times."""

    dataset: str
    name: str
    counts: str
    units: int
    before: int
    tally_before: Tally
    began: float
    done: int = 0
    tally: Tally = field(default_factory=Tally)
    ended: float | None = None
    faults: int = 0
    doing: Tally = field(default_factory=Tally)
    """What is done of units that are not finished."""

    def to_json(self) -> dict[str, Any]:
        return {**self.__dict__, **{name: list(getattr(self, name)) for name in ("tally_before", "tally", "doing")}}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StageFigures:
        return cls(**{**data, **{name: Tally(*data[name]) for name in ("tally_before", "tally", "doing")}})

    def seconds(self, now: float) -> float:
        return max((self.ended or now) - self.began, 1e-3)

    @property
    def total(self) -> Tally:
        """What was done in all runs."""
        return self.tally_before.plus(self.tally).plus(self.doing)

    def rates(self, now: float) -> tuple[float, float]:
        """Rows (what the ledger counts, otherwise rows written) and tokens per second in this run."""
        here = self.tally.plus(self.doing)
        seconds = self.seconds(now)
        return (here.read or here.rows) / seconds, here.tokens / seconds

    def seconds_left(self, now: float) -> float | None:
        """Seconds until the stage ends, estimated from the finished units; None before the first is finished."""
        if not self.done:
            return None
        return (self.units - self.before - self.done) * self.seconds(now) / self.done


@dataclass
class RunFigures:
    """The progress of a run: its stages so far, the last of them the current one, and its workers. Memory in bytes."""

    stages: list[StageFigures] = field(default_factory=list)
    at_work: list[AtWork] = field(default_factory=list)
    memory: int = 0
    peak_memory: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "stages": [each.to_json() for each in self.stages],
            "at_work": [each._asdict() | {"tally": list(each.tally)} for each in self.at_work],
            "memory": self.memory,
            "peak_memory": self.peak_memory,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunFigures:
        at_work = [AtWork(**{**each, "tally": Tally(*each["tally"])}) for each in data["at_work"]]
        stages = [StageFigures.from_json(each) for each in data["stages"]]
        return cls(stages, at_work, data["memory"], data["peak_memory"])


class Progress:
    """Follows the stages of a run and shows them."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = _LiveBars(self._stream) if self._stream.isatty() else None
        self._figures = RunFigures()
        self._at_work: Callable[[], tuple[list[AtWork], int]] = lambda: ([], 0)
        self._lock = threading.Lock()
        self._ended = threading.Event()

    @contextmanager
    def watching(self, at_work: Callable[[], tuple[list[AtWork], int]]) -> Iterator[None]:
        """Show the progress during the block. `at_work` returns the workers and the memory of all processes."""
        self._at_work = at_work
        thread = threading.Thread(target=self._refresh, daemon=True)
        thread.start()

        def end(signal: str = "") -> None:
            self._ended.set()
            thread.join()
            if self._live:
                self._live.show(self.figures())
                self._live.stop()  # the terminal shows its cursor again

        at_stop(end)
        try:
            yield
        finally:
            not_at_stop(end)
            end()

    def begin(self, dataset: str, stage: Stage, *, units: int, before: int, tally_before: Tally) -> None:
        with self._lock:
            self._figures.stages.append(
                StageFigures(dataset, stage.name, stage.counts, units, before, tally_before, time.time())
            )

    def advance(self, tally: Tally, *, units: int = 1, began: float = math.inf) -> None:
        """Units of the current stage were finished. `began`: when the first of them began (Unix time), if known."""
        with self._lock:
            stage = self._figures.stages[-1]
            stage.began = min(stage.began, began)
            stage.done += units
            stage.tally = stage.tally.plus(tally)

    def fault(self, fault: Fault) -> None:
        with self._lock:
            self._figures.stages[-1].faults += 1
        self._line(f"{fault.stage}: unit {fault.unit}, attempt {fault.attempt}: {fault.what}")

    def end(self, span: tuple[float, float] | None = None) -> None:
        """The current stage is finished. `span`: when it began and ended, if its records say so."""
        self.figures()
        with self._lock:
            stage = self._figures.stages[-1]
            stage.began, stage.ended = span or (stage.began, time.time())
            stage.doing = Tally()
        if not self._live:
            self._line(ended_line(stage))

    @property
    def rates(self) -> dict[str, float]:
        """Tokens per second of each stage of this run that counts tokens."""
        now = time.time()
        return {each.name: each.rates(now)[1] for each in self._figures.stages if each.tally.tokens}

    def figures(self) -> RunFigures:
        """The progress of the run now."""
        at_work, memory = self._at_work()
        with self._lock:
            figures = self._figures
            figures.at_work, figures.memory = at_work, memory
            figures.peak_memory = max(figures.peak_memory, memory)
            if figures.stages and figures.stages[-1].ended is None:
                doing = Tally()
                for each in at_work:
                    if each.stage == figures.stages[-1].name:
                        doing = doing.plus(each.tally)
                figures.stages[-1].doing = doing
            return figures

    def _refresh(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(0.5):
            figures = self.figures()
            if self._live:
                self._live.show(figures)
            elif figures.stages and figures.stages[-1].ended is None and time.monotonic() - last >= _LINE_EVERY:
                last = time.monotonic()
                self._line(running_line(figures.stages[-1], figures.memory, now=time.time()))

    def _line(self, text: str) -> None:
        if self._live:
            self._live.line(text)
        else:
            self._stream.write(f"{text}\n")
            self._stream.flush()


def ended_line(stage: StageFigures) -> str:
    """A line on a finished stage."""
    known = f" ({stage.before:,} done before)" if stage.before else ""
    return ", ".join(
        [
            f"{stage.name}: {plural(stage.units, 'unit')}{known}",
            duration(stage.seconds(0)),
            *([f"{stage.rates(0)[1]:,.0f} tokens/s"] if stage.tally.tokens else []),
            *_rejects(stage),
        ]
    )


def running_line(stage: StageFigures, memory: int, *, now: float) -> str:
    """A line on the current stage."""
    rows, tokens = stage.rates(now)
    left = stage.seconds_left(now)
    return ", ".join(
        [
            f"{stage.name}: {stage.before + stage.done:,}/{plural(stage.units, 'unit')}",
            f"{rows:,.0f} {stage.counts or 'rows'}/s",
            *([f"{tokens:,.0f} tokens/s"] if tokens else []),
            *_rejects(stage),
            *([size(memory)] if memory else []),  # unknown if the workers are on other machines
            *([f"{duration(left)} left"] if left is not None else []),
        ]
    )


def _rejects(stage: StageFigures) -> list[str]:
    rejected = stage.total.rejected
    return [plural(rejected, "reject")] if rejected else []


class _LiveBars:
    """A bar for each stage on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[units]}", justify="right"),
            TextColumn("{task.fields[rows]}", justify="right"),
            TextColumn("{task.fields[tokens]}", justify="right"),
            TextColumn("{task.fields[rejects]}", justify="right"),
            TextColumn("{task.fields[memory]}", justify="right"),
            TextColumn("{task.fields[time]}", justify="right"),
            console=Console(file=stream),
            refresh_per_second=4,
        )
        self._tasks: list[Any] = []

    def show(self, figures: RunFigures) -> None:
        now = time.time()
        self._bars.start()
        for number, stage in enumerate(figures.stages):
            columns: dict[str, Any] = bar_columns(stage, figures.memory, now=now)
            if number == len(self._tasks):
                self._tasks.append(self._bars.add_task(stage.name, total=max(stage.units, 1), **columns))
            done = stage.units if stage.ended else stage.before + stage.done
            self._bars.update(self._tasks[number], completed=done if stage.units else 1, **columns)

    def line(self, text: str) -> None:
        self._bars.console.print(text, highlight=False, markup=False)

    def stop(self) -> None:
        self._bars.stop()


def bar_columns(stage: StageFigures, memory: int, *, now: float) -> dict[str, str]:
    """The columns beside a stage's bar."""
    rows, tokens = stage.rates(now)
    left = stage.seconds_left(now)
    done = stage.units if stage.ended else stage.before + stage.done
    rejected = stage.total.rejected
    return {
        "units": f"{done:,}/{plural(stage.units, 'unit')}",
        "rows": f"{rows:,.0f} {stage.counts or 'rows'}/s",
        "tokens": f"{tokens:,.0f} tokens/s" if tokens else "",
        "rejects": f"{rejected:,} rejects" if stage.counts else "",
        "memory": "" if stage.ended or not memory else size(memory),
        "time": duration(stage.seconds(now)) if stage.ended else "" if left is None else f"{duration(left)} left",
    }
