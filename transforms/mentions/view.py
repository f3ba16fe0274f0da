"""All mentions of an entity in a mentions dataset, for training by entity or for inspection."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.dataset import Dataset
from schemas.storage.parquet import parquet_file

_WIKIDATA_ID = re.compile(r"Q[1-9][0-9]*")


def mentions_of(dataset: Dataset, entity: str) -> Iterator[pa.Table]:
    """The mentions of an entity (a Wikidata id, or the title of its page), shard by shard, in the dataset's order.

    Reads one column of all rows, and the other columns only of row groups with a mention.
    """
    name = "entity_id" if _WIKIDATA_ID.fullmatch(entity) else "target_title"
    for shard in dataset.shards():
        with parquet_file(dataset.folder, shard.path, dataset.manifest.schema) as reader:
            for group in range(reader.num_row_groups):
                found = _rows_of(reader, group, name, entity)
                if found is not None:
                    yield found


def _rows_of(reader: pq.ParquetFile, group: int, name: str, entity: str) -> pa.Table | None:
    wanted = pc.equal(reader.read_row_group(group, columns=[name], use_threads=False).column(name), entity)
    if not pc.any(wanted).as_py():
        return None
    return reader.read_row_group(group, use_threads=False).filter(wanted)
