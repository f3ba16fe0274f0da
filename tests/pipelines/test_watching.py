"""What a run says about itself: its lease, its figures and lines, the status command, throughput."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from toy import word_count

from pipelines import extract_documents, status
from pipelines.cli import main
from pipelines.engine.dataset_build import throughput_of
from pipelines.engine.driver import run
from pipelines.engine.executors import InlineExecutor
from pipelines.engine.lease import RUN_FILE, Lease, is_alive, read_run, refuse_second
from pipelines.engine.phase import Phase
from pipelines.engine.progress import (
    AtWork,
    Progress,
    RunFigures,
    StageFigures,
    bar_columns,
    bars,
    ended_line,
    percent,
    running_line,
)
from pipelines.engine.stage import Completion, Tally, too_many_rejects
from schemas.errors import UserError
from schemas.manifest import Ledger, read_manifest
from schemas.storage.folder import Folder

STAGE = StageFigures("out/x", "parse", "sentences", units=10, before=2, tally_before=Tally(read=500), began=1000.0)
AT_WORK = StageFigures(
    "out/x",
    "parse",
    "sentences",
    units=10,
    before=2,
    tally_before=Tally(read=500, rejected=1),
    began=1000.0,
    done=4,
    tally=Tally(read=1900, written=1897, rejected=3, rows=1900, tokens=40_000),
    doing=Tally(read=100),
    before_size=2.0,
    finished_size=4.0,
    fractions=[(1.0, 0.1), (2.0, 0.45)],
    workers=2,
    worked=20.0,
)
DONE = StageFigures("out/x", "keep", "", 3, 0, Tally(), 1000.0, done=3, tally=Tally(rows=3000), ended=1002.0)


def mark(**changes: object) -> dict[str, object]:
    """The lease that a run of this process would write."""
    lease = Lease([], command="go", figures=dict)
    return {**lease._mark, "state": "running", "beat": time.time(), **changes}


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    ("changes", "alive"),
    [
        ({}, True),
        ({"state": "stopped"}, False),
        ({"state": "failed: no memory"}, False),
        ({"pid": dead_pid()}, False),
        ({"process_start": 1}, False),  # another process has this id now
        ({"ago": 1e6}, True),  # on this machine, the process itself is looked at
        ({"host": "elsewhere"}, True),
        ({"host": "elsewhere", "ago": 20}, True),
        ({"host": "elsewhere", "ago": 3600}, False),
        ({"host": "elsewhere", "ago": 100, "every": 30.0}, True),
    ],
)
def test_a_run_is_alive_or_not(tmp_path, changes, alive):
    ago = changes.get("ago", 0)
    found = mark(**{each: value for each, value in changes.items() if each != "ago"}, beat=time.time() - ago)
    assert is_alive(found) == alive
    folder = Folder(str(tmp_path))
    folder.write(RUN_FILE, json.dumps(found).encode())
    if alive:
        with pytest.raises(UserError, match=r"is being written by process \d+ of .* since 20.*wait for it, or end it"):
            refuse_second(folder)
    else:
        refuse_second(folder)


def test_a_lease_marks_its_datasets_and_says_how_it_ended(tmp_path):
    first, second = Folder(str(tmp_path / "a")), Folder(str(tmp_path / "b"))

    def begin_and_stop() -> None:
        with Lease([first, second], command="go on", figures=lambda: {"n": 1}):
            assert all(is_alive(read_run(each)) for each in (first, second))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin_and_stop()
    found = read_run(second)
    assert read_run(first)["state"] == "stopped"
    assert (found["state"], found["n"], found["command"]) == ("stopped", 1, "go on")
    with pytest.raises(ValueError, match="no"), Lease([second], command="", figures=dict):
        raise ValueError("no")
    assert read_run(second)["state"] == "failed: no"


def test_a_lease_notices_that_its_dataset_is_taken_or_gone(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.engine.lease._EVERY_LOCAL", 0.05)
    taken, gone = Folder(str(tmp_path / "taken")), Folder(str(tmp_path / "gone"))
    for folder, what in ((taken, "another run took it: it is being written"), (gone, "was deleted during the run")):
        with Lease([folder], command="", figures=dict) as lease:
            if folder is taken:
                folder.write(RUN_FILE, json.dumps(mark(run="other")).encode())
            else:
                (tmp_path / "gone" / RUN_FILE).unlink()
            deadline = time.monotonic() + 10
            while lease.lost is None and time.monotonic() < deadline:
                time.sleep(0.02)
        assert what in str(lease.lost)
    assert read_run(taken)["run"] == "other"


def test_a_second_run_is_refused_while_the_first_is_at_work(tmp_path, capsys):
    arguments = ["--input", str(tmp_path / "books"), "--output", str(tmp_path / "docs"), "--shard-bytes", "1000"]
    command = [sys.executable, "-m", "pipelines.extract_documents", *arguments]
    (tmp_path / "books").mkdir()
    for number in range(40):
        (tmp_path / "books" / f"{number}.txt").write_text(f"Book {number}.\n\n" + "A word of it. " * 20_000)
    first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "docs" / RUN_FILE).exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        first.send_signal(signal.SIGSTOP)  # or it might end before the second begins
        for flag in ("--resume", "--overwrite"):
            assert main(extract_documents.COMMAND, [*arguments, flag]) == 2
            assert re.search(
                rf"docs: is being written by process {first.pid} of .* on {socket.gethostname()}",
                capsys.readouterr().err,
            )
        assert status.main([str(tmp_path / "docs")]) == 0
        assert f"is being written by process {first.pid}" in capsys.readouterr().out
    finally:
        first.send_signal(signal.SIGCONT)
        first.terminate()
        error = first.communicate()[1]
    assert first.returncode == 143
    assert re.search(r"to go on from here: .*pipelines.extract_documents --input .* --resume\nstopped\n", error)


def test_status_of_what_ended_early_and_of_what_is_finished(tmp_path, capsys):
    output = tmp_path / "words"
    with pytest.raises(Exception, match="it always fails"):
        _run(word_count(output, ("a b", "c"), fail_always=True))
    assert status.main([str(output)]) == 1
    shown = capsys.readouterr().out
    assert "no run is at work; the last, of process" in shown
    assert "failed: count: unit" in shown
    assert re.search(r"\n  count +0.0 % +0/2 units", shown)
    assert shown.endswith("to go on: python -m this --resume\n")
    _run(word_count(output, ("a b", "c")))
    assert status.main([str(output)]) == 0
    assert "words: finished at 20" in capsys.readouterr().out
    assert status.main([str(tmp_path / "nothing")]) == 2
    assert status.main([str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.removeprefix("")) | {"finished": ""} == {
        "state": "finished",
        "finished": "",
        "rows": 3,
    }


def _run(build):
    build.begin(resume=True)
    run([build], InlineExecutor(), progress=Progress(io.StringIO()), command="python -m this --resume")


def test_figures_of_a_stage():
    assert AT_WORK.rates(1010.0) == (200.0, 4000.0)
    assert AT_WORK.share == pytest.approx(0.7)
    assert AT_WORK.total == Tally(2500, 1897, 0, 4, 1900, 40_000)
    assert DONE.rates(1010.0) == (1500.0, 0.0)
    figures = RunFigures([AT_WORK, DONE], [AtWork(1, "parse", 2, Tally(), 3, 0.4)], 5, 7, Phase("planning", 9.0))
    assert RunFigures.from_json(json.loads(json.dumps(figures.to_json()))) == figures


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({}, None),  # nothing is known of workers on other machines before a unit is done
        ({"done": 4}, 10.0),  # four units in ten seconds, four are left
        ({"workers": 2, "worked": 30.0}, None),
        ({"workers": 2, "worked": 1.9, "fractions": [(1.0, 0.5)]}, None),
        ({"workers": 2, "worked": 9.0, "fractions": [(1.0, 0.01)]}, None),
        # A worker does a unit in 10 s. Two are at work, 5 s and 9 s are left of their units, and six wait.
        ({"workers": 2, "worked": 6.0, "fractions": [(1.0, 0.5), (1.0, 0.1)]}, (5 + 9 + 60) / 2 + 2.5),
        # None waits: the last one ends when it ends.
        ({"before": 8, "before_size": 8.0, "workers": 2, "worked": 6.0, "fractions": [(1.0, 0.5), (1.0, 0.1)]}, 9.0),
        # A finished unit whose record was not read yet, and the unit that its worker does now.
        (
            {
                "before": 7,
                "before_size": 7.0,
                "workers": 2,
                "worked": 15.0,
                "fractions": [(1.0, 1.0), (1.0, 0.5), (1.0, 0.0)],
            },
            10.0,
        ),
        # The last unit has a tenth of the size of the others.
        (
            {"before": 0, "before_size": 0.0, "units": 3, "workers": 1, "worked": 18.0, "finished_size": 1.4, "done": 1}
            | {"fractions": [(1.4, 0.5)]},
            (0.7 + 0.2) * 18 / 2.1,
        ),
        ({"workers": 1, "worked": 18.0, "before": 9, "before_size": 9.0, "done": 1, "finished_size": 1.0}, 0.0),
    ],
)
def test_time_left(changes, left):
    stage = replace(STAGE, **{"before_size": 2.0} | changes)
    assert stage.seconds_left(1010.0) == (left if left is None else pytest.approx(left))


@pytest.mark.parametrize(
    ("units", "fraction", "shown"),
    [(3, 0.0, "0.0 %"), (3, 0.999, "33.3 %"), (500, 0.123, "0.02 %"), (20_000, 0.5, "0.0025 %"), (1, 0.9999, "99.9 %")],
)
def test_shares_are_shown_in_steps_of_a_hundredth_of_a_unit(units, fraction, shown):
    assert percent(replace(STAGE, before=0, units=units, fractions=[(1.0, fraction)])) == shown


def test_what_is_done_meanwhile():
    stage = replace(STAGE, busy_with="loading the parser", busy_since=1005.0)
    assert RunFigures([STAGE]).now_doing(1010.0) == ""
    assert RunFigures([stage]).now_doing(1010.0) == "loading the parser, 5.0 s"
    assert RunFigures([stage], phase=Phase("publishing x", 1008.0)).now_doing(1010.0) == "publishing x, 2.0 s"
    assert RunFigures([replace(stage, ended=1009.0)]).now_doing(1010.0) == ""


def drawn(figures: RunFigures, width: int, height: int = 24) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=True, color_system=None, legacy_windows=False)
    console.print(bars(figures, now=1010.0, width=width, height=height))
    return stream.getvalue().splitlines()


def test_bars_fit_any_terminal():
    old = StageFigures("out/x", "find_duplicate_ids", "", 12, 0, Tally(), 900.0, done=12, ended=999.0)
    figures = RunFigures([old, AT_WORK], memory=2_600_000_000, phase=Phase("planning", 1000.0))
    assert [re.sub(r"  +", "  ", line) for line in drawn(figures, 120)] == [
        "find_duplicate_ids ━━━━━━━━━━━━━━━━━━━━━━━  100 % 12/12 units  0 rows/s  1 min 39 s",
        "parse  ━━━━━━━━━━━━━━━━  70.0 %  6/10 units 200 sentences/s 4,000 tokens/s 4 rejects 2.6 GB 6.5 s left",
        "planning, 10 s",
    ]
    assert max(map(len, drawn(figures, 120))) <= 120
    assert drawn(figures, 80) == [
        "find_duplicate_ids ━━━━━━━━━━━━━━━  100 % 12/12 units        0 rows/s 1 min 39 s",
        "parse              ━━━━━━━━━━╸     70.0 %  6/10 units 200 sentences/s 6.5 s left",
        "planning, 10 s",
    ]
    assert drawn(figures, 50) == [
        "find_duplicate_ids ━━━━━━━━━━━━━  100 % 1 min 39 s",
        "parse              ━━━━━━━━━     70.0 % 6.5 s left",
        "planning, 10 s",
    ]
    assert drawn(figures, 40) == [
        "find_duplicate_ids  100 % 1 min 39 s",
        "parse              70.0 % 6.5 s left",
        "planning, 10 s",
    ]
    assert drawn(figures, 30) == [
        "find_duplic…  100 % 1 min 39 s",
        "parse        70.0 %      6.5 s",
        "planning, 10 s",
    ]
    assert [line.split()[0] for line in drawn(figures, 50, height=3)] == ["parse", "planning,"]


def test_lines_of_a_stage():
    assert (
        running_line(AT_WORK, 2_600_000_000, now=1010.0)
        == "parse: 70.0 %, 6/10 units, 200 sentences/s, 4,000 tokens/s, 4 rejects, 2.6 GB, 6.5 s left"
    )
    assert ended_line(DONE) == "keep: 3 units, 2.0 s"
    assert list(bar_columns(AT_WORK, 2_600_000_000, now=1010.0).values()) == [
        "70.0 %",
        "6/10 units",
        "200 sentences/s",
        "4,000 tokens/s",
        "4 rejects",
        "2.6 GB",
        "6.5 s left",
    ]
    assert list(bar_columns(DONE, 0, now=2000.0).values()) == [
        "100 %",
        "3/3 units",
        "1,500 rows/s",
        "",
        "",
        "",
        "2.0 s",
    ]


def _completion(unit: int, start: float, finished: float, written: int = 1) -> Completion:
    return Completion(unit, [], Ledger("x", written, written), {"tokens": 10 * written}, finished - start, finished)


@pytest.mark.parametrize(
    ("completions", "points"),
    [
        ([], []),
        ([_completion(0, 100, 102)], [[5, 0, 0, 0], [7, 1, 1, 10]]),
        # Two at the same time, then nothing for a day, then one more: the day does not count.
        (
            [_completion(0, 100, 104), _completion(1, 101, 103), _completion(2, 90_000, 90_001, 5)],
            [[5, 0, 0, 0], [8, 1, 1, 10], [9, 2, 2, 20], [10, 3, 7, 70]],
        ),
    ],
)
def test_throughput_over_time(completions, points):
    assert throughput_of(completions, began=5.0) == points


def test_throughput_keeps_its_last_point_among_few():
    found = throughput_of([_completion(n, n, n + 1) for n in range(1001)], began=0.0)
    assert (found[0], found[-1], len(found)) == ([0, 0, 0, 0], [1001, 1001, 1001, 10_010], 113)


@pytest.mark.parametrize(
    ("read", "rejected", "expected", "stops"),
    [
        (100, 20, 100, False),  # a few never stop a run
        (100, 21, 100, True),
        (3000, 30, 3000, False),  # exactly the rate
        (3000, 31, 3000, True),
        (100, 100, 10_000_000, False),  # a bad beginning: 1 % of a twentieth of what is expected
        (5001, 5001, 10_000_000, True),
    ],
)
def test_too_many_rejects(read, rejected, expected, stops):
    assert too_many_rejects(Tally(read=read, rejected=rejected), rate=0.01, expected=expected) == stops


def test_the_manifest_tells_how_the_run_went(tmp_path):
    _run(word_count(tmp_path / "words", ("a b", "c"), fail_once=str(tmp_path / "mark")))
    run_part = read_manifest(Folder(str(tmp_path / "words"))).run
    assert run_part["peak_memory"] > 10_000_000
    assert [point[1:] for point in run_part["throughput"]["count"]] == [(0, 0, 0), (1, 2, 2), (2, 3, 3)] or [
        point[1:] for point in run_part["throughput"]["count"]
    ] == [(0, 0, 0), (1, 1, 1), (2, 3, 3)]
    assert list(run_part["wall_seconds"]) == ["count", "add"]
    assert [(each.stage, each.attempt, each.reason) for each in run_part["faults"]] == [("count", 1, "worker_failed")]
    assert Path(tmp_path / "words/_work").exists() is False
    assert os.listdir(tmp_path / "words").count("report.html") <= 1
