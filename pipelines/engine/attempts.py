"""Attempts at a unit, and what is tried after a failure; the same for every executor.

A unit is tried three times. If the stage can do its units record by record, further attempts do so: the record at which
an attempt fails is left out of the next one and becomes a reject. Any other stage ends the run.
"""

from __future__ import annotations

import errno
import time
import traceback
from collections.abc import Callable
from typing import NamedTuple

from pipelines.engine.stage import Completion, Isolation, Stage, StageError, Work
from pipelines.engine.task_writer import TaskWriter, do_unit
from schemas.errors import UserError, WorkerError
from schemas.manifest import Fault
from schemas.storage.addresses import without_secrets
from schemas.storage.errors import storage_error

ATTEMPTS = 3
"""How often a unit is tried. The last attempt has its machine to itself."""
MOST_FAULTS = 20
"""The run ends if more records of one unit fail than this."""


class Task(NamedTuple):
    """An attempt to be made at a unit. If `faults` is given, the unit is done record by record, without these."""

    work: Work
    stage: Stage
    unit: int
    faults: dict[int, Fault] | None = None


class Failed(NamedTuple):
    """An attempt that ended with an error. `of`: the class of one that the user can fix; trying again cannot help."""

    error: str
    trace: str
    of: type[UserError] | None


class WorkerTraceback(Exception):
    """The traceback of an error in another process, as text."""


def attempt(task: Task, *, at: Callable[[int], None], watch: Callable[[TaskWriter], None]) -> Completion | Failed:
    """Make an attempt. `at` is called with each record if the unit is done by record, `watch` with the writer."""
    isolation = None if task.faults is None else Isolation(task.faults, at)
    try:
        return do_unit(task.work, task.stage, task.unit, isolation=isolation, watch=watch)
    except UserError as error:
        return Failed(str(error), "", type(error))
    except Exception as error:
        if isinstance(error, OSError) and (refused := storage_error(error, final=error.errno == errno.ENOENT)):
            return Failed(str(refused), "", type(refused))
        text = without_secrets(f"{type(error).__name__}: {error}")
        return Failed(text[:2000], without_secrets(traceback.format_exc())[-20_000:], None)


def fault_of(task: Task, outcome: Failed | str, record: int | None, number: int) -> Fault:
    """The fault of attempt `number`. UserError if trying again cannot help.

    `outcome` is the error, or how the process ended. `record` is the last one begun, if the unit was done by record.
    """
    if isinstance(outcome, Failed):
        if outcome.of:
            raise outcome.of(outcome.error)
        reason, what = "worker_failed", outcome.error
    else:
        reason, what = ("worker_died" if outcome.startswith("died") else "worker_hung"), f"the worker {outcome}"
    return Fault(task.stage.name, task.unit, number, reason, what, record, round(time.time(), 3))


def next_task(task: Task, fault: Fault, outcome: Failed | str) -> Task:
    """The task to try after a fault. If nothing is left to try, raises the error that ends the run."""
    if task.faults is None:
        if fault.attempt < ATTEMPTS:
            return task
        if task.stage.isolates:
            return task._replace(faults={})
    elif fault.record is not None and fault.record not in task.faults and len(task.faults) < MOST_FAULTS:
        return task._replace(faults={**task.faults, fault.record: fault})
    unit = _brief(str(task.work.unit(task.stage, task.unit)))
    what = f"{fault.stage}: unit {fault.unit} ({unit}) failed {fault.attempt} times, last: {fault.what}"
    if fault.reason == "worker_failed":
        error = StageError(what)
        error.__cause__ = WorkerTraceback(outcome.trace) if isinstance(outcome, Failed) else None
        raise error
    remedy = "; give it more memory, or use fewer --workers" if fault.reason == "worker_died" else ""
    raise WorkerError(what + remedy)


def _brief(text: str) -> str:
    return text if len(text) < 200 else text[:197] + "..."
