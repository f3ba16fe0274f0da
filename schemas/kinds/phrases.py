"""Phrases: a vocabulary with labels and frequencies."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from schemas.checks import (
    I64,
    Broken,
    Check,
    Ordered,
    Rows,
    Show,
    Unique,
    is_empty,
    is_not_one_of,
    quoted,
    showing,
    where,
)
from schemas.columns import column, schema, struct, term
from schemas.dataset import RowGroup
from schemas.kind import Kind, Problem, equal
from schemas.manifest import Manifest
from schemas.measures import frequency_by_row, value, words
from schemas.reasons import DATE, NUMBER, PUNCTUATION
from schemas.shown import Row, Shown, plain_row
from schemas.terms import PHRASE_LABELS, STRAIGHT_QUOTES

PHRASES = schema(
    "Phrase",
    column("phrase", pa.string(), "the normalised phrase (docs/phrases.md)"),
    column("surface", pa.string(), "the commonest of its surfaces in the texts; ties by their hash"),
    column("surface_share", pa.float32(), "share of occurrences with this surface"),
    term("label", "the label of most of its occurrences; ties by the order NP, VP, PP, ADJP, ADVP"),
    column(
        "label_shares",
        struct(*(column(label, pa.float32(), f"share of occurrences labelled {label}") for label in PHRASE_LABELS)),
        "share of each label among the occurrences",
    ),
    column("frequency", pa.int64(), "occurrences in all documents"),
    column("document_frequency", pa.int64(), "documents with an occurrence"),
)

EXACT_SHARES = 1 << 24
"""Below this frequency, different counts give different shares in single precision."""


def occurrences(manifest: Manifest) -> int:
    """The number of occurrences of all phrases that were counted."""
    return manifest.ledger("count").written


def _rules(table: pa.Table, least: int) -> Iterator[Broken]:
    phrase = table.column("phrase")
    frequency, documents = (table.column(name).to_numpy() for name in ("frequency", "document_frequency"))

    def show(row: int) -> str:
        return f"{quoted(phrase[row].as_py())}, frequency {frequency[row]:,}, document_frequency {documents[row]:,}"

    yield is_empty(table, "phrase", show)
    yield Broken(f"the frequency is below {least:,}", where(frequency < least), show)
    outside = (documents < 1) | (documents > frequency)
    yield Broken("document_frequency is not from 1 to frequency", where(outside), show)
    yield from _surfaces(table)
    yield from _labels(table, frequency)


def _surfaces(table: pa.Table) -> Iterator[Broken]:
    phrase, surface, share = (table.column(name) for name in ("phrase", "surface", "surface_share"))

    def show(row: int) -> str:
        return f"{quoted(phrase[row].as_py())}: {quoted(surface[row].as_py())}, share {share[row].as_py():.3g}"

    yield is_empty(table, "surface", show)
    within = pc.and_(pc.greater(share, 0), pc.less_equal(share, 1))
    yield Broken("surface_share is not above 0 and at most 1", where(pc.invert(within)), show)
    differ = where(pc.and_(pc.not_equal(phrase, surface), pc.not_equal(surface, "")))
    texts = [column.take(pa.array(differ)).to_pylist() for column in (phrase, surface)]
    wrong = [_caseless(one) != _caseless(other) for one, other in zip(*texts, strict=True)]
    yield Broken("the surface has other letters than the phrase", differ[where(wrong)], show)


def _caseless(text: str) -> str:
    """What a phrase and its surfaces have in common: Unicode's canonical caseless matching, with straight quotes."""
    folded = unicodedata.normalize("NFD", text.translate(STRAIGHT_QUOTES)).casefold()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", folded).casefold())


def _labels(table: pa.Table, frequency: I64) -> Iterator[Broken]:
    by_label = table.column("label_shares").combine_chunks()
    shares = np.stack([by_label.field(label).to_numpy() for label in PHRASE_LABELS])
    label = pc.index_in(table.column("label"), pa.array(PHRASE_LABELS)).combine_chunks()

    def show(row: int) -> str:
        numbers = ", ".join(f"{name} {share:.3g}" for name, share in zip(PHRASE_LABELS, shares[:, row], strict=True))
        label, phrase = (quoted(table.column(name)[row].as_py()) for name in ("label", "phrase"))
        return f"{phrase}: label {label}, {numbers}"

    yield is_not_one_of(table, "label", PHRASE_LABELS, showing(table.column("phrase")))
    total = shares.astype(np.float64).sum(axis=0)
    outside = ~((shares >= 0) & (shares <= 1)).all(axis=0) | ~(np.abs(total - 1) < 1e-5)
    yield Broken("label_shares do not add up to 1", where(outside), show)
    best = shares.argmax(axis=0)
    place = pc.fill_null(label, 0).to_numpy()
    own = np.take_along_axis(shares, place[None], axis=0)[0] if len(place) else shares[0]
    # From this frequency on, different counts may have the same share in single precision.
    tied = (frequency >= EXACT_SHARES) & (own == shares.max(axis=0))
    wrong = (place != best) & ~tied & pc.is_valid(label).to_numpy(zero_copy_only=False)
    yield Broken("label is not that of most occurrences (ties by the order of the shares)", where(wrong), show)


def _places(table: pa.Table) -> list[tuple[int, bytes]]:
    keys = map(xxhash.xxh3_128_digest, table.column("phrase").cast(pa.binary()).to_pylist())
    return list(zip((-table.column("frequency").to_numpy()).tolist(), keys, strict=True))


class _Counted(Check):
    """The frequencies add up to the occurrences counted, without those of phrases that were left out.

    Those of phrases tied at the cut are known; of the others there is one at least for each.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest, self._total = manifest, 0

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        self._total += pc.sum(group.table.column("frequency")).as_py() or 0
        yield from ()

    def totals(self) -> Iterator[Problem]:
        if not (self._manifest.has("select") and self._manifest.has("count")):
            return
        counted, filtered = occurrences(self._manifest), self._manifest.ledger("select").filtered
        left_out = filtered.total() + filtered["tied_at_cut"] * (self._manifest.counter("lowest_frequency") - 1)
        if self._total + left_out > counted or (not left_out and self._total != counted):
            found = f"frequencies add up to {self._total:,} (and {filtered.total():,} phrases were left out)"
            yield "", f"{found}; {counted:,} occurrences were counted"


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    least = int(manifest.options["min_frequency"])
    return (
        Unique("the phrase is not unique", "phrase"),
        Rows(lambda table: _rules(table, least)),
        Ordered("the phrase is not after the one before it, by frequency and hash", _places, _shown_place),
        _Counted(manifest),
    )


def _shown_place(table: pa.Table) -> Show:
    phrase, frequency = table.column("phrase"), table.column("frequency")
    return lambda row: f"{quoted(phrase[row].as_py())}, frequency {frequency[row].as_py():,}"


def _sums(manifest: Manifest) -> Iterator[Problem]:
    yield from equal(manifest.rows, manifest.last_written, "rows, and phrases that the last stage wrote")
    if manifest.has("select"):
        read, counted = manifest.ledger("select").read, manifest.counter("candidates")
        yield from equal(read, counted, "phrases that select read, and those counted")


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    surface = {"surface": f"{row['surface']} {row['surface_share']:.0%}"}
    names = ("phrase", "surface", "label", "frequency", "document_frequency", "label_shares")
    return plain_row({**row, **surface}, names)


def _notes(manifest: Manifest) -> Iterator[str]:
    tied = manifest.ledger("select").filtered["tied_at_cut"] if manifest.has("select") else 0
    if tied and manifest.counter("lowest_frequency") == 1:
        yield (
            f"phrases: the cut falls among those that occur once: {tied:,} of them are left out, by hash alone; keep "
            "none of them with --min-frequency 2, or more with --max-phrases"
        )


KIND = Kind(
    schema=PHRASES,
    rows="phrases",
    about="The most frequent phrases with their labels and frequencies.",
    command="count_phrases",
    order="rank",
    show=show,
    checks=_checks,
    options={"min_frequency": int},
    sums=_sums,
    notes=_notes,
    measures=(
        words("Length of a phrase", "phrase"),
        value("Label", "phrases", "label"),
        frequency_by_row("Frequency against rank", "occurrences", "frequency"),
        value("Documents with the phrase", "documents", "document_frequency"),
    ),
    tasks=("feature-extraction",),
    texts=("phrase",),
    parsed=True,
    filters={
        "unknown_token": "a constituent with a word that the source withholds",
        **PUNCTUATION,
        "unbalanced": "a constituent with half of a pair of brackets or quotes: a parsing error",
        "pronoun": "a lone pronoun or determiner (--keep-pronouns)",
        **NUMBER,
        "auxiliary": "a verb phrase that an auxiliary, a modal or to leads (--keep-auxiliaries); what it leads counts",
        **DATE,
        "measure": "numbers with units (--keep-measures)",
        "function_words": "a constituent of function words and numbers only (--keep-function-words)",
        "too_short": "a constituent of letters and initials (--min-phrase-letters)",
        "too_long": "a constituent longer than --max-phrase-tokens",
        "clause": "a constituent with a clause inside (--keep-clauses)",
        "nested": "a constituent with the same head as another, which is counted (--nested)",
        "same_words": "a constituent over the same words as another, which is counted",
        "too_rare": "a phrase that occurs less often than all that are kept (--min-frequency, --max-phrases)",
        "tied_at_cut": "a phrase that occurs as often as the rarest kept, and has a higher hash (--max-phrases)",
    },
)
