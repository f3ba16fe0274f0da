"""Which mentions become pairs: for each key at most m, its groups and their documents in turn, each with the next k.

A key is an entity or a surface. The groups of an entity are its surfaces, those of a surface its entities: mentions of
different groups make the pairs that teach most. The m mentions are on a ring, and each is paired with the next k. So a
key has at most m * k pairs, every mention on the ring is in one, and the result depends neither on the order of the
input nor on how it is cut into units.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from schemas.keys import is_validation
from schemas.terms import PAIR_KINDS
from transforms.arrays import (
    I64,
    U64,
    Bools,
    Numbers,
    mix64,
    places_in_runs,
    run_begins,
    run_sizes,
    string_bytes,
)
from transforms.mentions.options import PairRules

ENTITY, SURFACE = range(2)
"""Indices into PAIR_KINDS, the values of a column `kind`."""

MEMBER_COLUMNS = (
    *("source", "entity_id", "target_title", "section", "mention"),
    *("sentence_id", "text", "start_char", "end_char", "doc_id"),
)
"""The columns of a mentions shard that this module reads."""

CANDIDATES_A_TABLE = 1 << 19
KEY = ("key_hi", "key_lo")
RANK = ("priority", "shard", "row")
"""The columns that decide which members of a key come first."""

MEMBERS = pa.schema(
    [
        ("key_hi", pa.uint64()),
        ("key_lo", pa.uint64()),
        ("kind", pa.uint8()),
        ("group", pa.uint64()),
        ("document", pa.uint64()),
        ("content", pa.uint64()),
        ("sentence", pa.uint64()),
        ("priority", pa.uint64()),
        ("validation", pa.bool_()),
        ("shard", pa.int32()),
        ("row", pa.int32()),
    ]
)
"""A mention as a member of a key.

`group` is a hash of the surface, whatever its case, if the key is an entity, and of the entity key if it is a surface.
`document`, `content` and `sentence` are hashes of the doc_id, of the sentence's text with the span, and of the text
alone. `priority` is a hash of the mention's identity with the seed, `validation` the split of its entity. `shard` and
`row` are its place.
"""

CHOSEN_PAIRS = pa.schema(
    [
        ("key_hi", pa.uint64()),
        ("key_lo", pa.uint64()),
        ("kind", pa.uint8()),
        ("validation", pa.bool_()),
        ("unmasked", pa.uint8()),
        ("shard_1", pa.int32()),
        ("row_1", pa.int32()),
        ("shard_2", pa.int32()),
        ("row_2", pa.int32()),
    ]
)
"""A pair by the places of its mentions; the key identifies the pair and is its place in the shuffled dataset."""


class Counts(NamedTuple):
    """Numbers of pairs: candidates = pairs + filtered. `share`: how many of all candidates are done, from 0 to 1."""

    candidates: int
    filtered: Counter[str]
    share: float = 0.0


class _Ring(NamedTuple):
    """The n members of all keys that have a candidate: key by key, each key in the order of its ring."""

    member: I64  # [n] row in the given members
    first: I64  # [n] place in this array of the key's first member
    size: I64  # [n] number of members of the key
    partners: I64  # [n] how many of the members that follow on the ring this one is paired with


def members_of(mentions: pa.Table, *, shard: int, rules: PairRules, seed: int, validation_rate: float) -> pa.Table:
    """The mentions of a shard (MEMBER_COLUMNS) as members of their keys (MEMBERS), a row for each kind and mention."""
    n = mentions.num_rows
    names, number = distinct(entity_keys(mentions))
    surfaces, surface = distinct(one_array(mentions, "mention"))
    pages, page = distinct(page_names(mentions))
    # The sections of a page are in its split.
    split = np.array([is_validation(each, rate=validation_rate, seed=seed) for each in pages.to_pylist()], dtype=bool)
    sentence = _hashes(one_array(mentions, "text"))
    start, end = (mentions.column(name).to_numpy().astype(np.uint64) for name in ("start_char", "end_char"))
    content = mix64(sentence ^ mix64(start << np.uint64(32) | end))
    ids = [one_array(mentions, "sentence_id"), one_array(mentions, "start_char").cast(pa.string())]
    priority = _hashes(pc.binary_join_element_wise(*ids, "\0"), seed=seed)
    document = _hashes(one_array(mentions, "doc_id"))
    of_mention = [document, content, sentence, priority, split[page], np.full(n, shard), np.arange(n)]
    by_kind = (
        (names, number, _hashes(pc.utf8_lower(surfaces))[surface]),
        (surfaces, surface, _hashes(names)[number]),
    )
    tables = [MEMBERS.empty_table()]
    for kind, (name, (keys, key, group)) in enumerate(zip(PAIR_KINDS, by_kind, strict=True)):
        if name in rules.kinds:
            hi, lo = key_hashes(name, keys.to_pylist())
            tables.append(_table(MEMBERS, [hi[key], lo[key], np.full(n, kind), group, *of_mention]))
    return pa.concat_tables(tables).combine_chunks()


def entity_keys(mentions: pa.Table) -> pa.Array:
    """The entity of each mention as a string: that of its page, with "#" and the section if there is one."""
    section = one_array(mentions, "section")
    page = page_names(mentions)
    return pc.if_else(pc.equal(section, ""), page, pc.binary_join_element_wise(page, section, "#"))


def page_names(mentions: pa.Table) -> pa.Array:
    """The page of each mention: its Wikidata id, or else source and title with a null between them."""
    entity_id = one_array(mentions, "entity_id")
    title = pc.binary_join_element_wise(one_array(mentions, "source"), one_array(mentions, "target_title"), "\0")
    return pc.if_else(pc.equal(entity_id, ""), title, entity_id)


def lowest(members: pa.Table, *, rules: PairRules) -> pa.Table:
    """The members that may be paired: no duplicates, and of each group of a key at most as many as may take part.

    Of members with the same key, group and content, the first by (priority, shard, row) stays. Of these, each document
    of a group keeps the first `mentions_per_document`, and the documents take turns: their first members come before
    their second ones. The group keeps the first `mentions_per_surface` of this order, and at most m. The result is in
    order of key and group, each group in order of its turns.

    A member that is not among the first of a part is not among the first of the whole, so parts can be reduced first:
    lowest(a + b) == lowest(lowest(a) + lowest(b)).
    """
    columns = _numbers(members, *KEY, "group", "content", "document")
    rank = _numbers(members, *RANK)
    kept = _first_of_each(columns[:4], rank)
    hi, lo, group, _, document, *rank = _at(kept, *columns, *rank)
    if rules.all_pairs:
        return members.take(pa.array(kept[_sorted(hi, lo, group, rank)[0]]))
    order, _, new_group = _sorted(hi, lo, group, [document, *rank])
    turn = places_in_runs(new_group | run_begins(document[order]))
    order, turn = _at(np.flatnonzero(turn < rules.mentions_per_document), order, turn)
    hi, lo, group, *rank = _at(order, hi, lo, group, *rank)
    kept = kept[order]
    order, _, new_group = _sorted(hi, lo, group, [turn, *rank])
    order = order[places_in_runs(new_group) < min(rules.mentions_per_surface, rules.mentions_per_key)]
    return members.take(pa.array(kept[order]))


def largest_key(members: pa.Table, *, rules: PairRules) -> int:
    """The largest number of candidates of one key in `choose_pairs`, for the same members."""
    ring = _ring(members, rules)
    starts = np.flatnonzero(ring.first == np.arange(len(ring.first)))
    return int(np.add.reduceat(ring.partners, starts).max()) if len(starts) else 0


def choose_pairs(members: pa.Table, *, rules: PairRules, seed: int) -> Iterator[tuple[pa.Table, Counts]]:
    """The pairs of whole keys, as tables of bounded size (CHOSEN_PAIRS); `members` is a result of `lowest`.

    The groups of a key take turns: the first members of its groups, in order of (priority, shard, row), then their
    second ones, and so on; the first m of these are on the ring. There, each group is spread evenly (`_spread`). A
    surface of one entity has no candidates.

    A key with n members on its ring has min(n * k, n * (n - 1) / 2) candidates, with `all_pairs` n * (n - 1) / 2; no
    two members are paired twice. With n = 4 and k = 2 the members 0 1 2 3 have 2 2 1 1 partners: 0-1 0-2 1-2 1-3 2-3
    and, as member 0 follows member 3, 3-0. The `edges` of these candidates are 0 2 4 5 6.

    A candidate is filtered if it is by surface and of one entity ("same_entity"), or of one text ("same_sentence"), or
    by surface and of entities in different splits ("crosses_splits"); the first reason counts. The first mention of a
    pair is the one of lower (priority, shard, row). With probability 0.5 one of the two keeps its words.
    """
    ring = _ring(members, rules)
    columns = dict(zip(members.column_names, _at(ring.member, *_numbers(members, *members.column_names)), strict=True))
    edges = np.concatenate(([0], np.cumsum(ring.partners)))
    for start in range(0, int(edges[-1]), CANDIDATES_A_TABLE):
        end = min(start + CANDIDATES_A_TABLE, int(edges[-1]))
        first, last = np.searchsorted(edges, [start, end - 1], side="right") - 1
        one = np.repeat(np.arange(first, last + 1), np.diff(np.clip(edges[first : last + 2], start, end)))
        other = one + 1 + np.arange(start, end) - edges[one]
        # After the last member of a key comes its first.
        other -= np.where(other >= ring.first[one] + ring.size[one], ring.size[one], 0)
        chosen, counts = _judge(columns, one, other, seed=seed)
        yield chosen, counts._replace(share=end / int(edges[-1]))


def _ring(members: pa.Table, rules: PairRules) -> _Ring:
    kind, hi, lo, group = _numbers(members, "kind", *KEY, "group")
    rank = _numbers(members, *RANK)
    new_key = run_begins(hi, lo)
    new_group = run_begins(hi, lo, group)
    starts = np.flatnonzero(new_key)
    several = np.repeat(np.add.reduceat(new_group, starts) > 1, run_sizes(starts, len(hi))) if len(hi) else new_key
    turn = places_in_runs(new_group)
    member = np.flatnonzero((kind == ENTITY) | several)
    key_hi, key_lo, of_group = _at(member, hi, lo, turn)
    order, new_key, _ = _sorted(key_hi, key_lo, of_group, _at(member, *rank))
    if not rules.all_pairs:
        chosen = places_in_runs(new_key) < rules.mentions_per_key
        order, new_key = order[chosen], new_key[chosen]
    member = member[order]
    member = member[_spread(new_key, *_at(member, group, turn))]
    starts = np.flatnonzero(new_key)
    sizes = run_sizes(starts, len(member))
    first, size = np.repeat(starts, sizes), np.repeat(sizes, sizes)
    half = size // 2
    partners = half if rules.all_pairs else np.minimum(half, rules.partners)
    # Two members opposite each other on a ring of even size are paired once, by the former of them.
    twice = (size % 2 == 0) & (partners == half) & (np.arange(len(member)) - first >= half)
    return _Ring(member, first, size, partners - twice)


def _spread(new_key: Bools, group: U64, turn: I64) -> I64:
    """The order on the rings of n members, given in order of key and of turns: each group at even distances.

    The c members of a group are at (0 + f) / c, (1 + f) / c, ... of the ring. The fraction f is a multiple of the
    golden ratio, so that small groups are far from each other: of the groups a a a a, b and c, which come in the order
    a b c a a a, b is between the third and the last a, and c between the first two.

    >>> _spread(np.arange(6) == 0, np.array([1, 2, 3, 1, 1, 1], np.uint64), np.array([0, 0, 0, 1, 2, 3]))
    array([0, 2, 3, 4, 1, 5])
    """
    key = np.cumsum(new_key)
    by_group = np.lexsort((turn, group, key))
    starts = np.flatnonzero(run_begins(*_at(by_group, key, group)))
    sizes = run_sizes(starts, len(key))
    number = places_in_runs(new_key)[by_group[starts]].astype(np.uint64)
    fraction = number * np.uint64(0x9E37_79B9) % np.uint64(1 << 32)
    place = np.empty(len(key), dtype=np.uint64)
    at = (turn[by_group].astype(np.uint64) << np.uint64(32)) + np.repeat(fraction, sizes)
    place[by_group] = at // np.repeat(sizes, sizes).astype(np.uint64)
    return np.lexsort((place, key))


def _judge(columns: dict[str, Any], one: I64, other: I64, *, seed: int) -> tuple[pa.Table, Counts]:
    """The candidates that are pairs (CHOSEN_PAIRS), and the counts."""
    candidates = len(one)
    filtered: Counter[str] = Counter()

    def keep(kept: Bools, reason: str) -> None:
        nonlocal one, other
        dropped = len(kept) - int(np.count_nonzero(kept))
        if dropped:
            filtered[reason] += dropped
            one, other = one[kept], other[kept]

    kind, group, sentence = columns["kind"], columns["group"], columns["sentence"]
    priority, validation = columns["priority"], columns["validation"]
    keep((kind[one] == ENTITY) | (group[one] != group[other]), "same_entity")
    keep(sentence[one] != sentence[other], "same_sentence")
    keep(validation[one] == validation[other], "crosses_splits")
    later = np.zeros(len(one), dtype=bool)
    for column in (columns[name] for name in reversed(RANK)):
        later = (column[one] > column[other]) | ((column[one] == column[other]) & later)
    one, other = np.where(later, other, one), np.where(later, one, other)
    salt = mix64(mix64(kind[one].astype(np.uint64)) ^ np.uint64(seed % 2**64))
    hi, lo = (mix64(mix64(priority[one] ^ each) ^ priority[other]) for each in (salt, ~salt))
    # Mixed again, because the key's own highest bits decide the shard.
    chance = mix64(hi ^ mix64(lo)) % np.uint64(4)
    unmasked = np.where(chance < 2, 0, chance - 1)
    places = (columns[name][side] for side in (one, other) for name in ("shard", "row"))
    arrays = [hi, lo, kind[one], validation[one], unmasked, *places]
    return _table(CHOSEN_PAIRS, arrays), Counts(candidates, filtered)


def near_copies(first: Sequence[str], second: Sequence[str], *, least: float) -> Bools:
    """[n] whether two sentences share the share `least` of their words or more (Jaccard index of their sets of words).

    Words are in any case and separated by blanks; in a text without blanks in Chinese, Japanese, Thai or the like, each
    character is one. The first two share 5 of 7 words:

    >>> near_copies(["Ada is a town in Ohio."], ["Eva is a town in Ohio."], least=0.7)
    array([ True])
    >>> near_copies(["Ada is a town in Ohio."], ["Eva is a city in Ohio."], least=0.7)
    array([False])
    """
    found = np.zeros(len(first), dtype=bool)
    for row, texts in enumerate(zip(first, second, strict=True)):
        one, other = (set(list(each) if _is_unspaced(each) else each.lower().split()) for each in texts)
        # The index is at most the ratio of the sizes.
        if min(len(one), len(other)) >= least * max(len(one), len(other)):
            shared = len(one & other)
            found[row] = shared >= least * (len(one) + len(other) - shared)
    return found


_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def _is_unspaced(text: str) -> bool:
    return " " not in text and _UNSPACED.search(text) is not None


def _first_of_each(group: Sequence[Numbers], rank: Sequence[Numbers]) -> I64:
    """The rows that are first in their group by `rank`, in the order given; fast if most groups have one row.

    Rows whose mixed hash no other row has are alone in their group. Only the others are sorted.

    >>> group, rank = np.array([7, 8, 7, 9], np.uint64), np.array([5, 0, 3, 0])
    >>> _first_of_each([group], [rank])
    array([1, 2, 3])
    """
    n = len(group[0])
    mixed = np.zeros(n, dtype=np.uint64)
    for odd, column in enumerate(group):
        mixed += column * np.uint64(2 * odd + 1)
    # The upper half differs for nearly all groups. NumPy sorts 16-bit numbers by radix, eight times as fast as others.
    digits = [(mixed >> np.uint64(shift)).astype(np.uint16) for shift in (32, 48)]
    order = np.lexsort(digits)
    alone = run_begins(*_at(order, *digits))
    alone[:-1] &= alone[1:]
    first = np.zeros(n, dtype=bool)
    first[order[alone]] = True
    rows = order[~alone]
    rows = rows[np.lexsort(_at(rows, *reversed(rank), *reversed(group)))]
    first[rows[run_begins(*_at(rows, *group))]] = True
    return np.flatnonzero(first)


def _sorted(hi: U64, lo: U64, group: Numbers, rank: Sequence[Numbers]) -> tuple[I64, Bools, Bools]:
    """The order of n rows by key, group and rank, and [n] where in that order a key and a group of a key begin."""
    order = np.argsort(hi, kind="stable")
    order, new_key = _refined(order, run_begins(hi[order]), lo)
    order, new_group = _refined(order, new_key, group)
    new = new_group
    for column in rank:
        order, new = _refined(order, new, column)
    return order, new_key, new_group


def _refined(order: I64, new: Bools, column: Numbers) -> tuple[I64, Bools]:
    """An order of rows refined by one more column; `new` marks where a run of rows begins that are equal so far.

    Rows 2 0 1 in runs of 2 and 1, and a column with the values 1 9 5: the first run is put in order, and all differ.

    >>> _refined(np.array([2, 0, 1]), np.array([True, False, True]), np.array([1, 9, 5], np.uint64))
    (array([0, 2, 1]), array([ True,  True,  True]))
    """
    if new.all():
        return order, new
    values = column[order]
    if _descends(values, new):
        run = np.cumsum(new).astype(np.uint64)
        # One sort of run and value packed into 64 bits is several times as fast as a sort by two columns.
        bits = np.uint64(64 - int(run[-1]).bit_length())
        within = np.argsort(run << bits | values.astype(np.uint64) >> (np.uint64(64) - bits), kind="stable")
        if _descends(values[within], new):
            within = np.lexsort((values, run))
        order, values = order[within], values[within]
    return order, new | run_begins(values)


def _descends(values: Numbers, new: Bools) -> bool:
    """Whether a value is lower than the one before it in its run."""
    return bool(((values[1:] < values[:-1]) & ~new[1:]).any())


def one_array(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    return table.column(name).combine_chunks()


def _numbers(table: pa.Table, *names: str) -> list[Numbers]:
    return [table.column(name).to_numpy() for name in names]


def _at(rows: I64, *columns: Numbers) -> list[Numbers]:
    return [each[rows] for each in columns]


def _table(schema: pa.Schema, columns: Sequence[Numbers]) -> pa.Table:
    arrays = [pa.array(column).cast(field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def distinct(strings: pa.Array) -> tuple[pa.Array, I64]:
    """The distinct strings, and for each of the n strings its number among them, [n]."""
    encoded = strings.dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _hashes(strings: pa.Array, *, seed: int = 0) -> U64:
    """[n] xxh3 of each string's UTF-8 bytes."""
    data, edges = string_bytes(strings)
    view, digest = memoryview(data.data), xxhash.xxh3_64_intdigest
    return np.fromiter((digest(view[a:b], seed) for a, b in pairwise(edges.tolist())), np.uint64, len(strings))


def key_hashes(kind: str, keys: Sequence[str]) -> tuple[U64, U64]:
    """128 bits of xxh3 over kind and key, as two 64-bit columns."""
    digests = b"".join(xxhash.xxh3_128_digest(f"{kind}\0{key}".encode()) for key in keys)
    hi, lo = np.frombuffer(digests, dtype=">u8").astype(np.uint64).reshape(-1, 2).T
    return hi, lo
