"""Reads a run's completion records and faults from storage: progress, and the limit on rejects, for every executor."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from pipelines.engine.executors import StageRun
from pipelines.engine.lease import Lease
from pipelines.engine.progress import Progress
from pipelines.engine.stage import (
    WHOLE,
    Tally,
    check_rejects,
    read_completions,
    read_faults,
    sum_tallies,
    unit_sizes,
)
from schemas.errors import UserError
from schemas.manifest import Fault, Manifest, is_dataset, read_manifest

_EVERY_LOCAL, _EVERY_REMOTE = 0.5, 10.0
"""Seconds between two looks."""


class Monitor:
    """Looks at the stages of a run during a `with` block. `end` is called if the run should not continue.

    The stages are done one after the other, so only the first of `_stages` is looked at; when it is closed, it is
    removed. `_units` is None until that stage is planned.
    """

    def __init__(
        self, stages: Sequence[StageRun], progress: Progress, lease: Lease, *, end: Callable[[UserError], None]
    ) -> None:
        self.why: UserError | None = None
        """Why the run had to end."""
        self._progress, self._lease, self._end = progress, lease, end
        self._stages = list(stages)
        self._every = _EVERY_LOCAL if all(each.work.folder.is_local for each in stages) else _EVERY_REMOTE
        self._before: dict[str, set[int]] = {}  # units that an earlier run did, by StageRun.name
        self._faults: dict[str, dict[str, Fault]] = {}  # known faults, by StageRun.name and file name
        # Of the current stage:
        self._units: int | None = None  # the number of units
        self._seen: set[int] = set()  # the units whose completion records were read
        self._total = Tally()  # their sum
        self._span: tuple[float, float] | None = None  # when its first unit began and its last ended, Unix times
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True, name="monitor")

    def __enter__(self) -> Monitor:
        for each in self._stages:
            part = each.part or WHOLE
            self._before[each.name] = {*filter(part.has, each.work.finished(each.stage.name))}
            self._faults[each.name] = read_faults(each.work, each.stage)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self.why is None:
            with contextlib.suppress(OSError, ValueError, UserError):
                self.look()

    def _follow(self) -> None:
        while not self._ended.wait(self._every):
            try:
                self.look()
                if self._lease.lost:
                    raise self._lease.lost
            except UserError as error:
                self.why = error
                self._end(error)
                return
            except (OSError, ValueError):
                continue  # storage is busy, or a file is being moved: look again later

    def look(self) -> None:
        """Read what is new, of all stages that made progress since the last look. UserError: too many rejects."""
        while self._stages:
            run = self._stages[0]
            if is_dataset(run.work.folder):
                self._take_finished(run, read_manifest(run.work.folder))
            else:
                closed = run.work.is_closed(run.stage.name)
                self._take(run)
                if not closed and not self._is_done(run):
                    return
            self._progress.end(self._span)
            self._stages.pop(0)
            self._units, self._seen, self._total, self._span = None, set(), Tally(), None

    def _is_done(self, run: StageRun) -> bool:
        """Whether all units of a slice are done. Slices are not closed."""
        return run.part is not None and self._units is not None and len(self._seen) == self._units

    def _take(self, run: StageRun) -> None:
        """Read the units of a stage that were finished since the last look, and its new faults."""
        work, stage, part = run.work, run.stage, run.part or WHOLE
        if self._units is None:
            if not work.is_planned(stage.name):
                return
            units = work.units(stage.name)
            numbers = part.units(len(units))
            sizes = unit_sizes(stage, [units[number] for number in numbers])
            self._units = len(numbers)
            self._seen = self._before[run.name]
            self._total = sum_tallies(read_completions(work, stage, self._seen))
            self._progress.begin(
                str(work.folder),
                stage,
                units=self._units,
                before=self._seen,
                tally_before=self._total,
                sizes=dict(zip(numbers, sizes, strict=True)),
            )
        self._tell(run, read_faults(work, stage, self._faults[run.name]))
        new = {*filter(part.has, work.finished(stage.name))} - self._seen
        for completion in read_completions(work, stage, new):
            tally = Tally.of(completion)
            self._total = self._total.plus(tally)
            began, ended = self._span or (math.inf, 0.0)
            began = min(began, completion.finished - completion.seconds)
            self._span = began, max(ended, completion.finished)
            self._progress.advance(tally, unit=completion.unit, began=began)
        self._seen |= new
        expected = self._total.read * self._units / max(len(self._seen), 1)
        check_rejects(work, stage, self._total, rate=run.max_reject_rate, expected=expected, part=run.part)

    def _tell(self, run: StageRun, new: dict[str, Fault]) -> None:
        """Show new failed attempts."""
        self._faults[run.name] |= new
        for fault in sorted(new.values(), key=lambda fault: fault.time):
            if (run.part or WHOLE).has(fault.unit):
                self._progress.fault(fault)

    def _take_finished(self, run: StageRun, manifest: Manifest) -> None:
        """Count what was not seen of a stage whose dataset is finished. Its records are gone; the manifest has sums."""
        report = manifest.stage(run.stage.name)
        total = Tally(tokens=report.counters.get("tokens", 0))
        if report.ledger:
            left_out = report.ledger.filtered.total(), report.ledger.rejected.total()
            total = Tally(report.ledger.read, report.ledger.written, *left_out, tokens=total.tokens)
        if self._units is None:
            self._seen = self._before[run.name]
            self._progress.begin(
                str(run.work.folder), run.stage, units=report.units, before=self._seen, tally_before=Tally()
            )
        known = {*self._faults[run.name].values()}
        faults = [each for each in manifest.run["faults"] if each.stage == run.stage.name]
        self._tell(run, {str(each): each for each in faults if each not in known})
        rest = Tally(*(max(all_of - seen, 0) for all_of, seen in zip(total, self._total, strict=True)))
        self._progress.advance(rest, units=report.units - len(self._seen))
        now = time.time()
        self._span = now - manifest.run["wall_seconds"][run.stage.name], now
