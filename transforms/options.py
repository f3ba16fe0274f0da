"""Options that several kernels share: each is declared once, here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from schemas.options import option, share, whole


@dataclass(frozen=True)
class Seed:
    """What decides all choices by hash."""

    group: ClassVar[str] = "choices by hash"

    seed: int = option(
        0,
        takes=whole,
        metavar="N",
        help="the seed of every choice",
        more="It decides which occurrences or mentions are taken, the place of a phrase in its window, splits, order",
    )


@dataclass(frozen=True)
class Draws(Seed):
    """And which of them are of the split validation."""

    validation_rate: float = option(
        0.0,
        takes=share,
        metavar="RATE",
        help="share of documents, or of the entities of pairs, in the split validation",
    )


def mask_token(what: str, *, source: str = "") -> Any:
    """The option `mask_token`; `what` is masked by it."""
    return option(
        "[MASK]",
        metavar="TEXT",
        help=f"what replaces {what}",
        more="One mask, however many tokens it has",
        source=source,
    )
