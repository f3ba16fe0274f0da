"""Pairs with contrast phrases: what Pairwise-GRU is trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import (
    Broken,
    Check,
    InSplit,
    Ordered,
    Rows,
    Unique,
    Violation,
    are_rows_of,
    hashes,
    is_empty,
    where,
)
from schemas.columns import column, list_of, schema
from schemas.dataset import Dataset
from schemas.keys import pair_name
from schemas.kind import Kind, Source
from schemas.kinds.labelled_pairs import undirected
from schemas.kinds.phrase_pairs import pair_names, pair_places, show_pair
from schemas.manifest import Manifest
from schemas.measures import words
from schemas.shown import Row, Shown, cut

CONTRAST_PAIRS = schema(
    "ContrastPair",
    column("phrase", pa.string(), "a phrase"),
    column("paraphrase", pa.string(), "another phrase of the same meaning"),
    column("contrasts", list_of(pa.string()), "random phrases, none a known paraphrase of the phrase"),
)


def _rules(table: pa.Table, contrasts: int) -> Iterator[Broken]:
    show = show_pair(table)
    for name in ("phrase", "paraphrase"):
        yield is_empty(table, name, show, name)
    lists = table.column("contrasts")
    yield Broken(f"has not {contrasts:,} contrasts", where(pc.not_equal(pc.list_value_length(lists), contrasts)), show)
    rows = zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)
    wrong = [len({*each}) < len(each) or not {one, other}.isdisjoint(each) for one, other, each in rows]
    yield Broken("a contrast is there twice, or is the phrase or its paraphrase", where(wrong), show)


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    seed, shares = manifest.seed or 0, [float(each) for each in manifest.options["splits"]]
    return (
        Unique("the pair is there twice", "phrase", "paraphrase", of=pair_names),
        Rows(lambda table: _rules(table, int(manifest.options["contrasts"]))),
        InSplit(
            "the pair belongs to another split",
            lambda table: [undirected(table, "paraphrase").to_pylist()],
            manifest,
            shares,
        ),
        Ordered(
            "the row is not after the one before it, by the hash of its pair",
            lambda table: pair_places(table, seed=seed),
            show_pair,
        ),
    )


def _check_source(dataset: Dataset, pairs: Dataset) -> Iterator[Violation]:
    """Rows are pairs of the source, and no contrast is a paraphrase of the phrase there. It compares hashes."""
    yield from are_rows_of(("phrase", "paraphrase"), "the pair is none of {}")(dataset, pairs)
    known = np.concatenate([hashes(undirected(table, "paraphrase")) for table in pairs.tables()])
    for shard in dataset.shards():
        for group in dataset.row_groups(shard):
            texts = (group.table.column(name).to_pylist() for name in ("phrase", "contrasts"))
            found = [[pair_name(phrase, each) for each in contrasts] for phrase, contrasts in zip(*texts, strict=True)]
            owner = np.repeat(np.arange(len(found)), [len(each) for each in found])
            wrong = np.isin(hashes(pa.array([each for some in found for each in some], pa.string())), known)
            if wrong.any():
                rows = np.unique(owner[wrong])
                detail = show_pair(group.table)(int(rows[0]))
                rule = f"a contrast is a paraphrase of the phrase in {pairs.folder}"
                yield Violation(shard, rule, group.first_row + rows, detail)


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    remarks = (("paraphrase", cut(row["paraphrase"])), ("contrasts", cut("; ".join(row["contrasts"]))))
    return Shown(cut(row["phrase"]), "phrase", remarks=remarks)


KIND = Kind(
    schema=CONTRAST_PAIRS,
    rows="pairs with contrasts",
    about="Pairs of a phrase and a paraphrase of it, with random contrast phrases.",
    command="contrast_pairs",
    show=show,
    source=Source("PhrasePair", "pairs", _check_source),
    checks=_checks,
    options={"contrasts": int, "splits": list[float]},
    measures=(words("Length of a phrase", "phrase", "paraphrase"),),
    tasks=("sentence-similarity",),
    filters={"too_few_phrases": "a pair for whose phrase there are fewer than --contrasts other phrases"},
)
