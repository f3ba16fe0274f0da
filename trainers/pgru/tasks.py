"""The training sets of the evaluation's tasks: as rows to learn from, and as dev sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import xxhash

from schemas.keys import split_of
from trainers.evaluation.measures import Columns
from trainers.evaluation.model import Model
from trainers.evaluation.tasks.bigrams import (
    SEMEVAL_TEST,
    SEMEVAL_TRAIN,
    TURNEY_TEST,
    TURNEY_TRAIN,
    Instance,
    five,
    pairs_of,
    semeval_instances,
    ten,
    threshold,
    turney_instances,
)

CONTRASTS = 9
"""The paper's smallest k, as each task has few phrases."""


class Pair(NamedTuple):
    phrase: str
    paraphrase: str
    contrasts: Sequence[str]


class TrainingSet(NamedTuple):
    """A task's training set.

    train, test  its files, below the folder of the evaluation sets
    lines        of an instance
    read         the instances of a file
    score        the share of instances that a model has right
    rows         what is learned from instances
    """

    train: str
    test: str
    lines: int
    read: Callable[[Path], list[Instance]]
    score: Callable[[Model, Sequence[Instance]], float]
    rows: Callable[[Sequence[Instance]], list[Pair]]


def part_of(instance: Instance, shares: Sequence[int], *, seed: int) -> int:
    """Which part, of these shares, an instance is in: by the hash of its two words, in any order.

    Parts by another seed are independent: the test set is one seed's (split.py), the dev set another's.
    """
    return split_of("\0".join(sorted((instance.one.lower(), instance.other.lower()))), shares=shares, seed=seed)


def table(pairs: Sequence[Pair]) -> pa.Table:
    columns = zip(*pairs, strict=True)
    types = (pa.string(), pa.string(), pa.list_(pa.string()))
    return pa.table(
        [pa.array([*each], type_) for each, type_ in zip(columns, types, strict=True)], names=[*Pair._fields]
    )


def with_others(text: str, first: Sequence[str], others: Sequence[str], never: set[str]) -> list[str]:
    """CONTRASTS distinct texts: the first ones, and then others, those of lowest hash with the text."""
    drawn = sorted({*others} - never - {*first}, key=lambda each: xxhash.xxh3_64_intdigest(f"{text}\0{each}".encode()))
    return [*dict.fromkeys(each for each in first if each not in never), *drawn][:CONTRASTS]


# ---- SemEval-2013 task 5(a)


def _semeval_score(model: Model, found: Sequence[Instance]) -> float:
    """With the threshold that is best for the same pairs."""
    pairs = pairs_of(model, found)
    similar = pairs.similar["right"]
    return float(((similar >= threshold(similar, pairs.same)) == pairs.same).mean())


def _semeval_rows(found: Sequence[Instance]) -> list[Pair]:
    """A row for each pair that means the same. Contrasts are the words with which the bigram does not, then others."""
    same, different = _words(found, "1"), _words(found, "0")
    words = [*dict.fromkeys(each.rest[0] for each in found)]
    return [
        Pair(bigram, word, with_others(bigram, different.get(bigram, []), words, {*same[bigram], bigram}))
        for bigram in same
        for word in same[bigram]
    ]


def _words(found: Sequence[Instance], label: str) -> dict[str, list[str]]:
    words: dict[str, list[str]] = {}
    for each in found:
        if each.rest[1] == label:
            words.setdefault(each.bigram, []).append(each.rest[0])
    return {bigram: [*dict.fromkeys(some)] for bigram, some in words.items()}


# ---- Turney 2012


def _five_score(model: Model, found: Sequence[Instance]) -> float:
    return _mean(five(model, found))


def _ten_score(model: Model, found: Sequence[Instance]) -> float:
    return _mean(ten(model, found))


def _mean(items: Columns) -> float:
    return float(items["right"].mean())


def _five_rows(found: Sequence[Instance]) -> list[Pair]:
    """A bigram and its word. Contrasts are the other candidates, then words of other questions."""
    words = [*dict.fromkeys(each.rest[0] for each in found)]
    return [
        Pair(each.bigram, each.rest[0], with_others(each.bigram, each.rest[3:], words, {each.bigram, each.rest[0]}))
        for each in found
    ]


def _ten_rows(found: Sequence[Instance]) -> list[Pair]:
    """These, and each word with its bigram. Contrasts are the reversal of the bigram, then bigrams of other words."""
    bigrams: dict[str, set[str]] = {}
    for each in found:
        bigrams.setdefault(each.rest[0], set()).add(each.bigram)
    every = [each.bigram for each in found]
    turned = [
        Pair(each.rest[0], each.bigram, with_others(each.rest[0], [each.reversed], every, bigrams[each.rest[0]]))
        for each in found
    ]
    return [*_five_rows(found), *turned]


TRAINING_SETS: Mapping[str, TrainingSet] = {
    "semeval2013_5a": TrainingSet(SEMEVAL_TRAIN, SEMEVAL_TEST, 4, semeval_instances, _semeval_score, _semeval_rows),
    "turney2012_5": TrainingSet(TURNEY_TRAIN, TURNEY_TEST, 9, turney_instances, _five_score, _five_rows),
    "turney2012_10": TrainingSet(TURNEY_TRAIN, TURNEY_TEST, 9, turney_instances, _ten_score, _ten_rows),
}
