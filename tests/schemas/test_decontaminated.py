"""Datasets of every kind that can be decontaminated, as the real stages make them: what is left is sound."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import near
import paraphrased
import pyarrow.parquet as pq
import pytest
from literal import Row, chain_of, rows, run_here, run_inline
from overlapping import is_known

from pipelines import augment, decontaminate, extract_pairs
from pipelines.cli import main
from schemas.dataset_checks import check_dataset, summary
from schemas.manifest import SPLITS, Manifest, read_manifest
from schemas.storage.folder import Folder
from transforms.decontamination.options import OverlapRules

SETS = {
    "phrases.txt": "old captain | The Small Village !\nwhite whale | mammal\nthe old king | a quay\n"
    "big boat | cooler\n",
    "sentences.conll": "fresh\tO\nfish\tO\nis\tO\nreally\tO\ngood\tO\n\nthe\tO\nSperm\tB-X\nWhale\tI-X\n",
    "more/phrases.json": '[["Old Captain", {"a": "colour"}], "he left port number 3 on a ship"]',
}
EVALUATION = (
    *("old captain", "The Small Village !", "white whale", "mammal", "the old king", "a quay", "big boat", "cooler"),
    *("fresh fish is really good", "the Sperm Whale", "colour", "he left port number 3 on a ship"),
)


@pytest.fixture(scope="module")
def sets(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    (folder / "more").mkdir()
    for name, text in SETS.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def given(tmp_path_factory, mined, mined_mentions) -> dict[str, Path]:
    """A dataset of each kind."""
    folder = tmp_path_factory.mktemp("given")
    near.mined(near.of_words(folder), folder / "negatives")
    paraphrased.chosen(folder, paraphrased.given(folder / "candidates"), *paraphrased.PAPER)
    (folder / "pairs.tsv").write_text("big boat\tlarge boat\nbig ship\ta big boat\nsmall boat\tlittle boat\n")
    run_here(extract_pairs.COMMAND, "--input", str(folder / "pairs.tsv"), "--output", str(folder / "phrase-pairs"))
    flags = ("--operations=character,swap_tokens", "--draws=2", "--output", str(folder / "augmentations"))
    run_here(augment.COMMAND, "--input", str(mined / "contexts-phrases"), *flags)
    found = (mined, mined_mentions, folder)
    return {each.name: each for place in found for each in place.iterdir() if (each / "manifest.json").is_file()}


def decontaminated(given: Path, sets: Path, output: Path, *flags: str, order: int = 1) -> Manifest:
    (made,) = chain_of(
        decontaminate.COMMAND, "--input", str(given), "--evaluation", str(sets), "--output", str(output), *flags
    )
    assert made.build is not None
    run_inline(made.build, order=order)
    return read_manifest(Folder(str(output)))


def all_rows(folder: Path) -> dict[str, list[Row]]:
    return {split: rows(Folder(str(folder)), split) for split in SPLITS}


def listed(output: Path) -> list[Row]:
    files = read_manifest(Folder(str(output))).sides.get("overlaps", [])
    return [row for each in files for row in pq.read_table(output / each.path).to_pylist()]


def left_of(given: list[Row], manifest: Manifest, rules: OverlapRules) -> list[Row]:
    """The rows that are left, by brute force."""
    found = []
    for row in given:
        seen, new = {**row}, {**row}
        if "mask_start" in row:
            seen["context"] = row["context"].replace(str(manifest.options["mask_token"]), row["surface"])
        for name in manifest.kind.texts:
            column, _, field = name.partition(".")
            if field:
                new[column] = [each for each in row[column] if not is_known(EVALUATION, each[field], rules)]
                seen[column] = "" if new[column] else EVALUATION[0]
        if not any(is_known(EVALUATION, seen[name.partition(".")[0]], rules) for name in manifest.kind.texts):
            found.append(new)
    return found


CASES = {
    "contexts": ("--shared-words=4",),
    "contexts-sentences": ("--shared-words=4",),
    "contexts-phrases": (),
    "pairs-mentions": ("--shared-words=5",),
    "pairs-aliases": (),
    "pairs": ("--shared-words=5", "--min-words=1"),
    "phrase-pairs": (),
    "chosen": (),
    "augmentations": (),
    "negatives": ("--min-words=1",),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_left(given, sets, tmp_path, name):
    """The other rows, in order and in as many shards; all checks hold, also against what the rows point into."""
    rules = decontaminate.COMMAND.parse([*CASES[name], "--input=a", "--evaluation=b"])[0][OverlapRules]
    before = read_manifest(Folder(str(given[name])))
    manifest = decontaminated(given[name], sets, tmp_path / "out", *CASES[name])
    assert [*check_dataset(str(tmp_path / "out"))] == []
    assert (" agree with " in summary(str(tmp_path / "out"))) == (" agree with " in summary(str(given[name])))
    assert {split: len(each) for split, each in manifest.splits.items()} == {
        split: len(each) for split, each in before.splits.items()
    }
    was, is_ = all_rows(given[name]), all_rows(tmp_path / "out")
    if name == "contexts":  # negatives are looked for again
        assert any(row["negative"] for row in is_["train"])
        was, is_ = ({split: [{**row, "negative": ""} for row in of[split]] for split in SPLITS} for of in (was, is_))
    assert is_ == {split: left_of(each, before, rules) for split, each in was.items()}
    ledger = manifest.ledger("decontaminate")
    assert (ledger.read, ledger.written) == (before.rows, manifest.rows)
    assert 0 < ledger.filtered["evaluation_text"] == before.rows - manifest.rows < before.rows
    overlaps = listed(tmp_path / "out")
    assert len({(each["shard"], each["row"]) for each in overlaps}) == manifest.counter("rows_with_overlaps")
    assert {each["column"] for each in overlaps} <= {*manifest.kind.texts}


def test_the_table_and_the_notes(given, sets, tmp_path):
    manifest = decontaminated(given["phrase-pairs"], sets, tmp_path / "out")
    names = ("row", "column", "words", "file", "place")
    place = {row["phrase"]: number for number, row in enumerate(rows(Folder(str(given["phrase-pairs"]))))}
    assert sorted(tuple(each[name] for name in names) for each in listed(tmp_path / "out")) == sorted(
        [
            (place["big boat"], "phrase", "big boat", "phrases.txt", 4),
            (place["big ship"], "paraphrase", "big boat", "phrases.txt", 4),
        ]
    )
    assert manifest.notes == [
        "evaluation texts: in 2 of 3 rows (66.67%); 2 were removed",
        "evaluation texts by file: 1 phrases.txt (paraphrase), 1 phrases.txt (phrase); all of them are listed in "
        "overlaps/",
    ]
    decontaminated(given["contexts-phrases"], sets, tmp_path / "phrases")
    assert {(each["words"], each["file"]) for each in listed(tmp_path / "phrases")} == {
        ("old captain", "phrases.txt"),
        ("old captain", "more/phrases.json"),
        ("small village", "phrases.txt"),
        ("white whale", "phrases.txt"),
    }


@pytest.mark.parametrize("name", ["contexts", "negatives"])
def test_marked(given, sets, tmp_path, name):
    """All rows stay as they are, and the same overlaps are listed."""
    manifest = decontaminated(given[name], sets, tmp_path / "marked", "--mark", *CASES[name])
    assert [*check_dataset(str(tmp_path / "marked"))] == []
    assert all_rows(tmp_path / "marked") == all_rows(given[name])
    assert manifest.ledger("decontaminate").filtered == {}
    decontaminated(given[name], sets, tmp_path / "out", *CASES[name])
    assert listed(tmp_path / "marked") == listed(tmp_path / "out") != []


def test_the_same_bytes_in_any_order(given, sets, tmp_path):
    one = decontaminated(given["contexts"], sets, tmp_path / "one", *CASES["contexts"])
    other = decontaminated(given["contexts"], sets, tmp_path / "other", *CASES["contexts"], order=-1)
    assert (one.sha256, one.fingerprint) == (other.sha256, other.fingerprint)


def test_the_fingerprint_is_that_of_what_is_read(given, sets, tmp_path):
    def fingerprint(*flags: str, name: str = "contexts-phrases") -> str:
        places = ("--input", str(given[name]), "--evaluation", str(tmp_path / "sets"), "--output", str(tmp_path / "x"))
        return chain_of(decontaminate.COMMAND, *places, *flags)[0].fingerprint

    shutil.copytree(sets, tmp_path / "sets")
    found = [fingerprint(*flags) for flags in ((), ("--mark",), ("--min-words=1",), ("--shared-words=9",))]
    found.append(fingerprint(name="pairs-aliases"))
    (tmp_path / "sets/phrases.txt").write_text("old captain\n")
    found.append(fingerprint())
    assert len({*found}) == 6
    (tmp_path / "sets").rename(tmp_path / "sets-2")
    shutil.copytree(tmp_path / "sets-2", tmp_path / "sets")
    assert fingerprint() == found[-1]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("contexts-documents", "decontaminate what is made from it: contexts, mentions, sentences"),
        ("embeddings", "decontaminate the phrases or typed phrases that it was made from, and make it again"),
        ("neighbours", "decontaminate the phrases or typed phrases that it was made from"),
        ("candidates", "decontaminate the phrases or typed phrases that it was made from"),
    ],
)
def test_kinds_whose_rows_depend_on_each_other(given, sets, tmp_path, capsys, name, remedy):
    places = ["--input", str(given[name]), "--evaluation", str(sets), "--output", str(tmp_path / "out")]
    assert main(decontaminate.COMMAND, places) == 2
    assert re.search(f"from which no row can be taken alone: {remedy}", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("input_", "evaluation", "said"),
    [
        ("{phrases}", "{here}/labels.txt", "labels.txt: has no text of 2 words or more .read as lines.; leave it out"),
        ("{phrases}", "{phrases}", "--evaluation .*: is a dataset; give its files, such as data/.*parquet"),
        ("{here}/labels.txt", "{here}/labels.txt", "--input .*labels.txt: is no phrasemill dataset; give a finished"),
        ("{phrases}", "{here}/x.bin", "--evaluation: .*x.bin' begins with .* the formats are parquet, .*, lines$"),
        ("{phrases}", "{here}/cut.json", "cut.json: cannot be read as json .*: fetch it again"),
        ("{phrases}", "{here}/all.txt", "no phrases are left .* as evaluation_text .--evaluation, --min-words"),
    ],
)
def test_errors(given, tmp_path, capsys, input_, evaluation, said):
    (tmp_path / "labels.txt").write_text("0\n1\nphrase\n")
    (tmp_path / "x.bin").write_bytes(b"\0\1\2\3")
    (tmp_path / "cut.json").write_text('[["old captain", "pos"')
    found = rows(Folder(str(given["contexts-phrases"])))
    (tmp_path / "all.txt").write_text("".join(f"{row['phrase']}\n" for row in found) + "old captain\n")
    named = {"phrases": given["contexts-phrases"], "here": tmp_path}
    flags = ["--input", input_.format(**named), "--evaluation", evaluation.format(**named)]
    flags += ["--min-words=1"] if "all.txt" in evaluation else []
    assert main(decontaminate.COMMAND, [*flags, "--output", str(tmp_path / "out")]) == 2
    assert re.search(said, capsys.readouterr().err)
