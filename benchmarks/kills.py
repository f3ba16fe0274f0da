"""Kill a run repeatedly, and check that --resume gives the result of an uninterrupted run.

    python -m benchmarks.kills --moments 20 --input enwiki-fragment.xml.bz2

First the main job runs undisturbed. Then, for each of --moments seeded moments (a number of finished units, and a part
of a second), a run is started and one of its workers, or the whole run, is killed by SIGKILL; a killed run is followed
by `--resume`. Each must end with the same shards, side tables included. No unit with a completion record may be done
again, and nothing may be left over.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks import harness
from schemas.errors import UserError
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder

_MARK = f"PHRASEMILL_KILLS_{os.getpid()}"
_DATASETS = ("", "-documents", "-sentences", "-phrases")
_DONE_BEFORE = re.compile(r"^(\w+): [\d,]+ units? \(([\d,]+) done before\)", re.MULTILINE)


class Moment(NamedTuple):
    """When to kill: `seconds` after `units` units are finished."""

    units: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.units:5,} units + {self.seconds:.2f} s"


class Outcome(NamedTuple):
    """The result of one kill; `problems` is empty if there are none."""

    moment: Moment
    killed: str
    units_kept: int
    problems: list[str]


def kept_units(output: Path) -> dict[str, int]:
    """The number of units with a completion record, by stage, in unfinished datasets."""
    counts: dict[str, set[str]] = {}
    for suffix in _DATASETS:
        for record in Path(f"{output}{suffix}").glob("_work/*/done/*.json"):
            counts.setdefault(record.parent.parent.name, set()).add(record.name.split(".")[0])
    return {stage: len(units) for stage, units in counts.items()}


def finished_units(output: Path) -> int:
    """The number of units finished so far, in all datasets."""
    done = sum(kept_units(output).values())
    for suffix in _DATASETS:
        with contextlib.suppress(UserError):
            done += sum(stage.units for stage in read_manifest(Folder(f"{output}{suffix}")).stages)
    return done


def left_over(output: Path) -> list[str]:
    """Files that should not exist after a finished run."""
    return [
        f"{path} is left over"
        for suffix in _DATASETS
        for path in sorted(Path(f"{output}{suffix}").rglob("*"))
        if path.name == "_work" or path.name.endswith(".part")
    ]


def command(arguments: Sequence[str], output: Path, *flags: str) -> list[str]:
    return [sys.executable, "-m", "pipelines.mine_contexts", *arguments, "--output", str(output), *flags]


def kill_once(arguments: Sequence[str], output: Path, moment: Moment, whole: bool, choice: random.Random) -> Outcome:
    """Start a run, kill a worker or all of it at a moment, and let it finish."""
    run = subprocess.Popen(command(arguments, output), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while run.poll() is None and finished_units(output) < moment.units:
        time.sleep(0.02)
    time.sleep(moment.seconds)
    problems: list[str] = []
    kept: dict[str, int] = {}
    if run.poll() is not None:
        killed = "nothing: the run had ended"
    elif whole:
        killed = "the run"
        run.kill()
        run.wait()
        _wait_until_gone()
        kept = kept_units(output)
    else:
        while not (workers := _workers(run.pid)) and run.poll() is None:
            time.sleep(0.02)
        killed = "a worker" if workers else "nothing: the run had ended"
        if workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                choice.choice(workers).kill()
    error = run.communicate()[1]
    if whole and run.returncode == -signal.SIGKILL:
        again = subprocess.run(command(arguments, output, "--resume"), capture_output=True, text=True, check=False)
        error, code = again.stderr, again.returncode
        said = {stage: int(n.replace(",", "")) for stage, n in _DONE_BEFORE.findall(error)}
        # A stage with all its records may have been closed; then it is not opened again.
        problems += [
            f"{stage}: {n} units had a record, {said.get(stage)} were taken"
            for stage, n in kept.items()
            if said.get(stage, n) != n
        ]
    else:
        code = run.returncode
    if code:
        problems.append(f"exit status {code}: {error[-2000:]}")
    if alive := _processes():
        problems.append(f"processes {[each.pid for each in alive]} are left over")
    return Outcome(moment, killed, sum(kept.values()), problems + left_over(output))


def _processes() -> list[psutil.Process]:
    """The runs that this process started, and their workers, by a mark in their environment."""
    found = []
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if each.pid != os.getpid() and each.environ().get(_MARK) and each.status() != psutil.STATUS_ZOMBIE:
                found.append(each)
    return found


def _workers(pid: int) -> list[psutil.Process]:
    """The worker processes of a run."""
    found = []
    for each in _processes():
        with contextlib.suppress(psutil.Error):
            if each.ppid() == pid and "multiprocessing.spawn" in " ".join(each.cmdline()):
                found.append(each)
    return found


def _wait_until_gone() -> None:
    deadline = time.monotonic() + 20
    while _processes() and time.monotonic() < deadline:
        time.sleep(0.05)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--moments", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="the folder for the outputs (default: a temporary one)")
    chosen, rest = parser.parse_known_args(arguments)
    os.environ[_MARK] = "yes"
    folder = chosen.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    reference = folder / "reference"
    subprocess.run(command(rest, reference, "--overwrite"), check=True, stdout=subprocess.DEVNULL)
    units, expected = finished_units(reference), harness.published(reference, _DATASETS)
    print(f"undisturbed: {units} units, {len(expected)} files", flush=True)
    choice = random.Random(chosen.seed)
    wrong = 0
    for number in range(chosen.moments):
        moment, output = Moment(choice.randrange(units), choice.random()), folder / "killed"
        outcome = kill_once(rest, output, moment, number % 2 == 0, choice)
        problems = outcome.problems
        if not problems and harness.published(output, _DATASETS) != expected:
            problems = ["the shards differ"]
        wrong += bool(problems)
        print(
            f"{moment}: killed {outcome.killed}; {outcome.units_kept} units kept; {problems or 'the same'}", flush=True
        )
        for suffix in _DATASETS:
            shutil.rmtree(f"{output}{suffix}", ignore_errors=True)
    print(f"{chosen.moments - wrong} of {chosen.moments} ended with the same shards and nothing left over")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
