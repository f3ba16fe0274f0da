"""Folders on any storage that pyarrow.fs reaches: a local disk, `s3://`, `gs://`."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs


@lru_cache(maxsize=64)
def filesystem_of(uri: str) -> tuple[fs.FileSystem, str]:
    """The filesystem of a path or URI, and the path within it (absolute on a local disk)."""
    if "://" in uri:
        return fs.FileSystem.from_uri(uri)
    return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(uri))


@dataclass(frozen=True)
class Folder:
    """A folder named by a path or URI. It need not exist; writing a file makes it. Cheap to copy and to pickle."""

    uri: str

    @property
    def filesystem(self) -> fs.FileSystem:
        return filesystem_of(self.uri)[0]

    @property
    def path(self) -> str:
        return filesystem_of(self.uri)[1].rstrip("/")

    @property
    def is_local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, name: str) -> Folder:
        return Folder(f"{self.uri.rstrip('/')}/{name}")

    def at(self, name: str) -> str:
        """The path of a file of this folder, for `self.filesystem`."""
        return f"{self.path}/{name}"

    def beside(self, suffix: str) -> Folder:
        """The folder whose name is this one's with a suffix."""
        return Folder(self.uri.rstrip("/") + suffix)

    def exists(self, name: str = "") -> bool:
        path = self.at(name) if name else self.path
        return self.filesystem.get_file_info(path).type != fs.FileType.NotFound

    def files(self, name: str = "", *, recursive: bool = False) -> list[str]:
        """Names of the files below this folder or a subfolder of it, relative to this folder, sorted."""
        base = self.at(name) if name else self.path
        infos = self.filesystem.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=recursive))
        skip = len(self.path) + 1
        return sorted(info.path[skip:] for info in infos if info.type == fs.FileType.File)

    def is_empty(self) -> bool:
        return not self.filesystem.get_file_info(fs.FileSelector(self.path, allow_not_found=True))

    def size(self, name: str) -> int:
        return self.filesystem.get_file_info(self.at(name)).size

    def read(self, name: str) -> bytes:
        with self.filesystem.open_input_stream(self.at(name), compression=None) as stream:
            return stream.read()

    def write(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all: a reader never sees a part of it."""
        with AtomicFile(self, name) as file:
            file.write(data)

    def move(self, name: str, to: str) -> None:
        self._make_parent(to)
        self.filesystem.move(self.at(name), self.at(to))

    def delete(self, name: str = "") -> None:
        """Delete a subfolder, or the whole folder, with all it holds; no error if it is not there."""
        path = self.at(name) if name else self.path
        if self.filesystem.get_file_info(path).type == fs.FileType.Directory:
            self.filesystem.delete_dir(path)

    def sha256(self, name: str) -> str:
        digest = hashlib.sha256()
        with self.filesystem.open_input_stream(self.at(name), compression=None) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()

    def _make_parent(self, name: str) -> None:
        if self.is_local:
            os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)


class AtomicFile:
    """A file that appears under its name only when it was closed without an error. Counts and hashes what it takes."""

    closed = False

    def __init__(self, folder: Folder, name: str) -> None:
        self._folder, self._name = folder, name
        # An object store shows a file when its upload ends; on a disk a move does the same.
        self._written_as = f"{name}.{uuid.uuid4().hex}.part" if folder.is_local else name
        folder._make_parent(name)
        self._stream: Any = folder.filesystem.open_output_stream(folder.at(self._written_as), compression=None)
        self._digest = hashlib.sha256()
        self.bytes = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._digest.update(view)
        self._stream.write(view)
        self.bytes += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Kept for file-like use; `commit` or the `with` statement ends the file."""

    def commit(self) -> None:
        self._stream.close()
        if self._written_as != self._name:
            self._folder.move(self._written_as, self._name)

    def abort(self) -> None:
        if self._written_as != self._name:
            self._stream.close()
            self._folder.filesystem.delete_file(self._folder.at(self._written_as))

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.abort()


def parquet_file(folder: Folder, name: str, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file of a folder."""
    return pq.ParquetFile(folder.filesystem.open_input_file(folder.at(name)), **options)


def parquet_writer(sink: AtomicFile, arrow_schema: pa.Schema, *, to_keep: bool = True) -> pq.ParquetWriter:
    """The one way in which phrasemill writes Parquet: offsets as deltas, few distinct strings as dictionaries.

    Compressed by zstd, or by lz4 where the file is soon read and deleted.
    """
    integers = _leaves(arrow_schema, lambda field: pa.types.is_integer(field.type))
    terms = _leaves(arrow_schema, lambda field: (field.metadata or {}).get(b"distinct") == b"few")
    file: IO[bytes] = sink  # type: ignore[assignment]
    return pq.ParquetWriter(
        file,
        arrow_schema,
        compression="zstd" if to_keep else "lz4",
        compression_level=3 if to_keep else None,
        use_dictionary=terms,
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
        write_statistics=False,
        version="2.6",
    )


def _leaves(arrow_schema: pa.Schema, wanted: Callable[[pa.Field], bool]) -> list[str]:
    """Parquet paths of the leaf columns whose field is wanted."""
    found: list[str] = []

    def visit(path: str, field: pa.Field) -> None:
        if pa.types.is_list(field.type):
            visit(f"{path}.list.element", field.type.value_field)
        elif pa.types.is_struct(field.type):
            for each in field.type:
                visit(f"{path}.{each.name}", each)
        elif wanted(field):
            found.append(path)

    for each in arrow_schema:
        visit(each.name, each)
    return found
