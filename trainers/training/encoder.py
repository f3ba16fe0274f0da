"""A sentence-transformers model as a network to train: texts in batches of similar length, and its folder."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import Tensor, nn

from schemas.errors import UserError
from trainers.training.options import Training
from trainers.training.portable import make_portable
from transforms.encoders.files import brings_no_code, find_encoder
from transforms.encoders.transformers_encoders import padded_batches
from transforms.libraries import quiet_transformers


class PhraseEncoder(nn.Module):
    """A model of texts. Its inputs are lists of token ids (`tokens`).

    dimension   of its vectors
    max_tokens  the most of a text, the model's own included
    normalised  whether it gives them length 1
    inner       the transformer
    """

    def __init__(self, model: SentenceTransformer, *, max_tokens: int | None = None) -> None:
        super().__init__()
        self.model = model.float()
        self._tokenizer: Any = model.tokenizer
        positions = getattr(self.inner.config, "max_position_embeddings", None)
        most = (model.max_seq_length, self._tokenizer.model_max_length, positions, max_tokens)
        self.max_tokens = min(each for each in most if each)
        self._prefix = model.prompts.get(model.default_prompt_name or "") or ""
        self._lowercase = bool(getattr(model[0], "do_lower_case", False))
        self.dimension = int(model.get_embedding_dimension() or 0)
        self.normalised = type(model[-1]).__name__ == "Normalize"

    @classmethod
    def load(cls, name: str, *, max_tokens: int | None = None, options: Training | None = None) -> PhraseEncoder:
        """A folder or a name on the hub; without modules of its own the mean of its tokens.

        `options`: with its first layers only, or with new weights, as they say. UserError if there is no such model.
        """
        folder = find_encoder(name, asked="--model").folder
        logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
        with quiet_transformers():
            # On the device on which the loop puts it, not on the one that the library would choose.
            model = SentenceTransformer(
                str(folder),
                device="cpu",
                model_kwargs={"dtype": torch.float32},
                trust_remote_code=brings_no_code(folder),
            )
        found = cls(model, max_tokens=max_tokens)
        if options is not None:
            change(found.inner, options)
        return found

    @property
    def inner(self) -> Any:
        return self.model[0].auto_model

    def normalise(self, wanted: bool) -> None:
        """Give vectors length 1, or leave them their length."""
        if self.normalised and not wanted:
            del self.model[-1]
        elif wanted and not self.normalised:
            self.model.append(Normalize())
        self.normalised = wanted

    def tokens(self, texts: Sequence[str], *, whole: bool = False) -> list[list[int]]:
        """The first `max_tokens` of each text, or all of them."""
        given = [self._prefix + text for text in texts]
        found: list[list[int]] = self._tokenizer(
            [text.lower() for text in given] if self._lowercase else given,
            truncation=not whole,
            max_length=None if whole else self.max_tokens,
            return_attention_mask=False,
            verbose=False,
        )["input_ids"]
        return found

    def forward(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """[n, dimension]"""
        device = next(self.model.parameters()).device
        parts, rows = [], []
        for group, padded, mask in padded_batches(ids, pad=self._tokenizer.pad_token_id, device=device):
            features = {"input_ids": padded, "attention_mask": mask}
            parts.append(self.model(features)["sentence_embedding"].float())
            rows += group
        if not parts:
            return torch.zeros(0, self.dimension, device=device)
        return torch.cat(parts)[torch.from_numpy(np.argsort(rows)).to(device)]

    def save(self, folder: Path) -> None:
        with quiet_transformers():
            self.model.save_pretrained(str(folder), create_model_card=False)
        make_portable(folder)


def change(model: Any, options: Training) -> None:
    """Keep the first layers of a transformer, or give it new weights, as the options say.

    The new weights come from torch's generator, which the command seeds.
    """
    if options.layers is not None:
        stacks = [each for each in model.modules() if isinstance(each, nn.ModuleList)]
        whole = [each for each in stacks if len(each) == model.config.num_hidden_layers]
        if not whole or options.layers > len(whole[0]):
            raise UserError(
                f"--layers {options.layers}: {options.model} has {model.config.num_hidden_layers} layers; choose fewer"
            )
        del whole[0][options.layers :]
        model.config.num_hidden_layers = options.layers
    if options.random_weights:
        model.load_state_dict(type(model)(model.config).state_dict())
