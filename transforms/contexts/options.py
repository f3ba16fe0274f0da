"""The options of contexts (docs/contexts.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import count, natural, number, option
from schemas.terms import NEGATIVES
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
    unknown_token: str = option(
        "[UNK]", metavar="TEXT", help="what replaces a word that the corpus withholds, such as WikiText's <unk>"
    )
    max_unknown_words: int = option(
        18,
        takes=natural,
        metavar="N",
        help="leave out contexts with more such words",
        more="18 of 120 tokens are the 15 % that BERT loses when it is trained",
    )


@dataclass(frozen=True)
class NegativeRules:
    """Which context is the negative of another; part of the fingerprint."""

    group: ClassVar[str] = "contexts"

    negatives: str = option(
        "random",
        choices=tuple(NEGATIVES),
        help="what the negative has in common with its row",
        source="Phrase-BERT, section 3",
    )
