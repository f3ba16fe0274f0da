"""Train a Pairwise-GRU: pairs with contrast phrases -> a model that `phrasemill evaluate` takes.

    python -m trainers.train pgru --data out/contrast-pairs --model vectors.txt --output out/gru

The output is a folder: config.json, words.txt, model.safetensors.
"""

from __future__ import annotations

from trainers.pgru.options import PairwiseGRU
from trainers.training.command import recipe_command

TOOL, main = recipe_command(
    "pgru",
    "Trains a GRU over the vectors of words, from pairs of phrases with contrasts (Pairwise-GRU).",
    PairwiseGRU,
    recipe="trainers.pgru.recipe:Recipe",
)
