"""Folders on any storage that pyarrow.fs reaches: a local disk, `s3://`, `gs://`."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import IO, Any, TypeVar

from pyarrow import fs

from schemas.json_values import checked, json_value
from schemas.storage.addresses import filesystem_of, is_address, joined_path, parse, relative_path, without_secrets
from schemas.storage.errors import PassingError, StorageError, storage_error

T = TypeVar("T")

_IN_MEMORY = 1 << 24
"""A file for an object store is kept in memory up to this many bytes, and then in a temporary file."""

_LOCK_TRIES = 250

_AT_ONCE = 16
"""Concurrent requests to an object store when many small files are read."""


@dataclass(frozen=True)
class Folder:
    """A folder named by a path or address. It need not exist; writing a file makes it. Cheap to copy and to pickle.

    Raises StorageError, which names the file and the remedy, if storage fails for a reason that lasts or the address
    has credentials; PassingError if the reason may pass; FileNotFoundError if a file is missing.
    """

    uri: str

    def __post_init__(self) -> None:
        if is_address(self.uri):
            object.__setattr__(self, "uri", str(parse(self.uri)))

    @property
    def filesystem(self) -> fs.FileSystem:
        return filesystem_of(self.uri)[0]

    @property
    def path(self) -> str:
        return filesystem_of(self.uri)[1].rstrip("/")

    @property
    def is_local(self) -> bool:
        return not is_address(self.uri) or isinstance(self.filesystem, fs.LocalFileSystem)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, name: str) -> Folder:
        return self.beside(f"/{name}")

    def beside(self, suffix: str) -> Folder:
        """The folder whose name is this one's with a suffix."""
        if not is_address(self.uri):
            return Folder(self.uri.rstrip("/") + suffix)
        address = parse(self.uri)
        return Folder(str(address._replace(rest=address.rest.rstrip("/") + suffix)))

    def at(self, name: str) -> str:
        """The path of a file of this folder, for `self.filesystem`."""
        return f"{self.path}/{name}"

    def place(self, name: str = "") -> str:
        """The folder, or a file of it, for messages."""
        return str(self / name) if name else str(self)

    def relative(self, path: str) -> str:
        """A path or address relative to this folder (see `relative_path`)."""
        return relative_path(path, self.uri)

    def joined(self, path: str) -> Folder:
        """The inverse of `relative`."""
        return Folder(joined_path(self.uri, path))

    def exists(self, name: str = "") -> bool:
        with self._faults(name):
            return self._info(name).type != fs.FileType.NotFound

    def files(self, name: str = "", *, recursive: bool = False) -> list[str]:
        """Names of the files below this folder or a subfolder of it, relative to this folder, sorted."""
        return sorted(self.sizes(name, recursive=recursive))

    def sizes(self, name: str = "", *, recursive: bool = False) -> dict[str, int]:
        """The same names with the bytes of each file, from one listing."""
        base = self.at(name) if name else self.path
        with self._faults(name):
            infos = self._list(base, recursive=recursive)
        skip = len(self.path) + 1
        return {info.path[skip:]: info.size for info in infos if info.type == fs.FileType.File}

    def entries(self) -> list[str]:
        """Names of the files and folders in this folder, sorted."""
        # Google Cloud's listing shows folders only if it is recursive.
        deep = self.filesystem.type_name == "gcs"
        with self._faults():
            infos = self._list(self.path, recursive=deep)
        skip = len(self.path) + 1
        return sorted({info.path[skip:].partition("/")[0] for info in infos})

    def size(self, name: str) -> int:
        with self._faults(name):
            return self._info(name).size

    def read(self, name: str) -> bytes:
        with self._faults(name), self.filesystem.open_input_stream(self.at(name), compression=None) as stream:
            return stream.read()

    def read_json(self, name: str, of: type[T], *, remedy: str) -> T:
        """The JSON value of a file of `_work`. StorageError with the remedy if it was cut short or changed."""
        try:
            return checked(of, json_value(self.read(name)))
        except ValueError as error:
            raise StorageError(f"{self.place(name)}: was cut short or changed ({error}); {remedy}") from None

    def read_all(self, names: Sequence[str]) -> list[bytes]:
        """Many small files, in the order of their names; from an object store, several at once."""
        if self.is_local:
            return [self.read(name) for name in names]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(self.read, names))

    def write(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all: a reader never sees a part of it."""
        with AtomicFile(self, name) as file:
            file.write(data)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait for other processes and threads that are in such a block with this folder, which is made.

        Only on a disk with locks, and at most for some seconds: whoever holds it may have been stopped (SIGSTOP).
        """
        if not self.is_local:
            yield
            return
        with self._faults():
            os.makedirs(self.path, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDONLY)
        try:
            for _ in range(_LOCK_TRIES):
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.02)
                except OSError:  # a network disk without locks
                    break
            yield
        finally:
            os.close(descriptor)

    def require_writable(self) -> None:
        """StorageError if the folder, or the nearest above it that exists, can be seen not to take files.

        Makes nothing. Whether an object store takes files shows when the first is written.
        """
        if not self.is_local:
            return
        place = self.path or "/"
        while not os.path.lexists(place):
            place = os.path.dirname(place)
        try:
            with self._faults():
                tempfile.TemporaryFile(dir=place).close()
        except FileNotFoundError:  # as in /proc
            raise StorageError(f"{self}: no file can be made in {place}; choose another --output") from None

    def move(self, name: str, to: str) -> None:
        with self._faults(to):
            self._make_parent(to)
            if self.is_local:
                os.replace(self.at(name), self.at(to))
                _sync_folder(os.path.dirname(self.at(to)))
            else:
                self.filesystem.move(self.at(name), self.at(to))

    def remove(self, name: str) -> None:
        """Delete a file; no error if it is not there."""
        with self._faults(name), contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_file(self.at(name))

    def delete(self, name: str = "") -> None:
        """Delete a subfolder, or the whole folder, with all it holds; no error if it is not there."""
        with self._faults(name):
            if self._info(name).type == fs.FileType.Directory:
                self._delete_folder(self.at(name) if name else self.path)

    def sha256(self, name: str) -> str:
        digest = hashlib.sha256()
        with self._faults(name), self.filesystem.open_input_stream(self.at(name), compression=None) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()

    def _list(self, path: str, *, recursive: bool) -> list[fs.FileInfo]:
        selector = fs.FileSelector(path, allow_not_found=True, recursive=recursive)
        try:
            return self.filesystem.get_file_info(selector)
        except FileNotFoundError:  # another process made the folder after Arrow missed it, and before it looked again
            return self.filesystem.get_file_info(selector)

    def _info(self, name: str) -> fs.FileInfo:
        return self.filesystem.get_file_info(self.at(name) if name else self.path)

    def _delete_folder(self, path: str) -> None:
        left = None
        while True:
            try:
                return self.filesystem.delete_dir(path)
            except FileNotFoundError:  # Google Cloud's does not find the empty object that represents the folder
                return None
            except OSError:
                # A store on top of a disk refuses to delete folders that are not empty. Each try deletes some files.
                inside = fs.FileSelector(path, allow_not_found=True, recursive=True)
                before, left = left, len(self.filesystem.get_file_info(inside))
                if left == before:
                    raise

    def _make_parent(self, name: str) -> None:
        if self.is_local:
            os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
        elif "allow_bucket_creation=true" in parse(self.uri).query:
            self.filesystem.create_dir(self.path.partition("/")[0])

    def _faults(self, name: str = "") -> AbstractContextManager[None]:
        return _named(self.place(name))


class AtomicFile:
    """A file that appears under its name only when it was closed without an error. It counts and hashes its bytes.

    On a disk it is written under another name, synced (a power cut must not leave an empty file) and moved. To an
    object store it is uploaded at the end: pyarrow cannot abort an upload, and makes a readable file of what it has
    when a stream is dropped.
    """

    closed = False

    def __init__(self, folder: Folder, name: str) -> None:
        self._folder, self._name = folder, name
        self._part = f"{name}.{uuid.uuid4().hex}.part"
        self._digest = hashlib.sha256()
        self.bytes = 0
        self._stream: IO[bytes]
        with folder._faults(name):
            folder._make_parent(name)
            if folder.is_local:
                self._stream = open(folder.at(self._part), "xb")  # noqa: SIM115
            else:
                self._stream = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._digest.update(view)
        with _named(self._folder.place(self._name) if self._folder.is_local else tempfile.gettempdir()):
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
        """Does nothing; `commit` or the `with` statement ends the file."""

    def commit(self) -> None:
        try:
            with self._folder._faults(self._name):
                if self._folder.is_local:
                    self._stream.flush()
                    os.fsync(self._stream.fileno())
                    self._stream.close()
                    self._folder.move(self._part, self._name)
                else:
                    self._upload()
                    self._stream.close()
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Remove the unfinished file. Raises nothing, because there is another error to report already."""
        with contextlib.suppress(OSError):
            self._stream.close()
        if self._folder.is_local:
            with contextlib.suppress(OSError):
                os.unlink(self._folder.at(self._part))

    def _upload(self) -> None:
        self._stream.seek(0)
        path = self._folder.at(self._name)
        try:
            upload = self._folder.filesystem.open_output_stream(path, compression=None)
        except FileNotFoundError:
            raise StorageError(f"{self._folder.place(self._name)}: the bucket does not exist; make it") from None
        try:
            while block := self._stream.read(1 << 20):
                upload.write(block)
        except BaseException:
            # `close` makes a file of what was uploaded. If a request failed, it makes none and raises again.
            with contextlib.suppress(OSError):
                upload.close()
                self._folder.filesystem.delete_file(path)
            raise
        upload.close()

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.abort()


def _sync_folder(path: str) -> None:
    """Sync the names in a local folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Turn errors into ones that name the place, without credentials."""
    try:
        yield
    except (StorageError, FileNotFoundError):
        raise
    except OSError as error:
        raise storage_error(error, place) or PassingError(f"{place}: {without_secrets(str(error))}") from None
