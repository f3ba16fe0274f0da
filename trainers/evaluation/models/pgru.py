"""Pairwise-GRU: the folders that `trainers.train pgru` writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from schemas.errors import UserError
from trainers.evaluation.model import F32, FoundModel, Model
from trainers.evaluation.models.options import ModelOptions
from trainers.evaluation.models.word_vectors import OfWords
from trainers.pgru.files import NAME, read_config, sha256_of_gru

if TYPE_CHECKING:
    from trainers.pgru.network import PhraseGRU

VERSION = 1

AT_ONCE = 1 << 12
"""How many texts are in a batch: it bounds memory."""


def find(name: str, options: ModelOptions) -> FoundModel | None:
    folder = Path(name)

    def load() -> Model:
        try:
            from trainers.pgru.network import PhraseGRU
        except ModuleNotFoundError as error:
            raise UserError(f"MODEL {name}: needs {error.name}: pip install 'phrasemill[train]'") from error
        return LastState(name, PhraseGRU.load(folder))

    if read_config(folder) is None:
        return None
    return FoundModel(name, {"model": NAME, "version": VERSION, "sha256": sha256_of_gru(folder)}, load)


class LastState(OfWords):
    """The last state of the GRU. A text without a known word has the vector 0."""

    def __init__(self, name: str, network: PhraseGRU) -> None:
        super().__init__(network.words)
        self.name, self._network, self.dimension = name, network, network.dimension

    def encode(self, texts: Sequence[str]) -> F32:
        import torch

        was, phrases = self._network.training, self.noted(texts)
        found = np.zeros((len(texts), self.dimension), np.float32)
        with torch.inference_mode():
            self._network.eval()
            for first in range(0, len(texts), AT_ONCE):
                found[first : first + AT_ONCE] = self._network(phrases[first : first + AT_ONCE]).cpu().numpy()
            self._network.train(was)
        return found
