"""Paraphrases from causal language models that were trained on pairs, run by CTranslate2: 8-bit integers on a CPU.

CTranslate2's own sampling has one random state for all rows, and no constraint by row. So its model only computes the
logits here, and the decoding loop is ours. It gives no access to its keys and values: each step computes all tokens of
a row again, of which phrases have few.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import torch

from schemas.errors import UserError
from transforms.arrays import I64
from transforms.hub import sha256_of_model
from transforms.libraries import quiet_transformers
from transforms.paraphrase.generators.causal import format_of
from transforms.paraphrase.generators.decoding import filled
from transforms.paraphrase.generators.formats import Format
from transforms.paraphrase.generators.torch_generator import TorchGenerator
from transforms.paraphrase.options import GeneratorOptions


class CTranslate2Steps:
    """The tokens of the rows of a batch."""

    def __init__(self, forward: Any) -> None:
        self._forward = forward
        self._tokens = np.empty((0, 0), np.int64)

    def begin(self, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
        self._tokens = np.array(prompts, np.int64)
        return self._last()

    def advance(self, parents: I64, tokens: I64) -> torch.Tensor:
        self._tokens = np.concatenate((self._tokens[parents], tokens[:, None]), axis=1)
        return self._last()

    def _last(self) -> torch.Tensor:
        rows = filled(np.arange(len(self._tokens)))
        logits: torch.Tensor = self._forward(self._tokens[rows])[: len(self._tokens), -1].clone()
        return logits


class CTranslate2Generator(TorchGenerator):
    """A causal language model in the format of pairs; converted once, in the user's cache."""

    def _load(self, folder: Path, options: GeneratorOptions) -> Any:
        converted = convert(folder, options.generator_precision)
        return ctranslate2.Generator(
            str(converted),
            device=self.device,
            compute_type=options.generator_precision,
            inter_threads=1,
            intra_threads=1,
        )

    def _format(self, prompt: str) -> Format:
        form = format_of(self.tokenizer, "")
        if form.segments:
            raise UserError("CTranslate2 has no token types, which the model needs; choose --generator pairs")
        return form

    def _steps(self) -> CTranslate2Steps:
        return CTranslate2Steps(self._forward)

    def _room(self, prompt: Sequence[int]) -> int:
        positions: int = getattr(self.config, "max_position_embeddings", 1 << 30)
        return positions - len(prompt)

    def _forward(self, tokens: I64) -> torch.Tensor:
        """[rows, tokens, vocabulary]"""
        ids = ctranslate2.StorageView.from_array(tokens.astype(np.int32))
        lengths = ctranslate2.StorageView.from_array(np.full(len(tokens), tokens.shape[1], np.int32))
        said = self.model.forward_batch(ids, lengths).to(ctranslate2.DataType.float32)
        return torch.from_numpy(np.array(said.to_device(ctranslate2.Device.cpu)))

    def _logits(self, prompts: torch.Tensor, answers: torch.Tensor, *, alone: bool) -> torch.Tensor:
        ids = torch.cat([prompts, answers[:, :-1]], dim=1).cpu().numpy()
        return self._forward(ids)[:, -answers.shape[1] :].to(answers.device)


def convert(folder: Path, precision: str) -> Path:
    """The model in CTranslate2's form, written once to the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "phrasemill" / "ctranslate2"
    name = f"{sha256_of_model(folder)[:32]}-{precision}-{ctranslate2.__version__}"
    if not (cache / name).is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as part, quiet_transformers():
            made = Path(part) / "model"
            ctranslate2.converters.TransformersConverter(str(folder)).convert(str(made), quantization=precision)
            config = json.loads((made / "config.json").read_bytes())
            if config.get("unk_token") is None:  # it has to be a token, though none is ever unknown
                (made / "config.json").write_text(json.dumps(config | {"unk_token": config["eos_token"]}))
            try:
                made.rename(cache / name)
            except OSError:
                if not (cache / name).is_dir():  # another process was first
                    raise
    return cache / name
