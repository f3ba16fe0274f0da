"""Which mentions become pairs: as in plain Python, for any units in any order, at most the documented number."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.keys import is_validation
from schemas.kinds import FILTER_REASONS
from schemas.kinds.mentions import MENTIONS
from schemas.terms import PAIR_KINDS
from transforms.mentions import pairs
from transforms.mentions.options import PairRules
from transforms.mentions.pairs import (
    CHOSEN_PAIRS,
    MEMBER_COLUMNS,
    MEMBERS,
    choose_pairs,
    largest_key,
    lowest,
    members_of,
    near_copies,
)

SEED = 7
EVERY = PairRules(all_pairs=True)


class Said(NamedTuple):
    """A mention: `[surface]` occurs in the text once, and the brackets are not part of it."""

    entity: str  # a Wikidata id, else a title
    text: str
    sentence_id: str

    @property
    def surface(self) -> str:
        return self.text[self.text.index("[") + 1 : self.text.index("]")]

    @property
    def sentence(self) -> str:
        return self.text.replace("[", "").replace("]", "")

    @property
    def start(self) -> int:
        return self.text.index("[")

    @property
    def entity_key(self) -> str:
        return self.entity if self.entity.startswith("Q") else f"w\0{self.entity}"

    @property
    def doc_id(self) -> str:
        return self.sentence_id.rpartition("#")[0]

    @property
    def priority(self) -> int:
        return xxhash.xxh3_64_intdigest(f"{self.sentence_id}\0{self.start}".encode(), seed=SEED)


def said(*mentions: tuple[str, str]) -> list[Said]:
    """Mentions, each in a document of its own."""
    return [Said(*each, f"d{number}#0") for number, each in enumerate(mentions)]


def table(mentions: Iterable[Said]) -> pa.Table:
    rows = [
        {
            **dict.fromkeys(MENTIONS.names, ""),
            "source": "w",
            "entity_id": each.entity if each.entity.startswith("Q") else "",
            "target_title": "Any title" if each.entity.startswith("Q") else each.entity,
            "mention": each.surface,
            "sentence_id": each.sentence_id,
            "doc_id": each.doc_id,
            "text": each.sentence,
            "start_char": each.start,
            "end_char": each.start + len(each.surface),
        }
        for each in mentions
    ]
    return pa.Table.from_pylist(rows, schema=MENTIONS).select(MEMBER_COLUMNS)


def members(shards: Sequence[Sequence[Said]], rules: PairRules, *, rate: float = 0.0) -> pa.Table:
    made = [
        members_of(table(some), shard=number, rules=rules, seed=SEED, validation_rate=rate)
        for number, some in enumerate(shards)
    ]
    return pa.concat_tables([MEMBERS.empty_table(), *made])


class Pair(NamedTuple):
    kind: str
    first: Said
    second: Said


class Found(NamedTuple):
    pairs: list[Pair]
    candidates: int
    filtered: Counter[str]


def chosen(shards: Sequence[Sequence[Said]], rules: PairRules, *, rate: float = 0.0) -> Found:
    found, candidates, filtered = [], 0, Counter()
    for chosen_pairs, counts in choose_pairs(
        lowest(members(shards, rules, rate=rate), rules=rules), rules=rules, seed=SEED
    ):
        assert counts.candidates == chosen_pairs.num_rows + counts.filtered.total()
        assert set(counts.filtered) <= set(FILTER_REASONS)
        candidates += counts.candidates
        filtered += counts.filtered
        for row in chosen_pairs.to_pylist():
            one, other = (shards[row[f"shard_{side}"]][row[f"row_{side}"]] for side in (1, 2))
            for each in (one, other):
                assert row["validation"] == is_validation(each.entity_key, rate=rate, seed=SEED)
            found.append(Pair(PAIR_KINDS[row["kind"]], one, other))
    return Found(found, candidates, filtered)


# The rules again, in plain Python

Place = tuple[int, int, int]  # priority, shard, row: the order of mentions


def expected(shards: Sequence[Sequence[Said]], rules: PairRules, *, rate: float = 0.0) -> Found:
    every = {(each.priority, shard, row): each for shard, some in enumerate(shards) for row, each in enumerate(some)}
    found, candidates, filtered = [], 0, Counter()
    for kind in rules.kinds:
        keys: dict[str, list[Place]] = defaultdict(list)
        for place, each in sorted(every.items()):
            keys[each.entity_key if kind == "entity" else each.surface].append(place)
        for places in keys.values():
            ring = ring_of(places, every, rules, kind)
            for first, second in map(sorted, neighbours(ring, rules)):
                one, other = every[first], every[second]
                candidates += 1
                if kind == "surface" and one.entity_key == other.entity_key:
                    filtered["same_entity"] += 1
                elif one.sentence == other.sentence:
                    filtered["same_sentence"] += 1
                elif len({is_validation(each.entity_key, rate=rate, seed=SEED) for each in (one, other)}) == 2:
                    filtered["crosses_splits"] += 1
                else:
                    found.append(Pair(kind, one, other))
    return Found(found, candidates, filtered)


def ring_of(places: list[Place], every: dict[Place, Said], rules: PairRules, kind: str) -> list[Place]:
    """The places that take part, in the order of the ring; `places` are in order."""
    groups: dict[str, list[Place]] = defaultdict(list)
    contents = set()
    for place in places:
        each = every[place]
        group = each.surface.lower() if kind == "entity" else each.entity_key
        content = (group, each.sentence, each.start, each.surface)
        if content not in contents:
            contents.add(content)
            groups[group].append(place)
    if kind == "surface" and len(groups) < 2:
        return []
    for group, own in groups.items() if not rules.all_pairs else ():
        in_document = in_turns(own, lambda place: every[place].doc_id)
        taken = [place for turn, place in in_document if turn < rules.mentions_per_document]
        groups[group] = taken[: rules.mentions_per_surface]
    order = sorted((turn, place, group) for group, own in groups.items() for turn, place in enumerate(own))
    if not rules.all_pairs:
        order = order[: rules.mentions_per_key]
    sizes = Counter(group for *_, group in order)
    number = {group: rank for rank, (turn, _, group) in enumerate(order) if turn == 0}
    at = [
        ((turn * 2**32 + number[group] * 0x9E3779B9 % 2**32) // sizes[group], rank)
        for rank, (turn, _, group) in enumerate(order)
    ]
    return [order[rank][1] for _, rank in sorted(at)]


def in_turns(places: list[Place], owner: Callable[[Place], str]) -> list[tuple[int, Place]]:
    """The places in order of their turn among those of one owner, with the turn."""
    turns: Counter[str] = Counter()
    found = []
    for place in places:
        found.append((turns[owner(place)], place))
        turns[owner(place)] += 1
    return sorted(found)


def neighbours(ring: list[Place], rules: PairRules) -> set[frozenset[Place]]:
    n = len(ring)
    if rules.all_pairs:
        return {frozenset(pair) for pair in itertools.combinations(ring, 2)}
    offsets = itertools.product(range(n), range(1, rules.partners + 1))
    found = {frozenset((ring[place], ring[(place + offset) % n])) for place, offset in offsets}
    return {pair for pair in found if len(pair) == 2}


ENTITIES = st.sampled_from(["Q1", "Q2", "Q3", "A title", "Another"])
SURFACES = ["x", "y", "x y", "X"]
TEXTS = st.builds("{} [{}] {}".format, *map(st.sampled_from, (["a", "b", ""], SURFACES, ["c", "d", "e"])))
# Few ids, so that some priorities are equal.
IDS = st.builds("{}#{}".format, st.sampled_from("def"), st.integers(0, 30))
MENTION = st.builds(Said, ENTITIES, TEXTS, IDS)
SHARDS = st.lists(st.lists(MENTION, max_size=25), min_size=1, max_size=4)
RULES = st.builds(
    PairRules,
    st.sampled_from([PAIR_KINDS, ("entity",), ("surface",)]),
    st.sampled_from([2, 3, 5, 100]),
    st.sampled_from([1, 2, 3, 100]),
    st.sampled_from([1, 2, 3, 100]),
    st.sampled_from([1, 2, 3, 100]),
    st.booleans(),
)


@examples(40)
@given(SHARDS, RULES, st.sampled_from([0, 0.5]))
def test_pairs_are_those_of_the_rules(shards, rules, rate):
    found, wanted = chosen(shards, rules, rate=rate), expected(shards, rules, rate=rate)
    assert sorted(found.pairs) == sorted(wanted.pairs)
    assert (found.candidates, found.filtered) == (wanted.candidates, wanted.filtered)


@examples(60)
@given(SHARDS)
def test_where_no_cap_binds_the_pairs_are_all_there_are(shards):
    """From the purpose, not from the rules: every two mentions that share an entity or a surface, once."""
    first: dict[tuple[str, ...], Said] = {}
    mentions = [(each.priority, shard, row, each) for shard, some in enumerate(shards) for row, each in enumerate(some)]
    for kind, (*_, each) in itertools.product(PAIR_KINDS, sorted(mentions)):
        key = each.entity_key if kind == "entity" else each.surface
        first.setdefault((kind, key, each.sentence, str(each.start), each.surface, each.entity_key), each)
    wanted = [
        (kind, *sorted((one, other)))
        for ((kind, key, sentence, *_), one), ((kind_2, key_2, sentence_2, *_), other) in itertools.combinations(
            first.items(), 2
        )
        if (kind, key) == (kind_2, key_2)
        and sentence != sentence_2
        and (kind == "entity" or one.entity_key != other.entity_key)
    ]
    for rules in (EVERY, PairRules(PAIR_KINDS, 1000, 1000, 1000, 1000)):
        found = chosen(shards, rules).pairs
        assert sorted((kind, *sorted(sides)) for kind, *sides in found) == sorted(wanted)


@pytest.mark.parametrize(
    ("mentions", "m", "k", "number"),
    [
        (1, 32, 4, 0),
        (2, 32, 4, 1),
        (3, 32, 4, 3),
        (4, 32, 2, 6),
        (5, 32, 2, 10),
        (6, 32, 2, 12),
        (7, 32, 4, 21),
        (8, 32, 4, 28),
        (9, 32, 4, 36),
        (10, 32, 4, 40),
        (32, 32, 4, 128),
        (33, 32, 4, 128),
        (1000, 32, 4, 128),
        (1000, 8, 4, 28),
        (1000, 8, 100, 28),
        (1000, 2, 1, 1),
        (1000, 1, 4, 0),
    ],
)
def test_an_entity_has_as_many_pairs_as_documented(mentions, m, k, number):
    rules = PairRules(("entity",), m, 1000, 1000, k)
    shard = said(*(("Q1", f"the {word} [x]") for word in range(mentions)))
    found = chosen([shard], rules)
    n = min(mentions, m)
    assert number == min(n * k, n * (n - 1) // 2)
    assert (
        len(found.pairs)
        == found.candidates
        == number
        == largest_key(lowest(members([shard], rules), rules=rules), rules=rules)
    )
    assert len({frozenset(pair) for pair in found.pairs}) == number, "no pair twice"
    taken = Counter(side for pair in found.pairs for side in (pair.first, pair.second))
    if number:
        assert set(taken) == set(sorted(shard, key=lambda each: each.priority)[:n])
        assert set(taken.values()) == {min(2 * k, n - 1)}, "every mention takes part alike"


def test_a_hub_costs_no_more_than_its_cap():
    hub = said(*(("Q1", f"the {word} [x]") for word in range(3000)), *(("Q2", f"a {word} [y]") for word in range(3)))
    rules = PairRules(("entity",), mentions_per_surface=32)
    assert lowest(members([hub], rules), rules=rules).num_rows == 32 + 3
    assert len(chosen([hub], rules).pairs) == 128 + 3
    rules = PairRules(("entity",))
    assert len(chosen([hub], rules).pairs) == 28 + 3, "a surface has eight mentions on the ring"


TURNS = [
    ("Q1", "[Rome] is one.", "a#1"),
    ("Q1", "[Rome] is two.", "a#2"),
    ("Q1", "[Rome] is three.", "b#1"),
    ("Q1", "The [city] is four.", "a#3"),
    ("Q1", "The [City] is five.", "c#1"),
    ("Q1", "The [capital] is six.", "a#4"),
]


@pytest.mark.parametrize(
    ("caps", "taken"),
    [
        # mentions of the key, of a surface, in a document: the numbers of those that take part
        ((6, 6, 6), "one two three four five six"),
        ((6, 6, 1), "one|two three four five six"),
        ((6, 1, 6), "one|two|three four|five six"),
        ((3, 6, 6), "one|two|three four|five six"),
        ((6, 2, 6), "one|two three four five six"),
        ((5, 6, 6), "one|two three four five six"),
        ((2, 6, 6), "2 of one|two|three four|five six"),
    ],
)
def test_surfaces_and_documents_take_turns(caps, taken):
    rules = PairRules(("entity",), *caps, 10)
    found = chosen([[Said(*each) for each in TURNS]], rules).pairs
    sides = sorted({side.sentence.split()[-1][:-1] for pair in found for side in (pair.first, pair.second)})
    most, _, wanted = taken.rpartition(" of ")
    wanted = [each.split("|") for each in wanted.split()]
    assert len(sides) == int(most or len(wanted))
    assert all(sum(each in some for each in sides) <= 1 for some in wanted)
    assert set(sides) <= {each for some in wanted for each in some}


@examples(60)
@given(SHARDS, RULES)
def test_no_cap_is_exceeded_and_no_turn_is_skipped(shards, rules):
    """From the purpose: a surface has a further mention on the ring only if no other could have had one before."""
    rules = replace(rules, kinds=("entity",), all_pairs=False, partners=100)
    by_key: dict[str, list[Said]] = defaultdict(list)
    for each in {(each.entity, each.text, each.sentence_id): each for some in shards for each in some}.values():
        by_key[each.entity_key].append(each)
    found = chosen(shards, rules).pairs
    assert len({frozenset(sides) for _, *sides in found}) == len(found)
    taken: dict[str, set[Said]] = defaultdict(set)
    for _, *sides in found:
        taken[sides[0].entity_key].update(sides)
    for key, sides in taken.items():
        assert len(sides) <= rules.mentions_per_key
        surfaces = Counter(each.surface.lower() for each in sides)
        assert max(surfaces.values()) <= rules.mentions_per_surface
        in_document = Counter((each.surface.lower(), each.doc_id) for each in sides)
        assert max(in_document.values()) <= rules.mentions_per_document
        offered: dict[str, dict[str, set[tuple[str, int]]]] = defaultdict(lambda: defaultdict(set))
        for each in by_key[key]:
            offered[each.surface.lower()][each.doc_id].add((each.sentence, each.start))
        for surface, documents in offered.items():
            # Those of equal priority or of one content may be counted twice here: at least so many could take part.
            contents = {content for some in documents.values() for content in some}
            if len(contents) == sum(map(len, documents.values())):
                could = sum(min(len(some), rules.mentions_per_document) for some in documents.values())
                least = min(could, rules.mentions_per_surface, max(surfaces.values()) - 1)
                assert surfaces[surface] >= least


@examples(60)
@given(st.lists(st.sampled_from("aaaaabbc"), min_size=1, max_size=32))
def test_small_groups_are_far_from_each_other(groups):
    """Of a group with c of n places, no two neighbours on the ring are further apart than the even distance and one
    place of each other group."""
    turns = in_turns([(0, 0, row) for row in range(len(groups))], lambda place: groups[place[2]])
    order = [groups[row] for _, (_, _, row) in turns]
    group = np.array([ord(each) for each in order], dtype=np.uint64)
    turn = np.array([turn for turn, _ in turns])
    ring = pairs._spread(np.arange(len(order)) == 0, group, turn)
    assert sorted(ring.tolist()) == list(range(len(order)))
    n = len(order)
    for each in set(order):
        places = [at for at, row in enumerate(ring.tolist()) if order[row] == each]
        gaps = [(b - a) % n or n for a, b in zip(places, [*places[1:], places[0]], strict=True)]
        assert max(gaps) <= -(-n // len(places)) + len(set(order))


@pytest.mark.parametrize(
    ("first", "second", "shared", "words"),
    [
        ("Ada is a town in Ohio.", "Ada is a town in Ohio.", 6, 6),
        ("Ada is a town in Ohio.", "a Town in ADA is OHIO.", 6, 6),
        ("Ada is a town in Ohio.", "Eva is a town in Ohio.", 5, 7),
        ("Ada is a town in Ohio.", "Ada is a town in Ohio", 5, 7),
        ("Ada is a town in Ohio.", "The king sleeps", 0, 9),
        ("is is is a", "a a is", 2, 2),
        ("東京は日本の首都", "東京は日本の都市", 7, 9),
        ("東京は 日本の首都", "東京は 日本の都市", 1, 3),
        ("Range", "Anger", 0, 2),
    ],
)
def test_near_copies_share_their_words(first, second, shared, words):
    for one, other in ((first, second), (second, first)):
        assert near_copies([one], [other], least=max(shared / words, 0.01)).tolist() == [shared > 0]
        assert near_copies([one], [other], least=min(1.0, shared / words + 0.01)).tolist() == [shared == words]


WASHINGTON = [
    *(("Q61", f"[Washington] is a city of {word}.") for word in range(500)),
    *(("Q1223", f"[Washington] is a state of {word}.") for word in range(50)),
    *(("Q23", f"[Washington] is a man of {word}.") for word in range(2)),
    ("Booker T. Washington", "[Washington] was born in slavery."),
]


def test_many_entities_of_a_surface_take_part():
    found = chosen([said(*WASHINGTON)], PairRules(("surface",), 8))
    sides = {side for pair in found.pairs for side in (pair.first, pair.second)}
    # Of eight places, the man with two mentions gets two, the one with one mention gets one.
    assert Counter(each.entity for each in sides) == {"Q61": 3, "Q1223": 2, "Q23": 2, "Booker T. Washington": 1}
    assert found.candidates == 28
    assert found.filtered == {"same_entity": 3 + 1 + 1}


@pytest.mark.parametrize(
    ("mentions", "kinds", "pairs_", "filtered"),
    [
        ([("Q1", "a [x]"), ("Q1", "b [y]")], PAIR_KINDS, 1, {}),
        ([("Q1", "a [x]"), ("Q1", "a [x]")], PAIR_KINDS, 0, {}),
        ([("Q1", "the [x] y"), ("Q1", "the x [y]")], PAIR_KINDS, 0, {"same_sentence": 1}),
        ([("Q1", "the [x] y"), ("Q1", "the [x] y"), ("Q1", "the x [y]")], PAIR_KINDS, 0, {"same_sentence": 1}),
        ([("Q1", "the [x] y"), ("Q1", "the [x y]")], PAIR_KINDS, 0, {"same_sentence": 1}),
        ([("Q1", "an [x] x"), ("Q2", "an x [x]")], PAIR_KINDS, 0, {"same_sentence": 1}),
        ([("Q1", "a [x]"), ("Q2", "b [x]")], PAIR_KINDS, 1, {}),
        ([("Q1", "a [x]"), ("Q2", "b [x]")], ("entity",), 0, {}),
        ([("Q1", "a [x]"), ("Q2", "b [X]")], PAIR_KINDS, 0, {}),
        ([("Q1", "a [x]"), ("Q1", "b [x]")], ("surface",), 0, {}),
        ([("Q1", "a [x]"), ("Q2", "a [x]")], ("surface",), 0, {"same_sentence": 1}),
        ([("Q1", "a [x]"), ("Q1", "b [x]"), ("Q2", "c [x]")], ("surface",), 2, {"same_entity": 1}),
        ([("A title", "a [x]"), ("A title", "b [y]"), ("Another", "c [z]")], PAIR_KINDS, 1, {}),
        ([], PAIR_KINDS, 0, {}),
    ],
)
def test_what_is_a_pair(mentions, kinds, pairs_, filtered):
    for rules in (PairRules(kinds), PairRules(kinds, all_pairs=True)):
        found = chosen([said(*mentions)], rules)
        assert len(found.pairs) == pairs_
        assert found.filtered == filtered


def test_one_title_in_two_sources_is_two_entities():
    mentions = table(said(("A title", "a [x]"), ("A title", "b [x]")))
    other = mentions.set_column(0, "source", pa.array(["w", "v"]))
    rules = PairRules(("entity",))
    assert [
        len(set(members_of(each, shard=0, rules=rules, seed=0, validation_rate=0)["key_hi"].to_pylist()))
        for each in (mentions, other)
    ] == [1, 2]


@examples(30)
@given(SHARDS, RULES, st.randoms(use_true_random=False))
def test_parts_may_go_first(shards, rules, random):
    every = members(shards, rules).combine_chunks()
    rows = list(range(every.num_rows))
    random.shuffle(rows)
    cuts = sorted(random.choices(rows or [0], k=3))
    parts = [every.take(pa.array(rows[a:b], pa.int64())) for a, b in itertools.pairwise([0, *cuts, len(rows)])]
    merged = lowest(pa.concat_tables([lowest(part, rules=rules) for part in parts]), rules=rules)
    whole = lowest(every, rules=rules)
    assert merged.equals(whole)
    assert lowest(whole, rules=rules).equals(whole)
    keys = [(row["key_hi"], row["key_lo"], row["group"]) for row in whole.to_pylist()]
    assert keys == sorted(keys)


def made(rows: Sequence[tuple[int, int, int, int, int]]) -> pa.Table:
    """Members by surface: key_hi, key_lo, group, content, priority."""
    names = ("key_hi", "key_lo", "group", "content", "priority")
    return pa.Table.from_pylist(
        [
            {
                **dict(zip(names, row, strict=True)),
                "kind": 1,
                "document": row[3],
                "sentence": row[3],
                "validation": False,
                "shard": 0,
                "row": number,
            }
            for number, row in enumerate(rows)
        ],
        schema=MEMBERS,
    )


def test_keys_of_one_half_are_told_apart():
    rows = [(5, lo, entity, 100 * entity + lo, 1000 - entity) for entity in range(4) for lo in (3, 1, 2)]
    kept = lowest(made(rows), rules=PairRules())
    assert [(row["key_lo"], row["group"]) for row in kept.to_pylist()] == [
        (lo, e) for lo in (1, 2, 3) for e in range(4)
    ]
    ((found, counts),) = choose_pairs(kept, rules=PairRules(), seed=0)
    assert counts.candidates == found.num_rows == 3 * 6
    lows = [row[1] for row in rows]
    assert all(lows[row["row_1"]] == lows[row["row_2"]] for row in found.to_pylist())


@examples(40)
@given(st.lists(st.tuples(ENTITIES, TEXTS), max_size=60), RULES, st.randoms(use_true_random=False))
def test_order_and_units_of_the_input_make_no_difference(mentions, rules, random):
    """The same pairs under the same keys, with the same side unmasked."""
    every = said(*mentions)

    def made_from(shards: list[list[Said]]) -> list[tuple[object, ...]]:
        tables = choose_pairs(lowest(members(shards, rules, rate=0.3), rules=rules), rules=rules, seed=SEED)
        return sorted(
            (
                *(row[name] for name in CHOSEN_PAIRS.names[:5]),
                *(shards[row[f"shard_{i}"]][row[f"row_{i}"]] for i in (1, 2)),
            )
            for chosen_pairs, _ in tables
            for row in chosen_pairs.to_pylist()
        )

    wanted = made_from([every])
    mixed = random.sample(every, len(every))
    assert made_from([mixed[0::3], mixed[1::3], mixed[2::3]]) == wanted
    assert len({row[:2] for row in wanted}) == len(wanted), "the key tells pairs apart"


def zipf(n: int) -> list[Said]:
    numbers = np.random.default_rng(0).zipf(1.3, n)
    return said(
        *((f"Q{q}", f"{i} [{q % 5 if i % 3 else q}] {'again' if i % 50 == 0 else i}") for i, q in enumerate(numbers))
    )


def test_many_mentions():
    some = zipf(3000)
    shards = [some[:1700], some[1700:1800], some[1800:]]
    for rules in (PairRules(), PairRules(mentions_per_key=5, partners=2), PairRules(PAIR_KINDS, 20, 7, 2)):
        found, wanted = chosen(shards, rules, rate=0.2), expected(shards, rules, rate=0.2)
        assert sorted(found.pairs) == sorted(wanted.pairs)
        assert (found.candidates, found.filtered) == (wanted.candidates, wanted.filtered)
        assert found.filtered["crosses_splits"] > 10


def test_an_entity_is_in_one_split_only():
    shards = [zipf(2000)]
    rules = PairRules()
    splits: dict[str, set[bool]] = defaultdict(set)
    kept = lowest(members(shards, rules, rate=0.3), rules=rules)
    for found, _ in choose_pairs(kept, rules=rules, seed=SEED):
        for row in found.to_pylist():
            for side in (1, 2):
                splits[shards[0][row[f"row_{side}"]].entity_key].add(row["validation"])
    assert {len(each) for each in splits.values()} == {1}
    share = sum(each == {True} for each in splits.values()) / len(splits)
    assert 0.1 < share < 0.5


def test_one_of_half_of_the_pairs_keeps_its_words():
    shard = said(*(("Q1", f"the {word} [x]") for word in range(120)))
    kept = lowest(members([shard], EVERY), rules=EVERY)
    ((found, _),) = choose_pairs(kept, rules=EVERY, seed=SEED)
    counts = Counter(found.column("unmasked").to_pylist())
    assert found.num_rows == 120 * 119 // 2
    for which, share in enumerate((0.5, 0.25, 0.25)):
        assert abs(counts[which] / found.num_rows - share) < 0.02
    ((other, _),) = choose_pairs(kept, rules=EVERY, seed=SEED + 1)
    assert other.column("unmasked") != found.column("unmasked")


@pytest.mark.parametrize("rules", [PairRules(), PairRules(mentions_per_key=6, partners=3), EVERY])
def test_tables_are_of_bounded_size(monkeypatch, rules):
    shards = [zipf(200)]
    wanted = chosen(shards, rules)
    monkeypatch.setattr(pairs, "CANDIDATES_A_TABLE", 7)
    sizes = [
        counts.candidates
        for _, counts in choose_pairs(lowest(members(shards, rules), rules=rules), rules=rules, seed=SEED)
    ]
    assert set(sizes[:-1]) == {7}
    assert 0 < sizes[-1] <= 7
    assert chosen(shards, rules) == wanted


def test_all_pairs_of_a_hub_come_bit_by_bit():
    n = 300_000
    rows = np.arange(n)
    columns = [rows * 0 + 1, rows * 0, rows * 0, rows * 0, rows, rows, rows, rows, rows > n, rows * 0, rows]
    hub = pa.table(
        [pa.array(each).cast(field.type) for each, field in zip(columns, MEMBERS, strict=True)], schema=MEMBERS
    )
    kept = lowest(hub, rules=EVERY)
    assert largest_key(kept, rules=EVERY) == n * (n - 1) // 2
    found, counts = next(choose_pairs(kept, rules=EVERY, seed=0))
    assert found.num_rows == counts.candidates == pairs.CANDIDATES_A_TABLE
    rules = PairRules(mentions_per_surface=32)
    capped = lowest(hub, rules=rules)
    assert capped.column("row").to_pylist() == list(range(32))
    assert largest_key(capped, rules=rules) == 128
