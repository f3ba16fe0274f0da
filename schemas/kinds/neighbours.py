"""Neighbours: phrases with the phrases that are most similar to each by edits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from schemas.checks import Broken, Check, Rows, Unique, Violation, broken_items, hashes, is_empty, nested, quoted, where
from schemas.columns import column, list_of, schema, struct
from schemas.dataset import Dataset
from schemas.kind import Kind, Source
from schemas.manifest import Manifest
from schemas.measures import item_value, length
from schemas.shown import Row, Shown, cut

NEIGHBOURS = schema(
    "Neighbours",
    column("phrase", pa.string(), "the phrase"),
    column(
        "neighbours",
        list_of(
            struct(
                column("row", pa.int64(), "its row in the dataset of phrases, counted from 0 over all shards"),
                column("phrase", pa.string(), "another phrase"),
                column(
                    "edit_similarity",
                    pa.float32(),
                    "2 x (length of the longest common subsequence) / (length of both), in code points",
                ),
            )
        ),
        "the most similar of all phrases, the most similar first, equally similar ones in order of their hashes",
    ),
)


def _rules(table: pa.Table, candidates: int, least: float) -> Iterator[Broken]:
    phrase = table.column("phrase")
    lists = table.column("neighbours").combine_chunks()
    count = pc.list_value_length(lists)
    owner, first, (other, similarity) = nested(lists, ["phrase", "edit_similarity"])
    value = similarity.to_numpy()

    def show(row: int) -> str:
        return f"{quoted(phrase[row].as_py())}, {len(lists[row]):,} neighbours"

    def show_item(item: int) -> str:
        own = quoted(phrase[int(owner[item])].as_py())
        return f"{own}: {quoted(other[item].as_py())}, edit similarity {value[item]:.3f}"

    yield is_empty(table, "phrase", show)
    yield Broken(f"has more than {candidates:,} neighbours", where(pc.greater(count, candidates)), show)
    outside = ~((value > np.float32(least)) & (value <= 1))
    yield broken_items(f"edit_similarity is not above {least:g} and at most 1", outside, owner, show_item)
    own = phrase.combine_chunks().take(pa.array(owner))
    yield broken_items("the phrase is its own neighbour", _flags(pc.equal(own, other)), owner, show_item)
    same = np.flatnonzero(value[1:] == value[:-1])
    tied = np.union1d(same, same + 1)
    texts = other.take(pa.array(tied)).cast(pa.binary()).to_pylist()
    digest = dict(zip(tied.tolist(), map(xxhash.xxh3_128_digest, texts), strict=True))
    unordered = np.zeros(len(value), dtype=bool)
    unordered[1:] = value[1:] > value[:-1]
    unordered[1:][same] = [digest[item] >= digest[item + 1] for item in same.tolist()]
    rule = "a neighbour is not after the one before it, by similarity and hash"
    yield broken_items(rule, unordered & ~first, owner, show_item)


def _flags(values: pa.Array) -> np.ndarray:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=bool)


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    candidates, least = int(manifest.options["candidates"]), float(manifest.options["min_edit_similarity"])
    return (Unique("the phrase is not unique", "phrase"), Rows(lambda table: _rules(table, candidates, least)))


def _check_source(dataset: Dataset, phrases: Dataset) -> Iterator[Violation]:
    """Row i has the phrase of row i of phrases, and each neighbour stands there in its row. It compares hashes."""
    known = np.concatenate([hashes(table.column("phrase")) for table in phrases.tables(columns=["phrase"])])
    before = 0
    for shard in dataset.shards():
        for group in dataset.row_groups(shard):
            own = hashes(group.table.column("phrase"))
            lists = group.table.column("neighbours").combine_chunks()
            owner, _, (row, phrase) = nested(lists, ["row", "phrase"])
            for rule, place, found in (
                ("the phrase is not that of the same row of the phrases", before + np.arange(len(own)), own),
                ("a neighbour is not the phrase in its row of the phrases", row, hashes(phrase)),
            ):
                inside = (place >= 0) & (place < len(known))
                wrong = np.flatnonzero(~inside | (known[np.where(inside, place, 0)] != found))
                if len(wrong):
                    rows = np.unique(wrong if found is own else owner[wrong])
                    detail = quoted(group.table.column("phrase")[int(rows[0])].as_py())
                    yield Violation(shard, rule, group.first_row + rows, detail)
            before += len(own)


def _notes(manifest: Manifest) -> Iterator[str]:
    alone = manifest.counter("without_neighbours")
    mean = manifest.counter("neighbours") / max(manifest.rows, 1)
    yield f"neighbours: {mean:.1f} a phrase; {alone:,} of {manifest.rows:,} phrases have none"


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    nearest = [f"{cut(each['phrase'])} {each['edit_similarity']:.2f}" for each in row["neighbours"][:5]]
    remarks = (("neighbours", f"{len(row['neighbours']):,}"), ("nearest", "; ".join(nearest) or "none"))
    return Shown(cut(row["phrase"]), "phrase", remarks=remarks)


KIND = Kind(
    schema=NEIGHBOURS,
    rows="phrases with neighbours",
    about="Phrases with the phrases that are most similar to each by edits.",
    command="find_neighbours",
    order="rank",
    show=show,
    source=Source("Phrase", "phrases", _check_source, also=("TypedPhrase",)),
    checks=_checks,
    options={"candidates": int, "min_edit_similarity": float},
    notes=_notes,
    measures=(
        length("Neighbours of a phrase", "phrases", "neighbours"),
        item_value("Edit similarity", "neighbours", "neighbours", "edit_similarity"),
    ),
    tasks=("sentence-similarity",),
    parsed=True,
)
