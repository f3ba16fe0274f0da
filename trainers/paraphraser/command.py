"""Train a paraphraser: pairs of phrases -> a causal language model in the format phrase, separator, paraphrase, end.

    python -m trainers.train paraphraser --pairs out/pairs --output out/paraphraser

The output is a folder that transformers loads (AutoModelForCausalLM, AutoTokenizer), with a card and scores.json. Until
it is done it has a checkpoint, from which the same command goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.commands import Tool
from trainers.paraphraser.options import ParaphraserTraining

TOOL = Tool(
    "trainers.train paraphraser",
    "Trains or fine-tunes a causal language model on pairs of phrases.",
    ParaphraserTraining,
)


def main(arguments: Sequence[str]) -> int:
    options = TOOL.flags.parse(arguments)[ParaphraserTraining]
    import json
    import shlex

    import torch

    from trainers.paraphraser.training import train

    if options.threads is not None:
        torch.set_num_threads(options.threads)
    command = f"{TOOL.flags.parser.prog} {shlex.join(TOOL.flags.arguments(options))}"
    print(json.dumps(train(options, command=command)))
    return 0
