"""Ends by SIGINT and SIGTERM: soon, in order, with 128 + the signal, wherever it comes (`benchmarks.kills`)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from pipelines import status
from pipelines.engine.lease import read_run
from schemas.storage.folder import Folder

START = """
import atexit, os, select, signal, sys, threading, time
from pipelines.engine import stopping
from pipelines.engine.stopping import at_stop, ended_by_signals, wait_if_stopping

def send(*numbers):
    for number in numbers:
        os.kill(os.getpid(), number)

INT, TERM = signal.SIGINT, signal.SIGTERM
stopping._PATIENCE = 1.3
"""


@pytest.mark.parametrize(
    ("body", "code", "error"),
    [
        ("send(INT); time.sleep(600)", 130, "stopped\n"),
        ("send(TERM); time.sleep(600)", 143, "stopped\n"),
        ("send(TERM, INT); time.sleep(600)", 143, None),  # the second may end it before it says so
        # An exception here is printed and forgotten.
        ("""
class Left:
    def __del__(self):
        send(INT)
Left()
time.sleep(600)""", 130, "stopped\n"),
        # A library replaces the handlers and makes an error of the signal.
        ("""
def handle(*_):
    raise RuntimeError("a worker failed")
signal.signal(TERM, handle)
send(TERM)""", 143, "stopped\n"),
        # What fails because of the stop is not what the program ends of, nor said.
        ("""
ended = threading.Event()
at_stop(lambda name: ended.set())
send(INT)
ended.wait()
raise RuntimeError("the run was stopped")""", 130, "stopped\n"),
        # Python's shutdown would wait for these for ever.
        ("threading.Thread(target=threading.Event().wait).start(); send(TERM); time.sleep(600)", 143, "stopped\n"),
        ("atexit.register(threading.Event().wait); send(TERM); time.sleep(600)", 143, "stopped\n"),
        ("lock = threading.Lock(); lock.acquire(); send(INT); lock.acquire()", 130, "stopped\n"),
        # What is to be done at the end, and what is not any more.
        ("at_stop(print, 'to go on'); at_stop(len); stopping.not_at_stop(len); send(INT); time.sleep(600)", 130,
         "to go on\nstopped\n"),
        # One thing hangs: the others are done.
        ("at_stop(lambda name: time.sleep(600), 'a'); at_stop(print, 'b'); send(TERM); time.sleep(600)", 143,
         "a\nb\nstopped\n"),
        # A second signal does not wait for them.
        ("""
stopping._PATIENCE = 1e6
at_stop(lambda name: send(TERM) or time.sleep(600))
send(INT)
time.sleep(600)""", 130, ""),
        # Another signal with a handler is none of these.
        ("signal.signal(signal.SIGUSR1, lambda *_: None); send(signal.SIGUSR1)", 0, ""),
    ],
)  # fmt: skip
def test_a_program_ends_by_a_signal_wherever_it_is(body, code, error):
    script = START + "with ended_by_signals():\n" + "".join(f"    {line}\n" for line in body.strip().splitlines())
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert error in (None, done.stderr)
    assert done.stdout == ("SIGINT\n" if "to go on" in body else "SIGTERM\n" if "print" in body else "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_has_not_begun_or_has_ended_ends_by_a_signal(number):
    begins = "import sys; sys.argv, sys.orig_argv = ['-m'], ['', '-m', 'schemas.check']"
    for script in (
        f"{begins}; import schemas, os; os.kill(os.getpid(), {number})",
        f"{START}\nwith ended_by_signals(): pass\nsend({number}); time.sleep(600)",
    ):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (-number, "")


RUN = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from contextlib import suppress
from toy import Gated, word_count
from pipelines.engine.{module} import {executor}
from pipelines.engine.driver import run
from pipelines.engine.progress import Progress
from pipelines.engine.stopping import ended_by_signals
from schemas.process import silence

if __name__ == "__main__":
    silence()
    with ended_by_signals():
        build = word_count(Path(sys.argv[1]), ("a b", "c"), count=Gated, gate=sys.argv[1] + "-gate")
        build.begin(resume=True)
        run([build], {executor}({options}), progress=Progress(), command="python -m this --resume")
"""


def left(group: int) -> bool:
    """Whether a process of the group is there."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, 0)
        return True
    return False


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("module", "executor", "options", "number"),
    [
        ("executors", "InlineExecutor", "", signal.SIGTERM),
        ("beam", "BeamExecutor", "workers=1", signal.SIGINT),
    ],
)
def test_a_run_in_the_middle_of_a_unit_says_that_it_was_stopped(module, executor, options, number, tmp_path, capsys):
    """Ctrl-C goes to the whole group of processes."""
    script, output, name = tmp_path / "script.py", tmp_path / "words", number.name
    path = [each for each in sys.path if each]
    script.write_text(RUN.format(path=path, module=module, executor=executor, options=options))
    started = subprocess.Popen(
        [sys.executable, str(script), str(output)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        wait_for(lambda: any(tmp_path.glob("words-gate.*")))
    finally:
        os.killpg(started.pid, number)
    error = started.communicate(timeout=60)[1]
    assert started.returncode == 128 + number, error
    assert error.endswith("to go on from here: python -m this --resume\nstopped\n")
    assert "Traceback" not in error
    wait_for(lambda: not left(started.pid))
    assert read_run(Folder(str(output)))["state"] == f"stopped by {name}"
    assert status.main([str(output)]) == 1
    shown = capsys.readouterr().out
    assert f"no run is at work; the last, of process {started.pid} on" in shown
    assert f", was stopped by {name}\n" in shown
    assert shown.endswith("to go on: python -m this --resume\n")
