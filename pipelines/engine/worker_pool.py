"""Worker processes on this machine, watched: one that dies, stands still or hangs is noticed, its unit tried again.

Each worker sends a beat every second, from a thread of its own, with how far its unit has come. So the parent knows
which unit a dead worker had, sees one that was stopped (no beats), one that waits for ever (beats, but neither
progress nor work of its CPU) and one that runs round in circles (work, but no progress).

A unit that fails is tried again, the last time with nothing beside it, for want of memory is the commonest reason.
Then, where a stage can do a unit record by record (`Stage.isolates`), the records that bring its workers down are
found and become rejects; elsewhere the run ends.
"""

from __future__ import annotations

import contextlib
import errno
import math
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.engine.stage import (
    Completion,
    Fault,
    Isolation,
    Stage,
    StageError,
    Tally,
    TaskWriter,
    Work,
    peak_memory,
    run_unit,
)
from schemas.addresses import without_secrets
from schemas.errors import UserError, storage_error

ATTEMPTS = 3
"""How often a unit is tried; the last time alone."""
MOST_FAULTS = 20
"""Records of one unit that may bring its worker down before the run ends."""

_BEAT = 1.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM")


class Limits(NamedTuple):
    """When a worker counts as hung, in seconds."""

    silent: float = 30.0  # no beat: it was stopped, or something holds the interpreter
    idle: float = 300.0  # no progress, and its CPU does nothing: it waits for what does not come
    stalled: float = 1800.0  # no progress


LIMITS = Limits()


class Beat(NamedTuple):
    """How a worker's unit goes. `cpu` in seconds, `memory` in bytes."""

    tally: Tally
    cpu: float
    memory: int


class _Task(NamedTuple):
    work: Work
    stage: Stage
    unit: int
    faults: dict[int, Fault] | None = None  # given: the unit is done record by record


class _Done(NamedTuple):
    completion: Completion


class _Failed(NamedTuple):
    error: str
    trace: str
    users: bool  # an error that a user can mend, and no retry can


class _At(NamedTuple):
    record: int


class WorkerTraceback(Exception):
    """The traceback of an error in a worker process, as text."""


@dataclass
class _Worker:
    """A worker process as its parent sees it."""

    process: Any
    connection: Connection
    task: _Task | None = None
    record: int | None = None
    beat: Beat | None = None
    beaten: float = 0.0
    moved: float = 0.0
    worked: float = 0.0
    inbox: list[Any] = field(default_factory=list)

    def give(self, task: _Task) -> None:
        now = time.monotonic()
        self.task, self.record, self.beat = task, None, None
        # A process that just starts has to import much before its first beat.
        self.beaten, self.moved, self.worked = now + 60, now, now
        with contextlib.suppress(OSError):  # it died: its sentinel tells
            self.connection.send(task)

    def receive(self) -> Iterator[Any]:
        """The messages that are there."""
        try:
            while self.connection.poll():
                yield self.connection.recv()
        except (EOFError, OSError):
            return

    def note(self, beat: Beat) -> None:
        now = time.monotonic()
        if self.beat is None or beat.tally != self.beat.tally:
            self.moved = now
        if self.beat is None or beat.cpu - self.beat.cpu > 0.02:
            self.worked = now
        self.beat, self.beaten = beat, now

    def hung(self, limits: Limits) -> str:
        """Why it counts as hung, empty if it does not."""
        now = time.monotonic()
        if now - self.beaten > limits.silent:
            return f"gave no sign of life for {limits.silent:.0f} s"
        if now - self.moved > limits.stalled:
            return f"made no progress for {limits.stalled:.0f} s"
        if self.beat and self.beaten - max(self.moved, self.worked) > limits.idle:
            return f"did nothing for {limits.idle:.0f} s"
        return ""

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


class Workers:
    """Up to `number` worker processes, which live from one stage to the next, so that models are loaded once."""

    def __init__(self, number: int, *, limits: Limits, report: Callable[[Fault], None]) -> None:
        """`report` is called for each failed attempt."""
        self.number = number
        self._limits = limits
        self._report = report
        self._crew: list[_Worker] = []
        self._stopped = False

    def beats(self) -> list[tuple[int, int, Beat]]:
        """(process id, unit, last beat) of the workers that are at work. Callable from any thread."""
        return [
            (each.process.pid, task.unit, beat)
            for each in list(self._crew)
            if (task := each.task) and (beat := each.beat)
        ]

    def memory(self) -> int:
        """Bytes that all workers have, by their last beats."""
        return sum(each.beat.memory for each in list(self._crew) if each.beat)

    def run(self, work: Work, stage: Stage, units: Sequence[int]) -> Iterator[Completion]:
        """Do the units; yields the completion record of each as it is finished.

        StageError for a unit that cannot be done, UserError for what a user can mend.
        """
        waiting = deque(_Task(work, stage, unit) for unit in sorted(units))
        alone: deque[_Task] = deque()
        attempts = Counter[int]()
        while waiting or alone or self._busy():
            self._hand_out(waiting, alone)
            for worker, outcome in self._outcomes():
                task, worker.task = worker.task, None
                assert task is not None
                if isinstance(outcome, _Done):
                    yield outcome.completion
                    continue
                if isinstance(outcome, _Failed) and outcome.users:
                    raise UserError(outcome.error)
                attempts[task.unit] += 1
                fault = _fault(task, outcome, worker.record, attempts[task.unit])
                self._report(fault)
                again = _next_attempt(task, fault, outcome)
                (alone if again.faults is not None or fault.attempt + 1 >= ATTEMPTS else waiting).append(again)

    def close(self) -> None:
        """Let the workers end, which are idle."""
        for each in self._crew:
            each.connection.close()
        for each in self._crew:
            each.process.join(10)
        self.stop()

    def stop(self) -> None:
        """End all workers at once, also while `run` goes on in another thread, which then raises."""
        self._stopped = True
        while self._crew:
            self._crew.pop().end()

    def _busy(self) -> list[_Worker]:
        return [each for each in self._crew if each.task]

    def _hand_out(self, waiting: deque[_Task], alone: deque[_Task]) -> None:
        if self._stopped:
            raise StageError("the run was stopped")
        if alone:
            if not self._busy():
                for idle in self._crew[1:]:
                    self._dismiss(idle)
                self._free_worker().give(alone.popleft())
            return
        while waiting and len(self._busy()) < self.number:
            self._free_worker().give(waiting.popleft())

    def _free_worker(self) -> _Worker:
        for each in self._crew:
            if not each.task and each.process.is_alive():
                return each
        worker = _start()
        self._crew.append(worker)
        return worker

    def _dismiss(self, worker: _Worker) -> None:
        worker.end()
        self._crew.remove(worker)

    def _outcomes(self) -> Iterator[tuple[_Worker, _Done | _Failed | str]]:
        """What became of tasks: done, failed, or how the worker perished. Waits a moment if nothing did."""
        watched: list[Any] = [each.connection for each in self._crew] + [each.process.sentinel for each in self._crew]
        wait(watched, timeout=0.5)
        for worker in list(self._crew):
            dead = not worker.process.is_alive()  # asked first: what it sent before its end is then in the pipe
            for message in worker.receive():
                if isinstance(message, Beat):
                    worker.note(message)
                elif isinstance(message, _At):
                    worker.record = message.record
                elif worker.task:
                    yield worker, message
            if dead:
                code = worker.process.exitcode
                self._dismiss(worker)
                if worker.task:
                    yield worker, _end_of(code)
            elif worker.task and (why := worker.hung(self._limits)):
                self._dismiss(worker)
                yield worker, why


def _fault(task: _Task, outcome: _Failed | str, record: int | None, attempt: int) -> Fault:
    if isinstance(outcome, _Failed):
        reason, what = "worker_failed", outcome.error
    else:
        reason, what = ("worker_died" if outcome.startswith("died") else "worker_hung"), f"the worker {outcome}"
    return Fault(task.stage.name, task.unit, attempt, reason, what, record, round(time.time(), 3))


def _next_attempt(task: _Task, fault: Fault, outcome: _Failed | str) -> _Task:
    """The task for the next attempt, after `attempt` of them; the error that ends the run if there is none."""
    if task.faults is None:
        if fault.attempt < ATTEMPTS:
            return task
        if task.stage.isolates:
            return task._replace(faults={})
    elif fault.record is not None and fault.record not in task.faults and len(task.faults) < MOST_FAULTS:
        return task._replace(faults={**task.faults, fault.record: fault})
    where = f"{fault.stage}: unit {fault.unit} ({_brief(task)}) failed {fault.attempt} times, at last: {fault.what}"
    if fault.reason == "worker_failed":
        error = StageError(where)
        error.__cause__ = WorkerTraceback(outcome.trace) if isinstance(outcome, _Failed) else None
        raise error
    remedy = "; give it more memory, or use fewer --workers" if fault.reason == "worker_died" else ""
    raise UserError(where + remedy)


def _brief(task: _Task) -> str:
    text = str(task.stage.Unit(*task.work.units(task.stage.name)[task.unit]))
    return text if len(text) < 200 else text[:197] + "..."


def _end_of(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"died of {name}" + (" (most likely out of memory)" if name == "SIGKILL" else "")
    return f"died with exit status {code}"


def _start() -> _Worker:
    # A worker is one core: more threads would change the order of sums in models, and fight each other.
    for name in _THREADS:
        os.environ[name] = "false" if name == "TOKENIZERS_PARALLELISM" else "1"
    # Threads of Beam and Arrow do not survive a fork.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    # Ctrl-C goes to the whole process group. Workers inherit the mask; their parent ends them.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return _Worker(process, ours)


# ---- In the worker process


def _serve(connection: Connection) -> None:
    """Do the tasks that come, one after the other, until the parent ends."""
    from pipelines.runners import silence

    threading.Thread(target=_end_with_parent, daemon=True).start()
    _offer_to_the_oom_killer()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(2)
    silence()
    pulse = _Pulse(connection)
    with contextlib.suppress(EOFError, ConnectionResetError):  # the parent has no more for us
        while True:
            task: _Task = connection.recv()
            pulse.send(_do(task, pulse))


def _do(task: _Task, pulse: _Pulse) -> _Done | _Failed:
    isolation = None
    if task.faults is not None:
        isolation = Isolation(task.faults, lambda record: pulse.send(_At(record)))
    try:
        return _Done(run_unit(task.work, task.stage, task.unit, isolation=isolation, watch=pulse.watch))
    except UserError as error:
        return _Failed(str(error), "", users=True)
    except BaseException as error:
        if isinstance(error, OSError) and (refused := storage_error(error, final=error.errno == errno.ENOENT)):
            return _Failed(str(refused), "", users=True)
        text = without_secrets(f"{type(error).__name__}: {error}")
        return _Failed(text[:2000], without_secrets(traceback.format_exc())[-20_000:], users=False)
    finally:
        pulse.watch(None)


class _Pulse:
    """Sends messages, and a beat every second."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._writer: TaskWriter | None = None
        threading.Thread(target=self._beat, daemon=True).start()

    def watch(self, writer: TaskWriter | None) -> None:
        self._writer = writer

    def send(self, message: Any) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError):  # the parent is gone, and so are we in a moment
            self._connection.send(message)

    def _beat(self) -> None:
        while True:
            writer = self._writer
            tally = writer.tally() if writer else Tally()
            self.send(Beat(tally, time.process_time(), resident_memory()))
            time.sleep(_BEAT)


def usable_cores(root: Path = Path("/")) -> int:
    """The cores that this process may use: fewer than the machine's where it is bound, or a container is limited."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for file, pattern in (
        ("sys/fs/cgroup/cpu.max", r"(?P<quota>\d+) (?P<period>\d+)"),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", r"(?P<quota>\d+)"),
    ):
        with contextlib.suppress(OSError):
            if found := re.match(pattern, (root / file).read_text()):
                period = found.groupdict().get("period") or (root / "sys/fs/cgroup/cpu/cpu.cfs_period_us").read_text()
                cores = min(cores, math.ceil(int(found["quota"]) / int(period)))
    return max(cores, 1)


def resident_memory() -> int:
    """The memory that this process has now, in bytes (its peak where the system does not tell)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_memory()


def _end_with_parent() -> None:
    """A worker whose parent was killed has nobody to work for."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _offer_to_the_oom_killer() -> None:
    """Where memory runs out, a worker should go, not the parent that can start another."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("500")
