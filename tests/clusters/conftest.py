"""The small job's input and output; makes helpers, the toy pipeline and that job importable, for workers too."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parent
for _folder in (_HERE, _HERE.parent / "pipelines", _HERE.parent / "storage"):
    sys.path.insert(0, str(_folder))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_folder), os.environ.get("PYTHONPATH")]))


@pytest.fixture(scope="session")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small texts: three units of the main job."""
    from jobs import chapters

    folder = tmp_path_factory.mktemp("books")
    for name, text in chapters().items():
        (folder / name).write_bytes(text)
    return folder


@pytest.fixture(scope="session")
def reference(books: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The shards of all datasets of the main job, made on this machine."""
    from jobs import mine_here
    from runs import all_shards

    output = tmp_path_factory.mktemp("reference") / "mix"
    assert mine_here(str(books), str(output)) == 0
    return all_shards(output)
