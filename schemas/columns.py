"""Arrow schemas whose columns have descriptions.

Offsets are Unicode code points in the document's `text` unless the name says `token`; ends are exclusive.
Ids: `doc_id` is "<source>:<id in the source>", `sentence_id` is "<doc_id>#<start_char>".
"""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = 2


def column(name: str, type_: pa.DataType, description: str, *, optional: bool = False) -> pa.Field:
    """A column that carries its own description. `optional`: a value may be null, where it is not known."""
    return pa.field(name, type_, nullable=optional, metadata={"description": description})


def term(name: str, description: str, *, optional: bool = False) -> pa.Field:
    """A string column of few distinct values: dictionary-encoded in the file, plain strings in memory.

    Not Arrow's dictionary type: pyarrow cannot read it inside lists, and `datasets` not at all.
    """
    return pa.field(name, pa.string(), nullable=optional, metadata={"description": description, "distinct": "few"})


def struct(*fields: pa.Field) -> pa.DataType:
    return pa.struct(fields)


def list_of(item: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", item, nullable=False))


def schema(record: str, *fields: pa.Field) -> pa.Schema:
    """The Arrow schema of one record type, named and versioned in the file's metadata."""
    metadata = {"phrasemill.record": record, "phrasemill.schema_version": str(SCHEMA_VERSION)}
    return pa.schema(fields, metadata=metadata)


def record_name(arrow_schema: pa.Schema) -> str:
    return (arrow_schema.metadata or {}).get(b"phrasemill.record", b"").decode()


PROVENANCE = (
    term("source", "where the document comes from: a dump's name, a folder's name"),
    column("title", pa.string(), "the document's title, empty if it has none"),
    column("url", pa.string(), "where the document can be read, empty if unknown"),
    term("licence", "the licence of the document's text, 'unknown' if the input does not say"),
)
"""What every record that is made from one document says about it."""

PROVENANCE_NAMES = [each.name for each in PROVENANCE]
