"""Wikipedia's XML dumps (pages-articles): every page becomes one item, and any segment can be read on its own.

A page belongs to the segment that its `<page>` begins in; the reader of that segment reads past its end for the rest of
the page. In a bz2, of one stream or many, it is the segment in which the block with the "<" begins. Pages are cut out
by their tags and parsed one by one, each as an XML document without a DTD: entities cannot expand, and a damaged page
does not affect others.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from lxml import etree
from pyarrow import fs

from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Corrupt, Document, Filtered, Item, Page, Record, Redirect, Rejected, items_of
from transforms.sources.options import ReadOptions
from transforms.sources.streams import REMEDY, Damaged, chunks, codec_of, is_wide, read_head
from transforms.sources.wikitext import Site, TooComplex, plain_text

NOT_AN_ARTICLE = "not_an_article"
NOT_WIKITEXT = "not_wikitext"
NO_TEXT = "no_text"

_WIKIMEDIA = re.compile(r"\.(?:wikipedia|wiktionary|wikibooks|wikiquote|wikisource|wikiversity|wikivoyage)\.org$")
_EXCERPT = 200


class SiteInfo(NamedTuple):
    """A dump's description of its wiki."""

    dbname: str
    url_prefix: str
    licence: str
    site: Site


def read_siteinfo(head: bytes) -> SiteInfo:
    """The siteinfo in the first bytes of a dump; what it does not say is as in English Wikipedia.

    Raises XMLSyntaxError or ValueError if it is damaged.
    """
    root = re.search(rb"<mediawiki\b[^>]*>", head)
    language = re.search(rb'xml:lang="([^"]*)"', root[0]) if root else None
    element = re.search(rb"<siteinfo>.*?</siteinfo>", head, re.DOTALL)
    info = etree.fromstring(element[0], _parser()) if element else etree.Element("siteinfo")
    base = urlsplit(info.findtext("base") or "")
    host = base.hostname or ""
    namespaces = {each.text: int(each.get("key", "")) for each in info.iterfind("namespaces/namespace") if each.text}
    return SiteInfo(
        dbname=info.findtext("dbname") or _dbname(host) or "wiki",
        url_prefix=f"{'https' if _WIKIMEDIA.search(host) else base.scheme}://{base.netloc}{base.path.rpartition('/')[0]}/"
        if host
        else "",
        licence="CC BY-SA 4.0" if _WIKIMEDIA.search(host) else "unknown",
        site=Site(
            language=language[1].decode() if language else "en",
            namespaces=namespaces,
            capitalise=info.findtext("case") != "case-sensitive",
        ),
    )


def _dbname(host: str) -> str:
    """The dbname of a host, for dumps before 2013, which have none: en.wikipedia.org is enwiki."""
    labels = host.removeprefix("www.").split(".")
    project = {"wikipedia": "wiki"}.get(labels[1], labels[1]) if len(labels) == 3 else ""
    return labels[0].replace("-", "_") + project if project else "_".join(labels)


class WikipediaXml:
    name = "wikipedia-xml"
    version = 4

    def recognises(self, path: str, head: bytes) -> bool:
        return (
            re.match(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<mediawiki\b", head, re.DOTALL)
            is not None
        )

    def split(self, filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
        try:
            divisible = _codec(filesystem, file.path) in ("none", "bz2") and not is_wide(filesystem, file.path)
        except Damaged:
            divisible = False
        step = max(1, target_bytes) if divisible else max(1, file.size)
        return [Segment(start, min(start + step, file.size)) for start in range(0, max(1, file.size), step)]

    def read(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, *, options: ReadOptions, skip: int = 0
    ) -> Iterator[Item]:
        """Reasons: Filtered "not_an_article", "not_wikitext", "no_text"; Rejected "page_too_large", "too_many_nodes",
        "too_deep"; Corrupt "truncated" (a page, a stream, the dump), "corrupt", "bad_utf8", "bad_xml".
        """
        return items_of(self._records(filesystem, file, segment, options), skip=skip)

    def _records(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, options: ReadOptions
    ) -> Iterator[Record]:
        try:
            info = read_siteinfo(read_head(filesystem, file.path))
        except (etree.XMLSyntaxError, ValueError) as error:
            if segment.start == 0:
                yield Corrupt("bad_xml", 0, f"{file.path!r} has a damaged <siteinfo> ({error}) at byte 0; {REMEDY}")
            return
        except Damaged as damaged:
            if segment.start == 0:
                yield Corrupt(damaged.reason, damaged.byte, damaged.message)
            return
        for page in _pages(filesystem, file.path, segment, options.max_page_bytes):
            yield page if isinstance(page, Corrupt | Rejected) else partial(_item, file.path, page, info, options)


WIKIPEDIA_XML = WikipediaXml()


class _RawPage(NamedTuple):
    byte: int
    xml: bytes


def _parser() -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, remove_comments=True
    )


def _item(path: str, page: _RawPage, info: SiteInfo, options: ReadOptions) -> Item:
    try:
        element = etree.fromstring(page.xml, _parser())
    except etree.XMLSyntaxError as error:
        return _unparsable(path, page, error)
    title = element.findtext("title") or ""
    page_id = element.findtext("id") or ""
    revision = element.findall("revision")[-1:]
    text = revision[0].findtext("text") or "" if revision else ""
    model = revision[0].findtext("model") if revision else None
    if (element.findtext("ns") or str(info.site.namespace(title))).strip() != "0":
        return Filtered(NOT_AN_ARTICLE)
    if target := _redirect_target(element, text):
        return Redirect(info.dbname, title, info.site.title(target), info.site.section(target))
    if model not in (None, "wikitext"):
        return Filtered(NOT_WIKITEXT)
    about = Page(info.dbname, page_id, title, disambiguation=_disambiguates(title, text))
    try:
        plain, links = plain_text(
            text,
            site=info.site,
            left_out=info.site.link_sections if options.link_sections == "drop" else frozenset(),
            max_nodes=options.max_nodes,
            max_depth=options.max_depth,
        )
    except TooComplex as refused:
        position, excerpt = f"byte {page.byte}, page {page_id}", f"{title}: {text}"[:_EXCERPT]
        return Rejected(refused.reason, position, excerpt, page=about)
    if not plain:
        return Filtered(NO_TEXT, about)
    return Document(
        doc_id=f"{info.dbname}:{page_id}",
        source=info.dbname,
        title=title,
        url=info.url_prefix + quote(title.replace(" ", "_"), safe=";@$!*(),/~:'") if info.url_prefix else "",
        licence=info.licence,
        text=plain,
        links=links,
        page=about,
        language=info.site.language,
    )


_TEMPLATE_NAME = re.compile(r"\{\{ *([^\W_][\w -]{0,60}?)\s*(?:\||\}\})")
_DISAMBIGUATES = re.compile(
    r"(?!.*(?:needed|inline|link))[a-z -]{0,40}disambig(?:uation)?[a-z -]{0,40}|[a-z]{0,4}dab|hndis|geodis|schooldis"
    r"|roaddis|hospitaldis|callsigndis|mil-unit-dis|begriffsklärung|homonymie|desambigua[a-zçãó]*|disambigua"
    r"|dp|doorverwijspagina|неоднозначность|неоднозначність|неадназначнасць|ujednoznacznienie|förgrening|gren"
    r"|rozcestník|aimai|曖昧さ回避|消歧义|消歧義",
    re.IGNORECASE,
)


def is_disambiguation(title: str, templates: Iterable[str]) -> bool:
    """Whether a page only lists the meanings of its title, by the templates of larger Wikipedias for such pages."""
    return title.endswith("(disambiguation)") or any(map(_DISAMBIGUATES.fullmatch, templates))


def _disambiguates(title: str, wikitext: str) -> bool:
    return "__DISAMBIG__" in wikitext or is_disambiguation(title, _TEMPLATE_NAME.findall(wikitext))


_REDIRECT = re.compile(r"\s*#\w[^\[\n]*\[\[\s*:?([^\]|\n]+)")
_ENGLISH_REDIRECT = re.compile(r"\s*#redirect", re.IGNORECASE)


def _redirect_target(page: etree._Element, text: str) -> str:
    """The target of a redirect; only the text has its section, and in dumps before 2012 only the text has it at all."""
    redirect = page.find("redirect")
    title = redirect.get("title") if redirect is not None else ""
    match = _REDIRECT.match(text)
    if title:
        return title + "".join(unquote(match[1]).partition("#")[1:]) if match else title
    return match[1] if match and _ENGLISH_REDIRECT.match(text) else ""


def _unparsable(path: str, page: _RawPage, error: etree.XMLSyntaxError) -> Corrupt:
    excerpt = page.xml[:_EXCERPT].decode("utf-8", errors="replace")
    try:
        page.xml.decode("utf-8")
    except UnicodeDecodeError as bad:
        what = f"invalid UTF-8, {bad.start:,} bytes into the page that begins"
        return Corrupt("bad_utf8", page.byte, f"{path!r} has {what} at byte {page.byte:,}; {REMEDY}", excerpt)
    what = f"invalid XML ({error.msg}) in the page that begins"
    return Corrupt("bad_xml", page.byte, f"{path!r} has {what} at byte {page.byte:,}; {REMEDY}", excerpt)


_BEGIN = b"<page>"
_END = b"</page>"
_FOOTER = b"</mediawiki>"


def _pages(
    filesystem: fs.FileSystem, path: str, segment: Segment, limit: int
) -> Iterator[_RawPage | Rejected | Corrupt]:
    """The pages that begin in a segment, in order, and the defects in and between them; one page in memory."""
    exact = _codec(filesystem, path) == "none" and not is_wide(filesystem, path)
    size = filesystem.get_file_info(path).size
    ending = b""
    start: int | None = segment.start
    while start is not None:
        cutter = _Cutter(path, limit=limit, exact=exact)
        try:
            for offset, data in chunks(filesystem, path, start=start, end=segment.end):
                ending = (ending + data[-64:])[-64:]
                yield from cutter.add(offset, data)
            start = None
        except Damaged as damaged:
            yield Corrupt(damaged.reason, damaged.byte, damaged.message)
            yield from cutter.cut()
            start = damaged.resume
            ending = b""
    # The last page may extend past the segment. Damage there is reported by the reader of the next segment.
    with suppress(Damaged):
        rest = chunks(filesystem, path, start=segment.end)
        cutter.end_of_segment()
        while cutter.is_open and (more := next(rest, None)):
            yield from cutter.add(*more)
    yield from cutter.cut()
    if segment.end >= size and _ends_early(filesystem, path, segment.start, size, ending):
        what = f"ends without {_FOOTER.decode()}, so pages may be missing,"
        yield Corrupt("truncated", size, f"{path!r} {what} at byte {size:,}; {REMEDY}")


def _ends_early(filesystem: fs.FileSystem, path: str, start: int, size: int, ending: bytes) -> bool:
    """Whether the dump lacks its closing tag. `ending` is the end of the bytes after `start`; empty if damaged.

    The closing tag may begin before the last segment; then earlier bytes are searched.
    """
    while start > 0 and _FOOTER not in ending:
        start = max(0, 2 * start - size - len(_FOOTER))
        after: int | None = start
        while after is not None:
            try:
                for _, data in chunks(filesystem, path, start=after):
                    ending = (ending + data[-64:])[-64:]
                after = None
            except Damaged as damaged:
                ending, after = b"", damaged.resume
    return bool(ending) and _FOOTER not in ending


class _Cutter:
    """Cuts pages out of a stream of bytes; has only the current page in memory."""

    def __init__(self, path: str, *, limit: int, exact: bool) -> None:
        self._path = path
        self._limit = limit
        self._exact = exact  # a byte of the stream is a byte of the file
        self._bytes = b""
        self._position = 0  # of the first of these bytes in the stream
        self._origins: deque[tuple[int, int]] = deque()  # position in the stream, offset in the file
        self._last: int | None = None  # where the segment ends in the stream; None until that is known
        self._page: int | None = None  # offset in the file of the current page; None between pages
        self._skipped = 0  # bytes of that page already dropped, because it is too large
        self._head = b""  # and its first bytes

    def end_of_segment(self) -> None:
        self._last = self._position + len(self._bytes)

    @property
    def is_open(self) -> bool:
        """Whether a page, or a part of a tag that may begin one, has begun in the segment and not ended."""
        return self._page is not None or any(self._bytes.endswith(_BEGIN[:length]) for length in range(1, len(_BEGIN)))

    def add(self, offset: int, data: bytes) -> Iterator[_RawPage | Rejected | Corrupt]:
        at = 0
        end = -1
        searched = max(0, len(self._bytes) - len(_END) + 1)
        self._origins.append((self._position + len(self._bytes), offset))
        self._bytes += data
        while True:
            if self._page is None:
                begin = self._bytes.find(_BEGIN, at)
                if begin < 0 or (self._last is not None and self._position + begin >= self._last):
                    at = max(at, len(self._bytes) - len(_BEGIN) + 1)
                    break
                self._page = self._stored(self._position + begin)
                at, searched = begin, begin + len(_BEGIN)
            if end < searched:  # searched for once, however many pages begin before it
                end = self._bytes.find(_END, searched)
                end = end if end >= 0 else len(self._bytes)
            next_page = self._bytes.find(_BEGIN, max(searched, at + len(_BEGIN)), end)
            if next_page >= 0:
                yield from self.cut(self._bytes[at : min(next_page, at + 4 * _EXCERPT)])
                at = next_page
            elif end < len(self._bytes):
                end += len(_END)
                yield self._finished(self._bytes[at:end])
                at = end
            else:
                break
            searched = at
        if self._page is not None and self._skipped + len(self._bytes) - at > self._limit:
            self._head = self._head or self._bytes[at : at + 4 * _EXCERPT]
            keep = max(at, len(self._bytes) - len(_END) + 1)
            self._skipped += keep - at
            at = keep
        self._bytes = self._bytes[at:]
        self._position += at

    def cut(self, page: bytes | None = None) -> Iterator[Corrupt]:
        """Reports that the current page, if there is one, has no end."""
        if self._page is not None:
            what = f"has no {_END.decode()} for the page that begins"
            excerpt = (self._head or (self._bytes if page is None else page))[:_EXCERPT].decode("utf-8", "replace")
            yield Corrupt("truncated", self._page, f"{self._path!r} {what} at byte {self._page:,}; {REMEDY}", excerpt)
        self._page, self._skipped, self._head = None, 0, b""

    def _finished(self, xml: bytes) -> _RawPage | Rejected:
        assert self._page is not None
        page = _RawPage(self._page, xml)
        size = self._skipped + len(xml)
        head = (self._head or xml)[: 4 * _EXCERPT].decode("utf-8", "replace")
        self._page, self._skipped, self._head = None, 0, b""
        return page if size <= self._limit else Rejected("page_too_large", f"byte {page.byte}", head[:_EXCERPT])

    def _stored(self, position: int) -> int:
        while len(self._origins) > 1 and self._origins[1][0] <= position:
            self._origins.popleft()
        start, offset = self._origins[0]
        return offset + position - start if self._exact else offset


def _codec(filesystem: fs.FileSystem, path: str) -> str:
    with filesystem.open_input_stream(path, compression=None) as stream:
        return codec_of(path, stream.read(1 << 16))
