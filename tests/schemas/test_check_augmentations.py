"""schemas.check on augmentations: sound ones, and ones with a damaged row."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from breaking import Row, edit, rewrite
from literal import chain_of, dataset, run_inline

from pipelines import augment
from schemas.dataset_checks import check_dataset
from schemas.errors import UserError
from schemas.kinds.phrases import PHRASES

WORDS = "whales sea captains of the old harbour town sailed into bright morning light".split()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four draws of each phrase, by all operations of letters and tokens."""
    folder = tmp_path_factory.mktemp("made")
    shares = {"NP": 1.0, "VP": 0.0, "PP": 0.0, "ADJP": 0.0, "ADVP": 0.0}
    row = {"surface_share": 1.0, "label": "NP", "label_shares": shares, "frequency": 2, "document_frequency": 1}
    texts = [f"{one} {other} number {n}" for n, one in enumerate(WORDS) for other in WORDS]
    table = pa.Table.from_pylist([{**row, "phrase": text, "surface": text} for text in texts], schema=PHRASES)
    given = dataset(folder / "phrases", [table])
    flags = "--draws=4 --operations=swap_characters,drop_character,insert_character,keyboard,swap_tokens".split()
    output = str(folder / "augmented")
    build = chain_of(augment.COMMAND, "--input", given.folder.uri, "--output", output, *flags)[-1].build
    assert build is not None
    run_inline(build)
    return folder / "augmented"


def test_a_sound_dataset(made):
    assert [*check_dataset(str(made))] == []


def change(of: str, **values):
    """Changes the first row of an operation; a value may be a function of the row."""

    def edit_row(found: list[Row]) -> None:
        row = next(each for each in found if each["operation"] == of)
        row.update({name: value(row) if callable(value) else value for name, value in values.items()})

    return rewrite(edit_row)


def move(found: list[Row]) -> None:
    found[2], found[3] = found[3], found[2]


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        (change("keyboard", operation="drop_character"), "is not what one drop_character makes of the phrase"),
        (change("drop_character", operation="keyboard"), "is not what one keyboard makes"),
        (change("swap_characters", operation="insert_character"), "is not what one insert_character makes"),
        (change("insert_character", augmented=lambda row: row["augmented"] + "x"), "what one insert_character makes"),
        (change("swap_characters", augmented=lambda row: row["augmented"][::-1]), "what one swap_characters makes"),
        (change("swap_tokens", augmented=lambda row: " ".join(sorted(row["phrase"].split())) + "."), "one swap_tokens"),
        (
            change("keyboard", augmented=lambda row: row["phrase"].replace("number", "numbep")),
            "what one keyboard makes",
        ),
        (change("swap_tokens", operation="magic"), "operation is not one of swap_characters, "),
        (change("swap_tokens", granularity="phrase"), "the granularity is not that of the operation"),
        (change("swap_tokens", augmented=lambda row: row["phrase"].upper()), "nothing was changed but case"),
        (change("keyboard", augmented=lambda row: row["augmented"] + " "), "begins or ends with a blank"),
        (change("keyboard", augmented=""), "augmented is empty"),
        (change("keyboard", draw=4), "the draw is not from 0 to 3"),
        (rewrite(move), "the row is not after the one before it"),
        (rewrite(lambda found: found.insert(1, found[0])), "the phrase has this draw twice"),
        (edit(lambda data: data["options"].update(operations=["swap"])), r"options.operations\[0\]"),
    ],
)
def test_a_damaged_row_is_found(made, tmp_path, damage, finding):
    shutil.copytree(made, tmp_path / "augmented")
    damage(tmp_path / "augmented")
    try:
        found = "\n".join(map(str, check_dataset(str(tmp_path / "augmented"))))
    except UserError as error:
        found = str(error)
    assert re.search(finding, found), found
