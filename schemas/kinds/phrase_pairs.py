"""Pairs of a phrase and a paraphrase of it: what paraphrasers and phrase encoders are trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import Broken, Check, Ordered, Rows, Show, Unique, is_empty, quoted, where
from schemas.columns import column, schema, term
from schemas.keys import pair_key
from schemas.kind import Alike, Kind
from schemas.manifest import Manifest
from schemas.measures import Measure, likeness, value, words
from schemas.shown import Row, Shown, plain_row

PHRASE_PAIRS = schema(
    "PhrasePair",
    column("phrase", pa.string(), "a phrase"),
    column("paraphrase", pa.string(), "another phrase of the same meaning"),
    column("score", pa.float32(), "how good its source says that the pair is, null if it does not say", optional=True),
    term("relation", "how the meanings relate, in the terms of the source, null if it does not say", optional=True),
    term("origin", "where the pair comes from: ppdb, tsv, json, wordnet, alias, ..."),
)

FILE_FILTERS = {
    "heading": "a first line with the names of columns",
    "pattern": "a pair with a gap for another phrase, as syntactic paraphrases of PPDB have it",
    "identical": "a pair of a phrase with itself",
}
FILE_REJECTS = {"bad_pair": "a line or row that is no pair in the format of its file"}
"""Reasons for which a pair of a file is left out, whatever is made of it."""


def _rules(table: pa.Table) -> Iterator[Broken]:
    show = show_pair(table)
    for name in ("phrase", "paraphrase"):
        text = table.column(name)
        yield is_empty(table, name, show)
        untidy = pc.not_equal(text, pc.utf8_trim_whitespace(text))
        yield Broken(f"the {name} begins or ends with a blank", where(untidy), show)
    same = pc.equal(table.column("phrase"), table.column("paraphrase"))
    yield Broken("the paraphrase is the phrase itself", where(same), show)
    yield Broken("score is not a number", where(pc.invert(pc.is_finite(table.column("score")))), show)
    yield is_empty(table, "relation", show, "relation")
    yield is_empty(table, "origin", show, "origin")


def show_pair(table: pa.Table, other: str = "paraphrase") -> Show:
    """Shows a row by its phrase and the other phrase."""
    return lambda row: " / ".join(quoted(table.column(name)[row].as_py()) for name in ("phrase", other))


def pair_places(table: pa.Table, *, other: str = "paraphrase", seed: int = 0) -> list[tuple[bytes, bytes]]:
    """The place of each pair: by hash, where both directions of a pair are equal; these by the bytes of the phrase."""
    texts = (table.column(name).to_pylist() for name in ("phrase", other))
    return [(pair_key(one, two, seed=seed), one.encode()) for one, two in zip(*texts, strict=True)]


def pair_names(table: pa.Table, other: str = "paraphrase") -> list[pa.Array]:
    """What is unique of each row."""
    return [pc.binary_join_element_wise(table.column("phrase"), table.column(other), "\0")]


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    seed = manifest.seed or 0
    return (
        Unique("the pair is there twice", "phrase", "paraphrase", of=pair_names),
        Rows(_rules),
        Ordered(
            "the row is not after the one before it, by the hash of its pair",
            lambda table: pair_places(table, seed=seed),
            show_pair,
        ),
    )


def _notes(manifest: Manifest) -> Iterator[str]:
    if both := manifest.counter("both_directions"):
        yield f"pairs: {both:,} are there in both directions; --one-direction keeps one"


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    known = [name for name in ("score", "relation") if row[name] is not None]
    return plain_row(row, ("phrase", "paraphrase", *known, "origin"))


KIND = Kind(
    schema=PHRASE_PAIRS,
    rows="pairs",
    about="Pairs of a phrase and a paraphrase of it.",
    command="extract_pairs",
    show=show,
    checks=_checks,
    measures=(
        value("Origin", "pairs", "origin"),
        Measure("Score", "pairs", ("score",), lambda table: table.column("score").drop_null()),
        Measure("Relation", "pairs", ("relation",), lambda table: table.column("relation").drop_null()),
        likeness("How the phrases differ", "pairs", "phrase", "paraphrase"),
        words("Length of a phrase", "phrase", "paraphrase"),
    ),
    tasks=("sentence-similarity",),
    alike=Alike("phrase", "paraphrase"),
    texts=("phrase", "paraphrase"),
    notes=_notes,
    filters=FILE_FILTERS
    | {
        "labelled_negative": "a pair of which the file says that it is none",
        "non_letter": "a pair with a character that is neither a letter nor a space (--letters-only)",
        "unknown_word": "a pair with a word that is not in --vocabulary",
        "single_words": "a pair of two single words (--no-single-words)",
        "other_relation": "a pair with another relation than --relations, or none",
        "below_score": "a pair with a lower score than --min-score, or none",
        "too_many_words": "a phrase of too many words to mine pairs of",
        "no_content": "a phrase without a word that has to be replaced: stop words, names and numbers stay",
        "no_substitute": "a phrase with a word of content of which no substitute is known, or only forms of its words",
        "not_among_best": "a mined paraphrase that is not among the phrase's best",
        "shared_word": "a pair of texts that share a word of content, or a form of it",
        "repeated": "the same pair again; the one with the highest score is kept",
        "reversed": "a pair that is kept in the other direction (--one-direction)",
    },
    rejects=FILE_REJECTS,
)
