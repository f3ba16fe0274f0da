"""Paraphrases from causal language models on torch, in the prompt format of pairs or after a prompt with examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import DynamicCache

from transforms.arrays import I64
from transforms.paraphrase.generators.decoding import filled
from transforms.paraphrase.generators.formats import Format, PairFormat, PromptFormat, StyleTransferFormat
from transforms.paraphrase.generators.torch_generator import TorchGenerator
from transforms.paraphrase.options import GeneratorOptions


class CausalSteps:
    """A causal model's keys and values for the rows of a batch, those of the shared prefix included."""

    def __init__(self, model: Any, device: str, segments: tuple[int, int] | None, prefix: Any) -> None:
        self._model, self._device, self._segments, self._prefix = model, device, segments, prefix
        self._cache: Any = None
        self._rows = 0

    def begin(self, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
        rows = filled(np.arange(len(prompts)))
        ids = torch.tensor([prompts[row] for row in rows])
        self._cache, self._rows = _expanded(self._prefix, len(rows)), len(rows)
        types = None
        if self._segments:
            types = torch.full_like(ids, self._segments[0])
            types[:, -1] = self._segments[1]  # of the separator
        return self._forward(ids, types)[: len(prompts)]

    def advance(self, parents: I64, tokens: I64) -> torch.Tensor:
        rows = filled(np.arange(len(parents)))
        parents, tokens = parents[rows], tokens[rows]
        if len(parents) != self._rows or (parents != np.arange(self._rows)).any():
            self._cache.batch_select_indices(torch.from_numpy(parents).to(self._device))
            self._rows = len(parents)
        ids = torch.from_numpy(tokens)[:, None]
        types = torch.full_like(ids, self._segments[1]) if self._segments else None
        return self._forward(ids, types)[: rows.max() + 1]

    def _forward(self, ids: torch.Tensor, types: torch.Tensor | None) -> torch.Tensor:
        more = {} if types is None else {"token_type_ids": types.to(self._device)}
        said = self._model(
            input_ids=ids.to(self._device), past_key_values=self._cache, use_cache=True, logits_to_keep=1, **more
        )
        logits: torch.Tensor = said.logits[:, -1].float()
        return logits


def _expanded(prefix: Any, rows: int) -> DynamicCache:
    """The keys and values of a prefix for each row of a batch; its memory is shared until tokens are added."""
    cache = DynamicCache()
    for number, layer in enumerate(prefix.layers if prefix else ()):
        cache.update(layer.keys.expand(rows, -1, -1, -1), layer.values.expand(rows, -1, -1, -1), number)
    return cache


class CausalGenerator(TorchGenerator):
    """A causal language model. `prompt`: a template; empty: a model that was trained on pairs, in their format."""

    loads = transformers.AutoModelForCausalLM
    _cached: DynamicCache | None = None

    def _load(self, folder: Path, options: GeneratorOptions) -> Any:
        model = super()._load(folder, options)
        model.config.pad_token_id = None  # else transformers warns of padding, which the released paraphraser reads
        return model

    def _format(self, prompt: str) -> Format:
        return format_of(self.tokenizer, prompt)

    def _steps(self) -> CausalSteps:
        return CausalSteps(self.model, self.device, self.format.segments, self._prefix())

    def _room(self, prompt: Sequence[int]) -> int:
        positions: int = getattr(self.model.config, "max_position_embeddings", 1 << 30)
        return positions - len(self.format.prefix) - len(prompt)

    def _prefix(self) -> DynamicCache | None:
        """The keys and values of the tokens before every phrase, computed once."""
        if self.format.prefix and self._cached is None:
            self._cached = DynamicCache()
            ids = torch.tensor([self.format.prefix], device=self.device)
            self.model(input_ids=ids, past_key_values=self._cached, use_cache=True, logits_to_keep=1)
        return self._cached

    def _logits(self, prompts: torch.Tensor, answers: torch.Tensor, *, alone: bool) -> torch.Tensor:
        ids, count = torch.cat([prompts, answers[:, :-1]], dim=1), answers.shape[1]
        more = {}
        if self.format.segments:
            more["token_type_ids"] = torch.full_like(ids, self.format.segments[0])
            more["token_type_ids"][:, -count:] = self.format.segments[1]
        cache = _expanded(None if alone else self._prefix(), len(ids))
        logits: torch.Tensor = self.model(
            input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=count, **more
        ).logits
        return logits


def format_of(tokenizer: Any, prompt: str) -> Format:
    """The format of a prompt, or of pairs: as the released paraphraser has it, where the model is such a one."""
    if prompt:
        return PromptFormat(tokenizer, prompt)
    return StyleTransferFormat(tokenizer) if StyleTransferFormat.fits(tokenizer) else PairFormat(tokenizer)
