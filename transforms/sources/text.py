"""Plain text in one form, so that a phrase is the same phrase in every source.

Characters (`clean`): newlines are "\\n", and every other kind of blank becomes a space. Characters of no width (U+2060,
U+200B, soft hyphens, byte order marks, directional marks) and control characters are removed. C1 controls are read as
Windows-1252 characters, which they nearly always are. Curly quotes and apostrophes become straight, because half of
all text ("don't") and the training text of parsers and encoders have them straight. For the same reason U+2026 becomes
three full stops, the non-breaking hyphen a hyphen, and a two-em dash two em dashes. Accented letters are composed
(NFC). En and em dashes, primes, guillemets, fractions and letters of any script stay as they are.

Lines (`tidy`): no blank at the ends of a line, one space for a run of blanks, one empty line for several.

Paragraphs (`plain_text`): text wrapped at a fixed width, such as Project Gutenberg's, gets one line for each paragraph;
verse, tables, addresses and headings keep their lines. Text that is not wrapped keeps all its lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise


def clean(text: str) -> str:
    """The text with its characters in one form (see the module's docstring); newlines and tabs stay. Idempotent.

    At most 30 combining marks on one character stay.
    """
    if len(text) <= _PIECE:
        return _clean(text)
    pieces = []
    start = 0
    while start < len(text):
        cut = _CUT.search(text, start + _PIECE)
        end = cut.end() if cut else len(text)
        pieces.append(_clean(text[start:end]))
        start = end
    return "".join(pieces)


def _clean(text: str) -> str:
    if "\r" in text:
        text = _CARRIAGE_RETURNS.sub("\n", text)
    if not text.isascii():
        if len(text) > 1_000:
            text = _marks().sub(r"\1", text)
        text = unicodedata.normalize("NFC", text)
        if "\u200c" in text or "\u200d" in text:
            text = USELESS_JOINER.sub("", text)
    return _ODD.sub(lambda odd: _REPLACEMENTS[odd[0]], text)


def tidy(text: str) -> str:
    """Lines without blanks at their ends, single spaces and single empty lines, no empty line at either end."""
    text = _BLANKS.sub(" ", text.replace("\t", " ")).replace(" \n", "\n").replace("\n ", "\n")
    return _EMPTY_LINES.sub("\n\n", text).strip()


def plain_text(text: str) -> str:
    """A document's text from running text of any layout (see the module's docstring)."""
    text = clean(text)
    if width := wrap_width(text):
        text = unwrap(without_typewriter_marks(text), width)
    return tidy(text)


# A joiner has a meaning between letters of joining scripts (Persian, Hindi) and between emoji, but not next to Latin.
USELESS_JOINER = re.compile("(?<![^\u0000-\u02ff])[\u200c\u200d]|[\u200c\u200d](?![^\u0000-\u02ff])")
# A text is cleaned in pieces, because a substitution first lists all its parts. No match crosses a cut.
_PIECE = 1 << 18
_CUT = re.compile(r"\n|(?=[ A-Za-z0-9])")
_CARRIAGE_RETURNS = re.compile(r"\r+\n|\r")
_BLANKS = re.compile("  +")
_EMPTY_LINES = re.compile("\n\n\n+")


@lru_cache(maxsize=1)
def _marks() -> re.Pattern[str]:
    """Runs of combining marks that are too long: normalising them takes quadratic time."""
    marks = "".join(chr(code) for code in range(0x300, 0x1F000) if unicodedata.combining(chr(code)))
    return re.compile(f"([{marks}]{{30}})[{marks}]+")


def _replacements() -> dict[str, str]:
    table = dict.fromkeys("\x0b\x0c\u2028\u2029", "\n")
    table |= dict.fromkeys("\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))), " ")
    removed = [*range(0x09), *range(0x0E, 0x20), 0x7F, 0xAD, 0x061C, 0x180E, 0x200B, 0x200E, 0x200F, 0xFEFF]
    removed += [*range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFFF9, 0xFFFD), 0xFFFE, 0xFFFF]
    table |= dict.fromkeys(map(chr, removed), "")
    table |= dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc", "'")
    table |= dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    table |= {"\u2026": "...", "\u2010": "-", "\u2011": "-", "\u2015": "—", "\u2e3a": "——", "\u2e3b": "———"}
    table |= {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl"}
    table |= {"\ufb05": "st", "\ufb06": "st"}
    windows = {chr(code): bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)}
    table |= {control: table.get(meant, meant) for control, meant in windows.items()}
    # Halves of a surrogate pair, from broken JSON escapes, cannot be written as UTF-8.
    return table | dict.fromkeys(map(chr, range(0xD800, 0xE000)), "\ufffd")


_REPLACEMENTS = _replacements()
_ODD = re.compile("[" + "".join(map(re.escape, sorted(_REPLACEMENTS))) + "]")
REMOVED = "".join(sorted(odd for odd, replacement in _REPLACEMENTS.items() if not replacement))
"""Characters that `clean` removes."""

# ---- Typewriter conventions of plain-text books

_DEBRIS = re.compile(
    r"\[(?:Illustration|Frontispiece|Sidenote|Blank Page|Transcriber'?s? |Music:)"
    r"[^\[\]]{0,4000}(?:\[[^\[\]]{0,300}\][^\[\]]{0,4000}){0,20}\]|\[Illustration\]",
    re.IGNORECASE,
)
_FOOTNOTE = re.compile(r"\[Footnote (?:\w{1,3}|\*): ?([^\[\]]{1,8000})\]")
_FOOTNOTE_MARK = re.compile(r"(?<=[\w.,;:!?'\")])\[(?:\d{1,3}|[A-Z]|\*)\]")
_PAGE_NUMBER = re.compile(r"\[Pg ?[ivxlc\d]+\] ?")
_THOUGHT_BREAK = re.compile(r"\n(?:[ \t]*[*#~·.+=_|—-]){3}[ \t*#~·.+=_|—-]*(?=\n)")
_ITALICS = re.compile(r"_(?<![^\W_]_)([^_]{1,1000}?)_")
_STRAY_UNDERSCORE = re.compile(r"_(?:(?<![^\W_]_)|(?![^\W_]))")
_BOLD = re.compile(r"=(?<![\w=]=)(?=[^\s=])([^=]{1,300}?)(?<=\S)=(?![\w=])")
_DASHES = re.compile(r"--+")


def without_typewriter_marks(text: str) -> str:
    """The text without the marks of plain-text books: _italics_, =bold=, ``quotes'', "--" for a dash, [Illustration],
    [Footnote 1: its text], rows of stars.

    For books only: elsewhere an underscore or two hyphens can be part of a name or of code.
    """
    text = _PAGE_NUMBER.sub("", _DEBRIS.sub("", text))
    text = _FOOTNOTE.sub(r"\1", _FOOTNOTE_MARK.sub("", text))
    text = _THOUGHT_BREAK.sub("\n", text)
    text = _BOLD.sub(r"\1", _STRAY_UNDERSCORE.sub("", _ITALICS.sub(r"\1", text)))
    text = text.replace("``", '"').replace("''", '"')
    return _DASHES.sub(lambda hyphens: "—" * (len(hyphens[0]) // 2), text)


# ---- Hard-wrapped lines

_TABLE_ROW = re.compile(r"\S {3,}\S|\.{4}|(?:\. ){3}|\|.*\|")
_LIST_ITEM = re.compile(r"(?:\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})[.)]|[-*•])\s")
_SENTENCE_END = re.compile(r"[.!?:][\"')\]]*$")
_WORD = re.compile(r"\w+(?:-\w+){0,20}")

_MIN_BREAKS = 3  # with fewer line breaks inside paragraphs, the text does not count as wrapped
_MIN_WIDTH = 40  # narrower text is verse or a list


def wrap_width(text: str) -> int:
    """The width at which the lines of a text are wrapped, in code points; 0 if they are not.

    A program that wraps lines breaks a sentence anywhere, but only where the next word does not fit. So nearly all
    lines that are continued by a lower-case line are full. Verse, lists, and texts with one sentence or one paragraph
    a line have few such lines, or few that are full.
    """
    breaks = 0
    continued: Counter[tuple[int, int]] = Counter()  # the width of a line, and the width with one more word
    for above, below in pairwise(_lines(text)):
        if above and below:
            breaks += 1
            if _continues(below):
                continued[len(above), _needed(above, below)] += 1
    total = sum(continued.values())
    if total < max(_MIN_BREAKS, 0.1 * breaks):
        return 0
    widths = sorted(continued.items())
    counts = accumulate(count for _, count in widths)
    width = next(width for ((width, _), _), count in zip(widths, counts, strict=True) if count > total * 9 // 10)
    full = sum(count for (_, needed), count in continued.items() if needed >= width)
    return width if width >= _MIN_WIDTH and full >= 0.55 * total else 0


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text and where each begins, one at a time, because a text may consist of newlines only."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield start, text[start:end]
        start = end + 1
    yield start, text[start:]


def _lines(text: str) -> Iterator[str]:
    for _, line in lines_of(text):
        # Lines this long are not wrapped, and expanding tabs would make them many times longer.
        yield (line.expandtabs() if "\t" in line and len(line) < 10_000 else line).rstrip()


def unwrap(text: str, width: int) -> str:
    """Text wrapped at `width` with one line for each paragraph; empty lines between blocks stay."""
    words = frozenset(word[0] for word in _WORD.finditer(text.lower())) if "-\n" in text else frozenset()
    out: list[str] = []
    for block in _blocks(_lines(text)):
        out.extend(_paragraphs(block, width, words) if _is_prose(block, width) else block)
        out.append("")
    return "\n".join(out)


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Runs of lines that are not empty."""
    block: list[str] = []
    for line in lines:
        if line:
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


def _needed(above: str, below: str) -> int:
    """The width of a line with the next line's first word added."""
    return len(above) + 1 + len(below.split(None, 1)[0])


def _continues(line: str) -> bool:
    """Whether a line begins like the middle of a sentence."""
    return line.lstrip(" \"'([_—-")[:1].islower()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_prose(block: Sequence[str], width: int) -> bool:
    """Whether the line breaks of a block come from wrapping, not from the author."""
    breaks = list(pairwise(block))
    if not breaks or sum(bool(_TABLE_ROW.search(line)) for line in block) * 2 > len(block):
        return False
    needed = [_needed(above, below) for above, below in breaks]
    full = sum(need >= 0.9 * width for need in needed)
    continued = sum(map(_continues, block[1:]))
    if not full:  # a quotation indented on both sides, or verse, an address, a list
        full = sum(need >= max(map(len, block)) for need in needed)
        return len(breaks) >= _MIN_BREAKS and full >= 0.7 * len(breaks) and continued >= 0.5 * len(breaks)
    if not continued:  # every line begins like a line of verse
        indented = min(map(_indent, block)) > 0
        return full == len(breaks) and len(breaks) < _MIN_BREAKS and not indented
    return full >= 0.5 * len(breaks)


def _paragraphs(block: Sequence[str], width: int, words: frozenset[str]) -> Iterator[str]:
    """The paragraphs of a block of prose, each on one line."""
    width = min(width, max(map(len, block)))
    paragraph = [block[0].strip()]
    for above, below in pairwise(block):
        if _ends_paragraph(above, below, width):
            yield "".join(paragraph)
            paragraph = [below.strip()]
        else:
            glue = _glue(above, below.lstrip(), words)
            if glue is None:
                paragraph[-1] = paragraph[-1][:-1]
            paragraph += [glue or "", below.strip()]
    yield "".join(paragraph)


def _ends_paragraph(above: str, below: str, width: int) -> bool:
    needed = _needed(above, below)
    if _continues(below) and not _LIST_ITEM.match(below.lstrip()):
        return False
    ended = needed < 0.9 * width or bool(_SENTENCE_END.search(above))
    if _indent(below) > _indent(above) or _LIST_ITEM.match(below.lstrip()):
        return ended
    return needed < 0.75 * width


def _glue(above: str, below: str, words: frozenset[str]) -> str | None:
    """What joins two lines of a paragraph: a space or nothing; None if the hyphen at the end is removed as well.

    A word cut at a hyphen is written as elsewhere in the document; if in doubt it keeps the hyphen.
    """
    if above.endswith("—") or below.startswith("—"):
        return " " if above.endswith(" —") or below.startswith("— ") else ""
    if not (above.endswith("-") and above[-2:-1].isalnum() and below[0].isalnum()):
        return " "
    first, second = _WORD.findall(above.lower())[-1], _WORD.findall(below.lower())[0]
    if second in ("and", "or", "to"):  # "pre- and post-war"
        return " "
    return None if first + second in words and f"{first}-{second}" not in words else ""
