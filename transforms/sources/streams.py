"""The raw bytes of an input file: decompressed in bounded memory, every defect an error.

Libraries that open compressed files tend to stop silently at the end of the file. Here a file that ends inside a
stream, holds damaged data, or has bytes after a stream that begin no other stream raises `Damaged`.

UTF-16 and UTF-32 are given as UTF-8, whatever is read: text, JSON lines or XML. Their byte order mark tells them.
UTF-16 without one is told by every second byte, which is 0 in Latin text, 3 in Greek, 4 in Cyrillic.
"""

from __future__ import annotations

import codecs
import re
import zlib
from bisect import bisect_left
from collections.abc import Generator, Iterator
from contextlib import suppress
from itertools import chain

import pyarrow as pa
import zstandard
from pyarrow import fs

from transforms.activity import note_read
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
STEP = 1 << 20  # at most this many bytes are taken from a decompressor at once

# A stored zstd block has at least 4 bytes and gives at most 128 KiB, so a piece of this size gives at most 32 MiB.
ZSTD_PIECE = 1 << 10
ZSTD_WINDOW = 1 << 27  # bytes kept in memory; only files made with zstd --long need more

MAGIC = {
    "bz2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    "zstd": re.compile(rb"(?:\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)", re.DOTALL),  # a frame or a skippable frame
}
SUFFIXES = {".bz2": "bz2", ".gz": "gzip", ".tgz": "gzip", ".zst": "zstd", ".zstd": "zstd"}

BZ2_START_BYTES = 10

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # begins as that of UTF-16
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_TELLING_BYTES = 4096
_HIGH_BYTES = bytes(range(8))  # of a UTF-16 character up to U+07FF; in UTF-8 they are control characters

REMEDY = "fetch it again or pass --on-corrupt=skip"


class Damaged(Exception):
    """A defect of an input file.

    `reason` is "truncated" (the file ends inside a stream), "corrupt" (a stream cannot be decompressed, or the bytes
    after it begin no other) or "bad_utf8" (it is not in the encoding that its first bytes name). `byte` is the offset
    in the stored file. `resume` is where `chunks` can continue, None if nothing after the damage can be read.
    """

    def __init__(self, path: str, reason: str, byte: int, what: str, *, resume: int | None = None) -> None:
        self.reason = reason
        self.byte = byte
        self.resume = resume
        self.message = f"{path!r} {what} at byte {byte:,}; {REMEDY}"
        super().__init__(self.message)


def codec_of(path: str, head: bytes) -> str:
    """The compression of a file whose stored bytes begin with `head`: none, bz2, gzip or zstd.

    The bytes decide. The name counts only if they are neither compressed nor text: then Damaged is raised.
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
    """The decompressed bytes of what begins in [start, end) of a stored file, as (stored offset, some bytes).

    Plain files: exactly these bytes. bz2: the blocks whose first bit is in the range, each as a whole. gzip and zstd
    cannot be entered in the middle: the whole file belongs to the range that begins at 0. The offset is that of the
    bytes (plain), of their block (bz2), or of the piece of compressed input that gave them; it does not depend on the
    range. Raises Damaged; the bytes before it are good. What is not UTF-8 (`wide_encoding`) has to be read from its
    beginning.
    """
    pieces = _stored_chunks(filesystem, path, start=start, end=end)
    for offset, data in pieces if start else _as_utf8(path, pieces):
        note_read(offset)
        yield offset, data


def wide_encoding(head: bytes) -> str:
    """The encoding of a text that begins with these bytes, if that is UTF-16 or UTF-32; otherwise nothing."""
    if marked := next((name for mark, name in _MARKS.items() if head.startswith(mark)), ""):
        return marked
    head = head[:_TELLING_BYTES]
    high = [len(half) - len(half.translate(None, _HIGH_BYTES)) for half in (head[::2], head[1::2])]
    if max(high) < max(4, len(head) // 3) or min(high) > max(high) // 4:
        return ""
    return "utf-16-be" if high[0] > high[1] else "utf-16-le"


def is_wide(filesystem: fs.FileSystem, path: str) -> bool:
    """Whether `chunks` gives other bytes than are stored or compressed, so that a file cannot be entered later on."""
    head = b""
    with suppress(Damaged):
        for _, data in _stored_chunks(filesystem, path):
            head += data[:_TELLING_BYTES]
            if len(head) >= _TELLING_BYTES:
                break
    return bool(wide_encoding(head))


def _as_utf8(path: str, pieces: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The pieces of a text as UTF-8, if its first bytes tell another encoding."""
    first: list[tuple[int, bytes]] = []
    fault = None
    try:
        while sum(len(data) for _, data in first) < _TELLING_BYTES and (piece := next(pieces, None)):
            first.append(piece)
    except Damaged as damaged:
        fault = damaged
    encoding = wide_encoding(b"".join(data for _, data in first))
    pieces = chain(first, _raised(fault) if fault else pieces)
    if not encoding:
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    offset = 0
    try:
        for offset, data in pieces:
            if text := decoder.decode(data):
                yield offset, text.encode()
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        is_cut = error.reason in ("truncated data", "unexpected end of data")
        reason, what = ("truncated", "ends inside a character of") if is_cut else ("bad_utf8", "is not")
        raise Damaged(path, reason, offset, f"{what} {encoding.upper()}, which its first bytes promise,") from None
    except Damaged as damaged:
        damaged.resume = None  # what follows need not begin with a whole character
        raise


def _raised(fault: Damaged) -> Iterator[tuple[int, bytes]]:
    raise fault
    yield


def _stored_chunks(
    filesystem: fs.FileSystem, path: str, *, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, bytes]]:
    """The same, in whatever encoding it is stored."""
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
    """The first `size` decompressed bytes, fewer if the file ends or is damaged. Damaged if nothing can be read."""
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
    """A file read forwards in large blocks. The last bytes can be put back, if a stream ended before them."""

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
        """Puts back at most as many bytes as the last `take` gave."""
        self._at -= size
        self.position -= size

    def peek(self, size: int) -> bytes:
        taken = self.take(size)
        self.put_back(len(taken))
        return taken


class _Bz2File:
    """The marks of a bzip2 file from a byte on, and the blocks between them; has a few blocks in memory."""

    def __init__(self, file: pa.NativeFile, start: int) -> None:
        self._file = file
        self._bytes = b""
        self._begin = start  # of these bytes in the file
        self._marks: list[Mark] = []  # in these bytes, by their bits in the file

    def mark(self, bit: int, *, before: int, keep: int | None = None) -> Mark | None:
        """The first mark at or after a bit of the file, if it begins before the byte `before`.

        Bytes before `keep` may be dropped; by default all before the mark.
        """
        while (index := bisect_left(self._marks, (bit,))) == len(self._marks):
            end = self._begin + len(self._bytes)
            unsearched = end - MARK_BYTES + 1
            if unsearched >= before or not self._read_on(unsearched if keep is None else keep):
                return None
        return self._marks[index] if self._marks[index].bit < 8 * before else None

    def following(self, mark: Mark, block: Mark) -> Mark | None:
        """The next mark, if it is close enough to end the block at `block`."""
        return self.mark(mark.bit + 1, before=block.bit // 8 + MAX_BLOCK, keep=block.bit // 8)

    def preceding(self, mark: Mark) -> Mark | None:
        """The last beginning of a block before a mark, if it is close enough for its block to reach past the mark."""
        begin = max(0, mark.bit // 8 - MAX_BLOCK)
        bits = (8 * begin + each.bit for each in find_marks(self.read(begin, mark.bit // 8)) if not each.is_end)
        return max((Mark(bit, is_end=False) for bit in bits), default=None)

    def read(self, begin: int, end: int) -> bytes:
        """Bytes of the file."""
        if self._begin <= begin and end <= self._begin + len(self._bytes):
            return self._bytes[begin - self._begin : end - self._begin]
        return self._file.read_at(end - begin, begin)

    def block(self, mark: Mark, end: Mark) -> bytes:
        """The decompressed block between two marks. Raises NotABlock."""
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
        known = self._marks[-1].bit if self._marks else -1  # all of it may be in the overlap
        found = [Mark(base + mark.bit, mark.is_end) for mark in find_marks(overlap + more) if base + mark.bit > known]
        self._marks = [mark for mark in self._marks if mark.bit >= 8 * self._begin] + found
        return bool(more)


def _bz2_blocks(path: str, file: pa.NativeFile, start: int, limit: int) -> Iterator[tuple[int, bytes]]:
    """The blocks whose first bit is in the bytes [start, limit), each as a whole and with its CRC checked.

    A mark may also be chance data inside a block: then the mark before it begins a block that continues to the mark
    after it. The bytes around a mark decide this, so all ranges agree.
    """
    source = _Bz2File(file, start)
    size = file.size()
    mark = source.mark(8 * start, before=limit)
    while mark is not None:
        following = source.following(mark, mark)
        if mark.is_end:
            fault = _fault_after_stream(path, source, mark, size)
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
    """The decompressed block at a mark, the mark that ends it, and what is wrong with it."""
    byte = mark.bit // 8
    if end is None:
        rest = source.read(byte, min(byte + MAX_BLOCK, size))
        if byte + len(rest) == size and is_cut_block(rest, mark.bit - 8 * byte):
            return b"", None, Damaged(path, "truncated", size, "ends inside a bz2 stream")
        return b"", None, Damaged(path, "corrupt", byte, "holds a bz2 block that is damaged", resume=byte + 1)
    try:
        return source.block(mark, end), end, None
    except NotABlock as error:
        # The mark that seems to end the block may be a part of its data.
        if (beyond := source.following(end, mark)) is not None:
            with suppress(NotABlock):
                return source.block(mark, beyond), beyond, None
        what = f"holds a bz2 block that is damaged ({error})"
        return b"", end, Damaged(path, "corrupt", byte, what, resume=byte + 1)


def _fault_after_stream(path: str, source: _Bz2File, mark: Mark, size: int) -> Damaged | None:
    """What is wrong after the end of a stream: another stream must begin there, or the file must end."""
    end = -(-(mark.bit + END_BITS) // 8)
    begin = source.read(end, end + BZ2_START_BYTES) if end < size else b""
    if end > size or (0 < len(begin) < BZ2_START_BYTES and b"BZh".startswith(begin[:3])):
        return Damaged(path, "truncated", size, "ends inside a bz2 stream")
    if begin and not MAGIC["bz2"].match(begin):
        return Damaged(path, "corrupt", end, "goes on after a bz2 stream with other bytes", resume=end)
    return None


def _lies_in_block(source: _Bz2File, mark: Mark, following: Mark | None) -> bool:
    """Whether a mark is data of a block that begins before it."""
    preceding = source.preceding(mark)
    if preceding is None or following is None:
        return False
    try:
        source.block(preceding, following)
    except NotABlock:
        return False
    return True


def _gzip_member(path: str, source: _Input) -> Generator[tuple[int, bytes], None, bool]:
    """One member of a gzip file; returns whether another follows."""
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
    """One frame of a zstd file; returns whether another follows."""
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
