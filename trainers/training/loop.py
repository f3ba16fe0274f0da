"""The training loop: one for all recipes."""

from __future__ import annotations

import contextlib
import json
import math
import platform
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from schemas.errors import UserError
from schemas.manifest import canonical_hash
from trainers.data import Loader, torch_dataset
from trainers.loading.torch_batches import process_rank
from trainers.training import distributed
from trainers.training.card import write_card
from trainers.training.checkpoint import (
    digest_of,
    read_checkpoint,
    remove_checkpoint,
    seed_torch,
    settings_of,
    write_checkpoint,
)
from trainers.training.evaluating import mean_of, scores_of
from trainers.training.events import Events
from trainers.training.options import Training
from trainers.training.progress import History, Progress
from trainers.training.recipe import Batch, Encoded, HeldOut, OwnOptimizer, OwnRate, Recipe
from trainers.training.schedules import linear

RESULTS, EVALUATION = "training.json", "evaluation"
DECAY = 0.01
VERSION = 1
"""Raised when the same options and data give other weights."""


def fit(recipe: Recipe, options: Training, *, command: str = "", about: str = "") -> dict[str, Any]:
    """Train in place, and write the model to the output; what is known of it, which is also in training.json.

    A checkpoint of the same training is gone on from, exactly. A model that is finished is not trained again. A first
    SIGINT or SIGTERM ends the process after the step in which it comes and a checkpoint.
    """
    rank, ranks = process_rank()
    device, output = distributed.device(), options.output
    made_of = _made_of(recipe, options)
    network = recipe.network.to(device)
    loader = _loader(recipe, options, rank, ranks)
    if (known := _finished(output, made_of["fingerprint"])) is not None:
        if rank == 0:
            print(f"{output}: there already", file=sys.stderr)
        return known
    weights = [each for each in network.parameters() if each.requires_grad]
    if options.checkpointing:
        _recompute(network)
    optimizer = recipe.optimizer(options) if isinstance(recipe, OwnOptimizer) else adamw(network, options.rate)
    an_epoch = loader.steps()
    steps = options.steps or max(1, round(options.epochs * an_epoch))
    history, first, best = History(), 0, None
    output.mkdir(parents=True, exist_ok=True)
    if saved := read_checkpoint(output, made_of["fingerprint"], device):
        first, history, best = saved["step"], History(**saved["history"]), saved["best"]
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        del saved
    events = Events(output, first) if rank == 0 else None
    progress = Progress(steps, first, history, shown=rank == 0)
    if first:
        progress.say(f"{output}: goes on after step {first:,}")

    def keep(done: int) -> None:
        if rank == 0:
            state = {"step": done, "history": history.state(), "loader": loader.state_dict(), "best": best}
            state |= {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
            write_checkpoint(output, made_of["fingerprint"], **state)

    def evaluate(done: int) -> None:
        if rank == 0 and options.evaluation is not None and str(done) not in history.scores:
            network.eval()
            with stop.paused():
                history.scores[str(done)] = _evaluated(recipe, options, done, last=done == ended, say=progress.say)
            network.train()
            assert events is not None
            events.scores(done, history.scores[str(done)])

    network.train()
    ended = steps
    batches = _batches(recipe, loader, options)
    with Stop() as stop, contextlib.closing(progress), contextlib.closing(batches):
        for step in range(first, steps):
            if step == 0 or (options.evaluation_steps and step % options.evaluation_steps == 0):
                evaluate(step)
            began = time.perf_counter()
            batch = next(batches)
            waited = time.perf_counter() - began
            rate = recipe.rate_at(step, steps) if isinstance(recipe, OwnRate) else _rate(options, step, steps)
            for group in optimizer.param_groups:
                group["lr"] = rate * group.get("times", 1.0)
            optimizer.zero_grad()
            seed = (options.seed, step, rank)
            losses = backward(recipe, batch, chunk=options.chunk, precision=options.precision, seed=seed)
            *means, stopped = distributed.averaged(weights, [*losses.values(), float(stop.asked > 0)])
            losses = dict(zip(losses, means, strict=True))
            _require_finite(losses, step)
            if options.clip is not None:
                nn.utils.clip_grad_norm_(weights, options.clip)
            optimizer.step()
            done = step + 1
            seconds = time.perf_counter() - began
            point = progress.note(step, losses, examples=batch.rows * ranks, seconds=seconds, waiting=waited)
            if events is not None and point is not None:
                events.losses(done, point, rate=rate, history=history)
            if isinstance(recipe, HeldOut) and (done % an_epoch == 0 or done == steps):
                network.eval()
                history.held_out.append([done, score := recipe.held_out()])
                network.train()
                if history.since_best == 0:
                    best = {name: each.detach().clone() for name, each in network.state_dict().items()}
                if events is not None:
                    events.held_out(done, score)
                if options.patience and history.since_best >= options.patience:
                    ended = done
            if stopped or done % options.checkpoint_steps == 0 or done == ended:
                keep(done)
            if stopped:
                progress.say(f"stopped after step {done:,} of {steps:,}: the same command goes on from there")
                raise SystemExit(128 + (stop.asked or signal.SIGTERM))
            if done == ended:
                break
        if best is not None:
            network.load_state_dict(best)
        network.eval()
        if rank == 0:
            recipe.save(output)
            evaluate(ended)
    if events is not None:
        events.close()
    results = made_of | _known(history, device) | {"steps": ended, "command": command}
    if rank == 0:
        write_card(options, results, about=about or getattr(recipe, "about", ""), usage=getattr(recipe, "usage", ""))
        (output / RESULTS).write_text(json.dumps(results, indent=1) + "\n")
        remove_checkpoint(output)
    return results


def _evaluated(
    recipe: Recipe, options: Training, done: int, *, last: bool, say: Callable[[str], None]
) -> Mapping[str, Any]:
    """The scores of the model as it is after some steps, beside those before the first; the last is in the output."""
    results = options.output / EVALUATION / f"step-{done}"
    model = options.output if last else results / "model"
    if not last:
        recipe.save(model)
    before = options.output / EVALUATION / "step-0"
    say(f"evaluation after step {done:,}")
    scores = scores_of(model, results, options, say, against=before if done else None)
    if not last:
        shutil.rmtree(model)
    say(f"evaluation after step {done:,}: mean {mean_of(scores):.2f}")
    return scores


def _known(history: History, device: torch.device) -> dict[str, Any]:
    """What is known of a training that is done, beside what it was made of."""
    if device.type == "cuda":
        memory = torch.cuda.max_memory_allocated(device)
    else:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "examples": history.examples,
        "seconds": round(history.seconds, 1),
        "examples_a_second": round(history.examples_a_second, 1),
        "share_waiting": round(history.share_waiting, 4),
        "peak_memory": memory,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "versions": {each: version(each) for each in ("phrasemill", "torch", "transformers", "numpy", "pyarrow")},
        "losses": history.losses,
        "held_out": history.held_out,
        "scores": history.scores,
    }


def _recompute(network: nn.Module) -> None:
    """Have transformers compute activations again."""
    names = ("activation_checkpointing_enable", "gradient_checkpointing_enable")  # that of transformers 4 is the second
    found = [getattr(each, name, None) for name in names for each in network.modules()]
    enable = next((each for each in found if each), None)
    if enable is None:
        raise UserError("--checkpointing: this network has no transformer; leave the option out")
    enable()


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


def _require_finite(losses: Mapping[str, float], step: int) -> None:
    for name, value in losses.items():
        if not math.isfinite(value):
            raise UserError(
                f"step {step + 1:,}: the loss {name} is {value}; train again with a lower --rate, with --clip 1 "
                "or with --precision float32, to another --output"
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

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """During this block both act as before."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def _note(self, number: int, _: object) -> None:
        self.asked = number
        print("stopping after this step", file=sys.stderr, flush=True)
        self.__exit__()
