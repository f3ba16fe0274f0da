"""Phrase-BERT (Wang, Thompson and Iyyer 2021, section 3): what it learns from, and its loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from torch import Tensor

from schemas.errors import UserError
from trainers.phrase_bert.options import PhraseBertTraining
from trainers.phrase_bert.triplets import COLUMNS, cut, open_triplets
from trainers.training.encoder import PhraseEncoder
from trainers.training.losses import triplet
from trainers.training.recipe import Batch, Encoded


class PhraseBert:
    """The network is an encoder; a row is a triple of texts."""

    name = "phrase_bert"

    def __init__(self, options: PhraseBertTraining) -> None:
        found = [open_triplets(each) for each in options.data]
        self.sources = [each.source for each in found]
        self.weights = options.weights
        self._places = ", ".join(options.data)
        self.network = PhraseEncoder.load(options.model, max_tokens=options.max_tokens, options=options)
        self.network.normalise(options.normalise)
        self._margin = options.margin
        self._tokenizer: Any = self.network.model.tokenizer
        own = self._tokenizer.mask_token, self._tokenizer.unk_token
        self._instead = {
            theirs: mine
            for each in found
            for theirs, mine in zip((each.mask, each.unknown), own, strict=True)
            if theirs and theirs != mine
        }

    def prepare(self, table: pa.Table) -> Batch:
        """The tokens of all anchors, then of all positives, then of all negatives.

        A row without a negative, as mine_contexts makes it where there is no other phrase, is left out.
        """
        rows = [row for row in table.to_pylist() if row["negative"]]
        for row in rows:
            if not (row["anchor"] and row["positive"]):
                raise UserError(f"{self._places}: a row without an anchor or a positive: {row}; leave it out")
        if not rows:
            raise UserError(f"{self._places}: a batch without negatives; mine the contexts of more phrases")
        return Batch(self._tokens([row[name] for name in COLUMNS for row in rows]), len(rows))

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        for theirs, mine in self._instead.items():
            texts = [text.replace(theirs, mine) for text in texts]
        mask = self._tokenizer.mask_token_id
        return [cut(each, most=self.network.max_tokens, about=mask) for each in self.network.tokens(texts, whole=True)]

    def encode(self, inputs: Sequence[Any]) -> Encoded:
        return Encoded(self.network(inputs))

    def losses(self, vectors: Tensor, batch: Batch) -> Mapping[str, Tensor]:
        anchors, positives, negatives = vectors.chunk(3)
        return {"triplet": triplet(anchors, positives, negatives, margin=self._margin)}

    def save(self, folder: Path) -> None:
        self.network.save(folder)
