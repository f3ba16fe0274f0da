"""The small main job and the toy build on a runner: starting them, and their results."""

from __future__ import annotations

import io
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs import DATASETS, check, command, files, shards
from toy import word_count

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.driver import run
from pipelines.engine.executors import InlineExecutor
from pipelines.engine.preflight import Submission
from pipelines.engine.progress import Progress
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder

TEXTS = ("the cat sat on the mat", "", "the dog", "the cat and the dog and the cat", "the only unicorn")


def all_shards(output: Path) -> dict[str, bytes]:
    """The shards of the datasets of a main job, "SUFFIX/NAME" to bytes."""
    return {
        f"{suffix}/{name}": data
        for suffix in DATASETS
        for name, data in shards(files(output.with_name(output.name + suffix))).items()
    }


def assert_main_job(done: subprocess.CompletedProcess[str], output: Path, reference: Mapping[str, bytes]) -> None:
    """Assert that a main job succeeded, printed its stages, and made these shards."""
    assert done.returncode == 0, done.stderr
    assert all_shards(output) == reference
    assert "parse: 3 units" in done.stderr
    assert "order: 1 unit" in done.stderr
    checked = check(*(f"{output}{suffix}" for suffix in DATASETS))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def start_parsing(books: Path, output: Path, *more: str) -> subprocess.Popen[str]:
    """Start the main job; returns when the longest stage has begun. Its standard error is a pipe."""
    arguments = command(str(books), str(output), *more)
    job = subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    plan = Path(f"{output}-sentences") / "_work/parse/plan.json"
    end = time.monotonic() + 120
    while not plan.exists() and job.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    return job


def run_on(submission: Submission, build: DatasetBuild, **options: Any) -> dict[str, int]:
    """Run a build by two processes on each worker of a cluster; returns the counters that Beam committed."""
    from pipelines.engine.beam import BeamExecutor

    build.begin(resume=True)
    executor = BeamExecutor(submission, workers=2)
    run([build], executor, progress=Progress(io.StringIO()), **options)
    return executor.counters


def toy_reference(folder: Path) -> dict[str, bytes]:
    """The shards of the toy build, made on this machine."""
    build = word_count(folder, TEXTS)
    build.begin(resume=False)
    run([build], InlineExecutor(), progress=Progress(io.StringIO()))
    return shards(files(folder))


def assert_figures_of_manifest(counters: Mapping[str, int], dataset: Folder) -> None:
    """Assert that the counters that Beam committed, "stage/name", are those of a finished dataset."""
    for stage in read_manifest(dataset).stages:
        assert stage.ledger is not None
        figures = {"units": stage.units, "read": stage.ledger.read, "written": stage.ledger.written, **stage.counters}
        assert {name: counters[f"{stage.name}/{name}"] for name in figures} == figures
