"""The training loop: one for all recipes."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from schemas.errors import UserError
from schemas.manifest import canonical_hash
from trainers.data import Loader, torch_dataset
from trainers.loading.torch_batches import process_rank
from trainers.training import distributed
from trainers.training.checkpoint import (
    digest_of,
    read_checkpoint,
    remove_checkpoint,
    seed_torch,
    settings_of,
    write_checkpoint,
)
from trainers.training.options import Training
from trainers.training.progress import History, Progress
from trainers.training.recipe import Batch, Encoded, Recipe
from trainers.training.schedules import linear

RESULTS = "training.json"
DECAY = 0.01
VERSION = 1
"""Raised when the same options and data give other weights."""


@runtime_checkable
class OwnOptimizer(Protocol):
    """A recipe with an optimizer of its own; by default AdamW."""

    def optimizer(self, options: Training) -> torch.optim.Optimizer: ...


@runtime_checkable
class OwnRate(Protocol):
    """A recipe with a schedule of its own; by default linear warm-up and decay."""

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate of a step, from 0."""
        ...


def fit(recipe: Recipe, options: Training, *, command: str = "") -> dict[str, Any]:
    """Train in place, and write the model to the output; what is known of it, which is also in training.json.

    A checkpoint of the same training is gone on from, exactly. A model that is finished is not trained again. A first
    SIGINT or SIGTERM ends the process after the step in which it comes and a checkpoint.
    """
    rank, ranks = process_rank()
    device = distributed.device()
    network, output = recipe.network.to(device), options.output
    loader = _loader(recipe, options, rank, ranks)
    made_of = _made_of(recipe, options)
    if (known := _finished(output, made_of["fingerprint"])) is not None:
        if rank == 0:
            print(f"{output}: there already", file=sys.stderr)
        return known
    weights = [each for each in network.parameters() if each.requires_grad]
    optimizer = recipe.optimizer(options) if isinstance(recipe, OwnOptimizer) else adamw(network, options.rate)
    steps = options.steps or max(1, round(options.epochs * loader.steps()))
    history, first = History(), 0
    output.mkdir(parents=True, exist_ok=True)
    if saved := read_checkpoint(output, made_of["fingerprint"], device):
        first, history = saved["step"], History(**saved["history"])
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        del saved
    progress = Progress(steps, first, history, shown=rank == 0)
    if first:
        progress.say(f"{output}: goes on after step {first:,}")

    def keep(done: int) -> None:
        if rank == 0:
            state = {"step": done, "network": network.state_dict(), "optimizer": optimizer.state_dict()}
            write_checkpoint(
                output, made_of["fingerprint"], **state, loader=loader.state_dict(), history=history.state()
            )

    network.train()
    with contextlib.closing(progress), Stop() as stop, contextlib.closing(_batches(recipe, loader, options)) as batches:
        for step in range(first, steps):
            began = time.perf_counter()
            batch = next(batches)
            waited = time.perf_counter() - began
            rate = recipe.rate_at(step, steps) if isinstance(recipe, OwnRate) else _rate(options, step, steps)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad()
            seed = (options.seed, step, rank)
            losses = backward(recipe, batch, chunk=options.chunk, precision=options.precision, seed=seed)
            *means, stopped = distributed.averaged(weights, [*losses.values(), float(stop.asked)])
            losses = dict(zip(losses, means, strict=True))
            _require_finite(losses, step, options)
            if options.clip is not None:
                nn.utils.clip_grad_norm_(weights, options.clip)
            optimizer.step()
            seconds = time.perf_counter() - began
            progress.note(step, losses, examples=batch.rows * ranks, seconds=seconds, waiting=waited)
            done = step + 1
            if done < steps and (stopped or done % options.checkpoint_steps == 0):
                keep(done)
            if stopped and done < steps:
                progress.say(f"stopped after step {done:,} of {steps:,}: the same command goes on from there")
                raise SystemExit(128 + (stop.asked or signal.SIGTERM))
    network.eval()
    results = made_of | {"command": command, "steps": steps, "losses": history.losses}
    if rank == 0:
        recipe.save(output)
        (output / RESULTS).write_text(json.dumps(results, indent=1) + "\n")
        remove_checkpoint(output)
    return results


def backward(
    recipe: Recipe,
    batch: Batch,
    *,
    chunk: int | None = None,
    precision: str = "float32",
    seed: Sequence[int] = (0,),
) -> dict[str, float]:
    """Add the gradients of a batch; its losses by name.

    With a chunk: GradCache (Gao et al. 2021). The vectors of all chunks are computed without gradients, then the losses
    and their gradients with regard to the vectors, then each chunk again, which takes these gradients on to the
    weights. `seed` and the number of the chunk decide what `encode` draws, so it draws the same both times.
    """
    size = min(chunk or len(batch.inputs), len(batch.inputs))
    parts = [batch.inputs[first : first + size] for first in range(0, len(batch.inputs), max(size, 1))]

    def encode(number: int) -> Encoded:
        seed_torch(*seed, number)
        device = next(recipe.network.parameters()).device
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            return recipe.encode(parts[number])

    if len(parts) == 1:
        vectors, alone = encode(0)
        losses = _added(recipe.losses(vectors, batch), alone)
        _total(losses).backward()
        return _values(losses)
    with torch.no_grad():
        vectors = torch.cat([encode(number).vectors for number in range(len(parts))])
    vectors.requires_grad_()
    losses = {**recipe.losses(vectors, batch)}
    _total(losses).backward()
    assert vectors.grad is not None
    for number, gradient in enumerate(vectors.grad.split(size)):
        again, alone = encode(number)
        torch.autograd.backward([again, *alone.values()], [gradient.to(again.dtype), *[None] * len(alone)])
        losses = _added(losses, {name: each.detach() for name, each in alone.items()})
    return _values(losses)


def _added(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {**one, **{name: one[name] + loss if name in one else loss for name, loss in other.items()}}


def _total(losses: Mapping[str, Tensor]) -> Tensor:
    return torch.stack([*losses.values()]).sum()


def _values(losses: Mapping[str, Tensor]) -> dict[str, float]:
    return dict(zip(losses, torch.stack([each.detach().float() for each in losses.values()]).tolist(), strict=True))


def adamw(network: nn.Module, rate: float, *, decay: float = DECAY) -> torch.optim.Optimizer:
    """AdamW; biases and the weights of norms do not decay."""
    weights = [each for each in network.parameters() if each.requires_grad]
    groups = [
        {"params": [each for each in weights if each.ndim > 1], "weight_decay": decay},
        {"params": [each for each in weights if each.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([each for each in groups if each["params"]], lr=rate, fused=True)


def _rate(options: Training, step: int, steps: int) -> float:
    return options.rate * linear(step, steps, warm_up=options.warm_up)


def _require_finite(losses: Mapping[str, float], step: int, options: Training) -> None:
    for name, value in losses.items():
        if not math.isfinite(value):
            raise UserError(
                f"step {step + 1:,}: the loss {name} is {value}; go on from the last checkpoint with a lower --rate, "
                "with --clip, or with --precision float32"
            )


def _loader(recipe: Recipe, options: Training, rank: int, ranks: int) -> Loader:
    """Batches of this rank. All ranks have as many rows, so that the mean of their losses is that of the rows."""
    rows = sum(each.rows for each in recipe.sources)
    each_rank = min(options.batch_size, rows) // ranks
    if options.batch_size % ranks:
        raise UserError(
            f"--batch-size {options.batch_size}: is no multiple of the {ranks} processes; choose one that is"
        )
    if not each_rank:
        raise UserError(f"{recipe.sources[0].place}: has {rows:,} rows for {ranks} processes; start fewer")
    return Loader(
        recipe.sources,
        batch_size=each_rank,
        rank=rank,
        ranks=ranks,
        last="drop",
        seed=options.seed,
        weights=recipe.weights,
    )


def _batches(recipe: Recipe, loader: Loader, options: Training) -> Generator[Batch]:
    """The batches from where the loader is, without end."""
    if not options.workers:
        while True:
            for table in loader:
                yield recipe.prepare(table)
    from torch.utils.data import DataLoader

    prepared = torch_dataset(loader, recipe.prepare)
    batches = DataLoader(prepared, batch_size=None, num_workers=options.workers, persistent_workers=True)
    while True:
        yield from loader.track(batches)


def _made_of(recipe: Recipe, options: Training) -> dict[str, Any]:
    """What decides the weights, and its fingerprint."""
    settings = settings_of(options, options.free)
    data = [{"place": each.place, "rows": each.rows, "digest": each.digest} for each in recipe.sources]
    made_of = {
        "recipe": recipe.name,
        "version": [VERSION, getattr(recipe, "version", 1)],
        "settings": settings,
        "data": [each["digest"] for each in data],
        "weights": [*recipe.weights] if recipe.weights is not None else None,
        "network": digest_of(recipe.network),
    }
    return {"fingerprint": canonical_hash(made_of), **made_of, "data": data}


def _finished(output: Path, fingerprint: str) -> dict[str, Any] | None:
    """What is known of the model in the output if it is that of this training. UserError if it is of another."""
    file = output / RESULTS
    if not file.exists():
        return None
    known: dict[str, Any] = json.loads(file.read_text())
    if known["fingerprint"] != fingerprint:
        raise UserError(f"{output}: has the model of another training; choose another --output, or remove it")
    return known


class Stop:
    """During the block, a first SIGINT or SIGTERM only sets `asked`; a second one acts as before the block."""

    def __init__(self) -> None:
        self.asked: int = 0

    def __enter__(self) -> Stop:
        self._before = {each: signal.signal(each, self._note) for each in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, action in self._before.items():
            signal.signal(number, action)

    def _note(self, number: int, _: object) -> None:
        self.asked = number
        print("stopping after this step", file=sys.stderr, flush=True)
        self.__exit__()
