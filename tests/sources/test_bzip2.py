"""bzip2 by blocks: every block is found and read alone, at any bit; nothing else is taken for a block."""

from __future__ import annotations

import bz2
import itertools
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from pyarrow import fs

from transforms.sources import streams
from transforms.sources.bzip2 import Mark, NotABlock, find_marks, is_cut_block, read_block
from transforms.sources.streams import Damaged, chunks

LOCAL = fs.LocalFileSystem()
BLOCK_MAGIC, END_MAGIC = 0x314159265359, 0x177245385090
NOISE = random.Random(0).randbytes(450_000)
STORED = bz2.compress(NOISE, 1)  # blocks of 100 kB; only the first begins at the beginning of a byte


def read(path: str, **kwargs: int) -> bytes:
    return b"".join(data for _, data in chunks(LOCAL, path, **kwargs))


def bits(*fields: tuple[int, int]) -> bytes:
    """Values with their numbers of bits, one after the other, then zeros up to a whole byte."""
    number = length = 0
    for value, size in fields:
        number, length = number << size | value, length + size
    return (number << -length % 8).to_bytes(-(-length // 8), "big")


# ---- Marks


@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("before", [0, 1, 2])
def test_marks_at_any_bit(offset: int, before: int) -> None:
    first, second = 8 * before + offset, 8 * before + offset + 48 + 3
    data = bits((0, first), (BLOCK_MAGIC, 48), (0, 3), (END_MAGIC, 48), (0, 16))
    assert find_marks(data) == [Mark(first, False), Mark(second, True)]


@given(data=st.binary(max_size=60), at=st.integers(0, 400), is_end=st.booleans())
def test_marks_are_where_the_bits_are(data: bytes, at: int, is_end: bool) -> None:
    number = int.from_bytes(data, "big")
    length = 8 * len(data)
    at = min(at, length)
    magic = END_MAGIC if is_end else BLOCK_MAGIC
    marked = bits(
        (number >> (length - at), at), (magic, 48), (number & ((1 << (length - at)) - 1), length - at), (0, 8)
    )
    assert Mark(at, is_end) in find_marks(marked)


@pytest.mark.parametrize("data", [b"", b"1", b"1AY&S", b"BZh91AY&S", bits((1, 3), (BLOCK_MAGIC, 48))[:-1], bytes(1000)])
def test_no_marks(data: bytes) -> None:
    assert find_marks(data) == []


# ---- Blocks


def test_each_block_alone() -> None:
    marks = find_marks(STORED)
    assert [mark.is_end for mark in marks] == [False] * 5 + [True]
    assert len({mark.bit % 8 for mark in marks}) > 2
    blocks = [read_block(STORED, mark.bit, end.bit) for mark, end in itertools.pairwise(marks)]
    assert b"".join(blocks) == NOISE
    assert [len(block) // 1000 for block in blocks] == [99, 99, 99, 99, 50]


def test_what_is_no_block() -> None:
    first, second, third, *_ = (mark.bit for mark in find_marks(STORED))
    for begin, end in ((first, second - 1), (first, second + 1), (first + 1, second), (first, third)):
        with pytest.raises(NotABlock):
            read_block(STORED, begin, end)
    damaged = bytearray(STORED)
    damaged[(first + second) // 16] ^= 1
    with pytest.raises(NotABlock):
        read_block(bytes(damaged), first, second)


def test_cut_blocks() -> None:
    first, second, *_ = (mark.bit for mark in find_marks(STORED))
    for cut in (second // 8 - 50_000, second // 8, second // 8 + 5):
        assert is_cut_block(STORED[:cut], first)
    assert is_cut_block(STORED[: second // 8 + 100], second)
    assert not is_cut_block(STORED[: second // 8 - 100] + bytes(100_000), first)


# ---- Files


def streams_of(data: bytes, *, level: int, stream: int) -> bytes:
    return b"".join(bz2.compress(data[at : at + stream], level) for at in range(0, len(data), stream))


TEXT = " ".join(str(n * 7919 % 100_003) for n in range(90_000)).encode()
FORMS = {
    "one stream of small blocks": bz2.compress(TEXT, 1),
    "one stream of one block": bz2.compress(TEXT, 9),
    "many streams": streams_of(TEXT, level=9, stream=1_000),
    "streams of several blocks": streams_of(TEXT, level=1, stream=250_000),
    "levels mixed, streams without a block": b"".join(
        bz2.compress(TEXT[at : at + 60_000], 1 + at % 9) + bz2.compress(b"") for at in range(0, len(TEXT), 60_000)
    ),
}


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
@examples(8)
def test_ranges_give_every_block_once(tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject) -> None:
    stored = FORMS[form]
    path = tmp_path_factory.mktemp("ranges") / "a.bz2"
    path.write_bytes(stored)
    cuts = data.draw(st.lists(st.integers(0, len(stored)), max_size=8))
    ranges = list(itertools.pairwise([0, *sorted(cuts), len(stored)]))
    found = [each for a, b in ranges for each in chunks(LOCAL, str(path), start=a, end=b)]
    assert b"".join(piece for _, piece in found) == TEXT
    assert found == list(chunks(LOCAL, str(path)))


@pytest.mark.parametrize("block", [7, 8, 13, 64, 1000])
def test_marks_across_two_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    path = tmp_path / "a.bz2"
    path.write_bytes(streams_of(TEXT[:5_000], level=1, stream=700))
    monkeypatch.setattr(streams, "BLOCK", block)
    assert read(str(path)) == TEXT[:5_000]
    size = path.stat().st_size
    assert b"".join(read(str(path), start=at, end=min(at + 90, size)) for at in range(0, size, 90)) == TEXT[:5_000]


def looks_like_a_mark(magic: int) -> bytes:
    """A text whose block holds a magic number: a block lists which bytes occur, 16 bits for each 16 bytes."""
    words = magic.to_bytes(6, "big")
    used = [
        16 * group + place
        for group in range(3)
        for place in range(16)
        if int.from_bytes(words[2 * group : 2 * group + 2], "big") >> (15 - place) & 1
    ]
    order = random.Random(0)
    return b"".join(bytes(order.sample(used, len(used))) for _ in range(1_000))  # no byte four times in a row


@pytest.mark.parametrize("magic", [BLOCK_MAGIC, END_MAGIC])
@pytest.mark.parametrize("after", [b"", bz2.compress(TEXT[:1000]), b"noise"])
def test_false_mark_inside_a_block(tmp_path: Path, magic: int, after: bytes) -> None:
    """It neither ends its block nor is reported by a range that begins at it."""
    data = looks_like_a_mark(magic)
    stored = bz2.compress(data)
    marks = find_marks(stored)
    assert [mark.is_end for mark in marks] == [False, magic == END_MAGIC, True]
    path = tmp_path / "a.bz2"
    path.write_bytes(stored + after)
    false = marks[1].bit // 8
    end = len(stored) - 11
    assert read(str(path), start=0, end=end) == data
    assert read(str(path), start=0, end=false) == data
    assert read(str(path), start=5, end=end) == b""
    assert read(str(path), start=false, end=end) == b""
    assert read(str(path), start=false + 1, end=end) == b""


# ---- Damage


def faults(path: Path, cuts: list[int]) -> tuple[bytes, list[tuple[str, int]]]:
    """What can be read in ranges, continuing after all damage, and the damage."""
    found, told = b"", []
    for begin, end in itertools.pairwise([0, *cuts, path.stat().st_size]):
        at: int | None = begin
        while at is not None:
            try:
                for _, data in chunks(LOCAL, str(path), start=at, end=end):
                    found += data
                at = None
            except Damaged as damaged:
                told.append((damaged.reason, damaged.byte))
                at = damaged.resume
    return found, told


@pytest.mark.parametrize("cuts", [[], [20_000, 150_000, 250_000, 320_000], list(range(1_000, 450_000, 1_000))])
def test_a_damaged_block_damages_no_other(tmp_path: Path, cuts: list[int]) -> None:
    marks = [mark.bit // 8 for mark in find_marks(STORED)]
    blocks = [read_block(STORED, a.bit, b.bit) for a, b in itertools.pairwise(find_marks(STORED))]
    damaged = bytearray(STORED)
    damaged[(marks[1] + marks[2]) // 2] ^= 0x10
    path = tmp_path / "a.bz2"
    path.write_bytes(damaged)
    assert faults(path, cuts) == (b"".join([blocks[0], *blocks[2:]]), [("corrupt", marks[1])])


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (STORED[:-1], ("truncated", len(STORED) - 1)),
        (STORED[:-12], ("truncated", len(STORED) - 12)),
        (STORED[:-10_000], ("truncated", len(STORED) - 10_000)),
        (STORED + b"BZ", ("truncated", len(STORED) + 2)),
        (STORED + STORED[:9], ("truncated", len(STORED) + 9)),
        (STORED + b"BZh9 no magic here", ("corrupt", len(STORED))),
        (STORED + bytes(3_000_000), ("corrupt", len(STORED))),
        (STORED[:-8] + b"\xff" + STORED[-7:], ("corrupt", find_marks(STORED)[4].bit // 8)),
        (STORED[:-10_000] + bytes(10_000), ("corrupt", find_marks(STORED)[4].bit // 8)),
        (STORED[:-10_000] + bytes(3_000_000), ("corrupt", find_marks(STORED)[4].bit // 8)),
    ],
)
@pytest.mark.parametrize("cuts", [[], [100_000, 350_000], [454_000]])
def test_the_end_of_the_file(tmp_path: Path, stored: bytes, expected: tuple[str, int], cuts: list[int]) -> None:
    path = tmp_path / "a.bz2"
    path.write_bytes(stored)
    found, told = faults(path, [cut for cut in cuts if cut < len(stored)])
    assert told == [expected]
    assert NOISE.startswith(found)


@given(at=st.integers(10, len(FORMS["streams of several blocks"]) - 1), flip=st.integers(1, 255))
@examples(20)
def test_one_changed_byte_is_told_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, at: int, flip: int
) -> None:
    stored = bytearray(FORMS["streams of several blocks"])
    stored[at] ^= flip
    path = tmp_path_factory.mktemp("flip") / "a.bz2"
    path.write_bytes(stored)
    whole = faults(path, [])
    assert faults(path, [at]) == whole
    assert whole[0] == TEXT or whole[1]
    assert len(TEXT) - len(whole[0]) <= 200_000, "a mark belongs to two blocks"
