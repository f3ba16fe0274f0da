"""What UCTopic is trained and fine-tuned on, and how."""

from __future__ import annotations

import re
from dataclasses import dataclass

from schemas.options import BadValue, count, number, option, share
from trainers.training.options import Training, changed, positive

weight = number(float, lambda each: 0 <= each < float("inf"), "a number from 0 on")


@dataclass(frozen=True)
class MentionTraining(Training):
    """What both have in common."""

    temperature: float = option(0.05, takes=positive, metavar="X", help="of InfoNCE", source="UCTopic's code")
    masks: str = option(
        "one",
        choices=("one", "subtokens"),
        help="what stands for a masked mention: one mask, or one for each of its sub-tokens",
        more="Its text allows both; the code has one for each sub-token, which reveals the length",
    )
    max_tokens: int = option(
        128,
        takes=count,
        metavar="N",
        help="a sentence of more sub-tokens is cut around its mention",
        source="UCTopic's code, which cuts the end off",
    )


@dataclass(frozen=True)
class UCTopicTraining(MentionTraining):
    """How UCTopic is trained."""

    model: str = changed(Training, "model", "studio-ousia/luke-base", source="UCTopic, section 4.1")
    batch_size: int = changed(Training, "batch_size", 100, source="UCTopic's code")
    rate: float = changed(Training, "rate", 5e-5, source="UCTopic, section 4.1")
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


def numbers_of(text: str) -> tuple[int, ...]:
    """
    >>> numbers_of("5-7,10")
    (5, 6, 7, 10)
    """
    found: set[int] = set()
    for each in text.split(","):
        one = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", each.strip())
        first, last = (int(one[1]), int(one[2] or one[1])) if one else (0, 0)
        if not 2 <= first <= last:
            raise BadValue(f"must be a number from 2 on, or a range such as 5-30, not {text}")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


@dataclass(frozen=True)
class ClusterTraining(MentionTraining):
    """How a model of mentions is fine-tuned by clusters (CCL)."""

    model: str = changed(Training, "model", "out/uctopic")
    data: tuple[str, ...] = option(
        (), repeated=True, place=True, metavar="DIR", help="the mentions: datasets of them; repeatable"
    )
    mentions_of: str | None = option(
        None,
        metavar="NAME",
        help="instead, the mentions of an evaluation set in --evaluation, without their types: conll, bc5cdr, ...",
        more="UCTopic is evaluated on the mentions that it was fine-tuned on",
    )
    most_mentions: int = option(
        100_000, takes=count, metavar="N", help="at most N mentions, those of lowest hash; it bounds memory"
    )
    topics: tuple[int, ...] = option(
        tuple(range(15, 26)),
        takes=numbers_of,
        metavar="K",
        help="how many clusters, or a range, of which the number with the best silhouette is taken",
        unset="15-25",
        source="UCTopic's code",
    )
    nearest: float = option(
        0.1,
        takes=share,
        metavar="X",
        help="the share of a cluster, nearest to its centroid, that is labelled with it",
        source="UCTopic, section 3.2",
    )
    unmasked: float = option(
        0.5,
        takes=share,
        metavar="X",
        help="share of the positives and negatives that keep their words; anchors are always masked",
        source="UCTopic, section 3.2",
    )
    batch_size: int = changed(Training, "batch_size", 8, source="UCTopic's code")
    rate: float = changed(Training, "rate", 1e-5, source="UCTopic, section 4.1")
    steps: int | None = changed(Training, "steps", 2000, source="UCTopic's code")
