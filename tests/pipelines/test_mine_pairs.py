"""Pairs by substitution from phrases to a dataset: ledgers, order, pairs of another dataset, wrong options.

The masked language model has learnt nothing, so the scores mean nothing.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from literal import chain_of, dataset, rows, run_inline
from masked_models import make_masked_lm

from pipelines import mine_pairs
from schemas.dataset_checks import check_dataset
from schemas.errors import UserError
from schemas.kinds.alias_pairs import ALIAS_PAIRS
from schemas.kinds.phrases import PHRASES
from schemas.manifest import Manifest, read_manifest
from schemas.storage.folder import Folder
from transforms.augmentation.wordnet import WordNet
from transforms.paraphrase.constraints import banned_words, kept_words, violations

SURFACES = [
    *(f"{one} {thing}" for one in "famous large old".split() for thing in "physicians ships letters".split()),
    "Charles Darwin",
    "the famous ship of the very old king and of his famous old physicians",
    "in 1984",
    "qxzw",
    "of them",
]
ALIASES = [("Cape Town", "the Mother City"), ("whale", "whales"), ("the Sun", "Sol"), ("sea captain", "the skipper")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers", reason="needs the extra 'augment'")
    words = "the of old famous large big huge celebrated physicians doctors ships vessels letters king".split()
    return make_masked_lm(tmp_path_factory.mktemp("model"), words)


def phrases(folder: Path) -> str:
    shares = {"NP": 1.0, "VP": 0.0, "PP": 0.0, "ADJP": 0.0, "ADVP": 0.0}
    row = {"surface_share": 1.0, "label": "NP", "label_shares": shares, "frequency": 2, "document_frequency": 1}
    table = pa.Table.from_pylist([{**row, "phrase": each.lower(), "surface": each} for each in SURFACES], PHRASES)
    dataset(folder, [table.slice(0, 7), table.slice(7)])
    return str(folder)


def aliases(folder: Path) -> str:
    row = {"entity_id": "Q1", "target_title": "T", "section": "", "count_1": 9, "count_2": 8}
    table = [{**row, "alias_1": one, "alias_2": other} for one, other in ALIASES]
    dataset(folder, [pa.Table.from_pylist(table, schema=ALIAS_PAIRS)])
    return str(folder)


def mined(folder: Path, model: str, *flags: str, order: int = 1) -> tuple[list[dict], Manifest]:
    """The rows that the command writes, and their manifest."""
    output = folder / "pairs"
    (source,) = (str(folder / "phrases"),)
    if not (folder / "phrases").exists():
        phrases(folder / "phrases")
    chain = chain_of(mine_pairs.COMMAND, "--input", source, "--output", str(output), "--masked-lm", model, *flags)
    assert chain[-1].build is not None
    run_inline(chain[-1].build, order=order)
    assert [*check_dataset(str(output))] == []
    return rows(Folder(str(output))), read_manifest(Folder(str(output)))


def test_pairs(tmp_path: Path, model: str, database: WordNet) -> None:
    found, manifest = mined(tmp_path, model, "--min-score", "0")
    ledger = manifest.stages[0].ledger
    assert ledger is not None
    assert ledger.read == ledger.written + sum(ledger.filtered.values())
    phrases_found = {each["phrase"] for each in found}
    possible = {each.lower() for each in SURFACES[:9]}
    assert len(phrases_found) > 3
    assert phrases_found <= possible
    # The model knows few words; others must be in WordNet's tagged texts.
    assert (ledger.filtered["too_many_words"], ledger.filtered["no_content"]) == (1, 3)
    assert ledger.filtered["no_substitute"] == 1 + len(possible - phrases_found)
    assert max(Counter(each["phrase"] for each in found).values()) <= 5
    assert {each["origin"] for each in found} == {"substitution"}
    best: dict[str, float] = {}
    for each in found:
        best[each["phrase"]] = max(best.get(each["phrase"], 0), each["score"])
        assert violations(each["paraphrase"], banned_words(each["phrase"], inflections=True), inflections=True) == []
    assert all(each["score"] >= 0.6 * best[each["phrase"]] for each in found)
    again, _ = mined(tmp_path / "again", model, "--min-score", "0", order=-1)
    assert again == found
    high, manifest = mined(tmp_path / "high", model, "--min-score", "0.2")
    assert high == [each for each in found if each["score"] >= 0.2]
    ledger = manifest.stages[0].ledger
    assert ledger is not None
    assert ledger.filtered["below_score"] > 0


def test_pairs_of_another_dataset(tmp_path: Path, model: str, database: WordNet) -> None:
    found, manifest = mined(tmp_path, model, "--pairs", aliases(tmp_path / "aliases"))
    others = [(each["phrase"], each["paraphrase"], each["score"]) for each in found if each["origin"] == "aliases"]
    assert sorted(others) == [
        ("cape town", "the mother city", None),
        ("sea captain", "the skipper", None),
        ("sol", "the sun", None),
        ("the mother city", "cape town", None),
        ("the skipper", "sea captain", None),
        ("the sun", "sol", None),
    ]
    ledger = manifest.stages[1].ledger
    assert ledger is not None
    assert (ledger.read, dict(ledger.filtered)) == (8, {"shared_word": 2})
    names = [(each["phrase"], kept_words(each["phrase"])) for each in found]
    assert all(not kept for _, kept in names)


def test_wrong_options(tmp_path: Path, model: str, database: WordNet) -> None:
    folder = phrases(tmp_path / "phrases")
    for flags, message in [
        (("--masked-lm", str(tmp_path)), "--masked-lm: no model"),
        (("--masked-lm", model, "--thesaurus", str(tmp_path / "nowhere")), "--thesaurus .* is not a file"),
        (("--masked-lm", model, "--pairs", folder), "--pairs .*: holds phrases; give a dataset of "),
    ]:
        with pytest.raises(UserError, match=message):
            chain_of(mine_pairs.COMMAND, "--input", folder, "--output", str(tmp_path / "pairs"), *flags)
