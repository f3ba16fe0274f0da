"""Surfaces of entities counted and paired, compared with plain Python and for any units."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.kinds import FILTER_REASONS
from schemas.kinds.alias_pairs import ALIAS_PAIRS
from schemas.kinds.mentions import MENTIONS
from transforms.mentions.aliases import MENTION_COLUMNS, SURFACES, alias_pairs, count_surfaces, merge_surfaces

Mention = tuple[str, str, str, str, str]  # as MENTION_COLUMNS


def table(mentions: list[Mention]) -> pa.Table:
    schema = pa.schema([MENTIONS.field(name) for name in MENTION_COLUMNS])
    return pa.Table.from_pylist([dict(zip(MENTION_COLUMNS, each, strict=True)) for each in mentions], schema=schema)


def rows(found: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in found.to_pylist()]


NEW_YORK = [
    *[("w", "Q60", "New York City", "", surface) for surface in ["New York"] * 5 + ["NYC"] * 3 + ["new york"] * 3],
    *[("w", "Q60", "New York City", "", surface) for surface in ["City of New York"] * 2 + ["the Big Apple"]],
]


@pytest.mark.parametrize(
    ("aliases", "min_count", "pairs", "filtered"),
    [
        (10, 3, [("New York", "NYC", 5, 3), ("NYC", "new york", 3, 3)], {"case_only": 1}),
        (2, 1, [("New York", "NYC", 5, 3)], {}),
        (1, 1, [], {}),
        (10, 6, [], {}),
        (
            4,
            2,
            [
                ("New York", "NYC", 5, 3),
                ("New York", "City of New York", 5, 2),
                ("NYC", "new york", 3, 3),
                ("NYC", "City of New York", 3, 2),
                ("new york", "City of New York", 3, 2),
            ],
            {"case_only": 1},
        ),
    ],
)
def test_the_most_frequent_are_paired(aliases, min_count, pairs, filtered):
    found, left_out = alias_pairs(count_surfaces(table(NEW_YORK)), aliases_per_entity=aliases, min_count=min_count)
    assert found.schema.equals(ALIAS_PAIRS, check_metadata=True)
    assert rows(found) == [("Q60", "New York City", "", *each) for each in pairs]
    assert left_out == filtered
    assert set(left_out) <= set(FILTER_REASONS)


@pytest.mark.parametrize(
    ("one", "other", "paired"),
    [
        (("w", "Q1", "A", "", "x"), ("w", "Q1", "B", "", "y"), True),
        (("w", "Q1", "A", "", "x"), ("v", "Q1", "A", "", "y"), True),
        (("w", "", "A", "", "x"), ("w", "", "A", "", "y"), True),
        (("w", "", "A", "", "x"), ("v", "", "A", "", "y"), False),
        (("w", "", "A", "", "x"), ("w", "", "B", "", "y"), False),
        (("w", "Q1", "A", "", "x"), ("w", "Q2", "A", "", "y"), False),
        (("w", "Q1", "A", "", "x"), ("w", "Q1", "A", "", "x"), False),
        (("w", "Q1", "A", "", "straße"), ("w", "Q1", "A", "", "STRASSE"), False),
        (("w", "Q1", "A", "", "é"), ("w", "Q1", "A", "", "e\u0301"), True),
        (("w", "Q1", "A", "s", "x"), ("w", "Q1", "A", "s", "y"), True),
        (("w", "Q1", "A", "s", "x"), ("w", "Q1", "A", "t", "y"), False),
        (("w", "Q1", "A", "s", "x"), ("w", "Q1", "A", "", "y"), False),
        (("w", "", "List of ships", "Ahab", "x"), ("w", "", "List of ships", "Starbuck", "y"), False),
    ],
)
def test_what_an_entity_is(one, other, paired):
    found, _ = alias_pairs(count_surfaces(table([one, other])), aliases_per_entity=9, min_count=1)
    assert found.num_rows == paired


def test_an_entity_of_several_titles_has_the_first_of_them():
    mentions = [
        ("w", "Q1", title, "", surface) for title, surface in (("Ä", "x"), ("b", "y"), ("B", "rare"), *[("z", "x")] * 2)
    ]
    found, _ = alias_pairs(count_surfaces(table(mentions)), aliases_per_entity=2, min_count=1)
    assert rows(found) == [("Q1", "B", "", "x", "rare", 3, 1)]


def test_nothing_of_nothing():
    empty = count_surfaces(table([]))
    assert empty.equals(SURFACES.empty_table())
    assert merge_surfaces([]).equals(empty)
    found, filtered = alias_pairs(empty, aliases_per_entity=9, min_count=1)
    assert (found.num_rows, filtered) == (0, {})


MENTION = st.tuples(
    st.sampled_from("wv"),
    st.sampled_from(["Q1", "Q2", ""]),
    st.sampled_from(["A", "B"]),
    st.sampled_from(["", "s"]),
    st.sampled_from(["x", "X", "y", "ß", "ss", "é"]),
)


@examples(60)
@given(st.lists(MENTION, max_size=60), st.integers(1, 4), st.integers(1, 3), st.randoms(use_true_random=False))
def test_any_mentions_in_any_units(mentions, most, min_count, random):
    mixed = random.sample(mentions, len(mentions))
    whole = count_surfaces(table(mentions))
    parts = [count_surfaces(table(mixed[start::3])) for start in range(3)]
    assert merge_surfaces([merge_surfaces(parts[:2]), parts[2]]).equals(whole)

    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    titles: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for source, entity_id, title, section, surface in mentions:
        entity = ("", entity_id, section) if entity_id else (source, title, section)
        counts[entity][surface] += 1
        titles[entity].add(title)
    wanted, case_only = [], 0
    for entity, surfaces in counts.items():
        ranked = sorted(surfaces.items(), key=lambda each: (-each[1], each[0].encode()))[:most]
        frequent = [each for each in ranked if each[1] >= min_count]
        for (one, n), (other, m) in itertools.combinations(frequent, 2):
            if one.casefold() == other.casefold():
                case_only += 1
            else:
                wanted.append(("" if entity[0] else entity[1], min(titles[entity]), entity[2], one, other, n, m))
    found, filtered = alias_pairs(whole, aliases_per_entity=most, min_count=min_count)
    assert sorted(rows(found)) == sorted(wanted)
    assert filtered == (Counter(case_only=case_only) if case_only else {})
