"""Twitter and ATIS: the class of a short text, by a classifier on its vector."""

from __future__ import annotations

from functools import partial

import numpy as np

from schemas.errors import UserError
from trainers.evaluation.classifier import FEWEST, Parts, classify, split
from trainers.evaluation.files import lines_of, malformed
from trainers.evaluation.measures import mean_of
from trainers.evaluation.model import Model
from trainers.evaluation.task import ITEM, Measure, Outcome, Setting, Task

FILES = "train.tsv", "dev.tsv", "test.tsv"
WHOLE = "all.tsv"
RUNS = 10


def run(name: str, model: Model, setting: Setting) -> Outcome:
    """A classifier for each seed; a class that is not in the training part is never found."""
    folder = setting.data / name
    whole = (folder / WHOLE).exists()
    rows: list[tuple[str, str]] = []
    sizes = []
    for path in [folder / WHOLE] if whole else [folder / each for each in FILES]:
        before = len(rows)
        for number, line in lines_of(path):
            label, _, text = line.partition("\t")
            if not (label.strip() and text.strip()):
                raise malformed(path, number, "label and text with a tab between them")
            rows.append((label, text))
        sizes.append(len(rows) - before)
    if min(sizes) < (FEWEST if whole else 1) or len({label for label, _ in rows[: sizes[0]]}) < 2:
        shown = ", ".join(f"{size:,}" for size in sizes)
        raise UserError(
            f"{folder}: {shown} texts are too few, or have one label only; a classifier needs two labels, and texts in "
            "each of its three parts"
        )
    setting.note(f"vectors of {len(rows):,} texts")
    vectors = model.encode([text for _, text in rows])
    names = [f"{label} | {text}" for label, text in rows]

    items = []
    for seed in setting.seeds:
        setting.note(f"seed {seed}: classifier")
        parts = split(names, seed=seed) if whole else Parts(*np.split(np.arange(len(rows)), np.cumsum(sizes)[:-1]))
        known = sorted({rows[row][0] for row in parts.train})
        number_of = {label: number for number, label in enumerate(known)}
        labels = np.array([number_of.get(label, len(known)) for label, _ in rows], np.int64)
        found = classify(vectors, labels, parts, classes=len(known), seed=seed)
        items.append({ITEM: np.array(names, object)[parts.test], "right": found == labels[parts.test]})
    remarks = ["the paper gives neither its files nor their sizes"]
    if len(setting.seeds) < RUNS:
        remarks.append(f"{len(setting.seeds):,} of {RUNS} runs")
    return Outcome(items, {"texts": len(rows)}, remarks)


TASKS = tuple(
    Task(
        name=name,
        title=title,
        files=(f"{name}/*.tsv",),
        protocol="accuracy of a classifier on the vector of a text: 256 ReLU, softmax, Adam 1e-4, batches of 200, at "
        "most 100 epochs, patience 5; the mean of ten runs (PEARL, short text classification)",
        measures=(Measure("accuracy", mean_of("right")),),
        run=partial(run, name),
        seeded=True,
    )
    for name, title in (
        ("twitter_s", "Twitter-S"),
        ("twitter_l", "Twitter-L"),
        ("atis_s", "ATIS-S"),
        ("atis_l", "ATIS-L"),
    )
)
