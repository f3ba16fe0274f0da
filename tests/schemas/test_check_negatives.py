"""schemas.check on embeddings and hard negatives: sound ones, and ones that are broken."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import near
import pytest
from breaking import Row, edit, field, ledger, rewrite

from schemas.characters import edit_similarity
from schemas.check import main


def item(row: int, number: int, **values: Any):
    return rewrite(lambda rows: rows[row]["negatives"][number].update(values))


def swap(rows: list[Row]) -> None:
    rows[0], rows[1] = rows[1], rows[0]


def turn(rows: list[Row]) -> None:
    """The negatives of the row that has several, in the opposite order."""
    next(row for row in rows if len(row["negatives"]) > 1)["negatives"].reverse()


CASES = {
    "own negative": ("negatives", item(0, 0, phrase="colours"), "the phrase is its own negative"),
    "no phrase": ("negatives", item(0, 0, phrase="kollar"), "the negative is not one of the phrases"),
    "similarity": ("negatives", item(0, 0, edit_similarity=0.9), "edit_similarity is not that of the phrases"),
    "cosine": ("negatives", item(0, 0, cosine=1.5), "cosine is not from -1 to 1"),
    "difference": ("negatives", item(0, 0, difference=0.9), "the difference is not that of edit_similarity and cosine"),
    "threshold": ("negatives", item(0, 0, difference=0.25), "the difference is not above 0.3"),
    "none": ("negatives", rewrite(field(0, negatives=[])), "there are not 1 to 12 negatives: .*: 0"),
    "order of rows": ("negatives", rewrite(swap), "the phrase is not after the one before it, by hash"),
    "order": ("negatives", rewrite(turn), "a negative is not after the one before it, by difference and hash"),
    "counted": (
        "negatives",
        edit(lambda data: data["stages"][1]["counters"].update(phrases=8)),
        "phrases with and without, and all of them: 9 is not 8",
    ),
    "ledger": ("negatives", edit(ledger("filter_negatives", read=27)), "the ledger of candidates does not add up"),
    "another phrase": ("embeddings", rewrite(field(2, phrase="x")), "is not that of the same row of the phrases"),
    "a phrase more": (
        "embeddings",
        rewrite(lambda rows: rows.append({"phrase": "x", "embedding": [0, 1]})),
        "rows, and what the last stage wrote: 10 is not 9",
    ),
    "longer": ("embeddings", rewrite(field(2, embedding=[0, 0, 1])), "longer or shorter than the first .*: 3 numbers"),
    "empty": ("embeddings", rewrite(field(2, embedding=[])), "the embedding is empty, or longer"),
    "not finite": ("embeddings", rewrite(field(2, embedding=[0, float("nan")])), "a number that is not finite"),
    "length": (
        "embeddings",
        edit(lambda data: data.update(models=[{"normalised": True}])),
        'the embedding does not have length 1: "cooler": 5',
    ),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    near.mined(near.of_words(folder), folder / "negatives")
    return folder


def test_sound_datasets(sound, capsys):
    assert main([str(sound / "negatives"), str(sound / "embeddings")]) == 0
    assert capsys.readouterr().out.count("phrases agree with ") == 2


@pytest.mark.parametrize("case", CASES)
def test_damage_is_found(sound, tmp_path, capsys, case):
    which, damage, finding = CASES[case]
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    damage(tmp_path / which)
    assert main([str(tmp_path / which)]) == 1
    assert re.search(finding, capsys.readouterr().out)


@pytest.mark.parametrize(
    ("one", "other", "similarity"),
    [
        ("", "", 0),
        ("a", "", 0),
        ("abc", "abc", 1),
        ("colour", "color", 10 / 11),
        ("abcabba", "cbabac", 8 / 13),
        ("naïve", "naive", 0.8),
        ("x" * 300, "y" + "x" * 299, 299 / 300),
    ],
)
def test_literal_similarities(one, other, similarity):
    assert edit_similarity(one, other) == edit_similarity(other, one) == pytest.approx(similarity)
