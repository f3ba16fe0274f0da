"""The options of contexts (docs/contexts.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import count, number, option
from transforms.options import mask_token


@dataclass(frozen=True)
class Occurrences:
    """Which occurrences get a context."""

    group: ClassVar[str] = "contexts"

    contexts_per_phrase: int = option(
        1,
        takes=count,
        metavar="M",
        help="contexts of each phrase",
        more="A phrase with fewer occurrences has one for each",
    )


@dataclass(frozen=True)
class WindowRules:
    """How contexts are cut; part of the fingerprint."""

    group: ClassVar[str] = "contexts"

    window: int = option(
        120,
        takes=number(int, lambda each: each >= 2, "a whole number of 2 or more (a window of 1 token is only the mask)"),
        metavar="N",
        help="tokens of a context, the phrase included",
        source="Phrase-BERT, section 3",
    )
    placement: str = option("random", choices=("random", "centre"), help="where the phrase stands in its window")
    mask_token: str = mask_token("the phrase", source="Phrase-BERT, section 3")
    mask_others: bool = option(
        True, flag="--keep-other-occurrences", help="mask only the chosen occurrence in its window"
    )
