"""Lexical diversity: how little the nearest neighbours of phrases have of their words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from schemas.dataset import Dataset
from schemas.errors import UserError
from trainers.evaluation.files import lines_of
from trainers.evaluation.measures import mean_of
from trainers.evaluation.model import Model
from trainers.evaluation.nearest import nearest
from trainers.evaluation.task import Measure, Outcome, Setting, Task
from trainers.evaluation.vectors import encoded, unit
from transforms.pairs.diversity import TOP, diversity

QUERIES, VOCABULARY = "diversity/queries.txt", "diversity/vocabulary"
MOST = 125_000
"""Phrases of the vocabulary that count, the most frequent: as many as in the paper."""

MEASURES = ("new_tokens", "lcs_precision", "levenshtein")


def run(model: Model, setting: Setting) -> Outcome:
    """The ten nearest by cosine, of equal ones those that come first. Case does not count."""
    queries = list(_spellings(line for _, line in lines_of(setting.data / QUERIES)).values())
    vocabulary = _spellings(_phrases(setting.data / VOCABULARY))
    phrases = list(vocabulary.values())
    setting.note(f"{len(phrases):,} phrases")
    found = nearest(unit(encoded(model, queries)), unit(encoded(model, phrases)), TOP + 1)
    items = []
    for query, places in zip(queries, found, strict=True):
        own = vocabulary.get(query.casefold())
        items.append(diversity([(query, [phrases[place] for place in places if phrases[place] != own][:TOP])]))
    columns = {name: np.array([getattr(each, name) for each in items]) for name in MEASURES}
    remark = f"{len(queries):,} queries, {len(phrases):,} phrases; those of the paper are not released"
    return Outcome(
        [{"item": np.array(queries, dtype=object), **columns}],
        {"queries": len(queries), "phrases": len(phrases)},
        [remark],
    )


def _spellings(texts: Iterable[str]) -> dict[str, str]:
    """The first spelling of each text, by the text without its case."""
    first: dict[str, str] = {}
    for text in texts:
        if text.strip():
            first.setdefault(text.strip().casefold(), text.strip())
    return first


def _phrases(folder: Path) -> Iterator[str]:
    """The first phrases of a dataset, which has them by frequency."""
    dataset = Dataset.open(str(folder))
    if not {"phrase", "frequency"} <= {*dataset.manifest.schema.names}:
        raise UserError(
            f"{folder}: has {dataset.manifest.record}: give phrases, as phrasemill count-phrases writes them"
        )
    tables = dataset.tables(columns=["phrase"])
    return islice((phrase for table in tables for phrase in table.column("phrase").to_pylist()), MOST)


TASKS = (
    Task(
        name="diversity",
        title="Diversity",
        files=(QUERIES, f"{VOCABULARY}/manifest.json"),
        protocol="the ten nearest neighbours of queries in a vocabulary of words and phrases: new tokens per cent, LCS "
        "precision per cent, Levenshtein distance (Phrase-BERT, section 4.3)",
        measures=tuple(
            Measure(title, mean_of(column), scale=1)
            for title, column in zip(("new tokens", "LCS precision", "edit distance"), MEASURES, strict=True)
        ),
        run=run,
    ),
)
