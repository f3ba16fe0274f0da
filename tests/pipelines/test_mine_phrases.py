"""mine_phrases on real sentences: the real stages against brute force, and what the command prints and keeps."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from breaking import edit, field, rewrite
from literal import Row, chain_of, dataset, rows, run_here, run_inline, treebank_shards
from typed_rows import TYPES, expected, guessed

from pipelines import corpus, mine_phrases
from pipelines.cli import main as run
from schemas.check import main
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.terms import ENTITY_TYPES
from transforms.phrases.options import LEAST_FREQUENCY, TYPED_RULES, PhraseRules, Vocabulary


class Given(NamedTuple):
    """Sentences of a treebank with entities at some places, and the typed phrases that they should give."""

    sentences: corpus.ChainDataset
    entities: corpus.ChainDataset
    phrases: list[Row]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory, test_data: Path) -> Given:
    folder = tmp_path_factory.mktemp("typed")
    shards = treebank_shards(test_data / "treebanks/gum/dev.ptb", shards=3)
    documents = dataset(folder / "documents", [each.documents.slice(0, 4) for each in shards])
    tables = [each.sentences.slice(0, 48) for each in shards]
    annotated = [guessed(table) for table in tables]
    found = expected(tables, annotated, "head", TYPED_RULES)
    sentences = dataset(folder / "sentences", tables, made_from=[documents])
    entities = dataset(
        folder / "entities", annotated, made_from=[sentences], entity_types=sorted(ENTITY_TYPES), version=1
    )
    return Given(sentences, entities, [row for row in found if row["frequency"] >= LEAST_FREQUENCY])


@pytest.fixture(scope="module")
def mined(given: Given) -> Folder:
    """The typed phrases, by the command."""
    output = given.entities.folder.beside("-typed")
    run_here(mine_phrases.COMMAND, "--input", given.entities.folder.uri, "--output", output.uri)
    return output


def test_the_phrases_are_those_of_brute_force(given, mined):
    assert rows(mined) == given.phrases
    assert len({row["type"] for row in given.phrases}) > 20


@pytest.mark.parametrize("order", [1, -1])
def test_the_same_bytes_in_any_order_of_units(given, mined, tmp_path, order):
    flags = ("--input", given.entities.folder.uri, "--output", str(tmp_path / "typed"))
    build = chain_of(mine_phrases.COMMAND, *flags)[-1].build
    assert build is not None
    run_inline(build, order=order)
    found, wanted = read_manifest(build.output), read_manifest(mined)
    assert found.fingerprint == wanted.fingerprint
    assert [shard.sha256 for shard in found.shards] == [shard.sha256 for shard in wanted.shards]


def test_any_phrases_takes_typed_phrases_as_they_are(mined, tmp_path):
    source = corpus.given([mined.uri], input_format=None)
    options = mine_phrases.COMMAND.parse([])[0]
    (found,) = corpus.any_phrases(source, options, Folder(str(tmp_path / "out")))
    assert (found.folder, found.build) == (mined, None)


def test_any_phrases_makes_them_beside_the_output(given, mined, tmp_path):
    source = corpus.given([given.entities.folder.uri], input_format=None)
    options = mine_phrases.COMMAND.parse([])[0]
    chain = corpus.any_phrases(source, options, Folder(str(tmp_path / "out")))
    assert [each.folder.name for each in chain] == ["sentences", "entities", "out-phrases"]
    assert chain[-1].fingerprint == read_manifest(mined).fingerprint


def test_the_distribution_is_said_beside_that_of_the_paper(given, mined):
    manifest = read_manifest(mined)
    (note,) = manifest.kind.notes(manifest)
    nouns = sum(row["label"] == "NP" for row in given.phrases) / len(given.phrases)
    other = sum(row["entity_type"] == "OTHER" for row in given.phrases) / len(given.phrases)
    assert f"NP {nouns:.1%} (60.1%), PP" in note
    assert note.endswith(f"OTHER {other:.1%} (88.5%)")
    assert manifest.options["entity_types"] == list(TYPES)


def test_entities_without_their_sentences(given, tmp_path, capsys):
    entities = tmp_path / "entities"
    shutil.copytree(given.entities.folder.uri, entities)
    assert run(mine_phrases.COMMAND, ["--input", str(entities), "--output", str(tmp_path / "typed")]) == 2
    said = capsys.readouterr().err
    assert "entities: give the sentences dataset that it was made from with --input instead (" in said


def test_what_is_kept_by_default_is_dropped_on_request():
    chosen = mine_phrases.COMMAND.parse(["--drop-numbers", "--max-phrase-tokens=5", "--min-frequency=3"])[0]
    assert chosen[PhraseRules] == replace(TYPED_RULES, drop_numbers=True, max_tokens=5)
    assert (chosen[Vocabulary].most, chosen[Vocabulary].least) == (None, 3)
    line = mine_phrases.COMMAND.line(*chosen)
    assert line.endswith("pipelines.mine_phrases --max-phrase-tokens 5 --drop-numbers --min-frequency 3")


@pytest.mark.heavy
def test_the_plan_finds_entities_of_a_sample(given, tmp_path, capsys):
    flags = ["--input", given.sentences.folder.uri, "--output", str(tmp_path / "typed"), "--plan"]
    assert run(mine_phrases.COMMAND, flags) == 0
    said = capsys.readouterr().out
    assert re.search(r"annotated sentences .*\n +find_entities .*\n.* typed phrases .*\n +count ", said), said


def shares(**values: float) -> list[Row]:
    return [{"type": name.replace("_", "-", 1), "share": share} for name, share in values.items()]


BROKEN = {
    "type of two halves": (
        rewrite(field(0, entity_type="PERSON")),
        r"row 0: type is not <label>-<entity_type>",
    ),
    "unknown entity type": (
        rewrite(field(0, entity_type="THING", type="NP-THING")),
        "row 0: entity_type is not one of PERSON, NORP",
    ),
    "not the most frequent": (
        rewrite(field(0, label="NP", type="NP-GPE", entity_type="GPE", type_shares=shares(NP_OTHER=0.7, NP_GPE=0.3))),
        'row 0: type is not the first of type_shares with its label: ".*": type "NP-GPE", NP-OTHER 0.7, NP-GPE 0.3',
    ),
    "shares in disorder": (
        rewrite(field(0, type_shares=shares(NP_GPE=0.3, NP_OTHER=0.7))),
        "row 0: type_shares are not in order",
    ),
    "shares in disorder by ties": (
        rewrite(field(0, type_shares=shares(NP_OTHER=0.5, NP_GPE=0.5))),
        "row 0: type_shares are not in order",
    ),
    "shares of another label": (
        rewrite(field(0, type_shares=shares(NP_OTHER=0.6, VP_OTHER=0.4))),
        "row 0: type_shares do not add up to label_shares",
    ),
    "unknown share": (
        rewrite(field(0, type_shares=shares(NP_OTHER=1.0, XP_OTHER=0.1))),
        "row 0: type_shares have an unknown type, or a share",
    ),
    "no shares": (rewrite(field(0, type_shares=[])), "row 0: type_shares do not add up to label_shares"),
    "a rule of phrases": (rewrite(field(0, surface="")), "row 0: the surface is empty"),
    "counters": (
        edit(
            lambda data: next(each for each in data["stages"] if each["name"] == "select")["counters"].pop(
                "type:NP-OTHER"
            )
        ),
        'rows count as "type:NP-OTHER"; the manifest says 0',
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_found(mined, tmp_path, capsys, case):
    break_, message = BROKEN[case]
    folder = tmp_path / "typed"
    shutil.copytree(mined.uri, folder)
    break_(folder)
    assert main([str(folder)]) == 1
    assert re.search(message, shown := capsys.readouterr().out), shown


def test_what_is_sound_is_ok(mined, capsys):
    assert main([mined.uri]) == 0
    assert re.search(r"ok: \d+ TypedPhrase rows in 1 shard, .*, ledgers add up", capsys.readouterr().out)
