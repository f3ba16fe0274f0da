"""JSON lines: fields, segments, compression, and every kind of bad line."""

from __future__ import annotations

import bz2
import gzip
import json
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Corrupt, Document, Filtered, Item, Rejected
from transforms.sources.jsonlines import JSON_LINES
from transforms.sources.lines import lines
from transforms.sources.options import ReadOptions

LOCAL = fs.LocalFileSystem()
RECORDS = [{"text": f"Text {i}.", "title": f"T{i}"} for i in range(40)]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()


def read(path: Path, *, target_bytes: int = 1 << 30, options: ReadOptions | None = None) -> list[Item]:
    file = InputFile(str(path), path.name, path.stat().st_size)
    segments = JSON_LINES.split(LOCAL, file, target_bytes=target_bytes)
    assert [segments[0].start, segments[-1].end] == [0, file.size]
    assert all(one.end == two.start for one, two in pairwise(segments))
    return [item for each in segments for item in JSON_LINES.read(LOCAL, file, each, options=options or ReadOptions())]


def written(folder: Path, data: bytes, name: str = "a.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"text": "x"}, ("a.jsonl:0", "a.jsonl", "", "", "unknown")),
        (
            {"text": "x", "title": "A\u00a0title", "url": "https://a", "license": "CC0", "id": 7},
            ("a.jsonl:0", "a.jsonl", "A title", "https://a", "CC0"),
        ),
        (
            {"text": "x", "meta": {"pile_set_name": "Books3", "title": "In meta", "licence": "MIT"}},
            ("Books3:a.jsonl:0", "Books3", "In meta", "", "MIT"),
        ),
        ({"text": "x", "meta": "not an object", "title": None, "url": 5}, ("a.jsonl:0", "a.jsonl", "", "", "unknown")),
    ],
)
def test_provenance(tmp_path: Path, record: dict[str, object], expected: tuple[str, ...]) -> None:
    assert read(written(tmp_path, json.dumps(record).encode())) == [Document(*expected, text="x")]


def test_text_is_normalised_and_unwrapped(tmp_path: Path, test_data: Path) -> None:
    raw = (test_data / "corpora" / "books" / "gutenberg-1342-raw.txt").read_text(encoding="utf-8")
    (item,) = read(written(tmp_path, json.dumps({"text": raw}).encode()))
    assert isinstance(item, Document)
    assert item.title == "Pride and Prejudice"
    assert "a single man in possession of a good fortune, must be in want of a wife.\n" in item.text


PACKED = {
    "a.jsonl.gz": gzip.compress,
    "a.jsonl.bz2": bz2.compress,
    "a.jsonl.zst": zstandard.ZstdCompressor().compress,
    "a.json": bytes,
}


@pytest.mark.parametrize("name", PACKED)
def test_compression_changes_nothing_but_the_name(tmp_path: Path, name: str) -> None:
    items = read(written(tmp_path, PACKED[name](LINES), name), target_bytes=64)
    assert [item.doc_id for item in items if isinstance(item, Document)] == [
        f"{name}:{LINES.index(json.dumps(record).encode())}" for record in RECORDS
    ]
    assert [item.text for item in items if isinstance(item, Document)] == [record["text"] for record in RECORDS]


@given(
    st.lists(st.sampled_from([b"", b"x", b"line", b"a longer line of bytes", b"\r"]), max_size=30),
    st.booleans(),
    st.integers(1, 40),
)
def test_every_line_belongs_to_one_segment(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], ended: bool, step: int
) -> None:
    data = b"\n".join(parts) + (b"\n" if ended else b"")
    path = written(tmp_path_factory.getbasetemp(), data, "lines.txt")
    cut = []
    for start in range(0, len(data), step):
        for line in lines(LOCAL, str(path), start=start, limit=100):
            if line.start >= start + step:
                break
            cut.append(line)
    assert cut == list(lines(LOCAL, str(path), limit=100))
    assert [line.data for line in cut] == (data.removesuffix(b"\n").split(b"\n") if data else [])
    assert all(data[line.start :].startswith(line.data) and line.stored == line.start for line in cut)


@pytest.mark.parametrize("target_bytes", [1, 7, 64, 1_000])
def test_segments_do_not_change_items(tmp_path: Path, target_bytes: int) -> None:
    path = written(tmp_path, b"\xef\xbb\xbf" + LINES + b'{"text"' + b"\n\n" + LINES[:-1])
    assert read(path, target_bytes=target_bytes) == read(path)
    assert len(read(path)) == 81


NAME = "name its text with --text-column (it has 'body'), or pass --on-corrupt=skip"
WRITE = "write its text as a string in 'text', or pass --on-corrupt=skip"


@pytest.mark.parametrize(
    ("line", "reason", "byte", "says"),
    [
        (b'{"text": "caf\xe9"}', "bad_utf8", 13, "0xe9 at byte"),
        (b'{"text": "a" "b"}', "bad_record", 13, "is not JSON"),
        (b'{"text": "cut', "bad_record", 9, "is not JSON"),
        (b"[" * 100_000, "bad_record", 0, "is not JSON"),
        (
            b"[1, 2]",
            "bad_record",
            0,
            "is not a JSON object; write one object a line, with its text in 'text', or pass --on-c",
        ),
        (b'{"id": 1, "body": "a"}', "bad_record", 0, f"has no 'text'; {NAME}"),
        (b'{"id": 1, "b": null}', "bad_record", 0, f"has no 'text'; {WRITE}"),
        (b'{"text": 5, "body": "a"}', "bad_record", 0, f"holds a number, not text, in its field 'text'; {NAME}"),
        (b'{"text": 5.5}', "bad_record", 0, f"holds a number, not text, in its field 'text'; {WRITE}"),
        (b'{"text": ["a"]}', "bad_record", 0, f"holds a list, not text, in its field 'text'; {WRITE}"),
        (b'{"text": {"a": "b"}}', "bad_record", 0, f"holds an object, not text, in its field 'text'; {WRITE}"),
        (b'{"text": false}', "bad_record", 0, f"holds true or false, not text, in its field 'text'; {WRITE}"),
    ],
)
def test_bad_lines_are_reported_and_passed(tmp_path: Path, line: bytes, reason: str, byte: int, says: str) -> None:
    before = b'{"text": "one"}\n'
    items = read(written(tmp_path, before + line + b"\n" + b'{"text": "two"}'))
    assert [item.text for item in items if isinstance(item, Document)] == ["one", "two"]
    bad = items[1]
    assert isinstance(bad, Corrupt)
    assert (bad.reason, bad.byte) == (reason, len(before) + byte)
    assert says in bad.message
    assert "a.jsonl', the line at byte 16" in bad.message


def test_nothing_to_read(tmp_path: Path) -> None:
    assert read(written(tmp_path, b'{"text": null}\n{"text": " \\n "}\n\n')) == [Filtered("no_text")] * 2
    (item,) = read(written(tmp_path, b""))
    assert isinstance(item, Corrupt)
    assert item.reason == "empty_file"


def test_lone_surrogates_can_be_written(tmp_path: Path) -> None:
    (item,) = read(written(tmp_path, b'{"text": "a \\ud83d b", "title": "\\udc00"}'))
    assert isinstance(item, Document)
    assert (item.text, item.title) == ("a \ufffd b", "\ufffd")


def test_a_huge_line_takes_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.write(b'{"text": "')
        for _ in range(40):
            file.write(b"x" * 1_000_000)
        file.write(b'"}\n{"text": "small"}\n')
    tracemalloc.start()
    items = read(path, options=ReadOptions(max_document_bytes=2_000_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [type(item) for item in items] == [Rejected, Document]
    assert items[0] == items[0]._replace(reason="record_too_large", position="byte 0")
    assert peak < 12_000_000


@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_truncated_compression(tmp_path: Path, cut: float) -> None:
    packed = gzip.compress(LINES * 500)
    items = read(written(tmp_path, packed[: int(len(packed) * cut)], "a.jsonl.gz"))
    assert isinstance(items[-1], Corrupt)
    assert items[-1].reason == "truncated"
    assert all(isinstance(item, Document) for item in items[:-1])


@pytest.mark.parametrize(
    ("path", "head", "expected"),
    [
        ("a.jsonl", b'{"text": "x"}\n{', True),
        ("a.ndjson.zst", b'{"text": "' + b"x" * 1000, True),
        ("a.json", b'{\n  "text": "x"\n}\n', False),
        ("a.json", b"[\n{", False),
        ("a.jsonl", b'{"text": "x" oops}\n', True),
        ("a.jsonl", b"", True),
        ("a.txt", b'{"text": "x"}\n', False),
    ],
)
def test_recognises(path: str, head: bytes, expected: bool) -> None:
    assert JSON_LINES.recognises(path, head) is expected


def test_split_of_compressed_files(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(LINES), "a.jsonl.gz")
    size = path.stat().st_size
    file = InputFile(str(path), path.name, size)
    assert JSON_LINES.split(LOCAL, file, target_bytes=10) == [Segment(0, size)]


def test_bytes_of_faults_are_of_the_file_as_stored(tmp_path: Path) -> None:
    data = b'{"text": "' + b"a" * 500 + b'\xff"}\n{"text": "' + b"b" * 500
    for name, packed in {"a.jsonl": data, "a.jsonl.gz": gzip.compress(data)}.items():
        faults = [item for item in read(written(tmp_path, packed, name)) if isinstance(item, Corrupt)]
        assert [fault.byte for fault in faults] == ([510, 523] if name == "a.jsonl" else [0, 0])


def test_a_line_longer_than_segments_is_not_read_by_each(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"text": "' + b"x" * 5_000_000 + b'"}\n{"text": "two"}')
    assert [item.text[:3] for item in read(path, target_bytes=1_000) if isinstance(item, Document)] == ["xxx", "two"]


def test_a_title_that_is_none_is_left_out(tmp_path: Path) -> None:
    (item,) = read(written(tmp_path, json.dumps({"text": "a", "title": "x" * 2_001, "url": "https://a"}).encode()))
    assert isinstance(item, Document)
    assert (item.title, item.url) == ("", "https://a")
