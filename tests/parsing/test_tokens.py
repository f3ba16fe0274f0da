from __future__ import annotations

import pytest

from transforms.parsing.interface import RefusedSentence
from transforms.parsing.tokens import TokenisedSentence, load_spacy, tag, tokenise


@pytest.fixture(scope="module")
def nlp():
    return load_spacy()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \u00a0 ", []),
        (
            "He  left.",
            [TokenisedSentence(["He", "left", "."], ["PRP", "VBD", "."], [True, False, False], [0, 4, 8], [2, 8, 9])],
        ),
        (
            "\U0001f600 \u00a0It rains. \u00a0He\u00a0left.",
            [
                TokenisedSentence(
                    ["\U0001f600", "It", "rains", "."],
                    ["NNP", "PRP", "VBZ", "."],
                    [True, True, False, False],
                    [0, 3, 6, 11],
                    [1, 5, 11, 12],
                ),
                TokenisedSentence(
                    ["He", "left", "."], ["PRP", "VBD", "."], [True, False, False], [14, 17, 21], [16, 21, 22]
                ),
            ],
        ),
    ],
)
def test_sentences_tokens_and_tags(nlp, text, expected):
    assert list(tokenise(nlp, [text])) == [expected]


def test_a_text_longer_than_spacy_takes_is_refused_and_the_others_are_kept(nlp, monkeypatch):
    monkeypatch.setattr(nlp, "max_length", 30)
    long = "word " * 7
    short, refused, last = tokenise(nlp, ["It rains.", long, "He left."])
    assert refused == [RefusedSentence(0, 35, "too_many_tokens")]
    assert [each.words for each in (*short, *last)] == [["It", "rains", "."], ["He", "left", "."]]


def test_given_tokens_are_tagged_as_given(nlp):
    assert tag(nlp, [["The", "New York", "dog", "sleeps"], [], ["It", "rains"]]) == [
        ["DT", "NN", "NN", "VBZ"],
        [],
        ["PRP", "VBZ"],
    ]


def test_a_missing_pipeline_is_named():
    with pytest.raises(OSError, match="no spaCy pipeline 'nowhere'"):
        load_spacy("nowhere")
