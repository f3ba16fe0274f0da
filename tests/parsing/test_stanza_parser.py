"""Stanza's own trainer makes a tiny model here, which then runs through Stanza's own loading code."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest
from watched import watch

from transforms.parsing.interface import ParsedSentence, RefusedSentence
from transforms.parsing.registry import parser_identity
from transforms.parsing.trees import constituents_of

TREES = """\
(ROOT (S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .)))
(ROOT (S (NP (DT A) (NN cat)) (VP (VBZ sees) (NP (DT the) (NN dog))) (. .)))
(ROOT (S (NP (DT The) (JJ old) (NN cat)) (VP (VBZ sleeps) (PP (IN in) (NP (DT the) (NN house)))) (. .)))
(ROOT (S (NP (DT The) (NN house)) (VP (VBZ is) (ADJP (JJ old))) (. .)))
(ROOT (S (NP (PRP He)) (VP (VBZ sees) (NP (DT the) (JJ old) (NN house))) (. .)))
(ROOT (NP (DT The) (NN dog) (PP (IN in) (NP (DT the) (NN house)))))
"""
TEXTS = [
    "The dog sleeps. He sees the old cat in the house.",
    "",
    "\u00a0 The \U0001f600 dog  (it is old) sleeps\u00a0. ",
    "A cat sees the dog.",
]


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """What takes seconds to import, when a test here runs and not when all are collected."""
    pytest.importorskip("stanza", reason="needs the extra 'stanza'")
    global torch, StanzaParser
    import torch

    from transforms.parsing.stanza_parser import StanzaParser


class NoScores:
    """Replaces Stanza's scorer, which is CoreNLP's in Java: every epoch is better than the last."""

    epoch = 0

    def __init__(self, **_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def process(self, _):
        from stanza.protobuf import EvaluateParserResponse

        self.epoch += 1
        return EvaluateParserResponse(f1=float(self.epoch))


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """A folder with tiny.pt and the random word vectors below it."""
    from stanza.models import constituency_parser
    from stanza.models.common.pretrain import Pretrain
    from stanza.models.constituency import parser_training

    folder = tmp_path_factory.mktemp("stanza")
    (folder / "trees.ptb").write_text(TREES)
    words = sorted({leaf.split(")")[0] for leaf in TREES.split() if leaf.endswith(")")})
    vectors = torch.randn(len(words), 8, generator=torch.Generator().manual_seed(0)).tolist()
    rows = [f"{word} {' '.join(f'{value:.3f}' for value in row)}\n" for word, row in zip(words, vectors, strict=True)]
    (folder / "vectors.txt").write_text(f"{len(words)} 8\n" + "".join(rows))
    Pretrain(str(folder / "vectors.pt"), str(folder / "vectors.txt")).load()
    options = f"""--mode train --lang en --shorthand en_tiny --no_retag --cpu --no_checkpoint --no_multistage --epochs 2
        --epoch_size 6 --train_batch_size 3 --hidden_size 32 --transition_hidden_size 8 --tag_embedding_dim 8
        --delta_embedding_dim 8 --num_lstm_layers 1 --save_name tiny.pt --save_dir {folder}
        --train_file {folder}/trees.ptb --eval_file {folder}/trees.ptb --wordvec_pretrain_file {folder}/vectors.pt"""
    logging.getLogger("stanza").setLevel(logging.ERROR)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser_training, "EvaluateParser", NoScores)
        constituency_parser.main(options.split())
    return folder


@pytest.fixture(scope="module")
def parser(models) -> StanzaParser:
    return StanzaParser(str(models / "tiny.pt"))


@pytest.mark.heavy
def test_loading_calls_nobody_and_writes_nothing(models, tmp_path):
    program = "import sys; from transforms.parsing.stanza_parser import StanzaParser; StanzaParser(sys.argv[1])"
    seen = watch([sys.executable, "-c", program, str(models / "tiny.pt")], tmp_path / "watched")
    assert (seen.calls, seen.written, seen.status) == ([], [], 0), seen.printed


def test_texts_give_the_trees_that_stanza_gives(parser):
    parsed = parser.parse_texts(TEXTS)
    assert [len(sentences) for sentences in parsed] == [2, 0, 1, 1]
    for text, sentences in zip(TEXTS, parsed, strict=True):
        for sentence in sentences:
            assert isinstance(sentence, ParsedSentence)
            words = [text[start:end] for start, end in zip(sentence.token_starts, sentence.token_ends, strict=True)]
            assert all(word.strip() == word != "" for word in words)
            alone = parser._model.parse_tagged_words([list(zip(words, sentence.tags, strict=True))], 1)[0]
            assert sentence.constituents == constituents_of(
                alone, label=lambda n: n.label, children=lambda n: n.children
            )
            assert sentence.constituents[0][1:] == (0, len(words))


def test_the_spans_of_given_tokens(parser):
    sentences = [text.split() for text in ("The dog sleeps .", "", "He sees the old ( cat ) .")]
    parsed = parser.parse_tokens(sentences)
    assert parsed[1] == []
    assert parsed == [parser.parse_tokens([each])[0] for each in sentences]
    assert all(
        0 <= start < end <= len(words)
        for words, spans in zip(sentences, parsed, strict=True)
        for _, start, end in spans
    )
    assert not {label for spans in parsed for label, _, _ in spans} & {"ROOT", "DT", "NN", ""}


def test_long_sentences_are_refused_by_length(models):
    parser = StanzaParser(str(models / "tiny.pt"), max_tokens=4)
    assert parser.parse_texts(["He sees the old house. The dog sleeps."])[0][0] == RefusedSentence(
        0, 22, "too_many_tokens"
    )
    assert parser.parse_tokens([["dog"] * 5]) == [RefusedSentence(0, 0, "too_many_tokens")]


def test_a_sentence_that_stanza_drops_is_refused_and_the_others_are_kept(parser, monkeypatch):
    sentences = [text.split() for text in ("The dog sleeps .", "A cat sees the dog .", "He sees the house .")]
    expected = parser.parse_tokens(sentences)
    initial_state = parser._model.initial_state_from_words

    def broken(batch):
        return [state._replace(broken=state.sentence_length == 6) for state in initial_state(batch)]

    monkeypatch.setattr(parser._model, "initial_state_from_words", broken)
    first, refused, last = parser.parse_tokens(sentences)
    assert [first, last] == [expected[0], expected[2]]
    assert refused == RefusedSentence(0, 0, "parser_error", "ValueError: 0 parses for 1 sentences")


@pytest.mark.heavy
def test_a_package_among_stanza_resources(models, parser, tmp_path):
    """The layout of `stanza.download`: resources.json, and a folder for each kind of model."""
    for kind, source, package in (("constituency", "tiny.pt", "tiny_nocharlm"), ("pretrain", "vectors.pt", "tiny")):
        (tmp_path / "en" / kind).mkdir(parents=True)
        (tmp_path / "en" / kind / f"{package}.pt").write_bytes((models / source).read_bytes())
    dependencies = [{"model": "pretrain", "package": "tiny"}]
    resources = {
        "en": {
            "lang_name": "English",
            "constituency": {"tiny_nocharlm": {"dependencies": dependencies}},
            "packages": {"default": {"constituency": "tiny_nocharlm"}},
        }
    }
    (tmp_path / "resources.json").write_text(json.dumps(resources))
    for name in ("default", "tiny_nocharlm"):
        packaged = StanzaParser(name, resources=str(tmp_path))
        assert packaged.identity.model == "tiny_nocharlm.pt"
        assert packaged.identity == parser_identity("stanza", model=name, resources=str(tmp_path))
        assert packaged.identity.model_sha256 == parser.identity.model_sha256
        assert packaged.parse_texts(TEXTS) == parser.parse_texts(TEXTS)
    assert parser_identity("stanza", model=str(models / "tiny.pt")) == parser.identity


def test_word_vectors_elsewhere(models, parser, tmp_path):
    moved = tmp_path / "moved.pt"
    moved.write_bytes((models / "vectors.pt").read_bytes())
    assert StanzaParser(str(models / "tiny.pt"), pretrain=str(moved)).parse_texts(TEXTS) == parser.parse_texts(TEXTS)


def test_missing_models_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        StanzaParser("nowhere.pt")
    with pytest.raises(FileNotFoundError, match=r"resources\.json"):
        StanzaParser("default", resources=str(tmp_path))
