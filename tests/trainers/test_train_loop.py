"""The training loop: gradients by chunks, going on exactly, what is kept, what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.errors import UserError
from trainers.training.schedules import cosine, linear, staircase

SCRIPT = Path(__file__).parent / "toy_recipe.py"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    texts = [f"{one} {other}" for one in "abcdefg" for other in "hijklm"][:23]
    file = tmp_path_factory.mktemp("toy") / "rows.parquet"
    pq.write_table(pa.table({"anchor": texts, "positive": [f"{each} z" for each in texts]}), file, row_group_size=6)
    return str(file)


def toy(data: str, output: Path, **options: Any) -> Any:
    from toy_recipe import Toy, ToyTraining

    from trainers.training.checkpoint import seed_torch

    chosen = ToyTraining(data=(data,), output=output, **{"batch_size": 4, "epochs": 2, **options})
    seed_torch(chosen.seed)
    return Toy(chosen), chosen


def trained(data: str, output: Path, **options: Any) -> tuple[bytes, Any]:
    from trainers.training.loop import fit

    results = fit(*toy(data, output, **options))
    return (output / "weights.pt").read_bytes(), results


MIDDLE = {"dropout": 0.3, "chunk": 3, "checkpoint_steps": 3}
Whole = tuple[bytes, Any]


@pytest.fixture(scope="module")
def whole(data: str, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """A training from beginning to end, with dropout: ten steps."""
    return trained(data, tmp_path_factory.mktemp("whole"), **MIDDLE)


def test_it_learns(data: str, tmp_path: Path) -> None:
    _, results = trained(data, tmp_path, epochs=20)
    assert (results["steps"], results["examples"]) == (100, 400)
    losses = [each["contrast"] for _, each in results["losses"]]
    assert losses[-1] < losses[0] / 2
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "README.md",
        "tensorboard",
        "training.json",
        "weights.pt",
    ]
    card = (tmp_path / "README.md").read_text()
    assert "100 steps of 4 rows" in card
    assert f"| {data} | 23 | not known: a file |" in card
    assert "| rate | 0.01 |" in card


@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2), (3,), (4, 7)])
def test_the_command_that_a_card_has_is_the_one_that_was_given(seeds: tuple[int, ...]) -> None:
    from toy_recipe import TOOL, ToyTraining

    given = ToyTraining(data=("a", "b c"), seeds=seeds, tasks=("turney",), chunk=3, rate=0.5, checkpointing=True)
    assert TOOL.flags.parse(TOOL.flags.arguments(given))[ToyTraining] == given


# ---- Chunks


def linear_recipe(rows: int) -> Any:
    """All of our losses, and losses of each chunk alone, one of them with a name of the others."""
    import numpy as np
    import torch

    from trainers.training.losses import info_nce, max_margin, triplet
    from trainers.training.recipe import Batch, Encoded

    class Linear:
        name, sources, weights = "linear", (), None
        network = torch.nn.Linear(5, 3)
        dropout = 0.0
        seen: ClassVar[list[torch.Tensor]] = []

        def encode(self, inputs: Any) -> Encoded:
            vectors = torch.dropout(self.network(torch.tensor(np.array(inputs))), self.dropout, True)
            self.seen.append(vectors.detach())
            return Encoded(vectors, {"alone": vectors.square().sum() / (3 * rows), "contrast": vectors.sum()})

        def losses(self, vectors: torch.Tensor, batch: Batch) -> dict[str, torch.Tensor]:
            one, two, three = vectors.chunk(3)
            right = torch.arange(batch.rows)
            return {
                "triplet": triplet(one, two, three),
                "contrast": info_nce(one, torch.cat([two, three]), right, temperature=0.1),
                "margin": max_margin(one, two, torch.stack([three, two], dim=1)),
            }

    inputs = np.random.default_rng(0).normal(size=(3 * rows, 5)).astype(np.float32)
    return Linear(), Batch(inputs, rows)


@given(chunk=st.integers(1, 9), rows=st.integers(1, 4))
@examples(12)
def test_gradients_do_not_depend_on_the_chunk(chunk: int, rows: int) -> None:
    import torch

    from trainers.training.loop import backward

    recipe, batch = linear_recipe(rows)
    found = []
    for size in (None, chunk):
        recipe.network.zero_grad()
        losses = backward(recipe, batch, chunk=size)
        found.append((losses, [each.grad.clone() for each in recipe.network.parameters()]))
    assert {*found[0][0]} == {"triplet", "contrast", "margin", "alone"}
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-4, abs=1e-5)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_chunk_draws_the_same_both_times() -> None:
    """Dropout: the second pass has the vectors of the first, of whose gradients it makes use."""
    import torch

    from trainers.training.loop import backward

    recipe, batch = linear_recipe(2)
    recipe.dropout = 0.5
    for seed in (1, 2):
        backward(recipe, batch, chunk=3, seed=(seed, 5))
    first, again, other = torch.cat(recipe.seen[:2]), torch.cat(recipe.seen[2:4]), torch.cat(recipe.seen[4:6])
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


# ---- Going on


class Killed(BaseException):
    pass


def killed(data: str, output: Path, *, at: int, **options: Any) -> None:
    """A training that dies while it prepares batch `at`."""
    from trainers.training.loop import fit

    recipe, chosen = toy(data, output, **options)
    prepare, made = recipe.prepare, [0]

    def dying(table: pa.Table) -> Any:
        made[0] += 1
        if made[0] == at:
            raise Killed
        return prepare(table)

    recipe.prepare = dying
    with pytest.raises(Killed):
        fit(recipe, chosen)


@pytest.mark.parametrize("at", [3, 6, 10])
def test_a_killed_training_goes_on_exactly(data: str, tmp_path: Path, whole: Whole, at: int) -> None:
    killed(data, tmp_path, at=at, **MIDDLE)
    assert (tmp_path / "checkpoint.pt").exists() == (at > 3)
    weights, results = trained(data, tmp_path, **MIDDLE)
    assert weights == whole[0]
    assert results["losses"] == whole[1]["losses"]
    assert results["examples"] == 40
    assert not (tmp_path / "checkpoint.pt").exists()


def test_tensorboard_has_each_step_once(data: str, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    killed(data, tmp_path, at=6, **MIDDLE)
    _, results = trained(data, tmp_path, **MIDDLE)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    shown = [(each.step, pytest.approx(each.value)) for each in events.Scalars("loss/contrast")]
    assert [(step, losses["contrast"]) for step, losses in results["losses"]] == shown
    assert [each.step for each in events.Scalars("training/rate")] == [*range(1, 11)]


def test_workers_make_the_same_batches(data: str, tmp_path: Path, whole: Whole) -> None:
    assert trained(data, tmp_path, workers=2, **MIDDLE)[0] == whole[0]


def test_what_is_finished_is_not_trained_again(data: str, tmp_path: Path) -> None:
    _, results = trained(data, tmp_path)
    before = (tmp_path / "weights.pt").stat().st_mtime_ns
    assert trained(data, tmp_path, checkpoint_steps=7)[1] == json.loads(json.dumps(results))
    assert (tmp_path / "weights.pt").stat().st_mtime_ns == before


@pytest.mark.parametrize("other", [{"rate": 0.1}, {"seed": 1}, {"epochs": 3.0}, {"dropout": 0.1}])
def test_another_training_is_refused(data: str, tmp_path: Path, other: dict[str, Any]) -> None:
    killed(data, tmp_path, at=4, checkpoint_steps=3)
    with pytest.raises(UserError, match=r"checkpoint\.pt: is a checkpoint of another training"):
        trained(data, tmp_path, **other)
    trained(data, tmp_path)
    with pytest.raises(UserError, match="has the model of another training; choose another --output, or remove it"):
        trained(data, tmp_path, **other)


def test_a_damaged_checkpoint_is_refused(data: str, tmp_path: Path) -> None:
    killed(data, tmp_path, at=4, checkpoint_steps=3)
    file = tmp_path / "checkpoint.pt"
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(UserError, match=r"checkpoint\.pt: cannot be read .*; remove it"):
        trained(data, tmp_path)


def test_what_has_no_loss_is_refused(data: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"step \d: the loss \w+ is nan; train again with a lower --rate"):
        trained(data, tmp_path, rate=1e38)


def test_too_many_rows_a_step_are_all_rows(data: str, tmp_path: Path) -> None:
    assert trained(data, tmp_path, batch_size=100)[1]["steps"] == 2


# ---- Held-out rows


def test_the_best_on_held_out_rows_is_kept(data: str, tmp_path: Path) -> None:
    """It ends when two scores in turn are no better; goes on exactly, too."""
    from trainers.training.loop import fit

    scores, digests = [1.0, 3.0, 2.0, 3.0, 9.0], []
    recipe, chosen = toy(data, tmp_path, epochs=5, patience=2, checkpoint_steps=13)

    def held_out() -> float:
        from trainers.training.checkpoint import digest_of

        if len(digests) == 2 and not (tmp_path / "checkpoint.pt").exists():
            raise Killed
        digests.append(digest_of(recipe.network))
        return scores[len(digests) - 1]

    recipe.held_out = held_out
    results = fit(recipe, chosen)
    assert results["held_out"] == [[5, 1.0], [10, 3.0], [15, 2.0], [20, 3.0]]
    assert results["steps"] == 20
    assert _digest_of_saved(tmp_path) == digests[1]


def _digest_of_saved(output: Path) -> str:
    import torch
    from toy_recipe import network

    from trainers.training.checkpoint import digest_of

    saved = network(dropout=0.0)
    saved.load_state_dict(torch.load(output / "weights.pt"))
    return digest_of(saved)


# ---- Rates


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (lambda step: linear(step, 5), [1, 1, 0.75, 0.5, 0.25]),
        (lambda step: linear(step, 5, warm_up=0.4), [0.5, 1, 1, 2 / 3, 1 / 3]),
        (lambda step: cosine(step, 5, warm_up=0.2, least=0.1), [1, 1, 0.868, 0.55, 0.232]),
        (lambda step: staircase(step, factor=0.5, every=2), [1, 1, 0.5, 0.5, 0.25]),
    ],
)
def test_rates(schedule: Callable[[int], float], expected: list[float]) -> None:
    assert [schedule(step) for step in range(5)] == pytest.approx(expected, abs=1e-3)


# ---- Signals and several processes


def started(data: str, output: Path, *options: str, ranks: int = 1) -> subprocess.Popen[str]:
    program = [sys.executable, *(["-m", "torch.distributed.run", f"--nproc-per-node={ranks}"] if ranks > 1 else [])]
    given = [str(SCRIPT), "--data", data, "--output", str(output), "--batch-size", "4", *options]
    root = SCRIPT.parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": f"{root}:{SCRIPT.parent}", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*program, *given], stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.heavy
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signals(data: str, tmp_path: Path, number: signal.Signals) -> None:
    options = ("--epochs", "2", "--dropout", "0.3", "--checkpoint-steps", "3", "--chunk", "3")
    process = started(data, tmp_path, *options, "--pause", "0.3")
    while not (tmp_path / "checkpoint.pt").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    said = process.communicate()[1]
    if number == signal.SIGKILL:
        assert process.returncode == -number
    else:
        assert process.returncode == 128 + number
        assert "stopped after step" in said
        assert "the same command goes on from there" in said
    process = started(data, tmp_path, *options, "--pause", "0.3")
    assert "goes on after step" in process.communicate()[1]
    assert started(data, tmp_path / "whole", *options).wait() == 0
    assert (tmp_path / "weights.pt").read_bytes() == (tmp_path / "whole/weights.pt").read_bytes()


@pytest.mark.heavy
@pytest.mark.parametrize("chunk", [(), ("--chunk", "3")])
def test_two_processes_learn_what_one_does(data: str, tmp_path: Path, chunk: tuple[str, ...]) -> None:
    """With negatives of both: the weights differ by rounding alone."""
    import torch

    assert started(data, tmp_path / "one", *chunk).wait() == 0
    assert started(data, tmp_path / "two", *chunk, ranks=2).wait() == 0
    one, two = (torch.load(tmp_path / each / "weights.pt") for each in ("one", "two"))
    for name in one:
        assert torch.allclose(one[name], two[name], atol=1e-5), name
    known = [json.loads((tmp_path / each / "training.json").read_text()) for each in ("one", "two")]
    assert known[0]["examples"] == known[1]["examples"] == 20
    for (_, here), (_, there) in zip(known[0]["losses"], known[1]["losses"], strict=True):
        assert here == pytest.approx(there, rel=1e-4)


@pytest.mark.heavy
def test_rows_of_all_ranks_are_gathered(tmp_path: Path) -> None:
    """Uneven numbers of rows; the gradient is that of one process which has all of them."""
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "from trainers.training import distributed\n"
        "with distributed.processes():\n"
        "    rank = torch.distributed.get_rank()\n"
        "    own = torch.arange(2.0 + 2 * rank).reshape(-1, 2).requires_grad_()\n"
        "    rows, first = distributed.gathered(own)\n"
        "    assert rows.tolist() == [[0, 1], [0, 1], [2, 3]] and first == rank, (rows, first)\n"
        "    ((rank + 1) * rows.square().sum()).backward()\n"
        "    assert torch.equal(own.grad, 3 * 2 * own)\n"
        "    assert distributed.gathered(torch.tensor([rank, 7])[: rank + 1])[0].tolist() == [0, 1, 7]\n"
    )
    root = SCRIPT.parent.parent.parent
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", str(program)]
    assert subprocess.run(command, env={**os.environ, "PYTHONPATH": str(root)}, check=False).returncode == 0
