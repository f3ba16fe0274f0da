"""The interface of encoders: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]


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
