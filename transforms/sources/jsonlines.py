"""JSON lines: one object a line with its text in a column, the format of The Pile, C4 and Dolma.

Ids: "<file name>:<byte>", where the line begins in the decompressed file; the same for any split of the file. If a
record names the collection it comes from (The Pile's `meta.pile_set_name`), that is its source and a prefix of its id;
otherwise the source is the file's name. Title, address and licence are taken from keys with a usual name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from pyarrow import fs

from transforms.sources.books import book_of, empty_file, not_utf8, too_large
from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Corrupt, Document, Filtered, Item, Record, Rejected, items_of
from transforms.sources.lines import Line, is_plain, lines, split_lines
from transforms.sources.options import ReadOptions
from transforms.sources.streams import REMEDY, Damaged
from transforms.sources.text import clean


class Provenance(NamedTuple):
    """What a record says about its origin; empty where it says nothing."""

    title: str
    url: str
    licence: str
    collection: str


LONGEST_FIELD = 2_000  # characters; a longer string is not taken for a title, address or name
_MEASURED_FROM = 1 << 22  # bytes of a line
MAX_VALUES = 1_000_000
"""The most values of one record: 3 bytes of JSON can become 70 bytes of memory."""

_NAMES = (("title",), ("url", "source_url"), ("licence", "license"), ("pile_set_name",))


def provenance_of(record: Mapping[str, object]) -> Provenance:
    """The provenance of a record, from its own keys or else from its `meta` or `metadata`."""
    inner = (record.get("meta"), record.get("metadata"))
    places = [record, *(place for place in inner if isinstance(place, Mapping))]
    found = []
    for names in _NAMES:
        values = (place.get(name) for name in names for place in places)
        value = next((each for each in values if isinstance(each, str) and len(each) <= LONGEST_FIELD), "")
        found.append(" ".join(clean(value).split()))
    return Provenance(*found)


def document_of(text: str, provenance: Provenance, *, file: InputFile, position: int) -> Document | Filtered:
    """The document of one record; `position` identifies the record in its file."""
    book = book_of(text, name="")
    if not book.text:
        return Filtered("no_text")
    return Document(
        doc_id=f"{provenance.collection}:{file.name}:{position}"
        if provenance.collection
        else f"{file.name}:{position}",
        source=provenance.collection or file.name,
        title=provenance.title or book.title,
        url=provenance.url or book.url,
        licence=provenance.licence or book.licence,
        text=book.text,
    )


_JSON_LINES_FILE = re.compile(r"\.(?:jsonl|json|ndjson)(?:\.(?:gz|bz2|zst|zstd))?$", re.IGNORECASE)


class JsonLines:
    """A line is a document."""

    name = "jsonl"
    version = 3

    def recognises(self, path: str, head: bytes) -> bool:
        if not _JSON_LINES_FILE.search(path):
            return False
        first, newline, _ = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\0 \t\r\n").partition(b"\n")
        if not newline:  # the beginning of a long line, or an empty file
            return not first or re.match(rb'\{\s*"', first) is not None
        try:
            return isinstance(json.loads(first), dict)
        except (ValueError, RecursionError):
            # A damaged line, which the reader reports, unless it begins one JSON value over several lines.
            return re.match(rb'\{\s*".+[^{\[,\s]\s*$', first) is not None

    def split(self, filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
        return split_lines(filesystem, file, target_bytes=target_bytes)

    def read(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, *, options: ReadOptions, skip: int = 0
    ) -> Iterator[Item]:
        return items_of(self._records(filesystem, file, segment, options), skip=skip)

    def _records(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, options: ReadOptions
    ) -> Iterator[Record]:
        def too_long(line: Line) -> Item:
            return too_large(f"byte {line.start}", line.data, options)

        parse = partial(_item, file=file, options=options)
        return line_records(filesystem, file, segment, limit=options.max_document_bytes, parse=parse, too_long=too_long)


JSON_LINES = JsonLines()


T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class LineParser(Protocol[T_co]):
    """Makes an item from a line; `where` names it in messages, `exact` means that its bytes are bytes of the file."""

    def __call__(self, line: Line, where: str, *, exact: bool) -> T_co: ...


def line_records(
    filesystem: fs.FileSystem,
    file: InputFile,
    segment: Segment,
    *,
    limit: int,
    parse: LineParser[T],
    too_long: Callable[[Line], T],
) -> Iterator[T | Corrupt | Callable[[], T]]:
    """A record for each line that begins in a segment and is not blank; `limit` is in bytes."""
    if not file.size:
        yield empty_file(file)
        return
    whole = segment == Segment(0, file.size)
    try:
        within = None if whole else segment.end
        exact = is_plain(filesystem, file.path)
        for line in lines(filesystem, file.path, start=segment.start, limit=limit, within=within):
            if line.start >= segment.end and not whole:
                break
            if line.too_long:
                yield too_long(line)
            elif line.data.strip():
                yield partial(parse, line, f"{file.path!r}, the line at byte {line.start:,}", exact=exact)
    except Damaged as damage:
        yield Corrupt(damage.reason, damage.byte, damage.message)


def object_of(line: Line, where: str, *, exact: bool, remedy: str) -> dict[str, object] | Corrupt | Rejected:
    """The JSON object in a line, or what is wrong with it; `remedy` says what to write instead."""
    start, stored, data, _ = line
    try:
        text = (data.removeprefix(b"\xef\xbb\xbf") if start == 0 else data).decode()
    except UnicodeDecodeError as error:
        return not_utf8(where, stored + error.start if exact else stored, error)
    if len(data) > _MEASURED_FROM and _values(text) > MAX_VALUES:
        return Rejected("record_too_large", f"byte {start}", text[:200], f"more than {MAX_VALUES:,} values")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        byte = len(text[: error.pos].encode()) if isinstance(error, json.JSONDecodeError) else 0
        message = f"{where} is not JSON ({error}); {REMEDY}"
        return Corrupt("bad_record", stored + byte if exact else stored, message, text[:200])
    if not isinstance(record, dict):
        return Corrupt("bad_record", stored, f"{where} is not a JSON object; {remedy}", text[:200])
    return record


def _item(line: Line, where: str, *, file: InputFile, options: ReadOptions, exact: bool) -> Item:
    column = options.text_column
    remedy = f"write one object a line, with its text in {column!r}, or pass --on-corrupt=skip"
    record = object_of(line, where, exact=exact, remedy=remedy)
    if not isinstance(record, dict):
        return record
    excerpt = line.data[:800].decode("utf-8", "replace").removeprefix("\ufeff")[:200]
    value = record.get(column, "")
    if value is None:
        return Filtered("no_text")
    if column not in record or not isinstance(value, str):
        texts = [name for name, each in record.items() if isinstance(each, str) and name != column]
        what = f"holds {_kind_of(value)}, not text, in its field" if column in record else "has no"
        message = f"{where} {what} {column!r}; {column_remedy(column, texts)}"
        return Corrupt("bad_record", line.stored, message, excerpt)
    return document_of(value, provenance_of(record), file=file, position=line.start)


def _values(text: str) -> int:
    """The approximate number of values in the JSON; stops counting above MAX_VALUES, and where the JSON is damaged."""
    values = at = 0
    while values <= MAX_VALUES:
        quote = text.find('"', at)
        end = quote if quote >= 0 else len(text)
        values += 1 + sum(text.count(mark, at, end) for mark in ",[{")
        if quote < 0:
            break
        try:
            at = json.decoder.scanstring(text, quote + 1, False)[1]  # type: ignore[attr-defined]
        except ValueError:
            break
    return values


def _kind_of(value: object) -> str:
    """What a JSON value is called."""
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds[type(value)]


def column_remedy(column: str, others: Sequence[str]) -> str:
    """What to do about a column that is missing or holds no text; `others` are those that do hold text."""
    shown = ", ".join(repr(name[:100]) for name in others[:20])
    write = (
        f"name its text with --text-column (it has {shown})" if shown else f"write its text as a string in {column!r}"
    )
    return f"{write}, or pass --on-corrupt=skip"
