"""PPDB, PPDB-filtered and PAWS-short: whether two phrases mean the same, by a classifier on their vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.manifest import MANIFEST, SPLITS
from trainers.evaluation.classifier import FEWEST, I64, Parts, classify, split
from trainers.evaluation.files import text_of
from trainers.evaluation.measures import mean_of
from trainers.evaluation.model import Model
from trainers.evaluation.task import ITEM, Measure, Outcome, Setting, Task

LABELS = {"neg": 0, "pos": 1}


class Pair(NamedTuple):
    """Two phrases; `label` is 1 if they mean the same, else 0."""

    phrase: str
    other: str
    label: int

    @property
    def name(self) -> str:
        return f"{self.phrase} | {self.other} | {'pos' if self.label else 'neg'}"


class PairSet(NamedTuple):
    """A published set.

    files   one that holds all pairs, or those of the training, dev and test part
    sizes   the numbers of pairs that its publications and its files have
    """

    name: str
    title: str
    files: tuple[str, ...]
    sizes: tuple[int, ...]


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a JSON file as the papers have it: an array of [phrase, other, "pos" or "neg", ...]."""
    try:
        rows = json.loads(text_of(path))
    except ValueError as error:
        raise UserError(f"{path}: is no JSON ({error}); docs/evaluation.md shows the format") from error
    if not isinstance(rows, list):
        raise UserError(f"{path}: is no array of pairs; docs/evaluation.md shows the format")
    return list(_pairs(path, rows))


def _pairs(path: Path, rows: list[object]) -> Iterator[Pair]:
    for number, row in enumerate(rows, 1):
        match row:
            case [str(phrase), str(other), "pos" | "neg" as label, *_] if phrase.strip() and other.strip():
                yield Pair(phrase, other, LABELS[label])
            case _:
                shown = json.dumps(row, ensure_ascii=False)[:100]
                raise UserError(
                    f'{path}: pair {number:,} is no [phrase, phrase, "pos" or "neg"]: {shown}; '
                    "docs/evaluation.md shows the format"
                )


def read_dataset(folder: Path) -> list[list[Pair]]:
    """The pairs of a dataset of label-pairs, by split; one list if it has not three splits."""
    dataset = Dataset.open(str(folder))
    if not {*Pair._fields} <= {*dataset.manifest.schema.names}:
        wanted = ", ".join(Pair._fields)
        raise UserError(f"{folder}: its rows have not the columns {wanted}; give a dataset of label-pairs")
    splits = [
        [
            Pair(*row)
            for table in dataset.tables(name, columns=list(Pair._fields))
            for row in zip(*(table.column(field).to_pylist() for field in Pair._fields), strict=True)
        ]
        for name in SPLITS
        if name in dataset.manifest.splits
    ]
    return splits if len(splits) == len(SPLITS) else [[pair for each in splits for pair in each]]


def run(pairs_of: PairSet, model: Model, setting: Setting) -> Outcome:
    """A classifier for each seed, and one that learned from no pair with a phrase of the test part."""
    folder = setting.data / pairs_of.name
    ours = (folder / MANIFEST).exists()
    lists = read_dataset(folder) if ours else [read_pairs(setting.data / name) for name in pairs_of.files]
    pairs = [pair for each in lists for pair in each]
    _check(folder, lists, pairs)
    labels = np.array([pair.label for pair in pairs], np.int64)
    names = [pair.name for pair in pairs]

    phrases = sorted({phrase for pair in pairs for phrase in pair[:2]})
    number = {phrase: row for row, phrase in enumerate(phrases)}
    sides = np.array([[number[pair.phrase], number[pair.other]] for pair in pairs])
    setting.note(f"vectors of {len(phrases):,} phrases")
    encoded = model.encode(phrases)
    vectors = np.concatenate([encoded[sides[:, 0]], encoded[sides[:, 1]]], axis=1)

    items = []
    for seed in setting.seeds:
        setting.note(f"seed {seed}: classifier")
        if len(lists) == 1:
            parts = split(names, seed=seed)
        else:
            parts = Parts(*np.split(np.arange(len(pairs)), np.cumsum([len(each) for each in lists])[:-1]))
        right, disjoint = (
            classify(vectors, labels, each, classes=2, seed=seed) == labels[parts.test]
            for each in (parts, without_phrases_of_test(parts, sides))
        )
        items.append({ITEM: np.array(names, object)[parts.test], "right": right, "disjoint": disjoint})
    return Outcome(items, {"pairs": len(pairs)}, list(_remarks(pairs_of, len(pairs), ours, len(lists))))


def without_phrases_of_test(parts: Parts, sides: I64) -> Parts:
    """The same test part; the others without the pairs that share a phrase with it.

    sides   [pairs, 2] the numbers of the phrases
    """
    train, dev = (each[~np.isin(sides[each], sides[parts.test]).any(axis=1)] for each in parts[:2])
    return Parts(train, dev, parts.test)


def _check(folder: Path, lists: Sequence[Sequence[Pair]], pairs: Sequence[Pair]) -> None:
    if len({pair.label for pair in lists[0]}) < 2 or len(pairs) < FEWEST or not all(lists):
        sizes = ", ".join(f"{len(each):,}" for each in lists)
        raise UserError(
            f"{folder}: {sizes} pairs are too few, or have one label only; a classifier needs both labels, and pairs "
            "in each of its three parts"
        )


def _remarks(pairs_of: PairSet, size: int, ours: bool, lists: int) -> Iterator[str]:
    if ours:
        yield f"{size:,} pairs of a dataset of label-pairs"
    elif size not in pairs_of.sizes:
        yield f"{size:,} of {pairs_of.sizes[0]:,} pairs"
    if lists < len(pairs_of.files):
        yield "split by the seed, not by the authors"
    elif lists > len(pairs_of.files):
        yield "split of the dataset, the same for each seed"


def _task(pairs_of: PairSet) -> Task:
    how = "70/15/15 by the seed" if len(pairs_of.files) == 1 else "the authors' split"
    return Task(
        name=pairs_of.name,
        title=pairs_of.title,
        files=(f"{pairs_of.name}/*.json",),  # these, or the manifest of a dataset
        protocol=f"accuracy of a classifier on the two vectors side by side, {how}: 256 ReLU, sigmoid, Adam 1e-4, "
        "batches of 200, at most 100 epochs, patience 5 (Phrase-BERT, section 4.1)",
        measures=(
            Measure("accuracy", mean_of("right")),
            Measure("accuracy, no phrase of the test part in training (ours)", mean_of("disjoint")),
        ),
        run=partial(run, pairs_of),
        seeded=True,
    )


SETS = (
    PairSet("ppdb", "PPDB", ("ppdb/ppdb.json",), (23_364,)),
    PairSet("ppdb_filtered", "PPDB-filtered", ("ppdb_filtered/ppdb_filtered.json",), (15_532, 19_416)),
    PairSet(
        "paws_short",
        "PAWS-short",
        tuple(f"paws_short/{part}_examples.json" for part in ("train", "dev", "test")),
        (1_300,),
    ),
)

TASKS = tuple(_task(each) for each in SETS)
