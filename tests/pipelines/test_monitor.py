"""The worker pool with threads of a runner, stages that a runner does twice, and the monitor."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from toy import poisoned_words, word_count

from pipelines.engine.driver import run, stage_runs
from pipelines.engine.executors import Executor, InlineExecutor, PoolExecutor, StageRun
from pipelines.engine.lease import RUN_FILE, Lease
from pipelines.engine.monitor import Monitor
from pipelines.engine.progress import Progress
from pipelines.engine.stage import StageError, close_stage, open_stage
from pipelines.engine.task_writer import do_unit
from pipelines.engine.worker_checks import check_worker, software
from pipelines.engine.worker_pool import WorkerPool, usable_cores
from schemas.errors import UserError
from schemas.manifest import read_manifest

TEXTS = ("the cat sat on the mat", "", "the dog", "the cat and the dog and the cat", "the only unicorn")


def test_threads_share_a_pool(tmp_path: Path) -> None:
    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    work, stage = build.work, build.stages[0]
    units = open_stage(work, stage)
    pool = WorkerPool(2)
    with ThreadPoolExecutor(5) as threads:
        done = list(threads.map(lambda unit: pool.submit(work, stage, unit).result(), units))
    assert [each.unit for each in done] == units
    assert [each.ledger.read for each in done if each.ledger] == [6, 0, 2, 8, 3]
    # A runner that gives out a unit twice gets the existing record.
    assert StageRun(work, stage, "", 1.0).finished(3) == done[3]
    pool.close()
    with pytest.raises(StageError, match="the run was stopped"):
        pool.submit(work, stage, 0).result()


def test_what_cannot_be_done_fails_its_unit_alone(tmp_path: Path) -> None:
    texts = ("one", "two RAISE", "three USER", "four")
    build = poisoned_words(tmp_path / "words", texts, isolates=False)
    build.begin(resume=False)
    units = open_stage(build.work, build.stages[0])
    pool = WorkerPool(1)
    doing = [pool.submit(build.work, build.stages[0], unit) for unit in units]
    with pytest.raises(StageError, match=r"unit 1 .* failed 3 times, last: ZeroDivisionError: a bug"):
        doing[1].result()
    with pytest.raises(UserError, match="a model is missing"):
        doing[2].result()
    assert (doing[0].result().unit, doing[3].result().unit) == (0, 3)
    pool.close()


def test_a_pool_that_is_closed_at_work_tells_who_waits(tmp_path: Path) -> None:
    build = poisoned_words(tmp_path / "words", ("WAIT", "WAIT", "WAIT"))
    build.begin(resume=False)
    pool = WorkerPool(1)
    doing = [pool.submit(build.work, build.stages[0], unit) for unit in open_stage(build.work, build.stages[0])[:2]]
    pool.close()
    for each in doing:
        with pytest.raises(StageError, match="the run was stopped"):
            each.result(timeout=10)


@pytest.mark.parametrize(
    ("state", "run_id", "error"),
    [
        ("running", "ours", ""),
        ("stopped", "ours", "the run that submitted this job was stopped"),
        ("failed: no space", "ours", "the run that submitted this job was stopped"),
        ("running", "another", "the run that submitted this job was replaced"),
        (None, "ours", ""),
    ],
)
def test_a_job_whose_run_is_over_ends(state: str | None, run_id: str, error: str, tmp_path: Path) -> None:
    """Some runners, such as Flink, ignore a cancel. So workers look at the lease of the run."""
    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    if state is not None:
        mark = Lease([], command="", figures=dict)._mark | {"beat": 0.0, "run": run_id, "state": state}
        build.output.write(RUN_FILE, json.dumps(mark).encode())
    stage = stage_runs([build], run="ours")[0]
    steps = [stage.plan, lambda: InlineExecutor().run(stage), lambda: stage.finished(0), stage.close]
    for step in steps:
        if error:
            with pytest.raises(UserError, match=error):
                step()
        else:
            step()


def test_a_job_that_a_runner_begins_again_does_nothing_twice(tmp_path: Path) -> None:
    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    for again in (False, True, True):
        check_worker(software(), [build])
        for stage in stage_runs([build], run=""):
            units = stage.plan()
            assert not (again and units)
            for unit in units:
                do_unit(stage.work, stage.stage, unit)
            stage.close()
    assert read_manifest(build.output).rows == len(set(" ".join(TEXTS).split()))
    assert not build.output.exists("_work")


def test_a_run_is_followed_by_what_it_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.engine.monitor._EVERY_LOCAL", 600.0)  # looks only when it is called
    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    work, (count, add) = build.work, build.stages
    open_stage(work, count)
    do_unit(work, count, 0)  # by an earlier run
    shown = io.StringIO()
    progress = Progress(shown)
    lease = Lease([build.output], command="", figures=dict)
    ended: list[UserError] = []
    with lease, Monitor(stage_runs([build], run=""), progress, lease, end=ended.append) as monitor:
        for unit in (1, 3):
            do_unit(work, count, unit)
        monitor.look()
        figures = progress.figures().stages[0]
        assert (figures.name, figures.units, figures.before, figures.done) == ("count", 5, 1, 2)
        assert (figures.tally_before.read, figures.tally.read) == (6, 8)
        for unit in (2, 4):
            do_unit(work, count, unit)
        close_stage(work, count)
        for unit in open_stage(work, add):
            do_unit(work, add, unit)
        close_stage(work, add)
        build.finish()
    assert not ended
    lines = shown.getvalue().splitlines()
    assert lines[0].startswith("count: 5 units (1 done before), ")
    assert lines[1].startswith("add: 3 units, ")
    add_figures = progress.figures().stages[1]
    assert (add_figures.done, add_figures.tally.written) == (3, len(set(" ".join(TEXTS).split())))


def test_the_monitor_sees_that_rejects_get_out_of_hand(tmp_path: Path) -> None:
    build = poisoned_words(tmp_path / "words", ("good BAD BAD BAD",) * 20)
    build.begin(resume=False)
    (stage,) = stage_runs([build], run="", max_reject_rate=0.01)
    monitor = Monitor([stage], Progress(io.StringIO()), Lease([], command="", figures=dict), end=lambda error: None)
    with monitor:
        for unit in stage.plan()[:10]:
            do_unit(stage.work, stage.stage, unit)
        with pytest.raises(UserError, match="words: 30 rejects among the first 40 words, more than --max-reject-rate"):
            monitor.look()


@pytest.mark.parametrize("executor", [InlineExecutor, lambda: PoolExecutor(2)])
def test_too_many_rejects_end_a_run(executor: type[Executor], tmp_path: Path) -> None:
    build = poisoned_words(tmp_path / "words", ("good BAD BAD BAD",) * 20)
    build.begin(resume=False)
    with pytest.raises(UserError, match=r"rejects among the first \d+ words, more than --max-reject-rate=0\.01"):
        run([build], executor(), progress=Progress(io.StringIO()), max_reject_rate=0.01)
    assert not build.output.exists("manifest.json")


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
