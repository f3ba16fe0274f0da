"""Archives of text files, as Books3 was shipped: .tar (plain, .gz, .bz2, .zst) and .zip; a member is a document.

Ids: "<file name>:<member>", in the archive's order; a second member with the same name is "<member>~2". Members that
are not text files are filtered. Nothing is unpacked to disk, so folders in a member's name have no effect.

An archive's own figures are not trusted: sizes, counts and offsets are checked against what is read, and at most
--max-document-bytes of a member are read or decompressed.
"""

from __future__ import annotations

import bz2
import lzma
import posixpath
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import IO, NamedTuple, Protocol

import pyarrow as pa
import xxhash
from pyarrow import fs

from transforms.activity import note_read
from transforms.sources.books import TEXT_FILE, document_of, empty_file, not_utf8, too_large
from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Corrupt, Filtered, Item, Record, items_of
from transforms.sources.lines import is_plain
from transforms.sources.options import ReadOptions
from transforms.sources.streams import BLOCK, PIECE, REMEDY, Damaged, chunks

NOT_TEXT = "not_a_text_file"
MAX_TEXT_FILES = 2_000_000  # in one archive: names are kept in memory, to number those that occur again

_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")  # a first member, or the end of an archive without members
_TAR_MAGIC = slice(257, 262)
_ARCHIVE_FILE = re.compile(r"\.(?:zip|tgz|tar(?:\.(?:gz|bz2|zst|zstd))?)$", re.IGNORECASE)
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    RuntimeError,
    OSError,
    ValueError,
    LookupError,
    MemoryError,  # a claim of more bytes than there are
)


class Archive:
    """A text file in an archive is a document."""

    name = "archive"
    version = 3

    def recognises(self, path: str, head: bytes) -> bool:
        if not head:
            return _ARCHIVE_FILE.search(path) is not None
        return head.startswith(_ZIP_MAGIC) or head[_TAR_MAGIC] == b"ustar"

    def split(self, filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
        return [Segment(0, file.size)]

    def read(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, *, options: ReadOptions, skip: int = 0
    ) -> Iterator[Item]:
        return items_of(self._records(filesystem, file, segment, options), skip=skip)

    def _records(
        self, filesystem: fs.FileSystem, file: InputFile, segment: Segment, options: ReadOptions
    ) -> Iterator[Record]:
        if not file.size:
            yield empty_file(file)
            return
        with filesystem.open_input_file(file.path) as source:
            is_zip = source.read(4) in _ZIP_MAGIC or file.path.lower().endswith(".zip")
        yield from (_zip if is_zip else _tar)(filesystem, file, options)


ARCHIVE = Archive()


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class _Names:
    """Makes member names fit for ids: valid text, each name once."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}  # by hash: there can be many names, and long ones

    def unique(self, name: str) -> str:
        """Raises ValueError for more than MAX_TEXT_FILES names."""
        name = posixpath.normpath(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        name = _CONTROL.sub("\ufffd", name)
        if len(self._counts) >= MAX_TEXT_FILES:
            raise ValueError(f"more than {MAX_TEXT_FILES:,} text files; divide it")
        key, again = xxhash.xxh3_64_intdigest(name.encode()), name
        while xxhash.xxh3_64_intdigest(again.encode()) in self._counts:
            self._counts[key] += 1
            again = f"{name}~{self._counts[key]}"
        self._counts[xxhash.xxh3_64_intdigest(again.encode())] = 1
        return again


def _is_text_file(name: str) -> bool:
    """Whether the name is that of a text file; the shadow files of macOS are not."""
    return TEXT_FILE.search(name) is not None and not posixpath.basename(name).startswith("._")


def _item(data: bytes, member: str, byte: int, file: InputFile, options: ReadOptions) -> Item:
    if len(data) > options.max_document_bytes:
        return too_large(f"member {member!r} at byte {byte}", data, options)
    if not data:
        return Filtered("no_text")
    try:
        return document_of(data, doc_id=f"{file.name}:{member}", source=file.name, name=member)
    except UnicodeDecodeError as error:
        return not_utf8(f"{file.path!r}, member {member!r},", byte, error)


# ---- zip


def _zip(filesystem: fs.FileSystem, file: InputFile, options: ReadOptions) -> Iterator[Record]:
    names = _Names()
    with filesystem.open_input_file(file.path) as source:
        try:
            archive = zipfile.ZipFile(source)
        except _ZIP_ERRORS as error:
            cut = "not a zip file" in str(error) or file.size < zipfile.sizeEndCentDir  # type: ignore[attr-defined]
            what = f"ends at byte {file.size:,} without" if cut else "does not have"
            message = f"{file.path!r} {what} a readable directory of its members ({error}); {REMEDY}"
            yield Corrupt("truncated" if cut else "corrupt", file.size, message)
            return
        for info, end in _with_ends(archive):
            if info.filename.endswith("/"):
                continue
            if not _is_text_file(info.filename):
                yield Filtered(NOT_TEXT)
                continue
            byte = min(max(0, info.header_offset), file.size)
            note_read(byte)
            try:
                member = names.unique(info.filename)
            except ValueError as error:
                yield Corrupt("corrupt", byte, f"{file.path!r} holds {error}; {REMEDY}")
                return
            try:
                data = _member(source, info, end, limit=options.max_document_bytes)
            except _ZIP_ERRORS as error:
                what = f"member {member!r} at byte {byte:,}, is damaged ({error})"
                yield Corrupt("corrupt", byte, f"{file.path!r}, {what}; {REMEDY}")
            else:
                yield partial(_item, data, member, byte, file, options)


def _with_ends(archive: zipfile.ZipFile) -> Iterator[tuple[zipfile.ZipInfo, int]]:
    """The members, each with the byte at which it must have ended: where the next one, or the directory, begins.

    A second member in the same place has no bytes.
    """
    infos = archive.infolist()
    starts = sorted({info.header_offset for info in infos} | {archive.start_dir})
    ends = dict(pairwise(starts))
    return ((info, ends.pop(info.header_offset, -1)) for info in infos)


class _Decompressor(Protocol):
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def _member(source: pa.NativeFile, info: zipfile.ZipInfo, end: int, *, limit: int) -> bytes:
    """At most `limit` + 1 bytes of a member. Raises BadZipFile and the errors of its decompressor.

    zipfile's own reader decompresses bzip2 and LZMA without a limit and lets members overlap, so a small file could
    hold petabytes.
    """
    if info.flag_bits & 0x41:
        raise zipfile.BadZipFile("it is encrypted")
    source.seek(info.header_offset)
    header = source.read(zipfile.sizeFileHeader)  # type: ignore[attr-defined]
    if not header.startswith(_ZIP_MAGIC[0]):
        raise zipfile.BadZipFile("no member begins there")
    left = info.compress_size
    start = info.header_offset + len(header) + sum(struct.unpack("<HH", header[26:]))
    if start + left > end:
        raise zipfile.BadZipFile("it overlaps another one")
    source.seek(start)
    decompressor: _Decompressor | None = None
    if info.compress_type == zipfile.ZIP_DEFLATED:
        decompressor = zlib.decompressobj(wbits=-15)
    elif info.compress_type == zipfile.ZIP_BZIP2:
        decompressor = bz2.BZ2Decompressor()
    elif info.compress_type == zipfile.ZIP_LZMA:
        _, size, properties, dictionary = struct.unpack("<HHBI", source.read(9))
        if size != 5:
            raise zipfile.BadZipFile("its LZMA properties are of another size")
        left -= 9
        decompressor = _lzma(properties, min(dictionary, max(limit, 1 << 12)))
    elif info.compress_type != zipfile.ZIP_STORED:
        raise zipfile.BadZipFile(f"compression method {info.compress_type} is not supported")
    data = bytearray()
    while left > 0 and len(data) <= limit:
        piece = source.read(min(left, PIECE))
        left -= len(piece)
        # A decompressor that gives less than it may has consumed its whole input.
        data += decompressor.decompress(piece, limit + 1 - len(data)) if decompressor else piece
    if len(data) <= limit and (len(data) != info.file_size or zlib.crc32(data) != info.CRC):
        raise zipfile.BadZipFile("its size or its checksum (CRC-32) is another")
    return bytes(data)


def _lzma(properties: int, dictionary: int) -> lzma.LZMADecompressor:
    rest, literal_context = divmod(properties, 9)
    positions, literal_positions = divmod(rest, 5)
    options = {"dict_size": dictionary, "lc": literal_context, "lp": literal_positions, "pb": positions}
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1, **options}])


# ---- tar

HEADER_BYTES = 1 << 18  # of one tar member, its long names and attributes included


class TarStream:
    """The decompressed bytes of a file for tarfile, which reads them forwards only.

    `allowed`: how many bytes may still be read. Without it, extended headers and sparse maps of any claimed size would
    be kept in memory.
    """

    def __init__(self, filesystem: fs.FileSystem, path: str) -> None:
        self.exact = is_plain(filesystem, path)  # a byte read is a byte of the file
        self._chunks = chunks(filesystem, path)
        self._chunk = b""
        self._at = 0
        self._position = 0
        self.allowed = 0
        self._stored = 0

    @property
    def stored(self) -> int:
        """The position in the stored (compressed) file."""
        return self._position if self.exact else self._stored

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        while self._position < position and self._take(min(position - self._position, BLOCK)):
            pass

    def drain(self) -> None:
        """Reads to the end, because the checksums of compressed data come after the archive's own end."""
        while self._take(BLOCK):
            pass

    def read(self, size: int) -> bytes:
        self.allowed -= size
        if self.allowed < 0:
            raise tarfile.ReadError(f"a member whose headers have more than {HEADER_BYTES:,} bytes")
        return self._take(size)

    def some(self, size: int) -> bytes:
        """Between one and `size` bytes, none at the end; gives all bytes before the damage in a file."""
        self._fill()
        piece = self._chunk[self._at : self._at + size]
        self._at += len(piece)
        self._position += len(piece)
        return piece

    def _fill(self) -> None:
        if self._at == len(self._chunk):
            self._stored, self._chunk = next(self._chunks, (self._stored, b""))
            self._at = 0

    def _take(self, size: int) -> bytes:
        pieces = []
        missing = size
        while missing > 0:
            self._fill()
            if not self._chunk:
                break
            piece = self._chunk[self._at : self._at + missing]
            self._at += len(piece)
            missing -= len(piece)
            pieces.append(piece)
        self._position += size - missing
        return b"".join(pieces)


class _Member(tarfile.TarInfo):
    """A header for which only the end mark is the end: tarfile also stops at a header that it cannot read."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> _Member:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.EmptyHeaderError as error:  # type: ignore[attr-defined]
            raise tarfile.ReadError("no end mark") from error
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from error


def _tar(filesystem: fs.FileSystem, file: InputFile, options: ReadOptions) -> Iterator[Record]:
    names = _Names()

    def records(member: TarMember) -> Iterator[Record]:
        if not member.is_file or not _is_text_file(member.name):
            yield Filtered(NOT_TEXT)
            return
        name = names.unique(member.name)
        if member.size > options.max_document_bytes:
            yield too_large(f"member {name!r} at byte {member.byte}", b"", options)
        elif content := member.open(options.max_document_bytes):
            yield partial(_item, content.read(), name, member.byte, file, options)

    return tar_records(filesystem, file, records)


class TarMember(NamedTuple):
    """A member of a tar that is not a directory. `byte`: where its content begins in the stored file."""

    name: str
    size: int
    byte: int
    is_file: bool  # not a link or a device
    has_holes: bool  # a sparse file, whose size is claimed and not what is stored
    open: Callable[[int], IO[bytes] | None]  # its content, of which at most this number of bytes may be read
    stream: TarStream


def tar_records(
    filesystem: fs.FileSystem, file: InputFile, records: Callable[[TarMember], Iterator[Record]]
) -> Iterator[Record]:
    """The records of each member in turn; damage to the archive is the last record."""
    try:
        stream = TarStream(filesystem, file.path)
    except Damaged as damage:
        yield Corrupt(damage.reason, damage.byte, damage.message)
        return
    try:
        stream.allowed = HEADER_BYTES
        archive = tarfile.TarFile(fileobj=stream, mode="r", tarinfo=_Member, errorlevel=2)  # type: ignore[arg-type]
        while member := archive.next():
            archive.members = []  # type: ignore[attr-defined]  # otherwise tarfile keeps all of them
            if member.isdir():
                continue

            def content(allowed: int, member: tarfile.TarInfo = member) -> IO[bytes] | None:
                stream.allowed = allowed + tarfile.RECORDSIZE
                return archive.extractfile(member)

            told = (member.name, member.size, stream.stored, member.isreg(), member.issparse())
            yield from records(TarMember(*told, content, stream))
            stream.allowed = HEADER_BYTES
        stream.drain()
    except Damaged as damage:
        yield Corrupt(damage.reason, damage.byte, damage.message)
    except (tarfile.TarError, OSError, ValueError, LookupError, OverflowError, RecursionError) as error:
        ends = str(error) in ("no end mark", "unexpected end of data", "truncated header")
        what = "ends inside the tar archive" if ends else "holds a damaged tar archive"
        message = f"{file.path!r} {what} ({error}) at byte {stream.stored:,}; {REMEDY}"
        yield Corrupt("truncated" if ends else "corrupt", stream.stored, message)
