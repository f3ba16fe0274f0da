"""Two words and one: SemEval-2013 task 5(a) and Turney 2012, in the files of Yu and Dredze (FCT, TACL 2015)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.keys import pair_name, split_of
from trainers.evaluation.files import lines_of, malformed
from trainers.evaluation.measures import Columns, mean_of
from trainers.evaluation.model import Model
from trainers.evaluation.task import Measure, Outcome, Setting, Task
from trainers.evaluation.tasks.turney import MEASURES, chosen, is_first
from trainers.evaluation.vectors import F64, encoded, products, unit

SEMEVAL_TRAIN, SEMEVAL_TEST = "semeval2013_5a/en.trainSet", "semeval2013_5a/en.testSet"
TURNEY_TRAIN, TURNEY_TEST = "turney2012/jair.train", "turney2012/jair.test"


class Instance(NamedTuple):
    """Two words, and the lines after them."""

    one: str
    other: str
    rest: Sequence[str]

    @property
    def bigram(self) -> str:
        return f"{self.one} {self.other}"

    @property
    def reversed(self) -> str:
        return f"{self.other} {self.one}"


def instances(path: Path, lines: int, *, last: Sequence[str] = ()) -> Iterator[Instance]:
    """The instances of a file, each of so many lines: a word and its tag with a tab between, twice, and then words.

    `last`: the values that the last line may have. UserError for an instance of another form.
    """
    rows = list(lines_of(path))
    for start in range(0, len(rows), lines):
        number, texts = rows[start][0], [line for _, line in rows[start : start + lines]]
        heads, rest = [line.split("\t") for line in texts[:2]], texts[2:]
        is_whole = len(texts) == lines and all(len(head) == 2 for head in heads)
        if not is_whole or not all([*heads[0], *heads[1], *rest]) or (last and rest[-1] not in last):
            raise malformed(path, number, f"first of {lines} lines of an instance")
        yield Instance(heads[0][0], heads[1][0], rest)


# ---- SemEval-2013 task 5(a)


class Pairs(NamedTuple):
    """Bigrams and words, whether they mean the same, and how similar their vectors are: dot product and cosine."""

    texts: Sequence[tuple[str, str]]
    same: npt.NDArray[np.bool_]
    similar: dict[str, F64]


def threshold(similar: F64, same: npt.NDArray[np.bool_]) -> float:
    """The threshold from which on most pairs are told apart: in the middle between two similarities.

    Of several that are as good the lowest. It may be below or above all similarities (-inf, inf).
    """
    values, place = np.unique(similar, return_inverse=True)
    size = len(values)
    positives = np.bincount(place[same], minlength=size)
    negatives = np.bincount(place[~same], minlength=size)
    right = same.sum() - np.concatenate([[0], np.cumsum(positives)]) + np.concatenate([[0], np.cumsum(negatives)])
    best = int(np.argmax(right))  # how many of the values are below the threshold
    ends = np.concatenate([[-np.inf], values, [np.inf]])
    return float((ends[best] + ends[best + 1]) / 2)


def semeval_instances(path: Path) -> list[Instance]:
    """`rest` is the word, and whether it means the same: 1 or 0."""
    return list(instances(path, 4, last=("0", "1")))


def pairs_of(model: Model, found: Sequence[Instance]) -> Pairs:
    texts = [(each.bigram, each.rest[0]) for each in found]
    vectors = encoded(model, [text for each in texts for text in each])
    similar = {
        "right": products(vectors[0::2], vectors[1::2]),
        "right_by_cosine": products(unit(vectors[0::2]), unit(vectors[1::2])),
    }
    return Pairs(texts, np.array([each.rest[1] == "1" for each in found]), similar)


def run_semeval(model: Model, setting: Setting) -> Outcome:
    """A pair is said to mean the same from the threshold on that is best for the training set.

    Without the test set each half of the training set, by the hash of the pair, has the threshold of the other half.
    """
    train, test = (setting.data / each for each in (SEMEVAL_TRAIN, SEMEVAL_TEST))
    fitted = pairs_of(model, semeval_instances(train))
    if test.exists():
        pairs, remarks = pairs_of(model, semeval_instances(test)), []
        folds = [(np.ones(len(fitted.texts), bool), np.ones(len(pairs.texts), bool))]
    else:
        pairs = fitted
        first = np.array([split_of(pair_name(*each), shares=(1, 1), seed=0) == 0 for each in pairs.texts])
        folds = [(first, ~first), (~first, first)]
        remarks = [f"{test.name} is not there: {len(pairs.texts):,} pairs of {train.name}, each half with the "
                   "threshold of the other half"]  # fmt: skip
    items: dict[str, npt.NDArray[np.generic]] = {"item": np.array([" | ".join(each) for each in pairs.texts], object)}
    for name, similar in pairs.similar.items():
        right = np.zeros(len(similar))
        for known, asked in folds:
            limit = threshold(fitted.similar[name][known], fitted.same[known])
            right[asked] = (similar[asked] >= limit) == pairs.same[asked]
        items[name] = right
    return Outcome([items], {"pairs": len(pairs.texts)}, remarks)


# ---- Turney 2012


def turney_instances(path: Path) -> list[Instance]:
    """`rest` is the right word, the two of the bigram, and four others."""
    return list(instances(path, 9))


def _questions(setting: Setting) -> tuple[list[Instance], list[str]]:
    """The instances of the test set; of the training set where there is no other, with the remark."""
    train, test = (setting.data / each for each in (TURNEY_TRAIN, TURNEY_TEST))
    if test.exists():
        return turney_instances(test), []
    found = turney_instances(train)
    return found, [f"{test.name} is not there: {len(found):,} questions of {train.name}"]


def five(model: Model, found: Sequence[Instance]) -> Columns:
    """The word of five with the largest dot product; the words of the bigram itself are no candidates."""
    return chosen(model, [(each.bigram, each.rest[0], *each.rest[3:]) for each in found])


def run_five(model: Model, setting: Setting) -> Outcome:
    found, remarks = _questions(setting)
    return Outcome([five(model, found)], {"questions": len(found)}, remarks)


def shared_first(scores: F64) -> F64:
    """[n] 1 where the first of a row's scores is the largest, divided by the number of scores that are as large."""
    largest = scores.max(axis=1)
    return np.asarray((scores[:, 0] == largest) / (scores == largest[:, None]).sum(axis=1))


def ten(model: Model, found: Sequence[Instance]) -> Columns:
    """The bigram or its reversal, and the word of five: the largest of ten dot products.

    Of equal ones each is right in part, as in the authors' code: a sum of word vectors, to which both orders are one,
    has half of what it has with five candidates.
    """
    texts = [(each.bigram, each.reversed, each.rest[0], *each.rest[3:]) for each in found]
    vectors = encoded(model, [text for each in texts for text in each])
    items: dict[str, npt.NDArray[np.generic]] = {"item": np.array([" | ".join(each) for each in texts], object)}
    for name, values in (("right", vectors), ("right_by_cosine", unit(vectors))):
        each = values.reshape(len(texts), -1, model.dimension)
        scores = np.concatenate([products(each[:, order : order + 1], each[:, 2:]) for order in (0, 1)], axis=1)
        items[name] = shared_first(scores)
        items[f"{name}_alone"] = is_first(scores)
    return items


def run_ten(model: Model, setting: Setting) -> Outcome:
    found, remarks = _questions(setting)
    return Outcome([ten(model, found)], {"questions": len(found)}, remarks)


FROM = "in the files of Yu and Dredze (Pairwise-GRU, section 4)"

TASKS = (
    Task(
        name="semeval2013_5a",
        title="SemEval2013 5(a)",
        files=("semeval2013_5a/en.t*Set",),
        protocol="accuracy: whether a bigram and a word mean the same, by the threshold of their dot product that is "
        f"best for the training set, {FROM}",
        measures=MEASURES,
        run=run_semeval,
    ),
    Task(
        name="turney2012_5",
        title="Turney2012(5)",
        files=("turney2012/jair.t*",),
        protocol=f"accuracy: the candidate of five with the largest dot product with the bigram's, {FROM}",
        measures=MEASURES,
        run=run_five,
    ),
    Task(
        name="turney2012_10",
        title="Turney2012(10)",
        files=("turney2012/jair.t*",),
        protocol="accuracy: the pair of the bigram or its reversal and one of five candidates with the largest dot "
        f"product; of equal ones each is right in part, {FROM}",
        measures=(*MEASURES, Measure("accuracy where equal ones are wrong", mean_of("right_alone"))),
        run=run_ten,
    ),
)
