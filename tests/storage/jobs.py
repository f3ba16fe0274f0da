"""The main job on a small text, as a command or in this process, on any storage."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.cli import main
from pipelines.mine_contexts import COMMAND

ROOT = Path(__file__).resolve().parents[2]
SHARDS = ("--shard-bytes", "2500")
DATASETS = ("", "-documents", "-sentences", "-phrases")


def chapters() -> dict[str, bytes]:
    """The beginnings of chapters of the shipped sample: three files, a unit for each."""
    with tarfile.open(ROOT / "transforms/sources/sample/books-sample.tar.gz") as archive:
        members = [each for each in archive if each.isfile()][:3]
        found = {os.path.basename(each.name): archive.extractfile(each).read()[:4000] for each in members}  # type: ignore[union-attr]
    return {name: text[: text.rindex(b".") + 1] for name, text in found.items()}


def mine_here(inputs: str, output: str, *more: str) -> int:
    """Do the job in this process; returns its exit status."""
    return main(COMMAND, ["--input", inputs, "--output", output, *SHARDS, *more])


def mine(inputs: str, output: str, *more: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """Run the job. Environment variables that are None are unset."""
    return run(command(inputs, output, *more), **environment)


def run(arguments: Sequence[str], **environment: str | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, cwd=ROOT, env=_changed(environment), capture_output=True, text=True, timeout=300)


def kill(arguments: Sequence[str], *, when: Callable[[], object], **environment: str | None) -> str:
    """Run a command, and kill it and its workers when a condition is true; returns what it printed."""
    with tempfile.TemporaryFile("w+") as out:
        started = subprocess.Popen(
            arguments, cwd=ROOT, env=_changed(environment), stdout=out, stderr=out, start_new_session=True
        )
        end = time.monotonic() + 120
        while started.poll() is None and time.monotonic() < end and not when():
            time.sleep(0.02)
        assert started.poll() is None, "it ended too early"
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()
        out.seek(0)
        return out.read()


def _changed(environment: Mapping[str, str | None]) -> dict[str, str]:
    changed = {**os.environ, **environment}
    return {name: value for name, value in changed.items() if value is not None}


def command(inputs: str, output: str, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "pipelines.mine_contexts",
        "--input",
        inputs,
        "--output",
        output,
        "--workers",
        "2",
        *SHARDS,
        *more,
    ]


def check(*datasets: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "schemas.check", *datasets])


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rows(parquet: bytes) -> list[dict[str, Any]]:
    return pq.read_table(io.BytesIO(parquet)).to_pylist()


def shards(found: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in found.items() if name.endswith(".parquet")}
