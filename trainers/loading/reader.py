"""Reads the windows of an order, and cuts batches from them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from trainers.loading.order import I64, EpochOrder, Piece, SourceOrder
from trainers.loading.sources import Files, Source

_MOST_PLANNED = 4096
"""Batches that are planned before they are given, at most."""


class Plan(NamedTuple):
    """What a batch is made of: pieces of each source, and of each row its source, None if there is one."""

    pieces: list[list[Piece]]
    sources: I64 | None


class _Name(NamedTuple):
    """Which window."""

    source: int
    epoch: int
    window: int


class _Window(NamedTuple):
    """The rows of a window as they are in the files, and their order."""

    rows: pa.Table
    order: pa.Int64Array

    def table(self, start: int, stop: int) -> pa.Table:
        """Rows [start, stop) of the order. They are copied, so that who keeps a batch does not keep a window."""
        return self.rows.take(self.order.slice(start, stop - start))


class _Lane(NamedTuple):
    source: int
    lane: int


class Reader:
    """Reads what plans need, once for each lane, some windows before their turn, in a thread.

    A window stays in memory until the last lane that is in it goes on: at most lanes + `prefetch` windows of each
    source, fewer if several readers share the lanes.
    """

    def __init__(self, sources: Sequence[Source], orders: Sequence[SourceOrder], *, prefetch: int) -> None:
        self._sources, self._orders, self._prefetch = sources, orders, prefetch
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="loader")
        self._files = Files()
        self._windows: dict[_Name, Future[_Window]] = {}
        self._users: Counter[_Name] = Counter()  # lanes that are in a window, or will be
        self._unused: set[_Name] = set()  # windows from which nothing has been given
        self._planned_in: dict[_Lane, _Name] = {}
        self._given_in: dict[_Lane, _Name] = {}

    def batches(self, plans: Iterable[Plan]) -> Iterator[pa.Table]:
        """The rows of each plan."""
        planned: deque[Plan] = deque()
        rest = iter(plans)
        try:
            while True:
                while len(planned) < _MOST_PLANNED and (len(self._unused) < self._prefetch or not planned):
                    plan = next(rest, None)
                    if plan is None:
                        break
                    planned.append(plan)
                    self._prepare(plan)
                if not planned:
                    return
                yield self._table(planned.popleft())
        finally:
            self._pool.shutdown(cancel_futures=True)
            self._files.close()

    def _prepare(self, plan: Plan) -> None:
        """Have the windows of a plan read."""
        for source, pieces in enumerate(plan.pieces):
            for piece in pieces:
                lane, window = _Lane(source, piece.lane), _Name(source, piece.epoch, piece.window)
                if self._planned_in.get(lane) == window:
                    continue
                self._planned_in[lane] = window
                self._users[window] += 1
                if window not in self._windows:
                    order = self._orders[source].epoch(piece.epoch)
                    self._windows[window] = self._pool.submit(self._read, self._sources[source], order, piece.window)
                    self._unused.add(window)

    def _read(self, source: Source, order: EpochOrder, window: int) -> _Window:
        """In the thread."""
        found = [
            batch for number in order.window_groups(window) for batch in self._files.read(source.groups[number], source)
        ]
        rows = pa.Table.from_batches(found, source.schema).combine_chunks()
        return _Window(rows, _numbers(order.window_order(window)))

    def _table(self, plan: Plan) -> pa.Table:
        found: list[pa.Table] = []
        for source, pieces in enumerate(plan.pieces):
            for piece in pieces:
                lane, window = _Lane(source, piece.lane), _Name(source, piece.epoch, piece.window)
                if self._given_in.get(lane) != window:
                    self._go_on(lane, window)
                found.append(self._windows[window].result().table(piece.start, piece.stop))
        if len(found) == 1:
            return found[0]
        if not found:
            return self._sources[0].schema.empty_table()
        table = pa.concat_tables(found).combine_chunks()
        if plan.sources is None:
            return table
        # The rows are in order of their sources.
        places = np.empty(len(plan.sources), np.int64)
        places[np.argsort(plan.sources, kind="stable")] = np.arange(len(places))
        return table.take(_numbers(places))

    def _go_on(self, lane: _Lane, window: _Name) -> None:
        """A lane goes on to its next window. The one before is dropped if no other lane is in it."""
        self._unused.discard(window)
        before, self._given_in[lane] = self._given_in.get(lane), window
        if before is not None:
            self._users[before] -= 1
            if not self._users[before]:
                del self._users[before], self._windows[before]


def _numbers(numbers: I64) -> pa.Int64Array:
    """As an Arrow array. `pa.array` would import pandas first, which takes seconds."""
    return pa.Int64Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])
