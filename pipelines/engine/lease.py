"""A run's lease on the datasets that it writes, `_work/run.json`: who writes them, their progress, the last heartbeat.

It refuses a second run on the same output, and `python -m pipelines.status` shows it. A run that does a slice of the
units (`--units=2/64`) has its own lease, `_work/run-2-of-64.json`, which refuses the same slice and a whole run, but
not another slice. Leases are advisory. If two runs do the same units nevertheless, completion records keep the result
correct (`stage.py`).
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from pipelines.engine.stage import WORK, Slice
from pipelines.engine.stopping import at_stop, not_at_stop, wait_if_stopping
from schemas.commands import typed
from schemas.errors import UserError, resumes
from schemas.json_values import UnixTime, checked, json_value
from schemas.manifest import is_dataset
from schemas.storage.errors import PassingError
from schemas.storage.folder import Folder

RUN_FILE = f"{WORK}/run.json"
_SLICE_FILE = re.compile(rf"{WORK}/run-(\d+)-of-(\d+)\.json")

_EVERY_LOCAL, _EVERY_REMOTE = 1.0, 10.0
_GONE = 60.0
"""A run on another machine without a heartbeat for this many seconds counts as ended."""


class _Mark(TypedDict):
    run: str
    slice: Slice | None
    host: str
    pid: int
    process_start: int | None
    user: str
    command: str
    started: UnixTime
    every: float
    state: str
    beat: UnixTime


class Mark(_Mark, total=False):
    """What a lease says, besides the figures of the run. `every`: the seconds between heartbeats.

    `finish` is for a slice: the command after all slices.
    """

    stages: list[dict[str, Any]]
    finish: str


def run_file(part: Slice | None) -> str:
    """The file of the lease of a whole run, or of a slice."""
    return RUN_FILE if part is None else f"{WORK}/run-{part.number}-of-{part.of}.json"


def read_run(folder: Folder, part: Slice | None = None) -> Mark | None:
    """The lease of the last run on an unfinished dataset, or of the last of a slice; None if none can be read."""
    if not folder.exists(run_file(part)):
        return None
    try:
        return checked(Mark, json_value(folder.read(run_file(part))))
    except (FileNotFoundError, ValueError):
        return None


def read_slices(folder: Folder) -> dict[Slice, Mark]:
    """The leases of the last run of each slice of an unfinished dataset, in order of slices."""
    parts = [Slice(int(found[1]), int(found[2])) for name in folder.files(WORK) if (found := _SLICE_FILE.match(name))]
    parts.sort(key=lambda part: (part.of, part.number))
    marks = {}
    try:
        for part, data in zip(parts, folder.read_all([run_file(part) for part in parts]), strict=True):
            with contextlib.suppress(ValueError):
                marks[part] = checked(Mark, json_value(data))
    except FileNotFoundError:  # the dataset was finished meanwhile
        return {}
    return marks


def is_alive(run: Mark) -> bool:
    """Whether the run of this lease may still be writing."""
    if run["state"] != "running":
        return False
    if run["host"] == socket.gethostname() and _knows_processes():
        return _process_start(run["pid"]) == run["process_start"]
    return time.time() - run["beat"] < max(_GONE, 6 * run["every"])


def refuse_second(folder: Folder, part: Slice | None = None, *, own: str = "") -> None:
    """UserError if another run is writing the dataset; if `part` is given, only if it is a whole run or the same slice.

    `own` is the id of the run that asks.
    """
    marks = [read_run(folder), read_run(folder, part)] if part else [read_run(folder), *read_slices(folder).values()]
    alive = [mark for mark in marks if mark is not None and mark["run"] != own and is_alive(mark)]
    if alive:
        others, them = "", "it"
        if more := len(alive) - 1:
            others, them = f", and {more:,} more {'is' if more == 1 else 'are'} at work", "them"
        remedy = f"wait for {them}, or end {them}; {typed('pipelines.status', folder)} shows {them}"
        raise UserError(f"{folder}: {holder(alive[0])}{others}; {remedy}")


@contextlib.contextmanager
def refusing_second(folders: Sequence[Folder], part: Slice | None = None) -> Iterator[None]:
    """`refuse_second` before the block, and when it fails: it may have read what another run has begun to write."""
    for folder in folders:
        refuse_second(folder, part)
    try:
        yield
    except (UserError, OSError):
        for folder in folders:
            refuse_second(folder, part)
        raise


def tidy(folder: Folder) -> None:
    """Remove what an interruption left in a finished dataset."""
    if folder.exists(WORK):
        with folder.locked():
            refuse_second(folder)
            folder.delete(WORK)


def check_lease(folder: Folder, run: str, part: Slice | None = None) -> None:
    """UserError if the run was stopped or replaced by another, so that its job on a cluster ends without the runner.

    Called before each unit; `run` is the id in the lease. A run that was killed leaves its lease as it was, so its job
    continues.
    """
    try:
        lease = read_run(folder, part)
    except PassingError:  # if storage stays unreachable, the work itself fails
        return
    if lease is None or (lease["run"] == run and lease["state"] == "running"):
        return
    ended = "was stopped" if lease["run"] == run else "was replaced"
    raise UserError(f"{folder}: the run that submitted this job {ended}")


def holder(run: Mark) -> str:
    """Who writes a dataset, or does a slice of its units, and since when, in words."""
    what = "slice {}/{} of its units is being done".format(*run["slice"]) if run["slice"] else "is being written"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run["started"]))
    seen = max(time.time() - run["beat"], 0)
    return (
        f"{what} by process {run['pid']} of {run['user']} on {run['host']} since {since} "
        f"(last heard of {seen:.0f} s ago)"
    )


class Lease:
    """The lease of a run during a `with` block. It writes the run's progress into each dataset."""

    def __init__(
        self,
        folders: Sequence[Folder],
        *,
        command: str,
        figures: Callable[[], Mapping[str, Any]],
        part: Slice | None = None,
    ) -> None:
        """`command` resumes the run; `figures` returns its progress as JSON values.

        With `part` the lease is for this slice of the units only.
        """
        self._folders = list(folders)
        self._part = part
        self._figures = figures
        self._command = command
        self._every = _EVERY_LOCAL if all(each.is_local for each in folders) else _EVERY_REMOTE
        self.run = uuid.uuid4().hex
        self._mark = {
            "run": self.run,
            "slice": part and list(part),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "process_start": _process_start(os.getpid()),
            "user": _user(),
            "command": command,
            "started": time.time(),
            "every": self._every,
            "datasets": [str(each) for each in folders],
        }
        self._state = "running"
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self.lost: UserError | None = None
        """Why the run has to end: another run took a dataset, or the dataset is gone."""

    def __enter__(self) -> Lease:
        at_stop(self._stop, self._command and f"to go on from here: {self._command}")
        try:
            for folder in self._folders:
                with folder.locked():
                    refuse_second(folder, self._part, own=self.run)
                    self._write(folder)
            # Without a lock (an object store), of two runs that begin at the same time at least one sees the other.
            for folder in self._folders:
                refuse_second(folder, self._part, own=self.run)
        except BaseException as error:
            self._end(f"failed: {error}")
            raise
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        wait_if_stopping()
        self._ended.set()
        self._thread.join()
        if kind is None:
            self._end("done")
        else:
            self._end("stopped" if issubclass(kind, KeyboardInterrupt) else f"failed: {error}", error)

    def give_up(self, why: UserError) -> None:
        """Mark the run as over before it is, so that its workers on other machines end."""
        with self._lock:
            self._set(f"failed: {why}", why)
            self._write_last()

    def _stop(self, signal: str) -> None:
        with self._lock:
            self._state = f"stopped by {signal}"
            self._write_last()

    def _end(self, state: str, error: BaseException | None = None) -> None:
        not_at_stop(self._stop)
        self._set(state, error)
        self._write_last()

    def _set(self, state: str, error: BaseException | None) -> None:
        """`status` names the command that goes on only if it can."""
        self._state = state
        if not resumes(error):
            self._mark["command"] = ""

    def _keep(self) -> None:
        while not self._ended.wait(self._every):
            with self._lock:
                for folder in list(self._folders):
                    # A disk may be full or unreachable for a moment. If that lasts, the work itself fails.
                    with contextlib.suppress(OSError):
                        if self._is_ours(folder):
                            self._write(folder)
                        elif self._part is None and is_dataset(folder):  # it was published
                            self._folders.remove(folder)
                        else:
                            self.lost = self._loss(folder)
                            return

    def _write_last(self) -> None:
        for folder in self._folders:
            with contextlib.suppress(OSError):
                if self._is_ours(folder):
                    self._write(folder)

    def _is_ours(self, folder: Folder) -> bool:
        found = read_run(folder, self._part)
        return found is not None and found["run"] == self.run

    def _loss(self, folder: Folder) -> UserError:
        found = read_run(folder, self._part)
        if found is not None:
            return UserError(
                f"{folder}: another run took it: {'' if self._part else 'it '}{holder(found)}; this one ends"
            )
        if is_dataset(folder):
            return UserError(f"{folder}: another run has finished it; this one ends")
        return UserError(f"{folder}: was deleted during the run; start again with --overwrite")

    def _write(self, folder: Folder) -> None:
        mark = {**self._mark, "state": self._state, "beat": time.time(), **self._figures()}
        folder.write(run_file(self._part), json.dumps(mark, indent=1).encode())


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def _knows_processes() -> bool:
    return os.path.exists("/proc/self/stat")


def _process_start(pid: int) -> int | None:
    """When a process of this machine started, in ticks since boot; None if there is none, or it is a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            # The second field is the program's name in brackets; it may contain spaces and brackets.
            state, *fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state == "Z" else int(fields[18])
