"""The loader reads files in an object store as it does those of a disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stores import Store

from schemas.errors import UserError
from trainers.data import Loader, Source


def test_the_order_is_that_of_the_files_on_a_disk(store: Store, tmp_path: Path) -> None:
    folder = store.folder("loader/rows")
    for part in range(2):
        pq.write_table(pa.table({"id": range(part * 300, part * 300 + 300)}), tmp_path / f"{part}.parquet", 40)
        folder.write(f"{part}.parquet", (tmp_path / f"{part}.parquet").read_bytes())
    address = store.address("loader/rows")
    query = f"?{store.query}" if store.scheme == "s3" else ""
    found = [
        pa.concat_tables(Loader(Source.open(place), batch_size=64, window=80, lanes=2, run=32))
        for place in (tmp_path, address, [f"{address}/0.parquet", f"{address}/1.parquet{query}"])
    ]
    assert found[0].num_rows == 600
    assert found[0] == found[1] == found[2]
    with pytest.raises(UserError, match=f"{address}/2.parquet: no such file"):
        Source.open([f"{address}/0.parquet", f"{address}/2.parquet"])
    with pytest.raises(UserError, match=f"{address}/no: no such dataset"):
        Source.open(f"{address}/no")
