"""The options of negatives (docs/negatives.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import count, number, option, share


@dataclass(frozen=True)
class NeighbourRules:
    """Which phrases are neighbours by their letters; part of the fingerprint."""

    group: ClassVar[str] = "neighbours"

    candidates: int = option(
        50,
        takes=count,
        metavar="K",
        help="neighbours of a phrase, the most similar of all phrases",
        more="Of equally similar ones, those of lowest hash are taken",
        source="PEARL's code",
    )
    min_edit_similarity: float = option(
        0.7,
        takes=share,
        metavar="S",
        help="take only neighbours whose edit similarity is above S",
        more="The similarity is 2 x (longest common subsequence) / (length of both), in code points: RapidFuzz's ratio",
        source="PEARL's code",
    )


COSINES = ("centred", "scaled", "plain")


@dataclass(frozen=True)
class HardNegativeRules:
    """Which neighbours are hard negatives; part of the fingerprint."""

    group: ClassVar[str] = "hard negatives"

    negatives: int = option(
        12,
        takes=count,
        metavar="K",
        help="hard negatives of a phrase at most, those of the largest difference",
        source="PEARL's code",
    )
    min_difference: float = option(
        0.3,
        takes=number(float, lambda each: -1 <= each < 2, "a number of -1 or more and below 2"),
        metavar="D",
        help="keep neighbours whose edit similarity exceeds the cosine of their embeddings by more than D",
        source="PEARL's code",
    )
    cosine: str = option(
        "centred",
        choices=COSINES,
        help="the cosine that counts: 0 is the mean of all pairs of phrases, or the lowest of the row; or as it is",
        more="PEARL's code takes scaled. See [Which cosine](#which-cosine)",
    )
    keep_variants: bool = option(
        False,
        help="keep neighbours that differ in spelling, hyphens, inflection, determiners or a first preposition only",
    )
