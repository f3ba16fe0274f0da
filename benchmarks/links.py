"""Accounts for every link of a dump's articles: compares those in the wikitext with those of our reader.

    python -m benchmarks.links enwiki-fragment.xml.bz2 enwiki-minidump.xml.bz2 --json links.json

mwparserfromhell, another parser, finds the links of the wikitext. What it leaves as text (comments, nowiki, galleries,
markup that it gives up on) is searched for brackets, so that every "[[" of a page is a link or has a reason. Unless its
place gives a reason against it (`REASONS`), a link must be found: our reader must have a link with the same title, by
MediaWiki's rules as implemented again here, and the same anchor except for white space, in the same order if possible.
Links that are not found, and links of ours that match none, are unexplained and listed.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from html import unescape
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from lxml import etree
from pyarrow import fs

from benchmarks import harness
from transforms.sources.items import Document
from transforms.sources.streams import chunks, read_head
from transforms.sources.templates import expand, expansion_of, lists_in
from transforms.sources.text import clean
from transforms.sources.wikipedia import read_siteinfo
from transforms.sources.wikitext import LINK_TRAILS, Site

REASONS = {
    "table": "in a table",
    "file": "to a file that is shown, or a category that the page is put into",
    "template": "in an argument of a template that we drop, or that the template does not show",
    "caption": "in the caption of a file",
    "reference": "in a reference",
    "comment": "in a comment",
    "wiki": "to another wiki or language",
    "gallery": "in a gallery, an image map or a timeline",
    "section": "to a section of the page itself",
    "namespace": "to a page that is no article",
    "heading": "in a heading with no text below it",
    "title": "in a line of a few words above a table or a template, which goes with the table",
    "outer": "its anchor holds another link, which counts instead",
    "no anchor": "shows nothing",
    "no title": "no page can have this title: MediaWiki shows the brackets",
    "no link": "brackets that nothing closes",
    "no wikitext": "in nowiki, pre, math, source code or an attribute of a tag",
}
FOUND, UNEXPLAINED = "found", "unexplained"
ANYTHING = "\ue000"

_OWN_TAGS = {"ref": "reference", "references": "reference", "table": "table", "gallery": "gallery"}
_GALLERIES = {"imagemap": "gallery", "timeline": "gallery"}


class Wanted(NamedTuple):
    """A link of the wikitext, or one made by a template that we expand (`made`)."""

    position: int  # of its brackets in the wikitext
    written: str
    title: str
    anchor: str  # as shown; ANYTHING matches what only MediaWiki can render
    reason: str  # why it is not a link of ours; empty if it must be
    made: bool = False
    heading: str = ""  # the text of the heading that holds it


class Unexplained(NamedTuple):
    page: str
    line: int  # of the wikitext, from 1; 0 for a link of ours
    what: str
    link: str


class Account(NamedTuple):
    """The account of one dump."""

    pages: Counter[str]  # compared, or why not
    wikitext: int  # links in the wikitext of the pages compared
    ours: int
    counts: Counter[str]  # of the links in the wikitext: found, and by reason
    made: int  # links of ours made by templates
    unexplained: list[Unexplained]


# ---- How MediaWiki reads a link (Parser::handleInternalLinks2, MediaWikiTitleCodec::splitTitleString)

_DIRECTIONAL = re.compile("[\u200e\u200f\u202a-\u202e]")
_BLANKS = re.compile("[ _\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_NO_TITLE = re.compile(
    r"[\x00-\x1f\x7f<>\[\]{}|\ufffd]|%[0-9A-Fa-f]{2}|&(?:[A-Za-z0-9\x80-\uffff]+|#\d+|#x[0-9A-Fa-f]+);"
    r"|^\.{1,2}(?:/|$)|/\.{1,2}(?:/|$)|~~~|^:"
)
_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-f]+|\w+);", re.IGNORECASE)
_URL = re.compile(r"(?:[a-z+.-]+:)?//|mailto:|news:|urn:|geo:|tel:|sip:|xmpp:|magnet:|bitcoin:", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]{1,10}){0,2}|simple")
_WIKIS = frozenset(
    "b c commons d doi foundation incubator imdbname imdbtitle m media mediawikiwiki meta metawikipedia mw n oeis"
    " outreach phab q s species tools v voy w wikt wikibooks wikidata wikimedia wikinews wikipedia wikiquote"
    " wikisource wikispecies wikiversity wikivoyage wiktionary wmf".split()
)


def resolve(written: str, site: Site) -> tuple[str, str]:
    """The title in a link's target, and the reason if the link does not lead to an article."""
    target = unquote(written, errors="replace") if "%" in written else written
    if _URL.match(target.strip()):
        return "", "no title"
    target = unicodedata.normalize("NFC", _ENTITY.sub(lambda entity: unescape(entity[0]), target))
    target = _BLANKS.sub(" ", _DIRECTIONAL.sub("", target)).strip()
    listed = target.startswith(":")
    target = target.removeprefix(":").strip()
    if target.lower().startswith(f"{site.language}:"):  # the wiki's own language, unless to another project
        target = target.partition(":")[2].strip().removeprefix(":").strip()
    prefix, colon, rest = target.partition(":")
    name = prefix.strip().lower()
    if colon and name in site.namespaces:
        key = site.namespaces[name]
        if key:
            return "", "file" if key in (6, 14) and not listed else "namespace"
        target = rest.strip()
    elif colon and (name in _WIKIS or _LANGUAGE.fullmatch(prefix.strip())):
        return "", "wiki"
    title = target.partition("#")[0].strip()
    if not title:
        return "", "section" if "#" in target else "no title"
    if _NO_TITLE.search(title) or len(title.encode()) > 255:
        return "", "no title"
    first = title[0].upper() if site.capitalise and len(title[0].upper()) == 1 else title[0]
    return first + title[1:], ""


# ---- The links of a wikitext


class _Walker:
    """Walks through mwparserfromhell's nodes of a page, in the order of the wikitext."""

    def __init__(self, wikitext: str, site: Site) -> None:
        self.wikitext = wikitext
        self.site = site
        self.found: list[Wanted] = []
        self._position = 0
        self._trail = re.compile(f"[a-z{LINK_TRAILS.get(site.language, '')}]+")

    def walk(self, code: object, reason: str) -> None:
        """`reason` is why links here are not links of ours; empty if they are."""
        nodes = list(getattr(code, "nodes", ()))
        for node, after in zip_longest(nodes, nodes[1:]):
            self._node(node, reason, after)

    def _node(self, node, reason: str, after: object) -> None:
        kind = type(node).__name__
        if kind == "Text":
            self._raw(str(node), reason)
        elif kind == "Comment":
            self._raw(str(node), reason or "comment", closed="comment")
        elif kind == "Wikilink":
            self._link(node, reason, str(after) if type(after).__name__ == "Text" else "")
        elif kind == "Template":
            self._template(node, reason)
        elif kind == "Argument":
            self.walk(node.name, reason or "template")
            self.walk(node.default, reason)
        elif kind == "ExternalLink":
            self.walk(node.url, reason)
            self.walk(node.title, reason)
        elif kind == "Heading":
            first = len(self.found)
            self.walk(node.title, reason)
            text = _squashed(shown(node.title))
            self.found[first:] = [each._replace(heading=text) for each in self.found[first:]]
        elif kind == "Tag":
            self._tag(node, reason)

    def _tag(self, node, reason: str) -> None:
        name = str(node.tag).strip().lower()
        for attribute in node.attributes:
            self._raw(str(attribute), reason or "no wikitext", closed="no wikitext")
        inside = _OWN_TAGS.get(name, "")
        if is_parsed(name):
            self.walk(node.contents, reason or inside)
        else:
            why = inside or _GALLERIES.get(name, "no wikitext")
            self._raw(str(node.contents), reason or why, closed=why)

    def _template(self, node, reason: str) -> None:
        kept = expanded(node)
        first = len(self.found)
        self.walk(node.name, reason or "template")
        for parameter in node.params:
            if parameter.showkey:
                self.walk(parameter.name, reason or "template")
            self.walk(parameter.value, reason)
        if not reason:
            self.found[first:] = [
                each if each.reason or each.written in kept else each._replace(reason="template")
                for each in self.found[first:]
            ]
        written = str(node)
        for match in _LINK.finditer(kept):
            if match[0] not in written:
                self._add(match[0], match[1], match[2] or match[1], reason, made=True)

    def _link(self, node, reason: str, after: str) -> None:
        label = str(node.text or "")
        anchor = ANYTHING if node.text == "" else shown(node.title if node.text is None else node.text)
        if node.text is None:
            anchor = anchor.lstrip().removeprefix(":")
        elif "[" in label and label.count("[") > label.count("]") and after.startswith("]"):
            anchor, after = anchor + "]", after[1:]  # [[a|b [c]]] as MediaWiki reads it
        trail = self._trail.match(after)
        target_made = any(type(each).__name__ in ("Template", "Argument") for each in node.title.nodes)
        anchor += trail[0] if trail else ""
        place = len(self.found)
        self._add(str(node), str(node.title), anchor, reason or ("template" if target_made else ""))
        outer = self.found[place]
        self.walk(node.title, reason or "template")
        if node.text is not None:
            self.walk(node.text, reason or {"file": "caption", "wiki": "wiki"}.get(outer.reason, ""))
        if not outer.reason and any(not each.reason for each in self.found[place + 1 :]):
            self.found[place] = outer._replace(reason="outer")

    def _raw(self, text: str, reason: str, closed: str = "") -> None:
        """Links in brackets that mwparserfromhell reads as text."""
        for match in _BRACKETS.finditer(text):
            if match[1] is None:
                self._add(match[0], "", "", reason or "no link")
            else:
                self._add(match[0], match[1], match[2] or match[1], reason or closed)

    def _add(self, written: str, target: str, anchor: str, reason: str, made: bool = False) -> None:
        if not made:
            self._position = self.wikitext.index(written, self._position)
        title, why = resolve(target, self.site) if target else ("", "")
        reason = reason or why or ("" if anchor.strip() else "no anchor")
        self.found.append(Wanted(self._position, written, title, anchor, reason, made))
        if not made:
            self._position += 2


_LINK = re.compile(r"\[\[([^\[\]|\n{}<>]+)(?:\|([^\[\]]*))?\]\]")
_BRACKETS = re.compile(r"\[\[(?:([^\[\]|\n{}<>]+)(?:\|([^\[\]]*))?\]\])?")


def is_parsed(tag: str) -> bool:
    from mwparserfromhell.definitions import is_parsable

    return is_parsable(tag)


def expanded(template) -> str:
    """The wikitext that replaces a template in our reader; empty if it is dropped."""
    expansion = expansion_of(str(template.name))
    content = str(template.name)
    for parameter in template.params:
        key = f"{parameter.name}=" if parameter.showkey else ""
        content += f"|{key}{''.join(map(_within_template, parameter.value.nodes))}"
    return lists_in(content) if expansion is None else expand(expansion, content)


def _within_template(node) -> str:
    kind = type(node).__name__
    if kind == "Template":
        return expanded(node)
    return "" if kind == "Comment" or (kind == "Tag" and str(node.tag) == "ref") else str(node)


def shown(code: object) -> str:
    """The text shown by wikitext, with templates as in our reader."""
    import mwparserfromhell

    text = ""
    for node in getattr(code, "nodes", ()):
        kind = type(node).__name__
        if kind == "Text":
            text += re.sub("'{2,}", "", str(node))
        elif kind == "HTMLEntity":
            text += node.normalize()
        elif kind == "Template":
            text += shown(mwparserfromhell.parse(expanded(node), skip_style_tags=True))
        elif kind == "Tag" and is_parsed(str(node.tag)):
            text += "" if str(node.tag) in ("ref", "br") else shown(node.contents)
        elif kind == "Wikilink":
            text += shown(node.title if node.text is None else node.text)
        elif kind != "Comment":
            text += ANYTHING
    return text


def links_of(wikitext: str, site: Site) -> list[Wanted]:
    """Every link of a page's wikitext, in order."""
    import mwparserfromhell

    walker = _Walker(wikitext, site)
    walker.walk(mwparserfromhell.parse(wikitext, skip_style_tags=True), "")  # '' over a tag or a template confuses it
    return walker.found


# ---- Comparison with our links


def is_anchor(expected: str, anchor: str) -> bool:
    """Whether an anchor is the expected one, except for white space."""
    pattern = ".*".join(re.escape(_squashed(piece)) for piece in expected.split(ANYTHING))
    return re.fullmatch(pattern, _squashed(anchor)) is not None


def _squashed(text: str) -> str:
    return re.sub(r"[\s_\u200c\u200d]+", "", clean(text))


def pair(wanted: Sequence[Wanted], ours: Sequence[tuple[str, str]]) -> dict[int, int]:
    """The wanted links among ours (title, anchor), by index: first those in the same order, then the others."""
    due = [index for index, each in enumerate(wanted) if not each.reason]
    pairs: dict[int, int] = {}
    matcher = SequenceMatcher(None, [wanted[index].title for index in due], [title for title, _ in ours], False)
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            index, other = due[block.a + offset], block.b + offset
            if is_anchor(wanted[index].anchor, ours[other][1]):
                pairs[index] = other
    left = defaultdict(list)
    for other in sorted(set(range(len(ours))) - set(pairs.values())):
        left[ours[other][0]].append(other)
    for index in due:
        if index not in pairs:
            others = left[wanted[index].title]
            for other in others:
                if is_anchor(wanted[index].anchor, ours[other][1]):
                    pairs[index] = other
                    others.remove(other)
                    break
    return pairs


def compare(wanted: Sequence[Wanted], document: Document, wikitext: str) -> tuple[Counter[str], int, list[Unexplained]]:
    """Counts of the wikitext's links by outcome, how many of our links are made by templates, and the unexplained."""
    for link in document.links:
        assert 0 <= link.start_char < link.end_char <= len(document.text), (document.title, link)
    lines = {_squashed(line) for line in document.text.split("\n")}
    wanted = [
        each._replace(reason="heading") if each.heading and not each.reason and each.heading not in lines else each
        for each in wanted
    ]
    ours = [(link.target_title, document.text[link.start_char : link.end_char]) for link in document.links]
    pairs = pair(wanted, ours)
    counts: Counter[str] = Counter()
    made = 0
    unexplained = []
    for index, each in enumerate(wanted):
        if index not in pairs and not each.reason and _ABOVE_TABLE.match(wikitext, each.position):
            each = each._replace(reason="title")
        if each.made:
            made += index in pairs
        else:
            counts[FOUND if index in pairs else each.reason or UNEXPLAINED] += 1
        if index not in pairs and not each.reason:
            line = wikitext.count("\n", 0, each.position) + 1
            what = "a template's link is not ours" if each.made else "not ours"
            unexplained.append(Unexplained(document.title, line, what, each.written))
    for other in sorted(set(range(len(ours))) - set(pairs.values())):
        written = f"[[{ours[other][0]}|{ours[other][1]}]]"
        unexplained.append(Unexplained(document.title, 0, "not in the wikitext", written))
    return counts, made, unexplained


_ABOVE_TABLE = re.compile(r"[^\n]{0,1000}\n\s*(?:\{[|{]|<table)")


# ---- Whole dumps


def pages_of(path: str) -> Iterator[tuple[str, str]]:
    """The id and wikitext of each article of a dump, including redirects."""
    parser = etree.XMLPullParser(events=("end",), tag="{*}page", resolve_entities=False, huge_tree=True)
    for _, data in chunks(fs.LocalFileSystem(), path):
        parser.feed(data)
        for _, page in parser.read_events():
            if (page.findtext("{*}ns") or "0").strip() == "0":
                yield page.findtext("{*}id") or "", page.findtext("{*}revision/{*}text") or ""
            page.clear()


def account(path: Path) -> Account:
    """Compare the links of all documents of a dump, and count the other articles."""
    pages: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    in_wikitext = ours = all_made = 0
    unexplained: list[Unexplained] = []
    articles = harness.documents(path)
    document = next(articles, None)
    site = read_siteinfo(read_head(fs.LocalFileSystem(), str(path))).site
    for page_id, wikitext in pages_of(str(path)):
        if document is None or document.doc_id.rpartition(":")[2] != page_id:
            pages["redirect" if _REDIRECT.match(wikitext) else "no document"] += 1
            continue
        wanted = links_of(wikitext, site)
        pages["compared"] += 1
        found, made, left = compare(wanted, document, wikitext)
        in_wikitext += sum(not each.made for each in wanted)
        ours += len(document.links)
        counts += found
        all_made += made
        unexplained += left
        document = next(articles, None)
    assert document is None, f"{document.doc_id} is no page of {path}"
    assert in_wikitext == counts.total()
    assert ours == counts[FOUND] + all_made + sum(not each.line for each in unexplained)
    return Account(pages, in_wikitext, ours, counts, all_made, unexplained)


_REDIRECT = re.compile(r"\s*#redirect", re.IGNORECASE)


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("dumps", nargs="+", type=Path, metavar="FILE", help="pages-articles XML, compressed or not")
    options = parser.parse_args()
    accounts = {path.name: account(path) for path in options.dumps}
    dumps = list(accounts.values())
    rows: list[tuple[str, list[int], str]] = [
        ("pages", [of.pages["compared"] for of in dumps], "articles that are documents"),
        ("links", [of.wikitext for of in dumps], "in the wikitext of these pages"),
        (FOUND, [of.counts[FOUND] for of in dumps], "ours has the same title and anchor"),
        *((reason, [of.counts[reason] for of in dumps], REASONS[reason]) for reason in REASONS),
        (UNEXPLAINED, [of.counts[UNEXPLAINED] for of in dumps], "listed below"),
        ("ours", [of.ours for of in dumps], "links of our reader"),
        ("made", [of.made for of in dumps], "of these, by templates that we expand"),
        ("too many", [sum(not one.line for one in of.unexplained) for of in dumps], "of these, not in the wikitext"),
    ]
    harness.show("links", ("", *accounts, ""), [(name, *figures, meaning) for name, figures, meaning in rows])
    for name, of in accounts.items():
        for page, line, what, link in of.unexplained:
            print(f"{name}: {page}, line {line}: {what}: {link}")
    figures = {
        name: {**each._asdict(), "unexplained": [every._asdict() for every in each.unexplained]}
        for name, each in accounts.items()
    }
    harness.write(options.json, figures)
    sys.exit(1 if any(each.unexplained for each in dumps) else 0)


if __name__ == "__main__":
    main()
