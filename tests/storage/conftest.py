"""Makes this folder's helpers and the toy pipeline importable, for worker processes too; starts the stores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parent
for _folder in (str(_HERE), str(_HERE.parent / "pipelines")):
    sys.path.insert(0, _folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_folder, os.environ.get("PYTHONPATH")]))

from stores import SERVERS, Store, reached  # noqa: E402

_HEAVY = ("versitygw", "fake-gcs-server")


@pytest.fixture(scope="session", params=[pytest.param(n, marks=[pytest.mark.heavy] * (n in _HEAVY)) for n in SERVERS])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A bucket on each kind of object store, on loopback."""
    with SERVERS[request.param](tmp_path_factory.mktemp("store")) as store, reached(store):
        yield store


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Path]:
    """A separate file system of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    made = subprocess.run(mount, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no file system can be mounted here ({made.stderr.strip()}); it takes root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
