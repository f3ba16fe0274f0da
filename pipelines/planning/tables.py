"""The beginnings of SQL dumps: what a plan reads of tables that a run reads whole."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

from pipelines.stages.mentions import SqlFile
from schemas.storage.folder import Folder
from transforms.sources.streams import chunks

SAMPLE_SQL = 8 << 20
"""Bytes of a dump, unpacked, that are read: half a second."""

_END_OF_STATEMENT = b";\n"
_END_OF_DUMP = b"-- Dump completed\n"


def cut_dumps(dumps: Sequence[SqlFile], folder: Folder) -> tuple[tuple[SqlFile, ...], list[float]]:
    """Copies of the beginnings of dumps, as dumps of their own, and how many times larger each is than its copy.

    A dump that is small is taken as it is. Line breaks in values are escaped, so where one follows a semicolon a
    statement ends.
    """
    copies, larger = [], []
    for number, dump in enumerate(dumps):
        copy, times = _cut(dump, folder, f"sql/{number}-{dump.table.table}.sql.gz")
        copies.append(copy)
        larger.append(times)
    return tuple(copies), larger


def _cut(dump: SqlFile, folder: Folder, name: str) -> tuple[SqlFile, float]:
    size = dump.filesystem.get_file_info(dump.table.path).size
    data = b""
    for stored, piece in chunks(dump.filesystem, dump.table.path):
        if len(data) >= SAMPLE_SQL and (end := data.rfind(_END_OF_STATEMENT)) > 0:
            kept = data[: end + len(_END_OF_STATEMENT)]
            folder.write(name, gzip.compress(kept + _END_OF_DUMP, 1))
            copy = SqlFile(folder.filesystem, dump.table._replace(path=folder.at(name)))
            # What was unpacked so far came of the bytes before this piece.
            return copy, max(size / (max(stored, 1) * len(kept) / len(data)), 1.0)
        data += piece
    return dump, 1.0
