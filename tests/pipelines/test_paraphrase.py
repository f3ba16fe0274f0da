"""Paraphrases from given candidates: the choice, the ledger, the same bytes for any units. And from a real model."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import literal
import near
import pyarrow as pa
import pytest
from paraphrased import PAPER, chosen, given, manifest_of, triples
from test_mine_negatives import minilm

from pipelines import augment, cli, generate_paraphrases, paraphrase
from pipelines.stages import generate_paraphrases as drawing
from pipelines.stages import paraphrase as steps
from schemas.dataset_checks import check_dataset
from schemas.errors import UserError
from schemas.kinds.paraphrases import REASONS, SIDES, holding, replaced
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from transforms.paraphrase import scoring


def test_the_paper_takes_the_first_and_filters_nothing(tmp_path):
    rows = chosen(tmp_path, given(tmp_path / "given"), *PAPER)
    assert triples(rows) == {
        "the old king": ("the aged ruler", "the ancient boat"),
        "a big house": ("a big home", "a large dock"),
        "its main goals": ("primary aims", "a cold winter evening with tea and some bread"),
        "three cats": ("four felines", "three rear ends"),
    }
    assert rows[0]["checks"] == ["banned_words"]
    assert rows[0]["scores"]["positive_log_probability"] == -4
    ledger = manifest_of(tmp_path).ledger("choose_paraphrases")
    assert (ledger.read, ledger.written, ledger.filtered) == (5, 4, {"positive_no_draw": 1})
    assert [*check_dataset(str(tmp_path / "chosen"))] == []


def test_a_filter_and_a_score_beside_a_preset(tmp_path):
    """A phrase without a candidate is filtered with the reason of the one that passed most filters."""
    flags = ("--max-length-ratio", "2.5", "--numbers", "--score", "diversity")
    rows = chosen(tmp_path, given(tmp_path / "given"), *PAPER, *flags)
    assert triples(rows) == {
        "the old king": ("the aged ruler", "the ancient boat"),
        "a big house": ("a large home", "a large dock"),
    }
    assert rows[0]["checks"] == ["banned_words", "max_length_ratio", "numbers"]
    manifest = manifest_of(tmp_path)
    reasons = {"positive_no_draw": 1, "negative_length": 1, "positive_number": 1}
    assert manifest.ledger("choose_paraphrases").filtered == reasons
    assert manifest.counter("positive:number") == manifest.counter("negative:length") == 1
    assert [*check_dataset(str(tmp_path / "chosen"))] == []


def test_a_negative_does_not_say_what_the_positive_does(tmp_path):
    source = given(tmp_path / "given", "bad luck: poor fortune | poor luck: bad fortune, scant chance")
    assert triples(chosen(tmp_path, source, *PAPER, "--contrasts", "affixes")) == {
        "bad luck": ("poor fortune", "scant chance")
    }
    assert manifest_of(tmp_path).counter("negative:repeated") == 1


def test_an_encoder_measures(tmp_path):
    flags = ("--min-similarity", "0.4", "--score", "similarity", "--encoder", minilm())
    rows = chosen(tmp_path, given(tmp_path / "given"), *PAPER, *flags)
    found = {row["phrase"]: row["scores"] for row in rows}
    assert "a big house" in found
    for scores in found.values():
        assert 0.4 <= scores["positive_similarity"] == scores["positive_score"] <= 1
        assert scores["positive_similarity"] > scores["apart"]
    manifest = manifest_of(tmp_path)
    assert manifest.counter("nearer") == manifest.counter("measured") == len(rows)
    assert any("in 100.0%" in each for each in manifest.kind.notes(manifest))
    assert manifest.ledger("choose_paraphrases").filtered["negative_drift"] > 0
    assert [*check_dataset(str(tmp_path / "chosen"))] == []


def test_the_same_bytes_for_any_units(tmp_path):
    lines = [f"the {n} old king: ruler {n}, boss {n} | the {n} old boat: ship {n}" for n in range(40)]
    found = []
    for name, shards, rows, order in (("one", 1, 1 << 11, 1), ("many", 3, 5, -1)):
        source = given(tmp_path / name / "given", "\n".join(lines), shards=shards)
        with patch.multiple(steps, CHOSEN_A_UNIT=rows, ROWS_A_RANGE=15):
            found.append(chosen(tmp_path / name, source, *PAPER, order=order))
    assert len(manifest_of(tmp_path / "one").shards) == 3
    assert manifest_of(tmp_path / "one").sha256 == manifest_of(tmp_path / "many").sha256
    assert len(found[0]) == 40


def test_augment_takes_paraphrases(tmp_path):
    chosen(tmp_path, given(tmp_path / "given"), *PAPER)
    known = literal.dataset(tmp_path / "phrases", [near.phrase_table(["big house", "big home", "quay"])])
    flags = ["--input", str(known.folder), "--paraphrases", str(tmp_path / "chosen"), "--scheme", "phrase=1"]
    build = literal.chain_of(augment.COMMAND, "--output", str(tmp_path / "augmented"), *flags)[-1].build
    assert build is not None
    literal.run_inline(build)
    found = {(row["phrase"], row["augmented"]) for row in literal.rows(build.output)}
    assert found == {("big house", "big home"), ("big home", "big house")}


def test_every_reason_of_the_filters_is_declared():
    assert [*REASONS] == ["no_draw", *scoring.REASONS]


def test_what_there_is_no_measure_for(tmp_path):
    with pytest.raises(UserError, match=r"--score likelihood: .* make the candidates again"):
        chosen(tmp_path, given(tmp_path / "given"), *PAPER, "--score", "likelihood")


# ---- With a real generator


FEW = ("the old house", "the strange picture", "the", "her little child's", "the quick road")
MORE = ("in a quiet sea", "her Ada", "the old child")


def phrases(folder: Path) -> str:
    """Two shards of phrases, one a name; "the" has no word of content."""
    tables = [near.phrase_table([each.lower() for each in own]) for own in (FEW, MORE)]
    surfaces = [pa.array(own, pa.string()) for own in (FEW, MORE)]
    place = tables[0].schema.get_field_index("surface")
    shown = [each.set_column(place, "surface", own) for each, own in zip(tables, surfaces, strict=True)]
    return str(literal.dataset(folder, [each.cast(tables[0].schema) for each in shown]).folder)


def drawn(folder: Path, source: str, model: Path, *flags: str, order: int = 1) -> list[dict]:
    own = ("--input", source, "--output", str(folder), "--generator", "pairs", "--generator-model", str(model))
    build = literal.chain_of(generate_paraphrases.COMMAND, *own, *flags)[-1].build
    assert build is not None
    literal.run_inline(build, order=order)
    return literal.rows(build.output)


def test_a_generator_draws_candidates(tmp_path, tiny_paraphraser):
    source = phrases(tmp_path / "phrases")
    with patch.multiple(drawing, PHRASES_A_UNIT=2):
        rows = drawn(tmp_path / "one", source, tiny_paraphraser, "--draws", "3")
        drawn(tmp_path / "two", source, tiny_paraphraser, "--draws", "3", order=-1)
    one, two = (read_manifest(Folder(str(tmp_path / each))) for each in ("one", "two"))
    assert one.sha256 == two.sha256
    assert [each["phrase"] for each in rows] == [each for each in (*FEW, *MORE) if each not in ("the", "her Ada")]
    assert [each.rows for each in one.shards] == [4, 2]
    ledger = one.ledger("generate_paraphrases")
    assert (ledger.read, ledger.filtered) == (8, {"no_content_word": 1, "kept_words_only": 1})
    for row in rows:
        assert replaced(row["phrase"], row["corrupted"])
        for side, (_, banned) in SIDES.items():
            assert 0 < len(row[f"{side}s"]) <= 3
            assert not any(holding(each["text"], row[banned]) for each in row[f"{side}s"])
            assert all(each["fluency"] < 0 for each in row[f"{side}s"])
    found = {row["phrase"]: {each["text"] for each in row["positives"]} for row in rows}
    assert {"the aged home", "the odd image"} <= {text for texts in found.values() for text in texts}
    assert [*check_dataset(str(tmp_path / "one"))] == []


def test_a_threshold_does_not_draw_again(tmp_path, tiny_paraphraser, capsys):
    source = phrases(tmp_path / "phrases")
    own = ("--generator", "pairs", "--generator-model", str(tiny_paraphraser), "--output", str(tmp_path / "chosen"))
    flags = ("--input", source, *PAPER, "--draws", "2", *own)
    assert cli.main(paraphrase.COMMAND, flags) == 0
    before = capsys.readouterr().out
    assert cli.main(paraphrase.COMMAND, (*flags, "--max-length-ratio", "3", "--overwrite")) == 0
    after = capsys.readouterr().out
    taken = f"{tmp_path / 'chosen'}-candidates: is there already and fits"
    assert taken in after
    assert taken not in before


@pytest.mark.heavy
def test_the_same_bytes_for_one_and_two_workers(tmp_path, tiny_paraphraser):
    source, found = phrases(tmp_path / "phrases"), []
    for workers in "12":
        output = str(tmp_path / workers)
        own = ("--generator", "pairs", "--generator-model", str(tiny_paraphraser), "--workers", workers)
        assert cli.main(paraphrase.COMMAND, ("--input", source, *PAPER, *own, "--output", output)) == 0
        found.append([read_manifest(Folder(f"{output}{part}")).sha256 for part in ("", "-candidates")])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--generator-model", "nowhere/none"), "--generator-model: no model 'nowhere/none'"),
        (("--generator-model", minilm(), "--prompt", "x"), "--prompt x: --generator pairs takes none"),
    ],
)
def test_a_generator_that_there_is_not(tmp_path, flags, message, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match=message):
        literal.chain_of(
            generate_paraphrases.COMMAND, "--input", phrases(tmp_path / "phrases"), "--generator=pairs", *flags
        )
