"""Train an encoder of phrases as PEARL: augmentations, hard negatives and types -> a sentence-transformers folder.

python -m trainers.train pearl --data out/augmentations --data out/negatives --data out/typed --output out/pearl
"""

from __future__ import annotations

from trainers.pearl.options import PearlTraining
from trainers.training.command import recipe_command

TOOL, main = recipe_command(
    "pearl",
    "Trains an encoder of phrases on pairs of texts that mean the same, hard negatives, and types of phrases.",
    PearlTraining,
    recipe="trainers.pearl.recipe:Pearl",
)
