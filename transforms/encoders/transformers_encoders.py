"""Encoders on torch: transformers whose tokens are pooled here, and any other through sentence-transformers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import transformers

from transforms.encoders.files import EncoderFiles
from transforms.encoders.interface import F32, EncoderIdentity
from transforms.libraries import quiet_transformers
from transforms.parsing.trees import batches_by_length

BATCH_TOKENS = {"cpu": 512, "cuda": 1 << 15}
"""The most tokens of a batch, padding included: few stay in a core's cache, many fill a GPU."""
MAX_CELLS = 1 << 24
"""The most cells of a batch's attention, for texts of hundreds of tokens."""


class _Torch:
    """What both have in common: where they compute. `threads` are one, as in all of our workers."""

    def __init__(self, files: EncoderFiles, identity: EncoderIdentity, *, prefix: str, precision: str) -> None:
        torch.set_num_threads(1)
        self.identity = identity
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self._prefix, self._lowercase = prefix, files.lowercase
        self._dtype: Any = getattr(torch, precision)

    def encode(self, texts: Sequence[str], note: Callable[[int], None] = lambda done: None) -> F32:
        texts = [self._prefix + text for text in texts]
        return self._encode([text.lower() for text in texts] if self._lowercase else texts, note)

    def _encode(self, texts: Sequence[str], note: Callable[[int], None]) -> F32:
        raise NotImplementedError


class TorchEncoder(_Torch):
    """A transformer whose tokens' states are pooled: their mean, their maximum, or the first. Longer texts are cut."""

    def __init__(self, files: EncoderFiles, identity: EncoderIdentity, *, prefix: str, precision: str) -> None:
        super().__init__(files, identity, prefix=prefix, precision=precision)
        with quiet_transformers():
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(files.folder)
            self._model = transformers.AutoModel.from_pretrained(files.folder, dtype=self._dtype)
        self._model = self._model.to(self.device).eval()
        positions = getattr(self._model.config, "max_position_embeddings", None) or sys.maxsize
        self._max_tokens = min(files.max_tokens or sys.maxsize, self._tokenizer.model_max_length, positions)
        self._pooling, self._normalised = files.pooling, files.normalised
        self.dimension: int = self._model.config.hidden_size

    def _encode(self, texts: Sequence[str], note: Callable[[int], None]) -> F32:
        found = np.empty((len(texts), self.dimension), np.float32)
        if not texts:
            return found
        encoded = self._tokenizer(
            list(texts), truncation=True, max_length=self._max_tokens, return_attention_mask=False
        )
        # Not `pad`: its other inputs, such as token types, are the model's defaults for a single text.
        ids = encoded["input_ids"]
        lengths = [len(each) for each in ids]
        for batch in batches_by_length(lengths, max_padded=BATCH_TOKENS[self.device], max_cells=MAX_CELLS):
            padded = torch.full((len(batch), lengths[batch[0]]), self._tokenizer.pad_token_id or 0)
            mask = torch.zeros_like(padded)
            for row, text in enumerate(batch):
                padded[row, : lengths[text]] = torch.tensor(ids[text])
                mask[row, : lengths[text]] = 1
            with torch.inference_mode():
                found[batch] = self._pooled(padded.to(self.device), mask.to(self.device)).cpu().numpy()
            note(len(batch))
        return found

    def _pooled(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """[batch, dimension] of ids and mask, both [batch, tokens]."""
        states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        if self._pooling == "cls":
            pooled = states[:, 0]
        elif self._pooling == "max":
            pooled = states.masked_fill(~mask[..., None].bool(), -torch.inf).amax(dim=1)
        else:
            pooled = (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1)[:, None]
        return torch.nn.functional.normalize(pooled, dim=1) if self._normalised else pooled


class WrappedEncoder(_Torch):
    """A model with modules of its own, run by sentence-transformers."""

    def __init__(self, files: EncoderFiles, identity: EncoderIdentity, *, prefix: str, precision: str) -> None:
        from sentence_transformers import SentenceTransformer

        super().__init__(files, identity, prefix=prefix, precision=precision)
        with quiet_transformers():
            self._model = SentenceTransformer(
                str(files.folder), device=self.device, model_kwargs={"dtype": self._dtype}
            )
        self.dimension = len(self._model.encode("a", show_progress_bar=False))

    def _encode(self, texts: Sequence[str], note: Callable[[int], None]) -> F32:
        found = self._model.encode(list(texts), batch_size=64, show_progress_bar=False, convert_to_tensor=True)
        note(len(texts))
        return found.float().cpu().numpy().reshape(len(texts), self.dimension)
