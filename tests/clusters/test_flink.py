"""The main job on Flink: a session cluster on this machine, Beam's job server, and a worker pool."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from flink import (
    Cluster,
    flink_libraries,
    flink_version,
    job_server,
    job_server_jar,
    session_cluster,
    wait_for,
    workers_of,
)
from jobs import DATASETS, files, mine, shards
from prism import worker_pools
from runs import TEXTS, all_shards, assert_figures_of_manifest, assert_main_job, run_on, start_parsing, toy_reference
from toy import word_count

from pipelines.engine import preflight
from schemas.manifest import is_dataset
from schemas.storage.folder import Folder

pytestmark = pytest.mark.heavy

SLOTS = 2


@pytest.fixture(scope="session")
def jar() -> Path:
    return job_server_jar()


@pytest.fixture(scope="session", autouse=True)  # before other fixtures, which would be made only to be skipped
def libraries(jar: Path) -> list[Path]:
    return flink_libraries(flink_version(jar))


@pytest.fixture(scope="module")
def cluster(libraries: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with session_cluster(tmp_path_factory.mktemp("cluster"), libraries, slots=SLOTS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def endpoint(jar: Path, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with job_server(tmp_path_factory.mktemp("job-server"), jar, cluster) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with worker_pools(tmp_path_factory.mktemp("pool"), 1) as (pool,):
        yield pool


def to_flink(endpoint: str, pool: str | None) -> list[str]:
    """The options for a job server; the workers are those of a pool, or the submitting process."""
    where = ["--environment_type=EXTERNAL", f"--environment_config={pool}"] if pool else ["--environment_type=LOOPBACK"]
    return ["--runner=PortableRunner", f"--job_endpoint={endpoint}", *where, f"--parallelism={SLOTS}"]


@pytest.mark.parametrize("workers", ["loopback", "pool"])
def test_the_main_job_gives_the_same_bytes(
    workers: str, endpoint: str, pool: str, books: Path, reference: dict[str, bytes], tmp_path: Path
) -> None:
    done = mine(str(books), str(tmp_path / "mix"), *to_flink(endpoint, pool if workers == "pool" else None))
    assert_main_job(done, tmp_path / "mix", reference)


def test_the_metrics_that_beam_commits_are_those_of_the_manifest(endpoint: str, pool: str, tmp_path: Path) -> None:
    build = word_count(tmp_path / "words", TEXTS)
    submission = preflight.prepare("PortableRunner", to_flink(endpoint, pool)[1:], [str(build.output)])
    assert_figures_of_manifest(run_on(submission, build), build.output)


def test_a_job_server_that_beam_starts(jar: Path, cluster: Cluster, tmp_path: Path) -> None:
    build = word_count(tmp_path / "words", TEXTS)
    arguments = [f"--flink_job_server_jar={jar}", f"--flink_master={cluster.address}"]
    submission = preflight.prepare("FlinkRunner", arguments, [str(build.output)])
    assert {f"--parallelism={SLOTS}", "--environment_type=LOOPBACK"} <= set(submission.arguments)
    run_on(submission, build)
    assert shards(files(tmp_path / "words")) == toy_reference(tmp_path / "here")


def test_a_killed_worker_ends_the_job_and_resume_gives_the_same_bytes(
    endpoint: str, cluster: Cluster, books: Path, reference: dict[str, bytes], tmp_path: Path
) -> None:
    """By default Flink tries nothing again."""
    output = tmp_path / "mix"
    with worker_pools(tmp_path, 1) as (pool,):
        job = start_parsing(books, output, *to_flink(endpoint, pool))
        (worker,) = workers_of(pool)
        worker.kill()
        _, said = job.communicate(timeout=120)
        assert job.returncode == 1, said
        assert "error: a worker of the cluster was lost" in said
        assert "to go on from here: " in said
        assert not cluster.at_work()
        done = mine(str(books), str(output), *to_flink(endpoint, pool), "--resume")
    assert done.returncode == 0, done.stderr
    assert all_shards(output) == reference


def test_sigterm_ends_the_job_on_the_cluster_too(endpoint: str, cluster: Cluster, books: Path, tmp_path: Path) -> None:
    """Flink ignores Beam's cancel. The workers see that the run was stopped."""
    output = tmp_path / "mix"
    before = cluster.jobs()
    with worker_pools(tmp_path, 1) as (pool,):
        job = start_parsing(books, output, *to_flink(endpoint, pool))
        job.send_signal(signal.SIGTERM)
        _, said = job.communicate(timeout=60)
        assert job.returncode == 143, said
        assert said.endswith("\nstopped\n")
        assert "--resume" in said
        wait_for(lambda: not cluster.at_work(), seconds=60)
    (sent,) = cluster.jobs().keys() - before.keys()
    assert cluster.jobs()[sent] == "FAILED"
    assert "the run that submitted this job was stopped" in cluster.failures(sent)[0]
    assert [suffix for suffix in DATASETS if is_dataset(Folder(f"{output}{suffix}"))] == ["-documents"]


def test_a_cluster_that_tries_again_goes_on_without_a_worker_that_was_killed(
    jar: Path, libraries: list[Path], books: Path, reference: dict[str, bytes], tmp_path: Path
) -> None:
    """A restart begins the whole job again. What was done stays done, including finished datasets."""
    output = tmp_path / "mix"
    restarts = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 3,
        "restart-strategy.fixed-delay.delay": "1 s",
    }
    with (
        session_cluster(tmp_path, libraries, slots=SLOTS, options=restarts) as cluster,
        job_server(tmp_path, jar, cluster) as endpoint,
        worker_pools(tmp_path, 1) as (pool,),
    ):
        job = start_parsing(books, output, *to_flink(endpoint, pool))
        (worker,) = workers_of(pool)
        worker.kill()
        _, said = job.communicate(timeout=240)
        assert job.returncode == 0, said
        ((sent, state),) = cluster.jobs().items()
        assert state == "FINISHED"
        assert cluster.failures(sent)
    assert all_shards(output) == reference
