"""Entities: spans of tokens that name something, by type, for each sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import (
    Broken,
    Check,
    Rows,
    Unique,
    Violation,
    Wrong,
    broken_items,
    broken_spans,
    nested,
    quoted,
)
from schemas.columns import column, list_of, schema, struct, term
from schemas.dataset import Dataset
from schemas.kind import Kind, Source
from schemas.manifest import Manifest
from schemas.measures import item_extent, item_value, length
from schemas.shown import Row, Shown, cut

ENTITIES = schema(
    "Entities",
    column("sentence_id", pa.string(), "the sentence, <doc_id>#<start_char>"),
    column(
        "entities",
        list_of(
            struct(
                column("start_token", pa.uint16(), "first token, counted in the sentence"),
                column("end_token", pa.uint16(), "token after the last"),
                term("type", "type of the entity: one of OntoNotes' 18, or another of the model's"),
            )
        ),
        "the entities that the sentence names, in order; they do not overlap",
    ),
)


def _rules(table: pa.Table, types: Sequence[str]) -> Iterator[Broken]:
    ids = table.column("sentence_id")
    lists = table.column("entities").combine_chunks()
    owner, first, (start, end, type_) = nested(lists, ("start_token", "end_token", "type"))

    def show(item: int) -> str:
        return f"{quoted(ids[owner[item]].as_py())}: {quoted(type_[item].as_py())} [{start[item]}:{end[item]}]"

    yield from broken_spans("an entity", start, end, first, owner, show)
    unknown = pc.invert(pc.is_in(type_, pa.array(types, pa.string()))).to_numpy(zero_copy_only=False)
    yield broken_items("the type is not one of the model's", unknown, owner, show)


def _check_source(dataset: Dataset, sentences: Dataset) -> Iterator[Violation]:
    """Row i of shard j is about row i of shard j of the sentences, and its spans are inside of that sentence."""
    for shard, there in zip(dataset.shards(), sentences.shards(), strict=False):
        source = sentences.table(there, columns=["sentence_id", "tokens"])
        table = dataset.table(shard, columns=["sentence_id", "entities"])
        ids, expected = (each.column("sentence_id").to_pylist() for each in (table, source))
        tokens = pc.list_value_length(source.column("tokens")).to_pylist()
        wrong = Wrong()
        for row, (found, wanted) in enumerate(zip(ids, expected, strict=False)):
            if found != wanted:
                detail = f"{quoted(found)}, there {quoted(wanted)}"
                wrong.add(f"the sentence is not that of the same row of {sentences.folder}/{there.path}", row, detail)
        for row in range(len(expected), len(ids)):
            wrong.add("the sentences have no such row", row, quoted(ids[row]))
        if len(ids) < len(expected):
            wrong.add("the next sentence has no row", max(len(ids) - 1, 0), quoted(expected[len(ids)]))
        owner, _, (end,) = nested(table.column("entities").combine_chunks(), ("end_token",))
        for row, last in zip(owner.tolist(), end.tolist(), strict=True):
            if row < len(tokens) and last > tokens[row]:
                wrong.add(
                    "an entity ends after the sentence", row, f"{quoted(ids[row])}: token {last} of {tokens[row]}"
                )
        yield from wrong.violations(shard)


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    types = [str(each) for each in manifest.options["entity_types"]]
    return (
        Unique("the sentence is not unique", "sentence_id"),
        Rows(lambda table: _rules(table, types)),
    )


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    """The types and places of a sentence's entities."""
    spans = [f"{each['type']} [{each['start_token']}:{each['end_token']}]" for each in row["entities"]]
    return Shown(cut(row["sentence_id"]), "sentence id", remarks=(("entities", cut(", ".join(spans) or "none")),))


KIND = Kind(
    schema=ENTITIES,
    rows="annotated sentences",
    about="The named entities of each sentence, as spans of its tokens with their types.",
    command="find_entities",
    order="source",
    show=show,
    source=Source("Sentence", "sentences and spans", _check_source, mirrors=True),
    checks=_checks,
    options={"entity_types": list[str]},
    measures=(
        item_value("Type of an entity", "entities", "entities", "type"),
        item_extent("Length of an entity", "tokens", "entities", "start_token", "end_token"),
        length("Entities in a sentence", "entities", "entities"),
    ),
    tasks=("token-classification",),
    parsed=True,
)
