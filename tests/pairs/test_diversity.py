"""Lexical diversity: literal examples, and RapidFuzz and NLTK as oracles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from rapidfuzz.distance import LCSseq, Levenshtein
from written import document, write_dataset

from schemas.kinds.documents import DOCUMENTS
from schemas.kinds.neighbours import NEIGHBOURS
from schemas.kinds.phrase_pairs import PHRASE_PAIRS
from schemas.process import without
from transforms.pairs.diversity import (
    Diversity,
    common_length,
    diversity,
    edit_distance,
    lcs_precision,
    levenshtein,
    main,
    new_tokens,
)

TEXTS = st.text("ab cé", max_size=24) | st.text("ab", min_size=60, max_size=70)


@examples(40)
@given(TEXTS, TEXTS)
def test_characters_agree_with_rapidfuzz_and_nltk(one, other):
    with without("scipy", "sklearn"):  # which take seconds, and which its distance does not need
        from nltk.metrics.distance import edit_distance as nltk_distance
    assert common_length(one, other) == LCSseq.similarity(one, other)
    assert edit_distance(one, other) == Levenshtein.distance(one, other) == nltk_distance(one, other)


@examples(50)
@given(st.lists(st.sampled_from("abc"), max_size=9), st.lists(st.sampled_from("abc"), max_size=9))
def test_tokens_agree_with_rapidfuzz(one, other):
    texts = " ".join(one), " ".join(other)
    assert levenshtein(*texts, tokens=True) == Levenshtein.distance(one, other)
    assert lcs_precision(*texts, tokens=True) == 100 * LCSseq.similarity(one, other) / max(len(other), 1)


@pytest.mark.parametrize(
    ("query", "neighbour", "new", "lcs", "distance"),
    [
        ("white whale", "white whale", 0, 100, 0),
        ("White Whale", "white whale", 0, 100, 0),
        ("white whale", "whale", 0, 100, 6),
        ("whale", "white whale", 50, 500 / 11, 6),
        ("whale whale", "whale ship ship", 200 / 3, 700 / 15, 8),
        ("ab", "cd", 100, 0, 2),
        ("ab", "", 0, 0, 2),
        ("", "ab", 100, 0, 2),
    ],
)
def test_one_neighbour(query, neighbour, new, lcs, distance):
    assert new_tokens(query, neighbour) == pytest.approx(new)
    assert lcs_precision(query, neighbour) == pytest.approx(lcs)
    assert levenshtein(query, neighbour) == distance


def test_the_means_are_of_the_first_neighbours_and_then_of_the_queries():
    lists = [("ab", ["ab", "cd", "ef gh"]), ("a", ["a b"]), ("x", [])]
    assert diversity(lists, top=2) == Diversity((50 + 50) / 2, (50 + 100 / 3) / 2, (1 + 2) / 2, 2)
    assert diversity([]) == Diversity(0, 0, 0, 0)


def test_datasets(tmp_path, capsys):
    pair = {"phrase": "big car", "paraphrase": "large car", "score": None, "relation": None, "origin": "tsv"}
    write_dataset(tmp_path / "pairs", PHRASE_PAIRS, [[[pair]]])
    near = [{"row": 1, "phrase": "big cars", "edit_similarity": 0.9}]
    rows = [{"phrase": "big car", "neighbours": near}, {"phrase": "big cars", "neighbours": []}]
    write_dataset(tmp_path / "near", NEIGHBOURS, [[rows]])
    write_dataset(tmp_path / "documents", DOCUMENTS, [[[document(1)]]])
    assert main([str(tmp_path / "pairs")]) == main([str(tmp_path / "near")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 queries: 50.0 % new tokens, LCS precision 55.6 %, Levenshtein distance 4.0",
        "1 queries: 50.0 % new tokens, LCS precision 87.5 %, Levenshtein distance 1.0",
    ]
    assert main([str(tmp_path / "documents")]) == 2
    assert "holds documents; give neighbours, or pairs" in capsys.readouterr().err
