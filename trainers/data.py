"""The loader: batches of a dataset's rows in a random order, for one process or many, exact when it goes on.

loader = Loader(Source.open("out/contexts", columns=["phrase", "context"]), batch_size=256, seed=1)
for epoch in range(3):
    for batch in loader:      # a pa.Table
        ...
        state = loader.state_dict()

Which rows come when is a pure function of the seed, the epoch and the sizes of the row groups
(trainers/loading/order.py); ranks and workers take ranges of that order. So the state is the epoch and a number of
rows, whatever reads them. docs/loader.md says more. Torch is not imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from schemas.errors import UserError
from schemas.json_values import Signed, checked
from trainers.loading.order import (
    I64,
    LAST,
    Mix,
    Piece,
    Rules,
    SourceOrder,
    Turn,
    batch_ranges,
    batches_left,
    quotas,
)
from trainers.loading.reader import Plan, Reader
from trainers.loading.sources import Source

if TYPE_CHECKING:
    from trainers.loading.torch_batches import TorchBatches

__all__ = ["Loader", "Position", "Source", "torch_dataset"]

T = TypeVar("T")


class SourceState(NamedTuple):
    """A source of a state: the hash of its files' sizes (of a dataset: of their content), and its share of a block."""

    files: str
    rows: int
    quota: int


class State(NamedTuple):
    """Where a loader is: `rows` rows of an epoch are done. The rest is the order that this is true of."""

    epoch: int
    rows: int
    seed: Signed
    shuffle: bool
    window: int
    lanes: int
    run: int
    epoch_rows: int
    sources: list[SourceState]


class Position(NamedTuple):
    """The first `rows` rows of an epoch are done."""

    epoch: int
    rows: int


class Loader:
    """Batches of rows of a source, or of several by weights. Iterating gives the rest of an epoch, as Arrow tables.

    batch_size   rows of a batch of this rank
    rank, ranks  which of the batches that together are a step is given here; by default there is one rank
    last         what becomes of the rows at the end of an epoch that do not fill a step: "share" (each rank gets a
                 smaller batch, of none to batch_size rows), "drop" (they are not given), "pad" (the step is filled with
                 the first rows of the epoch). Each rank has the same number of batches in all of them
    seed, shuffle, window, lanes, run
                 the order (trainers/loading/order.py)
    weights      of the sources: their shares of the rows. By default in proportion to their rows
    epoch_rows   rows of an epoch; by default those of all sources together. Sources go through epochs of their own
    prefetch     windows of each lane's next that are read before their turn
    """

    def __init__(
        self,
        source: Source | Sequence[Source],
        *,
        batch_size: int,
        rank: int | None = None,
        ranks: int | None = None,
        last: str = "share",
        seed: int = 0,
        shuffle: bool = True,
        window: int = Rules.window,
        lanes: int = Rules.lanes,
        run: int = Rules.run,
        weights: Sequence[float] | None = None,
        epoch_rows: int | None = None,
        prefetch: int = 2,
    ) -> None:
        self.sources = (source,) if isinstance(source, Source) else tuple(source)
        _require(bool(self.sources), "no source: give at least one")
        _require(batch_size >= 1, f"batch_size={batch_size}: must be at least 1")
        _require(prefetch >= 1, f"prefetch={prefetch}: must be at least 1")
        _require((rank is None) == (ranks is None), f"rank={rank}, ranks={ranks}: give both, or none")
        self.has_rank = rank is not None
        rank, ranks = rank or 0, 1 if ranks is None else ranks
        _require(0 <= rank < ranks, f"rank={rank}, ranks={ranks}: a rank is from 0 to ranks - 1")
        _require(last in LAST, f"last={last!r}: must be one of {', '.join(LAST)}")
        for each in self.sources[1:]:
            _require(
                each.schema == self.sources[0].schema,
                f"{each.place}: its columns are not those of {self.sources[0].place} ({_columns(each.schema)}; "
                f"{_columns(self.sources[0].schema)}): choose the same columns of the same types of all sources",
            )
        if weights is None:
            weights = [each.rows for each in self.sources]
        _require(len(weights) == len(self.sources), f"{len(weights)} weights of {len(self.sources)} sources")
        self.schema = self.sources[0].schema
        self.batch_size, self.rank, self.ranks, self.last, self.prefetch = batch_size, rank, ranks, last, prefetch
        self.rules = Rules(seed=seed, shuffle=shuffle, window=window, lanes=lanes, run=run)
        self.quotas = quotas(weights, run)
        self._mix = Mix(self.quotas, seed)
        self.rows = sum(each.rows for each in self.sources) if epoch_rows is None else epoch_rows
        _require(self.rows >= 1, f"epoch_rows={epoch_rows}: must be at least 1")
        _require(
            last != "drop" or batch_size * ranks <= self.rows,
            f"last='drop': an epoch has {self.rows:,} rows, fewer than a step of {batch_size} x {ranks}; give smaller "
            "batches, or last='share'",
        )
        self.position = Position(0, 0)
        self.begin: MutableSequence[int] = [0, 0]  # where a pass of torch's DataLoader begins
        self._moves = 0

    def __len__(self) -> int:
        """The number of batches that are left of the epoch; on each rank the same."""
        return self.steps(self.position.rows)

    def steps(self, first: int = 0) -> int:
        """The number of batches of an epoch from row `first` on; on each rank the same."""
        return batches_left(self.rows, start=first, batch_size=self.batch_size, ranks=self.ranks, last=self.last)

    def __iter__(self) -> Iterator[pa.Table]:
        """The batches that are left of the epoch. After the last one the loader is at the next epoch.

        UserError if a file is damaged or gone.
        """
        yield from self.track(self.batches())

    def batches(
        self, position: Position | None = None, *, worker: int = 0, workers: int = 1, made: int = 0
    ) -> Iterator[pa.Table]:
        """The batches from a position on to the end of its epoch; the loader's own position stays.

        Of some workers, which take turns, one makes its own, less the first `made`.
        """
        orders = self.orders()
        plans = self.plans(orders, position or self.position, worker=worker, workers=workers, made=made)
        return Reader(self.sources, orders, prefetch=self.prefetch).batches(plans)

    def plans(
        self, orders: Sequence[SourceOrder], position: Position, *, worker: int = 0, workers: int = 1, made: int = 0
    ) -> Iterator[Plan]:
        """What each of these batches is made of."""
        turn = Turn(self.rank, self.ranks, worker + made * workers, workers)
        ranges = batch_ranges(self.rows, turn, start=position.rows, batch_size=self.batch_size, last=self.last)
        return (self._plan(orders, position.epoch, start, stop) for start, stop in ranges)

    def orders(self) -> list[SourceOrder]:
        """The order of each source."""
        return [
            SourceOrder([group.rows for group in source.groups], self.rules, run=quota, source=number)
            for number, (source, quota) in enumerate(zip(self.sources, self.quotas, strict=True))
        ]

    def track(self, batches: Iterable[T]) -> Iterator[T]:
        """The same batches; the loader's position goes on with each. For batches that others made, in order, of this
        loader's, such as torch's DataLoader.
        """
        epoch, rows = self.position
        self._go(self.position)
        own = self._moves
        for batch in batches:
            _require(own == self._moves, "the loader: was moved while it gave batches; begin another iteration")
            rows = min(rows + self.batch_size * self.ranks, self.rows)
            self.position = Position(epoch, rows)
            yield batch
        _require(own == self._moves, "the loader: was moved while it gave batches; begin another iteration")
        self._go(Position(epoch + 1, 0))

    def set_epoch(self, epoch: int) -> None:
        """Go to the first row of an epoch. In the epoch where the loader is, it stays where it is: what is called
        before each epoch makes no row that is done come again when a run goes on.
        """
        _require(epoch >= 0, f"epoch={epoch}: must be at least 0")
        if epoch != self.position.epoch:
            self._go(Position(epoch, 0))

    def state_dict(self, position: Position | None = None) -> dict[str, Any]:
        """Where the loader is, for JSON; the same on each rank."""
        state = self._state(position or self.position)
        return {**state._asdict(), "sources": [each._asdict() for each in state.sources]}

    def load_state_dict(self, state: Any) -> None:
        """Go on where a loader was that had this state. Ranks, workers and the size of batches may differ.

        UserError if the state is of another order: of other files, another seed or another rule.
        """
        self._go(self.position_in(state))

    def position_in(self, state: Any) -> Position:
        """The position of a state. UserError if it is not of this order."""
        try:
            given = checked(State, state)
        except ValueError as error:
            raise UserError(f"the loader's state: {error}; give what state_dict() gave") from None
        mine = self._state(Position(given.epoch, given.rows))
        for name, theirs, here in zip(State._fields, given, mine, strict=True):
            if theirs != here:
                what = f"{name}={theirs}, and this loader {name}={here}"
                if name == "sources":
                    what = f"the sources {_listed(given.sources)}, and this loader {_listed(mine.sources)}"
                raise UserError(f"the loader's state: has {what}; give the same, or begin again without the state")
        if given.rows > self.rows:
            raise UserError(
                f"the loader's state: has rows={given.rows}, more than the {self.rows} of an epoch; give what "
                "state_dict() gave"
            )
        return Position(given.epoch, given.rows)

    def position_of_pass(self) -> Position:
        """Where a pass of torch's DataLoader begins."""
        epoch, rows = map(int, self.begin)
        return Position(epoch, rows)

    def _state(self, position: Position) -> State:
        sources = [
            SourceState(each.digest, each.rows, quota) for each, quota in zip(self.sources, self.quotas, strict=True)
        ]
        return State(*position, **vars(self.rules), epoch_rows=self.rows, sources=sources)

    def _go(self, position: Position) -> None:
        self.position = position
        self._moves += 1
        self.begin[0], self.begin[1] = position

    def _plan(self, orders: Sequence[SourceOrder], epoch: int, start: int, stop: int) -> Plan:
        pieces: list[list[Piece]] = [[] for _ in orders]
        sources: list[I64] = []
        while start < stop:
            # With "pad" a range may end after the epoch's last row, and goes on with its first.
            round_, first = divmod(start, self.rows)
            end = min(stop, (round_ + 1) * self.rows)
            part = self._mix.part(epoch * self.rows + first, epoch * self.rows + first + end - start)
            for found, order, each in zip(pieces, orders, part.ranges, strict=True):
                found += order.pieces(*each)
            if part.sources is not None:
                sources.append(part.sources)
            start = end
        return Plan(pieces, np.concatenate(sources) if sources else None)


def torch_dataset(loader: Loader, transform: Callable[[pa.Table], Any] | None = None) -> TorchBatches:
    """The loader's batches as a dataset for torch's DataLoader; imports torch (trainers/loading/torch_batches.py)."""
    from trainers.loading.torch_batches import TorchBatches

    return TorchBatches(loader, transform)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise UserError(message)


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def _listed(sources: Sequence[SourceState]) -> str:
    return ", ".join(f"{each.files} of {each.rows:,} rows, quota {each.quota}" for each in sources)
