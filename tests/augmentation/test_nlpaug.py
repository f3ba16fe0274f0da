"""nlpaug's augmenters and the contextual one. Importing nlpaug and transformers takes seconds."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from schemas.errors import UserError
from transforms.augmentation.interface import Augmenter
from transforms.augmentation.registry import augmenter_identity, load_augmenter

pytestmark = pytest.mark.heavy

PHRASES = [
    "the necessary receipt of 192.168.1.1",
    "two  blanks",
    "their Government",
    "日本 beautiful",
    "café owners",
    "their receipt",
    "1984",
    "a",
    "it's beautiful,",
] * 3

NAMES = ("nlpaug_keyboard", "nlpaug_ocr", "nlpaug_spelling", "contextual")


@pytest.fixture(scope="module")
def masked_lm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A masked language model that has learnt nothing."""
    torch = pytest.importorskip("torch", reason="needs the extra 'augment'")
    transformers = pytest.importorskip("transformers", reason="needs the extra 'augment'")
    folder = tmp_path_factory.mktemp("model")
    words = (
        "the of their two it beautiful necessary receipt government owners friend house river music letter money ##s"
    )
    vocabulary = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *words.split(),
        *"abcdefghijklmnopqrstuvwxyz.,'0123456789",
    ]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(1)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(vocabulary), **shape)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module", params=NAMES)
def augmenter(request: pytest.FixtureRequest, masked_lm: str) -> Augmenter:
    pytest.importorskip("nlpaug", reason="needs the extra 'augment'")
    return load_augmenter(request.param, {"masked_lm": masked_lm})


def _augmented(augmenter: Augmenter, phrases: list[str], seeds: np.ndarray) -> list[str | None]:
    found: list[str | None] = augmenter.augment(pa.array(phrases, pa.string()), seeds).to_pylist()
    return found


def test_one_token_is_changed(augmenter: Augmenter) -> None:
    seeds = np.arange(len(PHRASES), dtype=np.uint64)
    made = _augmented(augmenter, PHRASES, seeds)
    assert sum(each is not None for each in made) >= 12
    for phrase, text in zip(PHRASES, made, strict=True):
        if text is not None:
            changed = [
                (one, other) for one, other in zip(phrase.split(" "), text.split(" "), strict=True) if one != other
            ]
            assert len(changed) == 1
            assert not any(map(str.isdigit, changed[0][0]))
    assert _augmented(augmenter, ["1984"], seeds[:1]) == [None]
    assert _augmented(augmenter, [], seeds[:0]) == []


def test_a_row_depends_on_itself_alone(augmenter: Augmenter) -> None:
    seeds = np.arange(len(PHRASES), dtype=np.uint64) * np.uint64(7919)
    random.seed(3)
    np.random.seed(3)
    states = random.getstate(), np.random.get_state()[1].tolist()
    made = _augmented(augmenter, PHRASES, seeds)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == states
    alone = [_augmented(augmenter, [phrase], seeds[row : row + 1])[0] for row, phrase in enumerate(PHRASES)]
    assert made == alone
    assert made[::-1] == _augmented(augmenter, PHRASES[::-1], seeds[::-1])
    assert made != _augmented(augmenter, PHRASES, seeds + np.uint64(1))


def test_contextual(masked_lm: str) -> None:
    augmenter = load_augmenter("contextual", {"masked_lm": masked_lm})
    made = _augmented(augmenter, ["Their Receipt's owners"] * 30, np.arange(30, dtype=np.uint64))
    firsts = {each.split(" ")[1] for each in made if each}
    assert all(each[0].isupper() and each.endswith("'s") for each in firsts)
    assert len(firsts) > 3
    identity = augmenter_identity("contextual", {"masked_lm": masked_lm})
    assert identity
    assert identity["model_sha256"]


def test_no_model(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^--masked-lm: no model"):
        augmenter_identity("contextual", {"masked_lm": str(tmp_path)})
