"""Train the parser `phrasemill`: treebanks -> teacher -> soft labels on raw text -> student -> ONNX file.

    python -m trainers.train parser --treebanks DIR --sentences out/mix-sentences --output out/parser

The output holds teacher.pt, soft-labels.parquet, and for each seed student-SEED.pt, parser-SEED.onnx and
parser-SEED.json (the threshold, the scores, what it was made of). A step whose result is there, made with the same
settings from the same files, is not repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.manifest import canonical_hash
from trainers.parser.data import Example, read_examples, read_soft_labels, write_soft_labels
from trainers.parser.fit import Vocabulary, fit
from trainers.parser.label import label, raw_sentences
from trainers.parser.network import ParserNetwork, load_encoder
from trainers.parser.recipe import RECIPE, Network, Recipe, read_recipe
from transforms.parsing.treebank import TreebankError

HELD_OUT = 20
"""One in so many sentences of the training part is not learned from: the threshold is chosen on them."""


def main(arguments: Sequence[str]) -> int:
    options = _parse_arguments(arguments)
    torch.set_num_threads(options.threads)
    recipe = read_recipe(options.recipe)
    recipe = replace(
        recipe,
        teacher=replace(recipe.teacher, encoder=options.teacher_encoder or recipe.teacher.encoder),
        student=replace(recipe.student, encoder=options.student_encoder or recipe.student.encoder),
    )
    options.output.mkdir(parents=True, exist_ok=True)
    train(recipe, options.treebanks, options.sentences, options.output, seed=options.seed)
    return 0


def train(recipe: Recipe, treebanks: Path, sentences: Sequence[str], output: Path, *, seed: int) -> None:
    """All steps, of which those whose result lies in `output` are skipped. `seed` is the student's."""
    gold = _read_treebanks(recipe, treebanks)
    vocabulary = Vocabulary(
        recipe.labels, tuple(sorted({tag for each in gold.values() for x in each for tag in x.tags}))
    )
    data = {each.name: _sha256(treebanks / each.train) for each in recipe.treebanks}
    learned = {name: [x for place, x in enumerate(each) if place % HELD_OUT] for name, each in gold.items()}
    held_out = {name: each[::HELD_OUT] for name, each in gold.items()}

    teacher = output / "teacher.pt"
    made_of = {"network": asdict(recipe.teacher), "vocabulary": vocabulary, "data": data}
    _step(teacher, made_of, lambda: _fit(recipe.teacher, vocabulary, learned, teacher))

    soft = output / "soft-labels.parquet"
    texts = [canonical_hash([asdict(shard) for shard in Dataset.open(each).manifest.shards]) for each in sentences]
    made_of = {"teacher": _sha256(teacher), "sentences": texts, "settings": asdict(recipe.soft_labels)}
    _step(soft, made_of, lambda: _label(recipe, load(teacher), vocabulary, sentences, soft))

    student = output / f"student-{seed}.pt"
    network = replace(recipe.student, schedule=replace(recipe.student.schedule, seed=seed))
    made_of = {"network": asdict(network), "vocabulary": vocabulary, "data": data, "soft_labels": _sha256(soft)}
    _step(
        student,
        made_of,
        lambda: _fit(network, vocabulary, {**learned, "soft": list(read_soft_labels(soft))}, student),
    )
    del held_out


def _fit(settings: Network, vocabulary: Vocabulary, sources: dict[str, list[Example]], path: Path) -> None:
    network = ParserNetwork(
        load_encoder(settings.encoder, layers=settings.layers),
        labels=len(vocabulary.labels),
        tags=len(vocabulary.tags),
        hidden=settings.hidden,
    )
    fit(network, vocabulary, sources, settings.shares, settings.schedule)
    torch.save(
        {"state": network.state_dict(), "config": network.encoder.config.to_dict(), "hidden": settings.hidden}, path
    )
