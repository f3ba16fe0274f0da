"""The loader's batches for torch's DataLoader and torchdata's StatefulDataLoader."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa
import torch
import torch.distributed
from torch.utils.data import IterableDataset, get_worker_info

from schemas.errors import UserError
from schemas.json_values import checked

if TYPE_CHECKING:
    from trainers.data import Loader


class WorkerState(TypedDict):
    """Where a worker is: the loader's state where the pass began, and the batches that this worker has made since."""

    loader: dict[str, Any]
    worker: int
    workers: int
    made: int


class TorchBatches(IterableDataset[Any]):
    """Whole batches, to be given to a DataLoader with `batch_size=None`.

    Worker w of W makes batches w, w + W, ..., which is the order in which a DataLoader takes them from its workers. So
    it gives what the loader by itself would, and each pass begins where the loader is.

    `transform` makes of a table what the DataLoader gives; it runs in the workers.

    If the loader was given no rank, it gets that of torch.distributed, or else the one that torchrun sets.

    `state_dict` and `load_state_dict` are those of one worker, for StatefulDataLoader.
    """

    def __init__(self, loader: Loader, transform: Callable[[pa.Table], Any] | None = None) -> None:
        self._loader, self._transform = loader, transform
        if not loader.has_rank:
            loader.rank, loader.ranks = process_rank()
        # Workers that persist see where the next pass begins.
        loader.begin = torch.tensor(list(loader.begin)).share_memory_()
        self._at: WorkerState | None = None
        self._loaded: WorkerState | None = None

    def __len__(self) -> int:
        """The batches of a whole epoch on this rank, of all workers together."""
        return self._loader.steps()

    def __iter__(self) -> Iterator[Any]:
        worker, workers = _worker()
        at, self._loaded = self._loaded, None
        if at is None:
            begin = self._loader.position_of_pass()
            at = WorkerState(loader={**self._loader.state_dict(begin)}, worker=worker, workers=workers, made=0)
        self._at = at
        return self._batches(at)

    def _batches(self, at: WorkerState) -> Iterator[Any]:
        begin = self._loader.position_in(at["loader"])
        tables = self._loader.batches(begin, worker=at["worker"], workers=at["workers"], made=at["made"])
        for table in tables:
            at["made"] += 1
            yield table if self._transform is None else self._transform(table)

    def state_dict(self) -> dict[str, Any]:
        return {**self._at} if self._at else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not state:
            return
        try:
            given = checked(WorkerState, state)
        except ValueError as error:
            raise UserError(f"the state of a worker: {error}; give what state_dict() gave") from None
        worker, workers = _worker()
        if (given["worker"], given["workers"]) != (worker, workers):
            raise UserError(
                f"the state of a worker: of worker {given['worker']} of {given['workers']}, and this is {worker} of "
                f"{workers}; give as many workers, or go on with the loader's own state"
            )
        self._loader.position_in(given["loader"])
        self._loaded = given


def process_rank() -> tuple[int, int]:
    """The rank of this process and the number of ranks: of torch.distributed, or else as torchrun sets them."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def _worker() -> tuple[int, int]:
    info = get_worker_info()
    return (info.id, info.num_workers) if info else (0, 1)
