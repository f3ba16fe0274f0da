"""Vectors of texts, and their products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from schemas.errors import UserError
from trainers.evaluation.model import F32, Model

F64 = npt.NDArray[np.float64]


def encoded(model: Model, texts: Sequence[str]) -> F32:
    """[n, dimension] a vector for each text. Each distinct text is encoded once: equal texts have equal vectors.

    UserError if a vector has a value that is not finite.
    """
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    vectors = model.encode(list(places))
    broken = ~np.isfinite(vectors).all(axis=1)
    if broken.any():
        text = list(places)[int(np.argmax(broken))]
        raise UserError(f"{model.name}: the vector of {text!r} is not finite: give a model that has been trained")
    return vectors[[places[text] for text in texts]]


def unit(vectors: F32) -> F32:
    """[n, d] the vectors at length 1, so that their products are cosines; a vector of zeros stays as it is."""
    lengths = np.sqrt(products(vectors, vectors))
    return np.divide(vectors, lengths[:, None], out=np.zeros(vectors.shape), where=lengths[:, None] > 0).astype("f4")


def products(one: F32, other: F32) -> F64:
    """The dot products of the last axes, in double precision.

    A product depends on its two vectors only, not on what is beside them, as those of a matrix product may: what is
    equal stays equal, and a tie is a tie.
    """
    return np.asarray((one.astype(np.float64) * other).sum(axis=-1))
