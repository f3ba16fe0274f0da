"""The stage of neighbours, a strip of the matrix of pairs at a time; and what a check finds in a broken dataset."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from breaking import edit, field, rewrite
from literal import Row, chain_of, dataset, rows, run_inline

from pipelines import find_neighbours
from pipelines.cli import main as run
from pipelines.stages import neighbours as stage
from schemas.check import main
from schemas.dataset_checks import check_dataset
from schemas.kinds.phrases import PHRASES
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder

WORDS = "house houses horse mouse month months moth mouth"
TEXTS = [f"{one} of {other}" for one in WORDS.split() for other in WORDS.split()] + ["xylophone"]


def phrases(texts: list[str]) -> pa.Table:
    shares = {name: float(name == "NP") for name in PHRASES.field("label_shares").type.names}
    counts = {"surface_share": 1.0, "label": "NP", "label_shares": shares, "frequency": 2, "document_frequency": 1}
    columns = [*PHRASES.names]
    found = [{"phrase": text, "surface": text, **counts} for text in texts]
    return pa.Table.from_pylist([{name: row.get(name, "") for name in columns} for row in found], schema=PHRASES)


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Path:
    """Neighbours in strips of 20 rows; the same with other parts of the columns, and with the units backwards."""
    folder = tmp_path_factory.mktemp("found")
    given = dataset(folder / "phrases", [phrases(TEXTS[:30]), phrases([]), phrases(TEXTS[30:])])
    edit(lambda data: data["options"].update(min_frequency=1))(folder / "phrases")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, "ROWS_A_UNIT", 20)
        for output, part, order in (("neighbours", 1 << 20, 1), ("again", 1, -1)):
            patch.setattr(stage, "COLUMNS_A_PART", part)
            flags = ["--candidates=4", "--input", str(given.folder), "--output", str(folder / output)]
            chain = chain_of(find_neighbours.COMMAND, *flags)
            assert chain[-1].build is not None
            run_inline(chain[-1].build, order=order)
    return folder


def neighbours(row: Row) -> list[tuple[int, str, float]]:
    return [(each["row"], each["phrase"], round(each["edit_similarity"], 4)) for each in row["neighbours"]]


def test_a_row_for_each_phrase_in_the_same_order(found):
    manifest = read_manifest(Folder(str(found / "neighbours")))
    assert [each.rows for each in manifest.shards] == [20, 20, 20, 5]
    all_rows = rows(Folder(str(found / "neighbours")))
    assert [row["phrase"] for row in all_rows] == TEXTS
    assert neighbours(all_rows[64]) == []
    assert neighbours(all_rows[0]) == [
        (1, "house of houses", 0.9655),
        (8, "houses of house", 0.9655),
        (9, "houses of houses", 0.9333),
        (3, "house of mouse", 0.9286),  # of four that are as similar, that of lowest hash
    ]
    assert all(TEXTS[each["row"]] == each["phrase"] for row in all_rows for each in row["neighbours"])
    (found_by,) = manifest.stages
    assert (found_by.ledger.counts, found_by.ledger.read, found_by.ledger.written) == ("phrases", 65, 65)
    assert found_by.counters == {"neighbours": 256, "without_neighbours": 1}
    assert list(check_dataset(str(found / "neighbours"))) == []


def test_neither_the_parts_nor_the_order_of_units_matter(found):
    one, other = (read_manifest(Folder(str(found / name))) for name in ("neighbours", "again"))
    assert (one.sha256, one.fingerprint) == (other.sha256, other.fingerprint)


@pytest.mark.heavy
def test_the_same_bytes_for_workers_slices_and_a_run_that_goes_on(found, tmp_path, monkeypatch):
    """Whole units of thousands of phrases: in one process, in two, and begun as a slice."""
    words = [f"{one}{other}" for one in WORDS.split() for other in WORDS.split()]
    texts = [f"{one} {other} {n}" for one in words for other in words for n in range(9)]
    given = dataset(tmp_path / "phrases", [phrases(texts)])
    flags = ["--input", str(given.folder), "--candidates=5"]
    for output, more in (
        ("one", [["--workers=1"]]),
        ("two", [["--workers=2"]]),
        ("sliced", [["--units=2/3"], ["--workers=2", "--resume"]]),
    ):
        for arguments in more:
            assert run(find_neighbours.COMMAND, [*flags, *arguments, "--output", str(tmp_path / output)]) == 0
    assert len({read_manifest(Folder(str(tmp_path / name))).sha256 for name in ("one", "two", "sliced")}) == 1
    assert len(read_manifest(Folder(str(tmp_path / "one"))).shards) == 3


def neighbour(row: int, phrase: str, similarity: float) -> Row:
    return {"row": row, "phrase": phrase, "edit_similarity": similarity}


BROKEN = {
    "another phrase": (
        field(1, phrase="house of cards"),
        'row 1: the phrase is not that of the same row of the phrases: "house of cards"',
    ),
    "another row": (
        field(0, neighbours=[neighbour(9, "houses of house", 0.9655)]),
        'row 0: a neighbour is not the phrase in its row of the phrases: "house of house"',
    ),
    "a row that there is not": (
        field(0, neighbours=[neighbour(65, "houses of house", 0.9655)]),
        "row 0: a neighbour is not the phrase in its row of the phrases",
    ),
    "empty": (field(0, phrase=""), "row 0: the phrase is empty"),
    "twice": (field(1, phrase=TEXTS[0]), 'row 1: the phrase is not unique: "house of house" is in row'),
    "itself": (
        field(0, neighbours=[neighbour(0, TEXTS[0], 1.0)]),
        'row 0: the phrase is its own neighbour: "house of house"',
    ),
    "too many": (
        lambda rows: rows[0]["neighbours"].append(neighbour(2, TEXTS[2], 0.9)),
        'row 0: has more than 4 neighbours: "house of house", 5 neighbours',
    ),
    "too far": (
        field(0, neighbours=[neighbour(2, TEXTS[2], 0.7)]),
        "row 0: edit_similarity is not above 0.7 and at most 1: .*, edit similarity 0.700",
    ),
    "the farther first": (
        lambda rows: rows[0]["neighbours"].insert(0, rows[0]["neighbours"].pop()),
        "row 0: a neighbour is not after the one before it, by similarity and hash",
    ),
    "the higher hash first": (
        lambda rows: rows[0]["neighbours"].insert(0, rows[0]["neighbours"].pop(1)),
        "row 0: a neighbour is not after the one before it, by similarity and hash",
    ),
    "the same twice": (
        lambda rows: rows[0]["neighbours"].insert(1, rows[0]["neighbours"][0]),
        "row 0: a neighbour is not after the one before it, by similarity and hash",
    ),
}


@pytest.mark.parametrize(("change", "message"), BROKEN.values(), ids=BROKEN)
def test_a_check_finds_what_is_broken(found, tmp_path, capsys, change, message):
    for name in ("neighbours", "phrases"):
        shutil.copytree(found / name, tmp_path / name)
    rewrite(change)(tmp_path / "neighbours")
    assert main([str(tmp_path / "neighbours")]) == 1
    out = capsys.readouterr().out
    assert re.search(message, out), out


def test_what_is_needed_is_said(found, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "transforms.negatives.compiled", raising=False)
    arguments = ["--input", str(found / "phrases"), "--output", str(tmp_path / "out")]
    assert run(find_neighbours.COMMAND, arguments) == 2
    assert "neighbours need numba: pip install 'phrasemill[negatives]'" in capsys.readouterr().err
