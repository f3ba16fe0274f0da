"""The texts of evaluation sets, whatever their format: every string in a file, and the sentences of its tokens.

    parquet    every string, also in lists and structs
    json       one JSON value, or one after the other (JSON lines): every string in them. A list of strings is also one
               text, because it may be the tokens of a sentence. Where there are "sentences" and "ner" (spans
               [first token, last token, type]), the spans are texts, too
    columns    a token and its tags in each line (CoNLL, SemEval 2013 5(a)): consecutive such lines are a text, and so
               are the spans that tags B-... and I-... mark
    csv        every cell
    lines      every line, or the parts of a line between tabs or bars (a | b, a ||| b)

So no task needs a reader of its own, and nothing is missed because a column has an unknown name. What else is in a file
does no harm: labels and numbers are no texts of several words, and identifiers occur nowhere else.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from schemas.errors import UserError
from schemas.storage.addresses import filesystem_of
from transforms.decontamination.options import EVALUATION_FORMAT_OBJECTS
from transforms.sources.books import is_text, is_utf8
from transforms.sources.streams import REMEDY, SUFFIXES, Damaged, chunks


class EvaluationFile(NamedTuple):
    """A file of an evaluation set."""

    address: str
    name: str
    format: str
    sha256: str


class Found(NamedTuple):
    """A text, and where it is in its file: the number of its line, row or record, from 1."""

    place: int
    text: str


class EvaluationFormat(Protocol):
    """Like `transforms.sources.formats.Format`, for evaluation sets. `read` raises ValueError for another format."""

    name: str
    version: int

    def recognises(self, path: str, head: bytes) -> bool: ...

    def read(self, filesystem: fs.FileSystem, path: str) -> Iterator[Found]: ...


def texts_of(file: EvaluationFile) -> list[Found]:
    """The texts of a file. UserError if it cannot be read."""
    try:
        found = EVALUATION_FORMATS[file.format].read(*filesystem_of(file.address))
        return [Found(place, tidy) for place, text in found if (tidy := text.strip())]
    except Damaged as damage:
        raise UserError(damage.message.removesuffix(REMEDY) + "fetch it again") from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"{file.address}: is not UTF-8 at byte {error.start:,}: convert it (iconv -f WINDOWS-1252 -t UTF-8)"
        ) from None
    except (ValueError, RecursionError, csv.Error, pa.ArrowException) as error:
        raise UserError(
            f"{file.address}: cannot be read as {file.format} ({error}): fetch it again, or write its texts as plain "
            "text, one a line"
        ) from None


def _text(filesystem: fs.FileSystem, path: str) -> str:
    """The whole text of a file; in UTF-8 whatever its encoding and compression are."""
    return b"".join(data for _, data in chunks(filesystem, path)).decode("utf-8-sig")


# ---- Values


def strings(value: Any) -> Iterator[str]:
    """Every string of a JSON value, the strings of each list as one, and the spans of annotated sentences.

    >>> [*strings({"sentences": [["Uganda", "won", "."]], "ner": [[[0, 0, "LOC"]]]})]
    ['Uganda won .', 'Uganda', 'won', '.', 'LOC', 'Uganda']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
        yield from _spans(value)
    elif isinstance(value, list):
        if len(value) > 1 and all(isinstance(each, str) for each in value):
            yield " ".join(value)
        for each in value:
            yield from strings(each)


def _spans(record: dict[str, Any]) -> Iterator[str]:
    """The texts of the spans in "ner", whose tokens count over all "sentences"; the end is inclusive."""
    if not isinstance(record.get("sentences"), list) or not isinstance(record.get("ner"), list):
        return
    tokens = [str(token) for sentence in record["sentences"] for token in sentence]
    for first, last, *_ in (span for spans in record["ner"] for span in spans):
        if not 0 <= first <= last < len(tokens):
            raise ValueError(f"a span [{first}, {last}] of {len(tokens):,} tokens")
        yield " ".join(tokens[first : last + 1])


class Parquet:
    """All columns of Parquet files."""

    name = "parquet"
    version = 1

    def recognises(self, path: str, head: bytes) -> bool:
        return head.startswith(b"PAR1")

    def read(self, filesystem: fs.FileSystem, path: str) -> Iterator[Found]:
        place = 0
        with filesystem.open_input_file(path) as file, pq.ParquetFile(file) as reader:
            for batch in reader.iter_batches():
                for place, row in enumerate(batch.to_pylist(), start=place + 1):  # noqa: B020 - goes on counting
                    yield from (Found(place, text) for text in strings(row))


class Json:
    """JSON values, one after the other; a record is one of them, or an item of the only one if that is an array."""

    name = "json"
    version = 1

    def recognises(self, path: str, head: bytes) -> bool:
        begins = rb'(?:\xef\xbb\xbf)?\s*(?:\[\s*(?:[\[{"\]]|-?\d|true|false|null|$)|\{\s*(?:["}]|$))'
        return re.match(begins, head) is not None

    def read(self, filesystem: fs.FileSystem, path: str) -> Iterator[Found]:
        values = [*_values(_text(filesystem, path))]
        records = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        for place, record in enumerate(records, start=1):
            yield from (Found(place, text) for text in strings(record))


def _values(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        else:
            value, at = decoder.raw_decode(text, at)
            yield value


# ---- Lines

_BIO = re.compile(r"O|[BIESLU]-\S+")
_PART_OF_SPEECH = re.compile(r"[A-Z]{2,4}\$?")
_BARS = re.compile(r"\t|\s\|+\s")
_DOCUMENT = re.compile(r"\.(?:md|markdown|html?|py|sh|tex)$", re.IGNORECASE)
"""Names of files about a set, not of it."""


class Columns:
    """A token with its tags in each line, parted by tabs or single blanks; other lines are single words, or empty."""

    name = "columns"
    version = 1

    def recognises(self, path: str, head: bytes) -> bool:
        whole = head.decode("utf-8", "replace").splitlines()
        lines = [_fields(line) for line in (whole[:-1] or whole) if line.strip()]
        tagged = [fields for fields in lines if len(fields) > 1]
        return bool(tagged) and all(" " not in fields[0] and _is_tag(fields) for fields in lines)

    def read(self, filesystem: fs.FileSystem, path: str) -> Iterator[Found]:
        run: list[list[str]] = []
        for place, line in enumerate([*_text(filesystem, path).split("\n"), ""], start=1):
            fields = _fields(line)
            if len(fields) > 1:
                run.append(fields)
                continue
            yield from (Found(place - len(run), text) for text in _texts(run))
            yield Found(place, line)
            run = []


def _fields(line: str) -> list[str]:
    return re.split(r"\t" if "\t" in line else " ", line.rstrip("\r\n")) if line.strip() else []


def _is_tag(fields: list[str]) -> bool:
    return len(fields) == 1 or (_BIO.fullmatch(fields[-1]) or _PART_OF_SPEECH.fullmatch(fields[-1])) is not None


def _texts(run: list[list[str]]) -> Iterator[str]:
    """The text of lines of columns, and those of their spans.

    >>> [*_texts([["New", "B-LOC"], ["York", "I-LOC"], ["won", "O"]])]
    ['New York won', 'New York']
    """
    if not run:
        return
    yield " ".join(fields[0] for fields in run)
    span: list[str] = []
    for token, tag in ((fields[0], fields[-1]) for fields in [*run, ["", "O"]]):
        if span and not tag.startswith(("I-", "E-", "L-")):
            yield " ".join(span)
            span = []
        if span or tag.startswith(("B-", "S-", "U-", "I-")):
            span.append(token)


class Csv:
    """Comma-separated cells, in quotes if they have a comma."""

    name = "csv"
    version = 1

    def recognises(self, path: str, head: bytes) -> bool:
        return re.search(rf"\.csv(?:{'|'.join(map(re.escape, SUFFIXES))})?$", path, re.IGNORECASE) is not None

    def read(self, filesystem: fs.FileSystem, path: str) -> Iterator[Found]:
        rows = csv.reader(io.StringIO(_text(filesystem, path), newline=""), strict=True)
        for cells in rows:
            yield from (Found(rows.line_num, cell) for cell in cells)


class Lines:
    """A text a line, or several between tabs or bars."""

    name = "lines"
    version = 1

    def recognises(self, path: str, head: bytes) -> bool:
        return not _DOCUMENT.search(path) and is_text(head) and is_utf8(head)

    def read(self, filesystem: fs.FileSystem, path: str) -> Iterator[Found]:
        for place, line in enumerate(_text(filesystem, path).split("\n"), start=1):
            yield from (Found(place, cell) for cell in _BARS.split(line))


PARQUET, JSON, COLUMNS, CSV, LINES = Parquet(), Json(), Columns(), Csv(), Lines()

EVALUATION_FORMATS: dict[str, EvaluationFormat] = {
    name: globals()[place] for name, place in EVALUATION_FORMAT_OBJECTS.items()
}
