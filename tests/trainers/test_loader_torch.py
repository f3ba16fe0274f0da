"""The loader with torch's DataLoader, torchdata's StatefulDataLoader and torchrun: the order that it has by itself."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import UserError
from trainers.data import Loader, Position, Source, torch_dataset

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated", "ignore:This DataLoader will create"),
]

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    folder = tmp_path_factory.mktemp("files")
    for part in range(3):
        pq.write_table(pa.table({"id": range(part * 500, part * 500 + 490 + part)}), folder / f"{part}.parquet", 70)
    return Source.open(folder)


def loader(source: Source, **options: Any) -> Loader:
    return Loader(source, **{"batch_size": 32, "seed": 3, "lanes": 4, "run": 32, "window": 100, **options})


def ids(batch: pa.Table) -> list[int]:
    return batch["id"].to_pylist()


def epochs(source: Source, number: int) -> list[list[list[int]]]:
    """The batches of some epochs, without torch."""
    alone = loader(source)
    return [[ids(batch) for batch in alone] for _ in range(number)]


def data_loader(own: Loader, workers: int, **options: Any) -> Any:
    from torch.utils.data import DataLoader

    return DataLoader(torch_dataset(own, ids), batch_size=None, num_workers=workers, **options)


def stateful(own: Loader, workers: int) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(torch_dataset(own, ids), batch_size=None, num_workers=workers)


@pytest.mark.parametrize(
    ("workers", "options"), [(0, {}), (1, {}), (2, {}), (3, {"persistent_workers": True, "prefetch_factor": 5})]
)
def test_a_data_loader_gives_what_the_loader_gives(source, workers, options):
    expected = epochs(source, 4)
    own = loader(source)
    made = data_loader(own, workers, **options)
    assert [*own.track(made)] == expected[0]
    assert len(made) == len(expected[1])
    head = [*itertools.islice(own.track(made), 7)]  # the workers have made more
    state = json.loads(json.dumps(own.state_dict()))
    assert (head, own.position) == (expected[1][:7], (1, 224))
    assert (len(made), len(own)) == (len(expected[1]), len(expected[1]) - 7)
    assert [*own.track(made)] == expected[1][7:]
    own.set_epoch(3)
    assert [*made] == expected[3]
    assert [*made] == expected[3]  # without `track` nobody goes on
    other = loader(source, batch_size=16)
    other.load_state_dict(state)
    rest = [row for batch in other.track(data_loader(other, 2)) for row in batch]
    assert rest == [*itertools.chain(*expected[1][7:])]
    own.load_state_dict(state)
    assert [*made] == expected[1][7:]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("steps", [0, 9])
def test_a_stateful_data_loader_goes_on(source, workers, steps):
    expected = epochs(source, 2)
    made = stateful(loader(source), workers)
    given = [*itertools.islice(made, steps)]
    state = made.state_dict()
    made = stateful(loader(source), workers)
    made.load_state_dict(state)
    given += made
    assert given == expected[0]
    at_end = made.state_dict()
    own = loader(source)
    own.set_epoch(1)
    made = stateful(own, workers)
    made.load_state_dict(at_end)
    assert [*made] == expected[1]
    if workers and steps:
        other = torch_dataset(loader(source))
        worker = state["_snapshot"]["_worker_snapshots"]["worker_1"]["dataset_state"]
        with pytest.raises(UserError, match="the state of a worker: of worker 1 of 2, and this is 0 of 1; "):
            other.load_state_dict(worker)
        with pytest.raises(UserError, match="the state of a worker: made is 'x', not a whole number"):
            other.load_state_dict({**worker, "made": "x"})
        worker["loader"]["seed"] = 4
        with pytest.raises(UserError, match="has seed=4, and this loader seed=3"):
            torch_dataset(loader(source)).load_state_dict({**worker, "worker": 0, "workers": 1})


def test_without_a_transform_a_worker_sends_the_rows_of_a_batch_alone(source):
    from torch.utils.data import DataLoader

    own = loader(source)
    batch = next(own.track(DataLoader(torch_dataset(own), batch_size=None, num_workers=1)))
    assert ids(batch) == epochs(source, 1)[0][0]
    assert batch.get_total_buffer_size() < 1000


RANK = """
import json, sys
import torch
from torch.utils.data import DataLoader
from trainers.data import Loader, Source, torch_dataset

torch.set_num_threads(1)
torch.distributed.init_process_group("gloo")
loader = Loader(Source.open(sys.argv[1]), batch_size=32, seed=3, lanes=4, run=32, window=100)
batches = DataLoader(torch_dataset(loader), batch_size=None, num_workers=2)
found = [batch["id"].to_pylist() for batch in loader.track(batches)]
with open(f"{sys.argv[2]}/{loader.rank}-of-{loader.ranks}.json", "w") as file:
    json.dump(found, file)
"""


def test_ranks_of_torchrun_share_the_rows(source, tmp_path):
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script]
    place = str(source.groups[0].file.folder)
    subprocess.run([*command, place, tmp_path], cwd=ROOT, check=True, timeout=300)
    ranks = [json.loads((tmp_path / f"{rank}-of-2.json").read_text()) for rank in (0, 1)]
    assert len(ranks[0]) == len(ranks[1]) == 24
    found = [*itertools.chain(*(one + other for one, other in zip(*ranks, strict=True)))]
    assert found == [*itertools.chain(*epochs(source, 1)[0])]


def test_a_rank_that_is_given_is_kept(source, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    given, by_itself = loader(source, rank=1, ranks=2), loader(source)
    torch_dataset(given)
    torch_dataset(by_itself)
    assert (given.rank, given.ranks, by_itself.rank, by_itself.ranks) == (1, 2, 3, 4)


@pytest.fixture
def stored(source, tmp_path) -> Iterator[Source]:
    """The files in a bucket of a server on loopback."""
    sys.path.insert(0, str(ROOT / "tests/storage"))
    from stores import SERVERS, reached

    with SERVERS["moto"](tmp_path) as store, reached(store):
        folder = store.folder("files")
        for name in source.groups[0].file.folder.files():
            folder.write(name, source.groups[0].file.folder.read(name))
        yield Source.open(str(folder))


def test_workers_that_are_forked_read_an_object_store(source, stored):
    expected = epochs(source, 1)[0]
    own = loader(stored)
    assert [ids(batch) for batch in own.batches(Position(0, 0))] == expected  # this process has connections, too
    assert [*own.track(data_loader(own, 2, multiprocessing_context="fork"))] == expected
