"""Raw bytes of an input file, whole or not at all: decompressed in bounded memory, every defect an error.

Libraries that open compressed files tend to stop in silence where the file stops; here a file that ends inside a
stream, holds damaged data, or goes on with bytes that belong to no stream raises `Damaged`.
"""

from __future__ import annotations

import bz2
import re
import zlib
from collections.abc import Generator, Iterator

import pyarrow as pa
import zstandard
from pyarrow import fs

BLOCK = 1 << 20  # bytes asked of the filesystem at once
PIECE = 1 << 16  # bytes given to a decompressor at once: the resolution of offsets in damaged or compressed files
STEP = 1 << 20  # most bytes taken from a decompressor at once

# A stored zstd block is 4 bytes at least and gives 128 KiB at most: a piece this small cannot give more than 32 MiB.
ZSTD_PIECE = 1 << 10
ZSTD_WINDOW = 1 << 31  # zstd --long=31, the largest there is

MAGIC = {
    "bz2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    "zstd": re.compile(rb"(?:\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)", re.DOTALL),  # a frame or a skippable frame
}
SUFFIXES = {".bz2": "bz2", ".gz": "gzip", ".tgz": "gzip", ".zst": "zstd", ".zstd": "zstd"}

BZ2_START = re.compile(rb"BZh[1-9]1AY&SY")
BZ2_START_BYTES = 10
BZ2_FOOTER = 0x177245385090  # 48 bits at any bit offset, then 32 bits of checksum, then zero bits up to a byte
BZ2_FOOTER_BYTES = 11

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

    Plain files: exactly those bytes. bz2: the streams whose first byte lies in the range, each of them to its end.
    gzip and zstd cannot be entered midway: all of it belongs to the range that begins at 0. The offset is where the
    bytes begin (plain) or where the piece of compressed input began that gave them; for the same file it does not
    depend on the range. Raises Damaged; what came before it is good.
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
            yield from _bz2_streams(path, source, start, limit)
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


def is_multistream_bz2(filesystem: fs.FileSystem, path: str, *, within: int = 1 << 26) -> bool:
    """Whether a second bz2 stream begins in the first `within` bytes: then ranges of the file can be read alone."""
    with filesystem.open_input_file(path) as file:
        return _next_bz2_start(_Input(file), 1, min(within, file.size())) is not None


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


def _bz2_streams(path: str, source: _Input, start: int, limit: int) -> Iterator[tuple[int, bytes]]:
    first = 0 if start == 0 else _next_bz2_start(source, start, limit)
    if first is None:
        return
    source.seek(first)
    while source.position < limit and (begin := source.peek(4)):
        stream_start = source.position
        if not re.match(rb"BZh[1-9]", begin):
            # After a whole stream: the next one must follow at once.
            reason = "truncated" if b"BZh9".startswith(begin) else "corrupt"
            raise Damaged(
                path, reason, stream_start, "goes on after a bz2 stream with other bytes", resume=stream_start
            )
        decompressor = bz2.BZ2Decompressor()
        offset = stream_start
        while not decompressor.eof:
            piece = b""
            if decompressor.needs_input:
                offset = source.position
                piece = source.take(PIECE)
                if not piece:
                    raise Damaged(path, "truncated", offset, "ends inside a bz2 stream", resume=stream_start + 1)
            try:
                data = decompressor.decompress(piece, STEP)
            except (OSError, ValueError) as error:
                resume = stream_start + 1
                what = f"holds a bz2 stream that is damaged ({error})"
                raise Damaged(path, "corrupt", offset, what, resume=resume) from error
            if data:
                yield offset, data
        source.put_back(len(decompressor.unused_data))


def _next_bz2_start(source: _Input, start: int, limit: int) -> int | None:
    """Where the first bz2 stream in [start, limit) begins.

    The ten bytes of the magic could stand inside compressed data. So a stream begins there only if the one before it
    ends there (the footer of a stream, which is bit-aligned), or, for a stream behind a damaged one, if its beginning
    decompresses. That depends on the bytes around it alone, so all ranges agree.
    """
    at = max(0, start - BZ2_FOOTER_BYTES)
    while at < limit:
        source.seek(at)
        window = source.take(BLOCK)
        for match in BZ2_START.finditer(window):
            found = at + match.start()
            if not start <= found < limit or (found > 0 and match.start() < BZ2_FOOTER_BYTES):
                continue
            if found == 0 or _ends_bz2_stream(window[: match.start()]) or _decompresses(source, found):
                return found
        if len(window) < BLOCK:
            return None
        at += BLOCK - BZ2_FOOTER_BYTES - BZ2_START_BYTES + 1
    return None


def _ends_bz2_stream(before: bytes) -> bool:
    tail = int.from_bytes(before[-BZ2_FOOTER_BYTES:], "big")
    return any(
        (tail >> (32 + padding)) & ((1 << 48) - 1) == BZ2_FOOTER and not tail & ((1 << padding) - 1)
        for padding in range(8)
    )


def _decompresses(source: _Input, start: int) -> bool:
    """Whether a bz2 stream at `start` gives at least its first block (its checksum included)."""
    source.seek(start)
    decompressor = bz2.BZ2Decompressor()
    try:
        while piece := source.take(PIECE):
            if decompressor.decompress(piece, 1) or decompressor.eof:
                return True
    except (OSError, ValueError):
        pass
    return False


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
        raise Damaged(path, "corrupt", offset, f"holds a zstd frame that is damaged ({error})") from error
    except Damaged:
        if data := b"".join(collected):
            yield offset, data
        raise
    if data := b"".join(collected):
        yield offset, data
    source.put_back(len(decompressor.unused_data))
    return bool(source.peek(1))
