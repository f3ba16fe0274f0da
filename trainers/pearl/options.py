"""How PEARL is trained."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.options import count, natural, number, option, reject_rate, some_of
from schemas.terms import ENTITY_TYPES, NO_ENTITY
from trainers.training.options import Training, changed, positive, weights

at_least_0 = number(float, lambda each: 0 <= each < float("inf"), "a number of 0 or more")


@dataclass(frozen=True)
class PearlTraining(Training):
    """How PEARL is trained (Chen et al. 2024)."""

    model: str = changed(Training, "model", "intfloat/e5-small-v2", source="PEARL, section 4.2")
    epochs: float = changed(Training, "epochs", 2.0, source="PEARL, section 4.2")
    batch_size: int = changed(Training, "batch_size", 512, source="PEARL, section 4.2")
    rate: float = changed(Training, "rate", 3e-5, source="PEARL, section 4.2")
    decay: float = option(
        0.98, takes=reject_rate, metavar="X", help="what the rate is multiplied by", source="PEARL, section 4.2"
    )
    decay_steps: int = option(2000, takes=count, metavar="N", help="after each N steps", source="PEARL, section 4.2")
    weights: tuple[float, ...] = option(
        (),
        takes=weights,
        metavar="X,...",
        help="shares of the datasets with pairs in each step, in their order",
        unset="in proportion to their rows",
    )
    temperature: float = option(
        0.07, takes=positive, metavar="X", help="of the cosines (InfoNCE)", source="PEARL, section 4.2"
    )
    symmetric: bool = option(False, help="each positive also has to find its phrase among the phrases")
    hard_negatives: int = option(
        2,
        takes=natural,
        metavar="N",
        help="hard negatives of each phrase",
        more="The paper says two for each mini-batch; its code takes two for each phrase",
        source="PEARL's code",
    )
    type_weight: float = option(
        1.0, takes=at_least_0, metavar="X", help="of the loss of the types of phrases", source="PEARL"
    )
    type_shares: bool = option(False, help="learn the shares of a phrase's types, not its commonest type")
    apart: bool = option(False, help="contexts are no negatives of rows without a context, and the other way round")
    min_score: float | None = option(
        None, takes=float, metavar="X", help="learn from pairs with at least this score only", unset="all"
    )
    types_of: tuple[str, ...] = option(
        (),
        takes=some_of((*ENTITY_TYPES, NO_ENTITY)),
        metavar="TYPES",
        help="learn from the phrases of these entity types, too, each with itself: it is their types that are learned",
        unset="no row is a phrase alone",
    )
    types_words: int = option(6, takes=count, metavar="N", help="words of such a phrase, at most")
    context_words: int = option(12, takes=natural, metavar="N", help="words of a context on each side of its mask")
    characters: bool = option(
        True, flag="--no-characters", help="without the character encoder", source="PEARL, section 3.2"
    )
    character_width: int = option(
        300, takes=count, metavar="N", help="width of the character encoder", source="LOVE's code"
    )
    character_dimension: int = option(
        96, takes=count, metavar="N", help="what its vector is reduced to", source="PEARL's code, the small model"
    )
    character_length: float = option(
        0.1,
        takes=positive,
        metavar="X",
        help="the length of the new character encoder's vectors, in lengths of the model's",
    )
    new_rate: float = option(
        50.0,
        takes=positive,
        metavar="X",
        help="the rate of what begins untrained, the character encoder and the head of the types, in rates of the rest",
    )
    base_share: float = option(
        0.5,
        takes=reject_rate,
        metavar="X",
        help="weight of the model to begin with in the mean of both models that is saved",
        source="PEARL, section 4.2",
    )
    normalise: bool = option(False, help="the saved model gives vectors of length 1", source="PEARL's code")
