"""A run's mark on the datasets that it writes, `_work/run.json`: who writes them, how it goes, when last heard of.

It refuses a second run on the same output, and is what `python -m pipelines.status` shows. It only warns and refuses:
should two runs write one dataset for all that, completion records keep the result right (`pipelines/stages.py`).
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipelines.stages import WORK
from schemas.errors import UserError
from schemas.manifest import is_dataset
from schemas.storage import Folder

RUN_FILE = f"{WORK}/run.json"

_EVERY_LOCAL, _EVERY_REMOTE = 1.0, 10.0
_GONE = 60.0
"""Seconds without a sign of life after which a run on another machine counts as gone."""


def read_run(folder: Folder) -> dict[str, Any] | None:
    """What the last run said in an unfinished dataset; None if there is nothing that can be read."""
    if not folder.exists(RUN_FILE):
        return None
    try:
        return json.loads(folder.read(RUN_FILE))
    except (FileNotFoundError, ValueError):
        return None


def is_alive(run: Mapping[str, Any]) -> bool:
    """Whether a run that left this mark may still be writing."""
    if run["state"] != "running":
        return False
    if run["host"] == socket.gethostname() and _knows_processes():
        return _process_start(run["pid"]) == run["process_start"]
    return time.time() - run["beat"] < max(_GONE, 6 * run["every"])


def refuse_second(folder: Folder) -> None:
    """UserError if another run is writing the dataset."""
    run = read_run(folder)
    if run is not None and is_alive(run):
        remedy = f"wait for it, or end it; python -m pipelines.status {folder} shows it"
        raise UserError(f"{folder}: {holder(run)}; {remedy}")


def holder(run: Mapping[str, Any]) -> str:
    """Who holds a dataset and since when, in words."""
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run["started"]))
    seen = max(time.time() - run["beat"], 0)
    return (
        f"is being written by process {run['pid']} of {run['user']} on {run['host']} since {since} "
        f"(last heard of {seen:.0f} s ago)"
    )


class Hold:
    """Holds the datasets of a run while a `with` block lasts, and says in each how it goes."""

    def __init__(self, folders: Sequence[Folder], *, command: str, figures: Callable[[], Mapping[str, Any]]) -> None:
        """`command` is what goes on with the run; `figures` gives how it goes, in JSON values."""
        self._folders = list(folders)
        self._figures = figures
        self._every = _EVERY_LOCAL if all(each.is_local for each in folders) else _EVERY_REMOTE
        self._mark = {
            "run": uuid.uuid4().hex,
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

    def __enter__(self) -> Hold:
        for folder in self._folders:
            self._write(folder)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._ended.set()
        self._thread.join()
        if kind is not None:
            self._state = "stopped" if issubclass(kind, KeyboardInterrupt) else f"failed: {error}"
        for folder in self._folders:
            with contextlib.suppress(OSError):
                if self._is_ours(folder):
                    self._write(folder)

    def release(self, folder: Folder) -> None:
        """Leave a dataset that is about to be finished."""
        with self._lock:
            self._folders.remove(folder)

    def _keep(self) -> None:
        while not self._ended.wait(self._every):
            with self._lock:
                for folder in list(self._folders):
                    # A disk that is full or away for a moment is no reason to end: the work itself will tell.
                    with contextlib.suppress(OSError):
                        if self._is_ours(folder):
                            self._write(folder)
                        elif is_dataset(folder):  # a worker on a cluster has finished it
                            self._folders.remove(folder)
                        else:
                            self.lost = self._loss(folder)
                            return

    def _is_ours(self, folder: Folder) -> bool:
        found = read_run(folder)
        return found is not None and found["run"] == self._mark["run"]

    def _loss(self, folder: Folder) -> UserError:
        found = read_run(folder)
        if found is not None:
            return UserError(f"{folder}: another run took it: it {holder(found)}; this one ends")
        return UserError(f"{folder}: was deleted under the run; start anew with --overwrite")

    def _write(self, folder: Folder) -> None:
        mark = {**self._mark, "state": self._state, "beat": time.time(), **self._figures()}
        folder.write(RUN_FILE, json.dumps(mark, indent=1).encode())


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
