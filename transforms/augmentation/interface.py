"""The interface of augmentations: a batch of phrases with seeds in, the augmented phrases out.

A new augmentation is a file with an `Augmenter` and a line in `registry.py`. Its module imports nothing large at its
top: the identity of an augmentation is asked for without using it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.arrays import I64, U64, mix64


class Augmenter(ABC):
    """An operation, loaded once in a process. The options that `registry.py` lists are its keyword arguments."""

    @abstractmethod
    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        """[n] each phrase after one operation; null where it changes nothing.

        A row depends on its phrase and its seed alone, not on the others of the batch. All choices are made with
        `pick`. The phrases have no white space at either end; neither has what is made of them. A result that differs
        from its phrase in case alone counts as null.
        """

    @classmethod
    def identity(cls, **options: Any) -> Mapping[str, Any] | None:
        """What decides the output beyond our code and the options: the model or lexicon, for fingerprint and manifest.

        JSON values, such as {"operation": "synonym", "model": "WordNet", "model_version": "3.0", "model_sha256": ...,
        "libraries": {"nltk": "3.9"}}. None if there is nothing. UserError, with the remedy, if a file or a library
        is missing.
        """
        return None


def pick(seeds: U64, choice: int, among: I64) -> I64:
    """[n] for each seed a number from 0 to `among` - 1, evenly; `choice` numbers the choices that share a seed.

    `among` is below 2^32; where it is 0, so is the number.
    """
    high = mix64(seeds + np.uint64(choice)) >> np.uint64(32)
    return ((high * among.astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


def share_of(seeds: U64) -> npt.NDArray[np.float64]:
    """[n] for each seed a number of 0 or more and below 1, evenly."""
    return (mix64(seeds) >> np.uint64(12)) * 2.0**-52  # below 1 also after a product is rounded
