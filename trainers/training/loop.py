"""The training loop: one for all recipes."""

from __future__ import annotations

from trainers.training.options import Training
from trainers.training.recipe import Batch, Recipe


def fit(recipe: Recipe, options: Training) -> None:
    """Train in place, and write the model to the output."""
    raise NotImplementedError  # h-loop


def backward(recipe: Recipe, batch: Batch, *, chunk: int | None) -> dict[str, float]:
    """Add the gradients of a batch; its losses by name. With a chunk: GradCache (Gao et al. 2021)."""
    raise NotImplementedError  # h-loop
