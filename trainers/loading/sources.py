"""What is read: a split of a dataset, or Parquet files of one schema. All that can be checked first is checked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.manifest import Shard, canonical_hash, is_dataset
from schemas.storage.addresses import is_address, parse
from schemas.storage.errors import storage_error
from schemas.storage.folder import Folder
from schemas.storage.parquet import damaged, parquet_file

_AT_ONCE = 16
"""Files whose footers are read at once."""

_COPY = "copy the dataset again, or write it again with --overwrite"
_PLAIN = "write it again, or leave it out"


class File(NamedTuple):
    """A Parquet file. `shard` is what the manifest says of it; None if there is none."""

    folder: Folder
    name: str
    shard: Shard | None = None

    def __str__(self) -> str:
        return self.folder.place(self.name)


class Group(NamedTuple):
    """Row group `number` of a file."""

    file: File
    number: int
    rows: int


@dataclass(frozen=True)
class Source:
    """Rows to be given: the row groups that are not empty, and the columns. Cheap to pickle.

    `schema` is that of the rows; `names` are its columns as the files call them.
    """

    place: str
    groups: tuple[Group, ...]
    schema: pa.Schema
    names: tuple[str, ...]
    digest: str

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        split: str | None = None,
        *,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        verify: bool = False,
    ) -> Source:
        """A dataset in a folder or at an address (s3://, gs://), a folder of .parquet files, or a list of such files.

        `split`: of a dataset; by default train. `columns`: by default all; a mapping gives columns other names, so that
        sources can be mixed ({"context": "positive"}). `verify`: read each shard, and compare its sha256 with the
        manifest's.

        UserError, naming the file and the remedy, if a file is missing, has another size, another number of rows,
        another schema or a damaged footer, or if there is no such column.
        """
        schema = None
        if not isinstance(path, str | os.PathLike):
            if not path:
                raise UserError("an empty list of files: name at least one .parquet file")
            files = [_file(os.fspath(each)) for each in path]
            place = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
        elif os.fspath(path).partition("?")[0].endswith(".parquet"):
            files, place = [_file(os.fspath(path))], os.fspath(path)
        else:
            folder = Folder(os.fspath(path))
            files, place = _plain_files(folder), str(folder)
            if not files:
                place, files, schema = _dataset_files(folder, split or "train")
        if schema is None and (split or verify):
            what = f"split {split!r}" if split else "sha256 to verify"
            raise UserError(f"{place}: has no manifest, and so no {what}; leave the option out")
        if not files:
            raise UserError(f"{place}: has no rows; choose another split or source")
        if verify:
            _verify(files)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            footers = [*pool.map(lambda file: _footer(file, schema), files)]
        found = _chosen(footers[0].schema, columns, place)
        for file, footer in zip(files, footers, strict=True):
            _require_same(file, footer.schema, found, files[0])
        groups = [
            Group(file, number, rows)
            for file, footer in zip(files, footers, strict=True)
            for number, rows in enumerate(footer.rows)
            if rows
        ]
        if not groups:
            raise UserError(f"{place}: has no rows; choose another split or source")
        contents = [
            [file.shard.sha256 if file.shard else [file.name, footer.bytes], footer.rows]
            for file, footer in zip(files, footers, strict=True)
        ]
        given = pa.schema([field.with_name(_given(columns, field.name)) for field in found])
        return cls(place, tuple(groups), given, tuple(found.names), canonical_hash(contents)[:16])

    @cached_property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)


class _Footer(NamedTuple):
    schema: pa.Schema
    rows: list[int]  # of each row group
    bytes: int  # of the file


def _plain_files(folder: Folder) -> list[File]:
    """The Parquet files of a folder that is no dataset."""
    if is_dataset(folder):
        return []
    found = [File(folder, name) for name in folder.files() if name.endswith(".parquet")]
    if found and is_dataset(whole := folder.joined("..")):
        raise UserError(f"{folder}: has the files of all splits of a dataset; give the dataset, {whole}, and a split")
    return found


def _dataset_files(folder: Folder, split: str) -> tuple[str, list[File], pa.Schema]:
    """The shards of a split, which are there and have their sizes."""
    dataset = Dataset.open(str(folder))
    shards = dataset.shards(split)
    sizes = folder.sizes("data", recursive=True) if shards else {}
    for shard in shards:
        if shard.path not in sizes:
            raise UserError(f"{folder.place(shard.path)}: is missing; {_COPY}")
        if sizes[shard.path] != shard.bytes:
            raise UserError(
                f"{folder.place(shard.path)}: has {sizes[shard.path]:,} bytes instead of {shard.bytes:,}; {_COPY}"
            )
    return f"{folder}, {split}", [File(folder, shard.path, shard) for shard in shards], dataset.manifest.schema


def _file(path: str) -> File:
    if not is_address(path):
        return File(Folder(os.path.dirname(path) or "."), os.path.basename(path))
    address = parse(path)
    folder, _, name = address.rest.rpartition("/")
    return File(Folder(str(address._replace(rest=folder))), unquote(name))


def _verify(files: Sequence[File]) -> None:
    for file in files:
        if file.shard and file.folder.sha256(file.name) != file.shard.sha256:
            raise UserError(f"{file}: its sha256 is not the manifest's; {_COPY}")


def _footer(file: File, schema: pa.Schema | None) -> _Footer:
    try:
        with parquet_file(file.folder, file.name, schema) as reader:
            footer = reader.metadata
            rows = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
            found = reader.schema_arrow
        size = file.shard.bytes if file.shard else file.folder.size(file.name)
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"{file}: no such file; {_PLAIN}") from None
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file, error) from error
    if file.shard and sum(rows) != file.shard.rows:
        raise damaged(file.folder, file.name, f"has {sum(rows):,} rows instead of {file.shard.rows:,}")
    return _Footer(found, rows, size)


def unreadable(file: File, error: Exception) -> UserError:
    """The error for a file that pyarrow cannot read."""
    known = storage_error(error, str(file)) if isinstance(error, OSError) else None
    if known:
        return known
    what = f"cannot be read ({' '.join(str(error).split())})"
    return damaged(file.folder, file.name, what) if file.shard else UserError(f"{file}: {what}; {_PLAIN}")


def _given(columns: Sequence[str] | Mapping[str, str] | None, name: str) -> str:
    return columns[name] if isinstance(columns, Mapping) else name


def _chosen(schema: pa.Schema, columns: Sequence[str] | Mapping[str, str] | None, place: str) -> pa.Schema:
    """The schema of some columns, without metadata, which each batch would carry."""
    names = schema.names if columns is None else list(columns)
    if not names or isinstance(columns, str):
        raise UserError(f"columns={columns!r}: give a list of names of columns, or nothing for all")
    for name in names:
        if schema.names.count(name) != 1:
            raise UserError(f"{place}: has no column {name!r}, only {', '.join(schema.names)}")
    return pa.schema([pa.field(name, schema.field(name).type) for name in names])


def _require_same(file: File, schema: pa.Schema, chosen: pa.Schema, first: File) -> None:
    for field in chosen:
        if schema.names.count(field.name) != 1:
            raise UserError(f"{file}: has no column {field.name!r}, which {first} has; {_PLAIN}")
        if (other := schema.field(field.name).type) != field.type:
            raise UserError(
                f"{file}: column {field.name!r} is {other}, and {field.type} in {first}; convert one of them, or leave "
                "it out"
            )


class Files:
    """Open files, of one thread: opening one parses its footer."""

    def __init__(self, most: int = 8) -> None:
        self._most = most
        self._open: dict[File, pq.ParquetFile] = {}

    def read(self, group: Group, source: Source) -> list[pa.RecordBatch]:
        """The columns of a row group, in order of the source's schema. UserError if it cannot be read."""
        file = group.file
        try:
            reader = self._open.pop(file, None) or parquet_file(file.folder, file.name, pre_buffer=True)
            self._open[file] = reader
            if len(self._open) > self._most:
                self._open.pop(next(iter(self._open))).close(force=True)
            table = reader.read_row_group(group.number, columns=[*source.names])
        except FileNotFoundError:
            raise UserError(f"{file}: is gone; bring it back, and go on from the last state") from None
        except (OSError, pa.ArrowException) as error:
            raise unreadable(file, error) from error
        if table.num_rows != group.rows:
            raise damaged(file.folder, file.name, f"row group {group.number} has {table.num_rows:,} rows")
        return pa.table([table.column(name) for name in source.names], schema=source.schema).to_batches()

    def close(self) -> None:
        for reader in self._open.values():
            reader.close(force=True)
        self._open.clear()
