"""BiRD: how near the similarity of two phrases is to what people say of their relatedness."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from trainers.evaluation.files import lines_of, malformed
from trainers.evaluation.measures import pearson_of, spearman_of
from trainers.evaluation.model import Model
from trainers.evaluation.task import Measure, Outcome, Setting, Task
from trainers.evaluation.vectors import encoded, products, unit

FILE = "bird/bird.txt"
HEADER = ("pair", "term1", "term2", "term2: unigram or bigram", "source", "relation", "relatedness score", "pos")
PAIRS = 3_345


def run(model: Model, setting: Setting) -> Outcome:
    """The cosine of two phrases beside their relatedness."""

    def pairs() -> Iterator[tuple[str, str, float]]:
        path = setting.data / FILE
        for number, line in lines_of(path):
            fields = line.split("\t")
            if number == 1:
                if tuple(fields) != HEADER:
                    raise malformed(path, number, f"line with the names of columns, {', '.join(HEADER)}, tabs between")
                continue
            if len(fields) != len(HEADER) or not all(fields):
                raise malformed(path, number, f"pair with its {len(HEADER)} fields, tabs between them")
            try:
                related = float(fields[6])
            except ValueError:
                related = math.nan
            if not 0 <= related <= 1:
                raise malformed(path, number, f"pair whose relatedness is from 0 to 1 ({fields[6]!r})")
            yield fields[1], fields[2], related

    found = list(pairs())
    if not found:
        raise malformed(setting.data / FILE, 2, "pair")
    ones, others, related = zip(*found, strict=True)
    vectors = unit(encoded(model, [*ones, *others]))
    items = {
        "item": np.array([f"{one} | {other}" for one, other, _ in found], dtype=object),
        "cosine": products(vectors[: len(found)], vectors[len(found) :]),
        "relatedness": np.array(related, np.float64),
    }
    remarks = [] if len(found) == PAIRS else [f"{len(found):,} of {PAIRS:,} pairs"]
    return Outcome([items], {"pairs": len(found)}, remarks)


TASKS = (
    Task(
        name="bird",
        title="BiRD",
        files=(FILE,),
        protocol="Pearson's correlation of the cosine of two phrases and their relatedness (Phrase-BERT, section 4.1)",
        measures=(
            Measure("Pearson", pearson_of("cosine", "relatedness")),
            Measure("Spearman", spearman_of("cosine", "relatedness")),
        ),
        run=run,
    ),
)
