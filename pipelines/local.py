"""Doing stages on this machine: the pool that Beam's in-process runner hands its units to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.lease import Lease
from pipelines.engine.progress import AtWork, Progress
from pipelines.engine.stage import (
    WHOLE,
    Fault,
    Slice,
    Stage,
    Tally,
    Work,
    close_stage,
    done_before,
    note_fault,
    open_stage,
    rejects_error,
    too_many_rejects,
)
from pipelines.engine.worker_pool import Limits, Workers, resident_memory
from schemas.errors import UserError


class LocalPool:
    """Does the stages on this machine. One pool serves all stages of a run, so that models are loaded once."""

    _running: LocalPool | None = None

    def __init__(self, workers: int, progress: Progress, hold: Lease, limits: Limits, max_reject_rate: float) -> None:
        self.failure: BaseException | None = None
        self._progress = progress
        self._hold = hold
        self._max_reject_rate = max_reject_rate
        self._work: Work | None = None
        self._units = 0
        self._done = 0
        self._total = Tally()
        self._workers = Workers(workers, limits=limits, report=self._note)

    @classmethod
    def running(cls) -> LocalPool:
        """The pool of this process, which Beam's runner calls back."""
        assert cls._running is not None
        return cls._running

    def __enter__(self) -> LocalPool:
        LocalPool._running = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        LocalPool._running = None
        if kind is None:
            self._workers.close()
        else:
            self._workers.stop()

    def at_work(self) -> tuple[list[AtWork], int]:
        """The workers that have a unit, and the memory of all processes. Callable from any thread."""
        found = [AtWork(pid, unit, beat.tally, beat.memory) for pid, unit, beat in self._workers.beats()]
        return found, self._workers.memory() + resident_memory()

    def open(self, work: Work, stage: Stage, part: Slice = WHOLE) -> list[int]:
        """The units of a slice of a stage that are to be done."""
        with self._kept_failure():
            todo = open_stage(work, stage, part)
            units = len(part.units(len(work.units(stage.name))))
            before = done_before(work, stage, part) if len(todo) < units else Tally()
            self._work, self._units, self._done, self._total = work, units, units - len(todo), before
            self._progress.begin(str(work.folder), stage, units=units, before=units - len(todo), tally_before=before)
            return todo

    def run_units(self, work: Work, stage: Stage, units: Iterable[int]) -> None:
        with self._kept_failure():
            for completion in self._workers.run(work, stage, sorted(units)):
                tally = Tally.of(completion)
                self._done += 1
                self._total = self._total.plus(tally)
                self._progress.advance(tally)
                expected = self._total.read * self._units / self._done
                if too_many_rejects(self._total, rate=self._max_reject_rate, expected=expected):
                    raise UserError(rejects_error(work, stage, self._total, rate=self._max_reject_rate))
                if self._hold.lost:
                    raise self._hold.lost

    def close(self, work: Work, stage: Stage) -> None:
        with self._kept_failure():
            close_stage(work, stage, max_reject_rate=self._max_reject_rate)
            self._progress.end()

    def finish(self, build: DatasetBuild) -> None:
        with self._kept_failure():
            self._hold.release(build.output)
            build.finish()

    def _note(self, fault: Fault) -> None:
        assert self._work is not None
        note_fault(self._work, fault)
        self._progress.fault(fault)

    @contextmanager
    def _kept_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.failure = error
            raise
