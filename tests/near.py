"""Phrases with neighbours and vectors as datasets, and the hard negatives that are mined from them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import literal
import numpy as np
import pyarrow as pa

from pipelines import corpus, mine_negatives, negative_corpus
from schemas.characters import edit_similarity
from schemas.kinds.embeddings import embeddings
from schemas.kinds.neighbours import NEIGHBOURS
from schemas.kinds.phrases import PHRASES
from schemas.storage.folder import Folder

WORDS = "colour colours color collar cooler tail tails trail quay"
VECTORS = {"collar": (0, 1), "cooler": (3, 4), "trail": (0, 1), "tails": (0, 1), "quay": (0, 2)}
"""Of the others (1, 0)."""


def phrase_table(phrases: Sequence[str]) -> pa.Table:
    shares = dict.fromkeys(PHRASES.field("label_shares").type.names, 0.0) | {"NP": 1.0}
    said = {"surface_share": 1.0, "label": "NP", "label_shares": shares, "frequency": 2, "document_frequency": 1}
    return pa.Table.from_pylist([{"phrase": each, "surface": each, **said} for each in phrases], schema=PHRASES)


def neighbour_table(phrases: Sequence[str], own: Sequence[str]) -> pa.Table:
    """The neighbours of some of the phrases, by brute force."""
    rows = []
    for phrase in own:
        near = [(-edit_similarity(phrase, other), row, other) for row, other in enumerate(phrases) if other != phrase]
        found = [
            {"row": row, "phrase": other, "edit_similarity": -far} for far, row, other in sorted(near) if far < -0.6
        ]
        rows.append({"phrase": phrase, "neighbours": found})
    return pa.Table.from_pylist(rows, schema=NEIGHBOURS)


class Datasets(NamedTuple):
    phrases: corpus.ChainDataset
    neighbours: corpus.ChainDataset
    embeddings: corpus.ChainDataset


def cut(phrases: Sequence[str], cuts: Sequence[int]) -> list[Sequence[str]]:
    edges = [0, *cuts, len(phrases)]
    return [phrases[start:end] for start, end in itertools.pairwise(edges)]


def given(
    folder: Path,
    phrases: Sequence[str],
    vectors: Callable[[str], Sequence[float]],
    *cuts: int,
    others: Sequence[int] = (),
) -> Datasets:
    """The phrases with their neighbours and vectors in shards: cut at `cuts`, the vectors at `others`."""
    tables = [
        embeddings(pa.array(each, pa.string()), np.array([vectors(phrase) for phrase in each]))
        for each in cut(phrases, others)
    ]
    known = literal.dataset(folder / "phrases", [phrase_table(phrases)])
    near = [neighbour_table(phrases, each) for each in cut(phrases, cuts)]
    return Datasets(
        known,
        literal.dataset(folder / "neighbours", near, made_from=[known]),
        literal.dataset(folder / "embeddings", tables, made_from=[known]),
    )


def mined(given: Datasets, folder: Path, *flags: str, order: int = 1) -> list[literal.Row]:
    options = literal.parse_options(*flags, command=mine_negatives.COMMAND)
    dataset = negative_corpus.hard_negatives(*given, options, Folder(str(folder)))
    assert dataset.build is not None
    literal.run_inline(dataset.build, order=order)
    return literal.rows(dataset.folder)


def of_words(folder: Path) -> Datasets:
    return given(folder, WORDS.split(), lambda phrase: VECTORS.get(phrase, (1, 0)))
