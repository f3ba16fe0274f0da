"""Archives of text files, as Books3 was shipped: .tar (plain, .gz, .bz2, .zst) and .zip; a member is a document.

Ids: "<file name>:<member>", in the archive's order; a second member of one name is "<member>~2". Members that are not
text files are filtered out. Nothing is unpacked to disk, so what a member's name says of folders means nothing.
"""

from __future__ import annotations

import lzma
import posixpath
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial

from pyarrow import fs

from transforms.sources.books import TEXT_FILE, document_of, empty_file, not_utf8, too_large
from transforms.sources.formats import InputFile, ReadOptions, Segment
from transforms.sources.items import Corrupt, Filtered, Item, Record, items_of
from transforms.sources.lines import is_plain
from transforms.sources.streams import BLOCK, REMEDY, Damaged, chunks

NOT_TEXT = "not_a_text_file"

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
)


class Archive:
    """A text file in an archive is a document."""

    name = "archive"
    version = 1

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


class _Names:
    """Member names as ids need them: text, and each once."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def unique(self, name: str) -> str:
        name = posixpath.normpath(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        count = self._seen[name] = self._seen.get(name, 0) + 1
        return name if count == 1 else f"{name}~{count}"


def _is_text_file(name: str) -> bool:
    """By its name; the shadow files that macOS puts beside others are not."""
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
            message = f"{file.path!r} ends at byte {file.size:,} without a directory of its members ({error}); {REMEDY}"
            yield Corrupt("truncated", file.size, message)
            return
        for info in archive.infolist():
            if info.is_dir():
                continue
            if not _is_text_file(info.filename):
                yield Filtered(NOT_TEXT)
                continue
            member = names.unique(info.filename)
            try:
                with archive.open(info) as stream:
                    # The sizes that the archive states may lie: one byte more than the limit is enough to know.
                    data = stream.read(options.max_document_bytes + 1)
            except _ZIP_ERRORS as error:
                yield _damaged_member(file, member, info.header_offset, error)
            else:
                yield partial(_item, data, member, info.header_offset, file, options)


def _damaged_member(file: InputFile, member: str, byte: int, error: Exception) -> Corrupt:
    what = "is encrypted" if "encrypted" in str(error) else f"is damaged ({error})"
    return Corrupt("corrupt", byte, f"{file.path!r}, member {member!r} at byte {byte:,}, {what}; {REMEDY}")


# ---- tar


class _Stream:
    """The decompressed bytes of a file as tarfile reads them: forwards only."""

    def __init__(self, filesystem: fs.FileSystem, path: str, limit: int) -> None:
        self._plain = is_plain(filesystem, path)
        self._chunks = chunks(filesystem, path)
        self._chunk = b""
        self._at = 0
        self._limit = limit
        self._position = 0
        self._stored = 0

    @property
    def stored(self) -> int:
        """The position in the file as stored."""
        return self._position if self._plain else self._stored

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        while self._position < position and self._take(min(position - self._position, BLOCK)):
            pass

    def drain(self) -> None:
        """Reads to the end: what checks the compressed data stands behind the archive's own end."""
        while self._take(BLOCK):
            pass

    def read(self, size: int) -> bytes:
        if size > self._limit:  # a header that claims to go on for gigabytes
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        return self._take(size)

    def _take(self, size: int) -> bytes:
        pieces = []
        missing = size
        while missing > 0:
            if self._at == len(self._chunk):
                self._stored, self._chunk = next(self._chunks, (self._stored, b""))
                self._at = 0
                if not self._chunk:
                    break
            piece = self._chunk[self._at : self._at + missing]
            self._at += len(piece)
            missing -= len(piece)
            pieces.append(piece)
        self._position += size - missing
        return b"".join(pieces)


class _Member(tarfile.TarInfo):
    """tarfile takes a header that it cannot read for the end of the archive; here only the end mark is the end."""

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
    try:
        stream = _Stream(filesystem, file.path, limit=options.max_document_bytes + tarfile.RECORDSIZE)
        yield from _members(stream, file, options)
    except Damaged as damage:
        yield Corrupt(damage.reason, damage.byte, damage.message)


def _members(stream: _Stream, file: InputFile, options: ReadOptions) -> Iterator[Record]:
    names = _Names()
    try:
        archive = tarfile.TarFile(fileobj=stream, mode="r", tarinfo=_Member, errorlevel=2)  # type: ignore[arg-type]
        while member := archive.next():
            archive.members = []  # type: ignore[attr-defined]  # else tarfile remembers each of them
            if member.isdir():
                continue
            byte = stream.stored
            name = names.unique(member.name)
            if not member.isreg() or not _is_text_file(member.name):
                yield Filtered(NOT_TEXT)
            elif member.size > options.max_document_bytes:
                yield too_large(f"member {name!r} at byte {byte}", b"", options)
            elif content := archive.extractfile(member):
                yield partial(_item, content.read(), name, byte, file, options)
        stream.drain()
    except (tarfile.TarError, OSError, ValueError, LookupError, OverflowError) as error:
        ends = str(error) in ("no end mark", "unexpected end of data", "truncated header")
        what = "ends inside the tar archive" if ends else "holds a damaged tar archive"
        message = f"{file.path!r} {what} ({error}) at byte {stream.stored:,}; {REMEDY}"
        yield Corrupt("truncated" if ends else "corrupt", stream.stored, message)
