"""Parquet with a text column, such as `wikimedia/wikipedia` on the Hugging Face hub (id, url, title, text).

Ids: "<file name>:<row>", the row counted in the file from 0. Title, address and licence are taken from columns with a
usual name, the collection as for JSON lines. Files are split between row groups.

Rows are read in batches of about BATCH_BYTES, whatever the size of a row group. A column whose pages all refer to a
dictionary is read as one, so that a value shared by a million rows is in memory once; other pages are not, because
Arrow would gather their values in it. Pages are measured before they are read, because the sizes in the footer cannot
be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from transforms.activity import note_read
from transforms.sources.books import empty_file, too_large
from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Corrupt, Filtered, Item, Record, items_of
from transforms.sources.jsonlines import LONGEST_FIELD, column_remedy, document_of, provenance_of
from transforms.sources.options import ReadOptions
from transforms.sources.streams import REMEDY

MAGIC = b"PAR1"
BATCH_BYTES = 1 << 24
MIN_LARGEST_PAGE = 1 << 26
PAGE_FACTOR = 8
"""The most bytes of a page, or this many times --max-document-bytes if more: writers put up to 1,024 documents into a
page, and Arrow has a page in memory as a whole."""
_BROKEN = (pa.ArrowException, OSError, ValueError, IndexError, OverflowError)
PROVENANCE_COLUMNS = ("title", "url", "source_url", "licence", "license", "pile_set_name")
_NESTED = ("meta", "metadata")

_PARQUET_FILE = re.compile(r"\.(?:parquet|pq)$", re.IGNORECASE)


class Parquet:
    """A row is a document."""

    name = "parquet"
    version = 2

    def recognises(self, path: str, head: bytes) -> bool:
        return head.startswith(MAGIC) if head else _PARQUET_FILE.search(path) is not None

    def split(self, filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
        try:
            with _open(filesystem, file) as parquet:
                starts = _row_group_starts(parquet)
        except _BROKEN:
            return [Segment(0, file.size)]  # `read` reports what is wrong with it
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
            schema = parquet.schema_arrow
            if not _holds_text(schema, column):
                if segment.start == 0:  # once for a file
                    yield Corrupt("bad_record", 0, f"{file.path!r} {_without_text(schema, column)}")
                return
            columns = [column, *_provenance_columns(schema, but=column)]
            row = 0
            for group, start in enumerate(starts):
                if segment.start <= start < segment.end:
                    yield from _row_group(filesystem, parquet.metadata, group, columns, row, start, file, options)
                row += parquet.metadata.row_group(group).num_rows


PARQUET = Parquet()


def _open(
    filesystem: fs.FileSystem,
    file: InputFile,
    *,
    dictionaries: list[str] | None = None,
    metadata: pq.FileMetaData | None = None,
) -> pq.ParquetFile:
    source = filesystem.open_input_file(file.path)
    return pq.ParquetFile(
        source,
        metadata=metadata,
        read_dictionary=dictionaries,
        pre_buffer=False,  # otherwise whole row groups are in memory
        buffer_size=1 << 20,
        page_checksum_verification=True,
    )


def _row_group_starts(parquet: pq.ParquetFile) -> list[int]:
    """Where each row group begins in the file; 0 for the first, so that a segment holds it."""
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


def _provenance_columns(schema: pa.Schema, *, but: str) -> list[str]:
    """The paths of the text columns that may give the provenance of a row."""
    found = [name for name in PROVENANCE_COLUMNS if name != but and _holds_text(schema, name)]
    for outer in _NESTED:
        if schema.names.count(outer) == 1 and pa.types.is_struct(inner := schema.field(outer).type):
            found += [f"{outer}.{name}" for name in PROVENANCE_COLUMNS if _holds_text(pa.schema(list(inner)), name)]
    return found


def _without_text(schema: pa.Schema, column: str) -> str:
    """What is wrong with the column of the text, and what to do."""
    texts = [name for name in schema.names if _holds_text(schema, name)]
    found = [str(schema.field(index).type) for index in schema.get_all_field_indices(column)]
    what = {0: "has no", 1: f"holds {''.join(found)[:100]}, not text, in its"}.get(
        len(found), f"has {len(found)} times the"
    )
    return f"{what} column {column!r}; {column_remedy(column, texts)}"


def _holds_text(schema: pa.Schema, name: str) -> bool:
    return schema.names.count(name) == 1 and _is_text(schema.field(name).type)


def _row_group(
    filesystem: fs.FileSystem,
    footer: pq.FileMetaData,
    group: int,
    columns: list[str],
    row: int,
    start: int,
    file: InputFile,
    options: ReadOptions,
) -> Iterator[Record]:
    metadata = footer.row_group(group)
    first, end = row, row + metadata.num_rows
    limit = max(MIN_LARGEST_PAGE, PAGE_FACTOR * options.max_document_bytes)
    try:
        chunks = [metadata.column(index) for index in range(metadata.num_columns)]
        stored = sum(each.total_compressed_size for each in chunks)
        with filesystem.open_input_file(file.path) as source:
            pages = {each.path_in_schema: measure(source, each) for each in chunks if each.path_in_schema in columns}
        if (page := max(each.largest for each in pages.values())) > limit:
            what = f"has a page of {page:,} bytes in the row group at byte {start:,}, more than {limit:,}"
            remedy = f"write smaller pages, raise --max-document-bytes (to {-(-page // PAGE_FACTOR):,})"
            yield Corrupt("corrupt", start, f"{file.path!r} {what}; {remedy} or pass --on-corrupt=skip")
            return
        shared = [path for path, each in pages.items() if each.are_shared]
        batch_rows = max(1, min(1024, int(BATCH_BYTES / max(1, *(each.row_bytes for each in pages.values())))))
        with _open(filesystem, file, dictionaries=shared, metadata=footer) as parquet:
            for batch in parquet.iter_batches(batch_rows, row_groups=[group], columns=columns, use_threads=False):
                note_read(start + stored * (row - first) // metadata.num_rows)
                leaves = [_Leaf(path, batch) for path in columns]
                for index in range(batch.num_rows):
                    yield _record(leaves, index, row, start, file, options)
                    row += 1
        if row != end:
            raise ValueError(f"{end - row:,} of its rows are missing")
    except _BROKEN as error:
        yield _damaged(file, start, f"is damaged in row group {group}, in or behind row {row:,},", error)


class _Leaf:
    """A text column in a batch, with the bytes of each text (0 for null); texts of a dictionary are not copied."""

    def __init__(self, path: str, batch: pa.RecordBatch) -> None:
        self.outer, _, self.name = path.rpartition(".") if path not in batch.schema.names else ("", "", path)
        column = batch.column(self.outer or self.name)
        if self.outer:
            names = [field.name for field in column.type]
            column = column.flatten()[names.index(self.name)]
        self.column = column
        dictionary = pa.types.is_dictionary(column.type)
        lengths = pc.binary_length(column.dictionary if dictionary else column)
        self.bytes = (lengths.take(column.indices) if dictionary else lengths).fill_null(0).to_pylist()


def _record(leaves: list[_Leaf], index: int, row: int, start: int, file: InputFile, options: ReadOptions) -> Record:
    text = leaves[0]
    if text.bytes[index] > options.max_document_bytes:
        return too_large(f"row {row}", b"", options)
    record: dict[str, Any] = {}
    try:
        for leaf in leaves[1:]:
            if leaf.bytes[index] <= 4 * LONGEST_FIELD:  # too long for a title or an address
                place = record.setdefault(leaf.outer, {}) if leaf.outer else record
                place[leaf.name] = leaf.column[index].as_py()
        value = text.column[index].as_py()
    except UnicodeDecodeError as error:
        message = f"{file.path!r}, row {row:,}, is not UTF-8 ({error}), in the row group at byte {start:,}; {REMEDY}"
        return Corrupt("bad_utf8", start, message)
    if not value:
        return Filtered("no_text")
    return partial(document_of, value, provenance_of(record), file=file, position=row)


# ---- Pages

_HEADER_BYTES = 1 << 16  # of a page's header, with the statistics in it
_TYPE, _UNCOMPRESSED, _COMPRESSED = (1,), (2,), (3,)  # the fields of PageHeader in parquet.thrift
_DATA_PAGES = {0: ((5, 1), (5, 2)), 3: ((8, 1), (8, 4))}  # by type: the number of values, and their encoding
_IN_DICTIONARY = (2, 8)
_DELTA_BYTE_ARRAY = 7  # a value repeats the beginning of the one before it


class Pages(NamedTuple):
    """What the headers of a column's pages in a row group say.

    `row_bytes`: n rows take at most n times as many bytes, plus the two pages that they begin and end in. `are_shared`:
    all values are in a dictionary, which is read as one; then its size does not count.
    """

    largest: int
    row_bytes: float
    are_shared: bool


def measure(source: pa.NativeFile, chunk: pq.ColumnChunkMetaData) -> Pages:
    """The pages of a column in a row group, by their headers: Arrow allocates the memory that those claim."""
    at = min(filter(None, (chunk.data_page_offset, chunk.dictionary_page_offset)), default=0)
    end = at + chunk.total_compressed_size
    dictionary = largest = 0
    average = 0.0
    encodings: set[int] = set()
    while at < end:
        source.seek(at)
        header = source.read(min(_HEADER_BYTES, end - at))
        try:
            fields, size = thrift_integers(header)
        except IndexError:
            raise ValueError(f"the header of its page at byte {at:,} has no end") from None
        uncompressed, compressed = fields.get(_UNCOMPRESSED, -1), fields.get(_COMPRESSED, -1)
        if uncompressed < 0 or compressed < 0:
            raise ValueError(f"the header of its page at byte {at:,} is damaged")
        largest = max(largest, uncompressed)
        if told := _DATA_PAGES.get(fields.get(_TYPE, -1)):
            values, encoding = (fields.get(each, 0) for each in told)
            encodings.add(encoding)
            average = max(average, uncompressed / (1 if encoding == _DELTA_BYTE_ARRAY else max(values, 1)))
        else:
            dictionary = max(dictionary, uncompressed)
        at += size + compressed
    are_shared = encodings <= {*_IN_DICTIONARY}
    in_both = not are_shared and not encodings.isdisjoint(_IN_DICTIONARY)
    return Pages(largest, max(average, dictionary if in_both else 0), are_shared)


def thrift_integers(data: bytes) -> tuple[dict[tuple[int, ...], int], int]:
    """The integers in a struct of Thrift's compact protocol, by the field numbers that lead to them, and its length.

    A field is a byte of (step from the last field's number, type) and its value; a byte 0 ends a struct. An integer has
    7 bits a byte, the last one below 0x80, and is zigzag-encoded: 0 1 2 3 4 are 0 -1 1 -2 2. Here field 1 is the
    integer 3 (type 5) and field 3 a struct (type 12), whose field 1 is the integer -1. Raises IndexError if the struct
    does not end in `data`, ValueError if it is not a struct.

    >>> thrift_integers(bytes([0x15, 6, 0x2C, 0x15, 1, 0, 0]))
    ({(1,): 3, (3, 1): -1}, 7)
    """
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number without an end")

    integers: dict[tuple[int, ...], int] = {}
    path = [0]  # the number of the last field in each open struct
    while path:
        byte = data[at]
        at += 1
        if not byte:
            path.pop()
            continue
        kind, step = byte & 15, byte >> 4
        path[-1] = path[-1] + step if step else _zigzag(number())
        if kind in (4, 5, 6):
            integers[tuple(path)] = _zigzag(number())
        elif kind == 8:
            length = number()
            at += length
        elif kind == 12:
            path.append(0)
        elif kind not in (1, 2):  # page headers have no lists, maps or doubles
            raise ValueError(f"a field of type {kind}")
        if at > len(data) or len(path) > 16:
            raise IndexError
    return integers, at


def _zigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _damaged(file: InputFile, byte: int, what: str, error: Exception) -> Corrupt:
    detail = " ".join(str(error).split())[:300]
    return Corrupt("corrupt", byte, f"{file.path!r} {what} at byte {byte:,} ({detail}); {REMEDY}")
