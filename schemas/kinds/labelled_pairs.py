"""Labelled pairs: a phrase and another one, and whether they mean the same; for paraphrase classification."""

from __future__ import annotations

from collections import Counter
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
    hashes,
    is_empty,
    where,
)
from schemas.columns import column, schema, term
from schemas.dataset import Dataset, RowGroup
from schemas.keys import pair_name
from schemas.kind import Kind, Problem, Source
from schemas.kinds.phrase_pairs import FILE_FILTERS, FILE_REJECTS, pair_names, pair_places, show_pair
from schemas.manifest import Manifest
from schemas.measures import Measure, value, words
from schemas.shown import Row, Shown, plain_row

LABELLED_PAIRS = schema(
    "LabelledPair",
    column("phrase", pa.string(), "a phrase"),
    column("other", pa.string(), "another one"),
    column("label", pa.int8(), "1 if they mean the same, 0 if not"),
    column("score", pa.float32(), "the score of the positive in its source, null if it has none", optional=True),
    term("origin", "where a positive comes from; for a negative that was made: drawn or matched"),
)


def undirected(table: pa.Table, other: str = "other") -> pa.Array:
    """What is the same of both directions of a pair."""
    texts = (table.column(name).to_pylist() for name in ("phrase", other))
    return pa.array([pair_name(one, two) for one, two in zip(*texts, strict=True)], pa.string())


class _Labels(Check):
    """As many positives as negatives, by each shared word if there is to be one; no pair has both labels."""

    def __init__(self, by_word: bool) -> None:
        self._by_word = by_word
        self._hashes: dict[int, list[Any]] = {0: [], 1: []}
        self._words: Counter[tuple[str, int]] = Counter()

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        labels = group.table.column("label").to_numpy()
        found = hashes(undirected(group.table))
        for label, known in self._hashes.items():
            known.append(found[labels == label])
        if self._by_word:
            texts = (group.table.column(name).to_pylist() for name in ("phrase", "other"))
            shared = [{*one.split()} & {*other.split()} for one, other in zip(*texts, strict=True)]
            self._words.update((min(each, default=""), int(label)) for each, label in zip(shared, labels, strict=True))
            wrong = [len(each) != 1 for each in shared]
            yield Broken("the phrases do not share exactly one word", where(wrong), show_pair(group.table, "other"))

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        negative, positive = (np.unique(np.concatenate(each)) for each in self._hashes.values() if each)
        both = np.intersect1d(negative, positive)
        for shard in dataset.shards() if len(both) else ():
            for group in dataset.row_groups(shard):
                rows = np.flatnonzero(np.isin(hashes(undirected(group.table)), both))
                if len(rows):
                    detail = show_pair(group.table, "other")(int(rows[0]))
                    yield Violation(shard, "the pair has both labels", group.first_row + rows, detail)

    def totals(self) -> Iterator[Problem]:
        negative, positive = (sum(map(len, each)) for each in self._hashes.values())
        if negative != positive:
            yield "", f"labels: {positive:,} positives and {negative:,} negatives are not as many"
        for word in sorted({word for word, _ in self._words}):
            if self._words[word, 0] != self._words[word, 1]:
                counts = f"{self._words[word, 1]:,} positives and {self._words[word, 0]:,} negatives"
                yield "", f"labels: {counts} share the word {word!r}"


def _rules(table: pa.Table, options: Mapping[str, Any]) -> Iterator[Broken]:
    show = show_pair(table, "other")
    for name in ("phrase", "other", "origin"):
        yield is_empty(table, name, show, name)
    yield Broken("the phrases are equal", where(pc.equal(table.column("phrase"), table.column("other"))), show)
    label = table.column("label").to_numpy()
    yield Broken("the label is neither 0 nor 1", where((label != 0) & (label != 1)), show)
    tokens = [pc.add(pc.count_substring(table.column(name), " "), 1) for name in ("phrase", "other")]
    if options["set"] == "paws_short":
        most = int(options["max_tokens"])
        long = pc.greater(pc.max_element_wise(*tokens), most)
        yield Broken(f"a sentence has more than {most:,} tokens", where(long), show)
    if options["set"] == "ppdb_filtered":
        exact = int(options["words"])
        wrong = pc.or_(*(pc.not_equal(each, exact) for each in tokens))
        yield Broken(f"a phrase has not {exact:,} words", where(wrong), show)


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    seed, shares = manifest.seed or 0, [float(each) for each in manifest.options["splits"]]
    return (
        Unique("the pair is there twice", "phrase", "other", of=lambda table: pair_names(table, "other")),
        Rows(lambda table: _rules(table, manifest.options)),
        _Labels(manifest.options["set"] == "ppdb_filtered"),
        InSplit("the pair belongs to another split", lambda table: [undirected(table).to_pylist()], manifest, shares),
        Ordered(
            "the row is not after the one before it, by the hash of its pair",
            lambda table: pair_places(table, other="other", seed=seed),
            lambda table: show_pair(table, "other"),
        ),
    )


def _check_source(dataset: Dataset, pairs: Dataset) -> Iterator[Violation]:
    """Positives are rows of the pairs, and negatives are not, in either direction. It compares hashes."""
    known = np.concatenate([hashes(undirected(table, "paraphrase")) for table in pairs.tables()])
    for shard in dataset.shards():
        for group in dataset.row_groups(shard):
            found = np.isin(hashes(undirected(group.table)), known)
            positive = group.table.column("label").to_numpy() == 1
            show = show_pair(group.table, "other")
            for rule, wrong in (
                (f"a positive is no pair of {pairs.folder}", positive & ~found),
                (f"a negative is a pair of {pairs.folder}", ~positive & found),
            ):
                if wrong.any():
                    rows = np.flatnonzero(wrong)
                    yield Violation(shard, rule, group.first_row + rows, show(int(rows[0])))


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    return plain_row(row, ("phrase", "other", "label", "origin"))


KIND = Kind(
    schema=LABELLED_PAIRS,
    rows="labelled pairs",
    about="Pairs of phrases, half of which mean the same.",
    command="label_pairs",
    show=show,
    source=Source("PhrasePair", "pairs", _check_source),
    checks=_checks,
    options={"set": str, "splits": list[float]},
    measures=(
        value("Label", "pairs", "label"),
        value("Origin", "pairs", "origin"),
        Measure("Score of a positive", "pairs", ("score",), lambda table: table.column("score").drop_null()),
        words("Length of a phrase", "phrase", "other"),
    ),
    tasks=("text-classification", "sentence-similarity"),
    filters=FILE_FILTERS
    | {
        "other_length": "a pair of phrases that have not --words words",
        "function_word": "a pair with a word that is not of letters, or one of the function words",
        "other_overlap": "a pair that shares no word, or several",
        "beyond_phrases": "a pair with a phrase beyond --phrases-per-word",
        "no_negative": "a pair for whose phrase there is no negative",
        "long_sentence_pair": "a pair with a sentence of more than --max-tokens tokens",
        "repeated_row": "the same pair with the same label again",
        "both_labels": "a pair that has both labels",
        "beyond_rows": "a row beyond --rows, or beyond the number of rows with the other label",
    },
    rejects=FILE_REJECTS,
)
