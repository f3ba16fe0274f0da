"""The formats of raw text that phrasemill reads, behind one interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from transforms.sources.items import Item

if TYPE_CHECKING:
    from pyarrow import fs

FORMAT_NAMES = ("wikipedia-xml", "wikipedia-html", "parquet", "archive", "jsonl", "wikitext-corpus", "text")
"""In the order in which they are tried on a file. Plain text is last, because most other formats are text too."""

DEDUP_MODES = ("off", "documents", "paragraphs")
"""Which exact duplicates are left out."""


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


class ReadOptions(NamedTuple):
    """The user's options for reading; part of the extract stage's fingerprint."""

    text_column: str = "text"  # JSON lines and Parquet: where the text is
    max_page_bytes: int = 4_000_000  # a longer record is rejected: nobody wrote it for reading
    max_document_bytes: int = 16_000_000  # the same for books, JSON lines and Parquet: a long book has 10 MB
    max_nodes: int = 200_000  # markup nodes of a wiki page
    max_depth: int = 100  # nesting of markup
