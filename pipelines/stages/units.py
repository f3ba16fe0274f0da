"""Units that several stages share: shards of a dataset, rows of a shard, ranges of an exchange, the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from pipelines.engine.stage import Work
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet

UNITS, MOST_SHARDS = 64, 32
"""A stage over shards has about UNITS units, each of at most MOST_SHARDS shards, so exchanges have few files."""


class Shards(NamedTuple):
    """Consecutive shards of a dataset. `first` is the number of the first one."""

    first: int
    paths: list[str]
    ranges: int  # of the exchange that the stage writes; 0 if it writes none


class Piece(NamedTuple):
    """Consecutive rows of a shard of a dataset: [first, end). `shard` is its number, `row` that of the first of all."""

    path: str
    shard: int
    row: int
    first: int
    end: int


class Range(NamedTuple):
    """A range of keys of an exchange."""

    number: int
    ranges: int


class All(NamedTuple):
    """The only unit of a stage."""


LICENCE_COLUMNS = ("doc_id", "licence")


def count_licences(rows: pa.Table, counters: Counter[str]) -> None:
    """Count the documents of rows (LICENCE_COLUMNS) by licence, for the card. A document is in one shard only."""
    documents = rows.select(LICENCE_COLUMNS).group_by(LICENCE_COLUMNS).aggregate([])
    for licence in documents.column("licence").to_pylist():
        counters[f"licence:{licence}"] += 1


def range_units(work: Work, stage: str) -> list[Range]:
    """The ranges of an exchange whose map is a stage over Shards."""
    units = work.units(stage)
    ranges = units[0][2] if units else 0
    return [Range(index, ranges) for index in range(ranges)]


def shards_a_unit(dataset: Folder) -> int:
    """The number of consecutive shards in a unit: 1 of 100 shards, 4 of 300, 32 of 10,000."""
    return min(max(len(read_manifest(dataset).shards) // UNITS, 1), MOST_SHARDS)


def shard_units(dataset: Folder, ranges: int) -> list[Shards]:
    """The shards of a dataset in units of `shards_a_unit` shards."""
    paths = [shard.path for shard in read_manifest(dataset).shards]
    step = shards_a_unit(dataset)
    return [Shards(first, paths[first : first + step], ranges) for first in range(0, len(paths), step)]


def piece_units(dataset: Folder, rows: int) -> list[Piece]:
    """The shards of a dataset in pieces of at most `rows` rows. One without rows is a piece."""
    found = []
    before = 0
    for number, shard in enumerate(read_manifest(dataset).shards):
        for first in range(0, max(shard.rows, 1), rows):
            found.append(Piece(shard.path, number, before + first, first, min(first + rows, shard.rows)))
        before += shard.rows
    return found


def first_rows(dataset: Folder, columns: Sequence[str], most: int) -> pa.Table:
    """The first rows of each shard of a dataset, as many of each, at most `most` in all."""
    shards = read_manifest(dataset).shards
    rows = -(-most // max(len(shards), 1))
    return pa.concat_tables([read_parquet(dataset, each.path, list(columns)).slice(0, rows) for each in shards])
