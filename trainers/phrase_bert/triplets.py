"""Triples of texts: which datasets have them, and what is done with their masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.manifest import is_dataset
from schemas.storage.folder import Folder
from trainers.data import Source

COLUMNS = ("anchor", "positive", "negative")
VIEW = "triplets"


class Triplets(NamedTuple):
    """A source with `COLUMNS`, and the tokens that stand in its texts for what was taken out: "" if none does."""

    source: Source
    mask: str
    unknown: str


def open_triplets(place: str) -> Triplets:
    """A dataset whose kind declares the view "triplets", or Parquet files with the three columns."""
    if place.endswith(".parquet") or not is_dataset(Folder(place)):
        return Triplets(Source.open(place, columns=COLUMNS), "", "")
    manifest = Dataset.open(place).manifest
    view = manifest.kind.views.get(VIEW)
    if view is None:
        raise UserError(
            f"{place}: its rows are no triples of texts; give a dataset that mine_contexts or paraphrase makes, or "
            f"Parquet files with the columns {', '.join(COLUMNS)}"
        )
    mask, unknown = (str(manifest.options.get(name, "")) for name in ("mask_token", "unknown_token"))
    return Triplets(Source.open(place, columns=dict(zip(view, COLUMNS, strict=True))), mask, unknown)


def cut(tokens: Sequence[int], *, most: int, about: int | None) -> list[int]:
    """At most `most` tokens, with the first and the last, which are the model's own.

    Of the others a run is kept: the first ones, or, if `about` is among them, one in which its first occurrence has as
    many tokens before it, in proportion, as in the text. So the place of a mask tells no more than it did.
    """
    first, *inner, last = tokens
    room = most - 2
    if len(inner) <= room:
        return [*tokens]
    begin = 0
    if about in inner:
        begin = round(inner.index(about) * (len(inner) - room) / (len(inner) - 1))
    return [first, *inner[begin : begin + room], last]
