"""Train UCTopic: pairs of mentions in their sentences -> vectors of mentions in their sentences.

    python -m trainers.train uctopic --data out/mention-pairs --model bert-base-uncased --output out/uctopic

The output is a folder that transformers loads, with its head for masked words, and that `phrasemill evaluate` takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.commands import Tool
from trainers.uctopic.options import UCTopicTraining

TOOL = Tool(
    "trainers.train uctopic",
    "Trains UCTopic: a mention is near another mention of the same entity, or of the same words.",
    UCTopicTraining,
)


def main(arguments: Sequence[str]) -> int:
    options = TOOL.flags.parse(arguments)[UCTopicTraining]
    from trainers.training.loop import fit
    from trainers.uctopic.training import UCTopic

    fit(UCTopic(options), options)
    return 0
