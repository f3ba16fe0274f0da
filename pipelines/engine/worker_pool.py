"""A pool of watched processes that do units. Any thread may submit units.

A process may be killed (for example if memory runs out), stopped, or hang. Each sends a heartbeat every second. If one
dies or hangs, only its unit is tried again, and the others continue. (A process pool of the standard library breaks as
a whole when one of its processes dies.)

A unit waits in `_waiting` until a worker is free. After a failure it goes to `_again`, which comes first, or, if the
next attempt needs the machine to itself, to `_alone`: that one begins when no other unit is being done.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.engine.attempts import ATTEMPTS, Failed, Task, attempt, fault_of, next_task
from pipelines.engine.limits import LIMITS, Limits
from pipelines.engine.progress import AtWork
from pipelines.engine.stage import Completion, Stage, StageError, Tally, Work, note_fault
from pipelines.engine.stopping import at_stop, not_at_stop
from pipelines.engine.task_writer import TaskWriter, peak_memory
from schemas.process import leave_out_pandas, limit_threads, silence

_BEAT = 1.0


class Beat(NamedTuple):
    """A heartbeat: the progress of a worker's unit. `cpu` in seconds, `memory` in bytes."""

    tally: Tally
    fraction: float
    busy_with: str
    cpu: float
    memory: int


class _At(NamedTuple):
    record: int


@dataclass
class _Job:
    """A submitted unit: what to try next, the future that its submitter waits for, how many attempts failed."""

    task: Task
    done: Future[Completion]
    failed: int = 0


@dataclass
class _Worker:
    """A worker process as the pool sees it. Times are those of `time.monotonic`."""

    process: Any
    connection: Connection
    job: _Job | None = None
    record: int | None = None  # the last one begun, if the unit is done record by record
    beat: Beat | None = None
    heard: bool = False  # of in any heartbeat
    beaten: float = 0.0  # when the last heartbeat came
    moved: float = 0.0  # when the tally changed last
    worked: float = 0.0  # when the CPU time grew last

    def give(self, job: _Job) -> None:
        now = time.monotonic()
        self.job, self.record, self.beat = job, None, None
        # A new process imports for a while before its first heartbeat.
        self.beaten, self.moved, self.worked = now + 60, now, now
        with contextlib.suppress(OSError):  # it died, which its sentinel shows
            self.connection.send(job.task)

    def receive(self) -> Iterator[Any]:
        """The messages that have arrived."""
        try:
            while self.connection.poll():
                yield self.connection.recv()
        except (EOFError, OSError):
            return

    def note(self, beat: Beat) -> None:
        now = time.monotonic()
        if self.beat is None or (beat.tally, beat.fraction) != (self.beat.tally, self.beat.fraction):
            self.moved = now
        if self.beat is None or beat.cpu - self.beat.cpu > 0.02:
            self.worked = now
        self.beat, self.heard, self.beaten = beat, True, now

    def done(self) -> tuple[Tally, int, float, str]:
        """What is known of its unit: the last fields of an AtWork."""
        if self.beat is None:
            return Tally(), 0, 0.0, "" if self.heard else "starting the workers"
        return self.beat.tally, self.beat.memory, self.beat.fraction, self.beat.busy_with

    def hung(self, limits: Limits) -> str:
        """Why the worker counts as hung; empty if it does not."""
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


class WorkerPool:
    """At most `number` worker processes. They live until the pool is closed, so models are loaded once.

    A thread of the pool watches them. Any other thread may submit units, also of several stages.
    """

    def __init__(self, number: int, *, limits: Limits = LIMITS) -> None:
        self.number = number
        self._limits = limits
        self._waiting: deque[_Job] = deque()
        self._again: deque[_Job] = deque()
        self._alone: deque[_Job] = deque()
        self._workers: list[_Worker] = []
        self._room = threading.Semaphore(number)  # for units that wait
        self._ended = threading.Event()
        self._wake_in, self._wake_out = multiprocessing.Pipe(duplex=False)
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="worker pool")
        self._watcher.start()
        at_stop(self._stop)

    def submit(self, work: Work, stage: Stage, unit: int) -> Future[Completion]:
        """Submit a unit of an open stage. Returns when it is given to a worker or can wait for one.

        The future's error is a StageError if the unit cannot be done, a UserError if the user can fix it.
        """
        job = _Job(Task(work, stage, unit), Future())
        while not self._room.acquire(timeout=0.5):
            if self._ended.is_set():
                break
        self._waiting.append(job)
        self._wake()
        if self._ended.is_set():
            self._give_up(job)
        return job.done

    def run(self, work: Work, stage: Stage, units: Sequence[int]) -> Iterator[Completion]:
        """Do units of an open stage; yields the completion record of each when it is finished. Errors: see `submit`."""
        doing: set[Future[Completion]] = set()
        for unit in units:
            doing.add(self.submit(work, stage, unit))
            finished, doing = wait_for(doing, timeout=0)
            yield from (each.result() for each in finished)
        while doing:
            finished, doing = wait_for(doing, return_when=FIRST_COMPLETED)
            yield from (each.result() for each in finished)

    def at_work(self) -> tuple[list[AtWork], int]:
        """The workers with a unit, and the memory of all processes in bytes. May be called from any thread."""
        workers = list(self._workers)
        found = [
            AtWork(
                each.process.pid,
                job.task.stage.name,
                job.task.unit,
                *each.done(),
            )
            for each in workers
            if (job := each.job)
        ]
        return found, sum(each.beat.memory for each in workers if each.beat) + resident_memory()

    def close(self) -> None:
        """End the workers now. Units that are not finished fail. May be called twice."""
        self._stop()
        not_at_stop(self._stop)

    def _stop(self, signal: str = "") -> None:
        self._ended.set()
        self._wake()
        self._watcher.join(10)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._wake_out.send(None)

    # ---- In the watching thread

    def _watch(self) -> None:
        try:
            while not self._ended.is_set():
                self._hand_out()
                for worker, outcome in self._outcomes():
                    job, worker.job = worker.job, None
                    assert job is not None
                    self._take(job, worker.record, outcome)
        finally:
            self._ended.set()
            left = [*self._waiting, *self._again, *self._alone, *(each.job for each in self._workers if each.job)]
            for each in self._workers:
                each.end()
            for job in left:
                self._give_up(job)

    def _give_up(self, job: _Job) -> None:
        with contextlib.suppress(Exception):  # another thread has set it already
            job.done.set_exception(StageError("the run was stopped"))

    def _take(self, job: _Job, record: int | None, outcome: Completion | Failed | str) -> None:
        """Set the result or error of a unit, or try it again."""
        if isinstance(outcome, Completion):
            job.done.set_result(outcome)
            return
        job.failed += 1
        try:
            fault = fault_of(job.task, outcome, record, job.failed)
            note_fault(job.task.work, fault)
            job.task = next_task(job.task, fault, outcome)
        except Exception as error:
            job.done.set_exception(error)
            return
        (self._alone if job.task.faults is not None or job.failed + 1 >= ATTEMPTS else self._again).append(job)

    def _busy(self) -> int:
        return sum(each.job is not None for each in self._workers)

    def _hand_out(self) -> None:
        if self._alone:
            if not self._busy():
                for idle in self._workers[1:]:
                    self._dismiss(idle)
                self._free_worker().give(self._alone.popleft())
            return
        while (self._again or self._waiting) and self._busy() < self.number:
            if not self._again:
                self._again.append(self._waiting.popleft())
                self._room.release()
            self._free_worker().give(self._again.popleft())

    def _free_worker(self) -> _Worker:
        for each in self._workers:
            if not each.job and each.process.is_alive():
                return each
        worker = _start()
        self._workers.append(worker)
        return worker

    def _dismiss(self, worker: _Worker) -> None:
        worker.end()
        self._workers.remove(worker)

    def _outcomes(self) -> Iterator[tuple[_Worker, Completion | Failed | str]]:
        """The outcomes of units: done, failed, or how the worker ended. Waits for half a second if there is none."""
        watched: list[Any] = [each.connection for each in self._workers] + [
            each.process.sentinel for each in self._workers
        ]
        wait([*watched, self._wake_in], timeout=0.5)
        while self._wake_in.poll():
            self._wake_in.recv()
        for worker in list(self._workers):
            dead = not worker.process.is_alive()  # before `receive`, so that its last messages are in the pipe
            for message in worker.receive():
                if isinstance(message, Beat):
                    worker.note(message)
                elif isinstance(message, _At):
                    worker.record = message.record
                elif worker.job:
                    yield worker, message
            if dead:
                code = worker.process.exitcode
                self._dismiss(worker)
                if worker.job:
                    yield worker, _end_of(code)
            elif worker.job and (why := worker.hung(self._limits)):
                self._dismiss(worker)
                yield worker, why


def _end_of(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"died of {name}" + (" (most likely out of memory)" if name == "SIGKILL" else "")
    return f"died with exit status {code}"


def _start() -> _Worker:
    limit_threads()
    # Threads of Beam and Arrow do not survive a fork.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    # Ctrl-C goes to the whole process group. Workers inherit the mask that ignores it; the parent ends them.
    resource_tracker.ensure_running()  # `start` would, and unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return _Worker(process, ours)


# ---- In the worker process


def _serve(connection: Connection) -> None:
    """Do tasks, one after the other, until the parent ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _offer_to_the_oom_killer()
    silence()
    leave_out_pandas()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(2)
    pulse = _Pulse(connection)
    with contextlib.suppress(EOFError, ConnectionResetError):  # the parent has closed the pipe
        while True:
            task: Task = connection.recv()
            outcome = attempt(task, at=lambda record: pulse.send(_At(record)), watch=pulse.watch)
            pulse.watch(None)
            pulse.send(outcome)


class _Pulse:
    """Sends messages, and a heartbeat every second."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._writer: TaskWriter | None = None
        threading.Thread(target=self._beat, daemon=True).start()

    def watch(self, writer: TaskWriter | None) -> None:
        self._writer = writer

    def send(self, message: Any) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError):  # the parent is gone; this process ends too
            self._connection.send(message)

    def _beat(self) -> None:
        while True:
            writer = self._writer
            done = (writer.tally(), writer.fraction(), writer.busy_with) if writer else (Tally(), 0.0, "")
            self.send(Beat(*done, time.process_time(), resident_memory()))
            time.sleep(_BEAT)


def usable_cores(root: Path = Path("/")) -> int:
    """The cores that this process may use: fewer than the machine has if its affinity or its container limits them."""
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
    """The memory of this process in bytes; its peak if the system does not tell the current value."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_memory()


def _end_with_parent() -> None:
    """End this worker when its parent ends, however that happens."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _offer_to_the_oom_killer() -> None:
    """If memory runs out, Linux should kill a worker, not the parent, which can start another."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("500")
