"""The steps from a page's markup to plain text that the readers of wikitext and of HTML share.

A reader removes the markup and leaves marks in the text: control characters, which it first removes from its input so
that no input can forge them. A link is OPEN, its number, MIDDLE, its anchor, CLOSE. So its offsets stay exact, whatever
a later step does to the characters in and around the anchor. This module then closes the gaps where something was
dropped, makes blocks from lines, and reads the offsets of the links off the finished text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.entities import html5

from schemas.terms import UNKNOWN_TOKEN
from transforms.sources.items import Link
from transforms.sources.text import REMOVED, USELESS_JOINER, clean

GAP = "\x01"  # something was dropped here
OPEN, MIDDLE, CLOSE = "\x02", "\x04", "\x03"  # a link
BREAK = "\x05"  # a line break inside a paragraph
TABLE = "\ufdd0"  # a table was dropped here, in a line of its own; this code point is no character

_FORGED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufdd0]")


class TooComplex(Exception):
    """A page over a limit on its markup; `reason` is "too_many_nodes" or "too_deep"."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


def check_depth(stack: Sequence[object], max_depth: int) -> None:
    if len(stack) > max_depth:
        raise TooComplex("too_deep", f"markup nested more than {max_depth} deep")


def without_marks(markup: str) -> str:
    """The markup without the characters used as marks, its line ends as "\\n"."""
    return _FORGED.sub("", markup).replace("\r\n", "\n").replace("\u2028", " ").replace("\u2029", " ")


# ---- Characters

ENTITY = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{1,31}));")
_SPACES = re.compile(r"[\t\v\f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_INVISIBLE = re.compile(f"[{''.join(character for character in REMOVED if character > '~')}]")
_SPOKEN = re.compile(r"[0-9A-Za-z][0-9A-Za-z ,.+=()/-]{0,20}")
_MATH_SPACES = re.compile(r"\\[,;:! ]|[~\s]")
FORMULA = UNKNOWN_TOKEN
"""Represents a formula: a word that the text does not give. Parsers take it for a noun; no phrase contains it."""


def formula(source: str) -> str:
    """What a formula becomes: itself if it can be read as words or numbers (x, E = m), or FORMULA."""
    source = _MATH_SPACES.sub(" ", source).strip()
    if not source:
        return GAP
    return source if _SPOKEN.fullmatch(source) else FORMULA


def entity(match: re.Match[str]) -> str:
    """The text of an ENTITY: a space for a control character, the entity itself if its name is unknown."""
    decimal, hexadecimal, name = match.groups()
    if name:
        character = html5.get(name + ";", match[0])
    else:
        code = int(decimal) if decimal else int(hexadecimal, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            return match[0]
        character = chr(code)
    return " " if character < " " else character


def plain_spaces(text: str) -> str:
    """The text with every kind of blank except newlines as a space, and without characters of no width."""
    if not text.isascii() or "\x7f" in text:
        text = _INVISIBLE.sub("", text)
    return _SPACES.sub(" ", text)


def without_joiners(text: str) -> str:
    """The text without the joiners that `clean` would remove in the end, which may leave a blank too many."""
    return USELESS_JOINER.sub("", text) if "\u200c" in text or "\u200d" in text else text


def one_line(anchor: str) -> str:
    """An anchor without the marks of breaks and gaps, and without blanks at its ends."""
    return " ".join(without_joiners(anchor.replace(GAP, "").replace(BREAK, " ").replace(TABLE, " ")).split())


def power(digits: str, before: str) -> str:
    """A superscript number after a character: 10<sup>6</sup> is 10^6, but m<sup>2</sup> is m2."""
    return f"^{digits}" if before.isdecimal() else digits


# ---- Gaps


def close_gaps(text: str) -> str:
    """Closes the gaps where something was dropped: no empty brackets, double commas, or spaces before a full stop.

    >>> close_gaps(f"Ada ({GAP}; {GAP}), {GAP}, was born {GAP}.")
    'Ada, was born.'
    """
    if GAP not in text:
        return text
    parts = text.split(GAP)
    out = [parts[0]]
    for right in parts[1:]:
        right = _close_gap(out, right)
        if right:
            out.append(right)
    return "".join(out)


_OPENING = frozenset(("", " ", "\n", "(", "[", "“", "‘", "«"))
_CLOSING = ".,;:!?)]}»”\n"


def _close_gap(out: list[str], right: str) -> str:
    """Trims the end of `out` and the beginning of `right` where they meet; returns what is left of `right`."""
    spaced = False
    for _ in range(8):  # nested brackets that have all become empty; text has fewer than 8
        spaced = _strip_end(out, " ") or right[:1] == " " or spaced
        right = right.lstrip(",;: " if _last(out) in {"(", "["} else " ")
        if right[:1] != ")":
            break
        _strip_end(out, " ,;:")
        if _last(out) != "(":
            return right
        _drop_last(out)
        right = right[1:]
    if not right:
        # The next gap may follow immediately, so the space is kept on the left.
        if spaced and _last(out) not in _OPENING:
            out.append(" ")
        return ""
    if right[0] == "," and _last(out) in {";", ":"}:
        return " " + right.lstrip(", ")
    if right[0] in ",;:." and _last(out) in {",", ";", ":"}:
        _strip_end(out, " ,;:")
    if right[0] in _CLOSING or _last(out) in _OPENING:
        return right
    # A reference between two sentences may have been there instead of the space.
    return " " + right if spaced or (_last(out) in {".", ",", ";", "!", "?"} and right[0].isupper()) else right


def _last(out: list[str]) -> str:
    return out[-1][-1:] if out else ""


def _drop_last(out: list[str]) -> None:
    """Removes the last character without copying all of a long text."""
    piece = out.pop()
    out.extend(filter(None, (piece[:-64], piece[-64:-1])))


def _strip_end(out: list[str], characters: str) -> bool:
    """Strips the end of the text in `out`; returns whether there was anything to strip."""
    stripped = False
    while out:
        kept = out[-1].rstrip(characters)
        stripped = stripped or len(kept) < len(out[-1])
        if kept:
            out[-1] = kept
            break
        out.pop()
    return stripped


# ---- Lines

PSEUDO_HEADING = 7  # the level of a line in bold or of a term of its own, below that of any heading
SCHEME = r"(?:https?:|ftps?:|irc:|mailto:|news:|gopher:|git:|svn:)?//|mailto:"
_ONLY_URL = re.compile(rf"(?:{SCHEME})\S+", re.IGNORECASE)
_LEADING_PUNCTUATION = re.compile(r"^(?:[.,;:)]{1,3} )+|^[,;:]+")
_PUNCTUATION = re.compile(r"[,;.)](?: |$)")
_HAS_WORD = re.compile(r"\w")


_ONLY_FORMULA = re.compile(f"[{FORMULA} ]*{FORMULA}[ .,;:]*")
_SENTENCE_END = re.compile(rf"""[.!?]["')\]{CLOSE}]*$""")
_CLOSERS = tuple(",;.:)")
_LONGEST_TITLE = 8  # words
_LONGEST_REOPENED = 10_000  # characters; a block may be taken up again for each formula after it


class Blocks:
    """Collects blocks of lines; a heading is added when text follows under it.

    A formula in a line of its own belongs to the sentence around it: it goes on with the line before, unless a sentence
    ended there, and a line after it that begins in lower case goes on with it. The title of a table (a short line, or
    a heading below those of sections) goes where its table went. The sections with the names `left_out` are left out.
    """

    def __init__(self, left_out: frozenset[str] = frozenset()) -> None:
        self._blocks: list[str] = []
        self._paragraph: list[str] = []
        self._items: list[str] = []
        self._headings: list[tuple[int, str]] = []
        self._left_out = left_out
        self._silent = 0  # the level of the section that is left out; 0 outside of one
        self._above: list[tuple[int, str]] | None = None  # the last block's headings; None if a heading followed it
        self._of_items = False  # whether the last block is a list
        self._goes_on = False  # the last line is a formula

    def prose(self, line: str) -> None:
        if FORMULA in line and _ONLY_FORMULA.fullmatch(line):
            self._formula(line)
            return
        if self._goes_on:
            self._goes_on = False
            if (line[:1].islower() or line.startswith(_CLOSERS)) and self._reopened():
                self._add(line)
                return
            self.end_paragraph()
        if self._items:
            self.end_paragraph()
        if self._paragraph and _PUNCTUATION.match(line):
            self._paragraph[-1] += line  # what came before it on its line was dropped
        else:
            self._paragraph.append(line)

    def item(self, line: str) -> None:
        if FORMULA in line and _ONLY_FORMULA.fullmatch(line):
            self._formula(line)
            return
        self._goes_on = False
        if self._paragraph:
            self.end_paragraph()
        if BREAK in line:
            self._items.extend(tidy for each in line.split(BREAK) if (tidy := _tidy(each)))
        elif line := _tidy(line):
            self._items.append(line)

    def heading(self, level: int, line: str) -> None:
        self.end_paragraph()
        self._above = None
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        line = _tidy(line.replace(BREAK, " "))
        if level <= self._silent:
            self._silent = 0
        if line.rstrip(": ").lower() in self._left_out and not self._silent:
            self._silent = level
        if line:
            self._headings.append((level, line))

    def table(self) -> None:
        """A table was dropped here."""
        self.end_paragraph()
        if self._headings:
            while self._headings and self._headings[-1][0] == PSEUDO_HEADING:
                self._headings.pop()
        elif self._above is not None and _is_title(self._blocks[-1]):
            del self._blocks[-1 - len(self._above) :]
            self._headings = self._above
        self._above = None

    def end_paragraph(self) -> None:
        lines = self._items
        if self._paragraph:
            lines = [tidy for line in " ".join(self._paragraph).split(BREAK) if (tidy := _tidy(line))]
        if lines and not self._silent:
            self._blocks.extend(line for _, line in self._headings)
            self._blocks.append("\n".join(lines))
            self._above, self._headings = self._headings, []
            self._of_items = bool(self._items)
        self._items = []
        self._paragraph = []

    def text(self) -> str:
        self.end_paragraph()
        return "\n\n".join(self._blocks)

    def _formula(self, line: str) -> None:
        """Adds a line that is only a formula to the line before it."""
        if not self._reopened():
            return
        last = (self._items or self._paragraph)[-1].rstrip()
        if _SENTENCE_END.search(last):
            self.end_paragraph()
            return
        if line := line.lstrip(FORMULA + " ") if last.endswith(FORMULA) else line:
            self._add(line)
        self._goes_on = True

    def _reopened(self) -> bool:
        """Whether the last line can go on; it may be the end of the last block, which is then taken up again."""
        if self._paragraph or self._items:
            return True
        if self._above is None or len(self._blocks[-1]) > _LONGEST_REOPENED:
            return False
        lines = self._blocks.pop().split("\n")
        if self._of_items:
            self._items = lines
        else:
            self._paragraph = [BREAK.join(lines)]
        del self._blocks[len(self._blocks) - len(self._above) :]
        self._headings, self._above = self._above, None
        return True

    def _add(self, line: str) -> None:
        if self._items:
            glue = "" if line.startswith(_CLOSERS) else " "
            self._items[-1] += glue + one_line(line)  # an item is tidy from the beginning
        elif line.startswith(_CLOSERS):
            self._paragraph[-1] = self._paragraph[-1].rstrip() + line
        else:
            self._paragraph.append(line)


def _is_title(block: str) -> bool:
    return "\n" not in block and len(block.split()) <= _LONGEST_TITLE and not _SENTENCE_END.search(block)


def _tidy(line: str) -> str:
    """A finished line; empty if it holds no word, or only an address."""
    line = _LEADING_PUNCTUATION.sub("", " ".join(without_joiners(line).split()))
    if not _HAS_WORD.search(line) or _ONLY_URL.fullmatch(line):
        return ""
    return line


# ---- Offsets

_MARKS = re.compile(f"[{OPEN}{CLOSE}]")


def place_links(text: str, targets: Sequence[str]) -> tuple[str, tuple[Link, ...]]:
    """The finished, clean text and its links; `targets` has "<title>#<section>" for the number of each link."""
    pieces: list[str] = []
    links: list[Link] = []
    position = 0
    for index, piece in enumerate(_MARKS.split(text)):
        if index % 2:
            number, _, piece = piece.partition(MIDDLE)
            piece = clean(piece)
            if anchor := piece.strip():  # removed quotes may have left a blank at its ends
                start = position + piece.index(anchor)
                title, _, section = targets[int(number)].partition("#")
                links.append(Link(start, start + len(anchor), title, section=section))
        else:
            piece = clean(piece)
        pieces.append(piece)
        position += len(piece)
    return "".join(pieces), tuple(links)
