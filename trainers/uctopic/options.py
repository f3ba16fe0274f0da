"""What UCTopic is trained on, and how."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.options import count, number, option
from trainers.training.options import Training, changed, positive

weight = number(float, lambda each: 0 <= each < float("inf"), "a number from 0 on")


@dataclass(frozen=True)
class UCTopicTraining(Training):
    """How UCTopic is trained."""

    model: str = changed(Training, "model", "studio-ousia/luke-base", source="UCTopic, section 4.1")
    batch_size: int = changed(Training, "batch_size", 100, source="UCTopic's code")
    rate: float = changed(Training, "rate", 5e-5, source="UCTopic, section 4.1")
    temperature: float = option(0.05, takes=positive, metavar="X", help="of InfoNCE", source="UCTopic's code")
    masks: str = option(
        "one",
        choices=("one", "subtokens"),
        help="what stands for a masked mention: one mask, or one for each of its sub-tokens",
        more="Its text allows both; the code has one for each sub-token, which reveals the length",
    )
    same_entity: str = option(
        "kept",
        choices=("kept", "excluded"),
        help="the other pairs of a batch that share an entity or a surface with a pair: kept among its negatives, or "
        "excluded from them",
        source="UCTopic, equation 2",
    )
    mlm_weight: float = option(
        0.5, takes=weight, metavar="X", help="of the loss of masked words; 0: without it", source="UCTopic's code"
    )
    max_tokens: int = option(
        128,
        takes=count,
        metavar="N",
        help="a sentence of more sub-tokens is cut around its mention",
        source="UCTopic's code, which cuts the end off",
    )
