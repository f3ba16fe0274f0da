"""What Phrase-BERT is trained on, and how."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.options import BadValue, count, option
from trainers.training.options import Training, changed, positive


def shares(text: str) -> tuple[float, ...]:
    """ "3,1": numbers above 0."""
    try:
        return tuple(map(positive, text.split(",")))
    except ValueError:
        raise BadValue(f"must be numbers above 0 with commas between, not {text}") from None


@dataclass(frozen=True)
class PhraseBertTraining(Training):
    """How Phrase-BERT is trained."""

    model: str = changed(
        Training, "model", "sentence-transformers/bert-base-nli-stsb-mean-tokens", source="Phrase-BERT's code"
    )
    warm_up: float = changed(Training, "warm_up", 0.1, source="Phrase-BERT, section 3.3")
    weights: tuple[float, ...] | None = option(
        None,
        takes=shares,
        metavar="X,X",
        help="the shares of the datasets in the rows, in their order",
        unset="in proportion to their rows",
    )
    margin: float = option(
        1.0,
        takes=positive,
        metavar="X",
        help="how much nearer the positive is to be than the negative",
        source="Phrase-BERT, section 3.3",
    )
    max_tokens: int = option(
        192,
        takes=count,
        metavar="N",
        help="cut texts to N tokens of the model, or fewer if it takes no more. Of a context those about the mask are "
        "kept. Nearly all contexts of 120 words have at most 192",
    )
