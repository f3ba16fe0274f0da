"""What side tables and SQL dumps say of pages, joined by title."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.kinds.documents import PAGES, REDIRECTS
from transforms.mentions.facts import (
    KEYED_FACTS,
    facts_of_pages,
    join_facts,
    keyed,
    titles_of_pages,
    titles_of_redirects,
)
from transforms.mentions.titles import title_keys
from transforms.sources.sql_tables import FACTS

Fact = tuple[int, str, int, bool, str, bool, str]
"""Page id, title, entity, disambiguation, target title, is a page, section: a row of FACTS; the section may lack."""


def facts(*rows: Fact) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(FACTS.names, (*row, "")[:7], strict=True)) for row in rows], schema=FACTS)


def told(titles: pa.Table) -> dict[str, tuple[Any, ...]]:
    """The facts of each title; asserts that the keys are those of the titles."""
    found = {}
    names = ("entity", "disambiguation", "is_page")
    for row in titles.to_pylist():
        for title, *key in (("title", "key_hi", "key_lo"), ("target_title", "target_hi", "target_lo")):
            (hi,), (lo,) = title_keys("enwiki", [row[title]])
            assert [row[each] for each in key] == [hi, lo]
        target = "#".join(filter(None, (row["target_title"], row["section"])))
        found[row["title"]] = (*(row[name] for name in names), target)
    assert len(found) == titles.num_rows
    return found


@pytest.mark.parametrize(
    ("rows", "expected", "untitled"),
    [
        ([], {}, 0),
        ([(1, "A", 0, False, "", True)], {"A": (0, False, True, "")}, 0),
        ([(1, "", 7, False, "", False), (1, "A", 0, False, "", True)], {"A": (7, False, True, "")}, 0),
        ([(1, "A", 9, False, "", True), (1, "", 7, True, "", False)], {"A": (7, True, True, "")}, 0),
        ([(2, "B", 0, False, "", False), (2, "", 0, False, "A", False)], {"B": (0, False, False, "A")}, 0),
        ([(2, "B", 0, False, "", False), (2, "", 0, False, "A", False, "s")], {"B": (0, False, False, "A#s")}, 0),
        ([(2, "", 0, False, "A", False), (3, "", 5, False, "", False), (3, "", 0, True, "", False)], {}, 3),
    ],
)
def test_facts_of_one_page_come_together(rows, expected, untitled):
    found, left_out = join_facts(keyed(facts(*rows), "enwiki"))
    assert (told(found), left_out) == (expected, untitled)


ROWS = st.tuples(
    st.integers(1, 4),
    st.sampled_from(["", "A", "B", "É"]),
    st.sampled_from([0, 5, 7]),
    st.booleans(),
    st.sampled_from(["", "A", "Z"]),
    st.booleans(),
    st.just(""),
)


@given(st.lists(ROWS, max_size=12), st.randoms(use_true_random=False))
def test_any_facts_in_any_order(rows, random):
    """If facts differ, the lowest entity counts, and the greatest title and target by their bytes."""
    pages: dict[int, list[Fact]] = {}
    for row in rows:
        pages.setdefault(row[0], []).append(row)
    expected: list[tuple[Any, ...]] = []
    for of_page in pages.values():
        title, target = (max((row[at] for row in of_page), key=str.encode) for at in (1, 4))
        entity = min((row[2] for row in of_page if row[2]), default=0)
        if title:
            flags = (any(row[at] for row in of_page) for at in (3, 5))
            expected.append((title, entity, *flags, target))
    shuffled = list(rows)
    random.shuffle(shuffled)
    found, untitled = join_facts(keyed(facts(*shuffled), "enwiki"))
    columns = ("title", "entity", "disambiguation", "is_page", "target_title")
    assert sorted(tuple(row[name] for name in columns) for row in found.to_pylist()) == sorted(expected)
    assert untitled == sum(len(each) for each in pages.values() if not any(row[1] for row in each))


def test_side_tables():
    pages = pa.Table.from_pylist(
        [
            {"source": "enwiki", "page_id": "12", "title": "A", "entity_id": "Q7", "disambiguation": False},
            {"source": "enwiki", "page_id": "x", "title": "B", "entity_id": "", "disambiguation": True},
            {"source": "enwiki", "page_id": "13", "title": "C", "entity_id": "L5", "disambiguation": False},
        ],
        schema=PAGES,
    )
    expected = {"A": (7, False, True, ""), "B": (0, True, True, ""), "C": (0, False, True, "")}
    assert told(titles_of_pages(pages)) == expected
    by_id = facts_of_pages(pages)
    assert by_id.schema == KEYED_FACTS
    assert told(join_facts(by_id)[0]) == {title: expected[title] for title in "AC"}  # B has no number
    redirects = pa.Table.from_pylist(
        [{"source": "enwiki", "title": "D", "target_title": "A", "section": "s"}], schema=REDIRECTS
    )
    assert told(titles_of_redirects(redirects)) == {"D": (0, False, False, "A#s")}


def test_pages_of_two_wikis_with_one_number_stay_apart():
    one, other = (
        keyed(facts((1, title, 0, False, "", True)), wiki) for title, wiki in (("A", "enwiki"), ("B", "dewiki"))
    )
    found, _ = join_facts(pa.concat_tables([one, other]))
    assert sorted(found.column("title").to_pylist()) == ["A", "B"]
