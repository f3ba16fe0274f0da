"""The loader's arithmetic: no row lost or repeated, whatever reads it and wherever it goes on. No file is read."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.errors import UserError
from schemas.storage.folder import Folder
from trainers.data import Loader, Position, Source
from trainers.loading.order import EpochOrder, Mix, Rules, permutation, quotas
from trainers.loading.reader import Plan
from trainers.loading.sources import File, Group

Row = tuple[int, int]  # source, number of the row in it


def source(sizes: list[int], name: str = "a") -> Source:
    """A source of which only the sizes of its row groups are known."""
    file = File(Folder("nowhere"), name)
    groups = tuple(Group(file, number, size) for number, size in enumerate(sizes))
    return Source(name, groups, pa.schema([("id", pa.int64())]), ("id",), f"{name}{sizes}")


def rows_of(loader: Loader, plan: Plan, orders: list[Any]) -> list[Row]:
    """The rows of a batch, as the reader finds them."""
    found: list[list[Row]] = []
    for number, (pieces, order) in enumerate(zip(plan.pieces, orders, strict=True)):
        firsts = [0, *itertools.accumulate(group.rows for group in loader.sources[number].groups)]
        found.append([])
        for piece in pieces:
            epoch = order.epoch(piece.epoch)
            groups = epoch.window_groups(piece.window)
            window = [row for group in groups for row in range(firsts[group], firsts[group + 1])]
            places = epoch.window_order(piece.window)[piece.start : piece.stop]
            found[number] += [(number, window[place]) for place in places]
    if plan.sources is None:
        return found[0]
    by_source = [iter(each) for each in found]
    return [next(by_source[number]) for number in plan.sources]


def batches(loader: Loader, *, workers: int = 1) -> Iterator[list[Row]]:
    """The rest of an epoch of one rank, made by workers that take turns, as torch's DataLoader has it."""
    orders = [loader.orders() for _ in range(workers)]
    made = [loader.plans(orders[each], loader.position, worker=each, workers=workers) for each in range(workers)]
    for turn in itertools.count():
        plan = next(made[turn % workers], None)
        if plan is None:
            break
        yield rows_of(loader, plan, orders[turn % workers])
    assert all(next(each, None) is None for each in made)


def epoch_of(loader: Loader, number: int) -> list[Row]:
    """The order of a whole epoch."""
    orders = loader.orders()
    plans = loader.plans(orders, Position(number, 0))
    return [row for plan in plans for row in rows_of(loader, plan, orders)]


@dataclass(frozen=True)
class Phase:
    """A run of some steps with these readers, from where the one before stopped."""

    ranks: int
    workers: int
    batch_size: int
    steps: int


PHASES = st.lists(
    st.builds(Phase, st.integers(1, 4), st.integers(1, 3), st.integers(1, 13), st.integers(0, 9)),
    min_size=1,
    max_size=4,
)
SIZES = st.lists(st.integers(1, 23), min_size=1, max_size=9)
RULES = st.fixed_dictionaries(
    {
        "seed": st.integers(-3, 3),
        "shuffle": st.booleans(),
        "window": st.integers(1, 40),
        "lanes": st.integers(1, 5),
        "run": st.integers(4, 11),
    }
)
LAST = st.sampled_from(["share", "drop", "pad"])


@given(st.lists(SIZES, min_size=1, max_size=3), RULES, LAST, PHASES, st.integers(0, 2))
@examples(70)
def test_every_row_once_and_in_one_order_however_often_it_goes_on(sizes, rules, last, phases, epoch):
    """Ranks x workers x sizes of batches x resume points: each step is the next part of the order."""
    sources = [source(each, f"s{number}") for number, each in enumerate(sizes)]
    whole = epoch_of(Loader(sources, batch_size=1, **rules), epoch)
    if len(sources) == 1:
        assert sorted(whole) == [(0, row) for row in range(sum(sizes[0]))]
        assert rules["shuffle"] or whole == sorted(whole)
    state = Loader(sources, batch_size=1, **rules).state_dict(Position(epoch, 0))
    done = 0
    for phase in [*phases, Phase(1, 2, 1, 10**9)]:
        step = phase.ranks * phase.batch_size
        if last == "drop" and step > len(whole):
            continue
        given, after = [], []
        for rank in range(phase.ranks):
            size = {"batch_size": phase.batch_size, "rank": rank, "ranks": phase.ranks, "last": last}
            loader = Loader(sources, **size, **rules)
            loader.load_state_dict(json.loads(json.dumps(state)))
            found = [*itertools.islice(loader.track(batches(loader, workers=phase.workers)), phase.steps)]
            given.append(found)
            after.append(loader.state_dict())
        state = after[0]
        assert after == [state] * phase.ranks
        assert len({len(found) for found in given}) == 1  # no rank waits for another
        for parts in zip(*given, strict=True):
            rows = [row for part in parts for row in part]
            full = done + step <= len(whole)
            expected = whole[done : done + step]
            if last == "pad" and not full:
                expected = [*itertools.islice(itertools.cycle(whole), done, done + step)]
            assert rows == expected
            assert full or last != "drop"
            assert {len(part) for part in parts} <= (
                {phase.batch_size} if full or last == "pad" else {len(expected) // phase.ranks + n for n in (0, 1)}
            )
            done += min(step, len(whole) - done)
        if state["epoch"] > epoch:
            break
    assert (state["epoch"], state["rows"]) == (epoch + 1, 0)
    assert done == len(whole) if last != "drop" else len(whole) - done < step


@given(st.lists(SIZES, min_size=2, max_size=3), RULES, st.lists(st.floats(0.1, 10), min_size=3, max_size=3))
@examples(30)
def test_a_mixture_has_its_quotas_in_each_block_and_each_source_its_rows_in_turn(sizes, rules, weights):
    sources = [source(each, f"s{number}") for number, each in enumerate(sizes)]
    loader = Loader(sources, batch_size=7, weights=weights[: len(sources)], **rules)
    rows = [row for epoch in range(3) for row in epoch_of(loader, epoch)]
    assert len(rows) == 3 * sum(map(sum, sizes))
    block = rules["run"]
    assert sum(loader.quotas) == block
    for start in range(0, len(rows) - block + 1, block):
        counts = Counter(number for number, _ in rows[start : start + block])
        assert tuple(counts[number] for number in range(len(sources))) == loader.quotas
    for number, each in enumerate(sizes):
        own = [row for source, row in rows if source == number]
        alone = Loader(sources[number], batch_size=1, **rules)
        for start in range(0, len(own), alone.rows):
            part = own[start : start + alone.rows]
            assert len({*part}) == len(part)
            assert len(part) < alone.rows or sorted(part) == [*range(sum(each))]


@given(SIZES, RULES)
@examples(40)
def test_an_epoch_is_another_order_of_windows_that_lie_side_by_side(sizes, rules):
    order = EpochOrder(sizes, Rules(**rules), run=rules["run"], source=0, epoch=5)
    windows = [order.window_groups(number) for number in range(len(order._first) - 1)]
    assert sorted(itertools.chain(*windows)) == [*range(len(sizes))]
    for groups in windows[:-1]:
        rows = [sizes[group] for group in groups]
        assert sum(rows) >= rules["window"] > sum(rows[:-1])
    pieces = [*order.pieces(0, sum(sizes))]
    for lane in {piece.lane for piece in pieces}:
        own = [piece.window for piece in pieces if piece.lane == lane]
        assert own == sorted(own)  # it never comes back to a window
    whole = [*itertools.chain(*([(p.window, n) for n in range(p.start, p.stop)] for p in pieces))]
    assert len({*whole}) == len(whole) == sum(sizes)


@pytest.mark.parametrize("ranks_and_workers", [(1, 1), (2, 2), (4, 4), (1, 16)])
def test_readers_that_divide_the_lanes_read_each_window_about_once(ranks_and_workers):
    """96 row groups in 16 lanes: a lane begins within a window, so up to 15 of 96 are read by two."""
    ranks, workers = ranks_and_workers
    opened = []
    for rank, worker in itertools.product(range(ranks), range(workers)):
        loader = Loader(source([100] * 96), batch_size=5, run=5, window=100, rank=rank, ranks=ranks)
        plans = loader.plans(loader.orders(), Position(0, 0), worker=worker, workers=workers)
        lanes = {(piece.lane, piece.window) for plan in plans for piece in plan.pieces[0]}
        assert len({lane for lane, _ in lanes if lane < 16}) == 16 // (ranks * workers)
        opened += {window for _, window in lanes}
    assert 96 <= len(opened) <= 96 + 15


def test_the_order_stays_as_it_is():
    """A state is of use only if the order of another version, machine or NumPy is the same."""
    assert permutation(10, 7).tolist() == [2, 0, 4, 6, 1, 8, 7, 5, 3, 9]
    loader = Loader(source([4, 3, 5, 2]), batch_size=4, seed=1, window=6, lanes=2, run=3)
    assert [row for _, row in epoch_of(loader, 0)] == [3, 2, 0, 7, 6, 4, 1, 13, 12, 11, 9, 8, 10, 5]
    mixed = Loader([source([4], "a"), source([9], "b")], batch_size=4, seed=1, run=4, weights=[1, 3])
    assert [number for number, _ in epoch_of(mixed, 1)] == [0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1]
    assert [row for _, row in epoch_of(mixed, 1)] == [0, 0, 5, 2, 4, 8, 6, 3, 7, 1, 2, 3, 8]


@given(st.integers(0, 300), st.integers(0, 2**64 - 1))
@examples(60)
def test_a_permutation_has_every_number_once(size, key):
    assert sorted(permutation(size, key)) == [*range(size)]


def test_permutations_are_even():
    """Each number is in each place about equally often: chi-squared of 8 x 8 cells over 2,000 keys."""
    counts = np.zeros((8, 8))
    for key in range(2000):
        counts[np.arange(8), permutation(8, key)] += 1
    assert ((counts - 250) ** 2 / 250).sum() < 85  # 49 degrees of freedom: 0.1 % are above


@pytest.mark.parametrize(
    ("weights", "block", "expected"),
    [
        ([3, 1], 256, (192, 64)),
        ([1, 1, 1], 256, (86, 85, 85)),
        ([0.7, 0.3], 10, (7, 3)),
        ([1000, 1, 1], 8, (6, 1, 1)),
        ([5], 256, (256,)),
    ],
)
def test_quotas(weights, block, expected):
    assert quotas(weights, block) == expected


def test_a_part_of_a_mixture_counts_what_came_before():
    mix = Mix((2, 3), seed=4)
    whole = mix.part(0, 35)
    assert whole.ranges == [(0, 14), (0, 21)]
    assert whole.sources is not None
    for start, stop in itertools.combinations(range(36), 2):
        part = mix.part(start, stop)
        before = Counter(whole.sources[:start].tolist())
        within = Counter(whole.sources[start:stop].tolist())
        assert part.sources is not None
        assert part.sources.tolist() == whole.sources[start:stop].tolist()
        assert part.ranges == [(before[n], before[n] + within[n]) for n in (0, 1)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size=0: must be at least 1"),
        ({"window": 0}, "window=0: must be at least 1"),
        ({"lanes": 0}, "lanes=0: must be at least 1"),
        ({"run": 0}, "run=0: must be at least 1"),
        ({"prefetch": 0}, "prefetch=0: must be at least 1"),
        ({"epoch_rows": 0}, "epoch_rows=0: must be at least 1"),
        ({"rank": 1}, "rank=1, ranks=None: give both, or none"),
        ({"rank": 2, "ranks": 2}, "rank=2, ranks=2: a rank is from 0 to ranks - 1"),
        ({"last": "keep"}, "last='keep': must be one of share, drop, pad"),
        ({"last": "drop", "batch_size": 6}, "last='drop': an epoch has 5 rows, fewer than a step of 6 x 1; give "),
        ({"weights": [1, 2]}, "2 weights of 1 sources"),
        ({"weights": [0]}, "weights [0]: must be numbers above 0"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(UserError) as raised:
        Loader(source([5]), **{"batch_size": 2, **options})
    assert str(raised.value).startswith(message)


RULES_OF_STATE = {"seed": 1, "window": 6, "lanes": 2, "run": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 2}, "has seed=2, and this loader seed=1; give the same, or begin again without the state"),
        ({"lanes": 3}, "has lanes=3, and this loader lanes=2; "),
        (
            {"sources": [{"files": "b[4, 3]", "rows": 7, "quota": 3}]},
            "has the sources b[4, 3] of 7 rows, quota 3, and ",
        ),
        ({"rows": 8}, "has rows=8, more than the 7 of an epoch; give what state_dict() gave"),
        ({"rows": -1}, "rows is -1, not a count; give what state_dict() gave"),
        ({"epoch": "1"}, "epoch is '1', not a whole number; "),
        ({"epoch": None}, "epoch is None, not a whole number; "),
    ],
)
def test_a_state_of_another_order(change, message):
    loader = Loader(source([4, 3]), batch_size=2, **RULES_OF_STATE)
    loader.load_state_dict(loader.state_dict(Position(3, 7)))
    assert loader.position == (3, 7)
    with pytest.raises(UserError) as raised:
        loader.load_state_dict({**loader.state_dict(), **change})
    assert str(raised.value).startswith(f"the loader's state: {message}")
    assert loader.position == (3, 7)


def test_set_epoch_keeps_the_place_in_the_epoch_where_the_loader_is():
    loader = Loader(source([4, 3]), batch_size=2)
    loader.load_state_dict(loader.state_dict(Position(3, 4)))
    loader.set_epoch(3)
    assert loader.position == (3, 4)
    loader.set_epoch(4)
    assert loader.position == (4, 0)


def test_a_loader_that_is_moved_ends_its_iteration():
    loader = Loader(source([4, 3]), batch_size=2)
    given = loader.track(batches(loader))
    next(given)
    loader.set_epoch(5)
    with pytest.raises(UserError, match="was moved while it gave batches"):
        next(given)
