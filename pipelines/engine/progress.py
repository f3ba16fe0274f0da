"""What a run shows of its progress, and the figures for `python -m pipelines.status`.

On a terminal, a live bar for each stage; otherwise a line when a stage ends, and at intervals while it runs. Both move
inside a unit where the workers are processes of this machine (`TaskWriter.part`); of others only whole units are known.
"""

from __future__ import annotations

import functools
import math
import statistics
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from pipelines.engine.phase import NOTHING, Phase, current_phase
from pipelines.engine.stage import Stage, Tally
from pipelines.engine.stopping import at_stop, not_at_stop
from schemas.json_values import checked
from schemas.manifest import Fault
from transforms.reports.figures import duration, plural, size

if TYPE_CHECKING:
    from rich.console import RenderableType

_LINE_EVERY = 30.0
"""Seconds between the lines of a stage if there is no terminal."""
_SHORT_EVERY = 10.0
"""Seconds between the lines of something short."""
_LEAST_WORK, _LEAST_SHARE = 2.0, 0.02
"""Seconds of work, and how much of a unit, before there is an estimate of the time left."""
_BAR, _LEAST_BAR = 24, 4
"""Columns of a bar."""
_WIDER = ("units", "rows", "tokens", "rejects", "memory")
"""What stands beside a bar if the terminal is wide enough for it, the most important first."""


class AtWork(NamedTuple):
    """A worker with a unit: its process, what it has done of the unit, its memory in bytes.

    `fraction` is how much of the unit is done, from 0 to 1; `busy_with` what it does instead, such as loading a model.
    """

    pid: int
    stage: str
    unit: int
    tally: Tally
    memory: int
    fraction: float = 0.0
    busy_with: str = ""


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
    before_size: float = 0.0
    finished_size: float = 0.0
    """The sizes of the units that earlier runs and this one finished, where the average unit has the size 1."""
    fractions: list[tuple[float, float]] = field(default_factory=list)
    """Of each unit that is not finished: its size, and how much of it is done, from 0 to 1."""
    workers: int = 0
    """The most that were seen at work at a time; 0 if they are on other machines."""
    worked: float = 0.0
    """Seconds that these workers worked in this run, added up."""
    busy_with: str = ""
    """What all workers do instead of work, and since when."""
    busy_since: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {**self.__dict__, **{name: list(getattr(self, name)) for name in ("tally_before", "tally", "doing")}}

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

    @property
    def done_size(self) -> float:
        """What was done in this run, in units of average size."""
        return self.finished_size + sum(size * fraction for size, fraction in self.fractions)

    @property
    def share(self) -> float:
        """How much of the stage is done, from 0 to 1."""
        if self.ended or not self.units:
            return 1.0
        return min(round((self.before_size + self.done_size) / self.units, 9), 1.0)

    def seconds_left(self, now: float) -> float | None:
        """Seconds until the stage ends, if its units go on as those so far; None while little is done.

        Two workers that need 5 and 9 s for what they have, with three units of 10 s that wait, end after
        (5 + 9 + 30) / 2 = 22 s on average, and within one unit of each other: the last, as a rule, half a unit of the
        other worker later, after 24.5 s.
        """
        if not self.workers:
            still = self.units - self.before - self.done
            return still * self.seconds(now) / self.done if self.done else None
        if self.worked < _LEAST_WORK or self.done_size < _LEAST_SHARE:
            return None
        begun = [size * (1 - fraction) for size, fraction in self.fractions]
        waiting = self.units - self.before_size - self.finished_size - sum(size for size, _ in self.fractions)
        number = self.units - self.before - self.done - len(self.fractions)
        left = max(begun, default=0.0)
        if number > 0:
            last = waiting / number / 2 * (1 - 1 / self.workers)
            left = max(left, (sum(begun) + waiting) / self.workers + last)
        return left * self.worked / self.done_size


@dataclass
class RunFigures:
    """The progress of a run: its stages so far, the last of them the current one, and its workers. Memory in bytes."""

    stages: list[StageFigures] = field(default_factory=list)
    at_work: list[AtWork] = field(default_factory=list)
    memory: int = 0
    peak_memory: int = 0
    phase: Phase = NOTHING

    def to_json(self) -> dict[str, Any]:
        return {
            "stages": [each.to_json() for each in self.stages],
            "at_work": [each._asdict() | {"tally": list(each.tally)} for each in self.at_work],
            "memory": self.memory,
            "peak_memory": self.peak_memory,
            "phase": list(self.phase),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunFigures:
        """ValueError if they were changed."""
        return checked(cls, dict(data))

    def now_doing(self, now: float) -> str:
        """What a run does when no bar moves, and for how long; empty if one does."""
        stage = self.stages[-1] if self.stages else None
        busy = Phase(stage.busy_with, stage.busy_since) if stage and not stage.ended else NOTHING
        what, began = self.phase if self.phase.what else busy
        return f"{what}, {duration(max(now - began, 0))}" if what else ""


class Progress:
    """Follows the stages of a run and shows them."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = _LiveBars(self._stream) if self._stream.isatty() else None
        self._figures = RunFigures()
        self._sizes: dict[int, float] = {}
        self._units: dict[int, AtWork] = {}  # of the current stage: begun and not finished, as last seen
        self._finished: set[int] = set()
        self._looked, self._began = time.monotonic(), time.time()
        self._at_work: Callable[[], tuple[list[AtWork], int]] = lambda: ([], 0)
        self._lock = threading.Lock()
        self._watched, self._ended = False, threading.Event()

    @contextmanager
    def watching(self, at_work: Callable[[], tuple[list[AtWork], int]] = lambda: ([], 0)) -> Iterator[None]:
        """Show the progress during the block. `at_work` returns the workers and the memory of all processes.

        A block within a block only says who is at work.
        """
        self._at_work = at_work
        if self._watched:
            yield
            return
        self._watched = True
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

    def begin(
        self,
        dataset: str,
        stage: Stage,
        *,
        units: int,
        before: Collection[int],
        tally_before: Tally,
        sizes: Mapping[int, float] | None = None,
    ) -> None:
        """A stage begins. `before`: the units that earlier runs did; `sizes` of units, relative to each other."""
        with self._lock:
            average = statistics.fmean(sizes.values()) if sizes else 1.0
            self._sizes = {unit: size / average for unit, size in (sizes or {}).items()}
            self._units, self._finished = {}, set()
            began = StageFigures(dataset, stage.name, stage.counts, units, len(before), tally_before, time.time())
            began.before_size = sum(map(self._size, before))
            self._figures.stages.append(began)

    def _size(self, unit: int) -> float:
        return self._sizes.get(unit, 1.0)

    def advance(self, tally: Tally, *, units: int = 1, unit: int | None = None, began: float = math.inf) -> None:
        """Units of the current stage were finished, or this one. `began`: when the first of them began (Unix time)."""
        with self._lock:
            stage = self._figures.stages[-1]
            if unit is not None:
                self._finished.add(unit)
                self._units.pop(unit, None)
                stage.finished_size += self._size(unit)
            self._sum_up()
            stage.began = min(stage.began, began)
            stage.done += units
            stage.tally = stage.tally.plus(tally)

    def fault(self, fault: Fault) -> None:
        with self._lock:
            self._figures.stages[-1].faults += 1
            self._units.pop(fault.unit, None)
        self._line(f"{fault.stage}: unit {fault.unit}, attempt {fault.attempt}: {fault.what}")

    def end(self, span: tuple[float, float] | None = None) -> None:
        """The current stage is finished. `span`: when it began and ended, if its records say so."""
        self.figures()
        with self._lock:
            stage = self._figures.stages[-1]
            stage.began, stage.ended = span or (stage.began, time.time())
            self._units = {}
            self._sum_up()
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
            figures.phase = current_phase()
            if not figures.stages and not figures.phase.what:
                figures.phase = Phase("starting", self._began)
            passed, self._looked = time.monotonic() - self._looked, time.monotonic()
            if figures.stages and figures.stages[-1].ended is None:
                stage = figures.stages[-1]
                here = [each for each in at_work if each.stage == stage.name and each.unit not in self._finished]
                self._units |= {each.unit: each for each in here}
                stage.workers = max(stage.workers, len(here))
                stage.worked += passed * sum(not each.busy_with for each in here)
                busy_with = here[0].busy_with if here and all(each.busy_with for each in here) else ""
                stage.busy_since = stage.busy_since if busy_with == stage.busy_with else time.time()
                stage.busy_with = busy_with
                self._sum_up()
            return figures

    def _sum_up(self) -> None:
        """A unit that no worker has any more counts until its record is read, so that no figure falls in between."""
        if self._figures.stages:
            doing = self._units.values()
            self._figures.stages[-1].doing = functools.reduce(Tally.plus, (each.tally for each in doing), Tally())
            self._figures.stages[-1].fractions = [(self._size(each.unit), each.fraction) for each in doing]

    def _refresh(self) -> None:
        last = 0.0
        while not self._ended.wait(0.5):
            figures, now = self.figures(), time.time()
            stage = figures.stages[-1] if figures.stages else None
            if self._live:
                self._live.show(figures)
            elif stage and stage.ended is None and now - max(last, stage.began) >= _LINE_EVERY:
                last = now
                self._line(running_line(stage, figures.memory, now=now))

    def _line(self, text: str) -> None:
        if self._live:
            self._live.line(text)
        else:
            self._stream.write(f"{text}\n")
            self._stream.flush()


@contextmanager
def shown(line: Callable[[], str], stream: TextIO | None = None) -> Iterator[None]:
    """Show a line that changes during the block: in its place on a terminal, otherwise again at intervals."""
    stream = stream or sys.stderr
    live = _LiveBars(stream) if stream.isatty() else None
    ended = threading.Event()

    def show() -> None:
        while not ended.wait(0.5 if live else _SHORT_EVERY):
            if live:
                live.show_line(line())
            else:
                stream.write(f"{line()}\n")
                stream.flush()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if live:
            live.show_line("")
            live.stop()


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
            f"{stage.name}: {percent(stage)}",
            f"{stage.before + stage.done:,}/{plural(stage.units, 'unit')}",
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


def percent(stage: StageFigures) -> str:
    """How much of a stage is done, in steps of about a hundredth of a unit: "34.1 %", of 500 units "34.12 %"."""
    digits = max(len(str(stage.units)) - 1, 1)
    return f"{math.floor(stage.share * 100 * 10**digits) / 10**digits:.{digits}f} %" if stage.share < 1 else "100 %"


class _LiveBars:
    """A bar for each stage on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(file=stream), auto_refresh=False)

    def show(self, figures: RunFigures) -> None:
        self._live.start()
        width, height = self._live.console.size
        self._live.update(bars(figures, now=time.time(), width=width, height=height), refresh=True)

    def show_line(self, text: str) -> None:
        from rich.text import Text

        self._live.start()
        self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def line(self, text: str) -> None:
        self._live.console.print(text, highlight=False, markup=False)

    def stop(self) -> None:
        self._live.stop()


def bars(figures: RunFigures, *, now: float, width: int, height: int) -> RenderableType:
    """A line for each stage, each with a bar, and one for what is done meanwhile; what does not fit is left out.

    Name, share and time always stay. The last stages stay if the terminal is too low for all.
    """
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    stages = figures.stages[-max(height - 2, 1) :]
    rows = [{"name": each.name, **bar_columns(each, figures.memory, now=now)} for each in stages]

    def needed(*names: str) -> int:
        """The width of columns, each with the space before it."""
        return sum(max((len(row[name]) for row in rows), default=0) + 1 for name in names)

    if needed("name", "share", "time") > width:
        rows = [{**row, "time": row["time"].removesuffix(" left")} for row in rows]
    shown = ["name", "share", "time"]
    for name in _WIDER:
        if needed(*shown, name) + _LEAST_BAR > width:
            break
        if any(row[name] for row in rows):
            shown.append(name)
    bar = min(width - needed(*shown), _BAR)
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(width - needed("share", "time"), 1))
    others = [name for name in ("share", *_WIDER, "time") if name in shown]
    for _ in range(len(others) + (bar >= _LEAST_BAR)):
        table.add_column(no_wrap=True, justify="right")
    for stage, row in zip(stages, rows, strict=True):
        drawn = [ProgressBar(1.0, stage.share, width=bar)] if bar >= _LEAST_BAR else []
        table.add_row(row["name"], *drawn, *(row[name] for name in others))
    return Group(table, Text(figures.now_doing(now), no_wrap=True, overflow="ellipsis"))


def bar_columns(stage: StageFigures, memory: int, *, now: float) -> dict[str, str]:
    """The columns beside a stage's bar."""
    rows, tokens = stage.rates(now)
    left = stage.seconds_left(now)
    done = stage.units if stage.ended else stage.before + stage.done
    rejected = stage.total.rejected
    return {
        "share": percent(stage),
        "units": f"{done:,}/{plural(stage.units, 'unit')}",
        "rows": f"{rows:,.0f} {stage.counts or 'rows'}/s",
        "tokens": f"{tokens:,.0f} tokens/s" if tokens else "",
        "rejects": f"{rejected:,} rejects" if stage.counts else "",
        "memory": "" if stage.ended or not memory else size(memory),
        "time": duration(stage.seconds(now)) if stage.ended else "" if left is None else f"{duration(left)} left",
    }
