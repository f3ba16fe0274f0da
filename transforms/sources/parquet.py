"""Parquet with a text column, as `wikimedia/wikipedia` on the Hugging Face hub comes (id, url, title, text).

Ids: "<file name>:<row>", the row counted in the file from 0. Title, address and licence are taken where a column has a
usual name, the collection as for JSON lines. Splits between row groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from transforms.sources.books import empty_file, too_large
from transforms.sources.formats import InputFile, ReadOptions, Segment
from transforms.sources.items import Corrupt, Filtered, Item, Record, items_of
from transforms.sources.jsonlines import columns_remedy, document_of, provenance_of
from transforms.sources.streams import REMEDY

MAGIC = b"PAR1"
BATCH_BYTES = 1 << 24
_BROKEN = (pa.ArrowException, OSError, ValueError, IndexError, OverflowError)
PROVENANCE_COLUMNS = ("title", "url", "source_url", "licence", "license", "pile_set_name", "meta", "metadata")

_PARQUET_FILE = re.compile(r"\.(?:parquet|pq)$", re.IGNORECASE)


class Parquet:
    """A row is a document."""

    name = "parquet"
    version = 1

    def recognises(self, path: str, head: bytes) -> bool:
        return head.startswith(MAGIC) if head else _PARQUET_FILE.search(path) is not None

    def split(self, filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
        try:
            with _open(filesystem, file) as parquet:
                starts = _row_group_starts(parquet)
        except _BROKEN:
            return [Segment(0, file.size)]  # `read` says what is wrong with it
        cuts = [0]
        for start in starts[1:]:
            if start - cuts[-1] >= target_bytes:
                cuts.append(start)
        return [Segment(start, end) for start, end in zip(cuts, [*cuts[1:], file.size], strict=True)]

    def read(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, *, options: ReadOptions, skip: int = 0
    ) -> Iterator[Item]:
        return items_of(self._records(filesystem, file, segment, options), skip=skip)

    def _records(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, options: ReadOptions
    ) -> Iterator[Record]:
        if not file.size:
            yield empty_file(file)
            return
        try:
            parquet = _open(filesystem, file)
            starts = _row_group_starts(parquet) if parquet.schema_arrow.names else []
        except _BROKEN as error:
            yield _damaged(file, file.size, "has no readable footer", error)
            return
        with parquet:
            column = options.text_column
            names = parquet.schema_arrow.names
            kind = parquet.schema_arrow.field(column).type if names.count(column) == 1 else None
            if kind is None or not _is_text(kind):
                what = "has no" if kind is None else f"holds {kind}, not text, in its"
                message = f"{file.path!r} {what} column {column!r}; {columns_remedy(names)}"
                yield Corrupt("bad_record", 0, message)
                return
            columns = [column, *(name for name in PROVENANCE_COLUMNS if name in names and name != column)]
            row = 0
            for group, start in enumerate(starts):
                rows = parquet.metadata.row_group(group).num_rows
                if segment.start <= start < segment.end:
                    yield from _row_group(parquet, group, columns, row, start, file, options)
                row += rows


PARQUET = Parquet()


def _open(filesystem: fs.FileSystem, file: InputFile) -> pq.ParquetFile:
    # pre_buffer would hold whole row groups in memory.
    source = filesystem.open_input_file(file.path)
    return pq.ParquetFile(source, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True)


def _row_group_starts(parquet: pq.ParquetFile) -> list[int]:
    """Where each row group begins in the file; the first counts as 0, so that some segment has it."""
    starts = []
    for group in range(parquet.num_row_groups):
        column = parquet.metadata.row_group(group).column(0)
        dictionary = column.dictionary_page_offset
        starts.append(min(column.data_page_offset, dictionary if dictionary else column.data_page_offset))
    starts[:1] = [0] * len(starts[:1])
    if starts != sorted(starts):
        raise ValueError("its row groups do not follow each other")
    return starts


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _row_group(
    parquet: pq.ParquetFile,
    group: int,
    columns: list[str],
    row: int,
    start: int,
    file: InputFile,
    options: ReadOptions,
) -> Iterator[Record]:
    metadata = parquet.metadata.row_group(group)
    row_bytes = max(1, metadata.total_byte_size // max(1, metadata.num_rows))
    batch_rows = max(1, min(1024, BATCH_BYTES // row_bytes))
    end = row + metadata.num_rows
    try:
        for batch in parquet.iter_batches(batch_rows, row_groups=[group], columns=columns, use_threads=False):
            for index in range(batch.num_rows):
                yield _record(batch, index, row, start, file, options)
                row += 1
        if row != end:
            raise ValueError(f"{end - row:,} of its rows are missing")
    except _BROKEN as error:
        yield _damaged(file, start, f"is damaged in row group {group}, in or behind row {row:,},", error)


def _record(batch: pa.RecordBatch, index: int, row: int, start: int, file: InputFile, options: ReadOptions) -> Record:
    try:
        record = {name: batch.column(name)[index].as_py() for name in batch.schema.names}
    except UnicodeDecodeError as error:
        message = f"{file.path!r}, row {row:,}, is not UTF-8 ({error}), in the row group at byte {start:,}; {REMEDY}"
        return Corrupt("bad_utf8", start, message)
    text = record[options.text_column]
    if text is None:
        return Filtered("no_text")
    if len(text) > options.max_document_bytes or len(text.encode()) > options.max_document_bytes:
        return too_large(f"row {row}", text[:200].encode(), options)
    return partial(document_of, text, provenance_of(record), file=file, position=row)


def _damaged(file: InputFile, byte: int, what: str, error: Exception) -> Corrupt:
    detail = " ".join(str(error).split())[:300]
    return Corrupt("corrupt", byte, f"{file.path!r} {what} at byte {byte:,} ({detail}); {REMEDY}")
