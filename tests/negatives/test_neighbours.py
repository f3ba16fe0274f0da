"""Neighbours by edit similarity: all pairs by RapidFuzz are the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from transforms.negatives import neighbours
from transforms.negatives.neighbours import Search, columns_of
from transforms.negatives.options import NeighbourRules
from transforms.parsing.treebank import read_treebank

PEARL = NeighbourRules()

Found = list[list[tuple[int, float]]]


def find(phrases: Sequence[str], rules: NeighbourRules = PEARL, *, part: int = 1 << 20, rows: int = 1 << 20) -> Found:
    """The neighbours of each phrase (place, similarity), with so many rows a strip and columns a part."""
    found: Found = []
    for first in range(0, len(phrases), rows):
        search = Search(pa.array(phrases[first : first + rows], pa.string()), first, rules)
        for start in range(0, len(phrases), part):
            search.among(columns_of(pa.array(phrases[start : start + part], pa.string()), start))
        of_all = search.neighbours()
        pairs = list(zip(of_all.place.tolist(), of_all.similarity.tolist(), strict=True))
        ends = np.cumsum(of_all.found).tolist()
        found += [pairs[end - count : end] for end, count in zip(ends, of_all.found.tolist(), strict=True)]
    return found


def by_brute_force(phrases: Sequence[str], rules: NeighbourRules = PEARL) -> Found:
    from rapidfuzz import fuzz
    from rapidfuzz.process import cdist

    found: Found = []
    key = [xxhash.xxh3_128_digest(each.encode("utf-8", "surrogatepass")) for each in phrases]
    for first in range(0, len(phrases), 256):
        similarity = cdist(phrases[first : first + 256], phrases, scorer=fuzz.ratio, dtype=np.float64) / 100
        for row, of_row in enumerate(similarity, first):
            of_row[row] = 0
            near = np.flatnonzero(of_row > rules.min_edit_similarity + 1e-9).tolist()
            near.sort(key=lambda other: (-round(float(of_row[other]), 9), key[other]))
            found.append([(other, round(float(of_row[other]), 9)) for other in near[: rules.candidates]])
    return found


def rounded(found: Found) -> Found:
    return [[(place, round(similarity, 9)) for place, similarity in of_row] for of_row in found]


def check(phrases: Sequence[str], rules: NeighbourRules = PEARL, **sizes: int) -> None:
    assert rounded(find(phrases, rules, **sizes)) == by_brute_force(phrases, rules)


@pytest.mark.parametrize(
    ("phrases", "wanted"),
    [
        ([], []),
        (["a"], [[]]),
        # 14 of 20 characters in common is not above .70, 15 is.
        (["abcdefghij", "abcdefgxyz"], [[], []]),
        (["abcdefghijk", "abcdefghxyz"], [[(1, 16 / 22)], [(0, 16 / 22)]]),
        # The order counts, not the characters.
        (["dog cat", "cat dog", "dog cats"], [[(2, 14 / 15)], [], [(0, 14 / 15)]]),
        # Code points as they are: neither case nor composed characters are folded.
        (["ÉTÉ", "ÉTÉS", "e\u0301te\u0301"], [[(1, 6 / 7)], [(0, 6 / 7)], []]),
        # The most similar first.
        (["the cats", "cats", "the cat", "a cat"], [[(2, 14 / 15)], [], [(0, 14 / 15)], []]),
    ],
)
def test_neighbours_are_above_the_least_similarity(phrases, wanted):
    assert find(phrases) == wanted
    check(phrases)


def test_of_equally_similar_phrases_those_of_lowest_hash_are_neighbours():
    phrases = [f"white house {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    found = find(phrases, NeighbourRules(candidates=3))
    by_hash = sorted(range(26), key=lambda row: xxhash.xxh3_128_digest(phrases[row].encode()))
    assert [[place for place, _ in of_row] for of_row in found] == [
        [other for other in by_hash if other != row][:3] for row in range(26)
    ]


ALPHABETS = (
    st.sampled_from("ab"),
    st.sampled_from("the cat sons"),
    st.characters(exclude_categories=["Cs"]),
)


@st.composite
def phrase_lists(draw: st.DrawFn) -> list[str]:
    """Distinct phrases of 1 to 200 characters, many of them changed a little from others."""
    characters = draw(st.sampled_from(ALPHABETS))
    longest = draw(st.sampled_from([3, 12, 63, 64, 65, 130, 200]))
    phrases = draw(st.lists(st.text(characters, min_size=1, max_size=longest), min_size=1, max_size=12))
    for _ in range(draw(st.integers(0, 12))):
        old = draw(st.sampled_from(phrases))
        place, cut = draw(st.integers(0, len(old))), draw(st.integers(0, max(len(old) // 3, 1)))
        phrases.append(old[:place] + draw(st.text(characters, max_size=4)) + old[place + cut :])
    return list(dict.fromkeys(each[:200] for each in phrases if each))


@given(phrase_lists(), st.sampled_from([0.0, 0.3, 0.5, 0.7, 0.9]), st.sampled_from([1, 2, 5, 50]), st.integers(1, 30))
@examples(60)
def test_neighbours_are_those_of_all_pairs(phrases, least, candidates, part):
    check(phrases, NeighbourRules(candidates, least), part=part, rows=part + 1)


def test_more_phrases_than_fit_a_block_or_a_group(monkeypatch):
    monkeypatch.setattr(neighbours, "COLUMNS_A_BLOCK", 3)
    monkeypatch.setattr(neighbours, "ROWS_A_GROUP", 7)
    words = "house horse mouse houses mouth month moth months hose nose".split()
    check([f"{one} {other}" for one in words for other in words], NeighbourRules(candidates=8))


def test_progress_tells_how_many_rows_are_done(monkeypatch):
    monkeypatch.setattr(neighbours, "ROWS_A_GROUP", 2)
    phrases = pa.array("cat cats bat bats hat".split())
    search = Search(phrases, 0, PEARL)
    seen: list[float] = []
    compiled = neighbours.require_compiler()
    monkeypatch.setattr(compiled, "search", lambda *arguments: seen.append(search.progress()))
    search.among(columns_of(phrases, 0))
    assert seen == [0, 0.4, 0.8]


@pytest.mark.heavy
def test_neighbours_of_real_phrases_are_those_of_all_pairs(test_data):
    phrases: dict[str, None] = {}
    for sentence in read_treebank(test_data / "treebanks/gum/train.ptb"):
        phrases |= {" ".join(sentence.words[each.start_token : each.end_token]): None for each in sentence.constituents}
    assert len(phrases) >= 20_000
    check([*phrases][:20_000], part=7_000, rows=9_000)
