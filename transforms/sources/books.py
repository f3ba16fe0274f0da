"""Books as text files, one document a file: Project Gutenberg, Standard Ebooks, or anything else in plain text.

Ids: source "books", doc_id "books:<name>". The name is that of `inputs.resolve_inputs`: the path below the given
folder, or the file's own name. It holds no absolute path and does not depend on the order of --input.

From Project Gutenberg's files the header, licence, producers' credits, transcribers' notes, page numbers and captions
are removed; title and address come from the header. They are in the public domain in the USA unless their header says
"copyrighted". Texts of Standard Ebooks are recognised by their file name (author_title) together with their typography
(U+2060 before a dash) and are in the public domain as well (CC0). All other texts have an unknown licence. A table of
contents is removed if its entries are found again after it. Files are UTF-8, or what a Gutenberg header declares.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import NamedTuple

from pyarrow import fs

from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Corrupt, Document, Filtered, Item, Rejected
from transforms.sources.options import ReadOptions
from transforms.sources.streams import REMEDY, Damaged, chunks, wide_encoding
from transforms.sources.text import clean, lines_of, plain_text, tidy, unwrap, without_typewriter_marks, wrap_width

PUBLIC_DOMAIN = "public domain"
UNKNOWN_LICENCE = "unknown"


class Book(NamedTuple):
    """Running text, and what the text says about itself; empty where it says nothing."""

    title: str
    url: str
    licence: str
    text: str


# ---- A book's text

_START = re.compile(r"\*{3} ?START OF (?:THE|THIS) PROJECT GUTENBERG E-?(?:BOOK|TEXT)[^*]{0,500}\*{3}", re.IGNORECASE)
_SMALL_PRINT = re.compile(r"\*END ?\*? ?THE SMALL PRINT[^\n]*\n")
_HEADER_WITHIN = 40_000  # characters
_END = re.compile(r"\n\*{3} ?END OF (?:THE|THIS) PROJECT GUTENBERG", re.IGNORECASE)
_END_LINE = re.compile(r"\n *(?:\*+ ?)?(?:The )?End of (?:(?:the|this) )?Project Gutenberg(?:'s|\b)", re.IGNORECASE)
_END_LINE_BEFORE = 20_000  # characters after the closing line: the licence and the small print

_TITLE = re.compile(r"^Title: *(\S.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_FIRST_LINE = re.compile(
    r"\s*(?:The )?Project Gutenberg(?:'s| E-?(?:book|text)s? of) (.+?)(?:,? by .*)?\n", re.IGNORECASE
)
_NUMBER = re.compile(r"\[E-?(?:book|text) ?#(\d+)\]", re.IGNORECASE)
_COPYRIGHTED = re.compile(r"copyrighted\*?\s+Project\s+Gutenberg", re.IGNORECASE)

_CREDITS = re.compile(
    r"\W*(?:(?:Produced|Prepared|Transcribed|Scanned|Digiti[sz]ed|Proof(?:ed|read))\b[^\n]* by\b"
    r"|(?:This |The )?(?:Project Gutenberg )?(?:e-?book|e-?text|HTML version|file)s? (?:\w+ ){0,4}"
    r"(?:by|from|produced|prepared|made|created)\b"
    r"|Credits:|Updated:|Transcriber'?s? Notes?|Note: (?:Project Gutenberg|Images of|The original)"
    r"|Project Gutenberg has|(?:and )?(?:the )?(?:Online )?Distributed Proofread|https?://|See \d+-h\.)",
    re.IGNORECASE,
)
_NEWLINES = re.compile(r"\n*")
_NOTES_WITHIN = 3_000  # characters from the end, or a twentieth of the text
_TRANSCRIBERS_HEADING = re.compile(r"\n\W{0,100}Transcriber'?s?'? (?:End ?)?Notes?\b", re.IGNORECASE)

_CONTENTS = re.compile(r"(?:TABLE OF )?CONTENTS[.:]?", re.IGNORECASE)
_CONTENTS_WITHIN = 30_000  # characters
_LONGEST_ENTRY = 120  # characters
_MOST_ENTRIES = 300
_PAGE = re.compile(r"(?:[\s.]+(?:\d+|[ivxl]+)|[\s.]+)$")

_STANDARD_EBOOKS_NAME = re.compile(r"(?P<author>[a-z0-9-]+)_(?P<title>[a-z0-9-]+)(?:_[a-z0-9_-]+)?\.txt(?:\.\w+)?")
_SMALL_WORDS = frozenset(
    ("a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "of", "on", "or", "the", "to", "with")
)


def book_of(raw: str, *, name: str) -> Book:
    """The running text of a book from the whole text of its file; `name` is the file's name without folders."""
    text = clean(raw)
    if start := _START.search(text, 0, _HEADER_WITHIN) or _SMALL_PRINT.search(text, 0, _HEADER_WITHIN):
        return _gutenberg_book(text[: start.start()], _START.split(text[start.start() :])[1:] or [text[start.end() :]])
    text = without_contents(plain_text(text))
    slugs = _STANDARD_EBOOKS_NAME.fullmatch(name)
    if slugs and ("\u2060—" in raw or "\u2060…" in raw):
        url = f"https://standardebooks.org/ebooks/{slugs['author']}/{slugs['title']}"
        return Book(_title_of_slug(slugs["title"]), url, PUBLIC_DOMAIN, text)
    return Book("", "", UNKNOWN_LICENCE, text)


def _gutenberg_book(header: str, bodies: list[str]) -> Book:
    """A file of Project Gutenberg: one body, or several where files were joined."""
    title = _TITLE.search(header) or _FIRST_LINE.match(header)
    number = _NUMBER.search(header)
    text = "\n\n".join(without_credits(without_footer(without_typewriter_marks(body))) for body in bodies)
    width = wrap_width(text)
    return Book(
        title=_one_line(title[1]) if title else "",
        url=f"https://www.gutenberg.org/ebooks/{number[1]}" if number else "",
        licence=UNKNOWN_LICENCE if _COPYRIGHTED.search(header) else PUBLIC_DOMAIN,
        text=without_contents(tidy(unwrap(text, width) if width else text)),
    )


def _one_line(title: str) -> str:
    """A title of several lines on one; after a line that was not full comes a subtitle."""
    lines = [" ".join(line.split()) for line in title.split("\n")]
    return "".join(line + (" " if len(line) > 50 else ": ") for line in lines[:-1]) + lines[-1]


def without_footer(text: str) -> str:
    """Gutenberg's text up to its closing line or marker, without transcribers' notes at its end."""
    if marker := _END.search(text):
        text = text[: marker.start()]
    last = deque(_END_LINE.finditer(text, max(0, len(text) - _END_LINE_BEFORE + 1)), maxlen=1)
    if last:
        text = text[: last[0].start()]
    notes_from = max(len(text) // 2, len(text) - max(_NOTES_WITHIN, len(text) // 20))
    notes = _TRANSCRIBERS_HEADING.search(text, notes_from)
    return text[: notes.start()] if notes else text


def without_contents(text: str) -> str:
    """A book's laid-out text without its table of contents, if one is certain.

    It is certain if the table's first entry occurs again, soon after, with only short lines between.
    """
    lines = enumerate(lines_of(text[: len(text) // 4 + _CONTENTS_WITHIN]))
    start = next((at for number, (at, line) in lines if _CONTENTS.fullmatch(line)), None)
    if start is None or start > _CONTENTS_WITHIN:
        return text
    entries = list(islice(((number, at, line) for number, (at, line) in lines if _entry(line)), _MOST_ENTRIES + 2))
    first = next((number for number, _, line in entries if _entry(line) not in ("page", "chapter")), None)
    if first is None:
        return text
    wanted = next(_entry(line) for number, _, line in entries if number == first)
    for (number, at, line), (_, _, following) in pairwise(entries):
        if number > first and (len(line) > _LONGEST_ENTRY or not wanted):
            return text
        if number > first + 1 and wanted in (_entry(line), f"{_entry(line)} {_entry(following)}"):
            return tidy(text[:start] + text[at:])
    return text


def _entry(line: str) -> str:
    """A line of a table of contents, for comparison with headings: words only, in lower case, no page number."""
    words = re.findall(r"\w+", _PAGE.sub("", line[: 4 * _LONGEST_ENTRY]).lower())
    return " ".join(words[1:] if words[:1] == ["chapter"] else words)


def without_credits(text: str) -> str:
    """Gutenberg's text without the credits of those who scanned, proofread and produced it."""
    text = text.lstrip()
    at = 0
    while at < _HEADER_WITHIN and _CREDITS.match(text, at, at + _HEADER_WITHIN):
        start, at = at, _next_paragraph(text, at)
        if at - start < 200 and re.fullmatch(r"\W*Transcriber'?s? Notes?\W*", text[start:at], re.IGNORECASE):
            at = _next_paragraph(text, at)  # the heading's paragraph
    return text[at:]


def _next_paragraph(text: str, at: int) -> int:
    end = text.find("\n\n", at)
    return _NEWLINES.match(text, end).end() if end >= 0 else len(text)  # type: ignore[union-attr]


def _title_of_slug(slug: str) -> str:
    words = slug.split("-")
    return " ".join(word if i and word in _SMALL_WORDS else word.capitalize() for i, word in enumerate(words))


# ---- A book's file

_DECLARED_ENCODING = re.compile(
    rb"Character set encoding: *(ISO-8859-1|ISO Latin-1|Latin-1|Windows-1252|CP-?1252)\b", re.IGNORECASE
)


def text_of(data: bytes) -> str:
    """A text file's text. Raises UnicodeDecodeError if it is not UTF-8 and declares no other encoding."""
    if encoding := wide_encoding(data):
        return data.decode(encoding)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Gutenberg's older files. Latin-1 also decodes the five bytes that Windows-1252 leaves undefined.
        if _DECLARED_ENCODING.search(data, 0, _HEADER_WITHIN):
            return data.decode("latin-1")
        raise


def document_of(data: bytes, *, doc_id: str, source: str, name: str) -> Document | Filtered:
    """The document of one text file; raises UnicodeDecodeError."""
    book = book_of(text_of(data), name=name.rsplit("/", 1)[-1])
    if not book.text:
        return Filtered("no_text")
    return Document(doc_id, source, book.title, book.url, book.licence, book.text)


class Text:
    """A text file is one document."""

    name = "text"
    version = 3

    def recognises(self, path: str, head: bytes) -> bool:
        return TEXT_FILE.search(path) is not None and (is_text(head) or is_utf8(head))

    def split(self, filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
        return [Segment(0, file.size)]

    def read(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, *, options: ReadOptions, skip: int = 0
    ) -> Iterator[Item]:
        if skip:  # there is only one record
            return
        whole = bytearray()
        pieces: list[tuple[int, int]] = []  # offsets: in the text, as stored
        try:
            for stored, data in chunks(filesystem, file.path):
                pieces.append((len(whole), stored))
                whole += data
                if len(whole) > options.max_document_bytes:
                    yield too_large("byte 0", bytes(whole[:200]), options, "document_too_large")
                    return
            if not whole:
                yield empty_file(file)
            else:
                yield document_of(bytes(whole), doc_id=f"books:{file.name}", source="books", name=file.name)
        except Damaged as damage:
            yield Corrupt(damage.reason, damage.byte, damage.message)
        except UnicodeDecodeError as error:
            offset, stored = pieces[bisect_right(pieces, (error.start, file.size)) - 1]
            byte = stored + error.start - offset if len(whole) == file.size else stored
            yield not_utf8(f"{file.path!r}", byte, error)


TEXT = Text()

TEXT_FILE = re.compile(r"\.(?:txt|text|asc)(?:\.(?:gz|bz2|zst|zstd))?$", re.IGNORECASE)


def is_text(head: bytes) -> bool:
    """Whether bytes can begin a text: they hold no control characters other than white space and a few like it."""
    return not re.search(rb"[\x00-\x06\x0e-\x19\x1c-\x1f]", head)


def is_utf8(head: bytes) -> bool:
    """Whether bytes begin a text in UTF-8; a NUL in it is a character like others, which `clean` removes."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def not_utf8(where: str, byte: int, error: UnicodeDecodeError) -> Corrupt:
    """Text that is not UTF-8. `where` names the file and its member or line; `byte` is an offset in the stored file."""
    data = bytes(error.object)
    what = f"0x{data[error.start]:02x} at byte {byte:,}"
    message = f"{where} is not UTF-8: {what}; convert it (iconv -f WINDOWS-1252 -t UTF-8) or pass --on-corrupt=skip"
    if wide := wide_encoding(data):
        message = f"{where} is not {wide.upper()}, which its first bytes promise, at byte {byte:,}; {REMEDY}"
    return Corrupt("bad_utf8", byte, message, data[max(0, error.start - 80) : error.start + 80].decode("latin-1"))


def too_large(position: str, beginning: bytes, options: ReadOptions, reason: str = "record_too_large") -> Rejected:
    """A record with more than --max-document-bytes."""
    excerpt = beginning[:200].decode("utf-8", "replace")
    return Rejected(reason, position, excerpt, f"more than {options.max_document_bytes:,} bytes")


def empty_file(file: InputFile) -> Corrupt:
    """An input file of 0 bytes."""
    return Corrupt("empty_file", 0, f"{file.path!r} is empty; remove it or pass --on-corrupt=skip")
