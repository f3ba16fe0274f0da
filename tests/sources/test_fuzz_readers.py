"""Readers of raw text on mutations of small real inputs: for any bytes, a reader gives items and ends.

Here with a few hundred inputs for each reader; `make fuzz` uses many more.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import re
import shutil
import signal
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from pyarrow import fs

from pipelines.engine.stage import Work, open_stage
from pipelines.engine.task_writer import do_unit
from pipelines.stages.extract import Extract, SourceFile
from schemas.errors import UserError
from schemas.kinds import FILTER_REASONS, REJECT_REASONS
from schemas.storage.folder import Folder
from transforms.sources import html
from transforms.sources.formats import InputFile, Segment
from transforms.sources.inputs import FORMATS, RawFiles, resolve_inputs
from transforms.sources.items import Corrupt, Document, Filtered, Item, Link, Redirect, Rejected
from transforms.sources.options import ReadOptions
from transforms.sources.prose import TooComplex
from transforms.sources.wikitext import Site, plain_text

LOCAL = fs.LocalFileSystem()
CPU_SECONDS = 5

TIGHT = ReadOptions(max_page_bytes=2_000, max_document_bytes=600, max_nodes=40, max_depth=4)


# ---- Seeds: small, real, with every feature of their format

HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" xml:lang="en">\n<siteinfo><dbname>enwiki</dbname>'
    "<base>https://en.wikipedia.org/wiki/Main_Page</base><case>first-letter</case><namespaces>"
    '<namespace key="-1">Special</namespace><namespace key="0" /><namespace key="6">File</namespace>'
    '<namespace key="14">Category</namespace></namespaces></siteinfo>\n'
)
ASTRONOMER = """{{Use dmy dates|date=July 2012}}
[[File:Astronomer(1668).jpg|thumb|''[[The Astronomer (Vermeer)|The Astronomer]]'' by [[Johannes Vermeer]]]]
An '''astronomer''' is a scientist in the field of [[astronomy]].&lt;ref&gt;{{Cite web|url=http://a}}&lt;/ref&gt; It is
{{convert|5|to|10|km|mi}} ({{lang-fr|étoile}}; {{HMS|Hood|51}}), c&amp;nbsp;10&lt;sup&gt;6&lt;/sup&gt; [http://x site].

== See also ==
{| class="wikitable"
| a || b
|}
* [[star]]s, [[:Category:Stars]] &lt;!-- no --&gt; &lt;nowiki&gt;[[x]]&lt;/nowiki&gt;
; term : definition
[[Category:Astronomers|*]] __NOTOC__ -{zh-hans:a; zh-hant:b}- &lt;math&gt;x&lt;/math&gt; &lt;br/&gt; l'''amour''
"""


def page(number: int, title: str, text: str, extra: str = "") -> str:
    return (
        f"  <page>\n<title>{title}</title><ns>0</ns><id>{number}</id>{extra}\n<revision><model>wikitext</model>"
        f'<text xml:space="preserve">{text}</text></revision></page>\n'
    )


PAGES = [
    page(580, "Astronomer", ASTRONOMER),
    page(1, "Old", "#REDIRECT [[Astronomer]]", '<redirect title="Astronomer" />'),
    page(2, "Short", "A page of [[one]] line."),
    page(3, "Talk", "Said.").replace("<ns>0", "<ns>1"),
]
DUMP = (HEAD + "".join(PAGES) + "</mediawiki>\n").encode()
GUTENBERG = (
    "The Project Gutenberg eBook of Emma, by Jane Austen\r\n\r\nTitle: Emma\r\n\r\n[eBook #158]\r\n"
    "Character set encoding: UTF-8\r\n\r\n*** START OF THE PROJECT GUTENBERG EBOOK EMMA ***\r\n\r\n"
    "Produced by An Anonymous Volunteer\r\n\r\nCONTENTS\r\n\r\nCHAPTER I .... 1\r\nCHAPTER II .... 9\r\n\r\n"
    "CHAPTER I\r\n\r\nEmma Woodhouse, handsome, clever, and rich, with a comfortable home and happy\r\n"
    "disposition, seemed to unite some of the best blessings of existence; and had\r\n"
    "lived nearly twenty-one years in the world with very little to distress or vex\r\nher. [Illustration: a]\r\n\r\n"
    "She was the _youngest_ of the two daughters of a most affectionate, indul-\r\n"
    "gent father;[1] and had, in consequence of her sister’s marriage, been mistress\r\nof his house--from a very"
    " early period.\r\n\r\n* * * * *\r\n\r\n"
    "*** END OF THE PROJECT GUTENBERG EBOOK EMMA ***\r\n"
).encode()
VERSE = "\ufeffSONNET\n\nShall I compare thee to a summer’s day?\n\tThou art more lovely…\u2028\n\x0c\n--Café".encode()
RECORDS = (
    b'{"text": "One text.\\nWith \\ud83d\\ude00 two lines.", "meta": {"pile_set_name": "Books3", "title": "T"}}\n'
    b'{"text": null}\n\n{"text": "x", "url": "https://a", "license": "CC0", "n": [1, {"a": -1.5e9}, true]}\r\n'
    b'{"body": 1}\n{"text": "caf\xc3\xa9 \\u2019"}'
)
HTML = """<body id="mwAA"><section data-mw-section-id="0"><table class="infobox"><tr><td>x</td></tr></table>
<p><b>An astronomer</b> is <a rel="mw:WikiLink" href="./Science#a" title="Science">a<i>é</i></a>.<sup class="mw-ref">
[1]</sup> (<span class="IPA">x</span>; 10<sup>6</sup>)<!-- no --> &amp;&nbsp;<a href="/wiki/B" class="new">b</a></p>
</section><h2>See</h2><ul><li>a<ul><li><a rel='mw:WikiLink' href='./C%20d'>c<br/>d</a></li></ul></li></ul>
<dl><dt>t<dd>m</dl><style>p{}</style><pre>v
w</pre><span class="mwe-math-element"><math alttext='{\\displaystyle x}'></math></span>
<meta property="mw:PageProp/disambiguation"/></body>"""
FIELDS = {
    "url": "https://en.wikipedia.org/wiki/A",
    "main_entity": {"identifier": "Q1"},
    "is_part_of": {"identifier": "enwiki"},
    "redirects": [{"name": "R"}],
    "license": [{"identifier": "CC-BY-SA-4.0"}],
}
HTML_PAGES = "".join(
    json.dumps(
        {"name": name, "identifier": number, "namespace": {"identifier": key}, **FIELDS, "article_body": {"html": html}}
    )
    + "\n"
    for number, (name, key, html) in enumerate(
        [("A", 0, HTML), ("T", 1, ""), ("R", 0, '<link rel="mw:PageProp/redirect" href="./A"/>'), ("E", 0, "<p>é</p>")]
    )
).encode()
WIKITEXT_2 = (
    b" \n = Homarus gammarus = \n \n Homarus gammarus , known as the <unk> lobster , is @-@ 1 @,@ 000 .\n \n"
    b' = = Life = = \n \n It " is \' s " ( 5 \xe2\x80\x93 6 ) .\n \n = Second = \n \n Text .\n'
)


BOOKS = (("a.txt", VERSE), ("../é" + "x" * 120 + ".txt", b"Two."), ("a.txt", b"3"), ("b.png", b"4"))


def _tar(format: int = tarfile.PAX_FORMAT, members: tuple[tuple[str, bytes], ...] = BOOKS) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue().rstrip(b"\0") + bytes(1024)


def _zip(method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in (("a.txt", VERSE), ("../é.txt", b"Two."), ("b.png", b"4"), ("c/a.txt", GUTENBERG[:400])):
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def _parquet(**options: object) -> bytes:
    out = io.BytesIO()
    table = pa.table(
        {
            "text": ["A text.", None, "Ein Text.", "A text.", "Ünicode"] * 2,
            "title": [f"T{i % 3}" for i in range(10)],
            "meta": [{"pile_set_name": "Books3"}] * 10,
        }
    )
    pq.write_table(table, out, row_group_size=4, **options)
    return out.getvalue()


class Source(NamedTuple):
    format: str
    name: str
    data: bytes


SOURCES = [
    Source("wikipedia-xml", "a.xml", DUMP),
    Source("wikipedia-html", "a.ndjson", HTML_PAGES),
    Source("wikipedia-html", "j.tar", _tar(members=(("é.ndjson", HTML_PAGES), ("b.txt", b"x")))),
    Source("text", "b.txt", GUTENBERG),
    Source("text", "austen_emma.txt", VERSE),
    Source("jsonl", "c.jsonl", RECORDS),
    Source("wikitext-corpus", "d.tokens", WIKITEXT_2),
    Source("archive", "e.tar", _tar()),
    Source("archive", "f.tar", _tar(tarfile.GNU_FORMAT)),
    *(Source("archive", "g.zip", _zip(method)) for method in (0, 8, 12, 14)),
    Source("parquet", "h.parquet", _parquet(compression="none")),
    Source("parquet", "i.parquet", _parquet(compression="zstd", use_dictionary=False, write_page_checksum=True)),
]


def streams(data: bytes) -> bytes:
    """A bz2 of several streams, cut anywhere."""
    return b"".join(bz2.compress(data[at : at + 700]) for at in range(0, len(data), 700))


PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".bz2": bz2.compress,
    ".streams.bz2": streams,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor(level=1, write_checksum=True).compress,
}

# ---- Mutations

TOKENS = [
    *(b"{{", b"}}", b"[[", b"]]", b"{|", b"\n|}", b"|", b"''", b"'''", b"=", b"\n* ", b"<ref>", b"</ref>",
      b"&lt;ref&gt;"),
    *(b"&lt;nowiki&gt;", b"&lt;", b"&#0;", b"&#xD800;", b"&#x10FFFF;", b"&lol;", b"&amp;nbsp;", b"&amp;#1;",
      b"{{convert|"),
    *(b"{{HMS|", b"{{nowrap|", b"{{!}}", b"{{{", b"}}}", b"[http://", b"-{", b"}-", b"&lt;!--",
      b"&lt;poem&gt;", b"__TOC__"),
    *(b"<page>", b"</page>", b"<text>", b"</text>", b"</mediawiki>", b"<!--", b"]]>", b"<![CDATA[", b"<?x?>",
      b"<a:b/>"),
    *(b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>", b"<siteinfo>", b"</siteinfo>", b"<ns>", b"<id>"),
    *(b"<base>http://[</base>", b'<namespace key="x">Y</namespace>', b"<namespace>Z</namespace>", b'xml:lang="\xff"'),
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"\\ud83d", b"\\u0000", b"null", b"1e999", b'"text": ',
      b"NaN"),
    *(b" = A = \n", b" = = B = = \n", b" @-@ ", b"<unk>", b" ' ", b' " ', b"= = "),
    *(b"*** START OF THE PROJECT GUTENBERG EBOOK X ***", b"*** END OF THE PROJECT GUTENBERG", b"CONTENTS\n",
      b"_", b"--"),
    *(b"Produced by ", b"[Illustration", b"[Footnote 1: ", b"\nTranscriber's Note", b"* * *\n", b"-\n",
      b"CHAPTER I\n"),
    *(b"<p>", b"</p>", b"<li>", b"</ul>", b"<table>", b"<b>", b"<a href='/wiki/X'>", b"</a>", b"<sup>", b"<pre>",
      b"<h2>", b"<dt>", b"<br>", b"<a ", b"-->", b"<style>", b"&#2;", b"./Y", b"class='noprint'", b"\\u0002", b"\\n"),
    *(b"\n", b"\r", b"\r\n", b"\t", b"\0", b"\x01", b"\x02", b"\x03", b"\x1b", b"\x7f", b"\x85", b"\xff\xfe",
      b"\xfe\xff"),
    *(b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\x8d", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xef\xbf\xbf",
      b"\xc0\x80", b"\xf4\x90"),
    *(b"\xcc\x81", b"\xcc\xa7", b"\xe1\xbe\xbe", b"\xf0\x9f\x98\x80", b"\xef\xac\x80", b"\xc2\xad",
      b"e\xcc\x81", b"\xe2\x80\x99"),
    *(b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x80\x00\x00\x00", b"\x01\x00",
      b"PAR1", b"PK\x01\x02"),
    *(b"PK\x03\x04", b"PK\x05\x06", b"ustar\0", b"0000644\0", b"7777777777\0", b"BZh91AY&SY",
      b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd"),
]  # fmt: skip

PLACE = st.integers(0, (1 << 16) - 1)
MUTATIONS = st.lists(
    st.tuples(
        st.sampled_from("token token flip set delete repeat move cut".split()),
        PLACE,
        st.integers(0, 400),
        st.sampled_from(TOKENS),
    ),
    max_size=8,
)


def mutated(data: bytes, mutations: list[tuple[str, int, int, bytes]]) -> bytes:
    for kind, place, amount, token in mutations:
        at = place * (len(data) + 1) >> 16
        some = data[at : at + amount]
        if kind == "token":
            data = data[:at] + token + data[at:]
        elif kind == "flip" and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << amount % 8)]) + data[at + 1 :]
        elif kind == "set":
            data = data[:at] + token + data[at + len(token) :]
        elif kind == "delete":
            data = data[:at] + data[at + amount :]
        elif kind == "repeat":
            data = data[:at] + some * (1 + amount % 7) + data[at:]
        elif kind == "move":
            data = data[:at] + data[at + amount :] + some
        elif kind == "cut" and amount > 300:
            data = data[:at]
    return data


# ---- Properties


class Hang(BaseException):
    """A reader took too long."""


@contextmanager
def cpu_limit(seconds: int = CPU_SECONDS) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang(f"more than {seconds} s of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def check_text(text: str, links: tuple[Link, ...]) -> None:
    assert text == text.strip() != ""
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\u2028\u2029\u0085]", text)
    end = 0
    for link in links:
        assert end <= link.start_char < link.end_char <= len(text)
        end = link.end_char
        anchor = text[link.start_char : end]
        assert anchor == anchor.strip() != ""
        assert "\n" not in anchor
        assert link.target_title == link.target_title.strip() != ""
        assert not re.search("[\x00-\x1f\ud800-\udfff]", link.target_title)


def check_item(item: Item, size: int) -> None:
    if isinstance(item, Document):
        check_text(item.text, item.links)
        fields = "".join(item[:5])
        fields.encode()
        assert not re.search("[\x00-\x08\x0b-\x1f]", fields), fields
    elif isinstance(item, Filtered):
        assert item.reason in FILTER_REASONS
    elif isinstance(item, Redirect):
        "".join(item).encode()
    else:
        assert item.reason in REJECT_REASONS
        "".join(map(str, item)).encode()
        assert not isinstance(item, Corrupt) or (0 <= item.byte <= size and item.message)


def write(folder: Path, name: str, data: bytes) -> InputFile:
    (folder / name).write_bytes(data)
    return InputFile(str(folder / name), name, len(data))


def read(source: str, file: InputFile, segments: list[Segment], options: ReadOptions) -> list[Item]:
    return [item for each in segments for item in FORMATS[source].read(LOCAL, file, each, options=options)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("name", sorted({source.format for source in SOURCES}))
@given(data=st.data())
@examples(50)
def test_any_bytes_end_in_items_however_split(folder: Path, name: str, data: st.DataObject) -> None:
    """No exception, no hang, sound documents, the same items again, and the same in pieces of any size."""
    source = data.draw(st.sampled_from([each for each in SOURCES if each.format == name]))
    raw = mutated(source.data, data.draw(MUTATIONS))
    packable = not source.name.endswith((".zip", ".parquet"))
    suffix = data.draw(st.sampled_from(sorted(PACK))) if packable else ""
    stored = PACK[suffix](raw)
    if suffix:
        stored = mutated(stored, data.draw(st.just([]) | MUTATIONS))
    options = data.draw(st.sampled_from([ReadOptions(), TIGHT]))
    target = data.draw(st.integers(1, 3_000))
    file = write(folder, source.name + suffix, stored)
    with cpu_limit():
        items = read(name, file, [Segment(0, file.size)], options)
        assert read(name, file, [Segment(0, file.size)], options) == items
        segments = FORMATS[name].split(LOCAL, file, target_bytes=target)
        pieces = read(name, file, segments, options)
    for item in items:
        check_item(item, file.size)
    ids = [item.doc_id for item in items if isinstance(item, Document)]
    assert name.startswith("wikipedia") or len(set(ids)) == len(ids)
    assert [segments[0].start, segments[-1].end] == [0, file.size]
    if suffix and Corrupt in map(type, items):
        # The reports of damage in compressed bytes, and their order, may depend on where reading began.
        pieces, items = ([item for item in each if isinstance(item, Document)] for each in (pieces, items))
    assert pieces == items


@given(source=st.sampled_from(SOURCES), suffix=st.sampled_from(sorted(PACK)), data=st.data())
@examples(60)
def test_the_ledger_adds_up(folder: Path, source: Source, suffix: str, data: st.DataObject) -> None:
    """With the choice of a format and the extract stage: read = written + filtered + rejected, or a UserError."""
    stored = mutated(PACK[suffix](mutated(source.data, data.draw(MUTATIONS))), data.draw(st.just([]) | MUTATIONS))
    file = write(folder, source.name + suffix, stored)
    on_corrupt = data.draw(st.sampled_from(["skip", "fail"]))
    options = data.draw(st.sampled_from([ReadOptions(), TIGHT]))
    output = folder / "out"
    shutil.rmtree(output, ignore_errors=True)
    try:
        with cpu_limit():
            found = resolve_inputs([file.path])
            assert isinstance(found, RawFiles)
            files = [SourceFile(each.filesystem, each.file, each.format.name) for each in found.inputs]
            stage = Extract(
                formats=(),
                read=options,
                shard_bytes=data.draw(st.sampled_from([100, 1 << 20])),
                on_corrupt=on_corrupt,
                max_documents=None,
                sample_rate=1.0,
                sample_seed=0,
                dedup="paragraphs",
                files=tuple(files),
            )
            work = Work(Folder(str(output)))
            done = [do_unit(work, stage, unit) for unit in open_stage(work, stage)]
    except UserError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert file.path in refusal
        return
    ledgers = [each.ledger for each in done if each.ledger]
    assert sum(ledger.lost for ledger in ledgers) == 0
    assert sum(ledger.read for ledger in ledgers) == len(
        read(files[0].format, files[0].file, [Segment(0, file.size)], options)
    )
    assert on_corrupt == "skip" or not any(
        ledger.rejected.get(reason) for ledger in ledgers for reason in ("corrupt", "truncated", "bad_xml", "bad_utf8")
    )


SITE = Site(namespaces={"Special": -1, "User": 2, "Help": 12})


@given(MUTATIONS, st.lists(st.sampled_from(TOKENS), max_size=40))
@examples(200)
def test_any_markup_gives_text_and_links(mutations: list[tuple[str, int, int, bytes]], tokens: list[bytes]) -> None:
    raw = (mutated(ASTRONOMER.encode(), mutations) + b"".join(tokens)).decode("utf-8", "replace")
    wikitext = raw.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    with cpu_limit():
        try:
            text, links = plain_text(wikitext, site=SITE)
        except TooComplex:
            return
        assert plain_text(wikitext, site=SITE) == (text, links)
    if text:
        check_text(text, links)
    assert len(text) < 20 * len(wikitext) + 100


@given(MUTATIONS, st.lists(st.sampled_from(TOKENS), max_size=40))
@examples(200)
def test_any_html_gives_text_and_links(mutations: list[tuple[str, int, int, bytes]], tokens: list[bytes]) -> None:
    raw = (mutated(HTML.encode(), mutations) + b"".join(tokens)).decode("utf-8", "replace")
    with cpu_limit():
        try:
            text, links = html.plain_text(raw, site=SITE)
        except TooComplex:
            return
        assert html.plain_text(raw, site=SITE) == (text, links)
    if text:
        check_text(text, links)
    assert len(text) < 20 * len(raw) + 100


@given(st.lists(st.sampled_from(SOURCES), min_size=1), st.sampled_from(sorted(FORMATS)), MUTATIONS)
@examples(200)
def test_any_bytes_are_recognised_or_not(sources: list[Source], name: str, mutations: list) -> None:
    raw = mutated(b"".join(each.data for each in sources)[-3000:], mutations)
    with cpu_limit():
        for path in {each.name for each in SOURCES}:
            assert isinstance(FORMATS[name].recognises(path, raw), bool)


def test_the_seeds_are_read_whole(folder: Path) -> None:
    """Otherwise the mutations would only test input that is refused at once."""
    for source in SOURCES:
        file = write(folder, source.name, source.data)
        items = read(source.format, file, [Segment(0, file.size)], ReadOptions())
        documents = [item for item in items if isinstance(item, Document)]
        assert documents, source.name
        assert not any(isinstance(item, Rejected) for item in items)
        assert json.dumps([item.text for item in documents])
        assert source.format == "jsonl" or not any(isinstance(item, Corrupt) for item in items), items
