"""Wikipedia's HTML dumps: fields of a record, archives and files of lines, segments, damage; a small dump."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from pyarrow import fs

from transforms.sources.formats import InputFile, Segment
from transforms.sources.inputs import RawFiles, resolve_inputs
from transforms.sources.items import Corrupt, Document, Filtered, Item, Link, Page, Redirect, Rejected
from transforms.sources.options import ReadOptions
from transforms.sources.wikipedia import WIKIPEDIA_XML
from transforms.sources.wikipedia_html import PAGE_FACTOR, WIKIPEDIA_HTML

LOCAL = fs.LocalFileSystem()
DUMP = Path(__file__).parents[1] / "data" / "wikipedia-html" / "enwiki-NS0-20160501-ENTERPRISE-HTML.json.tar.gz"

HTML = '<body><section><p><b>A b</b> is a <a rel="mw:WikiLink" href="./C_d" title="C d">c</a>.</p></section></body>'


def record(**changes: object) -> dict[str, object]:
    """A page as in a dump; a field of None is left out."""
    whole: dict[str, object] = {
        "name": "A b",
        "identifier": 12,
        "url": "https://en.wikipedia.org/wiki/A_b",
        "namespace": {"identifier": 0, "name": ""},
        "in_language": {"identifier": "en"},
        "main_entity": {"identifier": "Q34"},
        "is_part_of": {"identifier": "enwiki"},
        "redirects": [{"name": "B"}, {"name": "b_c"}, {"name": "B"}, {"name": "Talk:A"}],
        "license": [{"identifier": "CC-BY-SA-4.0", "name": "Creative Commons"}],
        "article_body": {"html": HTML, "wikitext": "x"},
    }
    return {name: value for name, value in {**whole, **changes}.items() if value is not None}


def lines_of(*records: object) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in records)


def tar_of(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def file_of(folder: Path, data: bytes, name: str) -> InputFile:
    (folder / name).write_bytes(data)
    return InputFile(str(folder / name), name, len(data))


def read(
    file: InputFile, *, target_bytes: int = 1 << 30, options: ReadOptions | None = None, skip: int = 0
) -> list[Item]:
    segments = WIKIPEDIA_HTML.split(LOCAL, file, target_bytes=target_bytes)
    assert [segments[0].start, segments[-1].end] == [0, file.size]
    assert all(one.end == two.start for one, two in pairwise(segments))
    read = (WIKIPEDIA_HTML.read(LOCAL, file, each, options=options or ReadOptions(), skip=skip) for each in segments)
    return [item for each in read for item in each]


PAGE = Page("enwiki", "12", "A b", "Q34", False, ("B", "B c"))
DOCUMENT = Document(
    "enwiki:12", "enwiki", "A b", "https://en.wikipedia.org/wiki/A_b", "CC BY-SA 4.0", "A b is a c.",
    (Link(9, 10, "C d"),), PAGE, "en",
)  # fmt: skip
DISAMBIGUATION = DOCUMENT._replace(page=PAGE._replace(disambiguation=True))
BARE = DOCUMENT._replace(url="", licence="unknown", page=Page("enwiki", "12", "A b"))
DMBOX = '<div role="note" class="metadata dmbox dmbox-disambig" id="disambigbox">x</div>'


@pytest.mark.parametrize(
    ("changes", "item"),
    [
        ({}, DOCUMENT),
        ({"namespace": {"identifier": 1}}, Filtered("not_an_article")),
        ({"namespace": {"identifier": 10}, "article_body": None}, Filtered("not_an_article")),
        ({"namespace": None, "name": "Template:A"}, Filtered("not_an_article")),
        ({"namespace": None}, DOCUMENT),
        ({"article_body": {"html": ""}}, Filtered("no_text", PAGE)),
        ({"article_body": {"html": "<table><tr><td>x</td></tr></table>"}}, Filtered("no_text", PAGE)),
        ({"article_body": {"html": '<link rel="mw:PageProp/redirect" href="./C#e"/>'}},
         Redirect("enwiki", "A b", "C", "e")),
        ({"article_body": {"html": f"<p>mw:PageProp/redirect</p>{HTML}"}},
         DOCUMENT._replace(text="mw:PageProp/redirect\n\nA b is a c.", links=(Link(31, 32, "C d"),))),
        ({"article_body": {"html": HTML + DMBOX}}, DISAMBIGUATION),
        ({"article_body": {"html": HTML + '<meta property="mw:PageProp/disambiguation"/>'}}, DISAMBIGUATION),
        ({"article_body": {"html": "<style>.dmbox-disambig{}</style>" + HTML}}, DOCUMENT),
        ({"templates": [{"name": "Template:Convert"}, {"name": "Template:Disambiguation"}]}, DISAMBIGUATION),
        ({"templates": [{"name": "Vorlage:Begriffsklärung"}]}, DISAMBIGUATION),
        ({"templates": [{"name": "Module:Disambiguation"}, {"name": "Template:Dmbox"}, 7, {}]}, DOCUMENT),
        ({"main_entity": None, "redirects": None, "license": None, "url": None}, BARE),
        ({"main_entity": {"identifier": "x"}, "redirects": 7, "license": [], "url": 7}, BARE),
        ({"main_entity": 7, "redirects": [None, {"name": 7}], "license": 7, "url": "x" * 3_000}, BARE),
        ({"name": "A\u0000_b "}, DOCUMENT),
        ({"license": [{"identifier": "CC-BY-3.0"}, {"name": "GFDL"}]}, DOCUMENT._replace(licence="CC BY 3.0, GFDL")),
        ({"is_part_of": {"identifier": "dewiki"}, "in_language": {"identifier": "de"},
          "article_body": {"html": "<p>a <a rel='mw:WikiLink' href='./Hilfe:B'>b</a></p>"}},
         DOCUMENT._replace(doc_id="dewiki:12", source="dewiki", text="a b", links=(),
                           page=PAGE._replace(source="dewiki"), language="de")),
    ],
)  # fmt: skip
def test_records(tmp_path: Path, changes: dict[str, object], item: Item) -> None:
    assert read(file_of(tmp_path, lines_of(record(**changes)), "a.ndjson")) == [item]


@pytest.mark.parametrize(
    ("line", "reason", "byte", "message"),
    [
        (
            lines_of(record(article_body=None)),
            "bad_record",
            0,
            "has no 'article_body.html'; take a dump of whole pages",
        ),
        (lines_of(record(article_body={"wikitext": "x"})), "bad_record", 0, "has no 'article_body.html'"),
        (lines_of(record(article_body={"html": 7})), "bad_record", 0, "has no 'article_body.html'"),
        (lines_of(record(name=None)), "bad_record", 0, "has no 'name'"),
        (lines_of(record(identifier="12")), "bad_record", 0, "has no 'identifier'"),
        (b"[]\n", "bad_record", 0, "is not a JSON object; write one page of the dump a line"),
        (lines_of(record())[:-9] + b"\n", "bad_record", None, "is not JSON"),
        (b'{"name": "\xff"}\n', "bad_utf8", 10, "is not UTF-8: 0xff at byte"),
    ],
)
def test_bad_lines(tmp_path: Path, line: bytes, reason: str, byte: int | None, message: str) -> None:
    before, after = lines_of(record()), lines_of(record())
    file = file_of(tmp_path, before + line + after, "a.ndjson")
    one, bad, two = read(file)
    assert [one, two] == [DOCUMENT, DOCUMENT]
    assert isinstance(bad, Corrupt)
    assert bad.reason == reason
    assert byte is None or bad.byte == len(before) + byte
    assert message in bad.message
    assert file.path in bad.message
    if reason != "bad_utf8":
        assert f"the line at byte {len(before):,}" in bad.message
    assert "--on-corrupt=skip" in bad.message or "write" in bad.message


@pytest.mark.parametrize(
    ("html", "reason"),
    [("<b>" * 60, "too_many_nodes"), ("<b>" * 20, "too_deep"), ("x" * 1_000, "page_too_large")],
)
def test_limits(tmp_path: Path, html: str, reason: str) -> None:
    options = ReadOptions(max_page_bytes=1_200 // PAGE_FACTOR, max_nodes=50 // PAGE_FACTOR, max_depth=15)
    file = file_of(tmp_path, lines_of(record(article_body={"html": html}), record()), "a.ndjson")
    rejected, document = read(file, options=options)
    assert isinstance(rejected, Rejected)
    assert rejected.reason == reason
    assert rejected.position.startswith("byte 0")
    assert rejected.excerpt
    assert rejected.page == (None if reason == "page_too_large" else PAGE)
    assert document == DOCUMENT


RECORDS = [record(identifier=n, name=f"T{n}", article_body={"html": f"<p>{'x ' * n}</p>"}) for n in range(1, 40)]
LINES = lines_of(*RECORDS[:20]) + b"\n \n{\n" + lines_of(*RECORDS[20:])
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "a.ndjson": bytes,
    "a.json": bytes,
    "a.ndjson.gz": gzip.compress,
    "a.ndjson.bz2": bz2.compress,
    "a.ndjson.zst": zstandard.ZstdCompressor().compress,
    "a.tar": lambda data: tar_of(("a_0.ndjson", data[:0]), ("x/a_1.ndjson", data)),
    "a.tar.gz": lambda data: gzip.compress(tar_of(("a_0.ndjson", data))),
    "a.tar.bz2": lambda data: bz2.compress(tar_of(("a_0.ndjson", data))),
}


def ids(items: list[Item]) -> list[str]:
    return [
        item.doc_id if isinstance(item, Document) else item.reason for item in items if not isinstance(item, Redirect)
    ]


@pytest.mark.parametrize("name", PACKED)
def test_every_packing_gives_the_same_items(tmp_path: Path, name: str) -> None:
    file = file_of(tmp_path, PACKED[name](LINES), name)
    expected = [f"enwiki:{n}" for n in range(1, 21)] + ["bad_record"] + [f"enwiki:{n}" for n in range(21, 40)]
    assert ids(read(file)) == expected
    resolved = resolve_inputs([file.path])
    assert isinstance(resolved, RawFiles)
    assert [each.format.name for each in resolved.inputs] == ["wikipedia-html"]


@pytest.mark.parametrize("target_bytes", [1, 7, 100, 1_000, 5_000])
def test_segments_do_not_matter(tmp_path: Path, target_bytes: int) -> None:
    file = file_of(tmp_path, LINES, "a.ndjson")
    assert read(file, target_bytes=target_bytes) == read(file)


@pytest.mark.parametrize("name", ["a.ndjson", "a.tar", "a.tar.gz"])
def test_an_interrupted_reading_goes_on(tmp_path: Path, name: str) -> None:
    file = file_of(tmp_path, PACKED[name](LINES), name)
    whole = read(file)
    for skip in (0, 1, 19, 20, 21, 39, 41):
        assert read(file, skip=skip) == whole[skip:]


def test_members_that_hold_no_lines(tmp_path: Path) -> None:
    data = tar_of(("a_0.ndjson", lines_of(record())), ("sums.txt", b"x"), ("b.ndjson", lines_of(record(identifier=13))))
    items = read(file_of(tmp_path, data, "a.tar"))
    assert ids(items) == ["enwiki:12", "not_a_text_file", "enwiki:13"]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.tar.gz", gzip.compress(tar_of(("a.ndjson", LINES)))[:-20], "truncated"),
        ("a.tar", tar_of(("a.ndjson", LINES))[:3_000], "truncated"),
        ("a.tar", tar_of(("a.ndjson", LINES), ("b.ndjson", b""))[: -10240 - 512], "truncated"),
        ("a.tar.gz", gzip.compress(tar_of(("a.ndjson", LINES)))[:200] + bytes(500), "corrupt"),
        ("a-NS0-x-ENTERPRISE-HTML.json.tar.gz", b"\0\1\2 not compressed" * 9, "corrupt"),
        ("a.ndjson.gz", gzip.compress(LINES)[:-5], "truncated"),
        ("a.ndjson", b"", "empty_file"),
    ],
)
def test_damage(tmp_path: Path, name: str, data: bytes, expected: str) -> None:
    file = file_of(tmp_path, data, name)
    *before, last = read(file)
    assert isinstance(last, Corrupt)
    assert last.reason == expected
    assert 0 <= last.byte <= file.size
    assert file.path in last.message
    assert "; " in last.message
    if expected == "truncated":
        assert len(before) >= 5
        assert ids(before) == ids(read(file_of(tmp_path, LINES, "whole.ndjson")))[: len(before)]


@pytest.mark.parametrize(
    ("name", "head", "recognised"),
    [
        ("a.ndjson", lines_of(record()), True),
        ("anything", lines_of(record()), True),
        ("a.ndjson", b'\xef\xbb\xbf {"article_body":{"html":"', True),
        ("a.ndjson", lines_of(record(article_body=None)), False),
        ("enwiki-NS0-20240601-ENTERPRISE-HTML.ndjson", lines_of(record(article_body=None)), True),
        ("enwiki-NS0-20240601-ENTERPRISE-HTML.json.tar.gz", b"", True),
        ("a.jsonl", lines_of({"text": '"article_body": {'}), False),
        ("a.jsonl", lines_of({"text": "x"}, record()), False),
        ("a.tar", tar_of(("x/a_0.ndjson", lines_of(record()))), True),
        ("a.tar", tar_of(("a.txt", lines_of(record()))), False),
        ("a.tar", tar_of(("a.ndjson", b'{"text": "x"}')), False),
        ("a.tar", tar_of(("é" * 90 + ".ndjson", lines_of(record()))), True),
        ("a.tar", b"", False),
    ],
)
def test_recognised_by_content(name: str, head: bytes, recognised: bool) -> None:
    assert WIKIPEDIA_HTML.recognises(name, head) is recognised


# ---- A small dump


def documents(items: Iterator[Item]) -> dict[str, Document]:
    return {item.doc_id: item for item in items if isinstance(item, Document)}


def anchors(document: Document) -> list[tuple[str, str]]:
    return [(document.text[link.start_char : link.end_char], link.target_title) for link in document.links]


def test_the_small_dump() -> None:
    file = InputFile(str(DUMP), DUMP.name, DUMP.stat().st_size)
    (segment,) = WIKIPEDIA_HTML.split(LOCAL, file, target_bytes=1 << 16)
    found = documents(WIKIPEDIA_HTML.read(LOCAL, file, segment, options=ReadOptions()))
    assert len(found) == 20
    assert sum(len(each.links) for each in found.values()) == 948
    assert [each.title for each in found.values() if each.page and each.page.disambiguation] == [
        "Ada", "Alien", "Asia Minor (disambiguation)", "Austin (disambiguation)"
    ]  # fmt: skip
    astronomer = found["enwiki:580"]
    assert astronomer.text.startswith("An astronomer is a scientist in the field of astronomy who concentrates")
    assert astronomer.page == Page("enwiki", "580", "Astronomer", "Q580", False, ("Astronomers and Astrophysicists",))
    assert not any("[edit]" in each.text or "↑" in each.text or "{{" in each.text for each in found.values())


def test_the_small_dump_agrees_with_the_wikitext(test_data: Path) -> None:
    """The same links in the same order as from the wikitext reader, and the same lines except the text of templates."""
    html = InputFile(str(DUMP), DUMP.name, DUMP.stat().st_size)
    path = test_data / "corpora" / "wikipedia" / "enwiki-fragment.xml.bz2"
    xml = InputFile(str(path), path.name, path.stat().st_size)
    one = documents(WIKIPEDIA_HTML.read(LOCAL, html, Segment(0, html.size), options=ReadOptions()))
    two = documents(WIKIPEDIA_XML.read(LOCAL, xml, Segment(0, xml.size), options=ReadOptions()))
    same = different = 0
    for doc_id, document in one.items():
        assert anchors(document) == anchors(two[doc_id])
        assert (document.title, document.url, document.licence) == two[doc_id][2:5]
        ours, theirs = (set(each.text.split("\n")) for each in (document, two[doc_id]))
        same += len(ours & theirs)
        different += len(ours ^ theirs)
    assert (same, different) == (739, 19)
