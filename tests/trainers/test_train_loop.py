"""The training loop: gradients by chunks, going on exactly, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS = 23


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    texts = [f"{one} {other}" for one in "abcdefg" for other in "hijklm"][:ROWS]
    file = tmp_path_factory.mktemp("toy") / "rows.parquet"
    pq.write_table(pa.table({"anchor": texts, "positive": [f"{each} z" for each in texts]}), file, row_group_size=6)
    return str(file)


def toy(data: str, output: Path, **options: Any) -> Any:
    from toy_recipe import Toy, ToyTraining

    from trainers.training.checkpoint import seed_torch

    chosen = ToyTraining(data=(data,), output=output, **{"batch_size": 4, "epochs": 2, **options})
    seed_torch(chosen.seed)
    return Toy(chosen), chosen


def trained(data: str, output: Path, **options: Any) -> bytes:
    from trainers.training.loop import fit

    fit(*toy(data, output, **options))
    return (output / "weights.pt").read_bytes()


def test_trains(data: str, tmp_path: Path) -> None:
    from trainers.training.loop import fit

    results = fit(*toy(data, tmp_path, epochs=20))
    assert results["steps"] == 100
    losses = [each["contrast"] for _, each in results["losses"]]
    assert losses[-1] < losses[0] / 2
    assert {each.name for each in tmp_path.iterdir()} == {"weights.pt", "training.json"}
