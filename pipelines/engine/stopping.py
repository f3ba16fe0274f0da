"""How a program ends by SIGINT or SIGTERM: in order and soon, whatever its threads do, with 128 + the signal.

The signal raises no exception: one in whatever code runs would be lost in a finaliser, wrapped by a library, or leave
a lock taken. It wakes a thread, which calls what `at_stop` was given (end the worker processes, mark the lease) and
then ends the process while its other threads still run. Files may be cut off at any moment (`stage.py`), and the
interpreter's shutdown, which is left out, waits for threads. A second signal ends the process at once.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 3.0
"""The process ends after this many seconds, whatever has not ended by then."""

_stops: dict[Callable[[str], object], str] = {}
_lock = threading.Lock()  # of whoever reads the pipe or looks into it
_pipe: tuple[int, int] | None = None
_stopping = False


def at_stop(stop: Callable[[str], object], say: str = "") -> None:
    """Until `not_at_stop`, a signal that ends this program calls `stop` with its name, in a thread, and prints `say`.

    Does nothing where the program is not ours (`ended_by_signals`).
    """
    _stops[stop] = say


def not_at_stop(stop: Callable[[str], object]) -> None:
    _stops.pop(stop, None)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGINT and SIGTERM end this program during the block. After it they have their default action."""
    global _pipe
    _pipe = os.pipe()
    os.set_blocking(_pipe[1], False)
    threading.Thread(target=_wait, args=_pipe, daemon=True, name="signals").start()
    # Written by the C handler, even if a library replaces the Python one or the main thread is busy.
    signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)
    for each in _SIGNALS:
        signal.signal(each, lambda *_: None)
    try:
        yield
    finally:
        wait_if_stopping()
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        wait_if_stopping()


def wait_if_stopping() -> None:
    """Wait for the end if a signal ends this program: what the caller would say or write now follows from that."""
    while _is_stopping():
        time.sleep(0.05)


def _is_stopping() -> bool:
    if _pipe is None:
        return False
    with _lock:
        return _stopping or bool(select.select([_pipe[0]], [], [], 0)[0])


def _wait(reader: int, writer: int) -> None:
    """End the process at the first of the signals."""
    global _stopping
    number = 0
    while number not in _SIGNALS:  # another signal may have a handler too
        select.select([reader], [], [])
        with _lock:
            number = os.read(reader, 1)[0]
            _stopping = number in _SIGNALS
    threading.Thread(target=_stop, args=(signal.Signals(number).name, writer), daemon=True).start()
    select.select([reader], [], [], _PATIENCE)  # until `_stop` has ended, or the second signal comes
    with contextlib.suppress(Exception):  # started too late for `_stop`
        for child in sys.modules["multiprocessing"].active_children():
            child.kill()
    os._exit(128 + number)


def _stop(name: str, writer: int) -> None:
    until = time.monotonic() + _PATIENCE - 1
    # What other threads meet from now on follows from the stop.
    sys.excepthook = lambda *_: None
    threading.excepthook = lambda *_: None
    stops = dict(_stops)
    threads = [threading.Thread(target=stop, args=(name,), daemon=True) for stop in stops]
    for each in threads:
        each.start()
    for each in threads:
        each.join(max(until - time.monotonic(), 0))
    with contextlib.suppress(Exception):  # the terminal may be gone
        sys.stdout.flush()
        print(*filter(None, stops.values()), "stopped", sep="\n", file=sys.stderr, flush=True)
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()  # temporary folders, the servers that Beam started
    os.write(writer, b"\0")
