"""The interface of encoders: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]


class Passage(NamedTuple):
    """A tokenised sentence and a span in it: `tokens[start_token : end_token]`."""

    tokens: Sequence[str]
    start_token: int
    end_token: int


class EncoderIdentity(NamedTuple):
    """What decides an encoder's output; part of fingerprints and manifests."""

    encoder: str  # the last part of its name
    version: int  # of our own code for it, raised by hand
    sha256: str  # of its files
    pooling: str
    normalised: bool  # whether the vectors have length 1
    libraries: dict[str, str]


class Encoder(Protocol):
    """A loaded encoder, loaded once in a process. The output of a call depends only on its input and the identity.

    `device` is where it computes, "cpu" or "cuda".
    """

    identity: EncoderIdentity
    dimension: int
    device: str

    def encode(self, texts: Sequence[str], note: Callable[[int], None] = lambda done: None) -> F32:
        """[n, dimension] a vector for each text. `note` is called with the number of texts of each batch."""
        ...


class SpanEncoder(Encoder, Protocol):
    """An encoder that also knows what its tokens become in their sentences."""

    def encode_spans(
        self, passages: Sequence[Passage], *, masks: int | None = None, note: Callable[[int], None] = lambda done: None
    ) -> F32:
        """[n, dimension] for each span the mean over its sub-tokens in its sentence; 0 for a span without any.

        With `masks` the span is replaced: by that many mask tokens, or (0) by one for each of its tokens. A sentence
        longer than the model takes is cut around its span.
        """
        ...
