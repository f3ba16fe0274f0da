"""Train UCTopic: pairs of mentions in their sentences -> vectors of mentions in their sentences.

    python -m trainers.train uctopic --data out/mention-pairs --model bert-base-uncased --output out/uctopic

The output is a folder that transformers loads, with its head for masked words, and that `phrasemill evaluate` takes.
"""

from __future__ import annotations

from trainers.training.command import recipe_command
from trainers.uctopic.options import UCTopicTraining

TOOL, main = recipe_command(
    "uctopic",
    "Trains UCTopic: a mention is near another mention of the same entity, or of the same words.",
    UCTopicTraining,
    recipe="trainers.uctopic.recipe:UCTopic",
)
