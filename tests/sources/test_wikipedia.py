"""Wikipedia dumps: every page once, from any part of the file, in any compression, whole or damaged."""

from __future__ import annotations

import bz2
import gzip
import itertools
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from pyarrow import fs

from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Corrupt, Document, Filtered, Item, Link, Page, Redirect, Rejected
from transforms.sources.options import ReadOptions
from transforms.sources.sample import sample_inputs
from transforms.sources.wikipedia import WIKIPEDIA_XML, read_siteinfo

# pytest does not find the benchmarks, which are not installed, as `python -m` does.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from benchmarks import links

LOCAL = fs.LocalFileSystem()

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>enwiki</dbname>
    <base>https://en.wikipedia.org/wiki/Main_Page</base>
    <case>first-letter</case>
    <namespaces>
      <namespace key="-1" case="first-letter">Special</namespace>
      <namespace key="0" case="first-letter" />
      <namespace key="1" case="first-letter">Talk</namespace>
      <namespace key="6" case="first-letter">File</namespace>
      <namespace key="14" case="first-letter">Category</namespace>
    </namespaces>
  </siteinfo>
"""
ENWIKI = "https://en.wikipedia.org/wiki"
FOOT = "</mediawiki>\n"


def page(number: int, title: str, text: str, *, ns: int = 0, extra: str = "", model: str = "wikitext") -> str:
    return (
        f"  <page>\n    <title>{title}</title>\n    <ns>{ns}</ns>\n    <id>{number}</id>\n{extra}    <revision>\n"
        f"      <id>9</id>\n      <model>{model}</model>\n"
        f'      <text xml:space="preserve">{text}</text>\n    </revision>\n  </page>\n'
    )


PAGES = [
    page(1, "A", "'''A''' is [[b]]&lt;ref&gt;x&lt;/ref&gt;."),
    page(2, "Old", "#REDIRECT [[A#Its_part]]", extra='    <redirect title="A" />\n'),
    page(3, "Talk:A", "Hello", ns=1),
    page(4, "B &amp; C?", "[[File:x.jpg|thumb]] &amp;amp; [[A|é]]"),
    page(5, "Code", "{}", model="json"),
    page(6, "Empty", "{{stub}}"),
]
ALL_KINDS = ["Document", "Redirect", "Filtered", "Document", "Filtered", "Filtered"]
DUMP = (HEAD + "".join(PAGES) + FOOT).encode()


def write(folder: Path, name: str, data: bytes) -> InputFile:
    (folder / name).write_bytes(data)
    return InputFile(str(folder / name), name, len(data))


def read(file: InputFile, *, target_bytes: int = 1 << 40, options: ReadOptions | None = None) -> list[Item]:
    segments = WIKIPEDIA_XML.split(LOCAL, file, target_bytes=target_bytes)
    assert segments[0].start == 0
    assert segments[-1].end == file.size
    assert all(a.end == b.start for a, b in itertools.pairwise(segments))
    return [
        item
        for segment in segments
        for item in WIKIPEDIA_XML.read(LOCAL, file, segment, options=options or ReadOptions())
    ]


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def multistream(data: bytes, size: int) -> bytes:
    """Cut as by pbzip2: without regard to pages."""
    return b"".join(bz2.compress(data[at : at + size]) for at in range(0, len(data), size))


def by_pages(data: bytes, pages: int) -> bytes:
    """Cut as by Wikimedia: a stream for the head, one for every `pages` pages, one for the foot."""
    head, *rest = data.split(b"  <page>")
    last, foot = rest[-1].split(b"</page>\n")
    rest[-1] = last + b"</page>\n"
    groups = [rest[at : at + pages] for at in range(0, len(rest), pages)]
    parts = [head, *(b"".join(b"  <page>" + each for each in group) for group in groups), foot]
    return b"".join(bz2.compress(part) for part in parts)


def test_every_page_becomes_its_item(tmp_path: Path) -> None:
    assert read(write(tmp_path, "a.xml", DUMP)) == [
        Document(
            "enwiki:1", "enwiki", "A", f"{ENWIKI}/A", "CC BY-SA 4.0", "A is b.", (Link(5, 6, "B"),),
            Page("enwiki", "1", "A"), "en",
        ),
        Redirect("enwiki", "Old", "A", "Its part"),
        Filtered("not_an_article"),
        Document(
            "enwiki:4", "enwiki", "B & C?", f"{ENWIKI}/B_%26_C%3F", "CC BY-SA 4.0", "& é", (Link(2, 3, "A"),),
            Page("enwiki", "4", "B & C?"), "en",
        ),
        Filtered("not_wikitext"),
        Filtered("no_text", Page("enwiki", "6", "Empty")),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("head", "recognised"),
    [
        (HEAD.encode(), True),
        (b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>\n<!-- made by x -->\n<mediawiki>', True),
        (b"<html><mediawiki>", False),
        (b"{}", False),
        (b"", False),
    ],
)
def test_recognises(head: bytes, recognised: bool) -> None:
    assert WIKIPEDIA_XML.recognises("a.xml", head) is recognised


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "a.xml": bytes,
    "a.xml.bz2": bz2.compress,
    "small-blocks.xml.bz2": lambda data: bz2.compress(data, 1),
    "a.xml.gz": gzip.compress,
    "a.xml.zst": zstd,
    "stream-per-page.xml.bz2": lambda data: by_pages(data, 1),
    "streams.xml.bz2": lambda data: by_pages(data, 4),
    "pbzip2.xml.bz2": lambda data: multistream(data, 100),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("target_bytes", [7, 100, 1000, 1 << 30])
def test_any_form_and_split_gives_the_same_items(tmp_path: Path, name: str, target_bytes: int) -> None:
    whole = read(write(tmp_path, "whole.xml", DUMP))
    file = write(tmp_path, name, FORMS[name](DUMP))
    assert read(file, target_bytes=target_bytes) == whole


@given(cuts=st.lists(st.integers(0, len(DUMP)), max_size=6), size=st.integers(100, 2000))
@examples(60)
def test_any_cut_gives_every_page_once(tmp_path_factory: pytest.TempPathFactory, cuts: list[int], size: int) -> None:
    folder = tmp_path_factory.mktemp("cuts")
    whole = read(write(folder, "whole.xml", DUMP))
    for file in (write(folder, "a.xml", DUMP), write(folder, "a.xml.bz2", multistream(DUMP, size))):
        bounds = [0, *sorted(min(cut, file.size) for cut in cuts), file.size]
        segments = [Segment(a, b) for a, b in itertools.pairwise(bounds)]
        items = [i for each in segments for i in WIKIPEDIA_XML.read(LOCAL, file, each, options=ReadOptions())]
        assert items == whole


LONG_DUMP = (
    HEAD + "".join(page(n, f"P{n}", f"text {n * n * 7919} " * (n % 7 * 40 + 1)) for n in range(250)) + FOOT
).encode()


@pytest.mark.parametrize("level", [1, 2, 9])
@given(cuts=st.lists(st.integers(0, 40_000), max_size=6))
@examples(5)
def test_one_stream_cut_anywhere_gives_every_page_once(
    tmp_path_factory: pytest.TempPathFactory, level: int, cuts: list[int]
) -> None:
    """Pages cross blocks, and some blocks do not hold the beginning of a page."""
    folder = tmp_path_factory.mktemp("blocks")
    file = write(folder, "a.xml.bz2", bz2.compress(LONG_DUMP, level))
    bounds = [0, *sorted(min(cut, file.size) for cut in cuts), file.size]
    items = [
        item
        for start, end in itertools.pairwise(bounds)
        for item in WIKIPEDIA_XML.read(LOCAL, file, Segment(start, end), options=ReadOptions())
    ]
    assert [item.doc_id for item in items if isinstance(item, Document)] == [f"enwiki:{n}" for n in range(250)]
    assert items == read(write(folder, "a.xml", LONG_DUMP))


REAL_COUNTS = {
    "enwiki-fragment": {Document: 106, Redirect: 99, Filtered: 1},
    "enwiki-minidump": {Document: 24, Redirect: 2, Filtered: 1},
}


@pytest.mark.parametrize("name", REAL_COUNTS)
def test_real_dumps(test_data: Path, tmp_path: Path, name: str) -> None:
    stored = (test_data / f"corpora/wikipedia/{name}.xml.bz2").read_bytes()
    xml = bz2.decompress(stored)
    items = read(write(tmp_path, "original.xml.bz2", stored))
    assert Counter(type(item) for item in items) == REAL_COUNTS[name]
    assert len(items) == xml.count(b"<page>")
    ids = [item.doc_id for item in items if isinstance(item, Document)]
    assert len(set(ids)) == len(ids)
    for item in items:
        if isinstance(item, Document):
            for link in item.links:
                assert item.text[link.start_char : link.end_char].strip()
    if name == "enwiki-minidump":  # of the larger one, a tenth is read in segments below
        assert read(write(tmp_path, "original.xml.bz2", stored), target_bytes=50_000) == items


@pytest.mark.parametrize(
    ("some", "wanted"),
    [
        (slice(1, None, 3), (5_606, 4_193, 11)),
        pytest.param(slice(None), (19_526, 14_518, 11), marks=pytest.mark.heavy),
    ],
    ids=["every third page", "all pages"],
)
def test_every_link_of_the_sample_is_found_or_has_its_reason(
    tmp_path: Path, some: slice, wanted: tuple[int, int, int]
) -> None:
    """Compared with another parser of wikitext, as in benchmarks/links.py."""
    head, *pages = bz2.decompress(sample_inputs()[0].read_bytes()).split(b"<page>")
    pages[-1] = pages[-1].removesuffix(FOOT.encode())
    dump = write(tmp_path, "sample.xml", b"<page>".join([head, *pages[some]]) + FOOT.encode())
    found = links.account(Path(dump.path))
    assert found.unexplained == []
    assert (found.wikitext, found.counts[links.FOUND], found.made) == wanted


def test_real_dump_in_every_form_and_in_small_segments(test_data: Path, tmp_path: Path) -> None:
    """The first of the real pages, so that hundreds of segments are fast."""
    xml = bz2.decompress((test_data / "corpora/wikipedia/enwiki-fragment.xml.bz2").read_bytes())
    xml = xml[: xml.index(b"<page>", 250_000)] + FOOT.encode()
    items = read(write(tmp_path, "whole.xml", xml))
    assert len(items) == xml.count(b"<page>")
    for name, compress in {**FORMS, "pbzip2.xml.bz2": lambda data: multistream(data, 100_000)}.items():
        assert read(write(tmp_path, name, compress(xml)), target_bytes=20_000) == items, name
    assert read(write(tmp_path, "a.xml", xml), target_bytes=1_000) == items


def test_german_dump(tmp_path: Path) -> None:
    head = (
        HEAD.replace('xml:lang="en"', 'xml:lang="de"').replace("enwiki", "dewiki").replace("//en.", "//de.")
        .replace("Main_Page", "Wikipedia:Hauptseite").replace(">File<", ">Datei<").replace(">Category<", ">Kategorie<")
        .replace(">Talk<", ">Diskussion<")
    )  # fmt: skip
    text = "[[Datei:x.jpg|mini|[[y]]]]Die [[Hauptstadt|Stadt]]grö\u00dfe.[[Kategorie:Ort]][[en:Berlin]]"
    dump = head + page(7, "Köln", text) + page(8, "Diskussion:Köln", "x", ns=1)
    dump += page(9, "Cöln", "#WEITERLEITUNG [[Köln#Name]]", extra='    <redirect title="Köln" />\n') + FOOT
    assert read(write(tmp_path, "dewiki.xml", dump.encode())) == [
        Document(
            "dewiki:7", "dewiki", "Köln", "https://de.wikipedia.org/wiki/K%C3%B6ln", "CC BY-SA 4.0",
            "Die Stadtgr\u00f6\u00dfe.", (Link(4, 14, "Hauptstadt"),), Page("dewiki", "7", "Köln"), "de",
        ),
        Filtered("not_an_article"),
        Redirect("dewiki", "Cöln", "Köln", "Name"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("language", "names", "dropped"),
    [
        ("en", ("See also", "External links:", "Further reading"), True),
        ("en", ("References", "Bibliography", "Weblinks"), False),
        ("de", ("Siehe auch", "Weblinks", "Literatur"), True),
        ("de-at", ("Weblinks",), True),
        ("de", ("See also",), False),
        ("ru", ("См. также", "Ссылки"), True),
        ("xx", ("See also", "Weblinks", ""), False),
    ],
)
def test_sections_of_links(tmp_path: Path, language: str, names: tuple[str, ...], dropped: bool) -> None:
    """In the wiki's own words."""
    text = "".join(f"== {name} ==\n* [[c]]\n=== d ===\ne\n" for name in names) + "== Last ==\nf"
    dump = HEAD.replace('xml:lang="en"', f'xml:lang="{language}"') + page(7, "A", "a\n" + text) + FOOT
    file = write(tmp_path, "a.xml", dump.encode())
    (kept,) = WIKIPEDIA_XML.read(LOCAL, file, Segment(0, file.size), options=ReadOptions(link_sections="keep"))
    assert isinstance(kept, Document)
    assert kept.text.count("e") >= len(names)
    (item,) = read(file)
    assert isinstance(item, Document)
    assert (item.text == "a\n\nLast\n\nf") is dropped
    assert (item.text == kept.text) is not dropped


def test_old_dump_says_less(tmp_path: Path) -> None:
    """Before 2012: no dbname, no ns, redirects only in the text, no model."""
    head = HEAD.replace("    <dbname>enwiki</dbname>\n", "").replace("https", "http")
    pages = [
        "<page><title>A</title><id>1</id><revision><text>a</text></revision></page>",
        "<page><title>Talk:A</title><id>2</id><revision><text>b</text></revision></page>",
        "<page><title>C</title><id>3</id><revision><text>#Redirect: [[a#b|c]] {{R}}</text></revision></page>",
    ]
    items = read(write(tmp_path, "a.xml", (head + "\n".join(pages) + FOOT).encode()))
    assert items == [
        Document(
            "enwiki:1", "enwiki", "A", "https://en.wikipedia.org/wiki/A", "CC BY-SA 4.0", "a",
            page=Page("enwiki", "1", "A"), language="en",
        ),
        Filtered("not_an_article"),
        Redirect("enwiki", "C", "A", "b"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Mercury", "Mercury may refer to:\\n{{disambiguation}}", True),
        ("Mercury", "{{Disambig|geo}}", True),
        ("Mercury", "{{ human name disambiguation }}", True),
        ("Mercury", "{{hndis|name=Mercury}}", True),
        ("Mercury", "a __DISAMBIG__", True),
        ("Merkur", "{{Begriffsklärung}}", True),
        ("Mercury (disambiguation)", "", True),
        ("Mercury", "the [[planet]]{{disambiguation needed|date=May 2016}}", False),
        ("Mercury", "{{Infobox planet}} It is no {{convert|1|km}} away from dab or disambiguation.", False),
        ("Mercury", "{{otheruses|Mercury (disambiguation)}}", False),
        ("Mercury", "{{" + "disambig" * 100_000, False),
        ("Mercury", "{{a " * 90, False),
    ],
)
def test_disambiguation_pages(tmp_path: Path, title: str, text: str, expected: bool) -> None:
    (item,) = read(write(tmp_path, "a.xml", (HEAD + page(1, title, text) + FOOT).encode()))
    assert isinstance(item, Document | Filtered)
    assert item.page == Page("enwiki", "1", title, disambiguation=expected)


def test_other_wikis_have_an_unknown_licence() -> None:
    info = read_siteinfo(HEAD.replace("https://en.wikipedia.org/wiki", "http://wiki.example.com/w").encode())
    assert (info.licence, info.url_prefix) == ("unknown", "http://wiki.example.com/w/")


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("a" * 3000, ReadOptions(max_page_bytes=2000), "page_too_large"),
        ("a" * 3_000_000, ReadOptions(max_page_bytes=2000), "page_too_large"),
        ("{{a}}" * 20, ReadOptions(max_nodes=10), "too_many_nodes"),
        ("{{a|" * 20 + "}}" * 20, ReadOptions(max_depth=10), "too_deep"),
        ("{{a" * 60_000, ReadOptions(), "too_deep"),
    ],
)
def test_rejected_by_what_is_measured(tmp_path: Path, text: str, options: ReadOptions, reason: str) -> None:
    dump = (HEAD + page(1, "Monster", text) + PAGES[0] + FOOT).encode()
    for name in ("a.xml", "a.xml.bz2"):
        rejected, after = read(write(tmp_path, name, FORMS[name](dump)), options=options)
        assert isinstance(rejected, Rejected)
        assert rejected.reason == reason
        assert "byte" in rejected.position
        assert "Monster" in rejected.excerpt
        assert len(rejected.excerpt) <= 200
        assert isinstance(after, Document)


def kinds(items: list[Item]) -> list[str]:
    return [item.reason if isinstance(item, Corrupt | Rejected) else type(item).__name__ for item in items]


@pytest.mark.parametrize(
    ("damaged", "reason", "message"),
    [
        ("<page><title>B</title><ns>0</ns><id>2</id><revision><text>cut", "truncated", "has no </page>"),
        (page(2, "B", "a & b"), "bad_xml", "invalid XML"),
        (page(2, "B", "&unknown; <b>"), "bad_xml", "invalid XML"),
        (page(2, "B", "\x02"), "bad_xml", "invalid XML"),
        ("<page><!DOCTYPE a [<!ENTITY b 'c'>]><title>&b;</title></page>", "bad_xml", "invalid XML"),
        (page(2, "B", "caf\udce9"), "bad_utf8", "invalid UTF-8"),
    ],
)
def test_damaged_page_damages_no_other(tmp_path: Path, damaged: str, reason: str, message: str) -> None:
    dump = (HEAD + PAGES[0] + damaged + PAGES[1] + FOOT).encode("utf-8", errors="surrogateescape")
    byte = len(HEAD + PAGES[0]) + damaged.index("<page>")
    for target_bytes in (40, 1 << 30):
        file = write(tmp_path, "a.xml", dump)
        items = read(file, target_bytes=target_bytes)
        assert kinds(items) == ["Document", reason, "Redirect"]
        corrupt = items[1]
        assert isinstance(corrupt, Corrupt)
        assert corrupt.byte == byte
        assert file.path in corrupt.message
        assert message in corrupt.message
        assert f"byte {byte:,}" in corrupt.message
        assert "--on-corrupt=skip" in corrupt.message
        assert corrupt.excerpt


@pytest.mark.parametrize(
    ("stored", "reasons"),
    [
        (DUMP[:-200], [*ALL_KINDS[:-1], "truncated", "truncated"]),
        (DUMP[: DUMP.index(b"</mediawiki>")], [*ALL_KINDS, "truncated"]),
        (DUMP[:300], ["truncated"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target_bytes", [100, 1 << 30])
def test_truncated_plain_file(tmp_path: Path, stored: bytes, reasons: list[str], target_bytes: int) -> None:
    assert kinds(read(write(tmp_path, "a.xml", stored), target_bytes=target_bytes)) == reasons


@pytest.mark.parametrize("name", ["a.xml.bz2", "a.xml.gz", "a.xml.zst"])
def test_truncated_compressed_file(tmp_path: Path, name: str) -> None:
    dump = (HEAD + "".join(page(n, f"P{n}", f"text {n * 7919}") for n in range(3000)) + FOOT).encode()
    stored = FORMS[name](dump)
    cut = len(stored) * 2 // 3
    items = read(write(tmp_path, name, stored[:cut]))
    damage, *cut_page = [item for item in items if not isinstance(item, Document)]
    assert isinstance(damage, Corrupt)
    assert (damage.reason, damage.byte) == ("truncated", cut), "the stream is named before the page that it cuts"
    assert all(isinstance(item, Corrupt) for item in cut_page)
    assert items[-1 - len(cut_page) :] == [damage, *cut_page]


@pytest.mark.parametrize("target_bytes", [300, 1 << 30])
def test_damaged_stream_loses_its_own_pages_only(tmp_path: Path, target_bytes: int) -> None:
    dump = (HEAD + "".join(page(n, f"P{n}", "text") for n in range(12)) + FOOT).encode()
    stored = bytearray(by_pages(dump, 3))
    starts = [at for at in range(len(stored)) if stored[at : at + 10] == b"BZh91AY&SY"]
    middle = (starts[2] + starts[3]) // 2
    stored[middle : middle + 20] = b"\xff" * 20
    items = read(write(tmp_path, "a.xml.bz2", bytes(stored)), target_bytes=target_bytes)
    assert kinds(items) == ["Document"] * 3 + ["corrupt"] + ["Document"] * 6
    ids = [item.doc_id for item in items if isinstance(item, Document)]
    assert ids == [f"enwiki:{n}" for n in (0, 1, 2, 6, 7, 8, 9, 10, 11)]


def test_damaged_siteinfo(tmp_path: Path) -> None:
    (item,) = read(write(tmp_path, "a.xml", DUMP.replace(b"</dbname>", b"")))
    assert isinstance(item, Corrupt)
    assert "siteinfo" in item.message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('xml:lang="en"', 'xml:lang="\xff"'),
        ("https://en.", "https://["),
        ('key="14"', 'key="x"'),
        ('key="14"', ""),
        ("<dbname>", "<dbname"),
    ],
)
def test_a_damaged_head_is_told_once(tmp_path: Path, before: str, after: str) -> None:
    data = DUMP.replace(before.encode(), after.encode("latin-1"))
    for target_bytes in (100, 1 << 30):
        (item,) = read(write(tmp_path, "a.xml", data), target_bytes=target_bytes)
        assert isinstance(item, Corrupt)
        assert item.reason == "bad_xml"


def test_what_is_not_compressed_as_its_name_says_is_one_segment(tmp_path: Path) -> None:
    (item,) = read(write(tmp_path, "a.xml.bz2", b"\0" + bz2.compress(DUMP)), target_bytes=10)
    assert isinstance(item, Corrupt)
    assert "does not begin as bz2" in item.message


def test_pages_without_end_take_linear_time(tmp_path: Path) -> None:
    items = read(write(tmp_path, "a.xml", HEAD.encode() + b"<page>" * 120_000))
    assert len(items) == 120_001  # and the dump's own end


@pytest.mark.parametrize("target_bytes", [50, 300, 1 << 30])
def test_what_is_told_of_a_page_without_end_is_of_that_page(tmp_path: Path, target_bytes: int) -> None:
    data = DUMP.replace(b"</page>", b"", 1)
    faults = [
        item for item in read(write(tmp_path, "a.xml", data), target_bytes=target_bytes) if isinstance(item, Corrupt)
    ]
    assert [(fault.reason, fault.excerpt[:20], "Old" in fault.excerpt) for fault in faults] == [
        ("truncated", "<page>\n    <title>A<", False)
    ]
