"""How sure a score is: its spread over seeds, and what it is when the items are drawn again (bootstrap).

Items are drawn with replacement from all items of a task, each once, whatever the number of seeds in which it occurs
(Efron and Tibshirani 1993; for two systems Koehn 2004). A draw is the same for all seeds and for both models, so that
what the models have in common cancels out. Where items of a group belong together, groups are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trainers.evaluation.measures import F64, Columns
from trainers.evaluation.task import ITEM, Measure

DRAWS = 1_000
SEED = 20
INTERVAL = (2.5, 97.5)
"""The percentiles of a 95 % interval."""
_MOST_CELLS = 2_000_000
"""Draws x items that are held at a time."""


class Spread(NamedTuple):
    """The scores of a model: their mean over seeds, their standard deviation (None: one seed), a 95 % interval."""

    by_seed: tuple[float, ...]
    mean: float
    deviation: float | None
    low: float
    high: float


class Difference(NamedTuple):
    """The score of a model minus that of another, its 95 % interval, and how likely none is (two-sided p)."""

    difference: float
    low: float
    high: float
    p: float


def spread(measure: Measure, seeds: Sequence[Columns], *, draws: int = DRAWS) -> Spread:
    """The scores of a model by its items of each seed, times the scale of the measure.

    The interval is moved by how far the mean of the draws is from the score: clusters are matched with labels in each
    draw again, so at chance level all draws are above the score.
    """
    found = [measure.scale * measure.score(items) for items in seeds]
    mean = math.fsum(found) / len(found)
    deviation = float(np.std(found, ddof=1)) if len(found) > 1 else None
    drawn = drawn_scores(measure, [seeds], draws=draws)[0]
    low, high = np.percentile(drawn, INTERVAL) + mean - drawn.mean()
    return Spread(tuple(found), mean, deviation, float(low), float(high))


def difference(
    measure: Measure, seeds: Sequence[Columns], others: Sequence[Columns], *, draws: int = DRAWS
) -> Difference:
    """Of two models with the same items: the paired bootstrap over items and seeds."""
    one, other = drawn_scores(measure, [seeds, others], draws=draws)
    found = one - other
    low, high = np.percentile(found, INTERVAL)
    mean = measure.scale * np.mean([measure.score(a) - measure.score(b) for a, b in zip(seeds, others, strict=True)])
    below, above = (found <= 0).sum(), (found >= 0).sum()
    p = min(1.0, 2.0 * (min(below, above) + 1) / (len(found) + 1))
    return Difference(float(mean), float(low), float(high), float(p))


def drawn_scores(measure: Measure, models: Sequence[Sequence[Columns]], *, draws: int = DRAWS) -> F64:
    """[models, draws] the mean score over seeds for each draw, times the scale of the measure.

    `models`: the items of each model by seed, the same in all models. A draw that has no item of some seed is left out.
    """
    units, codes = _units(measure, models[0])
    blocks = []
    for counts in _draws(units, draws):
        weights = [counts if code is None else counts[:, code] for code in codes]
        kept = np.logical_and.reduce([each.any(axis=1) for each in weights])
        blocks.append(
            [
                np.mean([measure.of(items, w[kept]) for items, w in zip(seeds, weights, strict=True)], axis=0)
                for seeds in models
            ]
        )
    return np.asarray(measure.scale * np.concatenate(blocks, axis=1))


def _units(measure: Measure, seeds: Sequence[Columns]) -> tuple[int, list[npt.NDArray[np.int32] | None]]:
    """The number of what is drawn, and for each seed which of it each item belongs to; None: one after the other."""
    names = [pa.array(items[measure.group or ITEM]) for items in seeds]
    coded = pa.chunked_array(names).dictionary_encode().unify_dictionaries()
    codes = [chunk.indices.to_numpy() for chunk in coded.chunks]
    number = len(coded.chunk(0).dictionary)
    in_order = np.arange(number)
    return number, [None if np.array_equal(code, in_order) else code for code in codes]


def _draws(units: int, draws: int) -> Iterator[F64]:
    """Blocks [some draws, units] of how often each unit is drawn."""
    generator = np.random.default_rng(SEED)
    most = max(1, _MOST_CELLS // units)
    for start in range(0, draws, most):
        number = min(most, draws - start)
        chosen = generator.integers(units, size=(number, units)) + units * np.arange(number)[:, None]
        yield np.bincount(chosen.ravel(), minlength=number * units).reshape(number, units).astype(np.float64)
