"""What the loop asks of a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from torch import Tensor, nn

from trainers.data import Source


class Batch(NamedTuple):
    """What a step learns from, or a rank's part of it.

    inputs  one for each vector, in any form that `Recipe.encode` takes; a chunk is a slice of them
    rows    the number of rows that they come from
    given   what `Recipe.losses` needs besides the vectors: NumPy arrays or lists, by name
    """

    inputs: Sequence[Any]
    rows: int
    given: Mapping[str, Any] = {}


class Encoded(NamedTuple):
    """The vectors of a chunk [n, dimension], and losses of the chunk alone, such as that of masked words.

    The losses of the chunks of a batch are added up.
    """

    vectors: Tensor
    losses: Mapping[str, Tensor] = {}


class Recipe(Protocol):
    """What is trained, on which rows, and what is minimised. The loop (trainers/training/loop.py) does the rest.

    name      as in the command: pearl
    network   all that is trained; its state is what a checkpoint keeps
    sources   the rows; with several, all with the same columns
    weights   of the sources: None, in proportion to their rows
    """

    name: str
    network: nn.Module
    sources: Sequence[Source]
    weights: Sequence[float] | None

    def prepare(self, table: pa.Table) -> Batch:
        """A step's rows as inputs, tokenised. A pure function: it may run in another process, and draws nothing.

        UserError, which names the row, if one cannot be learned from.
        """
        ...

    def encode(self, inputs: Sequence[Any]) -> Encoded:
        """The vectors of some inputs, with gradients. What it draws, it draws from torch's generator, which the loop
        seeds by the step, the rank and the chunk.
        """
        ...

    def losses(self, vectors: Tensor, batch: Batch) -> Mapping[str, Tensor]:
        """What is minimised is their sum; each is a mean over the rows of all ranks (see `distributed.gathered`)."""
        ...

    def save(self, folder: Path) -> None:
        """Write the model as users load it, so that `phrasemill evaluate FOLDER` takes it."""
        ...
