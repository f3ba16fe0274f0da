"""What Phrase-BERT is trained on, and how."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.options import count, option
from trainers.training.options import Training, changed, positive, weights


@dataclass(frozen=True)
class PhraseBertTraining(Training):
    """How Phrase-BERT is trained."""

    model: str = changed(
        Training, "model", "sentence-transformers/bert-base-nli-stsb-mean-tokens", source="Phrase-BERT's code"
    )
    warm_up: float = changed(Training, "warm_up", 0.1, source="Phrase-BERT, section 3.3")
    weights: tuple[float, ...] | None = option(
        None,
        takes=weights,
        metavar="X,...",
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
    normalise: bool = option(
        False,
        help="vectors of length 1; by default they have any length, as the paper's, whatever the model gave before",
    )
