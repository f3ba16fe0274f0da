"""The steps of training the parser `phrasemill`, each done once: `python -m trainers.train parser`."""

from __future__ import annotations

import json
import math
import operator
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel

from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.manifest import canonical_hash
from trainers.parser.data import Example, read_examples, read_soft_labels, write_soft_labels
from trainers.parser.export import export
from trainers.parser.fit import Vocabulary, fit
from trainers.parser.label import label, raw_sentences
from trainers.parser.network import ParserNetwork, load_encoder
from trainers.parser.recipe import Network, Recipe
from transforms.parsing.evaluation import Evaluation, evaluate
from transforms.parsing.identities import sha256_of
from transforms.parsing.phrasemill import network as exported
from transforms.parsing.phrasemill.encoding import MAX_WORDS, Encoder
from transforms.parsing.phrasemill.network import MAX_BATCH_PIECES
from transforms.parsing.treebank import TreebankError

HELD_OUT = 20
"""One in this number of sentences of the training part is held out; the threshold is chosen on them."""

CALIBRATION = 500
"""The number of sentences of each treebank from which the scales of the activations are computed."""

THRESHOLDS = [round(0.3 + 0.02 * step, 2) for step in range(16)]
"""The probabilities of a span that are tried as the threshold."""


def train(recipe: Recipe, treebanks: Path, sentences: Sequence[str], output: Path, *, seed: int) -> None:
    """All steps except those whose result is in `output`. `seed` is the student's."""
    gold = _read_treebanks(recipe, treebanks, "train")
    tags = {tag for examples in gold.values() for example in examples for tag in example.tags}
    vocabulary = Vocabulary(recipe.labels, tuple(sorted(tags)))
    learned = {name: [each for n, each in enumerate(found) if not _is_held_out(n)] for name, found in gold.items()}
    data = {each.name: sha256_of(treebanks / each.train) for each in recipe.treebanks}

    teacher = output / "teacher.pt"
    made_of: dict[str, Any] = {"network": _named(recipe.teacher), "vocabulary": vocabulary, "data": data}
    _step(teacher, made_of, lambda: _fit(recipe.teacher, vocabulary, learned, teacher))

    soft = output / "soft-labels.parquet"
    texts = [[shard.sha256 for shard in Dataset.open(each).shards()] for each in sentences]
    made_of = {"teacher": sha256_of(teacher), "sentences": texts, "settings": asdict(recipe.soft_labels)}
    _step(soft, made_of, lambda: _label(recipe, teacher, sentences, soft))

    student = output / f"student-{seed}.pt"
    network = replace(recipe.student, seed=seed, schedule=replace(recipe.student.schedule, seed=seed))
    made_of = {"network": _named(network), "vocabulary": vocabulary, "data": data, "soft_labels": sha256_of(soft)}
    _step(
        student,
        made_of,
        lambda: _fit(network, vocabulary, {**learned, "soft": list(read_soft_labels(soft))}, student),
    )

    parser = output / f"parser-{seed}.onnx"
    tuned_on = [each for name in recipe.tuned_on for n, each in enumerate(gold[name]) if _is_held_out(n)]
    calibration = [each for found in learned.values() for each in found[:: max(1, len(found) // CALIBRATION)]]
    made_of = {"student": sha256_of(student), "labels": recipe.labels, "tuned_on": recipe.tuned_on}
    _step(parser, made_of, lambda: _export(student, calibration, tuned_on, parser))

    scores = output / f"scores-{seed}.json"
    dev = _read_treebanks(recipe, treebanks, "dev")
    made_of = {
        "parser": sha256_of(parser),
        "data": {each.name: sha256_of(treebanks / each.dev) for each in recipe.treebanks},
    }
    _step(scores, made_of, lambda: _score(parser, dev, scores))
    print(scores.read_text(), end="")


def _is_held_out(number: int) -> bool:
    """Whether a sentence is held out, by its number in the training part: the middle one of every `HELD_OUT`."""
    return number % HELD_OUT == HELD_OUT // 2


def _named(network: Network) -> dict[str, Any]:
    """The settings; an encoder on disk is represented by its content."""
    path = Path(network.encoder)
    return asdict(network) | ({"encoder": sha256_of(path)} if path.exists() else {})


def _read_treebanks(recipe: Recipe, folder: Path, part: str) -> dict[str, list[Example]]:
    found = {}
    for treebank in recipe.treebanks:
        path = folder / getattr(treebank, part)
        if not path.is_file():
            raise UserError(
                f"{path}: no such file; --treebanks is the folder that holds it (docs/training-a-parser.md)"
            )
        faults: list[TreebankError] = []
        examples = list(read_examples(path, convention=treebank.convention, faults=faults))
        found[treebank.name] = [each for each in examples if len(each.words) <= MAX_WORDS]
        for fault in faults:
            print(f"left out: {fault}", file=sys.stderr)
        if too_long := len(examples) - len(found[treebank.name]):
            print(f"left out: {path}: {too_long} sentences of more than {MAX_WORDS} words", file=sys.stderr)
    return found


def _step(result: Path, made_of: dict[str, Any], make: Callable[[], None]) -> None:
    """Make a result, unless it exists and was made from the same."""
    record = result.with_name(f"{result.name}.made.json")
    fingerprint = canonical_hash(json.loads(json.dumps(made_of)))
    if result.exists() and record.exists() and json.loads(record.read_text())["fingerprint"] == fingerprint:
        print(f"{result}: there already", file=sys.stderr)
        return
    print(f"{result}: being made", file=sys.stderr)
    began = time.monotonic()
    make()
    record.write_text(
        json.dumps(
            {
                "fingerprint": fingerprint,
                "sha256": sha256_of(result),
                "seconds": round(time.monotonic() - began),
                "threads": torch.get_num_threads(),
                "torch": torch.__version__,
                "commit": _commit(),
                "made_of": made_of,
            },
            indent=2,
        )
        + "\n"
    )


def _commit() -> str:
    """The commit of the code that runs, with "-dirty" after changes; empty outside a checkout."""

    def git(*arguments: str) -> str:
        command = ["git", "--no-optional-locks", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    # `describe --dirty` would write the index of the checkout.
    changed = git("status", "--porcelain", "--untracked-files=no")
    return git("describe", "--always", "--abbrev=12") + ("-dirty" if changed else "")


def _fit(settings: Network, vocabulary: Vocabulary, sources: dict[str, list[Example]], path: Path) -> None:
    torch.manual_seed(settings.seed)
    network = ParserNetwork(
        load_encoder(settings.encoder, layers=settings.layers, feed_forward=settings.feed_forward),
        labels=len(vocabulary.labels),
        tags=len(vocabulary.tags),
        hidden=settings.hidden,
    ).to(_device())
    fit(network, vocabulary, sources, settings.shares, settings.schedule)
    torch.save(
        {
            "state": {name: tensor.cpu() for name, tensor in network.state_dict().items()},
            "encoder": network.encoder.config.to_dict(),
            "hidden": settings.hidden,
            "labels": list(vocabulary.labels),
            "tags": list(vocabulary.tags),
        },
        path,
    )


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def load_network(path: Path) -> tuple[ParserNetwork, Vocabulary]:
    """A network written by a step."""
    saved = torch.load(path, weights_only=True)
    vocabulary = Vocabulary(tuple(saved["labels"]), tuple(saved["tags"]))
    network = ParserNetwork(
        BertModel(BertConfig.from_dict(saved["encoder"]), add_pooling_layer=False),
        labels=len(vocabulary.labels),
        tags=len(vocabulary.tags),
        hidden=saved["hidden"],
    )
    network.load_state_dict(saved["state"])
    return network.eval(), vocabulary


def _label(recipe: Recipe, teacher: Path, sentences: Sequence[str], path: Path) -> None:
    settings = recipe.soft_labels
    network, vocabulary = load_network(teacher)
    raw = raw_sentences(sentences, words=settings.words, longest=settings.longest, seed=settings.seed)
    total, done = sum(map(len, raw)), 0
    began = time.monotonic()

    def reported() -> Iterator[list[Example]]:
        nonlocal done
        for examples in label(network.to(_device()), vocabulary, raw):
            yield examples
            done += sum(len(example.words) for example in examples)
            speed = done / (time.monotonic() - began)
            print(f"labelled {done:,} of {total:,} words, {speed:,.0f} words/s", file=sys.stderr, flush=True)

    write_soft_labels(path, reported())


def _export(student: Path, calibration: list[Example], tuned_on: list[Example], path: Path) -> None:
    """Write the ONNX file, with the threshold that has the highest F1 on held-out sentences."""
    network, vocabulary = load_network(student)
    weights = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    heads = network.encoder.config.num_attention_heads

    def write(threshold: float) -> None:
        encoded = Encoder().encode([each.words for each in calibration], [each.convention for each in calibration])
        content = export(
            weights,
            heads=heads,
            labels=vocabulary.labels,
            tags=vocabulary.tags,
            threshold=[_logit(threshold)] * len(vocabulary.labels),
            calibration=(batch for _, batch in encoded.equal_batches(MAX_BATCH_PIECES)),
            metadata={"name": "phrasemill", "student": sha256_of(student), "commit": _commit()},
        )
        path.write_bytes(content)

    write(THRESHOLDS[0])
    parser = exported.Network(path)
    found: dict[float, float] = {}
    for threshold in THRESHOLDS:
        parser.threshold[:] = _logit(threshold)
        found[threshold] = _evaluation(_parses(parser, tuned_on), tuned_on).total.f1
        print(f"threshold {threshold}: F1 {found[threshold]:.4f} on held-out sentences", file=sys.stderr)
    write(max(THRESHOLDS, key=lambda threshold: found[threshold]))


def _logit(probability: float) -> float:
    return math.log(probability / (1 - probability))


def _parses(parser: exported.Network, gold: Sequence[Example]) -> list[exported.Parse]:
    return parser.parse([each.words for each in gold])


def _evaluation(parses: Sequence[exported.Parse], gold: Sequence[Example]) -> Evaluation:
    return evaluate([each.spans for each in gold], [parse.constituents for parse in parses])


def _score(path: Path, gold: dict[str, list[Example]], result: Path) -> None:
    parser = exported.Network(path)
    scores = {}
    for name, examples in gold.items():
        parses = _parses(parser, examples)
        evaluation = _evaluation(parses, examples)
        tags = [tag for parse in parses for tag in parse.tags]
        right = sum(map(operator.eq, tags, (tag for each in examples for tag in each.tags)))
        scores[name] = {
            "f1": round(evaluation.total.f1, 4),
            "precision": round(evaluation.total.precision, 4),
            "recall": round(evaluation.total.recall, 4),
            "by_label": {label: round(agreement.f1, 4) for label, agreement in evaluation.by_label.items()},
            "tags": round(right / len(tags), 4),
        }
    result.write_text(json.dumps(scores, indent=2) + "\n")
