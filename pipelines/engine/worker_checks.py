"""Whether a worker of a cluster can do a run: asked at its very start, before an hour of work shows it cannot."""

from __future__ import annotations

import functools
import hashlib
import multiprocessing
import platform
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from pipelines.engine.dataset_build import DatasetBuild
from schemas.errors import UserError
from schemas.manifest import is_dataset, read_manifest
from schemas.process import silence

_PACKAGES = ("pipelines", "schemas", "transforms")


class Software(NamedTuple):
    """What must be the same on the submitting machine and the workers. `code` is a hash of phrasemill's modules."""

    python: str
    beam: str
    code: str


@functools.cache
def software() -> Software:
    """This machine's."""
    root = Path(__file__).resolve().parents[2]
    code = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            code.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    python = ".".join(platform.python_version_tuple()[:2])
    return Software(python, metadata.version("apache-beam"), code.hexdigest()[:16])


def check_worker(submitted: Software, builds: Sequence[DatasetBuild]) -> None:
    """UserError unless this machine can do the builds: the same software, the storage in sight, the models there."""
    remedy = "build the worker image again (docker/README.md), or submit from an environment like the workers'"
    here = software()
    for what, wanted, found in (
        ("Python", submitted.python, here.python),
        ("Apache Beam", submitted.beam, here.beam),
        ("phrasemill's code", submitted.code, here.code),
    ):
        if wanted != found:
            raise UserError(f"the workers have another {what} ({found}) than this machine ({wanted}): {remedy}")
    for build in builds:
        if not _is_finished(build) and build.begun_fingerprint() != build.fingerprint:
            raise UserError(
                f"{build.output}: the workers do not see what was begun there; it must lie where this machine and all "
                "workers reach it under the same name: give an s3:// or gs:// address, or a path of shared storage"
            )
    # Models are loaded in a process of its own: what they bring must not stay in this one.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        process.submit(_check_stages, list(builds)).result()


def _is_finished(build: DatasetBuild) -> bool:
    """By this very job, which the runner has begun again."""
    return is_dataset(build.output) and read_manifest(build.output).fingerprint == build.fingerprint


def _check_stages(builds: Sequence[DatasetBuild]) -> None:
    silence()
    for build in builds:
        for stage in build.stages:
            stage.check_machine(build.models)
