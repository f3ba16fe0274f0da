"""The search for the next row of another phrase and another document."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.contexts.negatives import Eligible


def first(rows: list[tuple[int, int]], queries: list[tuple[int, int, int]], *, any_document: bool = False) -> list[int]:
    """For each query (phrase, document, start) the first eligible of the rows (phrase, document)."""
    phrase, document = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    eligible = Eligible(phrase, document, any_document=any_document)
    return eligible.first(*np.array(queries, dtype=np.int64).reshape(-1, 3).T).tolist()


def brute(rows: list[tuple[int, int]], query: tuple[int, int, int], *, any_document: bool) -> int:
    phrase, document, start = query
    return next(
        (
            place
            for place, row in enumerate(rows)
            if place >= start and row[0] != phrase and (any_document or row[1] != document)
        ),
        len(rows),
    )


@pytest.mark.parametrize(
    ("rows", "query", "place"),
    [
        ([(1, 1), (2, 2)], (1, 1, 1), 1),
        ([(1, 1), (1, 2), (2, 1), (2, 2)], (1, 1, 1), 3),
        ([(1, 1), (2, 1), (3, 1)], (1, 1, 1), 3),
        ([(1, 1), (2, 1), (3, 1)], (9, 9, 0), 0),
        ([(1, 1)], (1, 1, 1), 1),
        ([], (1, 1, 0), 0),
    ],
)
def test_the_first_eligible_row(rows, query, place):
    assert first(rows, [query]) == [place]


NUMBERS = st.integers(0, 3)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=40)


@given(ROWS, st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(0, 41)), max_size=10), st.booleans())
def test_any_rows(rows, queries, any_document):
    queries = [(phrase, document, min(start, len(rows))) for phrase, document, start in queries]
    found = first(rows, queries, any_document=any_document)
    assert found == [brute(rows, query, any_document=any_document) for query in queries]


def test_a_document_that_fills_the_shard_is_passed_at_once():
    n = 200_000
    rows = np.stack([np.arange(n) % 7, np.zeros(n, dtype=np.int64)], axis=1)
    rows[-1] = (100, 1)
    eligible = Eligible(*rows.T)
    found = eligible.first(rows[:, 0], rows[:, 1], np.arange(1, n + 1))
    assert set(found[:-1].tolist()) == {n - 1}
    assert found[-1] == n
