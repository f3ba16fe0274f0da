"""Manifests, completion records and leases that anybody may have written: read, or refused in one line."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import chain_of
from properties import examples

from pipelines import cli, extract_documents, mine_contexts, rejects, report, status, summary
from pipelines.engine.lease import Lease
from pipelines.engine.progress import RunFigures
from pipelines.engine.stage import Slice, open_stage
from pipelines.engine.task_writer import do_unit
from schemas.check import main as check
from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.json_values import json_value
from schemas.manifest import read_manifest
from schemas.storage.errors import storage_error
from schemas.storage.folder import Folder

Json = Any

VALUES: list[Json] = [
    *(None, True, 0, -1, 7, 3.5, 1e300, 10**18, 10**400, float("nan"), float("inf")),
    *("", "x", "train", "../../x", "/etc/passwd", "s3://b/x", "a\0b", "\x1b[2J", "\ud800", "é" * 300),
    *([], [[]], [None], ["x", 1], {}, {"x": {}}, {"path": "data/../../x"}),
]


def places(value: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


@st.composite
def changed(draw: st.DrawFn, original: Json) -> Json:
    """The value with one to three of its parts replaced, removed or doubled."""
    root = [copy.deepcopy(original)]
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([*places(root[0])]))
        *before, last = (0, *path)
        parent: Json = root
        for key in before:
            parent = parent[key]
        how = draw(st.sampled_from(["replace", "replace", "remove", "double"]))
        if how == "replace" or not path:
            parent[last] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        elif how == "remove":
            del parent[last]
        elif isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        else:
            parent[f"{last}_"] = copy.deepcopy(parent[last])
    return root[0]


def refused(read: Callable[[], object]) -> bool:
    """Whether it ends with an error for the user, of one line. Any other error fails the test."""
    try:
        read()
    except (UserError, OSError) as error:
        said = str(storage_error(error, final=True)) if isinstance(error, OSError) else str(error)
        assert said.isprintable(), said
        return True
    return False


def tool(module: Any, *arguments: str) -> Callable[[], object]:
    """A tool, without what makes lines and statuses of errors."""
    chosen = module.TOOL.flags.parse(arguments)[module.TOOL.options]
    return lambda: import_module(module.TOOL.module.replace("pipelines", "pipelines.tools")).run(chosen)


@pytest.fixture(scope="module")
def folder(mined: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of the datasets, to be changed."""
    place = tmp_path_factory.mktemp("untrusted") / "mined"
    shutil.copytree(mined, place)
    return place


NAMES = ("contexts", "contexts-documents", "contexts-sentences", "contexts-phrases")


@pytest.mark.parametrize("name", NAMES)
def test_every_reader_of_a_manifest_reads_it_or_refuses_it(folder, mined, name, capsys):
    place = folder / name
    original = json_value((place / "manifest.json").read_bytes())
    output = str(folder / "made")
    readers = [
        lambda: [*Dataset.open(str(place)).tables()],
        lambda: summary.text([Folder(str(place))], {}),
        lambda: chain_of(mine_contexts.COMMAND, "--input", str(place), "--output", output),
        *(tool(each, str(place)) for each in (status, rejects, report)),
    ]

    @given(changed(original))
    @examples(20)
    def holds(data: Json) -> None:
        (place / "manifest.json").write_text(json.dumps(data))
        assert check([str(place)]) in (0, 1)
        if not refused(lambda: read_manifest(Folder(str(place)))):
            for read in readers:
                refused(read)
        capsys.readouterr()

    holds()
    shutil.copy(mined / name / "manifest.json", place)


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "data/../../x.parquet", "s3://b/x", "x\0y"])
@pytest.mark.parametrize("part", ["splits", "sides"])
def test_a_path_that_leads_away_is_never_opened(folder, path, part):
    place = Folder(str(folder / "contexts-documents"))
    original = place.read("manifest.json")
    data = json_value(original)
    next(iter(data[part].values()))[0]["path"] = path
    place.write("manifest.json", json.dumps(data).encode())
    arguments = ("--input", str(place), "--output", str(folder / "made"))
    readers = (
        lambda: Dataset.open(str(place)),
        lambda: chain_of(mine_contexts.COMMAND, *arguments),
        *(tool(each, str(place)) for each in (status, rejects, report)),
    )
    for read in readers:
        with pytest.raises(UserError, match=r"manifest.json: cannot be read \(.*path is .*, not the path of a file"):
            read()
    place.write("manifest.json", original)


@pytest.fixture
def unfinished(mined, tmp_path) -> Path:
    """A run that was stopped after its units, with the lease of a run and of a slice."""
    raw = tmp_path / "raw.jsonl"
    raw.write_text('{"text": "A whale."}\n{"text": cut\n')
    build = chain_of(
        extract_documents.COMMAND, "--input", str(raw), "--on-corrupt=skip", "--output", str(tmp_path / "out")
    )[-1].build
    assert build is not None
    build.begin(resume=False)
    stage = build.stages[0]
    for unit in open_stage(build.work, stage):
        do_unit(build.work, stage, unit)
    for part in (None, Slice(1, 2)):
        with Lease([build.output], command="go", figures=lambda: RunFigures().to_json(), part=part):
            pass
    return tmp_path / "out"


def test_every_reader_of_an_unfinished_run_reads_it_or_refuses_it(unfinished, tmp_path, capsys):
    """`status`, `rejects` and the same command again, with any of the JSON files of the run changed."""
    kept = tmp_path / "kept"
    shutil.copytree(unfinished, kept)
    originals = {
        name: json_value((kept / name).read_bytes())
        for name in Folder(str(kept)).files(recursive=True)
        if name.endswith(".json")
    }
    assert {name.rpartition("/")[2] for name in originals} >= {
        "build.json",
        "run.json",
        "run-1-of-2.json",
        "000000.json",
    }
    again = ("--input", str(tmp_path / "raw.jsonl"), "--on-corrupt=skip", "--output", str(unfinished))

    @given(st.sampled_from(sorted(originals)).flatmap(lambda name: st.tuples(st.just(name), changed(originals[name]))))
    @examples(30)
    def holds(change: tuple[str, Json]) -> None:
        name, data = change
        shutil.rmtree(unfinished)
        shutil.copytree(kept, unfinished)
        (unfinished / name).write_text(json.dumps(data))
        for read in (tool(status, str(unfinished)), tool(rejects, str(unfinished))):
            refused(read)
        assert cli.main(extract_documents.COMMAND, [*again, "--resume"]) in (0, 1, 2)  # 1: the units make no sense
        capsys.readouterr()

    holds()
