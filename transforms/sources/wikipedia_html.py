"""Wikipedia's HTML dumps (Wikimedia Enterprise): a JSON object a line, each a page as its readers see it.

A dump is an archive of large files of lines (`enwiki-NS0-20240601-ENTERPRISE-HTML.json.tar.gz`), which is read as a
stream; or such files on their own (.ndjson, also compressed), which are split over workers if they are not compressed.
Documents have the same ids as from an XML dump, "<dbname>:<page id>". A page's Wikidata id, its redirects and whether
it is a disambiguation page go into a side table.

These dumps do not list the names of their wiki's namespaces. The English names hold in every wiki, `NAMESPACES` has
those of larger Wikipedias, and each record has the name of its own.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice

from pyarrow import fs

from transforms.sources.archives import NOT_TEXT, TarMember, tar_records
from transforms.sources.books import empty_file
from transforms.sources.formats import InputFile, Segment
from transforms.sources.html import Limits, plain_text, target_of
from transforms.sources.items import Corrupt, Document, Filtered, Item, Page, Record, Redirect, Rejected, items_of
from transforms.sources.jsonlines import LONGEST_FIELD, line_records, object_of
from transforms.sources.lines import Line, cut_lines, split_lines
from transforms.sources.options import ReadOptions
from transforms.sources.prose import TooComplex
from transforms.sources.streams import Damaged, codec_of, read_head
from transforms.sources.wikipedia import NO_TEXT, NOT_AN_ARTICLE, is_disambiguation
from transforms.sources.wikitext import Site

PAGE_FACTOR = 5
"""How many times the limits on a page's wikitext, in bytes and nodes, its line here and the tags of its HTML may have.

For the 106 articles of a fragment, rendered without most of their templates, the lines had 4.5 times the bytes, and the
HTML 4.9 times the nodes. With all its templates a page has more of both.
"""

MAX_REDIRECTS = 10_000  # of one page
_EXCERPT = 200

_HTML_DUMP = re.compile(r"-NS\d+-.*ENTERPRISE-HTML", re.IGNORECASE)
_LINES_MEMBER = re.compile(r"\.(?:ndjson|jsonl|json)$", re.IGNORECASE)
_ARTICLE_BODY = re.compile(rb'"article_body"\s{0,9}:\s{0,9}[{n]')
_BEGIN = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"')
_TAR_MAGIC = slice(257, 262)
_TAR_BLOCK = 512


class WikipediaHtml:
    """A line is a page."""

    name = "wikipedia-html"
    version = 2

    def recognises(self, path: str, head: bytes) -> bool:
        named = _HTML_DUMP.search(path) is not None
        if not head:
            return named
        if head[_TAR_MAGIC] == b"ustar":
            name, head = _first_member(head)
            if not _LINES_MEMBER.search(name):
                return False
        if not _BEGIN.match(head):
            return False
        return named or _ARTICLE_BODY.search(head.partition(b"\n")[0]) is not None

    def split(self, filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
        if _is_tar(filesystem, file):
            return [Segment(0, file.size)]
        return split_lines(filesystem, file, target_bytes=target_bytes)

    def read(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, *, options: ReadOptions, skip: int = 0
    ) -> Iterator[Item]:
        """Reasons: Filtered "not_an_article", "no_text", "not_a_text_file"; Rejected "page_too_large",
        "too_many_nodes", "too_deep", "record_too_large"; Corrupt "truncated", "corrupt", "bad_utf8", "bad_record".
        """
        return items_of(self._records(filesystem, file, segment, options), skip=skip)

    def _records(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, options: ReadOptions
    ) -> Iterator[Record]:
        if not file.size:
            return iter((empty_file(file),))
        limit = options.max_page_bytes * PAGE_FACTOR

        def too_long(line: Line) -> Item:
            excerpt = line.data.decode("utf-8", "replace")[:_EXCERPT]
            return Rejected("page_too_large", f"byte {line.stored}", excerpt, f"more than {limit:,} bytes")

        parse = partial(_item, options=options)
        if not _is_tar(filesystem, file):
            return line_records(filesystem, file, segment, limit=limit, parse=parse, too_long=too_long)

        def records(member: TarMember) -> Iterator[Record]:
            if not member.is_file or member.has_holes or not _LINES_MEMBER.search(member.name):
                yield Filtered(NOT_TEXT)
                return
            for line in cut_lines(_pieces(member), limit=limit, exact=member.stream.exact):
                if line.too_long:
                    yield too_long(line)
                elif line.data.strip():
                    where = f"{file.path!r}, member {member.name!r}, the line at byte {line.start:,} of it"
                    yield partial(parse, line, where, exact=member.stream.exact)

        return tar_records(filesystem, file, records)


WIKIPEDIA_HTML = WikipediaHtml()


def _is_tar(filesystem: fs.FileSystem, file: InputFile) -> bool:
    """Whether a file is an archive; the name decides if the file is too damaged to be read."""
    try:
        with filesystem.open_input_file(file.path) as source:
            head = source.read(_TAR_BLOCK)
            if codec_of(file.path, head) == "none":
                return bool(head[_TAR_MAGIC] == b"ustar")
        return read_head(filesystem, file.path, _TAR_BLOCK)[_TAR_MAGIC] == b"ustar"
    except Damaged:
        return re.search(r"\.(?:tar|tgz)\b", file.path, re.IGNORECASE) is not None


def _first_member(head: bytes) -> tuple[str, bytes]:
    """The name of the first file in a tar that is not empty, and its first bytes."""
    at = 0
    while at + _TAR_BLOCK <= len(head):
        header = head[at : at + _TAR_BLOCK]
        size = header[124:136].strip(b" \0")
        at += _TAR_BLOCK
        about = header[156:157] in b"xgLK5"  # an extended header, or a folder
        if not about and size.strip(b"0"):
            return header[:100].rstrip(b"\0").decode("utf-8", "replace"), head[at:]
        at += -(-int(size, 8) // _TAR_BLOCK) * _TAR_BLOCK if re.fullmatch(rb"[0-7]+", size) else 0
    return "", b""


def _pieces(member: TarMember) -> Iterator[tuple[int, bytes]]:
    """The content of a member, as (stored offset, some bytes). Raises ReadError if the archive ends inside it."""
    stream, left = member.stream, member.size
    while left > 0:
        data = stream.some(left)
        if not data:
            raise tarfile.ReadError("unexpected end of data")
        left -= len(data)
        yield stream.stored - len(data) if stream.exact else stream.stored, data


# ---- Records


def _item(line: Line, where: str, *, options: ReadOptions, exact: bool) -> Item:
    remedy = "write one page of the dump a line"
    record = object_of(line, where, exact=exact, remedy=remedy)
    if not isinstance(record, dict):
        return record
    body = record.get("article_body")
    html = body.pop("html", None) if isinstance(body, dict) else None
    source = _string(_inner(record, "is_part_of", "identifier")) or "wiki"
    language = _string(_inner(record, "in_language", "identifier"))
    page_id = record.get("identifier")
    title = _title(record.get("name"))
    excerpt = line.data[: 4 * _EXCERPT].decode("utf-8", "replace")[:_EXCERPT]
    missing = next(
        (
            name
            for name, there in (
                ("name", title),
                ("identifier", isinstance(page_id, int) and not isinstance(page_id, bool)),
                ("article_body.html", isinstance(html, str)),
            )
            if not there
        ),
        "",
    )
    namespace = _inner(record, "namespace", "identifier")
    site = _site(language, source)
    in_articles = namespace == 0 if isinstance(namespace, int) else site.namespace(title) == 0
    if not in_articles and missing in ("", "article_body.html"):
        return Filtered(NOT_AN_ARTICLE)
    if missing:
        message = f"{where} has no {missing!r}; take a dump of whole pages (ENTERPRISE-HTML) or pass --on-corrupt=skip"
        return Corrupt("bad_record", line.stored, message, excerpt)
    assert isinstance(html, str)
    if target := _redirect_target(html, site):
        page, _, section = target.partition("#")
        return Redirect(source, title, page, section)
    about = Page(
        source,
        str(page_id),
        title,
        entity_id=_entity_id(_inner(record, "main_entity", "identifier")),
        disambiguation=_disambiguates(title, html, record.get("templates")),
        redirects=tuple(_titles(record.get("redirects"), site, MAX_REDIRECTS)),
    )
    limits = Limits(options.max_page_bytes, options.max_nodes * PAGE_FACTOR, options.max_depth)
    left_out = site.link_sections if options.link_sections == "drop" else frozenset()
    try:
        text, links = plain_text(html, site=site, title=title, left_out=left_out, limits=limits)
    except TooComplex as refused:
        return Rejected(
            refused.reason, f"byte {line.stored}, page {page_id}", f"{title}: {excerpt}"[:_EXCERPT], page=about
        )
    if not text:
        return Filtered(NO_TEXT, about)
    return Document(
        doc_id=f"{source}:{page_id}",
        source=source,
        title=title,
        url=_string(record.get("url")),
        licence=_licence(record.get("license")),
        text=text,
        links=links,
        page=about,
        language=language,
    )


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _string(value: object) -> str:
    """A short string, without control characters; empty for any other value."""
    return _CONTROL.sub("", value).strip() if isinstance(value, str) and len(value) <= LONGEST_FIELD else ""


def _title(value: object) -> str:
    return " ".join(_string(value).replace("_", " ").split())


def _inner(record: Mapping[str, object], *names: str) -> object:
    value: object = record
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _entity_id(value: object) -> str:
    return value if isinstance(value, str) and re.fullmatch(r"Q[1-9]\d{0,17}", value, re.ASCII) else ""


def _names(value: object, limit: int) -> Iterator[str]:
    for each in value[:limit] if isinstance(value, list) else ():
        if isinstance(each, Mapping) and (name := _title(each.get("name"))):
            yield name


def _titles(value: object, site: Site, limit: int) -> Iterator[str]:
    """Titles in the article namespace, each once."""
    return iter(dict.fromkeys(site.title(name) for name in _names(value, limit) if site.namespace(name) == 0))


_LICENCE = re.compile(r"CC-(BY(?:-[A-Z]{2})*)-(\d\.\d)")


def _licence(value: object) -> str:
    """The licences of a record; "CC-BY-SA-4.0" becomes "CC BY-SA 4.0"."""
    found = []
    for each in value[:5] if isinstance(value, list) else [value]:
        if isinstance(each, Mapping):
            told = _string(each.get("identifier")) or _string(each.get("name"))
            found.append(_LICENCE.sub(r"CC \1 \2", told))
    return ", ".join(filter(None, found)) or "unknown"


_DISAMBIGUATION = re.compile("dmbox-disambig|disambigbox|mw:PageProp/disambiguation")
_LONGEST_TAG = 500  # characters of a tag that marks a disambiguation page


def _disambiguates(title: str, html: str, templates: object) -> bool:
    """Whether a page only lists the meanings of its title, by its box or one of its templates."""
    names = (name for name in _names(templates, 1_000) if len(name) < 100 and not name.startswith("Module:"))
    if is_disambiguation(title, (name.partition(":")[2] or name for name in names)):
        return True
    for match in islice(_DISAMBIGUATION.finditer(html), 100):  # the first ones may be in a style sheet
        begin = html.rfind("<", max(0, match.start() - _LONGEST_TAG), match.start())
        if begin >= 0 and ">" not in html[begin : match.start()]:
            return True
    return False


_REDIRECT = re.compile(r"""\bhref=["']([^"'<>]{1,2000})["']""")


def _redirect_target(html: str, site: Site) -> str:
    """The target of a redirect (<link rel="mw:PageProp/redirect">), "<title>#<section>"; empty for another page."""
    at = html.find("mw:PageProp/redirect")
    begin = html.rfind("<link", max(0, at - 4_000), at) if at >= 0 else -1
    tag = html[begin : html.find(">", at, at + 4_000) + 1] if begin >= 0 else ""
    href = _REDIRECT.search(tag)
    return target_of(href[1].replace("&amp;", "&"), site=site) if href else ""


# ---- Namespaces

_EVERYWHERE = (
    "media special talk user user_talk project project_talk wikipedia wikipedia_talk wp wt file file_talk image"
    " image_talk mediawiki mediawiki_talk template template_talk help help_talk category category_talk portal"
    " portal_talk draft draft_talk mos timedtext timedtext_talk module module_talk gadget topic event book book_talk"
)
NAMESPACES = {
    "ar": "ميديا خاص نقاش مستخدم مستخدمة نقاش_المستخدم ويكيبيديا ملف قالب مساعدة تصنيف بوابة وب",
    "ca": "especial discussió usuari usuària viquipèdia fitxer plantilla ajuda categoria imatge",
    "cs": "média speciální diskuse wikipedista wikipedistka wikipedie soubor šablona nápověda kategorie portál",
    "da": "speciel diskussion bruger fil skabelon hjælp kategori",
    "de": "medium spezial diskussion benutzer benutzerin benutzer_diskussion datei vorlage hilfe kategorie bild h p",
    "es": "medio especial discusión usuario usuaria usuario_discusión archivo plantilla ayuda categoría imagen cat",
    "fa": "مدیا ویژه بحث کاربر بحث_کاربر ویکی‌پدیا پرونده الگو راهنما رده درگاه وپ",
    "fi": "toiminnot keskustelu käyttäjä tiedosto malline ohje luokka teemasivu kuva",
    "fr": "média spécial discussion utilisateur utilisatrice discussion_utilisateur wikipédia fichier modèle aide"
    " catégorie portail projet référence",
    "he": "מדיה מיוחד שיחה משתמש משתמשת ויקיפדיה קובץ תבנית עזרה קטגוריה פורטל",
    "hu": "média speciális vita szerkesztő wikipédia fájl sablon segítség kategória portál",
    "it": "speciale discussione utente aiuto categoria portale progetto immagine",
    "ja": "メディア 特別 ノート 利用者 ファイル 画像 テンプレート ヘルプ カテゴリ プロジェクト",
    "ko": "미디어 특수 토론 사용자 위키백과 파일 그림 틀 도움말 분류 포털 들머리",
    "nl": "speciaal overleg gebruiker bestand sjabloon categorie portaal afbeelding h p",
    "no": "medium spesial diskusjon bruker fil mal hjelp kategori bilde",
    "pl": "specjalna dyskusja wikipedysta wikipedystka plik szablon pomoc kategoria grafika wikiprojekt",
    "pt": "multimédia especial discussão usuário usuária wikipédia ficheiro predefinição ajuda categoria imagem",
    "ru": "медиа служебная обсуждение участник участница википедия файл шаблон справка категория портал проект",
    "sr": "медиј посебно разговор корисник википедија датотека слика шаблон помоћ категорија портал",
    "sv": "special diskussion användare fil bild mall hjälp kategori",
    "tr": "ortam özel tartışma kullanıcı kullanıcı_mesaj vikipedi dosya resim şablon yardım kategori",
    "uk": "медіа спеціальна обговорення користувач користувачка вікіпедія файл шаблон довідка категорія портал",
    "zh": "使用者 用戶 用户 維基百科 维基百科 文件 档案 檔案 图像 圖像 模板 帮助 幫助 分类 分類 主题 主題",
}
"""The namespaces of larger Wikipedias besides the English ones, in lower case; "_" is a space."""


@lru_cache(maxsize=64)
def _site(language: str, source: str) -> Site:
    names = f"{_EVERYWHERE} {NAMESPACES.get(language.partition('-')[0], '')}".replace("_talk", "\0talk").split()
    keys = {name.replace("\0", " ").replace("_", " "): -1 for name in names}
    return Site(
        language=language, namespaces={**keys, "file": 6, "category": 14}, capitalise="wiktionary" not in source
    )
