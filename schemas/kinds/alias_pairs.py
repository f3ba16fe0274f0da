"""Pairs of surfaces of one entity: paraphrases that people wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import (
    Broken,
    Check,
    Rows,
    Show,
    SideBySide,
    Unique,
    is_empty,
    is_no_wikidata_id,
    quoted,
    where,
)
from schemas.columns import column, schema, term
from schemas.kind import Alike, Kind
from schemas.kinds.mentions import entity
from schemas.manifest import Manifest
from schemas.measures import likeness, rows_by_rank, value, words
from schemas.shown import Row, Shown, cut

ALIAS_PAIRS = schema(
    "AliasPair",
    term("entity_id", "the Wikidata id of the entity, empty where none is known"),
    column("target_title", pa.string(), "the title of the entity's page"),
    column("section", pa.string(), "the section of that page that is meant, empty for the whole page"),
    column("alias_1", pa.string(), "a surface of the entity"),
    column("alias_2", pa.string(), "another one, not more frequent; ties by UTF-8 bytes"),
    column("count_1", pa.int64(), "mentions of the entity by the first"),
    column("count_2", pa.int64(), "mentions of the entity by the second"),
)

_Place = tuple[int, bytes, int, bytes]


def _places(table: pa.Table) -> list[_Place]:
    """The sort key of each pair of an entity: descending frequency of each alias, ties by UTF-8 bytes.

    The pair "whale" (12), "cetacean" (3) has the key (-12, b"whale", -3, b"cetacean").
    """
    columns = []
    for side in (1, 2):
        columns.append((-table.column(f"count_{side}").to_numpy()).tolist())
        columns.append([each.encode() for each in table.column(f"alias_{side}").to_pylist()])
    return list(zip(*columns, strict=True))


def _rules(table: pa.Table, least: int) -> Iterator[Broken]:
    show = _show_row(table)
    pairs = list(zip(*(table.column(f"alias_{side}").to_pylist() for side in (1, 2)), strict=True))
    untidy = where([any(not each or each != each.strip() for each in pair) for pair in pairs])
    yield Broken("an alias is empty or begins or ends with a blank", untidy, show)
    alike = where([one.casefold() == other.casefold() for one, other in pairs])
    yield Broken("the aliases differ only in case", alike, show)
    rare = where(table.column("count_2").to_numpy() < least)
    yield Broken(f"an alias has fewer than {least:,} mentions", rare, show)
    swapped = where([place[:2] > place[2:] for place in _places(table)])
    yield Broken("the second alias is more frequent than the first (ties by UTF-8 bytes)", swapped, show)
    yield is_empty(table, "target_title", show, "target_title")
    yield is_no_wikidata_id(table.column("entity_id"), "entity_id", show)


def _show_row(table: pa.Table) -> Show:
    def show(row: int) -> str:
        found = {name: table.column(name)[row].as_py() for name in table.column_names}
        aliases = (f"{quoted(found[f'alias_{side}'])} ({found[f'count_{side}']:,})" for side in (1, 2))
        return f"{', '.join(aliases)} of {quoted(found['entity_id'] or found['target_title'])}"

    return show


def _owners(table: pa.Table) -> list[str]:
    """The entity of each row. One without an id may come again: two sources may have pages of the same title."""
    names = zip(*(table.column(name).to_pylist() for name in ("entity_id", "target_title", "section")), strict=True)
    return [f"{entity_id or chr(0) + title}#{section}" for entity_id, title, section in names]


def _known_entities(table: pa.Table) -> list[pa.Array]:
    """The Wikidata id of each row, null if it is unknown."""
    entity_id = table.column("entity_id")
    entity = pc.binary_join_element_wise(entity_id, table.column("section"), "#")
    return [pc.if_else(pc.equal(entity_id, ""), pa.scalar(None, pa.string()), entity)]


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    least = int(manifest.options["min_count"])
    return (
        Unique("the entity has pairs in another shard", "entity_id", by="shard", of=_known_entities),
        Rows(lambda table: _rules(table, least)),
        SideBySide(
            "the entity's pairs are not side by side",
            "the pair is not after the entity's pair before it, by the frequency of its aliases and UTF-8 bytes",
            _owners,
            # A pair ends just after its own key, so the same pair again is not after it.
            lambda table: ((places := _places(table)), [(*place, True) for place in places]),
            _show_row,
        ),
    )


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    aliases = " / ".join(cut(row[f"alias_{side}"]) for side in (1, 2))
    mentions = " and ".join(f"{row[f'count_{side}']:,}" for side in (1, 2))
    return Shown(aliases, "aliases", remarks=(("mentions", mentions), ("entity", entity(row))))


KIND = Kind(
    schema=ALIAS_PAIRS,
    rows="aliases",
    about="Pairs of surfaces by which one entity is mentioned, with the number of mentions by each.",
    command="mine_mentions",
    show=show,
    checks=_checks,
    options={"min_count": int},
    measures=(
        words("Length of an alias", "alias_1", "alias_2"),
        likeness("How the aliases differ", "pairs", "alias_1", "alias_2"),
        value("Mentions by the more frequent alias", "mentions", "count_1"),
        value("Mentions by the other alias", "mentions", "count_2"),
        rows_by_rank("Pairs of an entity against its rank", "pairs", "entity_id", "target_title"),
    ),
    tasks=("sentence-similarity",),
    alike=Alike("alias_1", "alias_2", weight="count_2"),
    texts=("alias_1", "alias_2"),
    may_be_empty=True,
    filters={"case_only": "a pair of aliases that differ in case only"},
)
