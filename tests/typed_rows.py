"""Entities of literal and real sentences, and the typed phrases that brute force finds with them."""

from __future__ import annotations

from collections.abc import Sequence

import brute_force
import pyarrow as pa
from literal import Row

from schemas.kinds.entities import ENTITIES
from schemas.kinds.typed_phrases import TYPED_PHRASES
from schemas.terms import ENTITY_TYPES
from transforms.phrases.entity_types import ordered_types
from transforms.phrases.options import PhraseRules

TYPES = ordered_types(ENTITY_TYPES)
Spans = Sequence[tuple[str, int, int]]


def entities(table: pa.Table, spans: Sequence[Spans]) -> pa.Table:
    """The table of entities of some sentences: the type, first and last token + 1 of each entity."""
    rows = [
        {
            "sentence_id": sentence_id,
            "entities": [{"type": type_, "start_token": start, "end_token": end} for type_, start, end in own],
        }
        for sentence_id, own in zip(table.column("sentence_id").to_pylist(), spans, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=ENTITIES)


def expected(tables: Sequence[pa.Table], annotated: Sequence[pa.Table], match: str, rules: PhraseRules) -> list[Row]:
    occurrences, types = [], []
    for table, entities_ in zip(tables, annotated, strict=True):
        rows, spans = table.to_pylist(), entities_.column("entities").to_pylist()
        for each in brute_force.find(rows, rules).occurrences:
            occurrences.append(each)
            types.append(brute_force.entity_type(rows[each.sentence], spans[each.sentence], each, match))
    found = brute_force.count_typed(occurrences, types, TYPES)
    return pa.Table.from_pylist(found, schema=TYPED_PHRASES).to_pylist()


def guessed(table: pa.Table) -> pa.Table:
    """Entities at some places of real sentences, most of them constituents."""
    found: list[list[tuple[str, int, int]]] = []
    for number, row in enumerate(table.to_pylist()):
        spans: list[tuple[str, int, int]] = []
        for place, each in enumerate(row["constituents"]):
            start, end = each["start_token"] + (number + place) % 2, each["end_token"]
            last = spans[-1][2] if spans else 0
            if each["label"] in ("NP", "QP", "ADVP") and last <= start < end <= start + 4:
                spans.append((ENTITY_TYPES[(number + place) % len(ENTITY_TYPES)], start, end))
        found.append(spans)
    return entities(table, found)
