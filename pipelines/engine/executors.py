"""Executors: the units of a run are done in this process or in a pool of watched ones (on a Beam runner: `beam.py`)."""

from __future__ import annotations

import itertools
import os
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType

import pyarrow as pa

from pipelines.engine.attempts import Task, attempt, fault_of, next_task
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.lease import check_lease
from pipelines.engine.limits import LIMITS, Limits
from pipelines.engine.phase import phase
from pipelines.engine.progress import AtWork
from pipelines.engine.stage import (
    WHOLE,
    Completion,
    Slice,
    Stage,
    StageError,
    Work,
    check_rejects,
    close_stage,
    finished_unit,
    note_fault,
    open_stage,
    read_completions,
    sum_tallies,
)
from pipelines.engine.task_writer import TaskWriter
from pipelines.engine.worker_pool import WorkerPool, resident_memory
from schemas.manifest import is_dataset


@dataclass(frozen=True)
class StageRun:
    """A stage of a dataset in a run: plan, units, close. The last stage of a dataset publishes it.

    `run` is the id in the run's lease. With a `part` only this slice of the units is done, and nothing is closed. A
    runner may call any method twice, or restart the whole job: what is done stays done.
    """

    work: Work
    stage: Stage
    run: str
    max_reject_rate: float
    part: Slice | None = None
    publishes: DatasetBuild | None = None

    @property
    def name(self) -> str:
        """The dataset and the stage: two datasets may have stages of the same name."""
        return f"{self.work.folder}: {self.stage.name}"

    def plan(self) -> list[int]:
        """The units that are still to be done."""
        self._check_lease()
        if is_dataset(self.work.folder):
            return []
        with phase(f"planning {self.stage.name}"):
            return open_stage(self.work, self.stage, self.part or WHOLE)

    def finished(self, unit: int) -> Completion | None:
        """The record of a unit that is done already, None if it is not: a runner may give out a unit twice."""
        self._check_lease()
        return finished_unit(self.work, self.stage, unit)

    def close(self) -> None:
        """Close the stage; to be called when all units are done."""
        self._check_lease()
        if self.part is not None:
            done = filter(self.part.has, self.work.finished(self.stage.name))
            total = sum_tallies(read_completions(self.work, self.stage, done))
            check_rejects(self.work, self.stage, total, rate=self.max_reject_rate, expected=total.read, part=self.part)
            return
        if is_dataset(self.work.folder):
            return
        with phase(f"closing {self.stage.name}"):
            close_stage(self.work, self.stage, max_reject_rate=self.max_reject_rate)
        if self.publishes:
            self.publishes.require_rows()
            with phase(f"publishing {self.work.folder.name}"):
                self.publishes.finish()

    def _check_lease(self) -> None:
        check_lease(self.work.folder, self.run, self.part)


class Executor(ABC):
    """Takes the stages of a run through plan, units and close. One run is one `with` block."""

    def __enter__(self) -> Executor:
        return self

    def __exit__(  # noqa: B027 - not all have something to end
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The run has ended. Without an error, all stages given to `run` are done when this returns."""

    @abstractmethod
    def run(self, stage: StageRun) -> None:
        """Do a stage after those given before: now, or when the block ends."""

    def stop(self) -> None:  # noqa: B027
        """End the run early. `run`, or the end of the block, then raises. May be called from another thread."""

    def at_work(self) -> tuple[list[AtWork], int]:
        """The workers with a unit, and the memory of all processes in bytes (0 if it is unknown)."""
        return [], 0


class InlineExecutor(Executor):
    """Does units in this process, in order: for tests, and if starting processes takes longer than the work.

    If a unit kills the process, the run ends.
    """

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._writer: tuple[Task, TaskWriter] | None = None

    def run(self, stage: StageRun) -> None:
        pa.set_cpu_count(1)  # as in a worker
        for unit in stage.plan():
            if self._stopped.is_set():
                raise StageError("the run was stopped")
            self._do(Task(stage.work, stage.stage, unit))
        stage.close()

    def _do(self, task: Task) -> None:
        for number in itertools.count(1):
            begun: list[int] = []

            def watch(writer: TaskWriter, task: Task = task) -> None:
                self._writer = task, writer

            outcome = attempt(task, at=begun.append, watch=watch)
            self._writer = None
            if isinstance(outcome, Completion):
                return
            fault = fault_of(task, outcome, begun[-1] if begun else None, number)
            note_fault(task.work, fault)
            task = next_task(task, fault, outcome)

    def stop(self) -> None:
        self._stopped.set()

    def at_work(self) -> tuple[list[AtWork], int]:
        memory = resident_memory()
        if self._writer is None:
            return [], memory
        task, writer = self._writer
        done = AtWork(
            os.getpid(), task.stage.name, task.unit, writer.tally(), memory, writer.fraction(), writer.busy_with
        )
        return [done], memory


class PoolExecutor(Executor):
    """Does units in watched processes of this machine."""

    def __init__(self, workers: int, *, limits: Limits = LIMITS) -> None:
        self._pool = WorkerPool(workers, limits=limits)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()

    def run(self, stage: StageRun) -> None:
        for _ in self._pool.run(stage.work, stage.stage, stage.plan()):
            pass
        stage.close()

    def stop(self) -> None:
        self._pool.close()

    def at_work(self) -> tuple[list[AtWork], int]:
        return self._pool.at_work()
