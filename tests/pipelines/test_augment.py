"""Augmentations from phrases to a dataset: draws, shares, paraphrases, the order of rows, and damaged rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from literal import chain_of, dataset, rows, run_here, run_inline

from pipelines import augment
from pipelines.stages import augment as steps
from schemas.dataset_checks import check_dataset
from schemas.errors import UserError
from schemas.kinds.alias_pairs import ALIAS_PAIRS
from schemas.kinds.phrases import PHRASES
from schemas.manifest import Manifest, read_manifest
from schemas.storage.folder import Folder

WORDS = "whales sea captains of the old harbour town sailed into bright morning light with great courage".split()
LITERAL = [f"{one} {other} number {n}" for n, one in enumerate(WORDS) for other in WORDS]
"""Phrases that every operation changes."""

OPERATIONS = "--operations=character,swap_tokens"

NEVER = ("1984", "3.14", "192.168.1.1", "ox")


def phrases(folder: Path, texts, *, shards: int = 1) -> str:
    """A dataset of these phrases."""
    shares = {"NP": 1.0, "VP": 0.0, "PP": 0.0, "ADJP": 0.0, "ADVP": 0.0}
    row = {"surface_share": 1.0, "label": "NP", "label_shares": shares, "frequency": 2, "document_frequency": 1}
    table = pa.Table.from_pylist([{**row, "phrase": text, "surface": text} for text in texts], schema=PHRASES)
    step = -(-table.num_rows // shards)
    dataset(folder, [table.slice(n * step, step) for n in range(shards)])
    return str(folder)


def aliases(folder: Path, pairs) -> str:
    """A dataset of these pairs, with the mentions by the rarer of the two."""
    row = {"entity_id": "Q1", "target_title": "T", "section": "", "count_1": 99}
    named = [{**row, "alias_1": one, "alias_2": other, "count_2": count} for one, other, count in pairs]
    dataset(folder, [pa.Table.from_pylist(named, schema=ALIAS_PAIRS)])
    return str(folder)


def augmented(folder: Path, *flags: str, order: int = 1) -> list[dict]:
    """The rows that the command writes."""
    output = folder / "augmented"
    chain = chain_of(augment.COMMAND, "--output", str(output), OPERATIONS, *flags)
    assert chain[-1].build is not None
    run_inline(chain[-1].build, order=order)
    return rows(Folder(str(output)))


def manifest_of(folder: Path) -> Manifest:
    return read_manifest(Folder(str(folder / "augmented")))


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> str:
    return phrases(tmp_path_factory.mktemp("given") / "phrases", [*LITERAL, *NEVER])


@pytest.fixture(scope="module")
def made(given: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    folder = tmp_path_factory.mktemp("made")
    return folder, augmented(folder, "--input", given, "--draws", "4")


def by_draw(found: list[dict]) -> dict[tuple[str, int], dict]:
    return {(row["phrase"], row["draw"]): row for row in found}


def test_a_draw_depends_on_its_phrase_its_number_and_the_seed_alone(made, tmp_path):
    whole = by_draw(made[1])
    few = phrases(tmp_path / "few", LITERAL[::3][::-1])
    part = by_draw(augmented(tmp_path / "part", "--input", few, "--draws", "2"))
    assert part == {key: row for key, row in whole.items() if key[0] in LITERAL[::3] and key[1] < 2}
    other = by_draw(augmented(tmp_path / "other", "--input", few, "--draws", "2", "--seed", "1"))
    same = sum(row == part[key] for key, row in other.items())
    assert other.keys() == part.keys()
    assert same < len(part) / 4


@pytest.mark.parametrize("order", [1, -1])
def test_units_and_their_order_change_nothing_but_the_files(given, made, tmp_path, monkeypatch, order):
    monkeypatch.setattr(steps, "DRAWS_A_RANGE", 90)
    monkeypatch.setattr(steps, "BATCH", 12)
    texts = [row["phrase"] for row in rows(Folder(given))]
    shards = phrases(tmp_path / "shards", texts, shards=3)
    found = augmented(tmp_path, "--input", shards, "--draws", "4", order=order)
    assert by_draw(found) == by_draw(made[1])
    assert len(manifest_of(tmp_path).shards) == -(-len(texts) * 4 // 90)
    assert [*check_dataset(str(tmp_path / "augmented"))] == []


def test_the_shards_are_the_same_bytes_for_any_workers(given, made, tmp_path):
    run_here(augment.COMMAND, "--input", given, OPERATIONS, "--draws=4", "--output", str(tmp_path / "augmented"))
    assert manifest_of(tmp_path).sha256 == manifest_of(made[0]).sha256


def test_ledger_and_counters(made):
    manifest = manifest_of(made[0])
    ledger = manifest.ledger("augment")
    assert (ledger.read, ledger.filtered["nothing_to_change"]) == ((len(LITERAL) + len(NEVER)) * 4, len(NEVER) * 4)
    found = Counter(row["operation"] for row in made[1])
    assert {f"operation:{name}": n for name, n in found.items()}.items() <= manifest.stage("augment").counters.items()
    texts = {(row["phrase"], row["augmented"]) for row in made[1]}
    assert manifest.counter("repeated") == len(made[1]) - len(texts) > 0


ALIASES = [
    ("Ada Lovelace", "The Countess of Lovelace", 3),
    ("countess of lovelace", "Ada", 2),
    ("the sea", "SEA", 9),  # no other words
    ("NATO", "North Atlantic Treaty Organization", 4),
]


def test_paraphrases_of_the_given_pairs(tmp_path):
    """Without article and case; in lower case for a phrase without a capital; each pair in both directions."""
    given = phrases(tmp_path / "phrases", ["ada lovelace", "countess of lovelace", "NATO", "nato", "sea", "the sea"])
    pairs = aliases(tmp_path / "aliases", ALIASES)
    flags = ["--input", given, "--paraphrases", pairs, "--scheme", "phrase=1", "--draws", "30"]
    found = augmented(tmp_path, *flags)
    made = {}
    for row in found:
        assert (row["operation"], row["granularity"]) == ("paraphrase", "phrase")
        made.setdefault(row["phrase"], Counter())[row["augmented"]] += 1
    assert {phrase: {*texts} for phrase, texts in made.items()} == {
        "ada lovelace": {"countess of lovelace"},
        "countess of lovelace": {"ada lovelace", "ada"},
        "NATO": {"North Atlantic Treaty Organization"},
        "nato": {"north atlantic treaty organization"},
    }
    assert made["countess of lovelace"]["ada lovelace"] > made["countess of lovelace"]["ada"] > 3
    manifest = manifest_of(tmp_path)
    assert manifest.ledger("augment").filtered["nothing_to_change"] == 60
    assert [each.name for each in manifest.inputs] == ["phrases", "aliases"]
    assert [*check_dataset(str(tmp_path / "augmented"))] == []


def test_without_paraphrases_their_share_goes_to_the_others_and_the_run_says_so(made):
    manifest = manifest_of(made[0])
    assert sum(share for _, _, share in manifest.options["operations"]) == pytest.approx(1)
    assert "paraphrase" not in {name for name, _, _ in manifest.options["operations"]}
    assert any("--paraphrases" in note for note in manifest.kind.notes(manifest))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--paraphrases", "{given}"), "given/phrases: holds phrases; give a dataset of aliases"),
        (("--paraphrases", "{given}-none"), "no such dataset"),
        (("--scheme", "character=x"), "must be paper, code, or NAME=SHARE"),
        (("--scheme", "words=.5"), "words=.5: no share of an operation or granularity"),
        (("--scheme", "phrase=1"), "--scheme phrase=1: no operation has a share; .*--paraphrases"),
        (("--operations", "magic"), "choose among "),
    ],
)
def test_errors(given, tmp_path, flags, message):
    given_here = tmp_path / "given"
    given_here.mkdir()
    (given_here / "phrases").symlink_to(given)
    chosen = [flag.format(given=given_here / "phrases") for flag in flags]
    with pytest.raises(UserError, match=message):
        chain_of(augment.COMMAND, "--input", given, "--output", str(tmp_path / "out"), *chosen)
