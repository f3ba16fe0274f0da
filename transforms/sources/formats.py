"""The formats of raw text that phrasemill reads, behind one interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from transforms.sources.items import Item

if TYPE_CHECKING:
    from pyarrow import fs

    from transforms.sources.options import ReadOptions

FORMAT_OBJECTS = {
    "wikipedia-xml": "wikipedia.WIKIPEDIA_XML",
    "wikipedia-html": "wikipedia_html.WIKIPEDIA_HTML",
    "parquet": "parquet.PARQUET",
    "archive": "archives.ARCHIVE",
    "jsonl": "jsonlines.JSON_LINES",
    "wikitext-corpus": "wikitext_corpus.WIKITEXT_CORPUS",
    "text": "books.TEXT",
}
"""The formats by name, each a `Format` in a module of this package; a new one is one more line here.

In the order in which they are tried on a file. Plain text is last, because most other formats are text too.
"""


class InputFile(NamedTuple):
    """A raw input file. `name` is its stable name in ids (see docs/sources.md), `path` its current place."""

    path: str
    name: str
    size: int


class Segment(NamedTuple):
    """Bytes [start, end) of a stored file; a record belongs to the segment that it begins in."""

    start: int
    end: int


class Format(Protocol):
    """How to recognise, split and read one format."""

    name: str
    version: int  # raised by hand when the same bytes give other documents

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether a file with this name and beginning (`head`: decompressed, up to 64 KiB) has this format."""
        ...

    def split(self, filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
        """Cut the file where that is possible: the same cuts for the same bytes. One segment if it cannot be split."""
        ...

    def read(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, *, options: ReadOptions, skip: int = 0
    ) -> Iterator[Item]:
        """One item for each record that begins in the segment, in order, in bounded memory.

        The first `skip` items are left out; their records are read but not parsed. This continues an interrupted read.
        """
        ...
