"""Pairs of phrases from files to the sets that the papers make of them: whole runs, ledgers, properties."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import chain_of, rows, run_here, run_inline
from properties import examples

from pipelines import contrast_pairs, extract_pairs, label_pairs
from pipelines.engine.stage import close_stage, open_stage
from pipelines.engine.task_writer import TaskWriter, do_unit
from pipelines.stages import extract_pairs as extract_steps
from pipelines.stages import pair_sets as steps
from schemas.dataset_checks import check_dataset
from schemas.errors import CorruptInput, UserError
from schemas.manifest import Manifest, read_manifest
from schemas.storage.folder import Folder

SIZES = "big large huge great vast".split()
THINGS = "boat ship harbour port sea ocean town city".split()
PAIRS = [
    (f"{one} {thing}", f"{other} {thing}", 1 + number / 10)
    for number, thing in enumerate(THINGS[:6])
    for one in SIZES[:3]
    for other in SIZES[2:]
    if one != other
]
"""Distinct pairs that share one word."""


def tsv(path: Path, pairs) -> str:
    path.write_text("".join("\t".join(map(str, pair)) + "\n" for pair in pairs))
    return str(path)


def make(command, output: Path, *flags: str, order: int = 1) -> Manifest:
    """All datasets of a command, done in this process."""
    for dataset in chain_of(command, "--output", str(output), *flags):
        if dataset.build is not None:
            run_inline(dataset.build, order=order)
    assert [*check_dataset(str(output))] == []
    return read_manifest(Folder(str(output)))


def found_in(output: Path, *splits: str) -> list[dict]:
    return [row for split in splits or ("train", "validation", "test") for row in rows(Folder(str(output)), split)]


def filtered(manifest: Manifest, stage: int = 0) -> dict[str, int]:
    ledger = manifest.stages[stage].ledger
    assert ledger is not None
    return dict(ledger.filtered)


# ---- Pairs


def test_pairs_of_several_files_once_each(tmp_path):
    line = "[NP] ||| {} ||| {} ||| PPDB2.0Score={} ||| 0-0 ||| {}\n"
    given_lines = [
        line.format("big boat", "large boat", 3.5, "Equivalence"),
        line.format("big boat", "large boat", 4.5, "Independent"),
        line.format("large boat", "big boat", 2.5, "Equivalence"),
        line.format("big [NP,1]", "large [NP,1]", 2.5, "Equivalence"),
        line.format("big boat", "big  boat", 2.5, "Equivalence"),
        "[NP] ||| big boat\n",
    ]
    (tmp_path / "ppdb.gz").write_bytes(gzip.compress("".join(given_lines).encode()))
    rows_ = [["big boat", "large boat", "pos", 9.0], ["big boat", "old port", "neg", None]]
    (tmp_path / "eval.json").write_text(json.dumps(rows_))
    inputs = ["--input", str(tmp_path / "ppdb.gz"), "--input", str(tmp_path / "eval.json")]
    manifest = make(extract_pairs.COMMAND, tmp_path / "pairs", *inputs)
    both = {"phrase": "big boat", "paraphrase": "large boat", "score": 9.0, "relation": None, "origin": "json"}
    back = {"phrase": "large boat", "paraphrase": "big boat", "score": 2.5, "relation": "Equivalence", "origin": "ppdb"}
    assert found_in(tmp_path / "pairs") == [both, back]
    assert filtered(manifest, 0) == {"pattern": 1, "identical": 1, "labelled_negative": 1}
    assert filtered(manifest, 1) == {"repeated": 2}
    assert [*manifest.kind.notes(manifest)] == ["pairs: 1 are there in both directions; --one-direction keeps one"]
    (reject,) = rows_of_side(tmp_path / "pairs", "rejects")
    place = len("".join(given_lines[:-1]))
    assert (reject["reason"], reject["source"], reject["position"]) == ("bad_pair", "ppdb.gz", f"byte {place}")
    assert reject["excerpt"] == "[NP] ||| big boat"
    one = make(extract_pairs.COMMAND, tmp_path / "one", *inputs, "--one-direction")
    assert found_in(tmp_path / "one") == [both]
    assert filtered(one, 1) == {"repeated": 2, "reversed": 1}


def rows_of_side(output: Path, side: str) -> list[dict]:
    import pyarrow.parquet as pq

    manifest = read_manifest(Folder(str(output)))
    return [row for each in manifest.sides[side] for row in pq.read_table(output / each.path).to_pylist()]


def test_the_preset_of_pairwise_gru(tmp_path):
    (tmp_path / "words.txt").write_text("2 1\n" + "".join(f"{word} 0.1\n" for word in "big large boat ship".split()))
    pairs = [("big boat", "large boat"), ("boat", "ship"), ("big boat", "big boat"), ("big boat", "vast boat")]
    place = tsv(tmp_path / "pairs.tsv", [*pairs, ("big boat .", "large boat")])
    flags = ("--preset", "pgru", "--vocabulary", str(tmp_path / "words.txt"))
    manifest = make(extract_pairs.COMMAND, tmp_path / "pairs", "--input", place, *flags)
    assert [(row["phrase"], row["paraphrase"]) for row in found_in(tmp_path / "pairs")] == [("big boat", "large boat")]
    assert filtered(manifest) == {"single_words": 1, "identical": 1, "unknown_word": 1, "non_letter": 1}
    fingerprint = manifest.fingerprint
    (tmp_path / "words.txt").write_text("big\n")
    again = chain_of(extract_pairs.COMMAND, "--output", str(tmp_path / "x"), "--input", place, *flags)
    assert again[-1].fingerprint != fingerprint


class Killed(Exception):
    pass


def test_a_compressed_file_goes_on_from_its_last_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(extract_steps, "PAIRS_A_FILE", 10)
    text = "".join("\t".join(map(str, pair)) + "\n" for pair in PAIRS)
    (tmp_path / "pairs.tsv.gz").write_bytes(gzip.compress(text.encode()))
    flags = ("--input", str(tmp_path / "pairs.tsv.gz"), "--output")
    whole = make(extract_pairs.COMMAND, tmp_path / "whole", *flags[:2])
    (build,) = (each.build for each in chain_of(extract_pairs.COMMAND, *flags, str(tmp_path / "killed")))
    assert build is not None
    build.begin(resume=False)
    (unit,) = open_stage(build.work, build.stages[0])
    checkpoint = TaskWriter.checkpoint

    def kill(write, state):
        checkpoint(write, state)
        if state == [0, 30]:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(TaskWriter, "checkpoint", kill)
        with pytest.raises(Killed):
            do_unit(build.work, build.stages[0], unit)
    assert TaskWriter(build.work, build.stages[0], unit, "x").resumed == [0, 30]
    for stage in build.stages:
        for each in open_stage(build.work, stage):
            do_unit(build.work, stage, each)
        close_stage(build.work, stage)
    build.finish()
    found = read_manifest(build.output)
    assert found.sha256 == whole.sha256
    assert found.stages[0].ledger == whole.stages[0].ledger


def test_damaged_input_ends_the_run_or_is_a_reject(tmp_path):
    data = gzip.compress("".join(f"{one}\t{other}\n" for one, other, _ in PAIRS).encode())
    (tmp_path / "pairs.tsv.gz").write_bytes(data[:-20])
    flags = ("--input", str(tmp_path / "pairs.tsv.gz"), "--input-format", "tsv")
    with pytest.raises(CorruptInput, match="ends inside a gzip member"):
        make(extract_pairs.COMMAND, tmp_path / "pairs", *flags)
    manifest = make(extract_pairs.COMMAND, tmp_path / "skipped", *flags, "--on-corrupt", "skip")
    assert manifest.stages[0].ledger.rejected["truncated"] == 1


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--preset", "pgru"), "--preset pgru: needs the words of the embeddings"),
        (("--vocabulary", "none.txt"), "--vocabulary none.txt: is not a file"),
        (("--input-format", "text"), "invalid choice"),
        (("--min-score", "nan"), "must be a number"),
    ],
)
def test_errors(tmp_path, flags, said):
    place = tsv(tmp_path / "pairs.tsv", PAIRS)
    with pytest.raises(UserError, match=said):
        chain_of(extract_pairs.COMMAND, "--input", place, "--output", str(tmp_path / "out"), *flags)


def test_there_is_no_sample_of_pairs(tmp_path):
    with pytest.raises(UserError, match="required: --input"):
        chain_of(extract_pairs.COMMAND, "--output", str(tmp_path / "out"))


# ---- Labelled pairs

CHARACTERS = st.sampled_from([f"{size} {thing}" for size in SIZES for thing in THINGS[:3]])


def undirected(rows_, label: int, other: str = "other") -> set[frozenset[str]]:
    return {frozenset((row["phrase"], row[other])) for row in rows_ if row["label"] == label}


@examples(3)
@given(
    st.lists(st.tuples(CHARACTERS, CHARACTERS), min_size=2, max_size=40),
    st.randoms(use_true_random=False),
    st.sampled_from(["ppdb", "ppdb_filtered"]),
)
def test_labels_of_any_pairs_in_any_order(tmp_path_factory, pairs, random, name):
    """Balanced, also by each word; no negative is a positive; the same bytes for any order of input and units."""
    if all(one == other for one, other in pairs):
        return
    folder = tmp_path_factory.mktemp("labels")
    shuffled = [*pairs]
    random.shuffle(shuffled)
    made = []
    for number, some in enumerate((pairs, shuffled)):
        (folder / str(number)).mkdir()
        place = tsv(folder / str(number) / "pairs.tsv", some)
        flags = ("--set", name, "--splits", "70,15,15", "--input", place)
        chain = chain_of(label_pairs.COMMAND, "--output", str(folder / str(number) / "out"), *flags)
        for dataset in chain:
            run_inline(dataset.build, order=1 - 2 * number)
        made.append(read_manifest(chain[-1].folder))
    assert made[0].sha256 == made[1].sha256
    found = found_in(folder / "0" / "out")
    known = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    assert undirected(found, 1) <= known
    assert not undirected(found, 0) & known
    assert Counter(row["label"] for row in found)[0] * 2 == len(found)
    if name == "ppdb_filtered":
        words = defaultdict(Counter)
        for row in found:
            (word,) = {*row["phrase"].split()} & {*row["other"].split()}
            words[word][row["label"]] += 1
        assert all(each[0] == each[1] for each in words.values())
    else:
        lost = filtered(made[0], 2).get("no_negative", 0)
        assert len(found) == 2 * (len({pair for pair in pairs if pair[0] != pair[1]}) - lost)
    split_of: dict[frozenset[str], set[str]] = defaultdict(set)
    for split in made[0].splits:
        for row in found_in(folder / "0" / "out", split):
            split_of[frozenset((row["phrase"], row["other"]))].add(split)
    assert all(len(each) == 1 for each in split_of.values())
    if found:
        assert [*check_dataset(str(folder / "0" / "out"))] == []


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> str:
    return tsv(tmp_path_factory.mktemp("given") / "pairs.tsv", PAIRS)


@pytest.mark.parametrize("name", ["ppdb", "ppdb_filtered"])
def test_ranges_and_the_order_of_units_change_nothing_but_the_files(place, tmp_path, monkeypatch, name):
    command, flags = label_pairs.COMMAND, ("--set", name, "--splits", "70,15,15")
    make(command, tmp_path / "whole", "--input", place, *flags)
    for module, names in (
        (extract_steps, ("PAIRS_A_FILE", "PAIRS_A_RANGE", "UNIT_BYTES")),
        (steps, ("ROWS_A_RANGE", "ROWS_A_SHARD", "ROW_GROUP")),
    ):
        for each in names:
            monkeypatch.setattr(module, each, 90)
    parts = make(command, tmp_path / "parts", "--input", place, *flags, order=-1)
    assert len(parts.shards) > len(parts.splits)
    for split in parts.splits:
        assert found_in(tmp_path / "parts", split) == found_in(tmp_path / "whole", split)


def test_the_command_gives_the_same_bytes(place, tmp_path):
    one = make(label_pairs.COMMAND, tmp_path / "one", "--input", place, "--set", "ppdb")
    run_here(label_pairs.COMMAND, "--input", place, "--set", "ppdb", "--output", str(tmp_path / "two"))
    assert read_manifest(Folder(str(tmp_path / "two"))).sha256 == one.sha256


def test_rows_of_ppdb(place, tmp_path):
    found = make(label_pairs.COMMAND, tmp_path / "all", "--input", place)
    assert found.rows == 2 * len(PAIRS)
    few = make(label_pairs.COMMAND, tmp_path / "few", "--input", place, "--rows", "51")
    assert few.rows == 50
    assert filtered(few, -1) == {"beyond_rows": 2 * len(PAIRS) - 50}
    every = found_in(tmp_path / "all")
    for label in (0, 1):
        own = [row for row in found_in(tmp_path / "few") if row["label"] == label]
        assert own == [row for row in every if row["label"] == label][:25]


def test_the_phrases_of_one_word_are_limited(place, tmp_path):
    flags = ("--set", "ppdb_filtered", "--phrases-per-word", "4")
    found = make(label_pairs.COMMAND, tmp_path / "few", "--input", place, *flags)
    assert filtered(found, 0)["beyond_phrases"] + filtered(found, 1).get("beyond_phrases", 0) > 0
    whole = make(label_pairs.COMMAND, tmp_path / "all", "--input", place, "--set", "ppdb_filtered")
    assert "beyond_phrases" not in filtered(whole, 0)


PAWS = [
    ("1", "The good man is bad .", "The bad man is good .", "0"),
    ("2", "The good man is here .", "Here is the good man .", "1"),
    ("3", "One two three four five six seven eight nine", "Two one three four five six seven eight nine", "0"),
    ("4", "One two three four five six seven eight nine ten", "Two one", "1"),
    ("5", "A b .", "A b .", "1"),
    ("6", "The good man is bad .", "The bad man is good .", "0"),
    ("7", "Yes .", "No .", "0"),
    ("8", "No .", "Yes .", "1"),
    ("9", "B a .", "A b .", "1"),
    ("10", "C a .", "A c .", "1"),
]


def test_short_pairs_of_paws(tmp_path):
    place = tsv(tmp_path / "train.tsv", [("id", "sentence1", "sentence2", "label"), *PAWS])
    found = make(label_pairs.COMMAND, tmp_path / "short", "--set", "paws_short", "--input", place)
    assert filtered(found, 0) == {"heading": 1, "long_sentence_pair": 1, "identical": 1}
    assert filtered(found, 1) == {"repeated_row": 1, "both_labels": 2}
    assert filtered(found, 2) == {"beyond_rows": 1}
    read = found_in(tmp_path / "short")
    assert {row["phrase"] for row in read if not row["label"]} == {PAWS[0][1], PAWS[2][1]}
    assert {row["phrase"] for row in read if row["label"]} < {PAWS[1][1], PAWS[8][1], PAWS[9][1]}
    assert [row["origin"] for row in read] == ["paws"] * 4
    two = make(label_pairs.COMMAND, tmp_path / "two", "--set", "paws_short", "--input", place, "--rows", "2")
    assert (two.rows, two.fingerprint != found.fingerprint) == (2, True)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--set", "paws_short", "--input", "{pairs}"), "--set paws_short: is made from files of labelled pairs"),
        (("--set", "ppdb_filtered", "--rows", "9", "--input", "{pairs}"), "--rows: is not for ppdb_filtered"),
        (("--splits", "70,15,10,5", "--input", "{pairs}"), "must be the sizes of train, validation and test"),
        (("--splits", "0", "--input", "{pairs}"), "must be the sizes of train, validation and test"),
        (("--input", "{labelled}"), "holds labelled pairs; give pairs or files of pairs"),
    ],
)
def test_what_cannot_be_labelled(place, tmp_path, flags, said):
    make(label_pairs.COMMAND, tmp_path / "labelled", "--input", place)
    places = {"pairs": str(tmp_path / "labelled-pairs"), "labelled": str(tmp_path / "labelled")}
    with pytest.raises(UserError, match=said):
        chain_of(label_pairs.COMMAND, "--output", str(tmp_path / "out"), *(each.format(**places) for each in flags))


# ---- Contrasts


def test_contrasts_are_distinct_and_no_paraphrases(place, tmp_path):
    manifest = make(contrast_pairs.COMMAND, tmp_path / "contrasts", "--input", place, "--contrasts", "20")
    known = defaultdict(set)
    for one, other, _ in PAIRS:
        known[one] |= {one, other}
        known[other] |= {one, other}
    found = found_in(tmp_path / "contrasts")
    assert sorted((row["phrase"], row["paraphrase"]) for row in found) == sorted(pair[:2] for pair in PAIRS)
    for row in found:
        assert len({*row["contrasts"]}) == len(row["contrasts"]) == 20
        assert {*row["contrasts"]} <= {*known} - known[row["phrase"]]
    shares = [sum(shard.rows for shard in shards) / manifest.rows for shards in manifest.splits.values()]
    assert [*manifest.splits] == ["train", "validation", "test"]
    assert shares[0] == pytest.approx(0.8, abs=0.15)


def test_too_few_phrases_for_the_contrasts(tmp_path):
    place = tsv(tmp_path / "pairs.tsv", [("a b", "c d"), ("e f", "g h"), ("e f", "a b"), ("i j", "k l")])
    flags = ("--input", place, "--contrasts", "4", "--splits", "1")
    manifest = make(contrast_pairs.COMMAND, tmp_path / "contrasts", *flags)
    assert filtered(manifest, 2) == {"too_few_phrases": 3}
    (row,) = found_in(tmp_path / "contrasts")
    assert (row["phrase"], {*row["contrasts"]}) == ("i j", {"a b", "c d", "e f", "g h"})
