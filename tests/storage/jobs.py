"""The main job on a small text, as a command, on any storage."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ["--workers", "2", "--shard-bytes", "2500"]
DATASETS = ("", "-documents", "-sentences", "-phrases")


def chapters() -> dict[str, bytes]:
    """The beginnings of chapters of the shipped sample: three files, a unit each."""
    with tarfile.open(ROOT / "transforms/sources/sample/books-sample.tar.gz") as archive:
        members = [each for each in archive if each.isfile()][:3]
        found = {os.path.basename(each.name): archive.extractfile(each).read()[:4000] for each in members}  # type: ignore[union-attr]
    return {name: text[: text.rindex(b".") + 1] for name, text in found.items()}


def mine(inputs: str, output: str, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(inputs, output, *more), cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip


def command(inputs: str, output: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "pipelines.mine_contexts", "--input", inputs, "--output", output, *OPTIONS, *more]


def check(*datasets: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "schemas.check", *datasets], cwd=ROOT, capture_output=True, text=True, timeout=120
    )


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def shards(found: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in found.items() if name.endswith(".parquet")}
