"""What each title of a wiki means after its redirects are followed: one table in memory, made for 20 million titles.

A title is represented by its 128-bit key. The key that a redirect points to is looked up among the sorted keys once;
from then on the redirect is a row number (4 bytes). So strings are in memory once and are read only at the end. Memory:
docs/mentions.md.

Chains are followed by doubling (Hillis and Steele 1986, "Data parallel algorithms", on finding the end of a linked
list): in each round every redirect takes over the target of its target, so k rounds follow 2^k hops. A redirect that
has not ended after the rounds that the longest possible chain needs is in a loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.keys import order_by_key
from transforms.arrays import I64, U64, Bools, run_starts
from transforms.phrases.counting import phrase_keys

I32 = npt.NDArray[np.int32]

_KEY_FIELDS = (("key_hi", pa.uint64()), ("key_lo", pa.uint64()))

TITLES = pa.schema(
    [
        *_KEY_FIELDS,
        ("title", pa.string()),
        ("entity", pa.int64()),
        ("disambiguation", pa.bool_()),
        ("is_page", pa.bool_()),
        ("target_title", pa.string()),
        ("section", pa.string()),
        ("target_hi", pa.uint64()),
        ("target_lo", pa.uint64()),
    ]
)
"""What one source says of a title: the number of its Wikidata id (0: none), whether it is known to be an article, and
its redirect target ("": none, and the target's key is ignored) with the section of that page. Keys:
`transforms.mentions.titles.title_keys`.
"""

OK, LOOP, TOO_LONG = STATUSES = ("ok", "loop", "too_long")

MEANINGS = pa.schema(
    [
        *_KEY_FIELDS,
        ("title", pa.string()),
        ("section", pa.string()),
        ("entity", pa.int64()),
        ("disambiguation", pa.bool_()),
        ("known", pa.bool_()),
        ("hops", pa.int32()),
        ("status", pa.string()),
    ]
)
"""What the title of a key means: the title at the end of its redirects, `hops` further, with the section that the first
redirect with one names, that page's entity (0: none) and whether it is a disambiguation page; `known` if it is known to
be an article. A redirect that leads into a loop, or over too many hops, means itself and nothing is known of it;
`status` is the one of STATUSES that applies.
"""

MAX_HOPS = 100
"""MediaWiki itself follows one."""

_TITLES_AT_ONCE = 1 << 20
_NONE = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_NO_ENTITY = np.iinfo(np.int64).max


class Followed(NamedTuple):
    """Meanings (MEANINGS), one row for each key in order of the keys, and counts of titles by outcome."""

    meanings: pa.Table
    counts: dict[str, int]


def follow(titles: pa.Table | Iterable[pa.Table], *, max_hops: int = MAX_HOPS) -> Followed:
    """What each title means. `titles` are TITLES in any order, in one table or several.

    Several rows with one key are merged. The title is a page if one of them says so, and then not a redirect; it is a
    disambiguation page if one of them says so; its entity is the lowest, its target the one with the lowest key, and of
    that target's sections the one of the highest hash counts.

    For a page "C" and the redirects "A" to "B", "B" to "C" and "D" to "E", which is not among the titles: "A" means "C"
    after 2 hops, "B" means "C" after 1, "C" means itself, and "D" means "E" after 1, with nothing known of it.
    """
    nodes = _merge(_Rows([titles] if isinstance(titles, pa.Table) else titles))
    n = len(nodes.hi)
    rows = np.arange(n, dtype=np.int32)
    nowhere = nodes.target == _NOWHERE
    final, hops, in_loop, named = _ends(nodes.target, nodes.section >= 0)
    hops += nowhere[final]
    too_long = ~in_loop & (hops > max_hops)
    status = np.zeros(n, dtype=np.int8)
    status[in_loop], status[too_long] = STATUSES.index(LOOP), STATUSES.index(TOO_LONG)
    failed = in_loop | too_long
    final[failed], hops[failed], named[failed] = rows[failed], 0, -1
    to_nowhere = nowhere[final] & ~failed
    counts = {
        "titles": n,
        "pages": int(np.count_nonzero(nodes.is_page)),
        "redirects": int(np.count_nonzero(nodes.target != _STAYS)),
        "redirects_of_redirects": int(np.count_nonzero(hops > 1)),
        "redirects_to_red_links": int(np.count_nonzero(to_nowhere)),
        "redirects_in_loops": int(np.count_nonzero(in_loop)),
        "redirects_too_long": int(np.count_nonzero(too_long)),
    }
    unknown = failed | to_nowhere
    columns = {
        "key_hi": nodes.hi,
        "key_lo": nodes.lo,
        "title": _titles(nodes, final, to_nowhere),
        "section": _sections(nodes, named),
        "entity": np.where(unknown, 0, nodes.entity[final]),
        "disambiguation": nodes.disambiguation[final] & ~unknown,
        "known": nodes.is_page[final] & ~unknown,
        "hops": hops,
        "status": pa.array(STATUSES).take(pa.array(status)),
    }
    return Followed(pa.table(columns, schema=MEANINGS), counts)


def lookup(meanings: pa.Table, hi: U64, lo: U64) -> I64:
    """[keys] the row of each key in a table sorted by key; -1 if there is none."""
    return find(_numbers(meanings, "key_hi"), _numbers(meanings, "key_lo"), hi, lo)


def find(sorted_hi: U64, sorted_lo: U64, hi: U64, lo: U64) -> I64:
    """[keys] the place of each key (hi, lo) among sorted distinct keys; -1 if there is none.

    Each key is looked up by its first half; from there the search steps on while the first half is the same.

    >>> find(np.array([5, 5, 9]), np.array([1, 2, 1]), hi=np.array([9, 5, 5]), lo=np.array([1, 2, 3]))
    array([ 2,  1, -1])
    """
    n = len(sorted_hi)
    place = np.full(len(hi), -1, dtype=np.int64)
    # Sorted, so that the search goes through memory once.
    order = np.argsort(hi)
    at = np.searchsorted(sorted_hi, hi[order])
    while len(order):
        inside = at < n
        order, at = order[inside], at[inside]
        same = sorted_hi[at] == hi[order]
        order, at = order[same], at[same]
        found = sorted_lo[at] == lo[order]
        place[order[found]] = at[found]
        order, at = order[~found], at[~found] + 1  # another key with this first half may follow
    return place


# Rows to nodes


class _Rows:
    """TITLES in the order given. Each column can be taken once, in another order, so that it is in memory once."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self.titles: list[pa.Array] = []
        self.targets: list[pa.Array] = []
        self.sections: list[pa.Array] = []
        columns: dict[str, list[Any]] = {name: [] for name in _NUMBERS}
        for table in tables:
            self.titles += table.column("title").chunks
            self.targets += table.column("target_title").chunks
            self.sections += table.column("section").chunks
            leads = pc.not_equal(table.column("target_title"), "").to_numpy(zero_copy_only=False)
            for name in _NUMBERS:
                values = _hashes(table.column("section")) if name == "section" else _numbers(table, name)
                columns[name].append(np.where(leads, values, _NONE) if name.startswith("target") else values)
        self._columns = {}
        for name, dtype in _NUMBERS.items():
            self._columns[name] = np.concatenate([np.zeros(0, dtype=dtype), *columns.pop(name)])

    def order(self) -> I32:
        return order_by_key(self._columns["key_hi"], self._columns["key_lo"]).astype(np.int32)

    def take(self, name: str, order: I32) -> npt.NDArray[Any]:
        return self._columns.pop(name)[order]


_NUMBERS = {
    **dict.fromkeys(("key_hi", "key_lo", "target_hi", "target_lo", "section"), np.uint64),
    "entity": np.int64,
    **dict.fromkeys(("disambiguation", "is_page"), np.bool_),
}


def _hashes(sections: pa.ChunkedArray) -> U64:
    """[n] a hash of each string; 0 if it is empty, as nearly all are."""
    found = np.zeros(len(sections), dtype=np.uint64)
    there = pc.not_equal(sections, "")
    found[there.to_numpy(zero_copy_only=False)] = phrase_keys(sections.filter(there))[0] | np.uint64(1)
    return found


_NOWHERE, _STAYS = -1, -2


class _Nodes(NamedTuple):
    """The n distinct titles in order of key."""

    hi: U64
    lo: U64
    entity: I64
    disambiguation: Bools
    is_page: Bools
    target: I32  # [n] the node that it redirects to; _NOWHERE if the target is no node, _STAYS if it is no redirect
    row: I32  # [n] the row with its title
    section: I32  # [n] the row with the section that it redirects to; -1 if there is none
    sections: list[pa.Array]  # of the rows
    titles: list[pa.Array]  # of the rows
    red_links: pa.Array  # the targets that are no nodes, in order of the redirects to them


def _merge(rows: _Rows) -> _Nodes:
    order = rows.order()
    hi, lo = rows.take("key_hi", order), rows.take("key_lo", order)
    starts = run_starts(hi, lo)
    hi, lo = hi[starts], lo[starts]
    group = np.repeat(np.arange(len(starts), dtype=np.int32), np.diff(np.append(starts, len(order))))

    def of_each(choose: np.ufunc, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return choose.reduceat(values, starts) if len(starts) else values

    entity = rows.take("entity", order)
    entity[entity == 0] = _NO_ENTITY
    entity = of_each(np.minimum, entity)
    entity[entity == _NO_ENTITY] = 0
    is_page = of_each(np.logical_or, rows.take("is_page", order))
    # The lowest target, first by one half and then by the other, and then a row that has it.
    high, low = rows.take("target_hi", order), rows.take("target_lo", order)
    target_hi = of_each(np.minimum, high)
    low[high != target_hi[group]] = _NONE
    target_lo = of_each(np.minimum, low)
    has_it = (high == target_hi[group]) & (low == target_lo[group])
    del high, low
    section = np.where(has_it, rows.take("section", order), np.uint64(0))
    named = of_each(np.maximum, section)
    has_it &= section == named[group]
    target_row = of_each(np.minimum, np.where(has_it, order, np.int32(len(order))))
    del has_it, group, section
    redirects = np.flatnonzero(~is_page & ((target_hi != _NONE) | (target_lo != _NONE)))
    section_row = np.full(len(starts), -1, dtype=np.int32)
    to_section = redirects[named[redirects] != 0]
    section_row[to_section] = target_row[to_section]
    target_hi, target_lo, target_row = target_hi[redirects], target_lo[redirects], target_row[redirects]
    target = np.full(len(starts), _STAYS, dtype=np.int32)
    place = find(hi, lo, target_hi, target_lo)
    target[redirects] = np.where(place < 0, _NOWHERE, place)
    return _Nodes(
        hi=hi,
        lo=lo,
        entity=entity,
        disambiguation=of_each(np.logical_or, rows.take("disambiguation", order)),
        is_page=is_page,
        target=target,
        row=order[starts],
        section=section_row,
        sections=rows.sections,
        titles=rows.titles,
        red_links=_take(rows.targets, target_row[place < 0]),
    )


def _ends(target: I32, marked: Bools) -> tuple[I32, I32, Bools, I32]:
    """[n] where each node ends, after how many hops, whether it does not end because it leads into a loop, and the
    first of these nodes that is marked, itself and its end included; -1 if none is.

    `target[i]` is the node that i points to, negative if i is an end. In the chain 0 -> 1 -> 2 -> 3, beside a loop 4 5,
    the ends of the chain are 1 2 3 3 at first, 2 3 3 3 after one round and 3 3 3 3 after two.

    >>> marked = np.arange(6) == 1
    >>> end, hops, in_loop, first = _ends(np.array([1, 2, 3, -2, 5, 4], np.int32), marked)
    >>> end[:4].tolist(), hops[:4].tolist(), in_loop.tolist(), first[:4].tolist()
    ([3, 3, 3, 3], [3, 2, 1, 0], [False, False, False, False, True, True], [1, 1, -1, -1])
    """
    moving = target >= 0
    end = np.where(moving, target, np.arange(len(target), dtype=np.int32))
    hops = moving.astype(np.int32)
    # Of the nodes from each one up to its end so far, without that.
    first = np.where(marked, np.arange(len(target), dtype=np.int32), np.int32(-1))
    under_way = np.flatnonzero(moving & moving[end])
    for _ in range(len(under_way).bit_length() + 1):
        following = end[under_way]
        first[under_way] = np.where(first[under_way] < 0, first[following], first[under_way])
        further = hops[under_way] + hops[following]
        end[under_way] = following = end[following]
        hops[under_way] = further
        under_way = under_way[moving[following]]
    in_loop = np.zeros(len(target), dtype=bool)
    in_loop[under_way] = True
    return end, hops, in_loop, np.where(first < 0, first[end], first)


def _titles(nodes: _Nodes, final: I32, to_nowhere: Bools) -> pa.ChunkedArray:
    """[n] the title at the end of each node's redirects: that of a node, or of a target that is no node."""
    strings = [*nodes.titles, nodes.red_links]
    first = sum(map(len, nodes.titles))
    lead_nowhere = np.flatnonzero(nodes.target == _NOWHERE)
    chunks = []
    for start in range(0, len(final), _TITLES_AT_ONCE):
        some = final[start : start + _TITLES_AT_ONCE]
        red = to_nowhere[start : start + _TITLES_AT_ONCE]
        place = nodes.row[some]
        place[red] = first + np.searchsorted(lead_nowhere, some[red])
        chunks.append(_take(strings, place))
    return pa.chunked_array(chunks, pa.string())


def _sections(nodes: _Nodes, named: I32) -> pa.Array:
    """[n] the section that the redirect of the node `named` leads to; empty where that is -1."""
    there = named >= 0
    found = _take(nodes.sections, nodes.section[named[there]])
    place = np.cumsum(there) - 1
    return pc.fill_null(found.take(pa.array(place, mask=~there)), "")


def _take(chunks: list[pa.Array], rows: I32) -> pa.Array:
    """The strings of some rows, in the order of `rows`; rows are counted through all chunks."""
    order = np.argsort(rows, kind="stable")
    edges = np.cumsum([0, *map(len, chunks)])
    cuts = np.searchsorted(rows[order], edges)
    taken = [
        chunk.take(pa.array(rows[order[start:end]] - edge))
        for chunk, edge, (start, end) in zip(chunks, edges.tolist(), itertools.pairwise(cuts.tolist()), strict=False)
        if end > start
    ]
    back = np.empty(len(rows), dtype=np.int64)
    back[order] = np.arange(len(rows))
    return pa.concat_arrays([pa.array([], pa.string()), *taken]).take(pa.array(back))


def _numbers(table: pa.Table, name: str) -> npt.NDArray[Any]:
    column = table.column(name)
    if column.num_chunks == 1:
        return column.chunk(0).to_numpy(zero_copy_only=False)
    return column.to_numpy()
