"""The order in which rows are given: a pure function of a seed, the epoch and the sizes of the row groups.

Nothing is read here, and nothing depends on ranks, workers or batches: these take ranges of the order.

A source with N rows, in one epoch:

    row groups      permuted by (seed, epoch)
    windows         row groups that come one after the other, until there are `window` rows; the rows of a window are
                    permuted by (seed, epoch, window). All windows together: N places.
    lanes           the N places are cut into `lanes` parts of one size. The order takes a run of `run` rows from the
                    first, a run from the second, and so on. Less than lanes x run rows are left at the end: they come
                    last, in order of their places.

Several sources share each block of `run` positions by their quotas, in an order that hashes of (seed, block) decide.
Block b takes run b of each source, so a reader of every n-th block reads every n-th lane.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import xxhash

from schemas.errors import UserError
from transforms.arrays import I64, U64, mix64


@dataclass(frozen=True)
class Rules:
    """What decides the order, besides the sizes of the row groups."""

    seed: int = 0
    shuffle: bool = True
    window: int = 1 << 14
    lanes: int = 16
    run: int = 256

    def __post_init__(self) -> None:
        for name in ("window", "lanes", "run"):
            if getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)}: must be at least 1")


class Piece(NamedTuple):
    """Rows [start, stop) of a window, in the window's order. `lane` is what reads its windows one after the other."""

    epoch: int
    lane: int
    window: int
    start: int
    stop: int


class EpochOrder:
    """The order of a source in one epoch. `rows`: of each row group; `run`: rows of a run of this source."""

    def __init__(self, rows: Sequence[int], rules: Rules, *, run: int, source: int, epoch: int) -> None:
        self._rules, self._run, self._source, self._epoch = rules, run, source, epoch
        groups = range(len(rows))
        self.groups = permutation(len(rows), self._key("groups")).tolist() if rules.shuffle else list(groups)
        self._rows = [rows[group] for group in self.groups]
        self._first = [0]  # of each window: its first row group, and the end of the last
        self._edge = [0]  # of each window: its first place, and the end of the last
        for end, place in enumerate(accumulate(self._rows), 1):
            if place - self._edge[-1] >= rules.window or end == len(rows):
                self._first.append(end)
                self._edge.append(place)
        lanes = rules.lanes if rules.shuffle else 1
        turns = self._edge[-1] // (lanes * run) if lanes > 1 else 0
        self._lane_rows = turns * run
        self._even = lanes * self._lane_rows

    def window_groups(self, window: int) -> list[int]:
        """The numbers of the row groups of a window."""
        return self.groups[self._first[window] : self._first[window + 1]]

    def window_order(self, window: int) -> I64:
        """[rows] the rows of a window in their order, counted over its row groups."""
        size = self._edge[window + 1] - self._edge[window]
        return permutation(size, self._key("rows", window)) if self._rules.shuffle else np.arange(size)

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:
        """Positions [start, stop) of the order."""
        run, lanes = self._run, self._rules.lanes
        while start < stop:
            if start < self._even:
                number, within = divmod(start, run)
                turn, lane = divmod(number, lanes)
                place = lane * self._lane_rows + turn * run + within
                length = min(run - within, stop - start)
            else:
                lane, place, length = lanes, start, stop - start
            start += length
            while length:
                window = bisect_right(self._edge, place) - 1
                first = self._edge[window]
                size = min(length, self._edge[window + 1] - place)
                yield Piece(self._epoch, lane, window, place - first, place - first + size)
                place, length = place + size, length - size

    def _key(self, *what: str | int) -> int:
        return hash_of(self._rules.seed, self._source, self._epoch, *what)


class SourceOrder:
    """The order of a source over all its epochs, one after the other. `rows`: of each row group, none of them 0."""

    def __init__(self, rows: Sequence[int], rules: Rules, *, run: int, source: int = 0) -> None:
        self._group_rows, self._rules, self._run, self._source = rows, rules, run, source
        self.rows = sum(rows)
        self._epochs: dict[int, EpochOrder] = {}

    def epoch(self, number: int) -> EpochOrder:
        found = self._epochs.get(number)
        if found is None:
            found = EpochOrder(self._group_rows, self._rules, run=self._run, source=self._source, epoch=number)
            # The reader looks ahead, so two are in use where an epoch ends.
            self._epochs = {each: order for each, order in self._epochs.items() if each == number - 1} | {number: found}
        return found

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:
        """Rows [start, stop) of the order, counted from the first of epoch 0."""
        while start < stop:
            number, first = divmod(start, self.rows)
            length = min(stop - start, self.rows - first)
            yield from self.epoch(number).pieces(first, first + length)
            start += length


class Part(NamedTuple):
    """What a range of positions takes: rows [start, stop) of the order of each source.

    `sources`: of each position the number of its source; None if there is one source.
    """

    ranges: list[tuple[int, int]]
    sources: I64 | None


@dataclass(frozen=True)
class Mix:
    """Which source each position takes: in each block of `sum(quotas)` positions source i has `quotas[i]` of them."""

    quotas: tuple[int, ...]
    seed: int = 0

    @property
    def block(self) -> int:
        return sum(self.quotas)

    def part(self, start: int, stop: int) -> Part:
        """Positions [start, stop)."""
        if len(self.quotas) == 1:
            return Part([(start, stop)], None)
        first, within = divmod(start, self.block)
        sources = self._sources(first, -(-stop // self.block))
        before = np.bincount(sources[:within], minlength=len(self.quotas))
        sources = sources[within : within + stop - start]
        counts = np.bincount(sources, minlength=len(self.quotas))
        starts = [first * quota + int(n) for quota, n in zip(self.quotas, before, strict=True)]
        return Part([(a, a + int(n)) for a, n in zip(starts, counts, strict=True)], sources)

    def _sources(self, first: int, end: int) -> I64:
        """The sources of all positions of the blocks [first, end)."""
        blocks = mix64(np.arange(first, end, dtype=np.uint64) + np.uint64(hash_of(self.seed, "blocks")))
        places = np.arange(self.block, dtype=np.uint64)
        order = np.argsort(mix64(blocks[:, None] + mix64(places)), axis=1, kind="stable")
        return self._of_place[order].ravel()

    @cached_property
    def _of_place(self) -> I64:
        return np.repeat(np.arange(len(self.quotas)), self.quotas)


def quotas(weights: Sequence[float], block: int) -> tuple[int, ...]:
    """Weights as whole numbers whose sum is `block`, by largest remainder, each at least 1.

    >>> quotas([3, 1], 256), quotas([1, 1, 1], 256), quotas([1000, 1], 256)
    ((192, 64), (86, 85, 85), (255, 1))
    """
    if not all(0 < each < float("inf") for each in weights):
        raise UserError(f"weights {list(weights)}: must be numbers above 0")
    if len(weights) > block:
        raise UserError(f"run={block}: has no place for {len(weights)} sources; give a larger run")
    shares = [max(1.0, each / sum(weights) * block) for each in weights]
    found = [int(each) for each in shares]
    by_rest = sorted(range(len(shares)), key=lambda each: (found[each] - shares[each], each))
    for number in range(block - sum(found)):
        found[by_rest[number % len(found)]] += 1
    while sum(found) > block:
        found[found.index(max(found))] -= 1
    return tuple(found)


def permutation(size: int, key: int) -> I64:
    """[size] the numbers below `size` in an order that the key decides: that of their hashes.

    The number takes the place of the lowest bits of its hash: sorting the hashes sorts the numbers.
    """
    numbers = np.arange(size, dtype=np.uint64)
    mask = np.uint64((1 << max(size - 1, 0).bit_length()) - 1)
    hashes: U64 = mix64(mix64(numbers) + np.uint64(key))
    return (np.sort((hashes & ~mask) | numbers) & mask).astype(np.int64)


def hash_of(*what: str | int) -> int:
    """A 64-bit hash, the same on every machine."""
    return xxhash.xxh3_64_intdigest("\0".join(map(str, what)).encode())


class Turn(NamedTuple):
    """Who reads: worker `worker` of `workers` of rank `rank` of `ranks`."""

    rank: int = 0
    ranks: int = 1
    worker: int = 0
    workers: int = 1


LAST = ("share", "drop", "pad")
"""What becomes of the rows at the end of an epoch that do not fill a batch of all ranks."""


def batches_left(rows: int, *, start: int, batch_size: int, ranks: int, last: str) -> int:
    """The number of batches that each rank has from row `start` on, in an epoch of `rows` rows."""
    whole, rest = divmod(rows - start, batch_size * ranks)
    return whole + (rest > 0 and last != "drop")


def batch_ranges(rows: int, turn: Turn, *, start: int, batch_size: int, last: str) -> Iterator[tuple[int, int]]:
    """The positions of each batch that is given, from row `start` of an epoch of `rows` rows on.

    A range may end after the last row (`pad`): position `rows` is the first of the epoch again.
    """
    together = batch_size * turn.ranks
    number = batches_left(rows, start=start, batch_size=batch_size, ranks=turn.ranks, last=last)
    for batch in range(turn.worker, number, turn.workers):
        first = start + batch * together
        rest = rows - first
        if rest < together and last == "share":
            yield first + rest * turn.rank // turn.ranks, first + rest * (turn.rank + 1) // turn.ranks
        else:
            yield first + turn.rank * batch_size, first + (turn.rank + 1) * batch_size
