"""What a reader of raw text yields, one item for each record that it met, so that nothing is lost silently.

A reader is three pure functions on one format (see `transforms/sources/formats.py`); the extract stage turns its
items into rows, counts and errors: read = Document + Filtered + Redirect + Rejected + Corrupt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeAlias


class Link(NamedTuple):
    """A hyperlink: `text[start_char:end_char]` is its anchor as shown, in code points."""

    start_char: int
    end_char: int
    target_title: str
    entity_id: str = ""


class Page(NamedTuple):
    """What a wiki says of an article beside its text: kept aside for the resolution of links."""

    source: str
    page_id: str
    title: str
    entity_id: str = ""  # Wikidata id
    disambiguation: bool = False
    redirects: tuple[str, ...] = ()  # titles that point to it, where the page itself lists them


class Document(NamedTuple):
    """One document of plain text. A line is a paragraph, heading or list item; an empty line separates paragraphs."""

    doc_id: str
    source: str
    title: str
    url: str
    licence: str
    text: str
    links: tuple[Link, ...] = ()
    page: Page | None = None


class Redirect(NamedTuple):
    """A title that only points to another; kept aside for the resolution of links."""

    source: str
    title: str
    target_title: str


class Filtered(NamedTuple):
    """A record left out by a rule, such as a page outside the article namespace."""

    reason: str
    page: Page | None = None


class Rejected(NamedTuple):
    """A record refused for what was measured in it: too many bytes, nodes, levels."""

    reason: str
    position: str
    excerpt: str
    exception: str = ""
    page: Page | None = None


class Corrupt(NamedTuple):
    """Damaged input: ends the run with `message`, or with --on-corrupt=skip becomes a reject.

    `byte` is the offset in the file as stored (compressed, if it is). `message` says what is wrong and where, and the
    remedy. A reader goes on behind the damage where it can; where it cannot this is its last item.
    """

    reason: str
    byte: int
    message: str
    excerpt: str = ""


Item: TypeAlias = Document | Redirect | Filtered | Rejected | Corrupt
Record: TypeAlias = Item | Callable[[], Item]
"""A record as it was cut out of its file: its item, or what parses it when called."""


def items_of(records: Iterable[Record], *, skip: int) -> Iterator[Item]:
    """The item of each record but the first `skip`, which are not parsed."""
    for record in islice(records, skip, None):
        yield record() if callable(record) else record
