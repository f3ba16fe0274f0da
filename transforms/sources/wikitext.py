"""Wikitext to plain text with the hyperlinks placed in it, in one linear scan and a few passes of regular expressions.

1. `_outline` scans from bracket to bracket with an explicit stack. Templates, tables, references, comments and the
   like are removed, except templates that represent words (`transforms/sources/templates.py`).
2. Entities, HTML tags, links and quotes are replaced by passes over the rest.
3. The gaps where something was dropped are closed, and lines become paragraphs, headings and list items.
4. The offsets of the links are read off the finished text.

Between the steps the text holds marks: control characters, which XML cannot hold, so that no input can forge them. A
link is OPEN, its number, MIDDLE, its anchor, CLOSE. So its offsets stay exact, whatever a later step does to the
characters in and around the anchor. MediaWiki's rules decide what a reader sees (mediawiki.org: "Help:Links",
"Help:Formatting", "Preprocessor ABNF").
"""

from __future__ import annotations

import re
from functools import cached_property
from urllib.parse import unquote

from transforms.sources.items import Link
from transforms.sources.prose import (
    BREAK,
    CLOSE,
    ENTITY,
    GAP,
    MIDDLE,
    OPEN,
    PSEUDO_HEADING,
    SCHEME,
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
from transforms.sources.templates import expand, expansion_of, lists_in

# Characters that are not markup (from <nowiki> or an entity) are replaced by others until the end. None of these is
# white space to str.split.
_LITERAL = "[]{}|<>'=*#:;_-!&~"
_STAND_IN = "\x00\x06\x07\x08\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b"
_PROTECT = str.maketrans(_LITERAL, _STAND_IN)
_UNPROTECT = dict(zip(_STAND_IN, _LITERAL, strict=True))
_PROTECTED = re.compile(f"[{_STAND_IN}]")


def _unprotected(text: str) -> str:
    return _PROTECTED.sub(lambda match: _UNPROTECT[match[0]], text)


class Site:
    """The settings of a wiki that affect its markup.

    `namespaces` maps each name (any case; aliases too) to its key: 0 articles, 6 files, 14 categories.
    """

    def __init__(self, *, language: str = "en", namespaces: dict[str, int], capitalise: bool = True) -> None:
        self.language = language
        self.capitalise = capitalise
        self.namespaces = {
            **dict.fromkeys(("file", "image"), 6),
            **dict.fromkeys(FILE_ALIASES.get(language, ()), 6),
            "category": 14,
            **{name.lower(): key for name, key in namespaces.items()},
        }

    @cached_property
    def link_sections(self) -> frozenset[str]:
        """The names of the sections that only list other pages."""
        names = LINK_SECTIONS.get(self.language.partition("-")[0])
        return frozenset(names.split(", ") if names else ())

    def namespace(self, title: str) -> int:
        """The key of the namespace that a title names; 0 if it names none."""
        prefix, colon, _ = title.partition(":")
        return self.namespaces.get(prefix.strip().replace("_", " ").lower(), 0) if colon else 0

    def title(self, written: str) -> str:
        """A title in the wiki's own form: spaces, no fragment, the first letter by the wiki's rule."""
        title = " ".join(written.partition("#")[0].replace("_", " ").split())
        return capitalised(title) if self.capitalise else title

    @staticmethod
    def section(written: str) -> str:
        """The section that a link names after "#", with spaces; empty if it names none."""
        section = " ".join(written.partition("#")[2].replace("_", " ").split())
        return "" if _NO_SECTION.search(section) else section

    @cached_property
    def link(self) -> re.Pattern[str]:
        """A link without another in it, and the letters after it that belong to its anchor."""
        trail = "a-z" + LINK_TRAILS.get(self.language, "")
        # Each bracket can match in one way only, so the pattern does not backtrack.
        label = r"[^\[\]]*(?:(?:\[(?!\[)[^\[\]]*\]|\](?!\]))[^\[\]]*)*"
        return re.compile(rf"\[\[([^\[\]|\n<>{{}}]*)(?:\|({label}))?\]\]([{trail}]*)")


_NO_SECTION = re.compile("[\x00-\x1f\x7f\ufffd\ud800-\udfff]")


def capitalised(title: str) -> str:
    """The title with its first letter in upper case, if that is a single letter in everyday use.

    As in MediaWiki, "ß" stays, whose upper case is two letters, and so do Georgian letters, whose upper case is for
    whole words only.
    """
    first = title[:1]
    upper = first.upper()
    return upper + title[1:] if len(upper) == 1 and not "\u10d0" <= first <= "\u10ff" else title


LINK_SECTIONS = {
    "ar": "انظر أيضا, اقرأ أيضا, وصلات خارجية, روابط خارجية", "ca": "vegeu també, enllaços externs",
    "cs": "související články, externí odkazy", "da": "se også, eksterne henvisninger, eksterne links",
    "de": "siehe auch, weblinks, literatur", "en": "see also, external link, external links, further reading",
    "es": "véase también, enlaces externos", "fi": "katso myös, aiheesta muualla",
    "fr": "voir aussi, articles connexes, liens externes, lien externe", "he": "ראו גם, קישורים חיצוניים, לקריאה נוספת",
    "hu": "lásd még, további információk, külső hivatkozások", "it": "voci correlate, collegamenti esterni",
    "ja": "関連項目, 外部リンク", "ko": "같이 보기, 외부 링크", "nl": "zie ook, externe link, externe links",
    "no": "se også, eksterne lenker", "pl": "zobacz też, linki zewnętrzne", "pt": "ver também, ligações externas",
    "ru": "см. также, ссылки", "sv": "se även, externa länkar", "tr": "ayrıca bakınız, dış bağlantılar",
    "uk": "див. також, посилання", "zh": "参见, 參見, 外部链接, 外部連結, 延伸阅读, 延伸閱讀",
}  # fmt: skip
"""By language, the names of the sections that only list other pages, in lower case."""

FILE_ALIASES = {
    "ar": ("صورة",), "cs": ("soubor",), "da": ("billede",), "de": ("bild",), "es": ("imagen",), "fi": ("kuva",),
    "he": ("תמונה",), "it": ("immagine",), "ja": ("画像",), "nl": ("afbeelding",), "no": ("bilde",), "pl": ("grafika",),
    "pt": ("imagem",), "ru": ("изображение",), "sv": ("bild",), "uk": ("зображення",), "zh": ("图像", "圖像"),
}  # fmt: skip
"""Older names of the file namespace that pages still use and siteinfo does not list."""

LINK_TRAILS = {
    "ar": "ء-ي", "ca": "àèéíòóúç·ïü", "cs": "áčďéěíňóřšťúůýž", "da": "æøå", "de": "äöüß", "el": "α-ωάέόίύώήϊϋΐΰς",
    "es": "áéíóúñ", "fi": "äö", "fr": "àâçéèêîôûäëïöüùÇÉÂÊÎÔÛÄËÏÖÜÀÈÙ", "he": "א-ת", "hu": "áéíóúöüőű",
    "it": "àéèíîìóòúù", "nl": "äöüïëéèà", "no": "æøå", "pl": "ęóąśłżźćńĘÓĄŚŁŻŹĆŃ", "pt": "áâãàéêçíòóôõúü",
    "ro": "ăâîşţșț", "ru": "а-яё", "sk": "áäčďéíľĺňóôŕšťúýž", "sv": "åäöéÅÄÖÉ", "tr": "çğıöşüÇĞİÖŞÜ",
    "uk": "а-щьюяєіїґ'",
}  # fmt: skip
"""By language, the letters besides a-z that belong to a link's anchor if they follow its brackets."""


def plain_text(
    wikitext: str,
    *,
    site: Site,
    left_out: frozenset[str] = frozenset(),
    max_nodes: int = 200_000,
    max_depth: int = 100,
) -> tuple[str, tuple[Link, ...]]:
    """The text of a page as a reader sees it, and its links, with offsets in that text.

    A line is a paragraph, a heading or a list item; an empty line separates paragraphs. `left_out` has the names of
    sections to leave out, in lower case. Raises TooComplex.
    """
    nodes = wikitext.count("{{") + wikitext.count("[[") + wikitext.count("<") + wikitext.count("{|")
    if nodes > max_nodes:
        raise TooComplex("too_many_nodes", f"{nodes:,} nodes of markup, limit {max_nodes:,}")
    text = without_marks(wikitext)
    text = _outline(text, max_depth)
    text = _characters(text)
    text = _tags(text)
    targets: list[str] = []
    text = _links(text, site, targets, max_depth)
    text = _BOLD_LINE.sub(rf"\n{'=' * PSEUDO_HEADING}\1{'=' * PSEUDO_HEADING}", text)
    text = _quotes(text)
    text = _lines(close_gaps(text), left_out)
    if _PROTECTED.search(text) or _PROTECTED.search("".join(targets)):
        text = _unprotected(text)
        targets = [_unprotected(target) for target in targets]
    return place_links(text, targets)


# 1. Templates, tables, references, comments


# Tags whose content is not wikitext (or not prose) and ends at the first closing tag.
_OPAQUE = (
    "ref|references|nowiki|pre|poem|gallery|math|chem|ce|score|timeline|syntaxhighlight|source|hiero|graph|imagemap"
    "|mapframe|maplink|templatedata|templatestyles|inputbox|indicator|includeonly|categorytree|phonos|section"
)
_OUTLINE = re.compile(
    r"\{\{+|\}\}+"
    r"|\n[ \t:*#]*\{\||\n[ \t:]*\|\}(?=\}\}(?!\})|(?!\}))"
    rf"|<!--|<({_OPAQUE})(?![a-z])([^<>]*)>|</?table(?![a-z])[^<>]*>",
    re.IGNORECASE,
)
_CLOSING_TAGS = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in _OPAQUE.split("|")}
_TEMPLATE_NAME = re.compile(r"[^|{}<>\[\]]{0,100}")
_REST_OF_LINE = re.compile(r"[ \t]*\n")
_TABLE_LINE = f"\n{TABLE}\n{GAP}"


class _Frame:
    """An open bracket; `kind` is "{" (with the number of braces), "|" for a table, "<" for an HTML table."""

    __slots__ = ("braces", "kind", "pieces")

    def __init__(self, kind: str, braces: int = 0) -> None:
        self.kind = kind
        self.braces = braces
        self.pieces: list[str] = []


def _outline(text: str, max_depth: int) -> str:
    """The text without templates, tables, comments and other brackets, after a newline.

    `stack` holds the open brackets, each with the pieces read inside it; `pieces` are those of the innermost one, or of
    the text itself (`root`). In "a {{nowrap|b {{x}}}} c" there are two frames. "}}}}" first closes {{x}}, which
    becomes GAP in the pieces of the outer one, then {{nowrap|b GAP}}, which becomes "b GAP" in `root`.
    """
    text = "\n" + text
    root: list[str] = []
    pieces = root
    stack: list[_Frame] = []
    open_templates = 0
    never_closed: set[str] = set()
    position = 0
    search = _OUTLINE.search
    while match := search(text, position):
        start = match.start()
        if start > position:
            pieces.append(text[position:start])
        token = match[0]
        position = match.end()
        first = token[0]
        if first == "{":
            # Each pair of braces is closed separately, which copies its content.
            if len(token) // 2 > max_depth:
                raise TooComplex("too_deep", f"markup nested more than {max_depth} deep")
            stack.append(_Frame("{", len(token)))
            open_templates += 1
        elif first == "}":
            open_templates = _close_braces(len(token), open_templates, stack, root)
        elif first == "\n":
            if token.endswith("{|"):
                stack.append(_Frame("|"))
            elif stack and stack[-1].kind == "|":
                stack.pop()
                (stack[-1].pieces if stack else root).append(_TABLE_LINE)
        elif token.startswith("<!--"):
            end = text.find("-->", position)
            position = len(text) if end < 0 else end + 3
            if _at_line_start(text, start) and (rest := _REST_OF_LINE.match(text, position)):
                position = rest.end()  # a line with nothing else is removed as a whole
        elif token[1:6].lower() == "table":
            stack.append(_Frame("<"))
        elif token[1] == "/":
            if stack and stack[-1].kind == "<":
                stack.pop()
                (stack[-1].pieces if stack else root).append(_TABLE_LINE)
        else:
            name = match[1].lower()
            content = ""
            if not token.endswith("/>"):
                end_tag = None if name in never_closed else _CLOSING_TAGS[name].search(text, position)
                if end_tag is None:
                    never_closed.add(name)
                    pieces.append(GAP)
                    continue
                content = text[position : end_tag.start()]
                position = end_tag.end()
            pieces.append(_opaque(name, content, match[2], max_depth))
        check_depth(stack, max_depth)
        pieces = stack[-1].pieces if stack else root
    pieces.append(text[position:])
    for frame in stack:  # never closed
        root.extend(_without_opener(frame))
    return "".join(root)


def _close_braces(closing: int, open_templates: int, stack: list[_Frame], root: list[str]) -> int:
    """Closes templates and parameters with a run of braces; returns how many frames of "{" are still open.

    If both sides have at least three braces, three of them are a parameter; otherwise two are a template. In "{{{{x}}}"
    a frame has 4 braces: "}}}" closes the parameter {{{x}}}, and the brace that is left is text.
    """
    while closing >= 2 and open_templates:
        while stack[-1].kind != "{":
            _abandon(stack)
        frame = stack[-1]
        used = 3 if min(closing, frame.braces) >= 3 else 2
        result = _parameter(frame.pieces) if used == 3 else _template(frame.pieces)
        closing -= used
        frame.braces -= used
        if frame.braces >= 2:
            frame.pieces = [result]
        else:
            stack.pop()
            open_templates -= 1
            outside = stack[-1].pieces if stack else root
            outside.append("{" + result if frame.braces else result)
    if closing == 1:
        (stack[-1].pieces if stack else root).append("}")
    return open_templates


def _at_line_start(text: str, position: int) -> bool:
    while text[position - 1] in " \t":
        position -= 1
    return text[position - 1] == "\n"


def _abandon(stack: list[_Frame]) -> None:
    """Removes the top frame, which nothing closes; its content goes to the frame below."""
    frame = stack.pop()
    stack[-1].pieces.extend(_without_opener(frame))


def _without_opener(frame: _Frame) -> list[str]:
    """The content of a bracket that nothing closes, without its first line, which has its name or style."""
    for index, piece in enumerate(frame.pieces):
        _, newline, rest = piece.partition("\n")
        if newline:
            return ["\n", rest, *frame.pieces[index + 1 :]]
    return []


def _template(pieces: list[str]) -> str:
    name = _TEMPLATE_NAME.match(pieces[0]) if pieces else None
    expansion = expansion_of(name[0]) if name else None
    if expansion is None:
        return (lists_in("".join(pieces)) if any("\n*" in piece for piece in pieces) else "") or GAP
    return expand(expansion, "".join(pieces)) or GAP


def _parameter(pieces: list[str]) -> str:
    """The default of a parameter: {{{name|default}}} outside a template shows it."""
    return "".join(pieces).partition("|")[2] or GAP


def _opaque(name: str, content: str, attributes: str, max_depth: int) -> str:
    if name == "nowiki":
        return content.translate(_PROTECT) or GAP
    if name == "pre" or (name in {"syntaxhighlight", "source"} and "inline" in attributes):
        return _verse(content.translate(_PROTECT)) if name == "pre" else content.translate(_PROTECT)
    if name == "poem":
        return _verse(_outline(content, max_depth))
    return formula(content) if name in {"math", "chem", "ce"} else GAP


def _verse(content: str) -> str:
    return "\n\n" + BREAK.join(content.strip("\n").split("\n")) + "\n\n"


# 2. Characters, tags, links, quotes


def _characters(text: str) -> str:
    if "&" in text:
        text = ENTITY.sub(lambda match: entity(match).translate(_PROTECT), text)
    return plain_spaces(text)


_SPACED = "p|div|blockquote|center|ul|ol|dl|h[1-6]|hr|section|article|header|footer|figure|details|caption|tr|table"
_ITEM = "li|dt|dd"
_INLINE = (
    "small|big|sub|sup|b|i|u|s|em|strong|span|font|code|tt|kbd|samp|var|cite|q|dfn|abbr|acronym|del|ins|strike|mark|bdi"
    "|bdo|ruby|rb|rp|rt|rtc|wbr|noinclude|onlyinclude|includeonly|nowiki|ref|references|poem|pre|gallery|math|td|th"
    "|tbody|thead|time|data|a|img|translate|tvar|languages|syntaxhighlight|source|section|noindex|charinsert|summary"
)
_TAG = re.compile(rf"<(?:/\s*)?(?:(br)|({_SPACED})|({_ITEM})|{_INLINE})(?![a-z0-9])[^<>]*>", re.IGNORECASE)
_POWER = re.compile(r"<sup>\s*([-+−–]?\d+)\s*</sup>", re.IGNORECASE)


def _tag(match: re.Match[str]) -> str:
    kind = match.lastindex
    if kind is None:
        return ""
    if kind == 1:
        return BREAK
    if kind == 2:
        return "\n\n"
    return "" if "/" in match[0][:3] else "\n* "


def _tags(text: str) -> str:
    if "<" not in text:
        return text
    return _TAG.sub(_tag, _POWER.sub(_power, text))


def _power(match: re.Match[str]) -> str:
    return power(match[1], match.string[match.start() - 1] if match.start() else "")


_EXTERNAL = re.compile(rf"\[(?:{SCHEME})[^\s\[\]<>{OPEN}{CLOSE}{GAP}]*((?:[ {OPEN}{GAP}][^\[\]\n]*)?)\]", re.IGNORECASE)
_IS_URL = re.compile(SCHEME, re.IGNORECASE)
_LANGUAGE_PREFIX = re.compile(
    r"[a-z]{2,3}|simple|zh-(?:min-nan|classical|yue)|be-(?:x-old|tarask)|roa-(?:rup|tara)|map-bms|cbk-zam|nds-nl"
    r"|fiu-vro|bat-smg|sr-ec|sr-el"
)
_SISTERS = frozenset(
    "w wikipedia wikt wiktionary n wikinews b wikibooks q wikiquote s wikisource v wikiversity voy wikivoyage c commons"
    " d wikidata species wikispecies m meta metawikipedia mw mediawikiwiki foundation wmf incubator doi rfc hdl arxiv"
    " oeis imdbname imdbtitle google phab toollabs toolforge bugzilla gerrit outreach tools".split()
)
_PLAIN_TITLE = re.compile(r"[^\W_]+(?:[ -][^\W_]+)*")
_BRACKETS = re.compile(r"\[\[|\]\]")


def _links(text: str, site: Site, targets: list[str], max_depth: int) -> str:
    if "[" not in text:
        return text

    def shown(match: re.Match[str]) -> str:
        target, label, trail = match.groups()
        if label is None and _PLAIN_TITLE.fullmatch(target):  # a short way for nearly half of all links
            targets.append(capitalised(target) if site.capitalise else target)
            return f"{OPEN}{len(targets) - 1}{MIDDLE}{target}{trail}{CLOSE}"
        return _link(target, label, trail, site, targets)

    if "[[" in text:
        text = site.link.sub(shown, text)
        if "[[" in text:
            text = _nested_links(text, site, targets, max_depth)
        text = text.replace("]]", "") if "]]" in text else text
    return _EXTERNAL.sub(_external, text)


def _external(match: re.Match[str]) -> str:
    return match[1].strip() or GAP


def _nested_links(text: str, site: Site, targets: list[str], max_depth: int) -> str:
    """Replaces links that hold others, such as pictures with captions; of other links the text and inner links stay."""
    root: list[str] = []
    stack: list[list[str]] = []
    position = 0
    while match := _BRACKETS.search(text, position):
        (stack[-1] if stack else root).append(text[position : match.start()])
        position = match.end()
        if match[0] == "[[":
            stack.append([])
            check_depth(stack, max_depth)
        elif stack:
            content = "".join(stack.pop())
            target, pipe, label = content.partition("|")
            shown = _link(target, label if pipe else None, "", site, targets)
            (stack[-1] if stack else root).append(shown)
    (stack[-1] if stack else root).append(text[position:])
    for pieces in stack:  # never closed
        if pieces and site.namespace(pieces[0].lstrip(" :")) in (6, 14):
            pieces[0] = pieces[0].partition("\n")[1] + pieces[0].partition("\n")[2]
        root.extend(pieces)
    return "".join(root)


def _link(target: str, label: str | None, trail: str, site: Site, targets: list[str]) -> str:
    """What a link becomes: its anchor between the marks of a link, or only text, or nothing."""
    written = _percent_decoded(target.replace(GAP, "").replace(BREAK, " ").replace(TABLE, " ").strip())
    listed = written.startswith(":")  # [[:Category:X]] is a link to the category, not membership
    written = written.lstrip(": ")
    meant = _unprotected(written)  # in a title an entity is its character
    own = f"{site.language}:"
    if meant[: len(own)].lower() == own:  # the prefix of the wiki's own language
        meant = meant[len(own) :].lstrip(": ")
    prefix, colon, _ = meant.partition(":")
    if colon and not listed and site.namespace(meant) in (6, 14):
        return GAP + trail
    is_link = site.namespace(meant) == 0  # to an article, which is an entity
    if colon:
        # Prefixes of languages are in lower case: "CSI: Miami" is a title.
        sister = prefix.strip().lower() in _SISTERS
        language = not sister and _LANGUAGE_PREFIX.fullmatch(prefix.strip()) is not None
        if prefix.strip().lower() not in site.namespaces:
            if language and not listed:
                return GAP + trail
            is_link = not (sister or language or _IS_URL.match(meant))
            if label is None and _IS_URL.match(written):
                label = written.partition(" ")[2]
    if label is None:
        label = written.replace("_", " ")
    elif not label:
        label = _pipe_trick(written)
    if "''" in label:
        label = _quotes(label)
    title = site.title(meant)
    if not title or OPEN in label or OPEN in title:
        return label + trail
    before = " " if label[:1].isspace() else ""
    after = " " if label[-1:].isspace() and not trail else ""
    anchor = one_line(label + trail)
    if not anchor or not is_link or _NO_TITLE.search(title):
        return before + anchor + after or GAP
    targets.append(f"{title}#{site.section(meant)}")
    return f"{before}{OPEN}{len(targets) - 1}{MIDDLE}{anchor}{CLOSE}{after}"


def _percent_decoded(target: str) -> str:
    if "%" not in target:
        return target
    try:
        decoded = unquote(target, errors="strict")
    except UnicodeDecodeError:
        return target
    return plain_spaces(without_marks(decoded))


_NO_TITLE = re.compile("[\x00-\x1f\x7f<>\\[\\]{}|\ufffd]|%[0-9A-Fa-f]{2}")
"""What no title can hold; brackets with such a target are not a link."""


def _pipe_trick(title: str) -> str:
    """The anchor of [[title|]]: "Pipe" for "Help:Pipe (computing)", "Boston" for "Boston, Massachusetts"."""
    name = (title.partition(":")[2] or title).strip()
    if name.endswith(")") and "(" in name:
        return name[: name.rindex("(")].rstrip()
    return name.partition(", ")[0]


_BOLD_LINE = re.compile(rf"\n'''(?:'')?((?:[^\n']|'(?!'))+)(?:'')?'''[ \t:{GAP}{BREAK}]*(?=\n)")
_RUN = re.compile(r"'{2,}")
_ODD_RUN = re.compile(r"''''(?:''|(?!'))")


def _quotes(text: str) -> str:
    """The text without bold and italic quotes; an apostrophe among them stays: l'''amour'' shows "l'amour"."""
    if "''" not in text:
        return text
    if "'''" in text:
        text = "\n".join(_balance_quotes(line) if "'''" in line else line for line in text.split("\n"))
    if _ODD_RUN.search(text):
        return _RUN.sub(_apostrophes, text)
    return text.replace("'''''", "").replace("'''", "").replace("''", "")


def _apostrophes(match: re.Match[str]) -> str:
    length = len(match[0])
    return "'" if length == 4 else "'" * (length - 5) if length > 5 else ""


def _balance_quotes(line: str) -> str:
    """A line whose numbers of bolds and of italics are both odd: like MediaWiki, reads one ''' as an apostrophe and ''.

    This is the first one after a single letter, or else after a word, or else after a space.
    """
    runs = [(run.start(), len(run[0])) for run in _RUN.finditer(line)]
    italics = sum(length == 2 or length >= 5 for _, length in runs)
    bolds = [start for start, length in runs if length in (3, 4)]
    if not (italics % 2 and (len(bolds) + sum(length >= 5 for _, length in runs)) % 2 and bolds):
        return line
    at = min(bolds, key=lambda start: _rank(line[max(0, start - 2) : start]))
    return f"{line[:at]}{_PROTECT_APOSTROPHE}{line[at + 1 :]}"


_PROTECT_APOSTROPHE = "'".translate(_PROTECT)


def _rank(before: str) -> int:
    if not before or before[-1] == " ":
        return 2
    return 0 if len(before) == 1 or before[0] == " " else 1


# 3. Gaps and lines


_HEADING = re.compile(r"(={1,7})(.+?)\1")
_MAGIC_WORD = re.compile(r"__[A-Z]{3,}__")
_VARIANT = re.compile(r"-\{([^{}\n]*)\}-")
_WHOLE_LINKS = re.compile(f"[^{OPEN}{CLOSE}]*(?:{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}[^{OPEN}{CLOSE}]*){{0,100}}")
_COLON = re.compile(f" ?: ?|({OPEN}[^{CLOSE}]*{CLOSE})")


def _lines(text: str, left_out: frozenset[str]) -> str:
    """Paragraphs, headings and list items from lines of wikitext without brackets."""
    if "__" in text:
        text = _MAGIC_WORD.sub("", text)
    if "-{" in text:
        text = _VARIANT.sub(_variant, text)
    blocks = Blocks(left_out)
    for raw in text.split("\n"):
        line = raw.strip()
        if not line:
            blocks.end_paragraph()
            continue
        first = line[0]
        if first == "=" and (heading := _HEADING.fullmatch(line)):
            blocks.heading(len(heading[1]), heading[2])
        elif first in "*#:;":
            item = line.lstrip("*#:; ")
            if line[: len(line) - len(item)].rstrip().endswith(";"):
                colon = next((match for match in _COLON.finditer(item) if not match[1]), None)
                if colon and colon.end() < len(item):
                    blocks.item(item[: colon.start()])
                    blocks.item(item[colon.end() :])
                else:
                    blocks.heading(PSEUDO_HEADING, item)
            else:
                blocks.item(item)
        elif first == "|" or line.startswith(("{|", "!-", "! ")) or ("!!" in line and first == "!"):
            blocks.end_paragraph()  # the rest of a table whose beginning is in a template
        elif first == TABLE:
            blocks.table()
        elif line.startswith("----"):
            blocks.end_paragraph()
            blocks.prose(line.lstrip("-"))
        else:
            blocks.prose(line)
    return blocks.text()


def _variant(match: re.Match[str]) -> str:
    """The first variant of -{zh-hans:a; zh-hant:b}-, "a"."""
    first = match[1].rpartition("|")[2].partition(";")[0]
    shown = first.rpartition(":")[2].strip()
    return shown if _WHOLE_LINKS.fullmatch(shown) and _WHOLE_LINKS.fullmatch(match[1]) else match[0]
