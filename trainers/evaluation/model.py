"""What the evaluation asks of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]


class Passage(NamedTuple):
    """A tokenised sentence and a span in it: `tokens[start_token : end_token]`."""

    tokens: Sequence[str]
    start_token: int
    end_token: int


class Model(Protocol):
    """A loaded model. A vector depends only on its text, up to floating point.

    name        as it was given
    dimension   of its vectors
    contextual  whether a span's vector depends on its sentence
    """

    name: str
    dimension: int
    contextual: bool

    def encode(self, texts: Sequence[str]) -> F32:
        """[n, dimension] a vector for each text, as the model gives it: of length 1 only if the model makes it so."""
        ...

    def encode_spans(self, passages: Sequence[Passage]) -> F32:
        """[n, dimension] a vector for each span in its sentence."""
        ...
