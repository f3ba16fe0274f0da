"""Units that several steps share: runs of a dataset's shards, ranges of an exchange, the whole."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pyarrow as pa

from pipelines.engine.stage import Work
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder

UNITS, MOST_SHARDS = 64, 32
"""A stage over shards has about so many units, of so many shards at most: few files in the exchanges."""


class Shards(NamedTuple):
    """Consecutive shards of a dataset, the first of them number `first`."""

    first: int
    paths: list[str]
    ranges: int  # of the exchange that they are the map of


class Range(NamedTuple):
    """A range of keys of an exchange."""

    number: int
    ranges: int


class All(NamedTuple):
    """The whole of it: a unit of a stage that has only one."""


LICENCE_COLUMNS = ("doc_id", "licence")


def count_licences(rows: pa.Table, counters: Counter[str]) -> None:
    """Count the documents of rows (LICENCE_COLUMNS) by licence, for the card. No document is in two shards."""
    documents = rows.select(LICENCE_COLUMNS).group_by(LICENCE_COLUMNS).aggregate([])
    for licence in documents.column("licence").to_pylist():
        counters[f"licence:{licence}"] += 1


def range_units(work: Work, stage: str) -> list[Range]:
    """The ranges of an exchange whose map is a stage over Shards."""
    units = work.units(stage)
    ranges = units[0][2] if units else 0
    return [Range(index, ranges) for index in range(ranges)]


def shards_a_unit(dataset: Folder) -> int:
    """How many consecutive shards are one unit."""
    return min(max(len(read_manifest(dataset).shards) // UNITS, 1), MOST_SHARDS)


def shard_units(dataset: Folder, ranges: int) -> list[Shards]:
    """The shards of a dataset in runs of `shards_a_unit`."""
    paths = [shard.path for shard in read_manifest(dataset).shards]
    step = shards_a_unit(dataset)
    return [Shards(first, paths[first : first + step], ranges) for first in range(0, len(paths), step)]
