"""Reading a dataset directory, for trainers, tools and notebooks. Needs only pyarrow.

contexts = Dataset.open("out/contexts")
for table in contexts.tables(columns=["phrase", "context", "negative"]):
    ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from schemas.errors import UserError
from schemas.manifest import Manifest, Shard, read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import damaged, parquet_file


class RowGroup(NamedTuple):
    """A row group of a shard; `first_row` is the number of its first row in the shard."""

    shard: Shard
    first_row: int
    table: pa.Table


@dataclass(frozen=True)
class Dataset:
    """A finished dataset: its folder and its manifest."""

    folder: Folder
    manifest: Manifest

    @classmethod
    def open(cls, path: str) -> Dataset:
        """The dataset in a directory, or at an address (s3://, gs://). UserError if there is none."""
        folder = Folder(path)
        return cls(folder, read_manifest(folder))

    def __len__(self) -> int:
        """Rows of all splits."""
        return self.manifest.rows

    def head(self, number: int) -> list[dict[str, Any]]:
        """The first rows; if the dataset is in random order, a random sample."""
        for shard in self.manifest.shards:
            if shard.rows:
                with parquet_file(self.folder, shard.path, self.manifest.schema) as reader:
                    for batch in reader.iter_batches(batch_size=number):
                        return batch.to_pylist()
        return []

    def shards(self, split: str | None = None) -> list[Shard]:
        """The shards of a split, or of all splits, in order. UserError if there is no such split."""
        if split is None:
            return self.manifest.shards
        if split not in self.manifest.splits:
            raise UserError(f"{self.folder}: has no split {split!r}, only {', '.join(self.manifest.splits) or 'none'}")
        return self.manifest.splits[split]

    def tables(self, split: str | None = None, *, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """All rows in order, one table for each row group. Other columns are not read."""
        for shard in self.shards(split):
            for group in self.row_groups(shard, columns=columns):
                yield group.table

    def table(self, shard: Shard, *, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of one shard. UserError if it cannot be read."""
        return pa.concat_tables([group.table for group in self.row_groups(shard, columns=columns)])

    def row_groups(self, shard: Shard, *, columns: Sequence[str] | None = None) -> Iterator[RowGroup]:
        """The rows of one shard, or of a file of a side table, by row group; one that is empty if there is none.

        UserError if it cannot be read.
        """
        from schemas.kinds import SIDES  # whose checks import this module

        schema = SIDES.get(shard.path.partition("/")[0], self.manifest.schema)
        try:
            with parquet_file(self.folder, shard.path, schema) as reader:
                names = reader.schema_arrow.names if columns is None else list(columns)
                if reader.num_row_groups == 0:
                    yield RowGroup(shard, 0, reader.schema_arrow.empty_table().select(names))
                row = 0
                for number in range(reader.num_row_groups):
                    table = reader.read_row_group(number, columns=names)
                    yield RowGroup(shard, row, table)
                    row += table.num_rows
        except UserError:
            raise
        except (OSError, pa.ArrowException) as error:
            raise damaged(self.folder, shard.path, f"cannot be read ({error})") from error
