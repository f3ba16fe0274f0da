"""Raw bytes of an input file, whole or not at all: decompressed in bounded memory, every defect an error.

Libraries that open compressed files tend to stop in silence where the file stops; here a file that ends inside a
stream, holds damaged data, or goes on with bytes that belong to no stream raises `Damaged`.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_left
from collections.abc import Generator, Iterator
from contextlib import suppress

import pyarrow as pa
import zstandard
from pyarrow import fs

from transforms.sources.bzip2 import (
    END_BITS,
    MARK_BYTES,
    MAX_BLOCK,
    Mark,
    NotABlock,
    find_marks,
    is_cut_block,
    read_block,
)

BLOCK = 1 << 20  # bytes asked of the filesystem at once
PIECE = 1 << 16  # bytes given to a decompressor at once: the resolution of offsets in damaged or compressed files
STEP = 1 << 20  # most bytes taken from a decompressor at once

# A stored zstd block is 4 bytes at least and gives 128 KiB at most: a piece this small cannot give more than 32 MiB.
ZSTD_PIECE = 1 << 10
ZSTD_WINDOW = 1 << 27  # bytes that are kept in memory; more only if asked for with zstd --long

MAGIC = {
    "bz2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    "zstd": re.compile(rb"(?:\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)", re.DOTALL),  # a frame or a skippable frame
}
SUFFIXES = {".bz2": "bz2", ".gz": "gzip", ".tgz": "gzip", ".zst": "zstd", ".zstd": "zstd"}

BZ2_START_BYTES = 10

REMEDY = "fetch it again or pass --on-corrupt=skip"


class Damaged(Exception):
    """An input file is not what it should be.

    `reason` is "truncated" (it ends inside a stream) or "corrupt" (a stream does not decompress, or bytes follow that
    begin no other). `byte` is the offset in the file as stored. `resume` is where `chunks`
    can look for more, None where nothing behind the damage can be read.
    """

    def __init__(self, path: str, reason: str, byte: int, what: str, *, resume: int | None = None) -> None:
        self.reason = reason
        self.byte = byte
        self.resume = resume
        self.message = f"{path!r} {what} at byte {byte:,}; {REMEDY}"
        super().__init__(self.message)


def codec_of(path: str, head: bytes) -> str:
    """The compression of a file that begins with `head`, its first bytes as stored: none, bz2, gzip or zstd.

    The bytes decide. The name counts only where they are neither compressed nor text: then the file is damaged.
    """
    for codec, magic in MAGIC.items():
        if magic.match(head):
            return codec
    named = next((codec for suffix, codec in SUFFIXES.items() if path.lower().endswith(suffix)), None)
    if named and head:
        if len(head) < BZ2_START_BYTES:
            raise Damaged(path, "truncated", len(head), f"ends inside the first {named} stream")
        if re.search(rb"[\x00-\x08\x0e-\x1f]", head[:PIECE]):
            raise Damaged(path, "corrupt", 0, f"does not begin as {named}, which its name promises,")
    return "none"


def chunks(
    filesystem: fs.FileSystem, path: str, *, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, bytes]]:
    """The decompressed bytes of what begins in [start, end) of a file, as (stored offset, some bytes).

    Plain files: exactly those bytes. bz2: the blocks whose first bit lies in the range, each of them to its end.
    gzip and zstd cannot be entered midway: all of it belongs to the range that begins at 0. The offset is where the
    bytes begin (plain), or the block (bz2) or the piece of compressed input that gave them; for the same file it does
    not depend on the range. Raises Damaged; what came before it is good.
    """
    with filesystem.open_input_file(path) as file:
        source = _Input(file)
        codec = codec_of(path, source.take(PIECE))
        limit = file.size() if end is None else min(end, file.size())
        if codec == "none":
            source.seek(start)
            while source.position < limit:
                offset = source.position
                yield offset, source.take(min(BLOCK, limit - offset))
        elif codec == "bz2":
            yield from _bz2_blocks(path, file, start, limit)
        elif start == 0 < limit:
            source.seek(0)
            stream = _gzip_member if codec == "gzip" else _zstd_frame
            while (yield from stream(path, source)):
                pass


def read_head(filesystem: fs.FileSystem, path: str, size: int = 1 << 16) -> bytes:
    """The first `size` decompressed bytes, fewer where the file ends or is damaged; Damaged if nothing can be read."""
    head = b""
    try:
        for _, data in chunks(filesystem, path):
            head += data[: size - len(head)]
            if len(head) >= size:
                break
    except Damaged:
        if not head:
            raise
    return head


class _Input:
    """A file read forwards in large blocks, with the last bytes taken put back where a stream ended before them."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._block = b""
        self._at = 0
        self.position = 0

    def seek(self, position: int) -> None:
        self._file.seek(position)
        self._block, self._at, self.position = b"", 0, position

    def take(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end of the file."""
        while len(self._block) - self._at < size:
            more = self._file.read(BLOCK)
            if not more:
                break
            self._block, self._at = self._block[self._at :] + more, 0
        taken = self._block[self._at : self._at + size]
        self._at += len(taken)
        self.position += len(taken)
        return taken

    def put_back(self, size: int) -> None:
        """At most what the last `take` gave."""
        self._at -= size
        self.position -= size

    def peek(self, size: int) -> bytes:
        taken = self.take(size)
        self.put_back(len(taken))
        return taken


class _Bz2File:
    """The marks of a bzip2 file from a byte on, and what lies between them; keeps the bytes of a few blocks."""

    def __init__(self, file: pa.NativeFile, start: int) -> None:
        self._file = file
        self._bytes = b""
        self._begin = start  # of these bytes in the file
        self._marks: list[Mark] = []  # in these bytes, by their bits in the file

    def mark(self, bit: int, *, before: int, keep: int | None = None) -> Mark | None:
        """The first mark at a bit of the file or behind it, if it begins before the byte `before`.

        Bytes before `keep`, or else all before the mark, will not be asked for again.
        """
        while (index := bisect_left(self._marks, (bit,))) == len(self._marks):
            end = self._begin + len(self._bytes)
            unsearched = end - MARK_BYTES + 1
            if unsearched >= before or not self._read_on(unsearched if keep is None else keep):
                return None
        return self._marks[index] if self._marks[index].bit < 8 * before else None

    def following(self, mark: Mark, block: Mark) -> Mark | None:
        """The next mark, if it is near enough to end the block at `block`."""
        return self.mark(mark.bit + 1, before=block.bit // 8 + MAX_BLOCK, keep=block.bit // 8)

    def preceding(self, mark: Mark) -> Mark | None:
        """The last beginning of a block that is near enough to reach beyond a mark behind it."""
        begin = max(0, mark.bit // 8 - MAX_BLOCK)
        bits = (8 * begin + each.bit for each in find_marks(self.read(begin, mark.bit // 8)) if not each.is_end)
        return max((Mark(bit, is_end=False) for bit in bits), default=None)

    def read(self, begin: int, end: int) -> bytes:
        """Bytes of the file."""
        if self._begin <= begin and end <= self._begin + len(self._bytes):
            return self._bytes[begin - self._begin : end - self._begin]
        return self._file.read_at(end - begin, begin)

    def block(self, mark: Mark, end: Mark) -> bytes:
        """What the block between two marks holds; raises NotABlock."""
        first = mark.bit // 8
        return read_block(self.read(first, -(-end.bit // 8)), mark.bit - 8 * first, end.bit - 8 * first)

    def _read_on(self, keep: int) -> bool:
        end = self._begin + len(self._bytes)
        more = self._file.read_at(BLOCK, end)
        overlap = self._bytes[1 - MARK_BYTES :]
        base = 8 * (end - len(overlap))
        kept = max(0, keep - self._begin)
        self._bytes = self._bytes[kept:] + more
        self._begin += kept
        known = self._marks[-1].bit if self._marks else -1  # may lie in the overlap as a whole
        found = [Mark(base + mark.bit, mark.is_end) for mark in find_marks(overlap + more) if base + mark.bit > known]
        self._marks = [mark for mark in self._marks if mark.bit >= 8 * self._begin] + found
        return bool(more)


def _bz2_blocks(path: str, file: pa.NativeFile, start: int, limit: int) -> Iterator[tuple[int, bytes]]:
    """The blocks whose first bit lies in the bytes [start, limit), each whole and its CRC checked.

    Whether a mark is one is told by the bytes around it alone, so all ranges agree: it is none if the mark before it
    begins a block that goes on to the mark behind it.
    """
    source = _Bz2File(file, start)
    size = file.size()
    mark = source.mark(8 * start, before=limit)
    while mark is not None:
        following = source.following(mark, mark)
        if mark.is_end:
            fault = _fault_behind_stream(path, source, mark, size)
        else:
            data, following, fault = _block(path, source, mark, following, size)
            for at in range(0, len(data), STEP):
                yield mark.bit // 8, data[at : at + STEP]
        if fault and not _lies_in_block(source, mark, following):
            raise fault
        mark = source.mark(following.bit if following else mark.bit + 1, before=limit)


def _block(
    path: str, source: _Bz2File, mark: Mark, end: Mark | None, size: int
) -> tuple[bytes, Mark | None, Damaged | None]:
    """What the block at a mark holds, the mark that ends it, and what is wrong with it."""
    byte = mark.bit // 8
    if end is None:
        rest = source.read(byte, min(byte + MAX_BLOCK, size))
        if byte + len(rest) == size and is_cut_block(rest, mark.bit - 8 * byte):
            return b"", None, Damaged(path, "truncated", size, "ends inside a bz2 stream")
        return b"", None, Damaged(path, "corrupt", byte, "holds a bz2 block that is damaged", resume=byte + 1)
    try:
        return source.block(mark, end), end, None
    except NotABlock as error:
        # The mark that seems to end it may be a part of its data.
        if (beyond := source.following(end, mark)) is not None:
            with suppress(NotABlock):
                return source.block(mark, beyond), beyond, None
        what = f"holds a bz2 block that is damaged ({error})"
        return b"", end, Damaged(path, "corrupt", byte, what, resume=byte + 1)


def _fault_behind_stream(path: str, source: _Bz2File, mark: Mark, size: int) -> Damaged | None:
    """What is wrong behind the end of a stream: another must begin there, or the file end."""
    behind = -(-(mark.bit + END_BITS) // 8)
    begin = source.read(behind, behind + BZ2_START_BYTES) if behind < size else b""
    if behind > size or (0 < len(begin) < BZ2_START_BYTES and b"BZh".startswith(begin[:3])):
        return Damaged(path, "truncated", size, "ends inside a bz2 stream")
    if begin and not MAGIC["bz2"].match(begin):
        return Damaged(path, "corrupt", behind, "goes on after a bz2 stream with other bytes", resume=behind)
    return None


def _lies_in_block(source: _Bz2File, mark: Mark, following: Mark | None) -> bool:
    """Whether a mark is no mark: a part of the data of a block that begins before it."""
    preceding = source.preceding(mark)
    if preceding is None or following is None:
        return False
    try:
        source.block(preceding, following)
    except NotABlock:
        return False
    return True


def _gzip_member(path: str, source: _Input) -> Generator[tuple[int, bytes], None, bool]:
    """One member; returns whether another follows."""
    if not MAGIC["gzip"].match(source.peek(3)):
        while piece := source.take(PIECE):
            if piece.strip(b"\0"):  # zeros may fill the last block of a tape or a disk
                offset = source.position - len(piece.lstrip(b"\0"))
                raise Damaged(path, "corrupt", offset, "goes on after a gzip member with other bytes")
        return False
    decompressor = zlib.decompressobj(wbits=31)
    pending = b""
    offset = source.position
    while not decompressor.eof:
        if not pending:
            offset = source.position
            pending = source.take(PIECE)
            if not pending:
                raise Damaged(path, "truncated", offset, "ends inside a gzip member")
        try:
            data = decompressor.decompress(pending, STEP)
        except zlib.error as error:
            raise Damaged(path, "corrupt", offset, f"holds a gzip member that is damaged ({error})") from error
        pending = decompressor.unconsumed_tail
        if data:
            yield offset, data
    source.put_back(len(decompressor.unused_data))
    return bool(source.peek(1))


def _zstd_frame(path: str, source: _Input) -> Generator[tuple[int, bytes], None, bool]:
    """One frame; returns whether another follows."""
    if not MAGIC["zstd"].match(source.peek(4)):
        reason = "truncated" if len(source.peek(4)) < 4 else "corrupt"
        raise Damaged(path, reason, source.position, "goes on after a zstd frame with other bytes")
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()
    offset = source.position
    collected: list[bytes] = []
    try:
        while not decompressor.eof:
            piece = source.take(ZSTD_PIECE)
            if not piece:
                raise Damaged(path, "truncated", source.position, "ends inside a zstd frame")
            collected.append(decompressor.decompress(piece))
            if sum(map(len, collected)) >= PIECE:
                yield offset, b"".join(collected)
                offset, collected = source.position, []
    except zstandard.ZstdError as error:
        if data := b"".join(collected):
            yield offset, data
        what = f"is damaged ({error})"
        if "memory" in str(error):
            what = f"needs more than {ZSTD_WINDOW >> 20} MiB of memory (decompress it first, with zstd -d --long=31)"
        raise Damaged(path, "corrupt", offset, f"holds a zstd frame that {what}") from error
    except Damaged:
        if data := b"".join(collected):
            yield offset, data
        raise
    if data := b"".join(collected):
        yield offset, data
    source.put_back(len(decompressor.unused_data))
    return bool(source.peek(1))
