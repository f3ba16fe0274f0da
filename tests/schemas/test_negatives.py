"""Which row's context is the negative of a row."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import brute_force
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas import negatives
from schemas.negatives import KEY_COLUMNS, Circle, Eligible, Keys, Phrase, find_negatives
from schemas.terms import NEGATIVES

Row = dict[str, Any]


class Parts(Circle):
    """A circle of rows in parts, some of which are empty."""

    def __init__(self, parts: Sequence[Sequence[Row]]) -> None:
        self.parts, self.ranges = parts, len(parts)
        self.read = 0

    def keys(self, number: int) -> Keys:
        self.read += 1
        return Keys.of(table(self.parts[number]))

    def contexts(self, number: int) -> pa.ChunkedArray:
        return table(self.parts[number]).column("context")


def table(rows: Sequence[Row]) -> pa.Table:
    names = (*KEY_COLUMNS, "context")
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()) for name in names]))


def row(written: str) -> Row:
    """A row written as phrase, document, source, label, context."""
    phrase, document, source, label, context = written.split(" ", 4)
    return {"phrase": phrase, "doc_id": document, "source": source, "label": label, "context": context}


def found(circle: Parts, mode: str) -> tuple[list[str], Counter[str]]:
    rows: list[str] = []
    counters: Counter[str] = Counter()
    for number, part in enumerate(circle.parts):
        phrases = [each["phrase"] for each in part]
        some, more = find_negatives(circle, number, phrases, negatives=mode, mask="[MASK]")
        rows += some
        counters += more
    return rows, counters


ROWS = [
    row(each)
    for each in (
        "cat d1 wiki NP A [MASK] sat.",
        "dog d1 wiki VP The [MASK] ran.",
        "owl d2 book NP Two Cats and the Cat's [MASK].",
        "fox d3 book VP A red [MASK].",
        "elk d4 wiki NP One [MASK].",
        "ant d5 wiki VP An [MASK] here.",
    )
]


@pytest.mark.parametrize(
    ("mode", "of_cat", "counters"),
    [
        # dog has the same document, the context of owl has "Cat"
        ("random", "A red [MASK].", {}),
        ("same-source", "One [MASK].", {}),
        ("same-label", "One [MASK].", {}),
        # owl has only fox in its source, whose label is another; fox has only owl
        ("same-source-and-label", "One [MASK].", {"negatives_of_any_label": 2}),
    ],
)
@pytest.mark.parametrize("parts", [[6], [1, 5], [2, 0, 2, 2], [1] * 6, [0, 6]])
def test_a_table(mode, of_cat, counters, parts):
    cuts = np.cumsum([0, *parts]).tolist()
    circle = Parts([ROWS[start:end] for start, end in itertools.pairwise(cuts)])
    negative, counted = found(circle, mode)
    assert negative[0] == of_cat
    assert counted == counters


@pytest.mark.parametrize(
    ("rows", "mode", "expected", "counters"),
    [
        # one document: another phrase is enough
        (["a d s NP 1", "b d s NP 2"], "random", ["2", "1"], {"negatives_of_any_document": 2}),
        # one phrase; a phrase that is in every other context; one row; none
        (["a d s NP 1", "a e s NP 2"], "random", ["", ""], {"without_negative": 2}),
        (["a d s NP x", "b e s NP a", "c f s NP an a."], "random", ["", "an a.", "x"], {"without_negative": 1}),
        (["a d s NP 1"], "same-source", [""], {"without_negative": 1}),
        ([], "same-label", [], {}),
        # another document comes before the source, the source before the label
        (["a d s NP 1", "b d s NP 2", "c e t NP 3"], "same-source", ["3", "3", "1"], {"negatives_of_any_source": 3}),
        (
            ["a d s NP 1", "b e t NP 2", "c f s VP 3"],
            "same-source-and-label",
            ["3", "3", "1"],
            {"negatives_of_any_label": 2, "negatives_of_any_source": 1},
        ),
        (["a d s NP 1", "b e s VP 2", "c f t NP 3"], "same-label", ["3", "3", "1"], {"negatives_of_any_label": 1}),
    ],
)
def test_what_is_given_up(rows, mode, expected, counters):
    assert found(Parts([list(map(row, rows))]), mode) == (expected, counters)


@pytest.mark.parametrize(
    ("phrase", "context", "is_in"),
    [
        ("cat", "The CAT sat", True),
        ("cat", "cat", True),
        ("cat", "cats, concat, cat_1, cat2", False),
        ("cat", "the cat's; a cat-like", True),
        ("na", "banana na", True),
        ("new york", "in New York.", True),
        ("new york", "new  york", False),
        ("$5", "US$5 and $55", True),
        ("$5", "$55", False),
        ("50%", "50%", True),
        ("rock 'n' roll", "Rock \u2019n\u2019 Roll", True),
        ("\u00e9t\u00e9", "l'E\u0301TE\u0301", True),
        ("\u00e9t\u00e9", "\u00e9t\u00e9s", False),
        ("i\u0307stanbul", "\u0130STANBUL", True),
        ("\u03bf\u03b4\u03cc\u03c2", "\u039f\u0394\u038c\u03a3", True),
        # the words of a mask are no words of the context
        ("mask", "a [MASK].", False),
        ("mask", "a [MASK] or mask", True),
        ("[mask]", "a [MASK]", False),
    ],
)
def test_the_words_of_a_phrase(phrase, context, is_in):
    assert Phrase(phrase).is_in(context, mask="[MASK]") == is_in
    assert brute_force.words_in(context.replace("[MASK]", "\0"), phrase) == is_in


WORD = st.sampled_from(["a", "b", "c", "ab", "\u00e9"])
PARTS = st.lists(
    st.lists(
        st.fixed_dictionaries(
            {
                "phrase": WORD,
                "doc_id": st.sampled_from("123"),
                "source": st.sampled_from("st"),
                "label": st.sampled_from(["NP", "VP"]),
                "context": st.lists(st.one_of(WORD, st.just("[MASK]")), min_size=1, max_size=3).map(" ".join),
            }
        ),
        max_size=6,
    ),
    min_size=1,
    max_size=4,
)


@examples(40)
@given(PARTS, st.sampled_from(list(NEGATIVES)), st.sampled_from([1, 3, 100]))
def test_any_circle(parts, mode, look_ahead):
    rows = [each for part in parts for each in part]
    with pytest.MonkeyPatch.context() as patch:
        for module in (negatives, brute_force):
            patch.setattr(module, "LOOK_AHEAD", look_ahead)
        wanted = [
            brute_force.negative(each, rows[place + 1 :] + rows[:place], mode, "[MASK]")
            for place, each in enumerate(rows)
        ]
        negative, counters = found(Parts(parts), mode)
        assert negative == wanted
        assert counters["without_negative"] == wanted.count("")
        assert (found(Parts([rows]), mode)) == (negative, counters)


def test_a_search_ends(monkeypatch):
    """A source of one document makes its rows look at some parts after theirs, not at all."""
    monkeypatch.setattr(negatives, "LOOK_AHEAD", 50)
    rows = [row(f"p{n} d{n} s NP {n}") for n in range(1_000)]
    rows[0]["source"] = "t"
    circle = Parts([rows[start : start + 20] for start in range(0, 1_000, 20)])
    negative, counters = find_negatives(circle, 0, ["p"] * 20, negatives="same-source", mask="[MASK]")
    assert (negative[0], counters) == ("1", {"negatives_of_any_source": 1})
    assert circle.read <= 5


def test_a_document_that_fills_the_part_is_passed_at_once():
    n = 200_000
    numbers = np.arange(n, dtype=np.uint64)
    constant = np.zeros(n, dtype=np.uint64)
    keys = Keys(numbers % np.uint64(7), constant.copy(), constant, constant)
    keys.phrase[-1], keys.document[-1] = 100, 1
    place = Eligible(keys, ("document", "source")).first(keys, np.arange(1, n + 1), np.full(n, n))
    assert set(place[:-1].tolist()) == {n - 1}
    assert place[-1] == -1
