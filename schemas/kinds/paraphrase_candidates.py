"""Candidates for paraphrases: what a generator drew for each phrase and for its corrupted form, before any filter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import (
    Broken,
    Check,
    Rows,
    Unique,
    Violation,
    broken_items,
    is_empty,
    nested,
    quoted,
    showing,
    where,
)
from schemas.columns import column, list_of, schema, struct, term
from schemas.dataset import Dataset
from schemas.kind import Kind, Source
from schemas.kinds.paraphrases import holding, is_one_word_off
from schemas.manifest import Manifest
from schemas.measures import Measure, item_value, length, words
from schemas.shown import Row, Shown, cut

SIDES = {"positives": ("phrase", "banned"), "negatives": ("corrupted", "corrupted_banned")}
"""The columns of candidates, each with the text that they paraphrase and the words that they may not hold."""

FLUENCY = {"phrase": "fluency", "corrupted": "corrupted_fluency"}
"""The columns of how likely the texts are by themselves."""

LIKELIHOOD = "natural log of its probability under the generator, by itself"

CANDIDATES = list_of(
    struct(
        column("text", pa.string(), "what was drawn"),
        column("draw", pa.int32(), "the number of the draw, from 0; after a draw with a banned word come further ones"),
        column(
            "log_probability",
            pa.float32(),
            "the natural log of its probability under the generator, without temperature or constraint",
        ),
        column("tokens", pa.int32(), "tokens of the generator, the end included"),
        pa.field("fluency", pa.float32(), metadata={"description": f"{LIKELIHOOD}; null: not measured"}),
    )
)

PARAPHRASE_CANDIDATES = schema(
    "ParaphraseCandidates",
    column("phrase", pa.string(), "the phrase"),
    term("label", "the label of its constituents"),
    column("frequency", pa.int64(), "occurrences in all documents"),
    column("names", list_of(pa.string()), "words of it that belong to a name"),
    pa.field("fluency", pa.float32(), metadata={"description": f"{LIKELIHOOD}; null: not measured"}),
    column("banned", list_of(pa.string()), "words that no positive holds"),
    column("positives", CANDIDATES, "candidates for a paraphrase of the phrase, in order of their draws"),
    column("corrupted", pa.string(), "the phrase with one word replaced by another one"),
    column("corrupted_banned", list_of(pa.string()), "words that no negative holds"),
    pa.field("corrupted_fluency", pa.float32(), metadata={"description": f"{LIKELIHOOD}; null: not measured"}),
    column("negatives", CANDIDATES, "candidates for a paraphrase of the corrupted phrase, in order of their draws"),
    term("generator", "the generator and its model"),
)


def _rules(table: pa.Table) -> Iterator[Broken]:
    show = showing(table.column("phrase"))
    for each in ("phrase", "corrupted"):
        yield is_empty(table, each, show)
    yield is_one_word_off(table)
    for name, (of, banned) in SIDES.items():
        lists = table.column(name).combine_chunks()
        owner, first, (text, draw) = nested(lists, ["text", "draw"])
        texts = text.to_pylist()

        def show_item(item: int, owner: Any = owner, texts: Any = texts, of: str = of) -> str:
            return f"{quoted(table.column(of)[int(owner[item])].as_py())}: {quoted(texts[item])}"

        untidy = pc.not_equal(text, pc.utf8_trim_whitespace(text))
        yield broken_items(f"one of the {name} begins or ends with a blank", _flags(untidy), owner, show_item)
        early = np.zeros(len(draw), dtype=bool)
        early[1:] = draw[1:] <= draw[:-1]
        rule = f"the draws of {name} are not in order, or begin below 0"
        yield broken_items(rule, early & ~first | (draw < 0), owner, show_item)
        of_row = table.column(banned).to_pylist()
        wrong = np.array([bool(holding(each, of_row[row])) for each, row in zip(texts, owner, strict=True)], dtype=bool)
        yield broken_items(f"one of the {name} holds a banned word", wrong, owner, show_item)


def _flags(values: pa.Array) -> np.ndarray:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=bool)


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    return (Unique("the phrase is not unique", "phrase"), Rows(_rules))


def _check_source(dataset: Dataset, phrases: Dataset) -> Iterator[Violation]:
    """Shard i has phrases of shard i of phrases, in the same order."""
    for shard, other in zip(dataset.shards(), phrases.shards(), strict=False):
        own, there = (
            each.table(one, columns=["phrase"]).column("phrase").combine_chunks()
            for each, one in ((dataset, shard), (phrases, other))
        )
        place = pc.fill_null(pc.index_in(own, there), -1).to_numpy().astype(np.int64)
        for rule, wrong in (
            ("the phrase is not in the same shard of the phrases", place < 0),
            ("the phrase is not after the one before it in the phrases", np.diff(place, prepend=-2) <= 0),
        ):
            rows = where(wrong & (place < 0) if rule.endswith("shard of the phrases") else wrong & (place >= 0))
            if len(rows):
                yield Violation(shard, rule, rows, quoted(own[int(rows[0])].as_py()))


def _notes(manifest: Manifest) -> Iterator[str]:
    for name in SIDES:
        found, banned, cut_off = (manifest.counter(f"{name}_{what}") for what in ("drawn", "with_banned", "unfinished"))
        yield (
            f"{name}: {found / max(manifest.rows, 1):.1f} a phrase; of {found + banned + cut_off:,} draws "
            f"{banned:,} held a banned word, {cut_off:,} came to no end"
        )


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    found = tuple((name, "; ".join(cut(each["text"]) for each in row[name][:4]) or "none") for name in SIDES)
    return Shown(cut(row["phrase"]), "phrase", remarks=(found[0], ("corrupted", cut(row["corrupted"])), found[1]))


def _mean_log_probability(table: pa.Table) -> pa.Array:
    _, _, (total, tokens) = nested(table.column("positives").combine_chunks(), ["log_probability", "tokens"])
    return pa.array(total.to_numpy() / np.maximum(tokens, 1))


KIND = Kind(
    schema=PARAPHRASE_CANDIDATES,
    rows="phrases with candidates",
    about="Phrases with what a generator drew for them and for a corrupted form of each.",
    command="generate_paraphrases",
    after="pipelines.paraphrase --input",
    order="rank",
    show=show,
    source=Source("Phrase", "phrases", _check_source, mirrors=True, also=("TypedPhrase",)),
    checks=_checks,
    notes=_notes,
    measures=(
        words("Length of a phrase", "phrase"),
        length("Positives of a phrase", "candidates", "positives"),
        length("Negatives of a phrase", "candidates", "negatives"),
        item_value("Tokens of a positive", "tokens", "positives", "tokens"),
        Measure("Log probability of a token of a positive", "nats", ("positives",), _mean_log_probability),
    ),
    parsed=True,
    filters={
        "no_content_word": "a phrase of stop words: none can be replaced",
        "no_replacement": "a phrase for whose word the vocabulary has no other",
        "kept_words_only": "a phrase of stop words and words that are kept: nothing is banned (--keep)",
    },
)
