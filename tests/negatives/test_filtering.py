"""Hard negatives among candidates: literal similarities and cosines, and the filter by brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from transforms.negatives.filtering import Candidates, cosines, hard_negatives, scaled, unit_vectors
from transforms.negatives.options import HardNegativeRules
from transforms.negatives.variants import is_variant

Given = Mapping[str, Mapping[str, tuple[float, float]]]
"""Phrase -> candidate -> edit similarity and cosine."""
Found = tuple[dict[str, list[str]], Counter[str]]


def mined(given: Given, rules: HardNegativeRules, mean: float = 0.0) -> Found:
    phrases, others, numbers, owner = [*given], [], [], []
    for number, candidates in enumerate(given.values()):
        others += [*candidates]
        numbers += [*candidates.values()]
        owner += [number] * len(candidates)
    similarity, cosine = np.array(numbers, np.float32).reshape(-1, 2).T
    candidates = Candidates(np.array(owner, np.int64), pa.array(others, pa.string()), similarity, cosine)
    found = hard_negatives(pa.array(phrases, pa.string()), candidates, rules, mean=mean)
    kept: dict[str, list[str]] = {}
    for each in found.kept.tolist():
        kept.setdefault(phrases[owner[each]], []).append(others[each])
    return kept, +found.filtered


def by_brute_force(given: Given, rules: HardNegativeRules, mean: float = 0.0) -> Found:
    kept: dict[str, list[str]] = {}
    filtered: Counter[str] = Counter()
    for phrase, candidates in given.items():
        plain = [np.float32(cosine) for _, cosine in candidates.values()]
        found = []
        for other, (similarity, cosine) in candidates.items():
            moved = float(np.float32(cosine))
            if rules.cosine == "centred":
                moved = float(np.float32((moved - mean) / (1 - mean)))
            if rules.cosine == "scaled" and max(plain) > min(plain):
                width = float(max(plain) - min(plain))
                moved = float(np.float32(float(np.float32(moved) - min(plain)) / width))
            difference = np.float32(float(np.float32(similarity)) - moved)
            if difference <= np.float32(rules.min_difference):
                filtered["below_difference"] += 1
            elif is_variant(phrase, other) and not rules.keep_variants:
                filtered["variant"] += 1
            else:
                found.append((-difference, xxhash.xxh3_128_digest(other.encode()), other))
        found.sort()
        filtered["beyond_top_k"] += max(len(found) - rules.negatives, 0)
        if found:
            kept[phrase] = [other for *_, other in found[: rules.negatives]]
    return kept, +filtered


GIVEN = {
    "prime minister": {"prime ministers": (0.97, 0.6), "crime minister": (0.93, 0.5), "primate": (0.76, 0.4)},
    "steppe": {"steps": (0.73, 0.8)},
    "bedrock": {"bedroom": (0.75, 0.25), "bed": (0.75, 0.25)},
}


@pytest.mark.parametrize(
    ("rules", "mean", "kept", "filtered"),
    [
        # Differences .37 (a variant) .43 .36, -.07, .5 .5: equal ones by hash.
        (
            HardNegativeRules(cosine="plain"),
            0.0,
            {"prime minister": ["crime minister", "primate"], "bedrock": ["bed", "bedroom"]},
            {"variant": 1, "below_difference": 1},
        ),
        (
            HardNegativeRules(cosine="plain", keep_variants=True, negatives=2),
            0.0,
            {"prime minister": ["crime minister", "prime ministers"], "bedrock": ["bed", "bedroom"]},
            {"beyond_top_k": 1, "below_difference": 1},
        ),
        # From .4 to .6: 1 .5 0, so -.03 .43 .76. One candidate, or equal ones, are not scaled.
        (
            HardNegativeRules(cosine="scaled", negatives=1),
            0.0,
            {"prime minister": ["primate"], "bedrock": ["bed"]},
            {"below_difference": 2, "beyond_top_k": 2},
        ),
        # From a mean of .2: .5 .375 .25, .75, .0625 .0625.
        (
            HardNegativeRules(cosine="centred", min_difference=0.52),
            0.2,
            {"prime minister": ["crime minister"], "bedrock": ["bed", "bedroom"]},
            {"below_difference": 3},
        ),
        # Exactly the margin is not above it.
        (HardNegativeRules(cosine="plain", min_difference=0.5), 0.0, {}, {"below_difference": 6}),
    ],
)
def test_literal_candidates(
    rules: HardNegativeRules, mean: float, kept: dict[str, list[str]], filtered: dict[str, int]
):
    assert mined(GIVEN, rules, mean) == (kept, filtered)
    assert by_brute_force(GIVEN, rules, mean) == (kept, filtered)


def test_no_candidates():
    assert mined({"alone": {}}, HardNegativeRules()) == ({}, {})


numbers = st.integers(-16, 16).map(lambda each: each / 16)  # exact, so that there are ties


@examples(60)
@given(
    st.dictionaries(
        st.text("abe s", max_size=5),
        st.dictionaries(st.text("abe s", max_size=5), st.tuples(numbers, numbers)),
        max_size=4,
    ),
    st.sampled_from(["centred", "scaled", "plain"]),
    st.integers(1, 3),
    st.booleans(),
)
def test_the_filter_is_that_by_brute_force(given: Given, cosine: str, negatives: int, keep_variants: bool):
    rules = HardNegativeRules(cosine=cosine, negatives=negatives, keep_variants=keep_variants, min_difference=0.25)
    kept, filtered = mined(given, rules, 0.5)
    assert (kept, filtered) == by_brute_force(given, rules, 0.5)
    assert sum(map(len, given.values())) == sum(map(len, kept.values())) + filtered.total()


def test_scaled_cosines_of_a_row_without_width_stay():
    cosine = np.array([0.9, 0.7, 0.8, 0.8, 0.3], np.float32)
    found = scaled(cosine, np.array([0, 0, 1, 1, 2]))
    assert found.tolist() == np.array([1, 0, 0.8, 0.8, 0.3], np.float32).tolist()


@examples(20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_a_cosine_does_not_depend_on_the_others(seed: int, dimension: int):
    """It is that of NumPy in double precision, and the same number alone as among thousands."""
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((30, dimension)).astype(np.float16)
    vectors[0] = 0
    units = unit_vectors(vectors)
    pairs = random.integers(0, 30, (2, 5000))
    found = cosines(units, units, (pairs[0], pairs[1]))
    one, other = (vectors[each].astype(np.float64) for each in pairs)
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    exact = (one * other).sum(axis=1) / np.where(norms > 0, norms, 1)
    assert np.abs(found - exact).max() < 1e-5
    some = random.integers(0, 5000, 20)
    assert [cosines(units, units, (pairs[0, [n]], pairs[1, [n]])).item() for n in some] == found[some].tolist()
