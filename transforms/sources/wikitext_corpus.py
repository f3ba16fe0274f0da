"""The WikiText-2 and WikiText-103 corpora: tokenised Wikipedia articles in one file.

The tokenisation is undone: " @-@ ", " @,@ " and " @.@ " become "-", "," and "."; the blanks that the tokeniser put
around punctuation, quotes, brackets and clitics, and inside of times ("08 : 00"), ratios, sums of money and names
("Chang 'an", "R & B"), are removed; headings (" = = X = = ") are lines without their marks. A dash between words stays
as it is, because both "east–west" and "1961 – played" are tokenised so.

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
    (re.compile(r" : (?<=\d : )(?<!\d{4} : )(?=\d)"), ":"),  # 08:00, 2.39:1, but a page after a year is 1994: 169
    (re.compile(r"(?<=\d) ([–/⁄-]) (?=\d)"), r"\1"),
    (re.compile(r" / "), "/"),
    (re.compile(r" & (?<=\b[A-Z] & )(?=[A-Z]\b)"), "&"),
    (re.compile(r" \+(?<=\b[A-D] \+)(?! ?[A-Z\d])"), "+"),
    (re.compile(r" \*(?<=\bII \*)(?= )"), "*"),
    (re.compile(r"(?<=[\d½¼¾]) ([°′″])(?: (?=\d|[CF]\b))?"), r"\1"),
    (re.compile(r"(?<![^\s(\[{\"'])([(\[{$£€₤]) "), r"\1"),
    (re.compile(r" \$(?<=\b(?:US|AU|CA|HK|NZ) \$)"), "$"),
    (re.compile(r"([−~]) (?<=[ (]. )(?=\d|(?:US)?[$£€₤])"), r"\1"),
    (re.compile(r" (?=[♭♯²³])"), ""),
    (re.compile(r" (?=(?:[,.;:!?%)\]}]|\.{2,4})(?:[\s,.;:!?)\]}\"'—–/]|$))"), ""),
]


def natural(line: str) -> str:
    """One line of WikiText as its author wrote it, as far as its tokens show."""
    tokens = line.replace(" \u2011 ", "-").split()
    line = f" {clean(_with_quotes(tokens))} ".replace("<unk>", UNKNOWN_TOKEN)
    for pattern, replacement in _RULES:
        line = pattern.sub(replacement, line)
    return line.strip()


_QUOTES = dict(zip("\"“”'‘’", "\"\"\"'''", strict=True))
_JOINED = "\b"  # no blank here; `clean` removes any other
_CLITICS = frozenset("s t m d re ve ll".split())
_SHORTENED = frozenset("'em 'til 'till 'cause 'tis 'twas 'bout 'round 'neath 'n".split())
_NO_POSSESSIVE = frozenset("as is was has this his its yes thus us vs. plus".split())
_BEFORE_QUOTATION = frozenset("a an the of in to and or as is was that by with from for called said".split())
_WITHIN = 12  # tokens of a quotation whose first quote can also be a possessive


def _with_quotes(tokens: list[str]) -> str:
    """The tokens with blanks between them, except around quotes and apostrophes, where the text had none.

    The tokeniser put blanks around both. A quote opens a quotation if none is open; an apostrophe after an "s", or
    after a word that the corpus withholds, is a possessive unless a quotation ends soon.
    """
    out = tokens[:]
    is_open = dict.fromkeys("\"'", False)
    for at in [at for at, token in enumerate(tokens) if token[0] in _QUOTES]:
        token = tokens[at]
        before = tokens[at - 1] if at else ""
        after = tokens[at + 1] if at + 1 < len(tokens) else ""
        to_left = to_right = False
        mark = _QUOTES[token[0]]
        if len(token) > 1:
            to_left = token[0] == "'" and token[1].isalpha() and token.lower() not in _SHORTENED
        elif mark == "'" and after in _CLITICS and (before[-1:].isalnum() or before.endswith((".", ">"))):
            to_left = to_right = True
        elif mark == "'" and _begins_shortened(before, after):
            to_right = True
        elif mark == "'" and before == "n" and tokens[at - 2 : at - 1] == [token]:
            to_left = True
        elif token == "’":
            to_left = True
            to_right = len(before) == 1 and before.isalpha() and before not in "AIa" and after[:1].isalpha()
        else:
            to_right = token in "“‘" or (token != "”" and _opens(tokens, at, is_open[mark]))
            to_left = not to_right
            is_open[mark] = to_right
        out[at] = _JOINED * to_left + token + _JOINED * to_right
    return " ".join(out).replace(f" {_JOINED}", "").replace(f"{_JOINED} ", "")


def _begins_shortened(before: str, after: str) -> bool:
    """Whether an apostrophe begins a year, a decade or 'n'."""
    return re.fullmatch(r"\d0s|n", after) is not None or (
        re.fullmatch(r"\d\d", after) is not None and not before.endswith(("s", ">"))
    )


def _opens(tokens: list[str], at: int, is_open: bool) -> bool:
    """Whether the quote at an index opens a quotation."""
    if at + 1 == len(tokens):
        return False
    before = tokens[at - 1] if at else "("
    if tokens[at] == '"':
        # Some quotations are never closed: then a quote after "the" opens another one.
        return not is_open or (before in _BEFORE_QUOTATION and tokens.count('"') % 2 == 1)
    if is_open or before in ("a", "an", "the"):
        return before in ("a", "an", "the")
    if not before[-1].isalnum() and before != "<unk>":
        return True
    may_own = before.endswith(("s", ">")) and before not in _NO_POSSESSIVE
    rest = tokens[at + 1 : at + 1 + (_WITHIN if may_own else len(tokens))]
    if "'" not in rest:
        return False
    last = rest[rest.index("'") - 1]
    return not may_own or not (last.endswith(("s", ">")) or last in _BEFORE_QUOTATION)


# ---- Articles


class WikiTextCorpus:
    """An article is a document."""

    name = "wikitext-corpus"
    version = 2

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
