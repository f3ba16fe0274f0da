"""The WikiText-2 and WikiText-103 corpora: tokenised Wikipedia articles in one file.

Made readable again: " @-@ ", " @,@ " and " @.@ " are "-", "," and "."; the blanks that the tokeniser put before and
after punctuation, quotes, brackets and clitics are gone; headings (" = = X = = ") are lines without their marks. What
is ambiguous there (a dash between words, an apostrophe that closes nothing) stays as it is.

<unk>, a word that the corpus withholds, becomes U+FFFD, one symbol that is part of no word: no phrase may contain it.

Ids: "<file name>:<byte>", where the article's title begins. Licence: CC BY-SA 3.0, as the corpora's authors say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from pyarrow import fs

from transforms.sources.books import empty_file, not_utf8, too_large
from transforms.sources.formats import InputFile, ReadOptions, Segment
from transforms.sources.items import Corrupt, Document, Filtered, Item, Record, items_of
from transforms.sources.lines import Line, lines, split_lines
from transforms.sources.streams import Damaged
from transforms.sources.text import UNKNOWN_TOKEN, clean, tidy

LICENCE = "CC BY-SA 3.0"

_TITLE = re.compile(rb" ?= (?!=)(.*[^ =]) = ?\r?")
_HEADING = re.compile(r" ?((?:= )+)(.*[^ =])((?: =)+) ?")
_HEAD = re.compile(rb"(?:[ \r]*\n){0,3} ?= (?!=)[^\n]*[^ =\n] = ?\r?\n")
_TEXT_FILE = re.compile(r"\.(?:txt|text|raw|tokens)(?:\.(?:gz|bz2|zst|zstd))?$", re.IGNORECASE)
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
    """One line of WikiText as its author wrote it, as far as its tokens tell."""
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
        return _TEXT_FILE.search(path) is not None and _HEAD.match(head) is not None

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
        article: list[Line] = []
        size = 0
        reading = segment.start == 0
        after_blank = True
        first = max(0, segment.start - _BLANK_LINE_BYTES)
        try:
            for line in lines(filesystem, file.path, start=first, limit=options.max_document_bytes):
                if after_blank and _TITLE.fullmatch(line.data) and line.start >= segment.start:
                    if article:
                        yield partial(_item, article, size, file, options)
                    article, size = [], 0
                    reading = whole or line.start < segment.end
                    if not reading:
                        break
                after_blank = not line.data.strip()
                if reading and not after_blank:
                    size += len(line.data)
                    if size <= options.max_document_bytes or not article:
                        article.append(line)
        except Damaged as damage:
            yield Corrupt(damage.reason, damage.byte, damage.message)
            return
        if article:
            yield partial(_item, article, size, file, options)


WIKITEXT_CORPUS = WikiTextCorpus()


def _item(article: list[Line], size: int, file: InputFile, options: ReadOptions) -> Item:
    first = article[0]
    if size > options.max_document_bytes or first.too_long:
        return too_large(f"byte {first.start}", first.data, options)
    decoded = []
    for line in article:
        try:
            decoded.append(line.data.decode())
        except UnicodeDecodeError as error:
            byte = line.stored + (error.start if line.stored == line.start else 0)
            return not_utf8(f"{file.path!r}, the line at byte {line.start:,}", byte, error)
    title = ""
    if _TITLE.fullmatch(first.data):
        title = natural(decoded.pop(0).strip()[2:-2])
    paragraphs = []
    for text in decoded:
        heading = _HEADING.fullmatch(text.rstrip("\r"))
        paragraphs.append(f"\n{natural(heading[2])}\n" if heading else natural(text))
    text = tidy("\n".join(paragraphs))
    if not text:
        return Filtered("no_text")
    return Document(f"{file.name}:{first.start}", file.name, title, "", LICENCE, text)
