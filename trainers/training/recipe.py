"""What the loop asks of a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa
from torch import Tensor, nn, optim

from trainers.data import Source
from trainers.training.options import Training


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

    A class that has these members; it does not derive from this one. It may also have those of `OwnOptimizer`,
    `OwnRate` and `HeldOut`, and `version` (a number, raised when the same options and data give other weights), `about`
    and `usage` (Markdown for the card: what the model is, and how it is loaded).
    """

    @property
    def name(self) -> str:
        """As in the command: pearl."""
        ...

    @property
    def network(self) -> nn.Module:
        """All that is trained; its state is what a checkpoint keeps."""
        ...

    @property
    def sources(self) -> Sequence[Source]:
        """The rows; with several, all with the same columns."""
        ...

    @property
    def weights(self) -> Sequence[float] | None:
        """Of the sources; None: in proportion to their rows."""
        ...

    def prepare(self, table: pa.Table) -> Batch:
        """A step's rows as inputs, tokenised. A pure function: it may run in another process, and draws nothing.

        UserError, which names the row, if one cannot be learned from.
        """
        ...

    def encode(self, inputs: Sequence[Any]) -> Encoded:
        """The vectors of some inputs, with gradients. What it draws, it draws from torch's generator, which the loop
        seeds by the step, the rank and the chunk.

        With chunks it is called twice: first without gradients, when its losses are not used, and must draw the same.
        """
        ...

    def losses(self, vectors: Tensor, batch: Batch) -> Mapping[str, Tensor]:
        """What is minimised is their sum. Each is a mean over the rows of this rank, which may have negatives of all
        (`distributed.gathered`); the loop takes the mean over the ranks, which have as many rows each.
        """
        ...

    def save(self, folder: Path) -> None:
        """Write the model as users load it, so that `phrasemill evaluate FOLDER` takes it."""
        ...


@runtime_checkable
class OwnOptimizer(Protocol):
    """A recipe with an optimizer of its own; by default AdamW. A group may have `times`: its rate is that of the step
    times this.
    """

    def optimizer(self, options: Training) -> optim.Optimizer: ...


@runtime_checkable
class HeldOut(Protocol):
    """A recipe with rows of its own that are not learned from. The weights that are best on them are saved."""

    def held_out(self) -> float:
        """How good the network is on them, on each rank the same; larger is better. Called after each epoch."""
        ...


@runtime_checkable
class OwnRate(Protocol):
    """A recipe with a schedule of its own; by default linear warm-up and decay."""

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate of a step, from 0."""
        ...
