"""The pieces of the input that are measured: how many, how large, and which."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from schemas.storage.folder import Folder

POINTS = 8
"""Points, evenly spread over the input, at which it is measured."""
SAMPLE_TEXT = {"phrasemill": 4 << 20, "spacy": 4 << 20}
SLOW_SAMPLE_TEXT = 400_000
"""Bytes of text of a sample that is parsed: half a minute for a fast parser, minutes for the others."""
PARSED_BYTES, PARSED_POINTS = 16 << 20, 24
"""Of a sentences dataset much more can be measured in the time."""
FEWEST = 3
"""Pieces, however large they are."""


class Piece(NamedTuple):
    """A part of the input that was measured: its size as stored, and how many points fell on it.

    `stratum`: input of one kind is sampled and scaled up for itself. `thinned`: the characters of its documents for
    each of those that went through all stages.
    """

    size: float
    hits: float = 1
    stratum: int = 0
    thinned: float = 1


class Pieces(NamedTuple):
    """The pieces of the input that were measured, of strata of given sizes, and where each went.

    `of_units`: for each unit of extract its pieces. `of_shards`: for each shard of documents its piece.
    `begun`: the share of the points at which only the beginning of something could be read.
    """

    pieces: list[Piece]
    sizes: list[float]
    of_units: list[list[int]]
    of_shards: list[int]
    begun: float = 0

    @property
    def share(self) -> float:
        """How much of the input was measured."""
        return sum(piece.size for piece in self.pieces) / max(sum(self.sizes), 1)

    @property
    def is_whole(self) -> bool:
        return self.share >= 1


class Lengths(NamedTuple):
    """Documents of a shard: how many, their characters, and the sum of the squares of their lengths."""

    documents: int
    characters: float
    squares: float


def spread(sizes: Sequence[int], points: int) -> Counter[int]:
    """The things on which evenly spread points fall, and how many on each, in proportion to size."""
    ends = list(accumulate(sizes))
    places = [(2 * point + 1) * ends[-1] // (2 * points) for point in range(points)] if ends and ends[-1] else []
    return Counter(bisect_right(ends, place) for place in places)


def most_text_of(parser: str | None) -> int:
    """Bytes of text of a sample that goes through a parser, or through none."""
    return PARSED_BYTES if parser is None else SAMPLE_TEXT.get(parser, SLOW_SAMPLE_TEXT)


def name_of(folder: Folder) -> str:
    return folder.name
