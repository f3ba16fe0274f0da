"""Placing units of work: on this machine's cores, or on whatever runner Beam knows.

A pipeline is one Beam job. Each stage is planned when the one before is closed; only numbers of units cross a
shuffle, all else lies on storage. `DirectRunner` means Beam's in-process runner (FnApiRunner): Beam's own
DirectRunner may download another engine, and its multi-process mode hangs when a worker dies. So on one machine the
units run in watched processes of ours (`pipelines/workers.py`).
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from pipelines.builds import Build
from pipelines.hold import Hold
from pipelines.progress import AtWork, Progress
from pipelines.stages import (
    Fault,
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
from pipelines.workers import LIMITS, Limits, Workers, resident_memory
from schemas.errors import UserError


def run(
    builds: Sequence[Build],
    *,
    runner: str,
    workers: int,
    beam_args: Sequence[str],
    progress: Progress,
    command: str = "",
    limits: Limits = LIMITS,
    max_reject_rate: float = 1.0,
) -> None:
    """Build the datasets in order, as one Beam job. Raises what stopped it, UserError for what a user can mend.

    `command` is what goes on with the run, should it end early. More than `max_reject_rate` of a stage's input among
    its rejects ends the run.
    """
    hold = Hold([build.output for build in builds], command=command, figures=lambda: progress.figures().to_json())
    if runner == "DirectRunner":
        with hold, LocalPool(workers, progress, hold, limits, max_reject_rate) as pool, progress.watching(pool.at_work):
            _run_job(builds, "FnApiRunner", beam_args, max_reject_rate, pool)
    else:
        with hold:
            _run_job(builds, runner, beam_args, max_reject_rate, None)


def _run_job(
    builds: Sequence[Build], runner: str, beam_args: Sequence[str], max_reject_rate: float, pool: LocalPool | None
) -> None:
    # Beam takes two seconds to import: not for --help, not in the worker processes.
    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.graph import build_graph

    options = PipelineOptions([*beam_args, f"--runner={runner}"])
    pipeline = build_graph(builds, options, max_reject_rate=max_reject_rate)
    try:
        pipeline.run().wait_until_finish()
    except BaseException as error:
        # Beam wraps an error of a stage in text of its own; the pool kept the error itself.
        if pool is not None and pool.failure is not None and not isinstance(error, KeyboardInterrupt):
            raise pool.failure from pool.failure.__cause__
        raise


class LocalPool:
    """Does the stages on this machine. One pool serves all stages of a run, so that models are loaded once."""

    current: LocalPool | None = None

    def __init__(self, workers: int, progress: Progress, hold: Hold, limits: Limits, max_reject_rate: float) -> None:
        self.failure: BaseException | None = None
        self._progress = progress
        self._hold = hold
        self._max_reject_rate = max_reject_rate
        self._work: Work | None = None
        self._units = 0
        self._done = 0
        self._total = Tally()
        self._workers = Workers(workers, limits=limits, report=self._note)

    def __enter__(self) -> LocalPool:
        LocalPool.current = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        LocalPool.current = None
        if kind is None:
            self._workers.close()
        else:
            self._workers.stop()

    def at_work(self) -> tuple[list[AtWork], int]:
        """The workers that have a unit, and the memory of all processes. Callable from any thread."""
        found = [AtWork(pid, unit, beat.tally, beat.memory) for pid, unit, beat in self._workers.beats()]
        return found, self._workers.memory() + resident_memory()

    def open(self, work: Work, stage: Stage) -> list[int]:
        with self._kept_failure():
            todo = open_stage(work, stage)
            units = len(work.units(stage.name))
            before = done_before(work, stage) if len(todo) < units else Tally()
            self._work, self._units, self._done, self._total = work, units, units - len(todo), before
            self._progress.begin(str(work.folder), stage, units=units, before=units - len(todo), tally_before=before)
            return todo

    def run_units(self, work: Work, stage: Stage, units: Iterable[int]) -> None:
        with self._kept_failure():
            for _, tally in self._workers.run(work, stage, sorted(units)):
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

    def finish(self, build: Build) -> None:
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


def silence() -> None:
    """Keep the screen for our own lines: libraries log and warn much. What goes wrong comes as an exception."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)


def known_beam_flags() -> Iterator[str]:
    """All flags that Beam knows, with their dashes."""
    import argparse

    from apache_beam.options.pipeline_options import PipelineOptions

    parser: Any = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(parser)
    for action in parser._actions:
        yield from action.option_strings
