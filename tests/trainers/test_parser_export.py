"""The exported graph compared with the network in torch; a sentence's result does not depend on other sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.errors import UserError
from transforms.parsing.phrasemill.encoding import CRAFT, MAX_WORDS, Encoder

LABELS = ("NP", "VP", "PP", "ADJP", "ADVP", "S", "SBAR")
TAGS = tuple("DT NN VBZ . JJ".split())
HEADS = 2
ENCODER = Encoder()

WORDS = st.sampled_from("the The old house of of NATO Unaffordableness is B2B . , e.g. \u200b naïve 中国".split(" "))
SENTENCES = st.lists(st.lists(WORDS, max_size=25), min_size=1, max_size=8)


def network() -> ParserNetwork:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=48, type_vocab_size=SHAPES
    )
    network = ParserNetwork(
        transformers.BertModel(config, add_pooling_layer=False), labels=len(LABELS), tags=len(TAGS), hidden=16
    ).eval()
    for name, values in network.named_parameters():
        if name != "start_bias.bias":
            torch.nn.init.normal_(values, std=0.3)
    # Word embeddings that are exact after rounding to 255 steps in a row.
    words = network.encoder.embeddings.word_embeddings.weight.data
    words.copy_((words * 200).round().clamp(-126, 126))[:, 0] = 127
    words /= 200
    return network


LOWEST = np.full(len(LABELS), -1e20, np.float32)
SAMPLE = [["The", "old", "house", "of", "NATO", "is", "."], ["naïve", "of", ","], ["B2B"], ["the", "house"] * 20]


def exported(**changes: object) -> bytes:
    arguments = {
        "heads": HEADS,
        "labels": LABELS,
        "tags": TAGS,
        "threshold": [0.5] * len(LABELS),
        "calibration": [batch for _, batch in ENCODER.encode(SAMPLE).equal_batches(100)],
        "metadata": {"commit": "c0ffee"},
    }
    return export.export(WEIGHTS, **{**arguments, **changes})


def session_of(content: bytes) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(content, session_options(), ["CPUExecutionProvider"])


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """What takes seconds to import and to make, when a test here runs and not when all are collected."""
    pytest.importorskip("torch")
    global onnx, torch, transformers
    onnx = pytest.importorskip("onnx")
    import torch
    import transformers

    global export, SHAPES, Batch, ParserNetwork, real_spans, Network, session_options, onnxruntime
    import onnxruntime

    from trainers.parser import export
    from trainers.parser.network import SHAPES, Batch, ParserNetwork, real_spans
    from transforms.parsing.phrasemill.network import Network, session_options

    global NETWORK, WEIGHTS, FILE, SESSION, FLOAT_SESSION
    NETWORK = network()
    WEIGHTS = {name: values.numpy() for name, values in NETWORK.state_dict().items()}
    FILE = exported()
    SESSION = session_of(FILE)
    FLOAT_SESSION = session_of(export.build(WEIGHTS, heads=HEADS, scales=None).SerializeToString())


def scores_of(
    session: onnxruntime.InferenceSession, sentences: Sequence[Sequence[str]], convention: int, *, together: bool
) -> list[tuple[dict[tuple[int, int, int], float], list[int]]]:
    """The logits of all spans (label, start, end) and the tags of each sentence."""
    encoded = ENCODER.encode(sentences, convention)
    found: dict[int, tuple[dict[tuple[int, int, int], float], list[int]]] = {}
    alone = [(np.array([number]), encoded.batch(np.array([number]))) for number in range(len(sentences))]
    for chosen, batch in encoded.equal_batches(200) if together else alone:
        spans, scores, tags = session.run(["spans", "scores", "tags"], {**batch._asdict(), "threshold": LOWEST})
        for row, number in enumerate(chosen.tolist()):
            own = spans[:, 0] == row
            spans_of_row = map(tuple, spans[own, 1:].tolist())
            found[number] = (
                dict(zip(spans_of_row, scores[own].tolist(), strict=True)),
                tags[row, : len(sentences[number])].tolist(),
            )
    return [found[number] for number in range(len(sentences))]


@examples(25)
@given(SENTENCES, st.sampled_from([0, CRAFT]))
def test_the_graph_computes_what_the_network_does(sentences, convention):
    encoded = ENCODER.encode(sentences, convention)
    ((chosen, arrays),) = encoded.batches(10**6)
    batch = Batch(*map(torch.from_numpy, arrays))
    with torch.no_grad():
        output = NETWORK(batch)
    real = real_spans(batch).expand_as(output.spans)
    ours = scores_of(FLOAT_SESSION, sentences, convention, together=True)
    for row, number in enumerate(chosen.tolist()):
        spans, tags = ours[number]
        expected = {tuple(span): output.spans[(row, *span)].item() for span in real[row].nonzero().tolist()}
        assert spans == pytest.approx(expected, abs=1e-3)
        logits = output.tags[row, : len(tags)]
        chosen_logits = logits[range(len(tags)), tags]
        assert torch.allclose(chosen_logits, logits.max(1).values, atol=1e-3)


def test_quantised_scores_follow_the_network():
    quantised, exact = (scores_of(each, SAMPLE, 0, together=True) for each in (SESSION, FLOAT_SESSION))
    for (ours, _), (expected, _) in zip(quantised, exact, strict=True):
        assert ours.keys() == expected.keys()
        pairs = np.array([(ours[span], expected[span]) for span in ours])
        assert np.corrcoef(pairs.T)[0, 1] > 0.99


@examples(50)
@given(SENTENCES)
def test_a_sentence_has_the_same_scores_alone_and_among_others(sentences):
    together = scores_of(SESSION, sentences, 0, together=True)
    assert together == scores_of(SESSION, sentences, 0, together=False)


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.sampled_from([1.0, 0.0]))
def test_products_fit_in_the_16_bits_of_older_cpus(seed, width, noise):
    weight = np.random.default_rng(seed).normal(size=(4, width)).astype(np.float32) * noise + np.float32(0.3)
    integers, scales = export.quantised_weights(weight)
    pairs = np.pad(integers, ((0, 0), (0, width % 2))).astype(np.int64).reshape(4, -1, 2)
    for sign in (1, -1):
        assert 255 * np.maximum(sign * pairs, 0).sum(2).max() < 2**15
    assert np.abs(integers * scales[:, None] - weight).max() <= scales.max() * 0.51


def test_a_channel_with_outliers_is_divided():
    generator = np.random.default_rng(0)
    rows, weight = generator.normal(size=(500, 64)), generator.normal(size=(32, 64))
    plain = export.input_scale(rows, rows.min(0), rows.max(0), [weight])
    rows[:, 5] *= 50
    divided = export.input_scale(rows, rows.min(0), rows.max(0), [weight])
    assert plain.divisors is None
    assert divided.divisors is not None
    assert divided.divisors.argmax() == 5
    assert divided.scale < 3 * plain.scale
    low, high = ((quantised - divided.zero_point) * divided.scale for quantised in (0, 255))
    assert low - divided.scale < (rows / divided.divisors).min()
    assert (rows / divided.divisors).max() < high + divided.scale


def test_longer_spans_share_the_last_bias_and_none_is_left_out():
    words = ["house"] * 100
    ((spans, tags),) = scores_of(SESSION, [words], 0, together=True)
    assert len(spans) == len(LABELS) * 100 * 101 // 2
    assert len(tags) == 100


def test_the_same_bytes_for_the_same_network():
    assert exported() == FILE
    assert exported(metadata={"commit": "another"}) != FILE


def test_what_the_file_says_of_itself(tmp_path):
    (tmp_path / "parser.onnx").write_bytes(FILE)
    parser = Network(tmp_path / "parser.onnx")
    assert parser.labels == LABELS
    assert parser.tags == TAGS
    assert parser.metadata["commit"] == "c0ffee"
    assert json.loads(parser.metadata["threshold"]) == [0.5] * len(LABELS)


@examples(25)
@given(SENTENCES)
def test_parses_are_the_same_alone_and_among_others(tmp_path_factory, sentences):
    path = tmp_path_factory.getbasetemp() / "parser.onnx"
    if not path.exists():
        path.write_bytes(FILE)
    parser = Network(path)
    together = parser.parse(sentences)
    assert together == [parse for sentence in sentences for parse in parser.parse([sentence])]
    for sentence, (tags, constituents) in zip(sentences, together, strict=True):
        assert len(tags) == len(sentence)
        assert {*tags} <= {*TAGS}
        assert all(0 <= start < end <= len(sentence) for _, start, end in constituents)


@pytest.mark.parametrize("threads", [1, 3])
def test_parses_come_in_order_from_any_number_of_threads(tmp_path, threads):
    (tmp_path / "parser.onnx").write_bytes(FILE)
    sentences = [["The", "house", "of", "NATO"][: k % 4 + 1] * (k % 29) for k in range(300)]
    alone = Network(tmp_path / "parser.onnx")
    expected = [parse for sentence in sentences for parse in alone.parse([sentence])]
    assert Network(tmp_path / "parser.onnx", threads=threads).parse(sentences) == expected


def test_none_and_too_many(tmp_path):
    (tmp_path / "parser.onnx").write_bytes(FILE)
    parser = Network(tmp_path / "parser.onnx")
    assert parser.parse([]) == []
    assert parser.parse([[], []]) == [([], []), ([], [])]
    assert len(parser.parse([["Unaffordableness"] * MAX_WORDS])[0].tags) == MAX_WORDS
    with pytest.raises(ValueError, match="511 words"):
        parser.parse([["a"] * (MAX_WORDS + 1)])


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"no network", "cannot be read as a network"), (None, "cannot be read"), ("plain", "not a parser of format 1")],
)
def test_a_file_that_is_no_parser(tmp_path, content, message):
    path = tmp_path / "parser.onnx"
    if content == "plain":
        content = export.build(WEIGHTS, heads=HEADS, scales=None).SerializeToString()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        Network(path)


def test_opsets_are_those_that_the_oldest_supported_runtime_knows():
    model = onnx.load_from_string(FILE)
    assert {each.domain: each.version for each in model.opset_import} == export.OPSETS
    assert model.ir_version == export.IR_VERSION
