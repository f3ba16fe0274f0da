"""The training of a paraphraser, from pairs of phrases to a folder that transformers loads."""

from __future__ import annotations

import copy
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from schemas.manifest import canonical_hash
from trainers.paraphraser.card import write_card
from trainers.paraphraser.data import (
    Batch,
    Encoded,
    Examples,
    Pairs,
    Parts,
    batches,
    examples_of,
    filtered,
    part,
    read_pairs,
    steps_of_epoch,
)
from trainers.paraphraser.network import Paraphraser, load_base, new_paraphraser, trained_parameters
from trainers.paraphraser.options import ParaphraserTraining
from trainers.paraphraser.scoring import said_scores
from trainers.training.checkpoint import read_checkpoint, remove_checkpoint, seed_torch, write_checkpoint
from trainers.training.portable import make_tokenizer_portable
from trainers.training.progress import History, Progress
from trainers.training.schedules import cosine
from transforms.arrays import mix64
from transforms.libraries import quiet_transformers
from transforms.paraphrase.generators.formats import PairFormat

SCORES = "scores.json"
RATE, BASE_RATE = 1e-3, 5e-5
WARM_UP = 0.04  # share of the steps
CLIP = 1.0
DECAY = 0.01
VERSION = 2
"""Raised when the same options and pairs give another model."""


def train(options: ParaphraserTraining, *, command: str = "") -> dict[str, Any]:
    """The scores of the model that is written to the output; the model of an earlier call if it had the same options
    and pairs, or what is left of its training.
    """
    pairs = read_pairs(options.pairs, most=options.most_pairs, one_direction=options.one_direction)
    made_of = _made_of(options, pairs)
    done = options.output / SCORES
    if done.exists() and (known := json.loads(done.read_text()))["fingerprint"] == made_of["fingerprint"]:
        print(f"{options.output}: there already", file=sys.stderr)
        return dict(known)
    torch.manual_seed(options.seed)
    reasons: dict[str, int] = {}
    if options.paper_filter:
        pairs, reasons = filtered(pairs)
    parts = part(pairs, options.held_out)
    paraphraser = load_base(options) if options.base else new_paraphraser(options, _texts(parts.learned))
    encoded = encode(paraphraser.tokenizer, pairs.texts)
    learned, held_out = (
        _examples(paraphraser, each, encoded, alone=alone, max_tokens=options.max_tokens)
        for each, alone in ((parts.learned, options.alone), (parts.held_out, 0.0))
    )
    print(
        f"{len(parts.learned.one):,} pairs to learn from in {len(learned):,} examples, {len(parts.held_out.one):,} "
        f"held out, {parts.left_out:,} left out; {paraphraser.model.num_parameters():,} weights",
        file=sys.stderr,
        flush=True,
    )
    options.output.mkdir(parents=True, exist_ok=True)
    scores: dict[str, Any] = {}

    def evaluate(step: int) -> None:
        """Write the model as it is, and score it."""
        save(paraphraser, options.output)
        if not len(held_out):
            return
        scores["held_out"] = {
            "loss": round(held_out_loss(paraphraser.model, held_out), 4),
            **said_scores(options.output, parts.held_out)._asdict(),
        }
        print(f"step {step:,}, held out: {json.dumps(scores['held_out'])}", file=sys.stderr, flush=True)

    steps = fit(paraphraser, learned, options, fingerprint=made_of["fingerprint"], evaluate=evaluate)
    evaluate(steps)
    scores |= made_of | _sizes(parts, learned, paraphraser) | {"filtered": reasons, "steps": steps}
    write_card(options, command, scores)
    done.write_text(json.dumps(scores, indent=1) + "\n")
    remove_checkpoint(options.output)
    return scores


def _made_of(options: ParaphraserTraining, pairs: Pairs) -> dict[str, Any]:
    """The options that decide the model, a hash of the pairs, and the fingerprint of both."""
    free = ("pairs", "output", "checkpoint_steps", "threads")
    settings = {name: value for name, value in asdict(options).items() if name not in free}
    identity = np.array([len(pairs.one)], np.uint64)
    rows = mix64(mix64(pairs.keys[pairs.one]) + pairs.keys[pairs.other]) + mix64(
        pairs.weight.view(np.uint32).astype(np.uint64)
    )
    data = f"{int(mix64(identity + rows.sum(dtype=np.uint64))[0]):016x}"
    return {
        "fingerprint": canonical_hash({"version": VERSION, "settings": settings, "pairs": data}),
        "settings": settings,
        "pairs_hash": data,
    }


def _texts(pairs: Pairs) -> list[str]:
    """The phrases of the pairs, in order of their hash."""
    numbers = np.unique(np.append(pairs.one, pairs.other))
    return [pairs.texts[each] for each in numbers[np.argsort(pairs.keys[numbers])].tolist()]


def encode(tokenizer: Any, texts: list[str]) -> Encoded:
    """Texts as tokens."""
    rows: list[list[int]] = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    starts = np.append(0, np.cumsum([len(each) for each in rows]))
    return Encoded(np.fromiter((number for row in rows for number in row), np.int32, starts[-1]), starts)


def _examples(paraphraser: Paraphraser, pairs: Pairs, encoded: Encoded, *, alone: float, max_tokens: int) -> Examples:
    """In the format in which generators ask, whose tokens before and after a text are those of an empty one."""
    form = PairFormat(paraphraser.tokenizer)
    (separator,), (end,) = form.prompt(""), form.answer("")
    return examples_of(pairs, encoded, separator=separator, end=end, alone=alone, max_tokens=max_tokens)


# ---- The loop


def fit(
    paraphraser: Paraphraser,
    learned: Examples,
    options: ParaphraserTraining,
    *,
    fingerprint: str,
    evaluate: Callable[[int], None] = lambda step: None,
) -> int:
    """Train in place; the number of steps. A checkpoint in the output with the same fingerprint is gone on from,
    exactly. `evaluate` is called after each checkpoint.
    """
    model = paraphraser.model
    weights = trained_parameters(model, options)
    rate = options.rate or (BASE_RATE if options.base else RATE)
    decayed = [each for each in weights if each.ndim > 1]
    others = [each for each in weights if each.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}],
        lr=rate,
        betas=(0.9, 0.98),
        fused=True,
    )
    an_epoch = steps_of_epoch(learned, options.batch_tokens)
    steps = max(1, round(options.epochs * an_epoch))
    first, history = 0, History()
    if saved := read_checkpoint(options.output, fingerprint, model.device):
        first, history = saved["step"], History(**saved["history"])
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        print(f"{options.output}: goes on after step {first:,}", file=sys.stderr, flush=True)
    progress = Progress(steps, first, history)
    model.train()
    for step, batch in enumerate(_batches(learned, options, an_epoch, first, steps), first):
        for group in optimizer.param_groups:
            group["lr"] = rate * cosine(step, steps, warm_up=WARM_UP, least=0.01)
        began = time.perf_counter()
        seed_torch(options.seed, step)
        loss = loss_of(model, batch, smoothing=options.smoothing, float32=options.float32)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, CLIP)
        optimizer.step()
        seconds = time.perf_counter() - began
        progress.note(step, {"loss": loss.item()}, examples=len(batch.tokens), seconds=seconds)
        if (step + 1) % options.checkpoint_steps == 0 and step + 1 < steps:
            state = {"step": step + 1, "history": history.state()}
            state |= {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            write_checkpoint(options.output, fingerprint, **state)
            model.eval()
            evaluate(step + 1)
            model.train()
    progress.close()
    model.eval()
    return steps


def _batches(learned: Examples, options: ParaphraserTraining, an_epoch: int, first: int, steps: int) -> Iterator[Batch]:
    """The batches from step `first` on."""
    step = first
    while step < steps:
        epoch, place = divmod(step, an_epoch)
        for batch in batches(learned, batch_tokens=options.batch_tokens, seed=options.seed, epoch=epoch, first=place):
            if step == steps:
                return
            yield batch
            step += 1


def loss_of(model: Any, batch: Batch, *, smoothing: float = 0.0, float32: bool = False) -> Tensor:
    """The mean loss of the learned tokens of a batch, in which each counts with the weight of its row."""
    device = model.device
    tokens, learned = torch.from_numpy(batch.tokens).to(device), torch.from_numpy(batch.learned[:, 1:]).to(device)
    weight = torch.from_numpy(batch.weight).to(device)[:, None].expand(learned.shape)[learned]
    # On a CPU the products of short rows are faster than its flash attention, above all backward.
    attention = sdpa_kernel(SDPBackend.MATH) if device.type == "cpu" else nullcontext()
    with torch.autocast(device.type, torch.bfloat16, enabled=not float32), attention:
        states = model.base_model(input_ids=tokens[:, :-1], use_cache=False).last_hidden_state
        logits = model.get_output_embeddings()(states[learned])
    losses = functional.cross_entropy(
        logits.float(), tokens[:, 1:][learned], reduction="none", label_smoothing=smoothing
    )
    return (losses * weight).sum() / weight.sum()


@torch.no_grad()
def held_out_loss(model: Any, examples: Examples, *, batch_tokens: int = 2_000, most: int = 100) -> float:
    """The mean loss a token of held-out pairs, in the first `most` batches; nan if there are none."""
    total, tokens = 0.0, 0
    for number, batch in enumerate(batches(examples, batch_tokens=batch_tokens, seed=0, epoch=0)):
        if number == most:
            break
        count = int(batch.learned.sum())
        total += loss_of(model, batch._replace(weight=np.ones_like(batch.weight))).item() * count
        tokens += count
    return total / tokens if tokens else math.nan


# ---- Files


def save(paraphraser: Paraphraser, output: Path) -> None:
    """The model, in half precision, and its tokenizer, as transformers loads them."""
    with quiet_transformers():
        half = copy.deepcopy(paraphraser.model).half()
        half.save_pretrained(output)
        paraphraser.tokenizer.save_pretrained(output)
    make_tokenizer_portable(output)


def _sizes(parts: Parts, learned: Examples, paraphraser: Paraphraser) -> dict[str, Any]:
    return {
        "pairs": {"learned": len(parts.learned.one), "held_out": len(parts.held_out.one), "left_out": parts.left_out},
        "examples": len(learned),
        "weights": paraphraser.model.num_parameters(),
    }
