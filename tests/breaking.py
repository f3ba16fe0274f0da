"""Ways to break a dataset."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.storage.folder import AtomicFile, Folder
from schemas.storage.parquet import parquet_writer

Row = dict[str, Any]
Manifest = dict[str, Any]


def edit(change: Callable[[Manifest], object]) -> Callable[[Path], None]:
    """Changes the manifest."""

    def break_(folder: Path) -> None:
        path = folder / "manifest.json"
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data))

    return break_


def rewrite(change: Callable[[list[Row]], object], shard: int = 0, split: str = "train") -> Callable[[Path], None]:
    """Changes the rows of a shard, and the manifest to match the file, so that only the rows are wrong."""

    def break_(folder: Path) -> None:
        data = json.loads((folder / "manifest.json").read_text())
        entry = (data["splits"].get(split) or data["sides"][split])[shard]
        table = pq.read_table(folder / entry["path"], partitioning=None)
        rows = table.to_pylist()
        change(rows)
        write(folder, entry, pa.Table.from_pylist(rows, schema=table.schema))
        if split in data["rows"]:
            data["rows"][split] = sum(each["rows"] for each in data["splits"][split])
        (folder / "manifest.json").write_text(json.dumps(data))

    return break_


def write(folder: Path, entry: Manifest, table: pa.Table) -> None:
    with AtomicFile(Folder(str(folder)), entry["path"]) as sink, parquet_writer(sink, table.schema) as writer:
        writer.write_table(table)
        writer.close()
    entry |= {"rows": table.num_rows, "bytes": sink.bytes, "sha256": sink.sha256}


def field(row: int, **values: Any) -> Callable[[list[Row]], object]:
    return lambda rows: rows[row].update(values)


def ledger(stage: str, **values: Any) -> Callable[[Manifest], object]:
    return lambda data: next(each for each in data["stages"] if each["name"] == stage)["ledger"].update(values)
