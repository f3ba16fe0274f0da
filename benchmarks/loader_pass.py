"""One pass of a loader in its own process, for benchmarks/loader.py: `python -m benchmarks.loader_pass JSON`.

It imports nothing but the loader that it measures, so that it runs where only the peers are installed. It prints its
figures as a line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

COLUMNS = ["id", "phrase", "context"]


class Given(NamedTuple):
    """What a pass is told. `mark`: after so many rows the state is written; `resumed`: the pass begins with it."""

    loader: str
    parquet: str
    mds: str
    state: str
    ids: str
    batch_size: int
    window: int
    workers: int
    arrow: bool
    mark: int
    resumed: bool


class Opened(NamedTuple):
    """A loader that is open. A batch is a dict of lists, or an Arrow table."""

    batches: Iterator[Any]
    state: Callable[[], Any]


def ours(given: Given) -> Callable[[], Opened]:
    from trainers.data import Loader, Source, torch_dataset

    if given.workers:
        from torch.utils.data import DataLoader

    def lists(table: Any) -> Any:
        return table if given.arrow else table.to_pydict()

    def opened() -> Opened:
        loader = Loader(
            Source.open(given.parquet, columns=COLUMNS), batch_size=given.batch_size, seed=1, window=given.window
        )
        if given.resumed:
            loader.load_state_dict(json.loads(Path(given.state).read_text()))
        if given.workers:
            dataset = torch_dataset(loader, transform=lists)
            return Opened(
                loader.track(DataLoader(dataset, batch_size=None, num_workers=given.workers)), loader.state_dict
            )
        return Opened(map(lists, loader), loader.state_dict)

    return opened


def huggingface(given: Given) -> Callable[[], Opened]:
    import datasets  # type: ignore[import-not-found, unused-ignore]

    if given.workers:
        from torch.utils.data import DataLoader

    datasets.disable_progress_bars()

    def opened() -> Opened:
        files = sorted(str(each) for each in Path(given.parquet).glob("*.parquet"))
        rows = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
        rows = rows.shuffle(seed=1, buffer_size=given.window)
        if given.resumed:
            rows.load_state_dict(json.loads(Path(given.state).read_text()))
        if given.workers:
            batches = DataLoader(rows, batch_size=given.batch_size, num_workers=given.workers, collate_fn=columns_of)
        else:
            batches = rows.iter(given.batch_size)
        return Opened(iter(batches), rows.state_dict)

    return opened


def mosaic(given: Given) -> Callable[[], Opened]:
    from streaming import StreamingDataLoader, StreamingDataset  # type: ignore[import-not-found, unused-ignore]

    def opened() -> Opened:
        rows = StreamingDataset(
            local=given.mds,
            batch_size=given.batch_size,
            shuffle=True,
            shuffle_seed=1,
            shuffle_block_size=given.window,
            num_canonical_nodes=1,
        )
        loader = StreamingDataLoader(
            rows, batch_size=given.batch_size, num_workers=given.workers, collate_fn=columns_of
        )
        if given.resumed:
            loader.load_state_dict(json.loads(Path(given.state).read_text()))
        return Opened(iter(loader), loader.state_dict)

    return opened


LOADERS = {"ours": ours, "huggingface": huggingface, "mosaic": mosaic}


def columns_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in COLUMNS}


def write_mds(given: Given) -> dict[str, Any]:
    """The rows as shards of mosaicml-streaming."""
    import pyarrow.parquet as pq
    from streaming import MDSWriter  # type: ignore[import-not-found, unused-ignore]

    began = time.process_time()
    rows = 0
    with MDSWriter(out=given.mds, columns={"id": "int", "phrase": "str", "context": "str"}) as writer:
        for path in sorted(Path(given.parquet).glob("*.parquet")):
            for batch in pq.ParquetFile(path).iter_batches(columns=COLUMNS):
                for row in batch.to_pylist():
                    writer.write(row)
                rows += batch.num_rows
    return {"rows": rows, "cpu_seconds": time.process_time() - began}


def pass_of(given: Given) -> dict[str, Any]:
    opened_by = LOADERS[given.loader](given)  # the imports; not in the figures
    ids = array("q")
    wall, cpu = time.perf_counter(), cpu_seconds()
    opened = opened_by()
    open_seconds = time.perf_counter() - wall
    first = first_cpu = 0.0
    batch = None
    for batch in opened.batches:
        if not ids:
            first, first_cpu = time.perf_counter() - wall, cpu_seconds() - cpu
        if given.arrow:
            ids.frombytes(batch.column("id").to_numpy().tobytes())
        else:
            ids.extend(batch["id"])
        if len(ids) == given.mark:
            Path(given.state).write_text(json.dumps(opened.state()))
    seconds, memory = time.perf_counter() - wall, peak_memory()
    figures = {"rows": len(ids), "open_seconds": open_seconds, "first_seconds": first, "first_cpu_seconds": first_cpu}
    del opened, batch  # ends the workers, whose CPU time counts then
    with Path(given.ids).open("wb") as file:
        ids.tofile(file)
    return {**figures, "seconds": seconds, "cpu_seconds": cpu_seconds() - cpu, "peak_memory_bytes": memory}


def cpu_seconds() -> float:
    """Of all threads, and of the processes that have ended."""
    return sum(islice(os.times(), 4))


def peak_memory() -> int:
    """The peaks of this process and of those that it started, added up, in bytes."""
    me = os.getpid()
    children = Path(f"/proc/{me}/task").glob("*/children")
    processes = [me, *(int(each) for file in children for each in file.read_text().split())]
    return sum(
        int(Path(f"/proc/{each}/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024 for each in processes
    )


if __name__ == "__main__":
    told = Given(**json.loads(sys.argv[1]))
    print(json.dumps(write_mds(told) if told.loader == "write_mds" else pass_of(told)))
