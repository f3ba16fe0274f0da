"""schemas.check on pairs, labelled pairs and pairs with contrasts: sound ones, and ones with a damaged row."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from breaking import Row, edit, rewrite
from literal import chain_of, run_inline

from pipelines import contrast_pairs, label_pairs
from schemas.dataset_checks import check_dataset

PAIRS = [
    (f"{one} {thing}", f"{other} {thing}")
    for thing in ("boat", "ship", "harbour", "sea")
    for one in ("big", "large", "huge")
    for other in ("great", "vast")
] + [("old boat", "ancient boat"), ("old ship", "ancient ship")]
SETS = {
    "ppdb": (label_pairs.COMMAND, ("--splits", "60,40")),
    "ppdb_filtered": (label_pairs.COMMAND, ("--set", "ppdb_filtered")),
    "paws": (label_pairs.COMMAND, ("--set", "paws_short", "--input-format", "paws")),
    "contrasts": (contrast_pairs.COMMAND, ("--contrasts", "3", "--splits", "60,40")),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in PAIRS))
    lines = [f"{n}\t{one} {n}\t{other}\t{n % 2}\n" for n, (one, other) in enumerate(PAIRS)]
    (folder / "paws.tsv").write_text("id\tsentence1\tsentence2\tlabel\n" + "".join(lines))
    for name, (command, flags) in SETS.items():
        given = folder / ("paws.tsv" if name == "paws" else "pairs.tsv")
        for dataset in chain_of(command, "--input", str(given), "--output", str(folder / name), *flags):
            assert dataset.build is not None
            run_inline(dataset.build)
    return folder


@pytest.mark.parametrize("name", [*SETS, "ppdb-pairs"])
def test_a_sound_dataset(made, name):
    assert [*check_dataset(str(made / name))] == []


def change(of: int, **values):
    """Changes the first row with a label."""

    def edit_row(found: list[Row]) -> None:
        row = next(each for each in found if each["label"] == of)
        row.update({name: value(row) if callable(value) else value for name, value in values.items()})

    return rewrite(edit_row)


def first(**values):
    return rewrite(
        lambda found: found[0].update({name: v(found[0]) if callable(v) else v for name, v in values.items()})
    )


def move(found: list[Row]) -> None:
    found[0], found[1] = found[1], found[0]


def to_other_label(found: list[Row]) -> None:
    positive = next(each for each in found if each["label"] == 1)
    found.insert(
        found.index(positive), positive | {"label": 0, "phrase": positive["other"], "other": positive["phrase"]}
    )


@pytest.mark.parametrize(
    ("name", "damage", "finding"),
    [
        ("ppdb-pairs", first(phrase=""), "phrase is empty"),
        ("ppdb-pairs", first(phrase=" boat"), "the phrase begins or ends with a blank"),
        ("ppdb-pairs", first(paraphrase=lambda row: row["phrase"]), "the paraphrase is the phrase itself"),
        ("ppdb-pairs", first(score=float("inf")), "score is not a number"),
        ("ppdb-pairs", first(relation=""), "relation is empty"),
        ("ppdb-pairs", first(origin=""), "origin is empty"),
        ("ppdb-pairs", rewrite(move), "the row is not after the one before it"),
        ("ppdb-pairs", rewrite(lambda found: found.insert(1, found[0])), "the pair is there twice"),
        ("ppdb", change(0, origin=""), "origin is empty"),
        ("ppdb", change(0, other=lambda row: row["phrase"]), "the phrases are equal"),
        ("ppdb", change(1, label=2), "the label is neither 0 nor 1"),
        ("ppdb", change(1, label=0), "labels: 25 positives and 27 negatives are not as many"),
        ("ppdb", change(1, label=0), "a negative is a pair of"),
        ("ppdb", change(0, label=1), "a positive is no pair of"),
        ("ppdb", rewrite(to_other_label), "the pair has both labels"),
        ("ppdb", rewrite(move), "the row is not after the one before it"),
        ("ppdb", rewrite(lambda found: found.insert(1, found[0])), "the pair is there twice"),
        ("ppdb", edit(lambda data: data["options"].update(splits=[1, 99])), "the pair belongs to another split"),
        ("ppdb_filtered", change(0, other="old port"), "the phrases do not share exactly one word"),
        ("ppdb_filtered", change(0, other="big red boat"), "a phrase has not 2 words"),
        ("ppdb_filtered", change(0, phrase="old boat", other="old ship"), "share the word 'old'"),
        ("paws", change(0, other="a b c d e f g h i j"), "a sentence has more than 9 tokens"),
        ("contrasts", first(paraphrase=""), "paraphrase is empty"),
        ("contrasts", first(phrase="old boat"), "the pair is none of"),
        ("contrasts", first(contrasts=["a"]), "has not 3 contrasts"),
        ("contrasts", first(contrasts=["a", "b", "a"]), "a contrast is there twice"),
        ("contrasts", first(contrasts=lambda row: ["a", "b", row["phrase"]]), "or is the phrase or its paraphrase"),
        (
            "contrasts",
            rewrite(
                lambda found: [
                    row.update(contrasts=["a", "b", f"{new} {row['phrase'].split()[1]}"])
                    for row in found
                    for new in ("great", "vast")
                    if new not in row["paraphrase"]
                ]
            ),
            "a contrast is a paraphrase of the phrase in",
        ),
        ("contrasts", rewrite(move), "the row is not after the one before it"),
        ("contrasts", edit(lambda data: data["options"].update(splits=[1, 99])), "the pair belongs to another split"),
    ],
)
def test_a_damaged_row_is_found(made, tmp_path, name, damage, finding):
    for each in {name, "ppdb-pairs", "contrasts-pairs"}:
        shutil.copytree(made / each, tmp_path / each)
    damage(tmp_path / name)
    found = "\n".join(map(str, check_dataset(str(tmp_path / name))))
    assert re.search(finding, found), found
