"""A small recipe, to test the loop without a large model: vectors of words by a two-layer network, InfoNCE.

python toy_recipe.py --data FILE.parquet --output DIR ...    (also by torchrun)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import torch
from torch import Tensor, nn
from torch.nn import functional

from schemas.options import number, option
from trainers.data import Source
from trainers.training.command import recipe_command
from trainers.training.distributed import gathered
from trainers.training.losses import info_nce
from trainers.training.options import Training, changed
from trainers.training.recipe import Batch, Encoded

WORDS = 50


@dataclass(frozen=True)
class ToyTraining(Training):
    free: ClassVar[tuple[str, ...]] = (*Training.free, "pause")

    model: str = option("", metavar="MODEL", help="none")
    rate: float = changed(Training, "rate", 1e-2)
    dropout: float = option(0.0, takes=number(float, lambda each: True, "a number"), metavar="X", help="dropout")
    pause: float = option(0.0, takes=float, metavar="X", help="seconds that a step sleeps")


def network(dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.EmbeddingBag(WORDS, 8), nn.Dropout(dropout), nn.Linear(8, 8), nn.LayerNorm(8))


class Toy:
    name = "toy"
    weights: Sequence[float] | None = None

    def __init__(self, options: ToyTraining) -> None:
        self.options = options
        self.sources = [Source.open(each, columns=["anchor", "positive"]) for each in options.data]
        self.network = network(options.dropout)

    def prepare(self, table: pa.Table) -> Batch:
        time.sleep(self.options.pause)
        texts = [*table["anchor"].to_pylist(), *table["positive"].to_pylist()]
        inputs = [([sum(word.encode()) % WORDS for word in text.split()], 1 / len(texts)) for text in texts]
        return Batch(inputs, table.num_rows, {"weight": 2.0})

    def encode(self, inputs: Sequence[Any]) -> Encoded:
        starts = torch.tensor([0, *(len(words) for words, _ in inputs)]).cumsum(0)[:-1]
        words = torch.tensor([word for words, _ in inputs for word in words])
        vectors = self.network[1:](self.network[0](words, starts))
        share = sum(each for _, each in inputs)
        return Encoded(vectors.float(), {"size": share * functional.relu(vectors.float() - 1).mean()})

    def losses(self, vectors: Tensor, batch: Batch) -> Mapping[str, Tensor]:
        anchors, positives = vectors.chunk(2)
        candidates, first = gathered(positives)
        right = torch.arange(batch.rows) + first
        return {"contrast": batch.given["weight"] * info_nce(anchors, candidates, right, temperature=0.1)}

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.network.state_dict(), folder / "weights.pt")


TOOL, main = recipe_command("toy", "Trains a toy.", ToyTraining, recipe="toy_recipe:Toy")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
