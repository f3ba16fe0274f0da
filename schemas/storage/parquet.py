"""Reading and writing Parquet files in a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.commands import typed
from schemas.errors import UserError
from schemas.storage.folder import AtomicFile, Folder


def parquet_file(folder: Folder, name: str, schema: pa.Schema | None = None, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file of a folder. Reading a page that was damaged after it was written raises OSError.

    UserError if the file has other columns than those of `schema`.
    """
    file = folder.filesystem.open_input_file(folder.at(name))
    try:
        reader = pq.ParquetFile(file, page_checksum_verification=True, **options)
    except pa.ArrowInvalid as error:
        if schema is None:
            raise
        raise damaged(folder, name, f"cannot be read ({error})") from error
    if schema is not None and _columns(reader.schema_arrow) != _columns(schema):
        raise damaged(folder, name, "has other columns than its manifest says")
    return reader


def damaged(folder: Folder, name: str, what: str) -> UserError:
    """The error for a file of a dataset that is not as it was written."""
    check = typed("schemas.check", folder)
    return UserError(f"{folder}/{name}: {' '.join(what.split())}; {check} says what is damaged")


def _columns(schema: pa.Schema) -> list[tuple[str, str]]:
    return [(each.name, str(each.type).replace(" not null", "")) for each in schema]


def read_parquet(folder: Folder, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """A whole file, or some of its columns, read by this thread alone: a worker has one core."""
    with parquet_file(folder, name) as reader:
        return reader.read(columns=columns and list(columns), use_threads=False)


def parquet_writer(sink: AtomicFile, arrow_schema: pa.Schema, *, to_keep: bool = True) -> pq.ParquetWriter:
    """A writer that encodes integers as deltas, `term` columns as dictionaries, and vectors byte by byte.

    It compresses with zstd, or with lz4 if the file is not `to_keep`: it is read once and deleted.
    """
    integers = _leaves(arrow_schema, lambda field: pa.types.is_integer(field.type))
    terms = _leaves(arrow_schema, lambda field: (field.metadata or {}).get(b"distinct") == b"few")
    halves = _leaves(arrow_schema, lambda field: pa.types.is_float16(field.type))
    file: IO[bytes] = sink  # type: ignore[assignment]
    return pq.ParquetWriter(
        file,
        arrow_schema,
        compression="zstd" if to_keep else "lz4",
        compression_level=3 if to_keep else None,
        use_dictionary=terms,
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED") | dict.fromkeys(halves, "BYTE_STREAM_SPLIT"),
        write_statistics=False,
        write_page_checksum=True,
        version="2.6",
    )


def _leaves(arrow_schema: pa.Schema, wanted: Callable[[pa.Field], bool]) -> list[str]:
    """The Parquet paths of the leaf columns whose field is wanted."""
    found: list[str] = []

    def visit(path: str, field: pa.Field) -> None:
        if pa.types.is_list(field.type):
            visit(f"{path}.list.element", field.type.value_field)
        elif pa.types.is_struct(field.type):
            for each in field.type:
                visit(f"{path}.{each.name}", each)
        elif wanted(field):
            found.append(path)

    for each in arrow_schema:
        visit(each.name, each)
    return found
