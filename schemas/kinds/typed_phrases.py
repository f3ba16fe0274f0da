"""Typed phrases: a vocabulary with the types that a classifier of phrases learns (PEARL)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import Broken, Check, Counters, Rows, is_not_one_of, nested, quoted, showing, where
from schemas.columns import column, list_of, schema, struct, term
from schemas.kinds import phrases
from schemas.kinds.phrases import EXACT_SHARES, PHRASES
from schemas.manifest import Manifest
from schemas.measures import value
from schemas.shown import Row, Shown, plain_row
from schemas.terms import NO_ENTITY, PHRASE_LABELS

TYPED_PHRASES = schema(
    "TypedPhrase",
    *PHRASES,
    term("type", "<label>-<entity_type>"),
    term("entity_type", "that of most occurrences with the label, OTHER for no entity; ties by the order of the types"),
    column(
        "type_shares",
        list_of(struct(term("type", "<label>-<entity type>"), column("share", pa.float32(), "share of occurrences"))),
        "the types of the occurrences, the most frequent first",
    ),
)

TYPE_COUNTER = "type:{}"
"""The counter of the phrases of a type."""

PEARL_LABELS = {"NP": 0.601, "PP": 0.261, "ADVP": 0.110, "ADJP": 0.024, "VP": 0.004}
PEARL_OTHER = 0.885
"""The shares of PEARL's phrases: of the labels, and of those that are no entity (Chen et al. 2024, section 4.1)."""


def type_names(entity_types: Sequence[str]) -> list[str]:
    """The names of all types, in order: the entity types of the first label, then those of the next."""
    return [f"{label}-{entity_type}" for label in PHRASE_LABELS for entity_type in entity_types]


def _rules(table: pa.Table, entity_types: Sequence[str]) -> Iterator[Broken]:
    show = showing(table.column("phrase"))
    names = type_names(entity_types)
    yield is_not_one_of(table, "entity_type", entity_types, show)
    joined = pc.binary_join_element_wise(table.column("label"), table.column("entity_type"), "-")
    type_ = table.column("type")
    yield Broken(
        "type is not <label>-<entity_type>",
        where(pc.not_equal(type_, joined)),
        lambda row: f"{show(row)}: {quoted(type_[row].as_py())}",
    )
    yield from _shares(table, names)


def _shares(table: pa.Table, names: Sequence[str]) -> Iterator[Broken]:
    """The shares of types are in order, they add up to those of the labels, and the first of the label is the type."""
    lists = table.column("type_shares").combine_chunks()
    owner, first, (type_, share) = nested(lists, ("type", "share"))
    share = share.to_numpy().astype(np.float64)
    code = pc.fill_null(pc.index_in(type_, pa.array(names)), -1).to_numpy().astype(np.int64)
    phrase, own_type = table.column("phrase"), table.column("type")

    def show(row: int) -> str:
        shares = ", ".join(f"{each['type']} {each['share']:.3g}" for each in lists[row].as_py())
        return f"{quoted(phrase[row].as_py())}: type {quoted(own_type[row].as_py())}, {shares}"

    odd = (code < 0) | ~((share > 0) & (share <= 1))
    rule = "type_shares have an unknown type, or a share that is not above 0 and at most 1"
    yield Broken(rule, np.unique(owner[odd]), show)
    # Different counts of a frequent phrase may have the same share in single precision.
    exact = table.column("frequency").to_numpy()[owner[1:]] < EXACT_SHARES
    back = (share[1:] > share[:-1]) | (exact & (share[1:] == share[:-1]) & (code[1:] <= code[:-1]))
    rule = "type_shares are not in order: the most frequent first, ties by the order of the types"
    yield Broken(rule, np.unique(owner[1:][back & ~first[1:]]), show)
    label = np.maximum(code, 0) // (len(names) // len(PHRASE_LABELS))
    sums = np.zeros((len(PHRASE_LABELS), table.num_rows))
    np.add.at(sums, (label, owner), share)
    by_label = table.column("label_shares").combine_chunks()
    differ = [np.abs(sums[row] - by_label.field(name).to_numpy()) > 1e-5 for row, name in enumerate(PHRASE_LABELS)]
    yield Broken("type_shares do not add up to label_shares", where(np.any(differ, axis=0)), show)
    of_label = where(label == pc.index_in(table.column("label"), pa.array(PHRASE_LABELS)).to_numpy()[owner])
    rows, place = np.unique(owner[of_label], return_index=True)
    best = np.full(table.num_rows, -1)
    best[rows] = code[of_label[place]]
    wrong = best != pc.fill_null(pc.index_in(own_type, pa.array(names)), -1).to_numpy()
    yield Broken("type is not the first of type_shares with its label", where(wrong), show)


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    entity_types = [str(each) for each in manifest.options["entity_types"]]
    return (
        *phrases.KIND.checks(manifest),
        Rows(lambda table: _rules(table, entity_types)),
        Counters("type", type_names(entity_types), TYPE_COUNTER, manifest),
    )


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    surface = f"{row['surface']} {row['surface_share']:.0%}"
    shares = {each["type"]: each["share"] for each in row["type_shares"]}
    return plain_row(
        {**row, "surface": surface, "type_shares": shares},
        ("phrase", "surface", "type", "frequency", "document_frequency", "type_shares"),
    )


def _notes(manifest: Manifest) -> Iterator[str]:
    yield from phrases.KIND.notes(manifest)
    counts = Counter({name: n for stage in manifest.stages for name, n in stage.counters.items()})
    total = max(manifest.rows, 1)
    of_label = {label: TYPE_COUNTER.format(f"{label}-") for label in PEARL_LABELS}
    labels = {label: sum(n for name, n in counts.items() if name.startswith(of_label[label])) for label in PEARL_LABELS}
    other = sum(counts[f"{each}{NO_ENTITY}"] for each in of_label.values())
    said = [f"{label} {n / total:.1%} ({PEARL_LABELS[label]:.1%})" for label, n in labels.items()]
    said.append(f"{NO_ENTITY} {other / total:.1%} ({PEARL_OTHER:.1%})")
    yield f"shares of the phrases, in parentheses PEARL's (docs/typed-phrases.md): {', '.join(said)}"


KIND = replace(
    phrases.KIND,
    schema=TYPED_PHRASES,
    rows="typed phrases",
    about="Phrases with their labels, entity types and frequencies, the most frequent first.",
    command="mine_phrases",
    show=show,
    checks=_checks,
    options={**phrases.KIND.options, "entity_types": list[str]},
    notes=_notes,
    measures=(
        *phrases.KIND.measures,
        value("Entity type", "phrases", "entity_type"),
        value("Type", "phrases", "type"),
    ),
)
