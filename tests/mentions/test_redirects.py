"""What titles mean: any graph of redirects, compared with a walk through dicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from transforms.mentions.redirects import MAX_HOPS, MEANINGS, TITLES, find, follow, lookup
from transforms.mentions.titles import title_keys
from transforms.phrases.counting import phrase_keys


class Row(NamedTuple):
    """A row of TITLES: "A > B#s" is a redirect to a section, "A" a page, "A ?" a title not known to be either."""

    title: str
    entity: int = 0
    disambiguation: bool = False
    is_page: bool = True
    target: str = ""


def row(written: str, entity: int = 0, *, disambiguation: bool = False) -> Row:
    title, redirect, target = written.partition(" > ")
    if redirect:
        return Row(title, entity, disambiguation, False, target)
    return Row(title.removesuffix(" ?"), entity, disambiguation, not title.endswith("?"))


class Meaning(NamedTuple):
    title: str
    entity: int = 0
    disambiguation: bool = False
    known: bool = True
    hops: int = 0
    status: str = "ok"
    section: str = ""


def table(rows: Sequence[Row]) -> pa.Table:
    titles, targets = [each.title for each in rows], [each.target.partition("#")[0] for each in rows]
    columns = {
        **dict(zip(("key_hi", "key_lo"), title_keys("w", titles), strict=True)),
        **dict(zip(("target_hi", "target_lo"), title_keys("w", targets), strict=True)),
        "title": titles,
        "entity": [each.entity for each in rows],
        "disambiguation": [each.disambiguation for each in rows],
        "is_page": [each.is_page for each in rows],
        "target_title": targets,
        "section": [each.target.partition("#")[2] for each in rows],
    }
    return pa.table({name: columns[name] for name in TITLES.names}, schema=TITLES)


def meanings(rows: Sequence[Row], **options: int) -> tuple[dict[str, Meaning], dict[str, int]]:
    """What each title means."""
    found, counts = follow(table(rows), **options)
    assert found.schema == MEANINGS
    keys = list(zip(found.column("key_hi").to_pylist(), found.column("key_lo").to_pylist(), strict=True))
    assert keys == sorted(set(keys))
    names = sorted({each.title for each in rows})
    places = lookup(found, *title_keys("w", names)).tolist()
    assert sorted(places) == list(range(found.num_rows))
    found_rows = found.drop_columns(["key_hi", "key_lo"]).to_pylist()
    return {name: Meaning(**found_rows[place]) for name, place in zip(names, places, strict=True)}, counts


def walked(rows: Sequence[Row], max_hops: int = MAX_HOPS) -> dict[str, Meaning]:
    """What each title means, found title by title."""
    pages: dict[str, Row] = {}
    targets: dict[str, list[str]] = {}
    for each in rows:
        before = pages.get(each.title, Row(each.title, is_page=False))
        entities = [entity for entity in (before.entity, each.entity) if entity]
        pages[each.title] = Row(
            each.title,
            min(entities, default=0),
            before.disambiguation or each.disambiguation,
            before.is_page or each.is_page,
        )
        if each.target:
            targets.setdefault(each.title, []).append(each.target)

    def lowest(written: list[str]) -> tuple[str, str]:
        """The title and section of the target that counts."""
        titles, _, sections = zip(*(each.partition("#") for each in written), strict=True)
        hi, lo = title_keys("w", titles)
        ranks = [int(phrase_keys(pa.array([each]))[0][0] | np.uint64(1)) if each else 0 for each in sections]
        found = zip(hi.tolist(), lo.tolist(), [-rank for rank in ranks], titles, sections, strict=True)
        return min(found)[3:]

    chosen = {title: lowest(several) for title, several in targets.items() if not pages[title].is_page}
    target = {title: to for title, (to, _) in chosen.items()}
    meant = {}
    for title in pages:
        seen = [title]
        while following := target.get(seen[-1]):
            if following in seen:
                meant[title] = Meaning(title, known=False, status="loop")
                break
            seen.append(following)
        else:
            if len(seen) - 1 > max_hops:
                meant[title] = Meaning(title, known=False, status="too_long")
            elif seen[-1] in pages:
                end = pages[seen[-1]]
                meant[title] = Meaning(end.title, end.entity, end.disambiguation, end.is_page, len(seen) - 1)
            else:
                meant[title] = Meaning(seen[-1], known=False, hops=len(seen) - 1)
            if meant[title].status == "ok":
                sections = (chosen[each][1] for each in seen if each in chosen)
                meant[title] = meant[title]._replace(section=next(filter(None, sections), ""))
    return meant


@pytest.mark.parametrize(
    ("rows", "meant"),
    [
        ([row("A", 5)], {"A": Meaning("A", 5)}),
        ([row("A", 5, disambiguation=True)], {"A": Meaning("A", 5, disambiguation=True)}),
        ([row("A ?")], {"A": Meaning("A", known=False)}),
        # a redirect into another namespace: only its own item is known
        ([row("A ?", 5)], {"A": Meaning("A", 5, known=False)}),
        ([row("A > B"), row("B", 7)], {"A": Meaning("B", 7, hops=1), "B": Meaning("B", 7)}),
        # the item of a redirect is not the item of its target
        ([row("A > B", 3), row("B", 7)], {"A": Meaning("B", 7, hops=1), "B": Meaning("B", 7)}),
        ([row("A > B", 3), row("B")], {"A": Meaning("B", hops=1), "B": Meaning("B")}),
        ([row("A > B", 3)], {"A": Meaning("B", known=False, hops=1)}),
        (
            [row("A > B"), row("B > C", 3), row("C > D", 4)],
            {title: Meaning("D", known=False, hops=hops) for title, hops in (("A", 3), ("B", 2), ("C", 1))},
        ),
        (
            [row("A > B"), row("B > C"), row("C", 1, disambiguation=True)],
            {title: Meaning("C", 1, True, hops=hops) for title, hops in (("A", 2), ("B", 1), ("C", 0))},
        ),
        # loops, and what leads into them
        ([row("A > A", 3)], {"A": Meaning("A", known=False, status="loop")}),
        (
            [row("A > B"), row("B > C"), row("C > B"), row("D > A", 3), row("E > F"), row("F")],
            {
                **{title: Meaning(title, known=False, status="loop") for title in "ABCD"},
                "E": Meaning("F", hops=1),
                "F": Meaning("F"),
            },
        ),
        # sections: the first one on the way counts
        ([row("A > B#s"), row("B", 7)], {"A": Meaning("B", 7, hops=1, section="s"), "B": Meaning("B", 7)}),
        ([row("A > B#s")], {"A": Meaning("B", known=False, hops=1, section="s")}),
        (
            [row("A > B"), row("B > C#s"), row("C > D#t"), row("D > E"), row("E")],
            {
                **{title: Meaning("E", hops=hops, section="s") for title, hops in (("A", 4), ("B", 3))},
                "C": Meaning("E", hops=2, section="t"),
                "D": Meaning("E", hops=1),
                "E": Meaning("E"),
            },
        ),
        ([row("A > A#s")], {"A": Meaning("A", known=False, status="loop")}),
        ([row("A > B#s"), row("A > B"), row("B")], {"A": Meaning("B", hops=1, section="s"), "B": Meaning("B")}),
        # several rows of one title
        ([row("A > B"), row("A", 2), row("B", 1)], {"A": Meaning("A", 2), "B": Meaning("B", 1)}),
        ([row("A"), row("A", 9), row("A", 4), row("A ?", disambiguation=True)], {"A": Meaning("A", 4, True)}),
        ([row("A > B"), row("A > B"), row("B")], {"A": Meaning("B", hops=1), "B": Meaning("B")}),
        ([row("A > B"), row("B > A"), row("B")], {"A": Meaning("B", hops=1), "B": Meaning("B")}),
    ],
)
def test_what_titles_mean(rows: list[Row], meant: dict[str, Meaning]):
    assert walked(rows) == meant
    assert meanings(rows)[0] == meant
    assert meanings(rows[::-1])[0] == meant


def test_counts():
    rows = [row(each) for each in ("A > B", "B > C", "C", "D > X", "E > F", "F > F", "G ?", "H > D")]
    assert meanings(rows)[1] == {
        "titles": 8,
        "pages": 1,
        "redirects": 6,
        "redirects_of_redirects": 2,
        "redirects_to_red_links": 2,
        "redirects_in_loops": 2,
        "redirects_too_long": 0,
    }


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 101, 300])
@pytest.mark.parametrize("end", ["page", "red link", "loop"])
def test_long_chains(length: int, end: str):
    rows = [row(f"{n} > {n + 1}") for n in range(length)]
    rows += {"page": [row(f"{length}", 5)], "red link": [], "loop": [row(f"{length} > {length // 2}")]}[end]
    assert meanings(rows)[0] == walked(rows)
    assert meanings(rows, max_hops=length)[0] == walked(rows, max_hops=length)
    meant, counts = meanings(rows, max_hops=length - 1)
    assert meant == walked(rows, max_hops=length - 1)
    assert counts["redirects_too_long"] == (0 if end == "loop" else 1)


NAMES = st.sampled_from([*"ABCDEFGHIJ", "É", "日本"])
SECTIONS = st.sampled_from(["", "", "#s", "#t"])
ROWS = st.lists(
    st.builds(
        Row,
        NAMES,
        st.integers(0, 3),
        st.booleans(),
        st.booleans() | st.just(False),
        st.just("") | st.builds("{}{}".format, NAMES | st.sampled_from(["X", "Y", "Ÿ"]), SECTIONS),
    )
)


@examples(200)
@given(ROWS, st.integers(0, 5) | st.just(MAX_HOPS))
def test_any_graph(rows, max_hops):
    assert meanings(rows, max_hops=max_hops)[0] == walked(rows, max_hops)


@examples(100)
@given(ROWS, st.data())
def test_any_order_and_any_tables(rows, data):
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    tables = [table(shuffled[:cut]), table(shuffled[cut:]), table([])]
    whole = follow(table(rows))
    for each in (follow(iter(tables)), follow(pa.concat_tables(tables))):
        assert each.meanings.equals(whole.meanings)
        assert each.counts == whole.counts


def test_nothing():
    for nothing in (follow(TITLES.empty_table()), follow([])):
        assert nothing.meanings.equals(MEANINGS.empty_table())
        assert not any(nothing.counts.values())
    assert lookup(nothing.meanings, *title_keys("w", ["A"])).tolist() == [-1]
    assert lookup(nothing.meanings, *title_keys("w", [])).tolist() == []


@given(
    st.sets(st.tuples(st.integers(0, 3) | st.just(2**64 - 1), st.integers(0, 9))),
    st.lists(st.tuples(st.integers(0, 4) | st.just(2**64 - 1), st.integers(0, 10))),
)
def test_find(keys, wanted):
    known = sorted(keys)
    columns = [
        np.array([pair[side] for pair in pairs], dtype=np.uint64) for pairs in (known, wanted) for side in (0, 1)
    ]
    assert find(*columns).tolist() == [known.index(each) if each in keys else -1 for each in wanted]
