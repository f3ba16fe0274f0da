"""Readable rows, for the end of a run, the report and the card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Row = Mapping[str, Any]

CELL = 160
PASSAGE = 360
_LINE = 100


class Piece(NamedTuple):
    """A piece of a passage. `kind`: "" plain, "mark", "mask", "link" (to `note`), "open" or "close" of a bracket."""

    kind: str
    text: str
    note: str = ""


class Shown(NamedTuple):
    """A readable row: a heading, its origin and URL (empty if unknown), a text with marks, remarks (name, text).

    A row without a text is a line of a table: `origin` names the column of the heading, the remarks are the other
    columns.
    """

    heading: str
    origin: str = ""
    url: str = ""
    pieces: tuple[Piece, ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()

    def lines(self) -> Iterator[str]:
        """Plain text: the heading, then about 200 characters of each text around its first mark, in brackets."""
        if not self.pieces:
            yield f"{self.heading}: {', '.join(f'{name} {text}' for name, text in self.remarks)}"
            return
        yield f"{self.heading} ({self.origin})" if self.origin else self.heading
        line, place = "", -1
        for piece in (*self.pieces, NEW_LINE):
            if piece is NEW_LINE:
                yield f"    {around(line.replace(chr(10), ' '), max(place, 0))}"
                line, place = "", -1
            else:
                place = len(line) if place < 0 and piece.kind == "mark" else place
                line += f"[{piece.text}]" if piece.kind == "mark" else piece.text * (piece.kind != "open")


NEW_LINE = Piece("", "\n")
"""The piece between two texts of one row."""


def cut(text: str, most: int = CELL) -> str:
    """The first `most` characters of a text."""
    return text if len(text) <= most else text[:most].rstrip() + " …"


def around(text: str, place: int, reach: int = _LINE) -> str:
    """The text from `reach` characters before a place to `reach` after it."""
    start, end = max(place - reach, 0), min(place + reach, len(text))
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def web_address(url: str) -> str:
    """The address if it is a web address, else "": what a dump calls a URL may be a script."""
    return url if url.startswith(("https://", "http://")) and len(url) < 2000 else ""


def passage(text: str, start: int, end: int, mark: str, note: str = "", *, masks: str = "") -> Iterator[Piece]:
    """The text around [start, end), with `mark` instead of that. `masks`: a text that is a mask wherever it is."""
    if start > PASSAGE:
        yield Piece("", "… ")
    yield from _masked(text[max(start - PASSAGE, 0) : start], masks)
    yield Piece("mark", cut(mark, PASSAGE), note)
    yield from _masked(text[end : end + PASSAGE], masks)
    if len(text) > end + PASSAGE:
        yield Piece("", " …")


def _masked(text: str, mask: str) -> Iterator[Piece]:
    for number, part in enumerate(text.split(mask) if mask else [text]):
        if number:
            yield Piece("mask", mask)
        if part:
            yield Piece("", part)


def cell(value: object) -> str:
    """A value for a cell of a table."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {share:.0%}" for name, share in value.items() if share)
    if isinstance(value, float):
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) else cut(str(value))


def plain_row(row: Row, columns: tuple[str, ...]) -> Shown:
    """A row as a line of a table; the first column is the heading."""
    first, *rest = columns
    return Shown(
        cell(row[first]),
        first.replace("_", " "),
        remarks=tuple((name.replace("_", " "), cell(row[name])) for name in rest),
    )
