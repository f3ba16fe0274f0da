"""Archives: real tar and zip files in every compression, hostile names and sizes, and damage on real bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import zstandard
from pyarrow import fs

from transforms.sources.archives import ARCHIVE, NOT_TEXT
from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Corrupt, Document, Filtered, Item, Rejected
from transforms.sources.options import ReadOptions

LOCAL = fs.LocalFileSystem()

LONG = "books/" + "x" * 150 + ".txt"
MEMBERS = {
    "books/one.txt": b"The first book.\n" * 100,
    LONG: "Café.\n".encode() * 300,
    "../../etc/two.txt": b"Second.\n" * 2_000,
    "cover.png": b"\x89PNG",
    "books/._one.txt": b"\x00\x05\x16",
    "books/last.txt": b"The last.",
}
TEXTS = [name for name in MEMBERS if name.endswith(".txt") and "._" not in name]
PACKED = {
    "a.tar": bytes,
    "a.tar.gz": gzip.compress,
    "a.tgz": gzip.compress,
    "a.tar.bz2": bz2.compress,
    "a.tar.zst": zstandard.ZstdCompressor().compress,
}


def tar(members: dict[str, bytes] = MEMBERS, *, format: int = tarfile.GNU_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        folder = tarfile.TarInfo("books")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zipped(members: dict[str, bytes] = MEMBERS) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("books") if hasattr(archive, "mkdir") else None
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def read(folder: Path, name: str, data: bytes, *, options: ReadOptions | None = None) -> list[Item]:
    path = folder / name
    path.write_bytes(data)
    file = InputFile(str(path), name, len(data))
    assert ARCHIVE.split(LOCAL, file, target_bytes=10) == [Segment(0, len(data))]
    return list(ARCHIVE.read(LOCAL, file, Segment(0, len(data)), options=options or ReadOptions()))


@pytest.mark.parametrize("name", [*PACKED, "pax.tar", "a.zip"])
def test_members_in_order(tmp_path: Path, name: str) -> None:
    if name == "a.zip":
        data = zipped()
    elif name == "pax.tar":
        data = tar(format=tarfile.PAX_FORMAT)
    else:
        data = PACKED[name](tar())
    items = read(tmp_path, name, data)
    documents = [item for item in items if isinstance(item, Document)]
    assert [item.doc_id for item in documents] == [f"{name}:{member}" for member in TEXTS]
    assert [item.text for item in documents] == [MEMBERS[member].decode().strip() for member in TEXTS]
    assert {item.source for item in documents} == {name}
    assert [item for item in items if not isinstance(item, Document)] == [Filtered(NOT_TEXT)] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]
    assert ARCHIVE.recognises(name, data if name == "a.zip" else tar())


def test_links_and_repeated_names(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in [("a.txt", b"one"), ("./a.txt", b"two")]:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    items = read(tmp_path, "a.tar", out.getvalue())
    assert [item.doc_id for item in items if isinstance(item, Document)] == ["a.tar:a.txt", "a.tar:a.txt~2"]
    assert items[2:] == [Filtered(NOT_TEXT)]


def test_a_bad_member_costs_only_itself(tmp_path: Path) -> None:
    members = {"a.txt": b"one", "bad.txt": b"caf\xe9", "empty.txt": b"", "b.txt": b"two"}
    for name, data in {"a.tar": tar(members), "a.zip": zipped(members)}.items():
        one, bad, empty, two = read(tmp_path, name, data)
        assert isinstance(one, Document)
        assert isinstance(two, Document)
        assert empty == Filtered("no_text")
        assert isinstance(bad, Corrupt)
        assert bad.reason == "bad_utf8"
        assert "member 'bad.txt'" in bad.message
        assert name in bad.message


def test_large_members_and_bombs(tmp_path: Path) -> None:
    members = {"bomb.txt": b"a" * 80_000_000, "small.txt": b"fine"}
    options = ReadOptions(max_document_bytes=1_000_000)
    packed = {"a.zip": zipped(members), "a.tar.gz": gzip.compress(tar(members))}
    for name, data in packed.items():
        tracemalloc.start()
        bomb, small = read(tmp_path, name, data, options=options)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert isinstance(bomb, Rejected)
        assert bomb.reason == "record_too_large"
        assert "bomb.txt" in bomb.position
        assert isinstance(small, Document)
        assert peak < 10_000_000


TAR = tar()
ZIP = zipped()
GZ = gzip.compress(TAR)
BZ2 = bz2.compress(TAR)


@pytest.mark.parametrize(
    ("name", "data", "reason", "byte"),
    [
        ("a.tar", b"", "empty_file", 0),
        ("a.tar", TAR[: len(TAR) // 2], "truncated", len(TAR) // 2),
        ("a.tar", TAR.rstrip(b"\0"), "truncated", None),
        ("a.tar", TAR[: 512 * 5], "truncated", 512 * 5),  # at the end of a member: only the end mark is missing
        ("a.tar", TAR.replace(b"cover.png", b"cover.txt"), "corrupt", None),  # the header's checksum
        ("a.tar.gz", GZ[:-4], "truncated", len(GZ) - 4),  # after the tar archive's own end
        ("a.tar.gz", GZ[:200], "truncated", 200),
        ("a.tar.gz", GZ[:-6] + b"\0" + GZ[-5:], "corrupt", None),  # the checksum
        ("a.tar.bz2", BZ2[:-4], "truncated", len(BZ2) - 4),
        ("a.tar.gz", b"not gzip \0\1\2" * 10, "corrupt", 0),
        ("a.zip", ZIP[: len(ZIP) // 2], "truncated", len(ZIP) // 2),
        ("a.zip", b"not a zip file", "truncated", 14),
        ("a.zip", ZIP[:-30], "truncated", len(ZIP) - 30),
    ],
)
def test_damage(tmp_path: Path, name: str, data: bytes, reason: str, byte: int | None) -> None:
    items = read(tmp_path, name, data)
    bad = [item for item in items if isinstance(item, Corrupt)]
    assert len(bad) == 1
    assert bad[0].reason == reason
    assert byte in (None, bad[0].byte)
    assert name in bad[0].message
    assert bad[0] is items[-1]


def test_bad_checksum_in_a_zip(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a.txt", "one sentence")
        archive.writestr("b.txt", "two")
    bad, good = read(tmp_path, "a.zip", out.getvalue().replace(b"one sentence", b"one sentance"))
    assert isinstance(bad, Corrupt)
    assert bad.reason == "corrupt"
    assert "CRC" in bad.message
    assert isinstance(good, Document)


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    whole = tar({"a.txt": b"x" * 700, "b.txt": b"y" * 10})
    used = len(whole.rstrip(b"\0"))
    for cut in range(1, used + 500, 97):
        items = read(tmp_path, "a.tar", whole[:cut])
        assert any(isinstance(item, Corrupt) for item in items), cut


def test_any_flipped_byte_ends_in_items(tmp_path: Path) -> None:
    for name, data in {"a.tar": TAR, "a.zip": ZIP}.items():
        for position in range(0, len(data), max(1, len(data) // 150)):
            flipped = data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]
            read(tmp_path, name, flipped)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_of_zip(tmp_path: Path, method: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("a.txt", "A line.\n" * 50_000)
    (item,) = read(tmp_path, "a.zip", out.getvalue())
    assert isinstance(item, Document)
    assert item.text == ("A line.\n" * 50_000).strip()


def test_a_member_before_the_beginning_of_the_file(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", "x")
    (bad,) = read(tmp_path, "a.zip", out.getvalue()[1:])
    assert isinstance(bad, Corrupt)
    assert bad.byte == 0


def test_a_member_without_a_name(tmp_path: Path) -> None:
    data = zipped({"a.txt": b"x"}).replace(b"a.txt", b"\0.txt")  # a name ends at a NUL
    assert read(tmp_path, "a.zip", data) == [Filtered(NOT_TEXT)]
