"""Embeddings of phrases: the vector that an encoder gives each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import Broken, Check, Rows, Unique, Violation, is_empty, quoted, showing, where
from schemas.columns import column, list_of, schema
from schemas.dataset import Dataset, RowGroup
from schemas.kind import Kind, Source
from schemas.manifest import Manifest
from schemas.measures import words
from schemas.shown import Row, Shown, cut

EMBEDDINGS = schema(
    "Embedding",
    column("phrase", pa.string(), "the phrase"),
    column("embedding", list_of(pa.float16()), "its vector; all of a dataset have the same length"),
)

F16 = npt.NDArray[np.float16]


def vectors(table: pa.Table) -> F16:
    """[rows, dimension] the embeddings of a table whose rows all have as many numbers; not copied."""
    lists = table.column("embedding").combine_chunks()
    return lists.flatten().to_numpy().reshape(len(lists), -1) if len(lists) else np.empty((0, 0), np.float16)


def embeddings(phrases: pa.Array | pa.ChunkedArray, found: npt.NDArray[np.floating[Any]]) -> pa.Table:
    """A table of phrases with their vectors, [n, dimension]."""
    numbers = pa.array(np.ascontiguousarray(found, np.float16).reshape(-1))
    edges = pa.array(np.arange(len(found) + 1, dtype=np.int32) * found.shape[1])
    lists = pa.ListArray.from_arrays(edges, numbers, type=EMBEDDINGS.field("embedding").type)
    return pa.table([phrases, lists], schema=EMBEDDINGS)


class _OneLength(Check):
    """All vectors have the same length."""

    def __init__(self) -> None:
        self._dimension: int | None = None

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        lengths = pc.list_value_length(group.table.column("embedding")).to_numpy()
        if self._dimension is None and len(lengths):
            self._dimension = int(lengths[0])
        yield Broken(
            "the embedding is empty, or longer or shorter than the first of the dataset",
            where((lengths != self._dimension) | (lengths == 0)),
            lambda row: f"{quoted(group.table.column('phrase')[row].as_py())}: {lengths[row]:,} numbers",
        )


def _rules(table: pa.Table, normalised: bool) -> Iterator[Broken]:
    show = showing(table.column("phrase"))
    yield is_empty(table, "phrase", show)
    lists = table.column("embedding").combine_chunks()
    numbers = lists.flatten().to_numpy().astype(np.float32)
    owner = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy(zero_copy_only=False))
    yield Broken("the embedding has a number that is not finite", np.unique(owner[~np.isfinite(numbers)]), show)
    if normalised:
        length = np.sqrt(np.bincount(owner, numbers**2, minlength=len(lists)))
        wrong = where(~(np.abs(length - 1) < 0.01))
        yield Broken("the embedding does not have length 1", wrong, lambda row: f"{show(row)}: {length[row]:.3g}")


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    normalised = any(each.get("normalised") is True for each in manifest.models)
    return (
        Unique("the phrase is not unique", "phrase"),
        Rows(lambda table: _rules(table, normalised)),
        _OneLength(),
    )


def _check_source(dataset: Dataset, phrases: Dataset) -> Iterator[Violation]:
    """Shard i has the phrases of shard i of phrases, in the same order."""
    for shard, other in zip(dataset.shards(), phrases.shards(), strict=False):
        own, wanted = (
            each.table(one, columns=["phrase"]).column("phrase").combine_chunks()
            for each, one in ((dataset, shard), (phrases, other))
        )
        shorter = min(len(own), len(wanted))
        wrong = where(pc.not_equal(own[:shorter], wanted[:shorter]))
        if len(own) != len(wanted):
            wrong = np.append(wrong, shorter if len(own) > shorter else shorter - 1)
        if len(wrong):
            first = int(wrong[0])
            there = quoted(wanted[first].as_py()) if first < len(wanted) else "no phrase"
            rule = "the phrase is not that of the same row of the phrases"
            yield Violation(shard, rule, wrong, f"{quoted(own[first].as_py())}, there {there}")


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    numbers = row["embedding"]
    first = ", ".join(f"{each:.3f}" for each in numbers[:4])
    remarks = (("dimension", f"{len(numbers):,}"), ("first numbers", first))
    return Shown(cut(row["phrase"]), "phrase", remarks=remarks)


KIND = Kind(
    schema=EMBEDDINGS,
    rows="embeddings",
    about="The vectors that an encoder gives phrases, in the order of the phrases.",
    command="embed_phrases",
    order="rank",
    show=show,
    source=Source("Phrase", "phrases", _check_source, mirrors=True, also=("TypedPhrase",)),
    checks=_checks,
    measures=(words("Length of a phrase", "phrase"),),
    tasks=("feature-extraction",),
    parsed=True,
)
