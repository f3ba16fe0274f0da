"""Slices of a stage (`--units=I/N`) at the same time on an object store, which has neither locks nor renames."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jobs
import pytest
from stores import BUCKET, Store

from pipelines.engine.lease import read_slices, refuse_second
from schemas.storage.folder import Folder


def command(inputs: str, output: str, *more: str) -> list[str]:
    module = [sys.executable, "-m", "pipelines.extract_documents", "--input", inputs, "--output", output]
    return [*module, "--shard-bytes", "500", "--workers", "1", *more]


@pytest.mark.heavy
def test_slices_at_once_make_the_same_bytes_as_a_run_on_a_disk(store: Store, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, text in jobs.chapters().items():
        (tmp_path / "in" / name).write_bytes(text)
        store.folder("sliced/in").write(name, text)
    here = command(store.address("sliced/in"), store.address("sliced/docs"))
    started = [
        subprocess.Popen([*here, f"--units={number}/3"], cwd=jobs.ROOT, stderr=subprocess.PIPE, text=True)
        for number in (1, 3)
    ]
    for process in started:
        error = process.communicate(timeout=300)[1]
        assert process.returncode == 0, error
    assert [(part.number, mark["state"]) for part, mark in read_slices(store.folder("sliced/docs")).items()] == [
        (number, "done") for number in (1, 3)
    ]
    last = jobs.run([*here, "--resume"])
    assert last.returncode == 0, last.stderr
    assert "extract: 3 units (2 done before)" in last.stderr
    assert jobs.run(command(str(tmp_path / "in"), str(tmp_path / "docs"))).returncode == 0
    found = store.objects("sliced/docs")
    assert jobs.shards(found) == jobs.shards(jobs.files(tmp_path / "docs"))
    assert not any(name.startswith("_work") for name in found)
    finished = jobs.run([*here, "--units=2/3"])
    assert finished.returncode == 0
    assert "is finished already: nothing to do" in finished.stdout


def test_a_bucket_that_is_not_there_is_not_held(store: Store) -> None:
    """A missing bucket has no lease. Only writing to it is an error."""
    folder = Folder(store.address("out").replace(BUCKET, "nobucket-here"))
    refuse_second(folder)
    assert read_slices(folder) == {}
