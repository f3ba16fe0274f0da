"""Following a run on a cluster by what its workers leave on storage: progress, and rejects that get out of hand."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.lease import Lease
from pipelines.engine.progress import Progress
from pipelines.engine.stage import (
    Stage,
    Tally,
    Work,
    read_completions,
    rejects_error,
    sum_tallies,
    too_many_rejects,
)
from schemas.errors import UserError
from schemas.manifest import Manifest, is_dataset, read_manifest

_EVERY_LOCAL, _EVERY_REMOTE = 1.0, 20.0
"""Seconds between two looks."""


class Monitor:
    """Looks at the datasets of a run while a `with` block lasts; `end` is called when the run should not go on."""

    def __init__(
        self,
        builds: Sequence[DatasetBuild],
        progress: Progress,
        hold: Lease,
        *,
        max_reject_rate: float,
        end: Callable[[UserError], None],
    ) -> None:
        self._progress, self._hold, self._max_reject_rate, self._end = progress, hold, max_reject_rate, end
        self._stages = [(build, stage) for build in builds for stage in build.stages]
        self._every = _EVERY_LOCAL if all(build.output.is_local for build in builds) else _EVERY_REMOTE
        self._before: dict[str, set[int]] = {}  # units that an earlier run did, by stage
        self._units: int | None = None  # of the stage at hand, once it is planned
        self._seen: set[int] = set()
        self._total = Tally()
        self._span: tuple[float, float] | None = None  # when its first unit was begun, and its last ended
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Monitor:
        for build, stage in self._stages:
            self._before[stage.name] = build.work.finished(stage.name)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if kind is None:
            with contextlib.suppress(OSError, ValueError):
                self._look()

    def _follow(self) -> None:
        while not self._ended.wait(self._every):
            try:
                self._look()
                if self._hold.lost:
                    raise self._hold.lost
            except UserError as error:
                self._end(error)
                return
            except (OSError, ValueError):
                continue  # storage that is busy, or a file that is moved at this moment: the next look will see

    def _look(self) -> None:
        """Take in what is new, of as many stages as were at work since the last look."""
        while self._stages:
            build, stage = self._stages[0]
            if is_dataset(build.output):
                self._take_finished(read_manifest(build.output), str(build.output), stage)
            else:
                closed = build.work.is_closed(stage.name)
                self._take(build.work, stage)
                if not closed:
                    return
            self._progress.end(self._span)
            self._stages.pop(0)
            self._units, self._seen, self._total, self._span = None, set(), Tally(), None

    def _take(self, work: Work, stage: Stage) -> None:
        """Take in the units of a stage that were finished since the last look."""
        if self._units is None:
            if not work.is_planned(stage.name):
                return
            self._units = len(work.units(stage.name))
            self._seen = self._before[stage.name]
            self._total = sum_tallies(read_completions(work, stage, self._seen))
            self._progress.begin(
                str(work.folder), stage, units=self._units, before=len(self._seen), tally_before=self._total
            )
        new = work.finished(stage.name) - self._seen
        for completion in read_completions(work, stage, new):
            tally = Tally.of(completion)
            self._total = self._total.plus(tally)
            began, ended = self._span or (math.inf, 0.0)
            began = min(began, completion.finished - completion.seconds)
            self._span = began, max(ended, completion.finished)
            self._progress.advance(tally, began=began)
        self._seen |= new
        expected = self._total.read * self._units / max(len(self._seen), 1)
        if too_many_rejects(self._total, rate=self._max_reject_rate, expected=expected):
            raise UserError(rejects_error(work, stage, self._total, rate=self._max_reject_rate))

    def _take_finished(self, manifest: Manifest, dataset: str, stage: Stage) -> None:
        """Take in what was not seen of a stage whose dataset is finished, for its records are gone."""
        report = next(each for each in manifest.stages if each.name == stage.name)
        total = Tally(tokens=report.counters.get("tokens", 0))
        if report.ledger:
            left_out = report.ledger.filtered.total(), report.ledger.rejected.total()
            total = Tally(report.ledger.read, report.ledger.written, *left_out, tokens=total.tokens)
        if self._units is None:
            self._progress.begin(dataset, stage, units=report.units, before=0, tally_before=Tally())
        rest = Tally(*(max(all_of - seen, 0) for all_of, seen in zip(total, self._total, strict=True)))
        self._progress.advance(rest, units=report.units - len(self._seen))
        now = time.time()
        self._span = now - manifest.run["wall_seconds"][stage.name], now
