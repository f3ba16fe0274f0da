"""Checks at the start of a run whether a worker of a cluster can do it, instead of failing after an hour."""

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
    """The software of this machine."""
    root = Path(__file__).resolve().parents[2]
    code = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            code.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    python = ".".join(platform.python_version_tuple()[:2])
    return Software(python, metadata.version("apache-beam"), code.hexdigest()[:16])


def check_worker(submitted: Software, builds: Sequence[DatasetBuild]) -> None:
    """UserError unless this machine can do the builds: it has the same software and models, and sees the storage."""
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
                f"{build.output}: the workers do not see the run that was begun there; this machine and all workers "
                "must reach it under the same name: give an s3:// or gs:// address, or a path on shared storage"
            )
    # In another process, so that this one does not keep the models and their libraries.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        process.submit(_check_stages, list(builds)).result()


def _is_finished(build: DatasetBuild) -> bool:
    """Whether this job has finished the dataset already: the runner restarted the job."""
    return is_dataset(build.output) and read_manifest(build.output).fingerprint == build.fingerprint


def _check_stages(builds: Sequence[DatasetBuild]) -> None:
    silence()
    for build in builds:
        for stage in build.stages:
            stage.check_machine(build.models)
