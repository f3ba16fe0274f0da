"""What a reader of raw text yields: one item for each record, so that nothing is lost silently.

A reader is three pure functions for one format (see `transforms/sources/formats.py`). The extract stage turns its
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
    section: str = ""  # of the target page


class Page(NamedTuple):
    """What a wiki says of an article besides its text; goes into a side table, for the resolution of links."""

    source: str
    page_id: str
    title: str
    entity_id: str = ""  # Wikidata id
    disambiguation: bool = False
    redirects: tuple[str, ...] = ()  # titles that redirect to it, if the page itself lists them


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
    language: str = ""  # its code, as the input has it


class Redirect(NamedTuple):
    """A title that only points to another one; goes into a side table, for the resolution of links."""

    source: str
    title: str
    target_title: str
    section: str = ""


class Filtered(NamedTuple):
    """A record left out by a rule, such as a page that is not in the article namespace."""

    reason: str
    page: Page | None = None


class Rejected(NamedTuple):
    """A record refused because of a measurement: too many bytes, nodes or levels."""

    reason: str
    position: str
    excerpt: str
    exception: str = ""
    page: Page | None = None


class Corrupt(NamedTuple):
    """Damaged input: ends the run with `message`, or becomes a reject with --on-corrupt=skip.

    `byte` is the offset in the stored file, which may be compressed. `message` says what is wrong, where, and what to
    do. A reader continues after the damage if it can; otherwise this is its last item.
    """

    reason: str
    byte: int
    message: str
    excerpt: str = ""


Item: TypeAlias = Document | Redirect | Filtered | Rejected | Corrupt
Record: TypeAlias = Item | Callable[[], Item]
"""A record cut out of its file: its item, or a function that parses it when called."""


def items_of(records: Iterable[Record], *, skip: int) -> Iterator[Item]:
    """The item of each record except the first `skip`, which are not parsed."""
    for record in islice(records, skip, None):
        yield record() if callable(record) else record
