"""The encoding of words, by hand and compared with the tokenizer that the encoder was pretrained with."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.parsing.phrasemill import encoding
from transforms.parsing.phrasemill.encoding import CRAFT, MAX_PIECES, MAX_WORDS, Encoder, read_vocabulary, word_shape

VOCABULARY = read_vocabulary()
ENCODER = Encoder(VOCABULARY)

# Libraries have different versions of Unicode; all agree on characters assigned since 3.2.
CHARACTERS = st.characters(codec="utf-8").filter(
    lambda c: unicodedata.ucd_3_2_0.category(c) == unicodedata.category(c) not in ("Cn", "Co", "Cs")
)
WORDS = st.text(CHARACTERS, max_size=12) | st.sampled_from(
    ["the", "Unaffordableness", "e.g.", "naïve", "Δ9", "中国", "😀", "\u200b", "x" * 101]
)


def pieces_of(words: list[str]) -> list[list[str]]:
    return [[VOCABULARY[id] for id in ENCODER.word(word)[0]] for word in words]


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("The", ["the"]),
        ("naïve", ["naive"]),
        ("uncomfortableness", ["uncomfortable", "##ness"]),
        ("Unaffordableness", ["una", "##ff", "##ness"]),  # first, second, last of five
        ("e.g.", ["e", ".", "."]),
        ("İstanbul", ["istanbul"]),
        ("``", ['"']),
        ("''", ['"']),
        ("中国", ["中", "国"]),
        ("a\u00adb", ["ab"]),
        ("\u200b", ["[UNK]"]),
        ("", ["[UNK]"]),
        ("😀", ["[UNK]"]),
        ("[MASK]", ["[", "mask", "]"]),
        ("x" * 101, ["[UNK]"]),
    ],
)
def test_the_pieces_of_a_word(word, pieces):
    assert pieces_of([word]) == [pieces]


@pytest.mark.parametrize(
    ("words", "shape"),
    [
        ("the naïve well-known don't 中国", encoding.LOWER),
        ("The Élan It's X-ray", encoding.CAPITALISED),
        ("NATO U.S. AT&T", encoding.CAPITALS),
        ("McDonald iPhone NATOs", encoding.MIXED),
        ("I A É", encoding.CAPITAL),
        ("1984 B2B 3rd ²", encoding.DIGITS),
        (". -- $ 😀 \u200b", encoding.SYMBOLS),
    ],
)
def test_shapes(words, shape):
    assert {word: word_shape(word) for word in words.split(" ")} == dict.fromkeys(words.split(" "), shape)


def test_a_batch():
    batch = ENCODER.encode([["Unaffordable", "."], [], ["I"]], [CRAFT, 0, 0]).batch(np.array([0, 1, 2]))
    assert [[VOCABULARY[id] for id in row] for row in batch.pieces] == [
        ["[CLS]", "una", "##ff", "##able", ".", "[SEP]"],
        ["[CLS]", "[SEP]", "[PAD]", "[PAD]", "[PAD]", "[PAD]"],
        ["[CLS]", "i", "[SEP]", "[PAD]", "[PAD]", "[PAD]"],
    ]
    assert batch.shapes.tolist() == [[7, 1, 1, 1, 6, 7], [0] * 6, [0, 4, 0, 0, 0, 0]]
    assert batch.left.tolist() == [[0, 3, 4], [0, 0, 0], [0, 1, 0]]
    assert batch.right.tolist() == [[1, 4, 5], [1, 0, 0], [1, 2, 0]]


def test_no_sentences():
    encoded = ENCODER.encode([])
    assert encoded.pieces.size == 0
    assert list(encoded.batches(100)) == []


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (MAX_WORDS // 4, ["una", "##ff", "##ness"]),
        (MAX_WORDS // 3, ["una", "##ff", "##ness"]),
        (MAX_WORDS // 3 + 1, ["una", "##ness"]),
        (MAX_WORDS // 2, ["una", "##ness"]),
        (MAX_WORDS // 2 + 1, ["una"]),
        (MAX_WORDS, ["una"]),
    ],
)
def test_a_long_sentence_keeps_fewer_pieces_a_word(words, kept):
    encoded = ENCODER.encode([["short"], ["Unaffordableness"] * words, ["unaffordable"]])
    assert encoded.lengths.tolist() == [3, words * len(kept) + 2, 5]
    batch = encoded.batch(np.array([1]))
    assert [VOCABULARY[id] for id in batch.pieces[0]] == ["[CLS]", *kept * words, "[SEP]"]


def test_a_sentence_of_too_many_words():
    with pytest.raises(ValueError, match="a sentence of 511 words; at most 510"):
        ENCODER.encode([["a"] * 511])


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(encoding._Places.forget, "__defaults__", (10,))
    encoder = Encoder(VOCABULARY)
    for word in ("abcdef", "ghijkl", "mnopqr"):
        encoder.encode([[word]])
    assert [*encoder._places] == ["mnopqr"]
    assert encoder.encode([["abcdef"]]).pieces.tolist() == ENCODER.encode([["abcdef"]]).pieces.tolist()


@given(st.lists(WORDS, max_size=20))
def test_pieces_are_those_of_bert(words):
    tokenizers = pytest.importorskip("tokenizers")
    bert = tokenizers.BertWordPieceTokenizer({piece: id for id, piece in enumerate(VOCABULARY)}, lowercase=True)
    for word in words:
        if word in ("``", "''"):
            continue
        expected = bert.encode(word, add_special_tokens=False).ids or [encoding.UNKNOWN]
        assert ENCODER.word(word)[0] == (expected if len(expected) <= 3 else [*expected[:2], expected[-1]])


@given(st.lists(st.lists(WORDS, max_size=30), max_size=12), st.integers(1, 200))
def test_batches_hold_what_each_sentence_holds_alone(sentences, max_pieces):
    encoded = ENCODER.encode(sentences)
    for batches in (encoded.batches(max_pieces), encoded.equal_batches(max_pieces)):
        check_batches(batches, sentences, max_pieces)
    assert all(batch.pieces.all() for _, batch in encoded.equal_batches(max_pieces))


def check_batches(batches, sentences, max_pieces):
    seen = []
    for chosen, batch in batches:
        assert len(chosen) == 1 or batch.pieces.size <= max_pieces
        for row, sentence in enumerate(chosen.tolist()):
            seen.append(sentence)
            alone = ENCODER.encode([sentences[sentence]]).batch(np.array([0]))
            for ours, own in zip(batch, alone, strict=True):
                length = own.shape[1]
                assert ours[row, :length].tolist() == own[0].tolist()
                assert not ours[row, length:].any()
    assert sorted(seen) == [*range(len(sentences))]


@given(st.lists(WORDS, max_size=300))
def test_fenceposts_stand_between_the_pieces_of_words(words):
    encoded = ENCODER.encode([words])
    left, right = encoded.left.tolist(), encoded.right.tolist()
    assert left[0] == 0
    assert right[-1] == len(encoded.pieces) - 1 < MAX_PIECES
    assert [after - before for before, after in zip(left, right, strict=True)] == [1] * (len(words) + 1)
    counts = [left[k + 1] - right[k] + 1 for k in range(len(words))]
    assert all(1 <= count <= len(ENCODER.word(word)[0]) for word, count in zip(words, counts, strict=True))
    assert encoded.pieces[right[:-1]].tolist() == [ENCODER.word(word)[0][0] for word in words]
    assert encoded.shapes[right[:-1]].tolist() == [word_shape(word) for word in words]
