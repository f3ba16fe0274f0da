"""Fit a network to treebanks and to a teacher's soft labels."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from trainers.parser.data import Example, sample, with_hyphens_merged
from trainers.parser.network import Batch, Output, ParserNetwork, real_spans
from transforms.parsing.phrasemill.encoding import GUM, Encoder

POOL_BATCHES = 50
"""How many batches are sorted by length together, so that there is little padding and the order is still random."""

WARM_UP = 0.05
CLIP = 5.0
REPORT_STEPS = 50


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn. Rates are AdamW's maxima: they rise, then fall linearly to zero."""

    pieces: int  # to learn from in total, padding included
    batch_pieces: int = 1000
    encoder_rate: float = 1.5e-4
    head_rate: float = 1e-3
    frozen_layers: int = 0  # the lowest layers of the encoder, in addition to the word embeddings
    tag_weight: float = 0.3  # of the tags' loss; that of the spans has 1
    hyphens_merged: float = 0.1  # share of sentences whose hyphenated words become one token
    marked: float = 1.0  # share of the sentences with another convention than GUM's that are marked with it
    bfloat16: bool = True  # half precision in the network's products: 1.6 times as fast on CPUs that support it
    seed: int = 0


class Vocabulary(NamedTuple):
    """The labels and tags that the network predicts, in order."""

    labels: tuple[str, ...]
    tags: tuple[str, ...]


class Targets(NamedTuple):
    spans: Tensor  # [B, labels, N + 1, N + 1], probabilities
    tags: Tensor  # [B, N], -100 if there is no word or its tag is unknown


def fit(
    network: ParserNetwork,
    vocabulary: Vocabulary,
    sources: Mapping[str, Sequence[Example]],
    shares: Mapping[str, float],
    schedule: Schedule,
) -> None:
    """Train `network` in place. `shares`: the share of the pieces from each source."""
    torch.manual_seed(schedule.seed)
    generator = np.random.default_rng(schedule.seed)
    device = next(network.parameters()).device
    optimizer = torch.optim.AdamW(_groups(network, schedule), weight_decay=0.01)
    steps = max(1, schedule.pieces // schedule.batch_pieces)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (WARM_UP * steps + 1), (steps - step) / steps)
    )
    network.train()
    began, words, losses = time.monotonic(), 0, [0.0, 0.0]
    batches = _batches(sources, shares, vocabulary, schedule, generator)
    for step, (batch, targets) in enumerate(islice(batches, steps), 1):
        batch, targets = Batch(*(each.to(device) for each in batch)), Targets(*(each.to(device) for each in targets))
        with torch.autocast(device.type, torch.bfloat16, enabled=schedule.bfloat16):
            output = network(batch)
        spans, tags = _losses(output, batch, targets)
        optimizer.zero_grad()
        (spans + schedule.tag_weight * tags).backward()
        nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimizer.step()
        scheduler.step()
        words += int((batch.right > 0).sum()) - len(batch.right)
        losses = [losses[0] + spans.item(), losses[1] + tags.item()]
        if step % REPORT_STEPS == 0 or step == steps:
            reported = step % REPORT_STEPS or REPORT_STEPS
            seconds = time.monotonic() - began
            print(
                f"step {step:,} of {steps:,}: loss of spans {losses[0] / reported:.4f}, "
                f"of tags {losses[1] / reported:.4f}; {words / seconds:,.0f} words/s, "
                f"{seconds / step * (steps - step) / 60:.1f} minutes left",
                file=sys.stderr,
                flush=True,
            )
            losses = [0.0, 0.0]
    network.eval()


def _groups(network: ParserNetwork, schedule: Schedule) -> list[dict[str, object]]:
    frozen: list[nn.Module] = [network.encoder.embeddings.word_embeddings]
    if schedule.frozen_layers:
        frozen += [network.encoder.embeddings.position_embeddings, network.encoder.embeddings.LayerNorm]
        frozen += list(network.encoder.encoder.layer[: schedule.frozen_layers])
    for module in frozen:
        module.requires_grad_(False)
    encoder = [each for each in network.encoder.parameters() if each.requires_grad]
    known = {id(each) for each in network.encoder.parameters()}
    heads = [each for each in network.parameters() if id(each) not in known]
    return [
        {"params": encoder, "lr": schedule.encoder_rate},
        {"params": heads, "lr": schedule.head_rate},
    ]


def _losses(output: Output, batch: Batch, targets: Targets) -> tuple[Tensor, Tensor]:
    """The losses of the spans and of the tags, for each word."""
    real = real_spans(batch)
    words = (targets.tags != -100).sum().clamp(min=1)
    spans = functional.binary_cross_entropy_with_logits(output.spans.float(), targets.spans, reduction="none")
    tags = functional.cross_entropy(output.tags.float().flatten(0, 1), targets.tags.flatten(), reduction="sum")
    return (spans * real).sum() / words, tags / words


def _batches(
    sources: Mapping[str, Sequence[Example]],
    shares: Mapping[str, float],
    vocabulary: Vocabulary,
    schedule: Schedule,
    generator: np.random.Generator,
) -> Iterator[tuple[Batch, Targets]]:
    encoder = Encoder()
    streams = {name: sample(sources[name], generator) for name, share in shares.items() if share}
    total = sum(shares.values())
    while True:
        pool: list[Example] = []
        for name, stream in streams.items():
            wanted = POOL_BATCHES * schedule.batch_pieces * shares[name] / total
            while wanted > 0:
                example = _varied(next(stream), schedule, generator)
                pool.append(example)
                wanted -= len(example.words) * 1.2 + 2
        encoded = encoder.encode([each.words for each in pool], [each.convention for each in pool])
        chosen = list(encoded.batches(schedule.batch_pieces))
        for place in generator.permutation(len(chosen)):
            numbers, arrays = chosen[place]
            batch = Batch(*map(torch.from_numpy, arrays))
            yield batch, targets_of([pool[number] for number in numbers], vocabulary, batch.left.shape[1])


def _varied(example: Example, schedule: Schedule, generator: np.random.Generator) -> Example:
    draws = generator.random(2)
    if "HYPH" in example.tags and draws[0] < schedule.hyphens_merged:
        example = with_hyphens_merged(example)
    return example if draws[1] < schedule.marked else example._replace(convention=GUM)


def targets_of(examples: Sequence[Example], vocabulary: Vocabulary, places: int) -> Targets:
    """The targets of a batch padded to `places` fenceposts; labels and tags outside the vocabulary are left out."""
    label_number = {label: number for number, label in enumerate(vocabulary.labels)}
    tag_number = {tag: number for number, tag in enumerate(vocabulary.tags)}
    spans = np.zeros((len(examples), len(vocabulary.labels), places, places), np.float32)
    tags = np.full((len(examples), places - 1), -100)
    for row, example in enumerate(examples):
        tags[row, : len(example.tags)] = [tag_number.get(tag, -100) for tag in example.tags]
        for (label, start, end), probability in zip(example.spans, example.probabilities, strict=True):
            if label in label_number:
                spans[row, label_number[label], start, end] = probability
    return Targets(torch.from_numpy(spans), torch.from_numpy(tags))
