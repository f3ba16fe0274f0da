"""Parquet: columns, row groups as segments, and damage on real bytes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Corrupt, Document, Filtered, Item, Rejected
from transforms.sources.options import ReadOptions
from transforms.sources.parquet import PARQUET

LOCAL = fs.LocalFileSystem()
ROWS = 500


def wiki() -> pa.Table:
    return pa.table(
        {
            "id": [str(i) for i in range(ROWS)],
            "url": [f"https://en.wikipedia.org/wiki/{i}" for i in range(ROWS)],
            "title": [f"Title {i}" for i in range(ROWS)],
            "text": [f"Article {i} " + "about something. " * (i % 50) for i in range(ROWS)],
        }
    )


def read(path: Path, *, target_bytes: int = 1 << 30, options: ReadOptions | None = None) -> list[Item]:
    file = InputFile(str(path), path.name, path.stat().st_size)
    segments = PARQUET.split(LOCAL, file, target_bytes=target_bytes)
    assert [segments[0].start, segments[-1].end] == [0, file.size]
    assert all(one.end == two.start for one, two in pairwise(segments))
    return [item for each in segments for item in PARQUET.read(LOCAL, file, each, options=options or ReadOptions())]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "train-00000-of-00001.parquet"
    pq.write_table(wiki(), path, row_group_size=64, write_page_checksum=True)
    return path


@pytest.mark.parametrize("target_bytes", [1, 5_000, 1 << 30])
def test_rows_are_documents_however_split(path: Path, target_bytes: int) -> None:
    items = read(path, target_bytes=target_bytes)
    assert len(items) == ROWS
    assert items[70] == Document(
        doc_id="train-00000-of-00001.parquet:70",
        source="train-00000-of-00001.parquet",
        title="Title 70",
        url="https://en.wikipedia.org/wiki/70",
        licence="unknown",
        text=("Article 70 " + "about something. " * 20).strip(),
    )


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, " "], pa.large_string()),
        pa.array(["a", None, " "]).dictionary_encode(),
        pa.array(["a", None, " "], pa.string_view()),
    ],
)
def test_kinds_of_text(tmp_path: Path, column: pa.Array) -> None:
    path = tmp_path / "a.parquet"
    try:
        pq.write_table(pa.table({"body": column}), path)
    except pa.ArrowNotImplementedError as error:
        pytest.skip(str(error))
    items = read(path, options=ReadOptions(text_column="body"))
    assert items == [Document("a.parquet:0", "a.parquet", "", "", "unknown", "a")] + [Filtered("no_text")] * 2


WRITE = "write its text as a string in 'text', or pass --on-corrupt=skip"


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (
            pa.table({"id": [1], "content": ["x"]}),
            "has no column 'text'; name its text with --text-column (it has 'content'), or pass --on-corrupt=skip",
        ),
        (pa.table({}), f"has no column 'text'; {WRITE}"),
        (pa.table({"text": [1]}), f"holds int64, not text, in its column 'text'; {WRITE}"),
        (pa.table({"text": [None]}), f"holds null, not text, in its column 'text'; {WRITE}"),
        (pa.table({"text": [b"a"]}), f"holds binary, not text, in its column 'text'; {WRITE}"),
        (
            pa.table({"text": [["a"]], "id": [1]}),
            f"holds list<element: string>, not text, in its column 'text'; {WRITE}",
        ),
        (pa.table({"text": [{"a": "b"}]}), f"holds struct<a: string>, not text, in its column 'text'; {WRITE}"),
        (pa.table([["a"], ["b"]], ["text", "text"]), f"has 2 times the column 'text'; {WRITE}"),
    ],
)
def test_no_column_with_text(tmp_path: Path, table: pa.Table, says: str) -> None:
    """One item for a file, however many segments it has."""
    pq.write_table(pa.concat_tables([table] * 6), tmp_path / "a.parquet", row_group_size=2)
    assert read(tmp_path / "a.parquet", target_bytes=1) == [
        Corrupt("bad_record", 0, f"{str(tmp_path / 'a.parquet')!r} {says}")
    ]


@pytest.mark.parametrize(
    ("options", "kind", "most"),  # bytes that Arrow has at once
    [
        ({}, pa.string(), 8 << 20),  # at first a dictionary, then pages with their own values, as writers do
        ({"use_dictionary": False, "data_page_version": "2.0"}, pa.large_string(), 24 << 20),
        ({"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}, pa.string(), 40 << 20),
    ],
)
def test_memory_does_not_depend_on_the_size_of_a_row_group(
    tmp_path: Path, options: dict[str, Any], kind: pa.DataType, most: int
) -> None:
    random = Random(0)
    texts = [random.randbytes(20_000).hex() for _ in range(1_500)]
    if "column_encoding" in options:  # what texts have in common with the one before is in a page only once
        texts = [texts[0] + str(number) for number in range(1_500)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": pa.array(texts, kind)}), path, write_batch_size=8, **options)
    file = InputFile(str(path), path.name, path.stat().st_size)
    assert pq.read_metadata(path).num_row_groups == 1
    found, before = [], pa.total_allocated_bytes()
    for item in PARQUET.read(LOCAL, file, Segment(0, file.size), options=ReadOptions(max_document_bytes=9)):
        found.append(item)
        assert pa.total_allocated_bytes() - before < most
    assert [each.position for each in found if isinstance(each, Rejected)] == [f"row {n}" for n in range(1_500)]
    first = next(PARQUET.read(LOCAL, file, Segment(0, file.size), options=ReadOptions()))
    assert isinstance(first, Document)
    assert first.text == texts[0]


@pytest.mark.parametrize(("page", "limit"), [(65 << 20, 67_108_864), (90 << 20, 80_000_000)])
def test_a_page_that_is_too_large(tmp_path: Path, page: int, limit: int) -> None:
    table = pa.table({"text": ["x" * page]})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", use_dictionary=False, write_statistics=False)
    (item,) = read(tmp_path / "a.parquet", options=ReadOptions(max_document_bytes=max(limit // 8, 1)))
    assert isinstance(item, Corrupt)
    assert item.message == (
        f"{str(tmp_path / 'a.parquet')!r} has a page of {page + 10:,} bytes in the row group at byte 0, more than "
        f"{limit:,}; write smaller pages, raise --max-document-bytes (to {-(-(page + 10) // 8):,}) or pass "
        "--on-corrupt=skip"
    )


def test_too_large(path: Path) -> None:
    items = read(path, options=ReadOptions(max_document_bytes=400))
    assert len(items) == ROWS
    large = [item for item in items if isinstance(item, Rejected)]
    assert large[0].reason == "record_too_large"
    assert large[0].position == "row 23"


def test_no_rows(tmp_path: Path) -> None:
    pq.write_table(wiki().slice(0, 0), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == []


def test_a_damaged_row_group_costs_only_itself(path: Path) -> None:
    metadata = pq.read_metadata(path)
    chunk = metadata.row_group(3).column(3)
    data = bytearray(path.read_bytes())
    middle = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size // 2
    data[middle : middle + 8] = b"\xff" * 8
    path.write_bytes(data)
    items = read(path)
    (bad,) = [item for item in items if isinstance(item, Corrupt)]
    assert bad.reason == "corrupt"
    assert "row group 3" in bad.message
    assert len([item for item in items if isinstance(item, Document)]) >= ROWS - 64
    assert items[-1] == read(path)[-1]


@pytest.mark.parametrize("cut", [0, 4, 1_000, -1, -100])
def test_truncated(path: Path, cut: int) -> None:
    path.write_bytes(path.read_bytes()[:cut])
    (item,) = read(path)
    assert isinstance(item, Corrupt)
    assert item.reason == ("corrupt" if cut else "empty_file")
    assert path.name in item.message


def test_damage_anywhere_in_the_footer_ends_in_an_item(path: Path) -> None:
    data = path.read_bytes()
    good = read(path)
    length = int.from_bytes(data[-8:-4], "little")
    for position in range(len(data) - 8 - length, len(data), 307):
        path.write_bytes(data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :])
        items = read(path)
        assert items == good or len(items) <= ROWS
        assert all(isinstance(item, (Document, Corrupt, Filtered, Rejected)) for item in items)


def test_invalid_utf8_in_a_row(tmp_path: Path) -> None:
    texts = pa.array([b"good", b"bad \xff", b"also good"]).view(pa.string())
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    items = read(tmp_path / "a.parquet")
    assert [type(item) for item in items] == [Document, Corrupt, Document]
    assert isinstance(items[1], Corrupt)
    assert items[1].reason == "bad_utf8"
    assert "row 1" in items[1].message


def test_recognises() -> None:
    assert PARQUET.recognises("x", b"PAR1....")
    assert PARQUET.recognises("x.parquet", b"")
    assert not PARQUET.recognises("x.parquet", b"text")
