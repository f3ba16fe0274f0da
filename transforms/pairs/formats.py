"""Files of pairs of phrases: PPDB, PAWS, JSON and tab-separated ones, as a row for each pair.

    PPDB    LHS ||| phrase ||| paraphrase ||| NAME=VALUE NAME=VALUE ... ||| alignment [||| entailment], a line a pair;
            the last field is in PPDB 2.0 only
    PAWS    id, sentence1, sentence2, label (1 or 0) with tabs between, after a line with these names
    JSON    one array of [phrase, other, "pos" or "neg"] or [phrase, other, "pos" or "neg", score or null]
    TSV     phrase, paraphrase, and if known score and relation, with tabs between; a first line of these names is
            no pair

Broken lines are rejects. A line of PPDB whose phrase has a gap ([NP,1]) is a pattern, not a phrase.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeAlias

from pyarrow import fs

from transforms.pairs.options import PAIR_FORMAT_OBJECTS
from transforms.sources.books import empty_file
from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Corrupt, Filtered, Rejected
from transforms.sources.jsonlines import line_records
from transforms.sources.lines import Line, split_lines
from transforms.sources.streams import Damaged, chunks
from transforms.sources.text import clean

MAX_LINE = 1 << 16
MAX_JSON = 1 << 28
"""Bytes of a line, and of a JSON file, which is read at once."""


class PairRow(NamedTuple):
    """A pair as a file has it; `label`: whether the file says that they mean the same, or only lists such pairs."""

    phrase: str
    paraphrase: str
    score: float | None = None
    relation: str | None = None
    label: bool = True


PairItem: TypeAlias = PairRow | Filtered | Rejected | Corrupt


class PairFormat(Protocol):
    """Like `transforms.sources.formats.Format`, for pairs."""

    name: str
    version: int

    def recognises(self, path: str, head: bytes) -> bool: ...

    def split(self, filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]: ...

    def read(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, *, score: str, skip: int = 0
    ) -> Iterator[PairItem]:
        """An item for each line or row that begins in the segment, less the first `skip`.

        `score` is the feature of PPDB that is the score.
        """
        ...


class BadPair(ValueError):
    """A line that is no pair; says why."""


def tidy_phrase(text: str) -> str:
    """A phrase with its characters in one form, and single spaces: `clean` of transforms/sources/text.py."""
    return " ".join(clean(text).split())


# ---- Lines


_GAP = re.compile(r"\[[^\[\] ]+,\d+\]")


def ppdb_pair(text: str, score: str) -> PairRow | Filtered:
    """The pair of a line of PPDB 1.0 or 2.0. Raises BadPair.

    >>> ppdb_pair("[NP] ||| big car ||| large car ||| PPDB2.0Score=4.5 AGigaSim=NA ||| 0-0 1-1 ||| Equivalence",
    ...           "PPDB2.0Score")
    PairRow(phrase='big car', paraphrase='large car', score=4.5, relation='Equivalence', label=True)
    """
    fields = text.split("|||")
    if not 5 <= len(fields) <= 6:
        raise BadPair(f"{len(fields)} fields between |||, not 5 or 6")
    if _GAP.search(fields[1]) or _GAP.search(fields[2]):
        return Filtered("pattern")
    at = f" {fields[3]} ".find(f" {score}=")
    value = fields[3][at + len(score) + 1 :].split(maxsplit=1)[0] if at >= 0 else "NA"
    relation = fields[5].strip() if len(fields) == 6 else ""
    return _row(fields[1], fields[2], value, relation)


def tsv_pair(text: str, score: str) -> PairRow | Filtered:
    """The pair of a line with tabs. Raises BadPair.

    >>> tsv_pair("big car\\tlarge car\\t0.5", "")
    PairRow(phrase='big car', paraphrase='large car', score=0.5, relation=None, label=True)
    """
    fields = text.split("\t")
    if not 2 <= len(fields) <= 4:
        raise BadPair(f"{len(fields)} fields between tabs, not 2 to 4")
    if fields[:2] == ["phrase", "paraphrase"]:
        return Filtered("heading")
    fields += [""] * (4 - len(fields))
    return _row(*fields)


def paws_pair(text: str, score: str) -> PairRow | Filtered:
    """The pair of a line of PAWS. Raises BadPair.

    >>> paws_pair("7\\tA good man is a bad one .\\tA bad man is a good one .\\t0", "")
    PairRow(phrase='A good man is a bad one .', paraphrase='A bad man is a good one .', score=None, relation=None, \
label=False)
    """
    fields = text.split("\t")
    if fields == _PAWS_NAMES:
        return Filtered("heading")
    if len(fields) != 4:
        raise BadPair(f"{len(fields)} fields between tabs, not 4")
    if fields[3] not in ("0", "1"):
        raise BadPair(f"the label is {fields[3][:20]!r}, not 0 or 1")
    return _row(fields[1], fields[2])._replace(label=fields[3] == "1")


_PAWS_NAMES = ["id", "sentence1", "sentence2", "label"]


def _row(phrase: str, other: str, score: str = "", relation: str = "") -> PairRow:
    found = PairRow(tidy_phrase(phrase), tidy_phrase(other), _number(score.strip()), relation.strip() or None)
    if not found.phrase or not found.paraphrase:
        raise BadPair("a phrase is empty")
    return found


def _number(text: str) -> float | None:
    """The number; None for the NA of PPDB, or an empty field. Raises BadPair."""
    if text in ("", "NA", "null"):
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not abs(found) < 3e38:  # a float32
        raise BadPair(f"the score is {text[:20]!r}, not a number")
    return found


class LinePairs:
    """A pair a line."""

    version = 1

    def __init__(self, name: str, begins: re.Pattern[bytes], parse: Callable[[str, str], PairRow | Filtered]) -> None:
        self.name, self._begins, self._parse = name, begins, parse

    def recognises(self, path: str, head: bytes) -> bool:
        """By the first line."""
        return self._begins.match(head.removeprefix(b"\xef\xbb\xbf")) is not None

    def split(self, filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
        return split_lines(filesystem, file, target_bytes=target_bytes)

    def read(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, *, score: str, skip: int = 0
    ) -> Iterator[PairItem]:
        def parse(line: Line, where: str, *, exact: bool) -> PairItem:
            text = line.data.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r\n")
            try:
                if "\ufffd" in text:
                    line.data.decode()
                return self._parse(text, score)
            except (BadPair, UnicodeDecodeError) as error:
                return Rejected("bad_pair", f"byte {line.start}", text[:200], str(error))

        def too_long(line: Line) -> PairItem:
            excerpt = line.data[:200].decode("utf-8", "replace")
            return Rejected("bad_pair", f"byte {line.start}", excerpt, f"more than {MAX_LINE:,} bytes")

        records = line_records(filesystem, file, segment, limit=MAX_LINE, parse=parse, too_long=too_long)
        for record in itertools.islice(records, skip, None):
            yield record() if callable(record) else record


class JsonPairs:
    """An array of arrays, the form of the evaluation sets; it is read at once."""

    name = "json"
    version = 1

    def recognises(self, path: str, head: bytes) -> bool:
        return re.match(rb"(?:\xef\xbb\xbf)?\s*\[\s*(?:\[\s*\"|\]|$)", head) is not None

    def split(self, filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
        return [Segment(0, file.size)]

    def read(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, *, score: str, skip: int = 0
    ) -> Iterator[PairItem]:
        if not file.size:
            yield empty_file(file)
            return
        data = b""
        try:
            for _, piece in chunks(filesystem, file.path):
                data += piece
                if len(data) > MAX_JSON:
                    message = f"{file.path!r}: more than {MAX_JSON:,} bytes of JSON; write its pairs as TSV"
                    yield Corrupt("bad_record", 0, message)
                    return
            rows = json.loads(data.decode("utf-8-sig"))
            if not isinstance(rows, list):
                raise ValueError("it is not an array")
        except Damaged as damage:
            yield Corrupt(damage.reason, damage.byte, damage.message)
            return
        except (ValueError, RecursionError) as error:
            message = f"{file.path!r} is no JSON array of pairs ({error}); fetch it again or pass --on-corrupt=skip"
            yield Corrupt("bad_record", 0, message, data[:200].decode("utf-8", "replace"))
            return
        for number, row in enumerate(rows[skip:], start=skip):
            try:
                yield json_pair(row)
            except BadPair as error:
                yield Rejected("bad_pair", f"row {number}", json.dumps(row, ensure_ascii=False)[:200], str(error))


def json_pair(row: object) -> PairRow:
    """The pair of an array. Raises BadPair.

    >>> json_pair(["big car", "large car", "pos", 4.5])
    PairRow(phrase='big car', paraphrase='large car', score=4.5, relation=None, label=True)
    """
    if not isinstance(row, list) or not 3 <= len(row) <= 4 or not all(isinstance(each, str) for each in row[:2]):
        raise BadPair("not [phrase, other, label] or [phrase, other, label, score]")
    label, score = row[2], row[3] if len(row) == 4 else None
    if label not in ("pos", "neg"):
        raise BadPair(f"the label is {str(label)[:20]!r}, not pos or neg")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise BadPair(f"the score is {str(score)[:20]!r}, not a number")
    return _row(row[0], row[1], "" if score is None else repr(score))._replace(label=label == "pos")


PPDB = LinePairs("ppdb", re.compile(rb"[^\n|]*\|\|\|[^\n]*\|\|\|[^\n]*\|\|\|[^\n]*\|\|\|"), ppdb_pair)
PAWS = LinePairs("paws", re.compile(rb"id\tsentence1\tsentence2\tlabel\r?\n"), paws_pair)
TSV = LinePairs("tsv", re.compile(rb"[^\n\t]+\t[^\n\t]+(?:\t[^\n\t]*){0,2}(?:\n|$)"), tsv_pair)
JSON_PAIRS = JsonPairs()

PAIR_FORMATS: dict[str, PairFormat] = {name: globals()[place] for name, place in PAIR_FORMAT_OBJECTS.items()}
