"""On a worker of a cluster: units are done in watched processes there too (`pipelines/engine/worker_pool.py`).

A runner's worker is one process that is handed units by as many threads as the runner likes. They share one crew, so
that a machine does as many units at once as it has cores, loads each model once a process, and does not go down with
a document that brings a parser down.

A runner may do anything twice: hand out a unit again, or begin the whole job anew. What is done stays done.
"""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.lease import heed
from pipelines.engine.stage import Completion, Fault, Stage, Work, close_stage, finished_unit, note_fault, open_stage
from pipelines.engine.worker_pool import Limits, Workers, usable_cores
from schemas.manifest import is_dataset


class Terms(NamedTuple):
    """How units are done on each machine. `processes`: None for one a core."""

    processes: int | None
    limits: Limits


@dataclass(frozen=True)
class OnCluster:
    """How stages are done by the workers of a cluster. `run`: the id of the run that sent the job."""

    run: str
    terms: Terms
    max_reject_rate: float

    def open(self, work: Work, stage: Stage) -> list[int]:
        heed(work.folder, self.run)
        return [] if is_dataset(work.folder) else open_stage(work, stage)

    def submit(self, work: Work, stage: Stage, unit: int) -> Future[Completion]:
        heed(work.folder, self.run)
        return crew(self.terms).submit(work, stage, unit)

    def close(self, work: Work, stage: Stage) -> None:
        heed(work.folder, self.run)
        if not is_dataset(work.folder):
            close_stage(work, stage, max_reject_rate=self.max_reject_rate)

    def finish(self, build: DatasetBuild) -> None:
        heed(build.output, self.run)
        build.finish()


class _Task(NamedTuple):
    work: Work
    stage: Stage
    unit: int
    done: Future[Completion]


class Crew:
    """Processes that do units for whichever thread asks. They end with this process."""

    def __init__(self, terms: Terms) -> None:
        number = terms.processes or usable_cores()
        self._tasks: queue.Queue[_Task] = queue.Queue(number)
        for _ in range(number):
            threading.Thread(target=self._serve, args=(terms.limits,), daemon=True).start()

    def submit(self, work: Work, stage: Stage, unit: int) -> Future[Completion]:
        """Have a unit done. Returns at once, or when one can wait: so a runner sees how fast it goes."""
        task = _Task(work, stage, unit, Future())
        self._tasks.put(task)
        return task.done

    def _serve(self, limits: Limits) -> None:
        """Do tasks, one after the other, in a process of this thread's own."""
        work: Work

        def report(fault: Fault) -> None:
            note_fault(work, fault)

        workers = Workers(1, limits=limits, report=report)
        while True:
            work, stage, unit, done = self._tasks.get()
            try:
                found = None
                with contextlib.suppress(OSError):  # storage that is away for a moment: the workers try more than once
                    # A runner that tries again what failed hands out anew what was done beside it.
                    found = finished_unit(work, stage, unit)
                done.set_result(found or next(workers.run(work, stage, [unit])))
            except BaseException as error:
                done.set_exception(error)


@functools.lru_cache
def crew(terms: Terms) -> Crew:
    """The crew of this process."""
    return Crew(terms)
