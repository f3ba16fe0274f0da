"""A sentence-transformers model as a network to train: texts in batches of similar length, and its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from transforms.libraries import quiet_transformers
from transforms.parsing.trees import batches_by_length

GROUP_TOKENS = {"cpu": 1024, "cuda": 1 << 16}
"""The most tokens that run at a time, padding included: texts of like length run together, as padding costs time."""
MAX_CELLS = 1 << 24


class PhraseEncoder(nn.Module):
    """A model of texts. Its inputs are lists of token ids (`tokens`)."""

    def __init__(self, model: SentenceTransformer, *, max_tokens: int | None = None) -> None:
        super().__init__()
        self.model = model.float()
        self._tokenizer: Any = model.tokenizer
        self._max_tokens = min(model.max_seq_length or 512, max_tokens or 512)
        self.dimension = int(model.get_embedding_dimension() or 0)

    @classmethod
    def load(cls, name: str, *, max_tokens: int | None = None) -> PhraseEncoder:
        """A folder or a name on the hub; without modules of its own the mean of its tokens."""
        with quiet_transformers():
            return cls(SentenceTransformer(name, model_kwargs={"dtype": torch.float32}), max_tokens=max_tokens)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = self._tokenizer(
            list(texts), truncation=True, max_length=self._max_tokens, return_attention_mask=False
        )["input_ids"]
        return found

    def forward(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """[n, dimension]"""
        device = next(self.model.parameters()).device
        lengths = [len(each) for each in ids]
        parts, rows = [], []
        for group in batches_by_length(lengths, max_padded=GROUP_TOKENS[device.type], max_cells=MAX_CELLS):
            padded = torch.zeros(len(group), max(lengths[each] for each in group), dtype=torch.long)
            mask = torch.zeros_like(padded)
            for row, text in enumerate(group):
                padded[row, : lengths[text]] = torch.tensor(ids[text])
                mask[row, : lengths[text]] = 1
            features = {"input_ids": padded.to(device), "attention_mask": mask.to(device)}
            parts.append(self.model(features)["sentence_embedding"].float())
            rows += group
        back = torch.empty(len(rows), dtype=torch.long)
        back[torch.tensor(rows)] = torch.arange(len(rows))
        return torch.cat(parts)[back.to(device)]

    def save(self, folder: Path) -> None:
        with quiet_transformers():
            self.model.save_pretrained(str(folder), create_model_card=False)
