"""The processes of a cluster's worker, and how the submitting machine follows them, on toy stages without a runner."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from toy import poisoned_words, word_count

from pipelines.crew import Crew, OnCluster, Terms
from pipelines.engine.lease import RUN_FILE, Lease
from pipelines.engine.monitor import Monitor
from pipelines.engine.progress import Progress
from pipelines.engine.stage import StageError, close_stage, open_stage, run_unit
from pipelines.engine.worker_checks import check_worker, software
from pipelines.engine.worker_pool import LIMITS, usable_cores
from schemas.errors import UserError
from schemas.manifest import read_manifest

TEXTS = ("the cat sat on the mat", "", "the dog", "the cat and the dog and the cat", "the only unicorn")


def test_threads_share_a_crew(tmp_path: Path) -> None:
    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    work, stage = build.work, build.stages[0]
    units = open_stage(work, stage)
    crew = Crew(Terms(2, LIMITS))
    with ThreadPoolExecutor(5) as threads:
        done = list(threads.map(lambda unit: crew.submit(work, stage, unit).result(), units))
    assert [each.unit for each in done] == units
    assert [each.ledger.read for each in done if each.ledger] == [6, 0, 2, 8, 3]
    # A runner that hands out a unit again gets the record that there is.
    again = crew.submit(work, stage, 3).result()
    assert again == done[3]


def test_what_cannot_be_done_fails_its_unit_alone(tmp_path: Path) -> None:
    texts = ("one", "two RAISE", "three USER", "four")
    build = poisoned_words(tmp_path / "words", texts, isolates=False)
    build.begin(resume=False)
    units = open_stage(build.work, build.stages[0])
    crew = Crew(Terms(1, LIMITS))
    doing = [crew.submit(build.work, build.stages[0], unit) for unit in units]
    with pytest.raises(StageError, match=r"unit 1 .* failed 3 times, at last: ZeroDivisionError: a bug"):
        doing[1].result()
    with pytest.raises(UserError, match="a model is missing"):
        doing[2].result()
    assert (doing[0].result().unit, doing[3].result().unit) == (0, 3)


@pytest.mark.parametrize(
    ("state", "run", "error"),
    [
        ("running", "ours", ""),
        ("stopped", "ours", "the run that sent this job was stopped"),
        ("failed: no space", "ours", "the run that sent this job was stopped"),
        ("running", "another", "the run that sent this job was replaced"),
        (None, "ours", ""),
    ],
)
def test_a_job_whose_run_is_over_ends(state: str | None, run: str, error: str, tmp_path: Path) -> None:
    """Runners may not heed a cancel, as Flink does not: their workers look at the mark of the run."""
    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    if state is not None:
        build.output.write(RUN_FILE, json.dumps({"run": run, "state": state}).encode())
    cluster = OnCluster("ours", Terms(1, LIMITS), 0.01)
    work, stage = build.work, build.stages[0]
    steps = [
        lambda: cluster.open(work, stage),
        lambda: [cluster.submit(work, stage, unit).result() for unit in range(len(TEXTS))],
        lambda: cluster.close(work, stage),
    ]
    for step in steps if not error else [*steps, lambda: cluster.finish(build)]:
        if error:
            with pytest.raises(UserError, match=error):
                step()
        else:
            step()


def test_a_job_that_a_runner_begins_anew_does_nothing_twice(tmp_path: Path) -> None:
    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    cluster = OnCluster("", Terms(1, LIMITS), 0.01)
    for again in (False, True, True):
        check_worker(software(), [build])
        for stage in build.stages:
            units = cluster.open(build.work, stage)
            assert not (again and units)
            for unit in units:
                cluster.submit(build.work, stage, unit).result()
            cluster.close(build.work, stage)
        cluster.finish(build)
    assert read_manifest(build.output).rows == len(set(" ".join(TEXTS).split()))
    assert not build.output.exists("_work")


def test_a_run_elsewhere_is_followed_by_what_it_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.engine.monitor._EVERY_LOCAL", 600.0)  # looks when it is told to
    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    work, (count, add) = build.work, build.stages
    open_stage(work, count)
    run_unit(work, count, 0)  # by an earlier run
    shown = io.StringIO()
    progress = Progress(shown)
    hold = Lease([build.output], command="", figures=dict)
    ended: list[UserError] = []
    with hold, Monitor([build], progress, hold, max_reject_rate=0.01, end=ended.append) as follower:
        for unit in (1, 3):
            run_unit(work, count, unit)
        follower._look()
        figures = progress.figures().stages[0]
        assert (figures.name, figures.units, figures.before, figures.done) == ("count", 5, 1, 2)
        assert (figures.tally_before.read, figures.tally.read) == (6, 8)
        for unit in (2, 4):
            run_unit(work, count, unit)
        close_stage(work, count)
        for unit in open_stage(work, add):
            run_unit(work, add, unit)
        close_stage(work, add)
        build.finish()
        hold.release(build.output)
    assert not ended
    lines = shown.getvalue().splitlines()
    assert lines[0].startswith("count: 5 units (1 done before), ")
    assert lines[1].startswith("add: 3 units, ")
    add_figures = progress.figures().stages[1]
    assert (add_figures.done, add_figures.tally.written) == (3, len(set(" ".join(TEXTS).split())))


def test_rejects_that_get_out_of_hand_end_a_run_elsewhere(tmp_path: Path) -> None:
    build = poisoned_words(tmp_path / "words", ("good BAD BAD BAD",) * 20)
    build.begin(resume=False)
    work, stage = build.work, build.stages[0]
    for unit in open_stage(work, stage)[:10]:
        run_unit(work, stage, unit)
    assert len(work.finished(stage.name)) == 10
    hold = Lease([build.output], command="", figures=dict)
    follower = Monitor([build], Progress(io.StringIO()), hold, max_reject_rate=0.01, end=lambda error: None)
    follower._before = {stage.name: set()}
    with pytest.raises(UserError, match="words: 30 rejects among the first 40 words, more than --max-reject-rate"):
        follower._look()


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 64),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, 64),
        ({"sys/fs/cgroup/cpu.max": "400000 100000\n"}, 4),
        ({"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2),
        ({"sys/fs/cgroup/cpu.max": "10000 100000\n"}, 1),
        ({"sys/fs/cgroup/cpu.max": "9900000 100000\n"}, 64),
        (
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"},
            3,
        ),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 64),
    ],
)
def test_cores_of_a_container(
    files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(64)))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_cores(tmp_path) == cores
