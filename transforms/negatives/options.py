"""The options of negatives (docs/negatives.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import count, option, share


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
