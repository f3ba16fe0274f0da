"""Kill a run repeatedly, and check that --resume gives the result of an uninterrupted run.

    python -m benchmarks.kills --moments 20 --input enwiki-fragment.xml.bz2

First both pipelines run undisturbed. Then, for each of --moments seeded moments (a number of finished units, and a part
of a second), one of them is started, and one of its workers or its driver is killed by SIGKILL, or it is stopped by
SIGINT or SIGTERM; a run that has ended is followed by `--resume`. Each must end with the same shards, side tables
included. No unit with a completion record may be done again, and nothing may be left over.

    python -m benchmarks.kills --signals 300

sends SIGINT, SIGTERM, both, or one of them twice, to a process or its group, at seeded moments of small runs of both
pipelines. Each must end within 5 s, with 130 or 143 as its status, no process left, and a lease that says that it was
stopped. The next run goes on with `--resume`; when one is done, its shards must be those of an undisturbed run.
"""

from __future__ import annotations

import argparse
import bz2
import contextlib
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks import harness
from pipelines.engine.lease import is_alive, read_run
from schemas.errors import UserError
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from transforms.sources.sample import sample_inputs

_MARK = f"PHRASEMILL_KILLS_{os.getpid()}"
_PIPELINES = {
    "mine_contexts": ("", "-documents", "-sentences", "-phrases"),
    "mine_mentions": ("", "-documents", "-mentions", "-aliases"),
}
"""The pipelines, and the ends of the names of their datasets."""
_KILLS = {"the driver": signal.SIGKILL, "a worker": None, "the run by SIGINT": signal.SIGINT}
_KILLS["the run by SIGTERM"] = signal.SIGTERM
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


def kept_units(folders: Sequence[Path]) -> dict[str, int]:
    """The number of units with a completion record, by stage, in unfinished datasets."""
    counts: dict[str, set[str]] = {}
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):  # removed while it is listed, when the dataset is finished
            for record in folder.glob("_work/*/done/*.json"):
                counts.setdefault(f"{folder.name} {record.parent.parent.name}", set()).add(record.name.split(".")[0])
    return {stage: len(units) for stage, units in counts.items()}


def finished_units(folders: Sequence[Path]) -> int:
    """The number of units finished so far, in all datasets."""
    done = sum(kept_units(folders).values())
    for folder in folders:
        with contextlib.suppress(UserError):
            done += sum(stage.units for stage in read_manifest(Folder(str(folder))).stages)
    return done


def left_over(folders: Sequence[Path]) -> list[str]:
    """Files that should not exist after a finished run."""
    return [
        f"{path} is left over"
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.name == "_work" or path.name.endswith(".part")
    ]


def kill_once(
    line: Sequence[str], folders: Sequence[Path], moment: Moment, kill: str, choice: random.Random
) -> Outcome:
    """Start a run, kill it or a worker at a moment, and let it finish."""
    run = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while run.poll() is None and finished_units(folders) < moment.units:
        time.sleep(0.02)
    time.sleep(moment.seconds)
    problems: list[str] = []
    kept: dict[str, int] = {}
    sent = _KILLS[kill]
    if sent is None:
        while not (workers := _workers(run.pid)) and run.poll() is None:
            time.sleep(0.02)
        if workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                choice.choice(workers).kill()
        elif run.poll() is not None:
            kill = "nothing: the run had ended"
    elif run.poll() is not None:
        kill = "nothing: the run had ended"
    else:
        run.send_signal(sent)
        run.wait()
        _wait_until_gone()
        kept = kept_units(folders)
    error, code = run.communicate()[1], run.returncode
    if sent and code in (-sent, 128 + sent):
        again = subprocess.run([*line, "--resume"], capture_output=True, text=True, check=False)
        error, code = again.stderr, again.returncode
        said = {stage: int(n.replace(",", "")) for stage, n in _DONE_BEFORE.findall(error)}
        # A stage with all its records may have been closed; then it is not opened again.
        problems += [
            f"{stage}: {n} units had a record, {said[stage.split()[1]]} were taken"
            for stage, n in kept.items()
            if said.get(stage.split()[1], n) != n
        ]
    if code:
        problems.append(f"exit status {code}: {error[-2000:]}")
    if alive := _processes():
        problems.append(f"processes {[each.pid for each in alive]} are left over")
    return Outcome(moment, kill, sum(kept.values()), problems + left_over(folders))


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


# ---- Signals


class Run(NamedTuple):
    """A command that is stopped: its module and arguments, the datasets that it writes."""

    module: str
    arguments: tuple[str, ...]
    datasets: tuple[str, ...] = ()
    """By the ends of their names; none if it writes nothing."""

    def start(self, output: Path, *flags: str) -> subprocess.Popen[str]:
        # A session of its own, by which its processes are found. A terminal would send SIGINT to its group.
        line = [sys.executable, "-m", self.module, *self.arguments]
        if self.datasets:
            line += ["--output", str(output), *flags]
        return subprocess.Popen(
            line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def folders(self, output: Path) -> list[Folder]:
        return [Folder(f"{output}{suffix}") for suffix in self.datasets]


class Stopped(NamedTuple):
    """How a run ended after signals: its exit status as a shell shows it, seconds until it and all its processes had.

    `hit`: whether it was at work when the first came.
    """

    hit: bool

    status: int
    ended: float
    gone: float
    states: list[str]
    """Of its leases."""
    problems: list[str]


def small_dump(path: Path, most: int = 60_000) -> Path:
    """Small articles of the sample, so few that they are done in one process."""
    with bz2.open(sample_inputs()[0], "rt", encoding="utf-8") as file:
        head, *pages = re.split(r"(?=<page>)", file.read())
    for page in pages:
        if "<redirect" not in page and "<ns>0<" in page and len(page) < 20_000 and len(head) + len(page) < most:
            head += page.removesuffix("</mediawiki>")
    path.write_text(head + "</mediawiki>", encoding="utf-8")
    return path


def runs_to_stop(folder: Path) -> dict[str, Run]:
    """Both pipelines, in one process and in several, and what else a user may stop."""
    dump = ("--input", str(small_dump(folder / "small.xml")), "--shard-bytes", "4000")
    pool = (*dump, "--workers", "2")
    contexts, mentions = _PIPELINES.values()
    return {
        "contexts": Run("pipelines.mine_contexts", dump, contexts),
        "contexts, 2 workers": Run("pipelines.mine_contexts", pool, contexts),
        "mentions": Run("pipelines.mine_mentions", dump, mentions),
        "mentions, 2 workers": Run("pipelines.mine_mentions", pool, mentions),
        "slice": Run("pipelines.extract_documents", (*pool, "--units", "1/1"), ("",)),
        "plan": Run("pipelines.mine_contexts", (*pool, "--plan")),
        "status": Run("pipelines.status", (str(folder / "contexts undisturbed"),)),
        "check": Run("schemas.check", (str(folder / "contexts undisturbed"),)),
    }


def stop_once(run: subprocess.Popen[str], seconds: float, choice: random.Random) -> tuple[str, Stopped]:
    """Send signals to a run after some seconds; returns which, and how it ended."""
    numbers = choice.choice([[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]])
    if choice.random() < 0.25:
        numbers = numbers[:1] * 2
    pause, group = choice.choice([0.0, choice.random() / 2]), choice.random() < 0.5
    time.sleep(seconds)
    began, hit = time.monotonic(), run.poll() is None
    for number in numbers:
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(run.pid, number)
        time.sleep(pause if len(numbers) > 1 else 0)
    problems = []
    try:
        error = run.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        problems.append("hangs")
        os.killpg(run.pid, signal.SIGKILL)
        error = run.communicate()[1]
    ended = time.monotonic() - began
    while (left := _session(run.pid)) and time.monotonic() - began < 60:
        time.sleep(0.02)
    gone = time.monotonic() - began
    if left:
        problems.append(f"processes {left} are left over")
    # Python itself, before any code of ours: SIGINT ends it with a traceback, in its first 0.1 s with status 1.
    early = run.returncode == -signal.SIGINT or "init_import_site" in error
    hit = hit and "init_import_site" not in error
    status = run.returncode if run.returncode >= 0 else 128 - run.returncode
    if hit and status not in {0, *(128 + number for number in numbers)}:
        problems.append(f"exit status {status}: {error[-2000:]}")
    if max(ended, gone) > 5:
        problems.append(f"took {ended:.1f} s, its processes {gone:.1f} s")
    if "Traceback" in error and not early:
        problems.append(error[-2000:])
    what = "+".join(number.name.removeprefix("SIG") for number in numbers) + (" to its group" if group else "")
    return what, Stopped(hit, status, ended, gone, [], problems)


def _session(leader: int) -> list[int]:
    """The processes of a session that run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(session) == leader and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


def stop_many(number: int, seed: int, folder: Path, names: Sequence[str] = ()) -> int:
    """Stop runs at seeded moments. Returns how many went wrong."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and what it starts
    runs = {name: run for name, run in runs_to_stop(folder).items() if not names or name in names}
    expected, lasts = dict[str, dict[str, str]](), dict[str, float]()
    for name, run in runs.items():
        began = time.monotonic()
        reference = run.start(folder / f"{name} undisturbed", "--overwrite" if "slice" not in name else "--resume")
        error = reference.communicate()[1]
        assert not reference.returncode, error
        lasts[name] = time.monotonic() - began
        if is_whole(run):
            expected[name] = harness.published(folder / f"{name} undisturbed", run.datasets)
        print(f"{name}: {lasts[name]:.1f} s undisturbed", flush=True)
    found: list[Stopped] = []
    begun = set[str]()  # the runs that a signal has stopped, to go on with
    for turn in itertools.count():
        if sum(each.hit for each in found) == number:
            break
        name, choice = list(runs)[turn % len(runs)], random.Random(f"{seed} {turn}")
        run, output, seconds = runs[name], folder / f"{name} stopped", choice.random() * lasts[name]
        flag = "--resume" if name in begun and choice.random() < 0.8 else "--overwrite"
        started = run.start(output, *([flag] if is_whole(run) else []))
        what, stopped = stop_once(started, seconds, choice)
        problems = list(stopped.problems)
        for each in run.folders(output):
            if (lease := read_run(each)) is not None:
                stopped.states.append(lease["state"])
                if is_alive(lease):
                    problems.append(f"{each}: its lease is stuck")
        if not stopped.status and is_whole(run):
            problems += _differs(run, output, expected[name])
        if is_whole(run):
            (begun.add if stopped.status else begun.discard)(name)
        if not stopped.hit and flag == "--overwrite":  # it is faster than it was
            lasts[name] = min(seconds, lasts[name])
        found.append(stopped._replace(problems=problems))
        print(
            f"{turn} {name} {flag}: {what} after {seconds:.2f} s: status {stopped.status}, {stopped.ended:.2f} s, "
            f"all gone after {stopped.gone:.2f} s; {', '.join(sorted({*stopped.states}))}; {problems or 'well'}",
            flush=True,
        )
    wrong = sum(bool(each.problems) for each in found)
    for name, run in runs.items():
        if is_whole(run):
            last = run.start(folder / f"{name} stopped", "--resume")
            error = last.communicate()[1]
            problems = [error] if last.returncode else _differs(run, folder / f"{name} stopped", expected[name])
            wrong += bool(problems)
            print(f"{name}, at last: {problems or 'the same shards'}")
    hits = [each for each in found if each.hit]
    times = sorted(max(each.ended, each.gone) for each in hits)
    parts = (f"{share}% within {times[-(-share * len(times) // 100) - 1]:.2f} s" for share in (50, 90, 99, 100))
    print(", ".join(parts), *sorted(Counter(f"status {each.status}" for each in hits).items()))
    print(f"{number - wrong} of {number} ended in time, with their status and nothing left")
    return wrong


def is_whole(run: Run) -> bool:
    """Whether it makes datasets to the end."""
    return bool(run.datasets) and "--units" not in run.arguments


def _differs(run: Run, output: Path, expected: dict[str, str]) -> list[str]:
    same = harness.published(output, run.datasets) == expected
    return ([] if same else ["the shards differ"]) + left_over(_folders(output, run.datasets))


def _folders(output: Path, datasets: Sequence[str]) -> list[Path]:
    return [Path(f"{output}{suffix}") for suffix in datasets]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--moments", type=int, default=20, metavar="N")
    parser.add_argument("--signals", type=int, metavar="N", help="send signals instead, N times")
    parser.add_argument("--only", action="append", help="of the runs that get signals")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="the folder for the outputs (default: a temporary one)")
    chosen, rest = parser.parse_known_args(arguments)
    os.environ[_MARK] = "yes"
    folder = chosen.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    if chosen.signals:
        return 1 if stop_many(chosen.signals, chosen.seed, folder, chosen.only or ()) else 0
    lines: dict[str, list[str]] = {}
    units: dict[str, int] = {}
    expected: dict[str, dict[str, str]] = {}
    for name, datasets in _PIPELINES.items():
        lines[name] = [sys.executable, "-m", f"pipelines.{name}", *rest, "--output"]
        reference = folder / f"{name}-reference"
        subprocess.run([*lines[name], str(reference), "--overwrite"], check=True, stdout=subprocess.DEVNULL)
        units[name] = finished_units(_folders(reference, datasets))
        expected[name] = harness.published(reference, datasets)
        print(f"{name}, undisturbed: {units[name]} units, {len(expected[name])} files", flush=True)
    choice = random.Random(chosen.seed)
    wrong = 0
    turns = itertools.cycle(itertools.product(_PIPELINES.items(), _KILLS))
    for (name, datasets), kill in itertools.islice(turns, chosen.moments):
        moment, output = Moment(choice.randrange(units[name]), choice.random()), folder / "killed"
        folders = _folders(output, datasets)
        outcome = kill_once([*lines[name], str(output)], folders, moment, kill, choice)
        problems = outcome.problems
        if not problems and harness.published(output, datasets) != expected[name]:
            problems = ["the shards differ"]
        wrong += bool(problems)
        print(
            f"{name}, {moment}: killed {outcome.killed}; {outcome.units_kept} units kept; {problems or 'the same'}",
            flush=True,
        )
        for each in folders:
            shutil.rmtree(each, ignore_errors=True)
    print(f"{chosen.moments - wrong} of {chosen.moments} ended with the same shards and nothing left over")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
