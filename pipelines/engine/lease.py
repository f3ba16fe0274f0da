"""A run's lease on the datasets that it writes, `_work/run.json`: who writes them, how it goes, when last heard of.

It refuses a second run on the same output, and is what `python -m pipelines.status` shows. A run that does a slice of
the units (`--units=2/64`) has a lease of its own, `_work/run-2-of-64.json`: it refuses the same slice and a whole run,
not another slice. Leases only warn and refuse: should two runs do the same units for all that, completion records keep
the result right (`stage.py`).
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
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipelines.engine.stage import WORK, Slice
from schemas.errors import UserError
from schemas.manifest import is_dataset
from schemas.storage.errors import PassingError
from schemas.storage.folder import Folder

RUN_FILE = f"{WORK}/run.json"
_SLICE_FILE = re.compile(rf"{WORK}/run-(\d+)-of-(\d+)\.json")

_EVERY_LOCAL, _EVERY_REMOTE = 1.0, 10.0
_GONE = 60.0
"""Seconds without a sign of life after which a run on another machine counts as gone."""


def run_file(part: Slice | None) -> str:
    """The lease of a whole run, or of a slice."""
    return RUN_FILE if part is None else f"{WORK}/run-{part.number}-of-{part.of}.json"


def read_run(folder: Folder, part: Slice | None = None) -> dict[str, Any] | None:
    """What the last run, or the last of a slice, said in an unfinished dataset; None if nothing can be read."""
    if not folder.exists(run_file(part)):
        return None
    try:
        return json.loads(folder.read(run_file(part)))
    except (FileNotFoundError, ValueError):
        return None


def read_slices(folder: Folder) -> dict[Slice, dict[str, Any]]:
    """What the last runs of slices said in an unfinished dataset, in order."""
    parts = [Slice(int(found[1]), int(found[2])) for name in folder.files(WORK) if (found := _SLICE_FILE.match(name))]
    parts.sort(key=lambda part: (part.of, part.number))
    marks = []
    try:
        for data in folder.read_all([run_file(part) for part in parts]):
            with contextlib.suppress(ValueError):
                marks.append(json.loads(data))
    except FileNotFoundError:  # the dataset was finished at this moment
        return {}
    return {Slice(*mark["slice"]): mark for mark in marks}


def is_alive(run: Mapping[str, Any]) -> bool:
    """Whether a run that left this lease may still be writing."""
    if run["state"] != "running":
        return False
    if run["host"] == socket.gethostname() and _knows_processes():
        return _process_start(run["pid"]) == run["process_start"]
    return time.time() - run["beat"] < max(_GONE, 6 * run["every"])


def refuse_second(folder: Folder, part: Slice | None = None, *, own: str = "") -> None:
    """UserError if another run is writing the dataset: for a slice, the same slice or a whole run.

    `own` is the run that asks.
    """
    marks = [read_run(folder), read_run(folder, part)] if part else [read_run(folder), *read_slices(folder).values()]
    alive = [mark for mark in marks if mark is not None and mark["run"] != own and is_alive(mark)]
    if alive:
        others, them = "", "it"
        if more := len(alive) - 1:
            others, them = f", and {more:,} more {'is' if more == 1 else 'are'} at work", "them"
        remedy = f"wait for {them}, or end {them}; python -m pipelines.status {folder} shows {them}"
        raise UserError(f"{folder}: {holder(alive[0])}{others}; {remedy}")


def check_lease(folder: Folder, run: str, part: Slice | None = None) -> None:
    """UserError if a run was stopped or another took its place: its job on a cluster ends by this, runner or not.

    Asked before each unit; `run` is the id in the lease. A run that was killed leaves its lease as it was, and its job
    goes on.
    """
    try:
        lease = read_run(folder, part)
    except PassingError:  # no reason to end: the work itself will tell
        return
    if lease is None or (lease["run"] == run and lease["state"] == "running"):
        return
    raise UserError(f"{folder}: the run that sent this job {'was stopped' if lease['run'] == run else 'was replaced'}")


def holder(run: Mapping[str, Any]) -> str:
    """Who holds a dataset, or a slice of its units, and since when, in words."""
    held = "slice {}/{} of its units is being done".format(*run["slice"]) if run.get("slice") else "is being written"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run["started"]))
    seen = max(time.time() - run["beat"], 0)
    return (
        f"{held} by process {run['pid']} of {run['user']} on {run['host']} since {since} "
        f"(last heard of {seen:.0f} s ago)"
    )


class Lease:
    """The lease of a run while a `with` block lasts; says in each dataset how the run goes."""

    def __init__(
        self,
        folders: Sequence[Folder],
        *,
        command: str,
        figures: Callable[[], Mapping[str, Any]],
        part: Slice | None = None,
    ) -> None:
        """`command` is what goes on with the run; `figures` gives how it goes, in JSON values.

        With `part` only this slice of the units is held.
        """
        self._folders = list(folders)
        self._part = part
        self._figures = figures
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
        """Why the run has to end: another took a dataset, or it is gone."""

    def __enter__(self) -> Lease:
        for folder in self._folders:
            self._write(folder)
        try:
            # Only now: of two that begin at once, one at least sees the other.
            for folder in self._folders:
                refuse_second(folder, self._part, own=self.run)
        except UserError as error:
            self._state = f"failed: {error}"
            self._write_last()
            raise
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._ended.set()
        self._thread.join()
        if kind is None:
            self._state = "done"
        else:
            self._state = "stopped" if issubclass(kind, KeyboardInterrupt) else f"failed: {error}"
        self._write_last()

    def give_up(self, why: UserError) -> None:
        """Say that the run is over before it is: its workers elsewhere end by that."""
        self._state = f"failed: {why}"
        self._write_last()

    def _keep(self) -> None:
        while not self._ended.wait(self._every):
            with self._lock:
                for folder in list(self._folders):
                    # A disk that is full or away for a moment is no reason to end: the work itself will tell.
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
        return UserError(f"{folder}: was deleted under the run; start again with --overwrite")

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
    """When a process of this machine was started, in ticks since boot; None if there is none (or it is a zombie)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            # The second field is the program's name in brackets, and may hold blanks and brackets.
            state, *fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state == "Z" else int(fields[18])
