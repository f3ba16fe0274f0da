"""Learn the tags of entities that other finders give, from the states of the shipped parser's network, which stay."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from schemas.terms import ENTITY_TYPES
from trainers.entities.export import States, export, states_of
from trainers.parser.label import raw_sentences
from transforms.entities.interface import Entity, Words
from transforms.entities.phrasemill_finder import PhrasemillFinder
from transforms.entities.registry import load_finder
from transforms.parsing.phrasemill.encoding import Ints
from transforms.parsing.phrasemill.model_file import read_model_file

LABELS = ("O", *(f"{letter}-{type_}" for type_ in ENTITY_TYPES for letter in "BIES"))
HELD_OUT = 50
"""One in this number of sentences is only scored."""
LONGEST = 100
HIDDEN = 256
DROPOUT = 0.15
BATCH_SENTENCES = 48
RATE = 1.5e-3
WARM_UP = 100  # steps


def train(
    datasets: Sequence[str], teachers: Sequence[str], output: Path, *, words: int, epochs: int, seed: int
) -> None:
    began = time.monotonic()
    torch.manual_seed(seed)
    sentences = raw_sentences(datasets, words=words, longest=LONGEST, seed=seed)
    spaced = [Words(each, [True] * len(each)) for each in sentences]
    finders = [load_finder("spacy", model=each) for each in teachers]
    names = [f"{each.identity.model} {each.identity.model_version}" for each in finders]
    found = [finder.find(spaced) for finder in finders]
    print(f"{len(sentences):,} sentences labelled by {len(teachers)} teachers", flush=True)
    parser = read_model_file()
    states = states_of(parser.content, sentences)
    lengths = np.array([len(each) for each in sentences])
    head = HeadNetwork(states)
    held = np.arange(len(sentences)) % HELD_OUT == 0
    fit(head, states, [_labels(each, lengths) for each in found], lengths, np.flatnonzero(~held), epochs, seed)
    output.mkdir(parents=True, exist_ok=True)
    file = output / "entities.onnx"
    made_from = {"parser": parser.sha256, "teachers": json.dumps(names)}
    file.write_bytes(export(head, states, LABELS, made_from))
    mine = PhrasemillFinder(str(file)).find([each for each, out in zip(spaced, held, strict=True) if out])
    scores = {
        name: f1([each for each, out in zip(theirs, held, strict=True) if out], mine)
        for name, theirs in zip(names, found, strict=True)
    }
    made = {
        "sentences": len(sentences),
        "words": int(lengths.sum()),
        "teachers": [finder.identity._asdict() for finder in finders],
        "parser": parser.sha256,
        "epochs": epochs,
        "seed": seed,
        "torch": torch.__version__,
        "seconds": round(time.monotonic() - began),
        "f1_held_out": scores,
    }
    (output / "scores.json").write_text(json.dumps(made, indent=1) + "\n")
    print(json.dumps(scores))


class HeadNetwork(nn.Module):
    """Scores of the labels of each word, from its states and those of its two neighbours."""

    def __init__(self, states: States) -> None:
        super().__init__()
        sample = torch.from_numpy(states.values[:: max(1, len(states.values) // 20_000)]).float()
        self.mean = nn.Buffer(sample.mean(0))
        self.deviation = nn.Buffer(sample.std(0) + 1e-3)
        self.hidden = nn.Linear(sample.shape[1], HIDDEN)
        self.context = nn.Linear(3 * HIDDEN, HIDDEN)
        self.output = nn.Linear(HIDDEN, len(LABELS))
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, values: Tensor, real: Tensor) -> Tensor:
        """[n, labels] of n rows `values`, words of sentences with one row between two of them, where `real` is 0."""
        return self.output(self.dropout(self.states(values, real)[1]))

    def states(self, values: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """[n, HIDDEN] each: before and after the neighbours are read."""
        own = functional.gelu(self.hidden(self.dropout((values.float() - self.mean) / self.deviation))) * real
        zero = torch.zeros_like(own[:1])
        three = torch.cat([torch.cat([zero, own[:-1]]), own, torch.cat([own[1:], zero])], 1)
        return own, own + functional.gelu(self.context(self.dropout(three)))


def fit(
    head: HeadNetwork, states: States, labels: Sequence[Ints], lengths: Ints, learned: Ints, epochs: int, seed: int
) -> None:
    """The loss is the cross-entropy, averaged over the teachers."""
    generator = np.random.default_rng(seed)
    firsts = np.cumsum(lengths) - lengths
    batches: list[Ints] = []
    for _ in range(epochs):
        shuffled = generator.permutation(learned)
        batches += [shuffled[at : at + BATCH_SENTENCES] for at in range(0, len(shuffled), BATCH_SENTENCES)]
    optimizer = torch.optim.AdamW(head.parameters(), lr=RATE)
    head.train()
    total = 0.0
    for step, chosen in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min((step + 1) / WARM_UP, 1) * (1 - step / len(batches))
        rows = np.concatenate([np.r_[firsts[each] : firsts[each] + lengths[each], -1] for each in chosen])
        real = torch.from_numpy(rows >= 0)
        logits = head(torch.from_numpy(states.values[rows]), real[:, None].float())[real]
        targets = [torch.from_numpy(each[rows[rows >= 0]]) for each in labels]
        loss = torch.stack([functional.cross_entropy(logits, each) for each in targets]).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
        if step % 200 == 199:
            print(f"step {step + 1} of {len(batches)}: loss {total / 200:.4f}", flush=True)
            total = 0.0
    head.eval()


def _labels(found: Sequence[Sequence[Entity]], lengths: Ints) -> Ints:
    """The label of each word, the sentences one after the other."""
    labels = np.zeros(int(lengths.sum()), np.int64)
    for first, entities in zip((np.cumsum(lengths) - lengths).tolist(), found, strict=True):
        for start, end, type_ in entities:
            begins = LABELS.index(f"B-{type_}")
            labels[first + start : first + end] = begins + 1
            labels[first + start] = begins
            labels[first + end - 1] = begins + 2
            if end - start == 1:
                labels[first + start] = begins + 3
    return labels


def f1(gold: Sequence[Sequence[Entity]], found: Sequence[Sequence[Entity]]) -> float:
    """Of spans with their types."""
    both = sum(len({*a} & {*b}) for a, b in zip(gold, found, strict=True))
    return round(2 * both / max(1, sum(map(len, gold)) + sum(map(len, found))), 4)
