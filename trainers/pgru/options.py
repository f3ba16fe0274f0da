"""What a Pairwise-GRU is trained on, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from schemas.options import count, option, share
from trainers.training.options import Training, changed

TASKS = ("semeval2013_5a", "turney2012_5", "turney2012_10")
"""The tasks of the evaluation that have a training set."""

PAPER = "Zhou, Huang and Ji 2017"


@dataclass(frozen=True)
class PairwiseGRU(Training):
    """How a Pairwise-GRU is trained."""

    data: tuple[str, ...] = option(
        repeated=True,
        place=True,
        metavar="DIR",
        help="a dataset of pairs with contrasts (contrast_pairs); repeatable. With --task, the folder of the "
        "evaluation sets",
    )
    model: str = option(
        metavar="MODEL",
        help="the vectors of words: a file (word2vec, GloVe, .kv, .npy) or a spaCy pipeline; or a model of this "
        "command, which is trained further",
    )
    task: str | None = option(
        None,
        choices=TASKS,
        help="learn from the training set of a task; a tenth of its bigrams are the dev set",
        unset="learn from datasets",
        source=PAPER,
    )
    dev: str | None = option(
        None,
        choices=TASKS,
        help="the dev set is the training set of a task",
        unset="the validation split of --data, if it has one",
        source=PAPER,
    )
    dev_data: Path | None = option(
        None, takes=Path, place=True, metavar="DIR", help="the folder of the evaluation sets, for --dev"
    )
    epochs: float = changed(Training, "epochs", 150.0, source=PAPER)
    batch_size: int = changed(Training, "batch_size", 128, source=PAPER)
    rate: float = changed(Training, "rate", 0.3, source=PAPER)
    clip: float | None = changed(Training, "clip", 5.0, source=PAPER)
    units: int = option(200, takes=count, metavar="N", help="numbers of a phrase's vector", source=PAPER)
    dropout: float = option(0.5, takes=share, metavar="X", help="dropout of the words' vectors", source=PAPER)
    train_vectors: bool = option(False, help="train the vectors of words, too")
    words: int | None = option(
        None, takes=count, metavar="N", help="read at most N words of a file of word vectors", unset="all"
    )
