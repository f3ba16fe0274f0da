"""Spread and paired bootstrap: against a plain loop, and where the answer is known."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from trainers.evaluation.measures import matched_of, mean_of, nmi_of, pearson_of
from trainers.evaluation.resampling import SEED, difference, drawn_scores, spread
from trainers.evaluation.task import Measure

DRAWS = 50


def items(names, **columns):
    return {"item": np.array([*names], object), **{name: np.array(column) for name, column in columns.items()}}


def plain_mean(drawn):
    return sum(float(each["right"]) for each in drawn) / len(drawn)


def plain_mean_of_tables(drawn):
    tables = {each["table"] for each in drawn}
    found = []
    for table in sorted(tables):
        rows = [each for each in drawn if each["table"] == table]
        found += [plain_mean(rows)] * sum(each["first"] for each in rows)
    return sum(found) / len(found)


def plain_pearson(drawn):
    return np.corrcoef([each["x"] for each in drawn], [each["y"] for each in drawn])[0, 1]


def plain_nmi(drawn):
    def entropy(*columns):
        counts = Counter(tuple(each[column] for column in columns) for each in drawn).values()
        return -sum(each / len(drawn) * math.log(each / len(drawn)) for each in counts)

    label, cluster = entropy("label"), entropy("cluster")
    return (label + cluster - entropy("label", "cluster")) / ((label + cluster) / 2)


def plain_matched(drawn):
    labels = ["a", "b", "c"]
    return max(
        sum(dict(zip(labels, order, strict=True))[each["label"]] == each["cluster"] for each in drawn) / len(drawn)
        for order in permutations(range(3))
    )


MEASURES = {
    "mean": (Measure("m", mean_of("right")), plain_mean),
    "mean of tables": (Measure("m", mean_of("right", parts="table"), group="table"), plain_mean_of_tables),
    "mean, tables drawn": (Measure("m", mean_of("right"), group="table"), plain_mean),
    "Pearson": (Measure("m", pearson_of("x", "y")), plain_pearson),
    "NMI": (Measure("m", nmi_of("label", "cluster")), plain_nmi),
    "matched": (Measure("m", matched_of("label", "cluster")), plain_matched),
}


def some_items(seed, *, names=range(40)):
    generator = np.random.default_rng(seed)
    number, table = len(names), np.array(names) % 5
    return items(
        [str(name) for name in names],
        right=generator.random(number) < 0.6,
        x=generator.normal(size=number),
        y=generator.normal(size=number),
        label=generator.choice(list("abc"), number).astype(object),
        cluster=generator.integers(3, size=number),
        table=np.array([f"table {each}" for each in table], object),
        first=[name < 5 for name in names],  # one of each table
    )


@pytest.mark.parametrize("name", MEASURES)
def test_drawing_is_that_of_a_plain_loop(name):
    """Repeats what was drawn, item by item, and computes the score of that."""
    measure, plain = MEASURES[name]
    seeds = [some_items(1), some_items(2)]
    units = [*dict.fromkeys(seeds[0][measure.group or "item"])]
    generator = np.random.default_rng(SEED)
    wanted = []
    for chosen in generator.integers(len(units), size=(DRAWS, len(units))):
        scores = []
        for found in seeds:
            rows = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
            drawn = [row for unit in chosen for row in rows if row[measure.group or "item"] == units[unit]]
            scores.append(plain(drawn))
        wanted.append(100 * np.mean(scores))
    np.testing.assert_allclose(drawn_scores(measure, [seeds], draws=DRAWS)[0], wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", MEASURES)
def test_score_of_the_items_is_that_of_weights_of_one(name):
    measure, plain = MEASURES[name]
    found = some_items(3)
    rows = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
    assert measure.score(found) == pytest.approx(plain(rows), abs=1e-12)


@pytest.mark.parametrize("name", MEASURES)
def test_a_model_against_itself(name):
    measure, _ = MEASURES[name]
    assert difference(measure, [some_items(1)], [some_items(1)], draws=DRAWS) == (0.0, 0.0, 0.0, 1.0)


def test_right_wherever_the_other_is_wrong():
    one, other = (items(map(str, range(100)), right=[value] * 100) for value in (True, False))
    found = difference(Measure("accuracy", mean_of("right")), [one], [other], draws=199)
    assert found == (100.0, 100.0, 100.0, pytest.approx(2 / 200))


@examples(20)
@given(
    one=st.lists(st.booleans(), min_size=12, max_size=12),
    other=st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_the_other_way_round_the_sign_changes(one, other):
    measure = Measure("accuracy", mean_of("right"))
    first, second = ([items(map(str, range(12)), right=each)] for each in (one, other))
    there, back = difference(measure, first, second, draws=DRAWS), difference(measure, second, first, draws=DRAWS)
    assert there.p == back.p
    assert there[:3] == pytest.approx((-back.difference, -back.high, -back.low), abs=1e-9)
    assert there.low <= there.high


def test_pairing_takes_away_what_the_models_have_in_common():
    """One wins 30 items of 1,000 and loses none: less than the error of each score, and yet certain."""
    shared = np.random.default_rng(0).random(1_000) < 0.5
    better = shared.copy()
    better[np.flatnonzero(~shared)[:30]] = True
    measure = Measure("accuracy", mean_of("right"))
    one, other = (items(map(str, range(1_000)), right=each) for each in (better, shared))
    apart = difference(measure, [one], [other])
    assert (apart.difference, apart.p) == (pytest.approx(3.0), pytest.approx(2 / 1_001))
    assert 1.5 < apart.low < apart.high < 4.5
    assert spread(measure, [other]).high > spread(measure, [one]).low


def test_an_item_of_several_seeds_is_drawn_as_often_in_each():
    given = []

    def score(found, weights):
        given.append(dict(zip(found["item"], weights.T.tolist(), strict=True)))
        return weights.sum(axis=1)

    first, second = some_items(1, names=range(30)), some_items(2, names=range(39, 9, -1))  # test sets of two splits
    drawn_scores(Measure("weight", score), [[first, second]], draws=DRAWS)
    one, other = given
    assert len(one | other) == 40
    assert {name: one[name] for name in one if name in other} == {name: other[name] for name in one if name in other}
    assert {sum(draw) for draw in zip(*(one | other).values(), strict=True)} == {40}


def test_seeds_with_the_same_items_are_no_more_items():
    measure = Measure("accuracy", mean_of("right"))
    once, thrice = (drawn_scores(measure, [[some_items(1)] * number], draws=DRAWS) for number in (1, 3))
    np.testing.assert_allclose(thrice, once)


def test_a_draw_without_an_item_of_a_seed_is_left_out():
    measure = Measure("accuracy", mean_of("right"))
    seeds = [items(["a"], right=[True]), items(["b"], right=[False])]
    assert {*drawn_scores(measure, [seeds], draws=DRAWS)[0]} == {50.0}


def test_the_interval_has_the_width_of_theory():
    """Of an accuracy p over n items: 1.96 sqrt(p (1 - p) / n) on both sides; over seeds the deviation of the scores."""
    right = np.arange(2_000) % 10 < 7
    found = spread(Measure("accuracy", mean_of("right")), [items(map(str, range(2_000)), right=right)] * 2)
    half = 196 * np.sqrt(0.7 * 0.3 / 2_000)
    assert (found.mean, found.deviation, found.by_seed) == (pytest.approx(70.0), 0.0, pytest.approx((70.0, 70.0)))
    assert (found.low, found.high) == (pytest.approx(70 - half, abs=0.25), pytest.approx(70 + half, abs=0.25))
    one_seed = spread(Measure("accuracy", mean_of("right")), [items(map(str, range(2_000)), right=right)])
    assert one_seed.deviation is None


def test_the_interval_of_clusters_at_chance_is_around_the_score():
    generator = np.random.default_rng(0)
    label, cluster = generator.choice(list("abc"), 3_000).astype(object), generator.integers(3, size=3_000)
    found = [items(map(str, range(3_000)), label=label, cluster=cluster)]
    for measure in (Measure("accuracy", matched_of("label", "cluster")), Measure("NMI", nmi_of("label", "cluster"))):
        drawn = drawn_scores(measure, [found], draws=200)[0]
        chance = spread(measure, found, draws=200)
        assert drawn.mean() > chance.mean, "most draws are above the score"
        assert chance.low < chance.mean < chance.high
