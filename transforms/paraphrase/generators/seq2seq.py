"""Paraphrases from sequence-to-sequence models on torch: T5, such as Parrot's, BART, Pegasus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import transformers
from transformers import DynamicCache, EncoderDecoderCache

from schemas.errors import UserError
from transforms.arrays import I64
from transforms.paraphrase.generators.decoding import filled
from transforms.paraphrase.generators.formats import TaskFormat
from transforms.paraphrase.generators.interface import Likelihood
from transforms.paraphrase.generators.torch_generator import TorchGenerator


class Seq2SeqSteps:
    """The states of a decoder for the rows of a batch, and what its encoder read."""

    def __init__(self, model: Any, device: str) -> None:
        self._model, self._device = model, device
        self._cache: Any = None
        self._read: torch.Tensor = torch.empty(0)
        self._rows = 0

    def begin(self, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
        rows = filled(np.arange(len(prompts)))
        ids = torch.tensor([prompts[row] for row in rows], device=self._device)
        self._read = self._model.get_encoder()(input_ids=ids).last_hidden_state
        self._cache, self._rows = EncoderDecoderCache(DynamicCache(), DynamicCache()), len(rows)
        first = torch.full((len(rows), 1), self._model.config.decoder_start_token_id)
        return self._forward(first)[: len(prompts)]

    def advance(self, parents: I64, tokens: I64) -> torch.Tensor:
        rows = filled(np.arange(len(parents)))
        parents, tokens = parents[rows], tokens[rows]
        if len(parents) != self._rows or (parents != np.arange(self._rows)).any():
            chosen = torch.from_numpy(parents).to(self._device)
            self._cache.batch_select_indices(chosen)
            self._read = self._read[chosen]
            self._rows = len(parents)
        return self._forward(torch.from_numpy(tokens)[:, None])[: rows.max() + 1]

    def _forward(self, ids: torch.Tensor) -> torch.Tensor:
        said = self._model(
            decoder_input_ids=ids.to(self._device),
            encoder_outputs=(self._read,),
            past_key_values=self._cache,
            use_cache=True,
        )
        logits: torch.Tensor = said.logits[:, -1].float()
        return logits


class Seq2SeqGenerator(TorchGenerator):
    """A sequence-to-sequence model that was trained to paraphrase."""

    loads = transformers.AutoModelForSeq2SeqLM

    def _format(self, prompt: str) -> TaskFormat:
        return TaskFormat(self.tokenizer)

    def _steps(self) -> Seq2SeqSteps:
        return Seq2SeqSteps(self.model, self.device)

    def _room(self, prompt: Sequence[int]) -> int:
        positions: int = getattr(self.model.config, "max_position_embeddings", None) or 1 << 30
        return positions

    def _logits(self, prompts: torch.Tensor, answers: torch.Tensor, *, alone: bool) -> torch.Tensor:
        start = torch.full_like(answers[:, :1], self.model.config.decoder_start_token_id)
        logits: torch.Tensor = self.model(
            input_ids=prompts, decoder_input_ids=torch.cat([start, answers[:, :-1]], dim=1)
        ).logits
        return logits

    def log_likelihoods(self, texts: Sequence[str]) -> list[Likelihood]:
        raise UserError(
            f"--generator {self.identity.generator}: does not say how likely a text is by itself; choose a causal model"
        )
