"""A wiki page's HTML to plain text with the hyperlinks placed in it, in one linear scan.

The HTML is Parsoid's, as in Wikimedia's HTML dumps and its REST API (mediawiki.org: "Specs/HTML"), or that of the older
parser. The text follows the conventions of the wikitext reader (`transforms/sources/wikitext.py`), so that a corpus can
be made from either: tables, references, navigation, notices, pictures with their captions, pronunciations and
coordinates are removed, and text that templates put into the prose stays.

1. `_Scan` goes from tag to tag with a stack of open elements, and writes text with marks
   (`transforms/sources/prose.py`).
2. The gaps are closed, lines become paragraphs, headings and list items, and links are placed.

Tags are read by the HTML standard (html.spec.whatwg.org, "Tokenization"), but no tree is built. So the same bytes give
the same text with any version of any library, and memory is bounded by the text.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from transforms.sources.items import Link
from transforms.sources.prose import (
    BREAK,
    CLOSE,
    ENTITY,
    FORMULA,
    GAP,
    MIDDLE,
    OPEN,
    PSEUDO_HEADING,
    TABLE,
    Blocks,
    TooComplex,
    check_depth,
    close_gaps,
    entity,
    formula,
    one_line,
    place_links,
    plain_spaces,
    power,
    without_marks,
)
from transforms.sources.wikitext import Site

_HEADING, _ITEM = "\x06", "\x07"  # begin a line; after the first comes the heading's level
_LIST_END = "\x08"
_BOLD, _BOLD_END = "\x0e", "\x0f"


class Limits(NamedTuple):
    """The most that a page may have; TooComplex is raised for more."""

    characters: int = 4_000_000  # of text shown
    nodes: int = 1_000_000  # tags
    depth: int = 100  # nested elements


_LIMITS = Limits()


def plain_text(
    html: str, *, site: Site, title: str = "", left_out: frozenset[str] = frozenset(), limits: Limits = _LIMITS
) -> tuple[str, tuple[Link, ...]]:
    """The text of a page as a reader sees it, and its links to articles, with offsets in that text.

    A line is a paragraph, a heading or a list item; an empty line separates paragraphs. `title` is the page's own;
    links to its sections are left out. `left_out` has the names of sections to leave out, in lower case. Raises
    TooComplex, also with the reason "page_too_large".
    """
    nodes = html.count("<")
    if nodes > limits.nodes:
        raise TooComplex("too_many_nodes", f"{nodes:,} tags, limit {limits.nodes:,}")
    scan = _Scan(site, title, limits)
    scan.read(without_marks(html))
    text = _LIST_ENDS.sub(_between_blocks, "\n" + "".join(scan.pieces) + "\n")
    scan.pieces = []
    text = _BOLD_LINE.sub(rf"\n{_HEADING}{PSEUDO_HEADING}\1", text).translate(_WITHOUT_BOLD)
    return place_links(_lines(close_gaps(plain_spaces(text)), left_out), scan.targets)


def target_of(href: str, *, site: Site, own_title: str = "") -> str:
    """Where an address of Parsoid ("./Title") or of the older parser ("/wiki/Title") leads: "<title>#<section>".

    Empty if it leads to no article: to another namespace, a section of the page itself, or an illegal title.
    """
    path, _, fragment = href.partition("#")
    path, _, query = path.partition("?")
    if path.startswith("/"):
        if path.endswith("/index.php"):
            path = next((each[6:] for each in query.split("&", 20)[:20] if each.startswith("title=")), "")
        else:
            path = path.removeprefix("/wiki/")
            if path.startswith("/"):  # on another host
                return ""
    while path.startswith(("./", "../")):
        path = path.partition("/")[2]
    if not path or len(path) > _LONGEST_PATH:
        return ""
    title = site.title(unquote(path).lstrip(": _"))
    if not title or _NO_TITLE.search(title) or site.namespace(title) != 0:
        return ""
    return "" if fragment and title == own_title else f"{title}#{site.section('#' + unquote(fragment))}"


_LONGEST_PATH = 3 * 255  # a title has at most 255 bytes
_NO_TITLE = re.compile("[\x00-\x1f\x7f<>\\[\\]{}|#\ufffd\ud800-\udfff]")

# ---- What is left out

_RAW = "script style title textarea xmp iframe noembed noframes".split()  # tags in them do not count
_SILENT = frozenset(["head", "template", "noscript", "datalist", *_RAW])
_LEFT_OUT = frozenset(
    "table figure figure-inline figcaption audio video picture object canvas svg map math nav button form".split()
)
_CLASSES = frozenset(
    # boxes and navigation
    "infobox infobox_v2 infobox_v3 infobox-subbox taxobox sidebar vertical-navbox navbox navbox-styles navbar NavFrame "
    "navigation-box navigation-not-searchable portalbox portal portal-bar portalbar side-box sistersitebox sister-bar "
    "succession-box quotebox listen authority-control bandeau-container bandeau-portail bandeau-section ambox mbox "
    "mbox-small ombox tmbox cmbox fmbox imbox dmbox asbox metadata noprint hatnote dablink rellink homonymie seealso "
    "boilerplate toc tocleft tocright mw-editsection mw-jump-link mw-indicators mw-indicator catlinks printfooter "
    "sortkey templatequotecite "
    # references
    "reference references mw-ref mw-references mw-references-wrap mw-reference-text mw-cite-backlink reflist Z3988 "
    "error brokenref mw-ext-cite-error autonumber Inline-Template "
    # pictures, sounds and drawings
    "thumb thumbinner thumbcaption tmulti gallery gallerybox floatleft floatright floatnone mw-file-description "
    "mw-kartographer-map mw-kartographer-container mw-kartographer-maplink mw-ext-score score timeline-wrapper "
    "mw-graph mw-hiero-outer mw-tmh-player mediaContainer locmap chess-board "
    # pronunciation and coordinates
    "IPA IPA-label rt-commentedText respell haudio ext-phonos "
    "coordinates geo geo-default geo-nondefault geo-multi-punct geo-inline geo-inline-hidden nourlexpansion".split()
)
_TYPES = re.compile(
    r"(?:^|\s)mw:(?:File|Image|Video|Audio|Extension/(?:ref|references|gallery|score|timeline|graph|maplink|mapframe"
    r"|imagemap|hiero|indicator|categorytree|inputbox|phonos))(?![\w-])"
)
_HIDDEN = re.compile(r"(?:^|[;\s])(?:display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden)", re.IGNORECASE)
_LONGEST_CACHED = 200


def _leaves_out(name: str, classes: str, types: str, style: str, role: str) -> bool:
    """Whether an element is not a part of the prose."""
    words = classes.split()
    return (
        not _CLASSES.isdisjoint(words)
        or (name == "cite" and "citation" in words)
        or (name in ("div", "pre") and ("mw-highlight" in words or "mw:Extension/syntaxhighlight" in types))
        or role in ("navigation", "note")
        or _TYPES.search(types) is not None
        or _HIDDEN.search(style) is not None
    )


_leaves_out_again = lru_cache(maxsize=4096)(_leaves_out)

# ---- Tags

# A tag as a serialiser writes it, or "<". Each part can match in one way only, so the pattern does not backtrack. It
# keeps a position for each attribute it has read, so their number is limited.
_TOKEN = re.compile(
    r"<(?:(/?)([a-zA-Z][a-zA-Z0-9:-]*)((?:\s+[^\s\"'<>/=]+(?:=\"[^\"]*\"|='[^']*')?){0,50})\s*/?>|(!--)|)", re.ASCII
)
_ATTRIBUTE = re.compile(r"\s([^\s\"'<>/=]+)(?:=\"([^\"]*)\"|='([^']*)')?", re.ASCII)
_ANY_NAME = re.compile(r"[^\s/>]+", re.ASCII)
_ANY_ATTRIBUTE = re.compile(r"[\s/]*(?:(>)|([^\s/>][^\s/>=]*)\s*(=?)\s*)", re.ASCII)
_UNQUOTED = re.compile(r"[^\s>]*", re.ASCII)
_WANTED = frozenset("class typeof style role rel href data-mw data-mw-variant alttext".split())

_TELLING = ("class", "typeof", "style", "role", "data-mw-variant")  # the wanted ones of elements other than links

Attributes = dict[str, str]


def _attributes(written: str) -> Attributes:
    """The wanted attributes; of several with one name the first counts."""
    found: Attributes = {}
    for match in _ATTRIBUTE.finditer(written):
        name = match[1]
        if name in _WANTED or (name := name.lower()) in _WANTED:
            found.setdefault(name, _shown(match[2] or match[3] or ""))
    return found


def _shown(text: str) -> str:
    return ENTITY.sub(entity, text) if "&" in text else text


def _careful_tag(html: str, position: int) -> tuple[str, Attributes, int] | None:
    """The tag whose name begins at `position`, by the whole standard, and its end; None if the input ends first."""
    name = _ANY_NAME.match(html, position)
    assert name
    position = name.end()
    found: Attributes = {}
    while match := _ANY_ATTRIBUTE.match(html, position):
        position = match.end()
        if match[1]:
            return name[0].lower(), found, position
        value = ""
        if match[3]:
            quote = html[position : position + 1]
            if quote in ('"', "'"):
                end = html.find(quote, position + 1)
                if end < 0:
                    return None
                value, position = html[position + 1 : end], end + 1
            else:
                unquoted = _UNQUOTED.match(html, position)
                assert unquoted
                value, position = unquoted[0], unquoted.end()
        if (attribute := match[2].lower()) in _WANTED:
            found.setdefault(attribute, _shown(value))
    return None


_VOID = frozenset(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr".split()
)
_BLOCKS = frozenset(
    "p div blockquote center hr section article header footer main aside details summary caption tr td th tbody body"
    " html address fieldset legend".split()
)
_LISTS = frozenset(("ul", "ol", "dl"))
_LEVELS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6, "dt": PSEUDO_HEADING}
_IN_P = frozenset(["pre", "table", "figure", "form", *(_BLOCKS - {"p"}), *_LISTS, *_LEVELS])
# The open elements that end, without an end tag, where an element of this name begins.
_ENDED_BY = {
    **{name: frozenset(["p"]) for name in _IN_P},
    **{name: frozenset(["p", name]) for name in ("p", "li", "tr")},
    **{name: frozenset(["p", "dt", "dd"]) for name in ("dt", "dd")},
    **{name: frozenset(["p", "td", "th"]) for name in ("td", "th")},
}
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE | re.ASCII) for name in _RAW}

_EMPTY_LINES = re.compile("\n[ \n]*\n")
_EXPONENT = re.compile(r"\s*([-+−–]?\d+)\s*")
_STYLED = re.compile(r"\{\\(?:display|text)style (.*)\}", re.DOTALL)
_TEX = re.compile(r'"extsrc":"([^"\\]{0,100})"')
_BLOCK_MARKS = re.compile(f"\n *\n|[{_HEADING}{_ITEM}{_LIST_END}]")
_MATHS = ("mwe-math-element", "mw:Extension/math", "mw:Extension/chem", "mw:Extension/ce")


class _Open(NamedTuple):
    """An open element; `kind` decides what its end does, `at` is the number of its first piece."""

    name: str
    kind: str = ""
    at: int = 0
    title: str = ""


class _Scan:
    """Reads tags, and collects in `pieces` the shown text with marks.

    <p>The <a rel="mw:WikiLink" href="./Cat">cat</a><sup class="reference">[1]</sup> sat</p>

    gives the pieces "\\n\\n", "The ", OPEN 0 MIDDLE "cat" CLOSE (one piece), GAP (the element left out), " sat" and
    "\\n\\n", and the targets ["Cat"].
    """

    def __init__(self, site: Site, title: str, limits: Limits) -> None:
        self.pieces: list[str] = []
        self.targets: list[str] = []
        self._site = site
        self._title = title
        self._limits = limits
        self._characters = 0  # shown so far
        self._stack: list[_Open] = []
        self._count: dict[str, int] = {}  # open elements by name
        self._left_out = 0  # the depth of the element that is left out; 0 if none is
        self._formula: str | None = None  # the formula of the element that is left out; None if it is no formula
        self._in_line = 0  # open list items, lists and headings: a newline is a space
        self._in_verse = 0

    def read(self, html: str) -> None:
        """Reads a page: the text up to each "<", then what begins there. If that has no end, the rest is dropped."""
        position = 0
        search = _TOKEN.search
        while match := search(html, position):
            start = match.start()
            if start > position and not self._left_out:
                self._text(html[position:start])
            position = match.end()
            name = match[2]
            if name is not None:
                position = self._tag(html, name.lower(), match[1], match[3], position)
            elif match[4]:  # "<!--", which "-->" ends, also that of "<!-->"
                position = _end_of("-->", html, position - 2)
            else:
                position = self._other(html, position)
            if position < 0:
                break
        else:
            if not self._left_out:
                self._text(html[position:])
        while self._stack:
            self._close()

    def _tag(self, html: str, name: str, closing: str, attributes: str | Attributes, position: int) -> int:
        """Takes a tag that ends at `position`; returns where to read on, -1 if the input ends in its element."""
        if closing:
            self._end(name)
            return position
        self._start(name, attributes)
        if name in _RAW_ENDS:
            end = _RAW_ENDS[name].search(html, position)
            return end.start() if end else -1
        return position

    def _other(self, html: str, position: int) -> int:
        """Takes what begins with a "<" just before `position` and is not in the form of `_TOKEN`; returns as `_tag`.

        <a href=x> is a tag, <!DOCTYPE html>, <?xml?> and </ 1> are comments, and the "<" of "1 < 2" is text.
        """
        closing = "/" if html.startswith("/", position) else ""
        begin = position + len(closing)
        following = html[begin : begin + 1]
        if following.isascii() and following.isalpha():
            tag = _careful_tag(html, begin)
            if tag is None:
                return -1
            name, attributes, position = tag
            return self._tag(html, name, closing, attributes, position)
        if closing or following in ("!", "?"):
            return _end_of(">", html, position)
        if not self._left_out:
            self._text("<")
        return position

    def _text(self, text: str) -> None:
        text = _shown(text)
        self._characters += len(text)
        if self._characters > self._limits.characters:
            raise TooComplex("page_too_large", f"more than {self._limits.characters:,} characters of text")
        if "\n" in text:
            if self._in_verse:
                text = text.replace("\n", BREAK)
            elif self._in_line:
                text = text.replace("\n", " ")
            elif self._count.get("p"):
                text = _EMPTY_LINES.sub("\n", text)
        if text:
            self.pieces.append(text)

    def _start(self, name: str, attributes: str | Attributes) -> None:
        """Takes a start tag: ends the elements that it ends, then opens its own or begins to leave it out."""
        if self._left_out:
            if name == "body" and self._count.get("head"):
                self._end("head")
            else:
                if self._formula == "" and name == "math":
                    self._formula = self._tex(_attributes(attributes) if isinstance(attributes, str) else attributes)
                if name not in _VOID:
                    self._push(_Open(name))
                return
        if name in _VOID:
            self._void(name)
            return
        if ended := _ENDED_BY.get(name):
            while self._stack and self._stack[-1].name in ended:
                self._close()
        if name == "a" and self._count.get("a"):
            self._end("a")
        found: Attributes = {}
        if attributes:
            if not isinstance(attributes, str):
                found = attributes
            elif name == "a" or any(each in attributes for each in _TELLING):
                found = _attributes(attributes)
        if self._is_left_out(name, found):
            is_table = name == "table" and _CLASSES.isdisjoint(found.get("class", "").split())
            self._push(_Open(name, "table" if is_table else "left out"))
            self._left_out = len(self._stack)
        else:
            self._open(name, found)

    def _open(self, name: str, found: Attributes) -> None:
        """Opens an element that is shown: puts it on the stack, and the marks of its beginning into the pieces."""
        at = len(self.pieces)
        if name == "a":
            self._push(_Open(name, "link", at, self._target(found)))
        elif name in _BLOCKS:
            self.pieces.append("\n\n")
            self._push(_Open(name, "block"))
        elif name in ("li", "dd"):
            self.pieces.append("\n" + _ITEM)
            self._in_line += 1
            self._push(_Open(name, "item"))
        elif name in _LISTS:
            self._in_line += 1
            self._push(_Open(name, "list"))
        elif name in _LEVELS:
            self.pieces.append(f"\n\n{_HEADING}{_LEVELS[name]}")
            self._in_line += 1
            self._push(_Open(name, "heading"))
        elif name == "pre":
            self.pieces.append("\n\n")
            self._in_verse += 1
            self._push(_Open(name, "verse"))
        elif name == "sup":
            self._push(_Open(name, "power", at))
        elif name in ("b", "strong") and not self._in_line and not self._in_verse:
            self.pieces.append(_BOLD)
            self._push(_Open(name, "bold"))
        else:
            if "data-mw-variant" in found:
                self._text(_variant(found["data-mw-variant"]))
            self._push(_Open(name))

    def _void(self, name: str) -> None:
        if name == "br":
            self.pieces.append(BREAK)
        elif name == "hr":
            self.pieces.append("\n\n")
        elif name in ("img", "embed"):
            self.pieces.append(GAP)

    def _is_left_out(self, name: str, found: Attributes) -> bool:
        self._formula = None
        if name == "math":
            self._formula = self._tex(found)
        elif found and any(each in found.get("class", "") or each in found.get("typeof", "") for each in _MATHS):
            self._formula = self._tex(found)
            return True
        if name in _LEFT_OUT or name in _SILENT:
            return True
        if not found:
            return False
        told = [found.get(each, "") for each in ("class", "typeof", "style", "role")]
        judge = _leaves_out_again if sum(map(len, told)) < _LONGEST_CACHED else _leaves_out
        return judge(name, *told)

    @staticmethod
    def _tex(found: Attributes) -> str:
        """The formula in an element's attributes; empty if there is none."""
        if "alttext" in found:
            styled = _STYLED.fullmatch(found["alttext"])
            return styled[1] if styled else found["alttext"]
        source = _TEX.search(found.get("data-mw", ""))
        return source[1] if source else ""

    def _target(self, found: Attributes) -> str:
        href = found.get("href", "")
        kinds = found.get("rel", "").split()
        classes = found.get("class", "").split()
        if not href or "external" in classes or "extiw" in classes:
            return ""
        if "mw:WikiLink" not in kinds and (not href.startswith("/") or any(each.startswith("mw:") for each in kinds)):
            return ""
        return target_of(href, site=self._site, own_title=self._title)

    def _push(self, element: _Open) -> None:
        self._stack.append(element)
        self._count[element.name] = self._count.get(element.name, 0) + 1
        check_depth(self._stack, self._limits.depth)

    def _end(self, name: str) -> None:
        if not self._count.get(name):
            if name == "p" and not self._left_out:
                self.pieces.append("\n\n")
            return
        while self._close() != name:
            pass

    def _close(self) -> str:
        """Closes the innermost element; returns its name."""
        name, kind, at, title = self._stack.pop()
        self._count[name] -= 1
        if not kind:
            return name
        if kind == "table":
            self._left_out = 0
            self.pieces.append(f"\n\n{TABLE}\n\n")
        elif kind == "left out":
            self._left_out = 0
            if self._formula is not None:
                self.pieces.append(formula(self._formula) if self._formula else FORMULA)
            elif name in _BLOCKS or name in _LISTS or name in ("table", "figure", "pre", "nav"):
                self.pieces.append("\n\n")
            elif name not in _SILENT:
                self.pieces.append(GAP)
        elif kind == "link":
            self._link(at, title)
        elif kind == "block":
            self.pieces.append("\n\n")
        elif kind == "item":
            self._in_line -= 1
        elif kind == "list":
            self._in_line -= 1
            self.pieces.append(_LIST_END)
        elif kind == "heading":
            self._in_line -= 1
            self.pieces.append("\n\n")
        elif kind == "verse":
            self._in_verse -= 1
            self.pieces.append("\n\n")
        elif kind == "power":
            if len(self.pieces) - at <= 2 and (exponent := _EXPONENT.fullmatch("".join(self.pieces[at:]))):
                self.pieces[at:] = [power(exponent[1], self.pieces[at - 1][-1:] if at else "")]
        elif kind == "bold":
            self.pieces.append(_BOLD_END)
        return name

    def _link(self, at: int, title: str) -> None:
        content = "".join(self.pieces[at:])
        if not content.strip(" \n" + GAP):
            self.pieces[at:] = [GAP]
            return
        if not title or _BLOCK_MARKS.search(content):
            return
        anchor = one_line(plain_spaces(content).translate(_WITHOUT_BOLD))
        if not anchor:
            self.pieces[at:] = [GAP]
            return
        before = " " if content[0].isspace() else ""
        after = " " if content[-1].isspace() else ""
        self.pieces[at:] = [f"{before}{OPEN}{len(self.targets)}{MIDDLE}{anchor}{CLOSE}{after}"]
        self.targets.append(title)


def _end_of(mark: str, html: str, position: int) -> int:
    """Where the next `mark` ends; -1 if there is none."""
    found = html.find(mark, position)
    return found + len(mark) if found >= 0 else -1


def _variant(written: str) -> str:
    """The text of the first variant of -{zh-hans:a; zh-hant:b}-, from its JSON."""
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):
        return ""
    for kind in ("disabled", "twoway", "oneway"):
        each = value.get(kind) if isinstance(value, dict) else None
        each = each[0] if isinstance(each, list) and each else each
        if isinstance(each, dict) and isinstance(each.get("t"), str):
            return "" if "<" in each["t"] else without_marks(each["t"])
    return ""


# ---- Lines

_LIST_ENDS = re.compile(f"{_LIST_END}[ \n{_LIST_END}]*")
_BOLD_LINE = re.compile(f"\n{_BOLD}([^\n{_BOLD}{_BOLD_END}]+){_BOLD_END}[ :{GAP}{BREAK}]*(?=\n)")
_WITHOUT_BOLD = {ord(_BOLD): None, ord(_BOLD_END): None}


def _between_blocks(match: re.Match[str]) -> str:
    """Lists that follow each other without an empty line become one; other text is a paragraph of its own."""
    if match.string[match.end() : match.end() + 1] == _ITEM:
        return "\n\n" if match[0].count("\n") > 2 else "\n"
    return "\n\n"


def _lines(text: str, left_out: frozenset[str]) -> str:
    """Paragraphs, headings and list items from lines with marks."""
    blocks = Blocks(left_out)
    for raw in text.split("\n"):
        line = raw.strip()
        if not line:
            blocks.end_paragraph()
        elif line[0] == TABLE:
            blocks.table()
        elif line[0] == _HEADING:
            blocks.heading(int(line[1]), line[2:])
        elif line[0] == _ITEM:
            blocks.item(line[1:])
        else:
            blocks.prose(line)
    return blocks.text()
