"""Readers that continue where they were interrupted: what comes before is skipped and not parsed."""

from __future__ import annotations

import bz2
import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from transforms.sources import archives, books, jsonlines, parquet, wikipedia, wikipedia_html, wikitext_corpus
from transforms.sources.formats import InputFile, Segment
from transforms.sources.inputs import FORMATS
from transforms.sources.items import Item
from transforms.sources.options import ReadOptions

LOCAL = fs.LocalFileSystem()

PAGES = [
    "<page><title>A</title><ns>0</ns><id>1</id><revision><text>a</text></revision></page>",
    "<page><title>Talk:A</title><ns>1</ns><id>2</id><revision><text>b</text></revision></page>",
    "<page><title>cut</title>",
    "<page><title>B</title><ns>0</ns><id>3</id><revision><text>#REDIRECT [[A]]</text></revision></page>",
    f"<page><title>C</title><ns>0</ns><id>4</id><revision><text>{'c' * 500}</text></revision></page>",
    "<page><title>D</title><ns>0</ns><id>5</id><revision><text>d</text></revision></page>",
]
DUMP = f"<mediawiki>{''.join(PAGES)}</mediawiki>".encode()
LINES = b'{"text": "a"}\n\n{\n{"text": null}\n' + b'{"text": "%s"}\n' % (b"c" * 500) + b'{"text": "d"}\n{"text": "e"}\n'
ARTICLES = b" \n = A = \n \n a \n \n = B = \n \n b \n \n = C = \n \n " + b"c " * 300 + b"\n \n = D = \n \n d \n"
HTML = b"".join(
    b'{"name": "A", "identifier": %d, "article_body": {"html": "%s"}}\n' % (number, text)
    for number, text in enumerate((b"a", b"<style>b</style>", b"c" * 2500, b"d"))
)
MEMBERS = {"a.txt": b"a", "b.png": b"b", "c.txt": b"\xff", "d.txt": b"d" * 500, "e.txt": b"", "f.txt": b"f"}


def tar(members: dict[str, bytes] = MEMBERS) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in MEMBERS.items():
            archive.writestr(name, data)
    return out.getvalue()


def rows() -> bytes:
    out = io.BytesIO()
    table = pa.table({"text": ["a", None, "c" * 500, "d", "e", "f"]})
    pq.write_table(table, out, row_group_size=4)
    return out.getvalue()


SOURCES: dict[str, tuple[str, ModuleType, str, bytes]] = {  # format, the module and function that parse, and a file
    "a.xml": ("wikipedia-xml", wikipedia, "_item", DUMP),
    "a.xml.bz2": ("wikipedia-xml", wikipedia, "_item", bz2.compress(DUMP)),
    "a.xml.gz": ("wikipedia-xml", wikipedia, "_item", gzip.compress(DUMP)),
    "cut.xml.gz": ("wikipedia-xml", wikipedia, "_item", gzip.compress(DUMP)[:-20]),
    "a.ndjson": ("wikipedia-html", wikipedia_html, "_item", HTML),
    "a.ndjson.gz": ("wikipedia-html", wikipedia_html, "_item", gzip.compress(HTML)),
    "html.tar.gz": (
        "wikipedia-html",
        wikipedia_html,
        "_item",
        tar({"a.ndjson": HTML, "b.txt": b"b", "c.ndjson": HTML}),
    ),
    "a.jsonl": ("jsonl", jsonlines, "_item", LINES),
    "a.jsonl.gz": ("jsonl", jsonlines, "_item", gzip.compress(LINES)),
    "cut.jsonl.gz": ("jsonl", jsonlines, "_item", gzip.compress(LINES)[:-5]),
    "a.tar.gz": ("archive", archives, "_item", tar()),
    "cut.tar.gz": ("archive", archives, "_item", tar()[:-30]),
    "a.zip": ("archive", archives, "_item", zipped()),
    "a.parquet": ("parquet", parquet, "document_of", rows()),
    "a.tokens": ("wikitext-corpus", wikitext_corpus, "_item", ARTICLES),
    "a.txt": ("text", books, "document_of", b"a text"),
    "empty.txt": ("text", books, "document_of", b""),
}


@pytest.mark.parametrize("name", SOURCES)
def test_skipping_gives_the_rest_and_parses_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    format_, module, parser, data = SOURCES[name]
    (tmp_path / name).write_bytes(data)
    file = InputFile(str(tmp_path / name), name, len(data))
    parsed = 0
    parse = getattr(module, parser)

    def counted(*args: object, **kwargs: object) -> Item:
        nonlocal parsed
        parsed += 1
        return parse(*args, **kwargs)

    def read(skip: int) -> list[Item]:
        options = ReadOptions(max_page_bytes=400, max_document_bytes=400)
        return list(FORMATS[format_].read(LOCAL, file, Segment(0, len(data)), options=options, skip=skip))

    monkeypatch.setattr(module, parser, counted)
    whole = read(0)
    assert len(whole) >= 1
    of_all, parsed = parsed, 0
    for skip in range(len(whole) + 2):
        assert read(skip) == whole[skip:]
        assert parsed <= len(whole[skip:])
        parsed = 0
    assert of_all >= min(2, len(whole)) or format_ == "text"
