"""Watched workers: one that dies, is stopped or hangs is noticed; its unit is tried again, then rejected or fails."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from toy import poisoned_words

from pipelines.engine.driver import run
from pipelines.engine.executors import PoolExecutor
from pipelines.engine.limits import LIMITS, Limits
from pipelines.engine.progress import Progress
from pipelines.engine.stage import StageError
from schemas.errors import UserError
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder

# Long enough for a busy machine, short enough for a test.
SHORT = Limits(silent=8.0, idle=4.0, stalled=9.0)


def run_words(
    output: Path, *texts: str, isolates: bool = True, workers: int = 2, limits: Limits = LIMITS, **options: object
) -> str:
    build = poisoned_words(output, texts, isolates=isolates)
    shown = io.StringIO()
    build.check(resume=True, overwrite=False, reuse=False)
    build.begin(resume=True)
    run([build], PoolExecutor(workers, limits=limits), progress=Progress(shown), **options)  # type: ignore[arg-type]
    return shown.getvalue()


def words(output: Path) -> list[str]:
    return [word for path in sorted(output.glob("data/*")) for word in pq.read_table(path)["title"].to_pylist()]


@pytest.mark.parametrize(
    ("poison", "reason", "what"),
    [
        ("DIE", "worker_died", r"the worker died of SIGKILL \(most likely out of memory\)"),
        ("RAISE", "worker_failed", "ZeroDivisionError: a bug"),
    ],
)
def test_a_record_that_brings_workers_down_is_found_and_rejected(tmp_path, poison, reason, what):
    shown = run_words(tmp_path / "words", "a b", f"c {poison} d {poison} e", "f")
    assert words(tmp_path / "words") == ["a", "b", "c", "d", "e", "f"]
    manifest = read_manifest(Folder(str(tmp_path / "words")))
    assert manifest.stage("words").ledger.rejected == {reason: 2}
    rejects = pq.read_table(tmp_path / "words/rejects/part-00000.pq").to_pylist()
    assert [(each["reason"], each["position"]) for each in rejects] == [(reason, "word 1"), (reason, "word 3")]
    # Three attempts at the whole unit, and one for each of the two bad records.
    assert [(each.unit, each.attempt, each.reason) for each in manifest.run["faults"]] == [
        (1, attempt, reason) for attempt in (1, 2, 3, 4, 5)
    ]
    assert f"words: unit 1, attempt 1: {what.replace(chr(92), '')}" in shown


def test_hung_workers_are_ended_and_their_units_done_by_others(tmp_path):
    """Once: the next attempt finds the file and continues. All at the same time: each is waited for."""
    hung = {
        "STOP": "gave no sign of life for 8 s",
        "WAIT": "did nothing for 4 s",
        "SPIN": "made no progress for 9 s",
    }
    texts = (f"{poison.lower()} {poison}:{tmp_path / poison} b" for poison in hung)
    shown = run_words(tmp_path / "words", *texts, "a b", workers=3, limits=SHORT)
    assert words(tmp_path / "words") == ["stop", "b", "wait", "b", "spin", "b", "a", "b"]
    for unit, why in enumerate(hung.values()):
        assert f"words: unit {unit}, attempt 1: the worker {why}" in shown
    assert read_manifest(Folder(str(tmp_path / "words"))).stage("words").ledger.rejected == {}


def test_how_a_worker_died_is_said(tmp_path):
    died = {"CRASH": "of SIGSEGV", "EXIT": "with exit status 3"}
    shown = run_words(tmp_path / "words", *(f"{poison}:{tmp_path / poison} a" for poison in died))
    assert words(tmp_path / "words") == ["a", "a"]
    for unit, how in enumerate(died.values()):
        assert f"words: unit {unit}, attempt 1: the worker died {how}" in shown
    faults = read_manifest(Folder(str(tmp_path / "words"))).run["faults"]
    assert sorted((each.unit, each.attempt, each.reason) for each in faults) == [
        (0, 1, "worker_died"),
        (1, 1, "worker_died"),
    ]


@pytest.mark.parametrize(
    ("poison", "error", "message"),
    [
        ("DIE", UserError, r"unit 1 \(.*\) failed 3 times, last: the worker died of SIGKILL .*fewer --workers"),
        ("RAISE", StageError, r"unit 1 \(.*\) failed 3 times, last: ZeroDivisionError: a bug"),
    ],
)
def test_a_unit_that_cannot_be_taken_apart_ends_the_run(tmp_path, poison, error, message):
    with pytest.raises(error, match=message):
        run_words(tmp_path / "words", "a b", f"c {poison}", "d", isolates=False)
    assert not (tmp_path / "words/manifest.json").exists()
    assert len(list((tmp_path / "words").glob("_work/words/faults/000001.*"))) == 3


def test_a_unit_full_of_poison_ends_the_run(tmp_path):
    with pytest.raises(StageError, match=r"unit 0 .* failed 24 times, last: ZeroDivisionError"):
        run_words(tmp_path / "words", "RAISE " * 21)


def test_an_error_that_a_user_can_mend_is_not_tried_again(tmp_path):
    with pytest.raises(UserError, match="a model is missing"):
        run_words(tmp_path / "words", "a USER b")
    assert not list((tmp_path / "words").glob("_work/words/faults/*"))


def test_a_bad_neighbour_costs_a_unit_none_of_its_attempts(tmp_path):
    """Other units are tried once while one kills its worker."""
    run_words(tmp_path / "words", *(["a"] * 6), "DIE", *(["b"] * 6))
    faults = read_manifest(Folder(str(tmp_path / "words"))).run["faults"]
    assert {fault.unit for fault in faults} == {6}


@pytest.mark.parametrize(
    ("rate", "passes"),
    [(0.0, False), (0.009, False), (0.03, True)],
)
def test_too_many_rejects_end_the_run(tmp_path, rate, passes):
    texts = ["good " * 100 + "BAD BAD BAD"] * 8  # 24 rejects of 824 words
    if passes:
        run_words(tmp_path / "words", *texts, max_reject_rate=rate)
        assert len(words(tmp_path / "words")) == 800
    else:
        with pytest.raises(UserError, match=r"rejects among the first .* words, more than --max-reject-rate=0"):
            run_words(tmp_path / "words", *texts, max_reject_rate=rate)
        run_words(tmp_path / "words", *texts, max_reject_rate=0.5)  # continues
        assert len(words(tmp_path / "words")) == 800


def test_a_run_that_goes_wrong_ends_early(tmp_path):
    """While other units are done: those after the bad ones would take minutes."""
    texts = [*["BAD " * 30] * 20, *["WAIT"] * 80]
    with pytest.raises(UserError, match="more than --max-reject-rate"):
        run_words(tmp_path / "words", *texts, limits=SHORT, max_reject_rate=0.01)


def test_workers_end_when_the_run_is_killed(tmp_path):
    script = """if __name__ == "__main__":
        import sys, pathlib, test_workers
        test_workers.run_words(pathlib.Path(sys.argv[1]), "WAIT:/nonexistent/mark", "WAIT:/nonexistent/mark")
    """
    (tmp_path / "script.py").write_text(script)
    run_of = subprocess.Popen([sys.executable, tmp_path / "script.py", tmp_path / "words"], env=os.environ)
    try:
        deadline = time.monotonic() + 60
        while len(children := _children(run_of.pid)) < 3 and time.monotonic() < deadline:  # two workers, one tracker
            time.sleep(0.1)
        assert len(children) >= 2
    finally:
        run_of.send_signal(signal.SIGKILL)
        run_of.wait()
    deadline = time.monotonic() + 20
    while any(map(_runs, children)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(_runs, children))


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] + [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        if int(task.name) != pid
        for child in (task / "children").read_text().split()
    ]


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
