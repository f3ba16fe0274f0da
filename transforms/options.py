"""Options that several kernels share: each is declared once, here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from schemas.options import option, share, whole


@dataclass(frozen=True)
class Draws:
    """What decides all choices by hash."""

    group: ClassVar[str] = "choices by hash"

    validation_rate: float = option(
        0.0,
        takes=share,
        metavar="RATE",
        help="share of documents, or of the entities of pairs, in the split validation",
    )
    seed: int = option(
        0,
        takes=whole,
        metavar="N",
        help="of every choice",
        more="of occurrences or mentions, of the place of a phrase in its window, of split and order",
    )


def mask_token(what: str) -> Any:
    """The option `mask_token`; `what` is masked by it."""
    return option(
        "[MASK]",
        metavar="TEXT",
        help=f"what replaces {what}",
        more="once, however many tokens it has",
        source="Phrase-BERT, section 3",
    )
