"""Hard negatives: phrases with others that are near in letters and far in meaning (PEARL)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from schemas.characters import edit_similarity
from schemas.checks import (
    Broken,
    Check,
    Ordered,
    Rows,
    Unique,
    Violation,
    broken_items,
    hashes,
    is_empty,
    nested,
    quoted,
    showing,
    where,
)
from schemas.columns import column, list_of, schema, struct
from schemas.dataset import Dataset
from schemas.kind import Kind, Problem, Source, equal
from schemas.manifest import Manifest
from schemas.measures import item_value, length, words
from schemas.shown import Row, Shown, cut

HARD_NEGATIVES = schema(
    "HardNegative",
    column("phrase", pa.string(), "the phrase"),
    column(
        "negatives",
        list_of(
            struct(
                column("phrase", pa.string(), "another phrase, near in letters and far in meaning"),
                column(
                    "edit_similarity",
                    pa.float32(),
                    "2 x (length of the longest common subsequence) / (length of both), in code points",
                ),
                column("cosine", pa.float32(), "the cosine of both embeddings, plain"),
                column("difference", pa.float32(), "edit_similarity - cosine, after --cosine moved that"),
            )
        ),
        "the largest difference first, equal ones in order of the phrases' hashes",
    ),
)

_NUMBERS = ("edit_similarity", "cosine", "difference")


MEAN_COSINE = "mean_cosine_millionths"
"""The counter of the mean cosine of all pairs of phrases."""


def _rules(table: pa.Table, most: int, least: float, mean: float | None) -> Iterator[Broken]:
    phrase = table.column("phrase").combine_chunks()
    lists = table.column("negatives").combine_chunks()
    owner, first, (other, *numbers) = nested(lists, ["phrase", *_NUMBERS])
    similarity, cosine, difference = (each.to_numpy() for each in numbers)
    own = phrase.take(pa.array(owner)).to_pylist()
    others = other.to_pylist()

    def show(item: int) -> str:
        found = f"{similarity[item]:.4f}, cosine {cosine[item]:.4f}, difference {difference[item]:.4f}"
        return f"{quoted(own[item])}: {quoted(others[item])}, edit similarity {found}"

    yield is_empty(table, "phrase", showing(table.column("phrase")))
    size = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    rule = f"there are not 1 to {most:,} negatives"
    yield Broken(rule, where((size < 1) | (size > most)), lambda row: f"{quoted(phrase[row].as_py())}: {size[row]:,}")
    yield broken_items("the phrase is its own negative", np.array(own) == np.array(others), owner, show)
    exact = np.array([edit_similarity(*each) for each in zip(own, others, strict=True)], np.float32)
    yield broken_items("edit_similarity is not that of the phrases", ~(np.abs(similarity - exact) < 1e-5), owner, show)
    yield broken_items("cosine is not from -1 to 1", ~((cosine >= -1) & (cosine <= 1)), owner, show)
    low = ~(difference > np.float32(least))
    yield broken_items(f"the difference is not above {least:g}", low, owner, show)
    if mean is not None:
        wrong = ~(np.abs(similarity - (cosine - mean) / max(1 - mean, 1e-6) - difference) < 1e-4)
        yield broken_items("the difference is not that of edit_similarity and cosine", wrong, owner, show)
    order = [(-d, xxhash.xxh3_128_digest(text.encode())) for d, text in zip(difference.tolist(), others, strict=True)]
    early = np.zeros(len(order), dtype=bool)
    early[1:] = [after <= before for before, after in itertools.pairwise(order)]
    rule = "a negative is not after the one before it, by difference and hash"
    yield broken_items(rule, early & ~first, owner, show)


def _keys(table: pa.Table) -> list[bytes]:
    return [xxhash.xxh3_128_digest(each) for each in table.column("phrase").cast(pa.binary()).to_pylist()]


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    most, least = int(manifest.options["negatives"]), float(manifest.options["min_difference"])
    # What a scaled cosine was depends on candidates that are not kept, a centred one on all phrases.
    centred = manifest.counter(MEAN_COSINE) / 1e6 if manifest.has("measure_cosine") else None
    mean = {"plain": 0.0, "centred": centred}.get(manifest.options["cosine"])
    return (
        Unique("the phrase is not unique", "phrase"),
        Rows(lambda table: _rules(table, most, least, mean)),
        Ordered(
            "the phrase is not after the one before it, by hash", _keys, lambda table: showing(table.column("phrase"))
        ),
    )


def _check_source(dataset: Dataset, phrases: Dataset) -> Iterator[Violation]:
    """Phrases and negatives are among the phrases. It compares hashes."""
    known = np.sort(np.concatenate([hashes(table.column("phrase")) for table in phrases.tables(columns=["phrase"])]))

    def unknown(values: pa.Array) -> np.ndarray:
        found = hashes(values)
        place = np.minimum(np.searchsorted(known, found), len(known) - 1)
        return np.flatnonzero(known[place] != found)

    for shard in dataset.shards():
        for group in dataset.row_groups(shard):
            phrase = group.table.column("phrase").combine_chunks()
            owner, _, (other,) = nested(group.table.column("negatives").combine_chunks(), ["phrase"])
            for what, values, rows in (("phrase", phrase, np.arange(len(phrase))), ("negative", other, owner)):
                wrong = unknown(values)
                if len(wrong):
                    detail = quoted(values[int(wrong[0])].as_py())
                    rule = f"the {what} is not one of the phrases"
                    yield Violation(shard, rule, group.first_row + np.unique(rows[wrong]), detail)


def _sums(manifest: Manifest) -> Iterator[Problem]:
    yield from equal(manifest.rows, manifest.last_written, "rows, and phrases that the last stage wrote")
    if manifest.has("filter_negatives"):
        without = sum(manifest.counter(name) for name in ("without_neighbours", "without_negatives"))
        all_ = manifest.counter("phrases")
        yield from equal(manifest.rows + without, all_, "phrases with and without, and all of them")


def _notes(manifest: Manifest) -> Iterator[str]:
    if not manifest.has("filter_negatives"):
        return
    kept, all_ = manifest.ledger("filter_negatives").written, manifest.counter("phrases")
    alone, none = manifest.counter("without_neighbours"), manifest.counter("without_negatives")
    yield (
        f"hard negatives: {kept / max(manifest.rows, 1):.1f} for each of {manifest.rows:,} phrases; of {all_:,}, "
        f"{alone:,} have no neighbour, {none:,} only neighbours that are filtered"
    )


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    found = [
        f"{cut(each['phrase'])} ({each['edit_similarity']:.2f}, {each['cosine']:.2f})" for each in row["negatives"][:5]
    ]
    return Shown(cut(row["phrase"]), "phrase", remarks=(("negatives (edit similarity, cosine)", "; ".join(found)),))


KIND = Kind(
    schema=HARD_NEGATIVES,
    rows="hard negatives",
    about="Phrases with others that are near to them in letters and far in meaning.",
    command="mine_negatives",
    show=show,
    source=Source("Phrase", "phrases", _check_source, also=("TypedPhrase",)),
    checks=_checks,
    options={"negatives": int, "min_difference": float, "cosine": str},
    sums=_sums,
    notes=_notes,
    measures=(
        words("Length of a phrase", "phrase"),
        length("Negatives of a phrase", "negatives", "negatives"),
        item_value("Edit similarity", "negatives", "negatives", "edit_similarity"),
        item_value("Cosine", "negatives", "negatives", "cosine"),
        item_value("Difference", "negatives", "negatives", "difference"),
    ),
    tasks=("sentence-similarity", "feature-extraction"),
    texts=("phrase", "negatives.phrase"),
    parsed=True,
    filters={
        "below_difference": "a neighbour that is near in meaning, too (--min-difference, --cosine)",
        "variant": (
            "a neighbour that differs in spelling, hyphens, inflection, determiners or a first preposition only"
            " (--keep-variants)"
        ),
        "beyond_top_k": "a neighbour with a smaller difference than the negatives of its phrase (--negatives)",
    },
)
