"""The WikiText-2 and WikiText-103 corpora: tokenised Wikipedia articles in one file.

The tokenisation is undone: " @-@ ", " @,@ " and " @.@ " become "-", "," and "."; the blanks that the tokeniser put
around punctuation, quotes, brackets and clitics are removed; headings (" = = X = = ") are lines without their marks.
Ambiguous tokens (a dash between words, an apostrophe that closes nothing) stay as they are.

<unk>, a word that the corpus withholds, becomes U+FFFD, which is part of no word and which no phrase may contain.

Ids: "<file name>:<byte>", where the article's title begins. Licence: CC BY-SA 3.0, as the corpora's authors say.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from functools import partial
from io import StringIO

from pyarrow import fs

from schemas.terms import UNKNOWN_TOKEN
from transforms.sources.books import empty_file, not_utf8, too_large
from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Corrupt, Document, Filtered, Item, Record, items_of
from transforms.sources.lines import EXCERPT_BYTES, Line, is_plain, lines, split_lines
from transforms.sources.options import ReadOptions
from transforms.sources.streams import Damaged
from transforms.sources.text import clean, lines_of, tidy

LICENCE = "CC BY-SA 3.0"

_TITLE = re.compile(rb" ?= (?!=)(.*[^ =]) = ?\r?")
_HEADING = re.compile(r" ?(?:= ){1,10}(?!= )(.*[^ =])(?: =){1,10} ?")
_HEAD = re.compile(rb"(?:[ \r]*\n){0,3} ?= (?!=)[^\n]*[^ =\n] = ?\r?\n")
_TEXT_FILE = re.compile(r"\.(?:txt|text|raw|tokens)(?:\.(?:gz|bz2|zst|zstd))?$", re.IGNORECASE)
_MARK = b"\xef\xbb\xbf"
_BLANK_LINE_BYTES = 4  # at most: " \r\n"


# ---- Tokens to text

_RULES = [
    (re.compile(r" @([-,.])@ "), r"\1"),
    (re.compile(r"<unk>"), UNKNOWN_TOKEN),
    (re.compile(r" '(?= ?(?:s|t|m|d|re|ve|ll)\b)(?: (?=[a-z]))?"), "'"),
    (re.compile(r" ' n ' "), " 'n' "),
    (re.compile(r" ' (?=\d0s\b)"), " '"),
    (re.compile(r"(?<![s\ufffd]) ' (\S(?:[^']|'\w){0,100}) '(?= )"), r" '\1'"),  # a quotation, not a possessive
    (re.compile(r"(?<=[s\ufffd]) '(?= )"), "'"),
    (re.compile(r"(?<=\d) ([–/]) (?=\d)"), r"\1"),
    (re.compile(r" / "), "/"),
    (re.compile(r"(?<=\d) ([°′″])(?: (?=\d|[CF]\b))?"), r"\1"),
    (re.compile(r"(?<![^\s(\[{\"'])([(\[{$£€₤]) "), r"\1"),
    (re.compile(r"(?<=[ (])− (?=\d)"), "−"),
    (re.compile(r" (?=[♭♯²³])"), ""),
    (re.compile(r" (?=(?:[,.;:!?%)\]}]|\.{2,4})(?:[\s,.;:!?)\]}\"'—–/]|$))"), ""),
]
_QUOTE = re.compile(r' ?" ?')


def natural(line: str) -> str:
    """One line of WikiText as its author wrote it, as far as its tokens show."""
    line = clean(f" {line.strip()} ".replace(" \u2011 ", "-"))
    opening = [False]

    def quote(_: re.Match[str]) -> str:
        opening[0] = not opening[0]
        return ' "' if opening[0] else '" '

    line = _QUOTE.sub(quote, line)
    for pattern, replacement in _RULES:
        line = pattern.sub(replacement, line)
    return line.strip()


# ---- Articles


class WikiTextCorpus:
    """An article is a document."""

    name = "wikitext-corpus"
    version = 1

    def recognises(self, path: str, head: bytes) -> bool:
        return _TEXT_FILE.search(path) is not None and _HEAD.match(head.removeprefix(_MARK)) is not None

    def split(self, filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
        return split_lines(filesystem, file, target_bytes=target_bytes)

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
        whole = segment == Segment(0, file.size)
        article = _Article()
        exact = False
        reading = segment.start == 0
        first = max(0, segment.start - _BLANK_LINE_BYTES)
        after_blank = first == 0
        try:
            exact = is_plain(filesystem, file.path)
            within = None if whole else segment.end
            for line in lines(filesystem, file.path, start=first, limit=options.max_document_bytes, within=within):
                if not (reading or whole) and line.start >= segment.end:
                    break
                if line.start == 0 and line.data.startswith(_MARK):
                    line = line._replace(data=line.data[len(_MARK) :], stored=line.stored + len(_MARK))
                if after_blank and _TITLE.fullmatch(line.data) and line.start >= segment.start:
                    if article.begun:
                        yield partial(_item, article, file, options, exact=exact)
                    article = _Article()
                    reading = whole or line.start < segment.end
                    if not reading:
                        break
                after_blank = len(line.data) < _BLANK_LINE_BYTES and not line.data.strip()
                if reading and (article.begun or line.data.strip()):
                    article.add(line, options.max_document_bytes)
        except Damaged as damage:
            yield Corrupt(damage.reason, damage.byte, damage.message)
            return
        if article.begun:
            yield partial(_item, article, file, options, exact=exact)


WIKITEXT_CORPUS = WikiTextCorpus()


class _Article:
    """The lines of an article, as one string of bytes, because there can be as many lines as bytes."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.start = 0
        self.begun = False
        self.too_large = False
        self._origins: list[tuple[int, int]] = []  # where in `data`, where in the file as stored

    def add(self, line: Line, limit: int) -> None:
        if not self.begun:
            self.begun, self.start = True, line.start
        if not self._origins or line.stored - self._origins[-1][1] != len(self.data) - self._origins[-1][0]:
            self._origins.append((len(self.data), line.stored))
        self.too_large = self.too_large or line.too_long or len(self.data) + len(line.data) > limit
        if not self.too_large or not self.data:
            self.data += line.data + b"\n"

    def stored(self, position: int, *, exact: bool) -> int:
        """The offset of a byte of `data` in the stored file: exact in a plain file, otherwise that of its piece."""
        at, stored = self._origins[bisect_right(self._origins, (position, sys.maxsize)) - 1]
        return stored + (position - at if exact else 0)


def _item(article: _Article, file: InputFile, options: ReadOptions, *, exact: bool) -> Item:
    if article.too_large:
        return too_large(f"byte {article.start}", bytes(article.data[:EXCERPT_BYTES]), options)
    try:
        decoded = article.data.decode()
    except UnicodeDecodeError as error:
        start = article.start + article.data.rfind(b"\n", 0, error.start) + 1
        return not_utf8(f"{file.path!r}, the line at byte {start:,}", article.stored(error.start, exact=exact), error)
    title = ""
    first, _, body = decoded.partition("\n")
    if _TITLE.fullmatch(first.encode()):
        title = natural(first.strip()[2:-2])
    else:
        body = decoded
    out = StringIO()  # a list of short lines takes many times the memory
    for _, line in lines_of(body):
        if line.strip():
            heading = _HEADING.fullmatch(line.rstrip("\r"))
            out.write(f"\n{natural(heading[1])}\n\n" if heading else f"{natural(line)}\n")
    text = tidy(out.getvalue())
    if not text:
        return Filtered("no_text")
    return Document(f"{file.name}:{article.start}", file.name, title, "", LICENCE, text)
