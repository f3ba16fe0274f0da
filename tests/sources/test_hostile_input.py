"""Hostile input through the recognition of formats and the extract stage: a reject or a clear error, in bounded memory.

Each runs in its own process, forked from one that has imported everything, so the peak is the memory for the input.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import multiprocessing
import os
import resource
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.stage import Work, open_stage
from pipelines.engine.task_writer import do_unit
from pipelines.stages.extract import Extract, SourceFile
from schemas.errors import UserError
from schemas.storage.folder import Folder
from transforms.sources.inputs import RawFiles, resolve_inputs
from transforms.sources.options import ReadOptions

MEMORY = 300 << 20  # bytes in addition to the imports
SECONDS = 120  # a hang, on any machine

MB = 1_000_000
DEFAULT = ReadOptions()
SMALL = ReadOptions(max_document_bytes=4 * MB)


class Result(NamedTuple):
    """The result for an input: numbers of records by outcome, ids, titles and texts, or the error; the memory peak."""

    counts: dict[str, int]
    documents: list[dict[str, Any]]
    error: str
    peak: int


def _work(path: str, output: str, options: ReadOptions, connection: Connection) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counts: dict[str, int] = {}
    documents: list[dict[str, Any]] = []
    error = ""
    try:
        found = resolve_inputs([path])
        assert isinstance(found, RawFiles)
        stage = Extract(
            formats=(),
            read=options,
            shard_bytes=1 << 28,
            on_corrupt="skip",
            max_documents=None,
            sample_rate=1.0,
            sample_seed=0,
            dedup="off",
            files=tuple(SourceFile(each.filesystem, each.file, each.format.name) for each in found.inputs),
        )
        work = Work(Folder(output))
        done = [do_unit(work, stage, unit) for unit in open_stage(work, stage)]
    except UserError as refused:
        error = str(refused)
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if not error:
        for each in done:
            ledger = each.ledger
            assert ledger is not None
            assert not ledger.lost
            for reason, count in {**ledger.filtered, **ledger.rejected, "written": ledger.written}.items():
                counts[reason] = counts.get(reason, 0) + count
            for file in each.files:
                if file.role == "train":
                    documents += pq.read_table(Path(output) / file.path).to_pylist()
        counts = {reason: count for reason, count in counts.items() if count}
        documents = [{**each, "text": each["text"][:300], "links": len(each["links"])} for each in documents[:100]]
    connection.send(Result(counts, documents, error, peak))


def _serve(jobs: Connection) -> None:
    """Does each job in a fork, which has imported everything and not used any memory yet."""
    fork = multiprocessing.get_context("fork")
    while job := jobs.recv():
        receiver, sender = fork.Pipe(duplex=False)
        process = fork.Process(target=_work, args=(*job, sender))
        process.start()
        sender.close()
        try:
            jobs.send(receiver.recv() if receiver.poll(SECONDS) else "hangs")
        except EOFError:
            process.join()
            jobs.send(f"died with exit code {process.exitcode}")
        process.kill()
        process.join()


@pytest.fixture(scope="module")
def server() -> Iterator[Connection]:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs,), daemon=False)
    process.start()
    yield ours
    ours.send(None)
    process.join(10)
    process.kill()


Extracted = Callable[..., Result]


@pytest.fixture
def extracted(tmp_path: Path, server: Connection) -> Extracted:
    """Extracts documents from a file in a separate process."""

    def run(path: Path, options: ReadOptions = DEFAULT) -> Result:
        server.send((str(path), str(tmp_path / "out"), options))
        result = server.recv()
        if isinstance(result, str):
            pytest.fail(result)
        return result

    return run


# ---- Makers of files

HEAD = (
    b'<mediawiki xml:lang="en"><siteinfo><dbname>wiki</dbname><base>https://en.wikipedia.org/wiki/Main_Page</base>'
    b"</siteinfo>"
)
FOOT = b"</mediawiki>"


def page(text: bytes, number: int = 1) -> bytes:
    return b"<page><title>T</title><ns>0</ns><id>%d</id><revision><text>%s</text></revision></page>" % (number, text)


def dump(*texts: bytes) -> bytes:
    return HEAD + b"".join(page(text, number) for number, text in enumerate(texts)) + FOOT


def zeros_zstd(size: int, *, window: int) -> bytes:
    """A zstd frame of `size` zero bytes: blocks that repeat one byte, in a window of 2^window bytes."""
    block, blocks = 1 << 17, size >> 17
    frame = b"\x28\xb5\x2f\xfd\x00" + bytes([(window - 10) << 3])
    for number in range(blocks):
        frame += struct.pack("<I", block << 3 | 1 << 1 | (number == blocks - 1))[:3] + b"a"
    return frame


def tarred(*members: tuple[str, bytes | tuple[bytes, str]], format: int = tarfile.GNU_FORMAT) -> bytes:
    """A tar of files (name, content) and of links and devices (name, (type, target))."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                info.type, info.linkname = content
                archive.addfile(info)
    return out.getvalue()


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def header(name: bytes, size: int, kind: bytes = b"0", magic: bytes = b"ustar  \0") -> bytes:
    """A header block of a tar."""
    octal = b"%011o\0" % size if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
    block = name.ljust(100, b"\0") + b"0000644\0" * 3 + octal + b"0" * 11 + b"\0" + b" " * 8 + kind + bytes(100) + magic
    block = block.ljust(512, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def sparse_map(entries: int) -> bytes:
    """A file with holes; its map, in the file itself (GNU 1.0), claims more entries than it has numbers."""
    pax = b"".join(
        b"%d %s\n" % (len(line) + 4, line)
        for line in (b"GNU.sparse.major=1", b"GNU.sparse.minor=0", b"GNU.sparse.realsize=10", b"GNU.sparse.name=a.txt")
    )
    data = b"%d\n" % (entries * 10) + b"1\n" * entries
    size = 512 * -(-len(data) // 512)
    return header(b"p", len(pax), b"x") + pax.ljust(512, b"\0") + header(b"a.txt", size) + data.ljust(size, b"\0")


def overlapping_zip(members: int) -> bytes:
    """Many directory entries that share one member."""
    data = zipped(("a.txt", bytes(10 * MB)))
    at = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    directory = data[at:end] * members
    return data[:at] + directory + data[end:-14] + struct.pack("<HHIIH", members, members, len(directory), at, 0)


def lying_zip() -> bytes:
    """A member that claims to have 5 bytes, and has more."""
    data = zipped(("a.txt", b"x" * MB), ("b.txt", b"fine"))
    return data.replace(struct.pack("<I", MB), struct.pack("<I", 5))


def parquet(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def lying_footer(claimed: int) -> bytes:
    data = parquet(pa.table({"text": ["a"]}))
    return data[:-8] + struct.pack("<I", claimed) + b"PAR1"


def lying_rows() -> bytes:
    """A footer that claims more than 2^40 rows for a file of 64."""
    data = parquet(pa.table({"text": ["a"] * 64}), compression="none", use_dictionary=False, store_schema=False)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    zigzag = b"\x80\x01"  # 64, as a varint
    footer = data[start:-8].replace(zigzag, b"\x80\x80\x80\x80\x80\x80\x01")
    return data[:start] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def lying_page() -> bytes:
    """A page whose header claims two gigabytes."""
    data = parquet(pa.table({"text": ["a" * 64]}), compression="zstd", use_dictionary=False, write_statistics=False)
    at = data.index(b"\x15\x00\x15") + 3  # type 0, then the uncompressed size
    claim = b"\xfe\xff\xff\xff\x0f"
    end = at + 2 if data[at] & 0x80 else at + 1
    # The header grows, so the rest is moved into the bytes of the page.
    cut = len(claim) - (end - at)
    return data[:at] + claim + data[end : end + 10] + data[end + 10 + cut :]


def shared_value(column: str) -> bytes:
    """20,000 rows that share one text of 30 MB."""
    value = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x " * 15 * MB]))
    columns = {"text": value} if column == "text" else {"text": ["a"] * 20_000, column: value}
    return parquet(pa.table(columns), compression="zstd", dictionary_pagesize_limit=1 << 30)


def sparse(path: Path, beginning: bytes, size: int) -> None:
    with path.open("wb") as file:
        file.write(beginning)
        file.truncate(size)


def lines_of_json(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


ONE = {"text": "One."}


def html_page(html: str, **fields: object) -> dict[str, object]:
    return {"name": "T", "identifier": 1, "article_body": {"html": html}, **fields}


FINE = html_page("<p>Fine.</p>", identifier=2)


def html_lines(html: str, **fields: object) -> Callable[[], bytes]:
    return lambda: lines_of_json(html_page(html, **fields), FINE)


# ---- Tables: name of the file, its content, the outcome

BOMBS = [
    ("a.txt.bz2", lambda: bz2.compress(b"a" * 20 * MB) * 15, {"document_too_large": 1}),
    ("a.txt.gz", lambda: gzip.compress(b"a" * 300 * MB, 1), {"document_too_large": 1}),
    ("a.txt.zst", lambda: zeros_zstd(1 << 30, window=20), {"document_too_large": 1}),
    ("window.txt.zst", lambda: zeros_zstd(1 << 30, window=31), "needs more than 128 MiB of memory"),
    ("a.txt.xz", lambda: lzma.compress(b"a" * MB), "is of no known format"),
    (
        "a.xml.bz2",
        lambda: bz2.compress(HEAD + page(b"x" * 60 * MB) + page(b"Fine.") + FOOT),
        {"page_too_large": 1, "written": 1},
    ),
    (
        "a.jsonl.gz",
        lambda: gzip.compress(b'{"text": "' + b"x" * 200 * MB + b'"}\n{"text": "Fine."}\n', 1),
        {"record_too_large": 1, "written": 1},
    ),
    (
        "a.tar.gz",
        lambda: gzip.compress(tarred(("a.txt", b"a" * 200 * MB), ("b.txt", b"Fine.")), 1),
        {"record_too_large": 1, "written": 1},
    ),
    (
        "nested.tar.gz",
        lambda: gzip.compress(tarred(("b.tar.gz", gzip.compress(tarred(("a.txt", b"a" * MB)))))),
        {"not_a_text_file": 1},
    ),
    ("nested.zip", lambda: zipped(("b.zip", zipped(("a.txt", b"a" * MB)))), {"not_a_text_file": 1}),
    *(
        (
            f"{method}.zip",
            lambda method=method, size=size: zipped(("a.txt", bytes(size * MB)), ("b.txt", b"Fine."), method=method),
            {"record_too_large": 1, "written": 1},
        )
        for method, size in ((zipfile.ZIP_DEFLATED, 400), (zipfile.ZIP_BZIP2, 400), (zipfile.ZIP_LZMA, 60))
    ),
    ("overlap.zip", lambda: overlapping_zip(3_000), {"record_too_large": 1, "corrupt": 2_999}),
    ("lies.zip", lying_zip, {"corrupt": 1, "written": 1}),
    (
        "values.jsonl",
        lambda: b'{"text": "a", "b": [' + b"[]," * 10 * MB + b"[]]}\n" + lines_of_json(ONE),
        {"record_too_large": 1, "written": 1},
    ),
]

LONG = [
    ("line.jsonl", lambda: b'{"text": "' + b"x" * 100 * MB + b'"}', {"record_too_large": 1}),
    ("line.txt", lambda: b"x" * 100 * MB, {"document_too_large": 1}),
    (
        "line.xml",
        lambda: HEAD + b"<!--" + b" " * 100 * MB + b"-->" + page(b"A.") + page(b"B.", 2) + FOOT,
        {"written": 2},
    ),
    ("line.tokens", lambda: b" = A = \n" + b"x" * 100 * MB, {"record_too_large": 1}),
    ("page.xml", lambda: dump(b"x" * 100 * MB, b"Fine."), {"page_too_large": 1, "written": 1}),
    ("pages.xml", lambda: HEAD + b"<page>" * 200_000, {"truncated": 200_001}),
]

NESTED = [
    ("links.xml", lambda: dump(b"[[a]] " * MB), {"page_too_large": 1}),
    ("fewer-links.xml", lambda: dump(b"[[a]] " * 600_000), {"too_many_nodes": 1}),
    ("templates.xml", lambda: dump(b"{{a|" * 100_000 + b"}}" * 100_000), {"too_deep": 1}),
    ("braces.xml", lambda: dump(b"{" * 300_000 + b"a|" * 300_000 + b"}" * 300_000), {"too_deep": 1}),
    ("tables.xml", lambda: dump(b"\n{|\n|a" * 100_000), {"too_deep": 1}),
    ("pictures.xml", lambda: dump(b"[[File:a|" * 100_000), {"too_deep": 1}),
    ("html.xml", lambda: dump(b"&lt;table>" * 100_000), {"too_deep": 1}),
    ("ships.xml", lambda: dump(b"{{HMS|" * 90 + b"Hood" + b"|1}}" * 90), {"written": 1}),
    ("elements.xml", lambda: HEAD + page(b"<a>" * 1_000_000) + page(b"Fine.") + FOOT, {"bad_xml": 1, "written": 1}),
    ("whole.xml", lambda: dump(b"<a>" * 400_000 + b"</a>" * 400_000, b"Fine."), {"bad_xml": 1, "written": 1}),
    (
        "brackets.jsonl",
        lambda: b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n" + lines_of_json(ONE),
        {"bad_record": 1, "written": 1},
    ),
    (
        "digits.jsonl",
        lambda: b'{"text": "a", "n": ' + b"1" * 100_000 + b"}\n" + lines_of_json(ONE),
        {"bad_record": 1, "written": 1},
    ),
]

LONGNAME = header(b"././@LongLink", 5, b"L") + b"a.txt".ljust(512, b"\0")
ARCHIVES = [
    ("recursion.tar", lambda: LONGNAME * 100_000, {"corrupt": 1}),
    (
        "name.tar.gz",
        lambda: gzip.compress(header(b"././@LongLink", 200 * MB, b"L") + bytes(200 * MB), 1),
        {"corrupt": 1},
    ),
    ("size.tar", lambda: header(b"a.txt", 1 << 62) + b"x", {"record_too_large": 1, "truncated": 1}),
    ("sparse.tar.gz", lambda: gzip.compress(sparse_map(20 * MB), 1), {"corrupt": 1}),
    ("attributes.tar", lambda: header(b"p", 300_000, b"x") + b"2 " * 200_000, {"corrupt": 1}),
    (
        "names.tar.gz",
        lambda: gzip.compress(b"".join(header(b"%d.png" % n, 0) for n in range(20_000)) + bytes(1024), 1),
        {"not_a_text_file": 20_000},
    ),
    ("empty.zip", lambda: b"PK\x05\x06" + bytes(18), {"corrupt": 1}),
    (
        "directory.zip",
        lambda: (
            zipped(("a.txt", b"One."))[:-22]
            + b"PK\x05\x06"
            + struct.pack("<HHHHIIH", 0, 0, 65535, 65535, 1 << 31, 0, 0)
        ),
        {"corrupt": 1},
    ),
]

PARQUETS = [
    ("magic.parquet", lambda: b"PAR1" + bytes(100) + b"PAR2", {"corrupt": 1}),
    ("encrypted.parquet", lambda: b"PARE" + bytes(100) + b"\x10\0\0\0PARE", "is of no known format"),
    ("short.parquet", lambda: b"PAR1", {"corrupt": 1}),
    ("length.parquet", lambda: lying_footer(0xFFFFFFFF), {"corrupt": 1}),
    ("length-0.parquet", lambda: lying_footer(0), {"corrupt": 1}),
    ("rows.parquet", lying_rows, {"written": 64, "corrupt": 1}),
    ("page.parquet", lying_page, {"corrupt": 1}),
    (
        "bomb.parquet",
        lambda: parquet(pa.table({"text": pa.array(["x" * 70 * MB])}), compression="zstd", use_dictionary=False),
        {"corrupt": 1},
    ),
    ("shared.parquet", lambda: shared_value("text"), {"record_too_large": 20_000}),
    ("shared-title.parquet", lambda: shared_value("title"), {"written": 20_000}),
]

TEXTS = [
    ("newlines.txt", lambda: b"\n" * 4 * MB, {"no_text": 1}),
    ("tabs.txt", lambda: b"\t" * 3 * MB + b"x", {"written": 1}),
    ("short-lines.txt", lambda: b"ab\n" * 1_300_000, {"written": 1}),
    ("marks.txt", lambda: b"a" + "\u0301\u0327".encode() * 900_000, {"written": 1}),
    ("odd.txt", lambda: "ab\u2019".encode() * 700_000, {"written": 1}),
    ("emoji.txt", lambda: "\U0001f600".encode() + b"a " * 1_900_000, {"written": 1}),
    (
        "stars.txt",
        lambda: b"*** START OF THE PROJECT GUTENBERG EBOOK A ***\n" + b"*" * 3 * MB + b"\nA.",
        {"written": 1},
    ),
    (
        "credits.txt",
        lambda: b"*** START OF THE PROJECT GUTENBERG EBOOK A ***\n" + b"Produced by\n\n" * 290_000,
        {"written": 1},
    ),
    ("notes.txt", lambda: b"*** START OF THE PROJECT GUTENBERG EBOOK A ***\nA" + b"\n." * 1_900_000, {"written": 1}),
    ("contents.txt", lambda: b"CONTENTS\nA\n" + b". " * 1_900_000 + b"q\n", {"written": 1}),
    (
        "hyphens.txt",
        lambda: b"a-" * 1_000_000 + b"\n" + b"it goes on here and there and everywhere and on\n" * 40_000,
        {"written": 1},
    ),
    ("equals.tokens", lambda: b" = A = \n\n" + b"= " * 1_900_000 + b"\n", {"written": 1}),
    ("short.tokens", lambda: b" = A = \n" + b"a\n" * 200_000, {"written": 1}),
    ("pipes.xml", lambda: dump(b"A {{nowrap|[[a]]" + b"|" * 3 * MB + b"}}"), {"written": 1}),
    ("spaces.xml", lambda: dump(b"A {{nowrap|" + b" " * 3 * MB + b"!=x}}"), {"written": 1}),
    ("title.jsonl", lambda: lines_of_json({"text": "One.", "title": "a b " * 800_000}), {"written": 1}),
]

ENCODINGS = [
    ("latin.txt", lambda: b"caf\xe9", {"bad_utf8": 1}),
    ("surrogate.txt", lambda: b"a \xed\xa0\x80 b", {"bad_utf8": 1}),
    ("utf16.txt", lambda: "text".encode("utf-16"), {"written": 1}),
    ("utf16-be.txt", lambda: b"\xfe\xff" + "café".encode("utf-16-be"), {"written": 1}),
    ("utf16.txt.gz", lambda: gzip.compress("text".encode("utf-16")), {"written": 1}),
    ("utf16-cut.txt", lambda: "text".encode("utf-16")[:-1], {"truncated": 1}),
    ("utf16-bad.txt", lambda: "text".encode("utf-16") + b"\x00\xdca\0", {"bad_utf8": 1}),
    ("utf16-le.txt", lambda: "text".encode("utf-16-le"), {"written": 1}),
    ("utf16-be-le.txt", lambda: "café".encode("utf-16-be"), {"written": 1}),
    ("utf16-greek.txt", lambda: "Λόγος καὶ λόγος".encode("utf-16-be"), {"written": 1}),
    ("utf16-cyrillic.txt", lambda: "Слово и ещё слово".encode("utf-16-le"), {"written": 1}),
    ("utf16-cjk.txt", lambda: "\ufeff一二三四".encode("utf-16-le"), {"written": 1}),
    ("utf32.txt", lambda: "text".encode("utf-32"), {"written": 1}),
    ("utf16.jsonl", lambda: '{"text": "a"}\n{"text": "\u4e0a"}'.encode("utf-16"), {"written": 2}),
    ("utf16-le.jsonl", lambda: '{"text": "a"}\n{"text": "b"}'.encode("utf-16-le"), {"written": 2}),
    ("utf16.xml", lambda: dump(b"A.", b"B.").decode().encode("utf-16"), {"written": 2}),
    ("utf16.xml.bz2", lambda: bz2.compress(dump(b"A." * 900_000, b"B.").decode().encode("utf-16")), {"written": 2}),
    ("utf16-le.xml", lambda: dump(b"A.").decode().encode("utf-16-le"), {"written": 1}),
    ("utf16.tokens", lambda: " = A = \n\nText .\n".encode("utf-16"), {"written": 1}),
    (
        "utf16.tar",
        lambda: tarred(("a.txt", "text".encode("utf-16")), ("b.txt", b"\xff\xfe\x00\xdc")),
        {"written": 1, "bad_utf8": 1},
    ),
    (
        "utf16.zip",
        lambda: zipped(("a.txt", "text".encode("utf-16")), ("b.txt", "text".encode("utf-16-be"))),
        {"written": 2},
    ),
    ("first-nul.txt", lambda: b"\0a", {"written": 1}),
    ("nul.txt", lambda: b"a\0b", {"written": 1}),
    ("late-nul.txt", lambda: b"a" * 70_000 + b"\0 b", {"written": 1}),
    ("first-nul.jsonl", lambda: b'\0{"text": "a"}\n{"text": "b"}\n\0{"text": "c"}\n', {"written": 1, "bad_record": 2}),
    ("nul.tokens", lambda: b" = A\0 = \n\nText\0 .\n", {"written": 1}),
    ("nul.tar", lambda: tarred(("a.txt", b"\0a b\0")), {"written": 1}),
    (
        "nul.parquet",
        lambda: parquet(pa.table({"text": ["\0", "\0a\0b"], "title": ["a", "\0a\0"]})),
        {"written": 1, "no_text": 1},
    ),
    ("nul.ndjson", html_lines("<p>a\0b&#0;</p>", name="T\0"), {"written": 2}),
    (
        "nul.jsonl",
        lambda: b'{"text": "a\\u0000b \\ud800", "title": "\\u0000a"}\n{"text": "\0"}\n',
        {"written": 1, "bad_record": 1},
    ),
    ("nul.xml", lambda: dump(b"a\0b", b"&#0;", b"&amp;#0;b"), {"bad_xml": 2, "written": 1}),
    ("surrogate.xml", lambda: dump(b"&#xD800;", b"\xed\xa0\x80"), {"bad_xml": 1, "bad_utf8": 1}),
    ("empty.txt", lambda: b"", "is empty"),
    ("empty.txt.gz", lambda: gzip.compress(b""), {"empty_file": 1}),
]

ENTITIES = [
    (
        "laughs.xml",
        lambda: b'<!DOCTYPE mediawiki [<!ENTITY a "lol"><!ENTITY b "&a;&a;">]>' + dump(b"&b;"),
        "is of no known format",
    ),
    (
        "inside.xml",
        lambda: dump(b'<!DOCTYPE p [<!ENTITY a SYSTEM "file:///etc/passwd">]>&a;', b"Fine."),
        {"bad_xml": 1, "written": 1},
    ),
    ("undefined.xml", lambda: dump(b"root &a;", b"Fine."), {"bad_xml": 1, "written": 1}),
    (
        "siteinfo.xml",
        lambda: dump(b"A.").replace(b"<dbname>", b'<!DOCTYPE s [<!ENTITY a "x">]><dbname>&a;'),
        {"bad_xml": 1},
    ),
    ("base.xml", lambda: dump(b"A.").replace(b"https://en", b"https://["), {"bad_xml": 1}),
    (
        "include.xml",
        lambda: dump(b'A. <xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///etc/passwd"/>'),
        {"written": 1},
    ),
]

HTML_PAGES = [
    ("long.ndjson", html_lines("x" * 25 * MB), {"page_too_large": 1, "written": 1}),
    ("whole.ndjson", html_lines("<p>" + "word " * 3_500_000), {"page_too_large": 1, "written": 1}),
    ("wide.ndjson", html_lines("<p>\U0001d518" + "word " * 700_000 + "<!--" + "a" * 15 * MB), {"written": 2}),
    ("tags.ndjson", html_lines("<b>" * 1_100_000), {"too_many_nodes": 1, "written": 1}),
    ("deep.ndjson", html_lines("<div>" * 200_000), {"too_deep": 1, "written": 1}),
    ("table.ndjson", html_lines("<table>" * 200_000), {"too_deep": 1, "written": 1}),
    ("links.ndjson", html_lines("<a href='/wiki/A'>a</a> " * 200_000), {"written": 2}),
    ("attributes.ndjson", html_lines("<p " + "a='b' " * 2_000_000 + ">A."), {"written": 2}),
    ("attribute.ndjson", html_lines("<p class='" + "a " * 5 * MB + "'>A."), {"written": 2}),
    ("classes.ndjson", html_lines("".join(f"<p class='{n}{'a' * 150}'>A" for n in range(90_000))), {"written": 2}),
    ("entities.ndjson", html_lines("<p>" + "&#" + "1" * 2 * MB + ";" + "&amp;" * MB), {"written": 2}),
    ("templates.ndjson", html_lines("A.", templates=[{"name": "disambig" * 200}] * 2_000), {"written": 2}),
    ("redirects.ndjson", html_lines("A.", redirects=[{"name": f"R{n}"} for n in range(200_000)]), {"written": 2}),
    ("fields.ndjson", html_lines("A.", url="x" * 9 * MB, license=[{"name": "y" * 9 * MB}]), {"written": 2}),
    ("names.ndjson", html_lines("A.", main_entity={"identifier": "Q" + "1" * 9 * MB}), {"written": 2}),
    (
        "values.ndjson",
        lambda: b'{"article_body": {"html": "' + b'"}, "b": [' + b"[]," * 6 * MB + b"[]]}\n" + lines_of_json(FINE),
        {"record_too_large": 1, "written": 1},
    ),
    (
        "lines.tar.gz",
        lambda: gzip.compress(tarred(("a.ndjson", lines_of_json(FINE, html_page("x" * 200 * MB)))), 1),
        {"written": 1, "page_too_large": 1},
    ),
    (
        "claims.tar",
        lambda: header(b"a.ndjson", 1 << 62) + lines_of_json(FINE),
        {"written": 1, "truncated": 1},
    ),
    (
        "holes.tar",
        lambda: tarred(("a.ndjson", lines_of_json(FINE)))[:1024] + header(b"b.ndjson", 0, b"S") + bytes(1024),
        {"written": 1, "not_a_text_file": 1},
    ),
]

ROWS = [
    *((name, make, DEFAULT, outcome) for name, make, outcome in [*LONG, *NESTED, *ENCODINGS, *ENTITIES, *HTML_PAGES]),
    *((name, make, SMALL, outcome) for name, make, outcome in [*BOMBS, *ARCHIVES, *PARQUETS, *TEXTS]),
]


@pytest.mark.heavy  # a process for each: a minute in total
@pytest.mark.parametrize(("name", "make", "options", "outcome"), ROWS, ids=[row[0] for row in ROWS])
def test_hostile(
    tmp_path: Path,
    extracted: Extracted,
    name: str,
    make: Callable[[], bytes],
    options: ReadOptions,
    outcome: dict[str, int] | str,
) -> None:
    (tmp_path / name).write_bytes(make())
    result = extracted(tmp_path / name, options)
    if isinstance(outcome, str) and not result.error:
        reject = _rejects(tmp_path / "out")
        assert outcome in reject[0]["exception"], result
    elif isinstance(outcome, str):
        assert outcome in result.error
        assert name in result.error
    else:
        assert result.error == ""
        assert result.counts == outcome
    for document in result.documents:
        assert "root:" not in document["text"]
        json.dumps(document).encode()
        assert "\0" not in document["text"] + document["doc_id"] + document["title"]
    assert result.peak < MEMORY, f"{result.peak >> 20} MiB"


def _rejects(output: Path) -> list[dict[str, Any]]:
    found = sorted(output.rglob("*.rejects.parquet"))
    return [row for path in found for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize(
    ("name", "beginning", "outcome"),  # of ten gigabytes, or of less if all of it is read
    [
        ("a.jsonl", lines_of_json(ONE), {"written": 1, "record_too_large": 1}),
        ("a.txt", b"x" * 70_000, {"document_too_large": 1}),
        ("a.xml", HEAD + page(b"A.") + b"<page>", {"written": 1, "truncated": 2}),
        ("a.tokens", b" = A = \n\nText .\n", {"record_too_large": 1}),
        ("a.tar", tarred(("a.txt", b"One."))[:1024], {"written": 1}),
        ("a.zip", zipped(("a.txt", b"One.")), {"truncated": 1}),
        ("a.parquet", parquet(pa.table({"text": ["a"]})), {"corrupt": 1}),
        ("a.txt.gz", gzip.compress(b"One.", mtime=0), {"written": 1}),
    ],
)
def test_a_file_of_zeros(
    tmp_path: Path, extracted: Extracted, name: str, beginning: bytes, outcome: dict[str, int]
) -> None:
    read_whole = name.endswith((".jsonl", ".xml", ".tokens", ".tar", ".gz"))
    sparse(tmp_path / name, beginning, 500 * MB if read_whole else 10 << 30)
    result = extracted(tmp_path / name)
    assert (result.error, result.counts) == ("", outcome)
    assert result.peak < MEMORY


HOSTILE_NAMES = [
    "../../up.txt",
    "/etc/abs.txt",
    "a/../../b.txt",
    "c\\..\\d.txt",
    "n\nl.txt",
    "same.txt",
    "same.txt",
    "~2.txt",
]


@pytest.mark.parametrize("packed", ["tar", "pax", "zip"])
def test_names_in_archives_are_only_names(tmp_path: Path, extracted: Extracted, packed: str) -> None:
    members = [(name, b"Text of %d." % number) for number, name in enumerate(HOSTILE_NAMES)]
    if packed == "zip":
        data = zipped(*members)
    else:
        links = [("l.txt", (tarfile.SYMTYPE, "/etc/passwd")), ("h.txt", (tarfile.LNKTYPE, "../../up.txt"))]
        devices = [("d.txt", (tarfile.CHRTYPE, "")), ("f.txt", (tarfile.FIFOTYPE, ""))]
        data = tarred(*members, *links, *devices, format=tarfile.PAX_FORMAT if packed == "pax" else tarfile.GNU_FORMAT)
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "a.bin").write_bytes(data)
    result = extracted(inside / "a.bin")
    assert result.counts == {"written": 8} | ({} if packed == "zip" else {"not_a_text_file": 4})
    assert [document["doc_id"].removeprefix("a.bin:") for document in result.documents] == [
        "../../up.txt", "/etc/abs.txt", "../b.txt", "c\\..\\d.txt", "n\ufffdl.txt", "same.txt", "same.txt~2", "~2.txt"
    ]  # fmt: skip
    assert [document["text"] for document in result.documents] == [f"Text of {number}." for number in range(8)]
    written = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {"in", "out"}
    assert not list((tmp_path / "out").rglob("*.txt"))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"One.\rTwo.\r\rThree.", "One.\nTwo.\n\nThree."),
        ("One.\u2028Two.\u2029Three.".encode(), "One.\nTwo.\nThree."),
        ("One.\u0085Two.".encode(), "One....Two."),  # read as Windows-1252, which it nearly always is
        (b"One.\r\r\nTwo.\x0b\x0cThree.", "One.\nTwo.\n\nThree."),
        (b"\xef\xbb\xbfOne.\xef\xbb\xbf", "One."),
    ],
)
def test_unusual_ends_of_lines(tmp_path: Path, extracted: Extracted, data: bytes, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    assert [document["text"] for document in extracted(tmp_path / "a.txt").documents] == [text]


def test_names_of_files(tmp_path: Path, extracted: Extracted) -> None:
    """Any name that a file can have: one that is not UTF-8 ends the run with a message."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("new\nline.txt", "\x1b[31m.txt", "a'b\".txt", "%00.txt"):
        (folder / name).write_bytes(b"Text.")
    assert extracted(folder).counts == {"written": 4}
    try:
        Path(os.fsdecode(os.fsencode(str(folder)) + b"/caf\xe9.txt")).write_bytes(b"Text.")
    except OSError:
        return  # some file systems refuse it
    result = extracted(folder)
    assert result.error or result.counts["written"] == 5
