"""Vectors of texts, and their products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from schemas.errors import UserError
from trainers.evaluation.model import F32, Model

F64 = npt.NDArray[np.float64]

_AT_ONCE = 1 << 12
"""Vectors that are in memory in double precision."""


def encoded(model: Model, texts: Sequence[str]) -> F32:
    """[n, dimension] a vector for each text. Each distinct text is encoded once: equal texts have equal vectors.

    UserError if a vector has a value that is not finite.
    """
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    vectors = finite(model, list(places), model.encode(list(places)))
    return vectors if len(places) == len(texts) else vectors[[places[text] for text in texts]]


def finite(model: Model, texts: Sequence[str], vectors: F32) -> F32:
    """The vectors of these texts. UserError if one of them has a value that is not finite."""
    broken = ~np.isfinite(vectors).all(axis=1)
    if broken.any():
        text = texts[int(np.argmax(broken))]
        raise UserError(f"{model.name}: the vector of {text!r} is not finite: give a model that has been trained")
    return vectors


def unit(vectors: F32) -> F32:
    """[n, d] the vectors at length 1, so that their products are cosines; a vector of zeros stays as it is."""
    found = np.zeros(vectors.shape, np.float32)
    for start in range(0, len(vectors), _AT_ONCE):
        part = vectors[start : start + _AT_ONCE]
        lengths = np.sqrt(products(part, part))[:, None]
        np.divide(part, lengths, out=found[start : start + _AT_ONCE], where=lengths > 0, casting="same_kind")
    return found


def products(one: F32, other: F32) -> F64:
    """The dot products of the last axes, in double precision.

    A product depends on its two vectors only, not on what is beside them, as those of a matrix product may: what is
    equal stays equal, and a tie is a tie.
    """
    return np.asarray((one.astype(np.float64) * other).sum(axis=-1))
