"""The main job through Beam's Job API: a portable runner (Prism) and workers in processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from jobs import DATASETS, ROOT, files, mine, run, shards
from literal import run_here
from prism import prism, prism_program, worker_pools
from runs import TEXTS, all_shards, assert_figures_of_manifest, assert_main_job, run_on, start_parsing, toy_reference
from servers import free_port, running
from stores import SERVERS, reached
from toy import poisoned_words, word_count

from pipelines import mine_mentions
from pipelines.engine import preflight
from pipelines.engine.dataset_build import DatasetBuild
from schemas.errors import UserError
from schemas.manifest import read_manifest

pytestmark = pytest.mark.heavy

ON_CLUSTER = ("--runner", "PortableRunner", "--job_endpoint")


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prism(tmp_path_factory.mktemp("prism")) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    with worker_pools(tmp_path_factory.mktemp("pools"), 1) as pools:
        yield pools


@pytest.mark.parametrize("workers", ["loopback", "pool"])
def test_the_main_job_gives_the_same_bytes(
    workers: str, endpoint: str, pools: list[str], books: Path, reference: dict[str, bytes], tmp_path: Path
) -> None:
    environment = ["--environment_config", pools[0]] if workers == "pool" else []
    done = mine(str(books), str(tmp_path / "mix"), *ON_CLUSTER, endpoint, *environment)
    assert_main_job(done, tmp_path / "mix", reference)


def test_the_main_job_over_object_storage(
    endpoint: str, books: Path, reference: dict[str, bytes], tmp_path: Path
) -> None:
    """Input and output on S3, with workers that were started with access to it, as on a cluster."""
    with SERVERS["versitygw"](tmp_path) as store, reached(store):
        for path in books.iterdir():
            store.folder("books").write(path.name, path.read_bytes())
        with worker_pools(tmp_path, 1) as pools:
            environment = ["--environment_config", pools[0]]
            done = mine(store.address("books"), store.address("out/mix"), *ON_CLUSTER, endpoint, *environment)
        assert done.returncode == 0, done.stderr
        found = {f"{each}/{name}": data for each in DATASETS for name, data in store.objects(f"out/mix{each}").items()}
    assert shards(found) == reference


MENTIONS = ("", "-documents", "-mentions", "-aliases")


def test_mentions_give_the_same_bytes(endpoint: str, pools: list[str], tmp_path: Path) -> None:
    """Several datasets made from one, and a table that the workers read."""
    table = tmp_path / "enwiki-20240101-page_props.sql"
    table.write_text(
        "CREATE TABLE `page_props` (\n  `pp_page` int,\n  `pp_propname` varbinary(60),\n  `pp_value` blob\n);\n"
        "INSERT INTO `page_props` VALUES (12,'wikibase_item','Q6199'),(339,'wikibase_item','Q132524');\n"
        "-- Dump completed\n"
    )
    given = ["--input", str(ROOT / "transforms/sources/sample/enwiki-sample.xml.bz2"), "--tables", str(table)]
    given += ["--shard-bytes=100000"]
    run_here(mine_mentions.COMMAND, *given, "--output", str(tmp_path / "here"))
    command = [sys.executable, "-m", "pipelines.mine_mentions", *given, "--workers=2"]
    environment = ["--environment_config", pools[0]]
    there = run([*command, "--output", str(tmp_path / "there"), *ON_CLUSTER, endpoint, *environment])
    assert there.returncode == 0, there.stderr
    found = [
        {
            (suffix, name): data
            for suffix in MENTIONS
            for name, data in shards(files(tmp_path / f"{output}{suffix}")).items()
        }
        for output in ("here", "there")
    ]
    assert found[0] == found[1]
    assert len(found[0]) > 10


def run_toy(build: DatasetBuild, endpoint: str, *environment: str, **options: Any) -> dict[str, int]:
    """Run a build on Prism; returns the counters that Beam committed."""
    submission = preflight.prepare("PortableRunner", [f"--job_endpoint={endpoint}", *environment], [str(build.output)])
    return run_on(submission, build, **options)


@pytest.mark.parametrize("workers", ["loopback", "pool"])
def test_the_metrics_that_beam_commits_are_those_of_the_manifest(
    workers: str, endpoint: str, pools: list[str], tmp_path: Path
) -> None:
    build = word_count(tmp_path / "words", TEXTS)
    counters = run_toy(build, endpoint, *[f"--environment_config={pools[0]}"] * (workers == "pool"))
    assert_figures_of_manifest(counters, build.output)


def test_a_record_that_brings_workers_down_becomes_a_reject(endpoint: str, pools: list[str], tmp_path: Path) -> None:
    """As on one machine: a process of the worker's pool dies, not the worker."""
    build = poisoned_words(tmp_path / "words", ("one two", "three DIE four", "five"))
    run_toy(build, endpoint, f"--environment_config={pools[0]}")
    report = read_manifest(build.output).stages[0]
    assert report.ledger is not None
    assert (report.ledger.read, report.ledger.written, dict(report.ledger.rejected)) == (6, 5, {"worker_died": 1})
    assert {fault.reason for fault in read_manifest(build.output).run["faults"]} == {"worker_died"}


def test_an_error_of_the_users_comes_as_one_line(endpoint: str, pools: list[str], tmp_path: Path) -> None:
    build = poisoned_words(tmp_path / "words", ("one USER two",))
    with pytest.raises(UserError, match=r"^a model is missing$"):
        run_toy(build, endpoint, f"--environment_config={pools[0]}")


def test_too_many_rejects_end_the_run(endpoint: str, tmp_path: Path) -> None:
    build = poisoned_words(tmp_path / "words", ("good BAD BAD BAD",) * 20)
    with pytest.raises(UserError, match=r"more than --max-reject-rate=0\.01"):
        run_toy(build, endpoint, max_reject_rate=0.01)


def test_workers_with_another_phrasemill_are_refused(
    endpoint: str, books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool whose code differs in a comment of one module."""
    copy = tmp_path / "other"
    for package in ("pipelines", "schemas", "transforms"):
        shutil.copytree(ROOT / package, copy / package)
    with (copy / "pipelines" / "engine" / "exchange.py").open("a") as module:
        module.write("# another\n")
    monkeypatch.setenv("PYTHONPATH", str(copy))
    with worker_pools(tmp_path, 1) as pools:
        monkeypatch.delenv("PYTHONPATH")
        done = mine(str(books), str(tmp_path / "mix"), *ON_CLUSTER, endpoint, "--environment_config", pools[0])
    assert done.returncode == 2
    error = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert len(error) == 1
    assert "the workers have another phrasemill's code (" in error[0]


def test_output_that_the_workers_do_not_see_is_refused(
    endpoint: str, books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that reach another store under the same name."""
    with SERVERS["moto"](tmp_path) as theirs, SERVERS["moto"](tmp_path) as ours:
        for name, value in theirs.environment.items():
            monkeypatch.setenv(name, value)
        with worker_pools(tmp_path, 1) as pools:
            for name, value in ours.environment.items():
                monkeypatch.setenv(name, value)
            output = ours.address("out/mix")
            done = mine(str(books), output, *ON_CLUSTER, endpoint, "--environment_config", pools[0])
    assert done.returncode == 2, done.stderr
    assert "out/mix-documents: the workers do not see the run that was begun there" in done.stderr


def workers_of(endpoint: str) -> list[int]:
    """The process ids of the workers of a Prism."""
    pattern = rf'^python -c from apache_beam.*SdkHarness\("localhost:{endpoint.rpartition(":")[2]}"'
    found = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True).stdout
    return [int(pid) for pid in found.split()]


def test_a_killed_worker_ends_the_job_and_resume_gives_the_same_bytes(
    endpoint: str, books: Path, reference: dict[str, bytes], tmp_path: Path
) -> None:
    """The whole worker of a pool dies, as if a machine failed. Prism gives up; what was done stays done."""
    output = tmp_path / "mix"
    with worker_pools(tmp_path, 1) as pools:
        where = [*ON_CLUSTER, endpoint, "--environment_config", pools[0]]
        job = start_parsing(books, output, *where)
        (worker,) = workers_of(endpoint)
        os.kill(worker, signal.SIGKILL)
        _, said = job.communicate(timeout=120)
        assert job.returncode == 1, said
        assert "error: a worker of the cluster was lost" in said
        assert "to go on from here: " in said
        done = mine(str(books), str(output), *where, "--resume")
    assert done.returncode == 0, done.stderr
    assert all_shards(output) == reference


def test_ctrl_c_cancels_the_job(endpoint: str, books: Path, tmp_path: Path) -> None:
    output = tmp_path / "mix"
    with worker_pools(tmp_path, 1) as pools:
        job = start_parsing(books, output, *ON_CLUSTER, endpoint, "--environment_config", pools[0])
        job.send_signal(signal.SIGINT)
        _, said = job.communicate(timeout=60)
        assert job.returncode == 130, said
        assert said.endswith("\nstopped\n")
        assert "--resume" in said
        end = time.monotonic() + 30
        while workers_of(endpoint) and time.monotonic() < end:
            time.sleep(0.1)
        assert not workers_of(endpoint)
    assert json.loads((Path(f"{output}-sentences") / "_work/run.json").read_text())["state"] == "stopped by SIGINT"


@pytest.mark.parametrize("runner", ["PrismRunner", "the job service in Python"])
def test_other_runners_of_the_job_api(runner: str, tmp_path: Path) -> None:
    """Prism as Beam itself starts it, and a runner that is not Prism."""
    build = word_count(tmp_path / "words", TEXTS)
    address = f"127.0.0.1:{free_port()}"
    with ExitStack() as stack:
        if runner == "PrismRunner":
            submission = preflight.prepare(runner, [f"--prism_location={prism_program()}"], [str(build.output)])
        else:
            service = [sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main", "--port"]
            service += [address.partition(":")[2]]
            stack.enter_context(running(service, address, log=tmp_path / "service.log"))
            submission = preflight.prepare("PortableRunner", [f"--job_endpoint={address}"], [str(build.output)])
        run_on(submission, build)
    assert shards(files(tmp_path / "words")) == toy_reference(tmp_path / "here")
