"""Parquet: columns, row groups as segments, and damage on real bytes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from transforms.sources.formats import InputFile
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


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (
            pa.table({"id": [1], "content": ["x"]}),
            "has no column 'text'; name its text with --text-column (it has 'id', 'content')",
        ),
        (pa.table({"text": [1]}), "holds int64, not text, in its column 'text'"),
        (pa.table({}), "has no columns"),
    ],
)
def test_missing_column(tmp_path: Path, table: pa.Table, says: str) -> None:
    pq.write_table(table, tmp_path / "a.parquet")
    (item,) = read(tmp_path / "a.parquet")
    assert isinstance(item, Corrupt)
    assert item.reason == "bad_record"
    assert says in item.message


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
    for position in range(len(data) - 8 - length, len(data), 151):
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
