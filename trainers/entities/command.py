"""Train the entity finder `phrasemill`: raw text -> its entities by other finders -> a head on the parser's network.

    python -m trainers.train entities --sentences out/mix-sentences --teacher en_core_web_sm --output out/entity-head

The output holds entities.onnx, and scores.json with what it was made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.commands import Tool
from schemas.options import count, option, whole


@dataclass(frozen=True)
class HeadTraining:
    """What the entity finder is trained on."""

    sentences: tuple[str, ...] = option(repeated=True, metavar="DATASET", help="raw text to label; repeatable")
    teacher: tuple[str, ...] = option(
        repeated=True, metavar="NAME", help="a spaCy pipeline (a name or a path) whose entities are learned; repeatable"
    )
    output: Path = option(Path("out/entity-head"), takes=Path, metavar="DIR", help="the folder to write")
    words: int = option(2_000_000, takes=count, metavar="N", help="words of raw text, about")
    epochs: int = option(2, takes=count, metavar="N", help="how often each sentence is learned from")
    seed: int = option(0, takes=whole, metavar="N", help="of the first weights and the order of the sentences")


TOOL = Tool(
    "trainers.train entities", "Trains the entity finder `phrasemill`, a head on the parser's network.", HeadTraining
)


def main(arguments: Sequence[str]) -> int:
    options = TOOL.flags.parse(arguments)[HeadTraining]
    from trainers.entities.training import train

    train(
        options.sentences,
        options.teacher,
        options.output,
        words=options.words,
        epochs=options.epochs,
        seed=options.seed,
    )
    return 0
