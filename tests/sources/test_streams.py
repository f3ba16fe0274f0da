"""Compressed files are read completely or raise: every codec, every cut, every range."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import itertools
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from pyarrow import fs

from transforms.sources.streams import Damaged, chunks, codec_of, read_head

LOCAL = fs.LocalFileSystem()
TEXT = "".join(f"line {i} of {i * 7919 % 1000}\n" for i in range(20_000)).encode()
SKIPPABLE_FRAME = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "bz2": bz2.compress,
    "gzip": gzip.compress,
    "zstd": zstd,
}
SUFFIX = {"none": "", "bz2": ".bz2", "gzip": ".gz", "zstd": ".zst"}


def write(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def read(path: str, **kwargs: int) -> bytes:
    return b"".join(data for _, data in chunks(LOCAL, path, **kwargs))


def read_on(path: str) -> tuple[bytes, list[Damaged]]:
    """What can be read, continuing after all damage that can be passed."""
    got, at = b"", 0
    faults: list[Damaged] = []
    while True:
        try:
            for _, data in chunks(LOCAL, path, start=at):
                got += data
            return got, faults
        except Damaged as damaged:
            faults.append(damaged)
            if damaged.resume is None:
                return got, faults
            at = damaged.resume


def multistream(data: bytes, size: int) -> tuple[bytes, list[int]]:
    """Streams of `size` bytes of data each, and where each begins."""
    stored, starts = b"", []
    for at in range(0, len(data), size):
        starts.append(len(stored))
        stored += bz2.compress(data[at : at + size])
    return stored, starts


@pytest.mark.parametrize("codec", COMPRESS)
def test_whole_file(tmp_path: Path, codec: str) -> None:
    compress = COMPRESS[codec]
    path = write(tmp_path, "a" + SUFFIX[codec], compress(TEXT))
    assert codec_of(path, Path(path).read_bytes()[:16]) == codec
    assert read(path) == TEXT
    assert read_head(LOCAL, path, 1000) == TEXT[:1000]


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("members.gz", gzip.compress(TEXT[:999]) + gzip.compress(b"") + gzip.compress(TEXT[999:])),
        ("padded.gz", gzip.compress(TEXT) + bytes(2000)),
        ("streams.bz2", bz2.compress(TEXT[:999]) + bz2.compress(b"") + bz2.compress(TEXT[999:])),
        ("frames.zst", zstd(TEXT[:999]) + SKIPPABLE_FRAME + zstd(b"") + zstd(TEXT[999:])),
        ("skippable-first.zst", SKIPPABLE_FRAME + zstd(TEXT)),
        ("no-suffix", gzip.compress(TEXT)),
    ],
)
def test_several_streams_in_one_file(tmp_path: Path, name: str, stored: bytes) -> None:
    assert read(write(tmp_path, name, stored)) == TEXT


def test_empty_file_is_empty(tmp_path: Path) -> None:
    path = write(tmp_path, "empty.bz2", b"")
    assert read(path) == b""
    assert read_head(LOCAL, path) == b""


@pytest.mark.parametrize("codec", ["bz2", "gzip", "zstd"])
@given(data=st.data())
@examples(60)
def test_cut_anywhere_is_truncated(tmp_path_factory: pytest.TempPathFactory, codec: str, data: st.DataObject) -> None:
    stored = COMPRESS[codec](TEXT[:5000])
    cut = data.draw(st.one_of(st.integers(4, 20), st.integers(20, len(stored) - 1)))
    path = write(tmp_path_factory.mktemp("cut"), "a" + SUFFIX[codec], stored[:cut])
    with pytest.raises(Damaged) as raised:
        read(path)
    assert (raised.value.reason, raised.value.byte) == ("truncated", cut)
    assert "a" + SUFFIX[codec] in raised.value.message
    assert f"byte {cut:,}" in raised.value.message
    assert "--on-corrupt=skip" in raised.value.message


@pytest.mark.parametrize("codec", ["bz2", "gzip", "zstd"])
@given(at=st.integers(4, 4000), flip=st.integers(1, 255))
@examples(60)
def test_flipped_byte_never_gives_other_bytes(
    tmp_path_factory: pytest.TempPathFactory, codec: str, at: int, flip: int
) -> None:
    stored = bytearray(COMPRESS[codec](TEXT[:20_000]))
    stored[at % len(stored)] ^= flip
    path = write(tmp_path_factory.mktemp("flip"), "a" + SUFFIX[codec], bytes(stored))
    with contextlib.suppress(Damaged):
        assert read(path) == TEXT[:20_000]  # gzip's header holds a time and flags that do not matter


@pytest.mark.parametrize("codec", ["bz2", "gzip", "zstd"])
def test_trailing_bytes(tmp_path: Path, codec: str) -> None:
    stored = COMPRESS[codec](TEXT)
    got, faults = read_on(write(tmp_path, "a", stored + b"<html>not found</html>"))
    assert got == TEXT
    assert [(fault.reason, fault.byte) for fault in faults] == [("corrupt", len(stored))]


def test_name_promises_what_the_bytes_do_not_keep() -> None:
    assert codec_of("dump.xml.bz2", b"<mediawiki xmlns=") == "none"  # decompressed on the way: the bytes decide
    with pytest.raises(Damaged, match="does not begin as bz2"):
        codec_of("dump.xml.bz2", b"\x00\x01\x02 noise noise")
    with pytest.raises(Damaged, match="ends inside the first gzip stream at byte 2"):
        codec_of("dump.xml.gz", b"\x1f\x8b")


@pytest.mark.parametrize("codec", ["bz2", "gzip", "zstd"])
def test_bomb_is_read_in_bounded_pieces(tmp_path: Path, codec: str) -> None:
    path = write(tmp_path, "bomb", COMPRESS[codec](bytes(100_000_000)))
    sizes = [len(data) for _, data in chunks(LOCAL, path)]
    assert sum(sizes) == 100_000_000
    assert max(sizes) <= 1 << 25


@given(cuts=st.lists(st.integers(0, 400_000), max_size=12), size=st.sampled_from([100, 3000, 50_000, 1_000_000]))
@examples(40)
def test_ranges_give_every_stream_once(tmp_path_factory: pytest.TempPathFactory, cuts: list[int], size: int) -> None:
    data = TEXT[:30_000]
    stored, _ = multistream(data, size)
    folder = tmp_path_factory.mktemp("ranges")
    for name, bytes_ in (("a.bz2", stored), ("a.txt", data), ("a.gz", gzip.compress(data)), ("a.zst", zstd(data))):
        path = write(folder, name, bytes_)
        bounds = [0, *sorted(min(cut, len(bytes_)) for cut in cuts), len(bytes_)]
        assert b"".join(read(path, start=a, end=b) for a, b in itertools.pairwise(bounds)) == data


def test_stream_belongs_to_the_range_its_first_block_begins_in(tmp_path: Path) -> None:
    stored, starts = multistream(TEXT, 50_000)
    path = write(tmp_path, "a.bz2", stored)
    blocks = [start + len(b"BZh9") for start in starts]
    assert read(path, start=blocks[2], end=blocks[2] + 1) == TEXT[100_000:150_000]
    assert read(path, start=blocks[2] + 1, end=blocks[3]) == b""
    assert read(path, start=blocks[1] + 1, end=blocks[3]) == TEXT[100_000:150_000]


def test_noise_between_streams(tmp_path: Path) -> None:
    noise = random.Random(0).randbytes(3000)
    stored = bz2.compress(TEXT)
    got, faults = read_on(write(tmp_path, "a.bz2", stored + noise + stored))
    assert got == 2 * TEXT
    assert [(fault.reason, fault.byte) for fault in faults] == [("corrupt", len(stored))]


@pytest.mark.parametrize("damage", ["overwrite", "cut the end", "cut the beginning"])
def test_reading_continues_after_a_damaged_stream(tmp_path: Path, damage: str) -> None:
    stored, starts = multistream(TEXT, 50_000)
    first, last = starts[2], starts[3]
    if damage == "overwrite":
        stored = stored[: first + 3000] + b"\xff" * 50 + stored[first + 3050 :]
    elif damage == "cut the end":
        stored = stored[: last - 100] + stored[last:]
    else:
        stored = stored[:first] + stored[first + 100 :]
    path = write(tmp_path, "a.bz2", stored)
    got, faults = read_on(path)
    assert len(faults) == 1
    assert got == TEXT[:100_000] + TEXT[150_000:]
