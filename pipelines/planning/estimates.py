"""Estimates with their uncertainty, from a sample to the whole: the same measurements, the same figures."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Student's t for a two-sided interval of 90 %, by degrees of freedom.
_T90 = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.75)
_ONE_PIECE = 0.5
"""Half width, as a share, of what was measured in one place only: nothing is known of how places differ."""


@dataclass(frozen=True)
class Estimate:
    """A quantity of 0 or more: its likeliest value in an interval that holds the truth nine times of ten.

    Sums and products take both intervals at their ends together, as quantities of one corpus go up and down together.
    """

    low: float
    middle: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> Estimate:
        return cls(value, value, value)

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.low + other.low, self.middle + other.middle, self.high + other.high)

    def __mul__(self, other: Estimate | float) -> Estimate:
        by = other if isinstance(other, Estimate) else Estimate.exactly(other)
        return Estimate(self.low * by.low, self.middle * by.middle, self.high * by.high)

    def map(self, function: Callable[[float], float]) -> Estimate:
        """The estimate of a function that grows with the quantity."""
        return Estimate(function(self.low), function(self.middle), function(self.high))

    def at_least(self, value: float) -> Estimate:
        return self.map(lambda each: max(each, value))

    def at_most(self, other: Estimate | float) -> Estimate:
        cap = other if isinstance(other, Estimate) else Estimate.exactly(other)
        return Estimate(min(self.low, cap.low), min(self.middle, cap.middle), min(self.high, cap.high))

    def widened(self, share: float) -> Estimate:
        """The same with an interval of at least `share` of the likeliest value to each side."""
        return Estimate(
            max(min(self.low, self.middle * (1 - share)), 0), self.middle, max(self.high, self.middle * (1 + share))
        )

    @property
    def is_exact(self) -> bool:
        return self.low == self.high


def total(values: Sequence[float], sizes: Sequence[float], hits: Sequence[float], whole: float) -> Estimate:
    """The total of a quantity over a whole of size `whole`, from pieces of known sizes.

    `values`, `sizes`: what was found in each piece, and its size. `hits`: how often each was drawn, by points evenly
    spread over the whole, so that larger pieces are drawn more often; hence the mean of the ratios value/size has no
    bias (Hansen and Hurwitz 1943). Interval: Student's t on the spread of the ratios, narrowed by the share of the
    whole that was seen; no less than what was seen.
    """
    seen = sum(values)
    if not whole or not sum(sizes):
        return Estimate.exactly(seen)
    ratios = [value / size for value, size in zip(values, sizes, strict=True)]
    n = sum(hits)
    mean = sum(ratio * times for ratio, times in zip(ratios, hits, strict=True)) / n
    unseen = max(1 - sum(sizes) / whole, 0)
    if len(ratios) == 1:
        half = _ONE_PIECE * mean
    else:
        variance = sum(times * (ratio - mean) ** 2 for ratio, times in zip(ratios, hits, strict=True)) / n
        freedom = len(ratios) - 1
        half = _T90[min(freedom, len(_T90)) - 1] * math.sqrt(variance / freedom)
    half *= math.sqrt(unseen)
    found = Estimate(mean - half, mean, mean + half) * whole
    return found.at_least(seen)


def independent(parts: Sequence[Estimate]) -> Estimate:
    """The sum of estimates whose errors have nothing to do with each other."""
    middle = sum(each.middle for each in parts)
    low, high = (
        math.hypot(*(getattr(each, end) - each.middle for each in parts)) if parts else 0 for end in ("low", "high")
    )
    return Estimate(max(middle - low, 0), middle, middle + high)


@dataclass(frozen=True)
class Growth:
    """How the number of distinct phrases grows with the text (Heaps' law, with an exponent that slowly falls).

    log V(T) = log V(t) + slope * x - bend / 2 * x^2, x = log(T / t), until the exponent is the least there is.
    """

    tokens: float  # t
    distinct: float  # V(t)
    slope: float
    bend: float
    shares: Sequence[float] = ()  # of the distinct phrases, those that occur 1, 2, ... times or more

    def at(self, tokens: float) -> Estimate:
        """Distinct phrases in so many tokens: high if the exponent stays as it is, low if it falls twice as fast."""
        if tokens <= 0 or not self.distinct:
            return Estimate.exactly(0)
        x = math.log(tokens / self.tokens)
        return Estimate(*sorted(self._at(x, bend) for bend in (2 * self.bend, self.bend, 0)))

    def _at(self, x: float, bend: float) -> float:
        curved = min(x, (self.slope - LEAST_SLOPE) / bend) if bend else x
        log = self.slope * curved - bend / 2 * curved**2 + LEAST_SLOPE * (x - curved)
        return self.distinct * math.exp(log)

    def often(self, tokens: float, times: int) -> Estimate:
        """Of the distinct phrases in so many tokens, those that occur `times` or more: their share grows slowly."""
        found = self.at(tokens)
        if times == 1 or not self.shares:
            return found
        last = len(self.shares)
        share = self.shares[times - 1] if times <= last else self.shares[-1] * last / times
        x = max(math.log(tokens / self.tokens), 0) if tokens > 0 else 0
        low, middle, high = (min(share * (1 + more * x), 1) for more in (0, 0.05, 0.25))
        return Estimate(found.low * low * 0.8, found.middle * middle, found.high * high)


LEAST_SLOPE = 0.5
_BENDS = (0.005, 0.05)


def growth(parts: Sequence[tuple[float, float]], shares: Sequence[float] = ()) -> Growth:
    """Fit the growth to (tokens, distinct phrases) of nested parts of a sample, the smallest first."""
    parts = [(tokens, distinct) for tokens, distinct in parts if tokens and distinct]
    if not parts:
        return Growth(1, 0, 1, 0)
    logs = [(math.log(tokens), math.log(distinct)) for tokens, distinct in parts]
    slopes = [(y - y0) / (x - x0) for (x0, y0), (x, y) in itertools.pairwise(logs) if x > x0]
    if not slopes:
        return Growth(*parts[-1], 0.85, _BENDS[-1], shares)
    bends = [(before - behind) / math.log(2) for before, behind in itertools.pairwise(slopes)]
    bend = max(bends[-1] if bends else 0, 0)
    # The slope between two parts is that of the middle between them.
    slope = slopes[-1] - bend * (logs[-1][0] - logs[-2][0]) / 2
    bend = min(max(bend, _BENDS[0]), _BENDS[1])
    return Growth(*parts[-1], min(max(slope, LEAST_SLOPE), 1.0), bend, shares)


def makespan(seconds: Sequence[float], workers: int) -> float:
    """When the last unit is done, if each worker takes the next one as soon as it is free."""
    free = [0.0] * min(workers, max(len(seconds), 1))
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)
