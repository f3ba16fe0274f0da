"""What all forecasts share: how the figures of a stage on the sample become those on the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pipelines.engine.stage import Completion
from pipelines.planning.estimates import Estimate, makespan
from pipelines.planning.measuring import Measured
from pipelines.stages.units import MOST_SHARDS, UNITS
from schemas.storage.folder import Folder

SPEED = 0.15
"""The least half width of a speed, as a share: machines are never equally busy."""
_SHORT_SPEED = 0.4
"""The same for the steps after parsing, of which a sample gives only moments."""
BYTES_A_ROW = 250
"""Memory that a worker takes for each row of what it merges: 1 GB for the 4 million of a full range."""
NOTHING = Estimate.exactly(0)


class Line(NamedTuple):
    """A stage: its units, the rows of what it makes, the bytes that it writes, and its time in seconds."""

    stage: str
    units: Estimate
    rows: Estimate
    what: str
    bytes: Estimate
    work: Estimate  # of all workers together
    wall: Estimate


class Forecast(NamedTuple):
    """A dataset to be made: its stages, the bytes of what is kept, and of what lies there only until it is done."""

    folder: Folder
    lines: list[Line]
    kept: Estimate
    passing: Estimate


class Scale:
    """From the sample to the whole, for a chain of datasets; `shards` are those of documents, once they are foretold.

    `more_memory`: bytes that units of the whole take beyond those of the sample, of each kind that was foretold.
    """

    def __init__(self, measured: Measured, *, workers: int) -> None:
        self.measured, self.workers = measured, workers
        self.shards = NOTHING
        self.more_memory = [0.0]

    @property
    def units(self) -> Estimate:
        """Units of the stages over shards of documents or sentences."""
        return units_of(self.shards)

    def or_seen(self, stage: str, of: Callable[[Completion], float], estimate: Estimate) -> Estimate:
        """What was counted, if all of the input was measured."""
        return Estimate.exactly(self.measured.sum(stage, of)) if self.measured.pieces.is_whole else estimate

    def like_sample(self, stage: str, role: str, rows: Estimate) -> Estimate:
        """The bytes of so many rows, each of those that it has in the sample."""
        found = rows * share_of(self.measured.sum(stage, bytes_of(role)), self.measured.sum(stage, rows_of(role)))
        return found if self.measured.pieces.is_whole else found.widened(0.1)

    def full_size(self, stage: str) -> Estimate:
        """What the bytes of a sample are multiplied by, as its files are smaller than those of the whole."""
        if self.measured.pieces.is_whole:
            return Estimate.exactly(1)
        return Estimate.exactly(self.measured.full_size[stage]).widened(0.1)

    def units_seen(self, stage: str, estimate: Estimate) -> Estimate:
        """The units that there were, if all of the input was measured."""
        return Estimate.exactly(len(self.measured.stages[stage])) if self.measured.pieces.is_whole else estimate

    def scaled(self, stage: str, units: Estimate, more: float) -> Line:
        """A stage that does `more` times the work that it did on the sample."""
        work = Estimate.exactly(self.measured.sum(stage, seconds_of) * more)
        written = Estimate.exactly(self.measured.sum(stage, bytes_of()) * more)
        return self.line(stage, units, work, NOTHING, "", written)

    def paced(self, work: Estimate, speed: float) -> Estimate:
        """Seconds of work: from those on an idle machine to those on one as busy as now."""
        parsed = self.measured.sum("parse", counter_of("parse_ms")) if "parse" in self.measured.stages else 0
        share = share_of(self.measured.sum("parse", counter_of("cpu_ms")), parsed) if parsed else 0
        return Estimate(work.low * (min(share, 1) or 1), work.middle, work.high).widened(speed)

    def line(self, stage: str, units: Estimate, work: Estimate, rows: Estimate, what: str, size: Estimate) -> Line:
        """A stage whose units are about equal."""
        work = self.paced(work, SPEED if stage == "parse" else _SHORT_SPEED)
        n, workers = max(round(units.middle), 1), self.workers
        wall = work.map(lambda seconds: makespan([seconds / n] * n, workers))
        return Line(stage, units, rows, what, size, work, wall)

    def grow(self, stage: str, role: str, rows: float, units: float) -> None:
        """Note the memory that a unit takes with more rows than in the sample."""
        seen = max((rows_of(role)(each) for each in self.measured.stages[stage]), default=0)
        self.more_memory.append(max(rows / max(units, 1) - seen, 0) * BYTES_A_ROW)


def units_of(shards: Estimate) -> Estimate:
    """Units of a stage over so many shards, as `steps.units.shards_a_unit` cuts them."""
    return shards.map(lambda n: float(-(-n // min(max(n // UNITS, 1), MOST_SHARDS))))


def sum_of(estimates: Iterable[Estimate]) -> Estimate:
    return sum(estimates, start=NOTHING)


def share_of(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def seconds_of(each: Completion) -> float:
    return each.seconds


def counter_of(name: str) -> Callable[[Completion], float]:
    return lambda each: each.counters.get(name, 0)


def rows_of(*roles: str) -> Callable[[Completion], float]:
    return lambda each: sum(file.rows for file in each.files if file.role in roles)


def bytes_of(*roles: str) -> Callable[[Completion], float]:
    """Bytes of the files of some roles, of all if none is named."""
    return lambda each: sum(file.bytes for file in each.files if not roles or file.role in roles)


def files_of(role: str) -> Callable[[Completion], float]:
    return lambda each: sum(file.role == role for file in each.files)
