"""What generators on torch have in common: batches of one shape, candidates from what was drawn, likelihoods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from transforms.libraries import quiet_transformers
from transforms.paraphrase.constraints import BannedTokens
from transforms.paraphrase.generators.decoding import CHUNK_ROWS, MIN_ROWS, Drawn, Steps, batches, decode, filled
from transforms.paraphrase.generators.formats import Format
from transforms.paraphrase.generators.interface import (
    DECIMALS,
    Candidate,
    GeneratorIdentity,
    Likelihood,
    Request,
)
from transforms.paraphrase.generators.sampling import Sampling
from transforms.paraphrase.options import GeneratorOptions

ROWS = {"cpu": 512, "cuda": 4096}
"""The most draws of a batch: enough that products of matrices are worth it; many of them share a row."""
MEMORY = {"cpu": 2 << 30, "cuda": 16 << 30}
"""The most bytes of a batch's keys and values, for rows of `TOKENS` tokens after the shared prefix."""
TOKENS = 64


def bytes_a_token(config: Any, size: int) -> int:
    """The bytes of the keys and values of a token in a model, whose numbers have `size` bytes."""
    width = getattr(config, "num_key_value_heads", None)
    width = (
        width * (getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads) if width else 0
    )
    return 2 * size * int(config.num_hidden_layers) * int(width or config.hidden_size)


class TorchGenerator:
    """A language model with a tokenizer. `unlikely`: of the constraint (`BannedTokens`).

    Subclasses say which model is loaded, how it is asked, and how it goes on by a token.
    """

    loads: Any
    format: Format
    constrained = True
    """False only to measure what the constraint costs; it also forbids special tokens where no word is banned."""

    def __init__(
        self,
        folder: Path,
        identity: GeneratorIdentity,
        *,
        options: GeneratorOptions,
        prompt: str = "",
        unlikely: float = math.inf,
    ) -> None:
        torch.set_num_threads(1)
        self.identity = identity
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        with quiet_transformers():
            self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
            self.config: Any = transformers.AutoConfig.from_pretrained(folder)
            self.model: Any = self._load(folder, options)
        self.format = self._format(prompt)
        row = bytes_a_token(self.config, 4) * (len(self.format.prefix) + TOKENS)
        self.rows = max(MIN_ROWS, min(ROWS[self.device], MEMORY[self.device] // row))
        self._sampling = Sampling(options.top_p, options.top_k, options.temperature)
        self._extra = options.max_extra_tokens
        self._is_end = self.format.is_end(self.config.vocab_size)
        self._banned = BannedTokens(self.tokenizer, ends=np.flatnonzero(self._is_end).tolist(), unlikely=unlikely)

    def _load(self, folder: Path, options: GeneratorOptions) -> Any:
        model = self.loads.from_pretrained(folder, dtype=getattr(torch, options.generator_precision))
        return model.eval().to(self.device)

    def _format(self, prompt: str) -> Format:
        raise NotImplementedError

    def _steps(self) -> Steps:
        raise NotImplementedError

    def _room(self, prompt: Sequence[int]) -> int:
        """The most tokens that can follow a prompt."""
        raise NotImplementedError

    def _logits(self, prompts: torch.Tensor, answers: torch.Tensor, *, alone: bool) -> torch.Tensor:
        """[rows, tokens, vocabulary] the logits of the answers [rows, tokens] after the prompts, all of one length.

        `alone`: without the prefix that all prompts share.
        """
        raise NotImplementedError

    def generate(
        self,
        requests: Sequence[Request],
        *,
        draws: int,
        first_draw: int = 0,
        note: Callable[[int], None] = lambda done: None,
    ) -> list[list[Candidate]]:
        prompts = [self.format.prompt(each.text) for each in requests]
        limits = [
            max(0, min(self.format.length(request.text) + self._extra + 1, self._room(prompt)))
            for request, prompt in zip(requests, prompts, strict=True)
        ]
        found = [[Candidate("", 0.0, 0, False)] * draws for _ in requests]
        for batch in batches(_shapes(map(len, prompts), limits), max(1, self.rows // draws)):
            if limit := limits[batch[0]]:
                banned = [requests[each].banned for each in batch]
                with torch.inference_mode():
                    drawn = decode(
                        self._steps(),
                        [prompts[each] for each in batch],
                        np.array([requests[each].seed for each in batch], np.uint64),
                        draws=range(first_draw, first_draw + draws),
                        limit=limit,
                        is_end=self._is_end,
                        sampling=self._sampling,
                        constraint=self._banned.rows(banned) if self.constrained else None,
                    )
                for place, each in enumerate(batch):
                    found[each] = self._candidates(drawn, range(place * draws, (place + 1) * draws))
            note(len(batch))
        return found

    def _candidates(self, drawn: Drawn, rows: range) -> list[Candidate]:
        found = []
        for row in rows:
            tokens = drawn.tokens[row, : drawn.lengths[row]].tolist()
            said = round(float(drawn.log_probabilities[row]), DECIMALS)
            found.append(Candidate(self.format.text(tokens), said, len(tokens), bool(drawn.finished[row])))
        return found

    def pair_likelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[Likelihood]:
        both = [(self.format.prompt(phrase), self.format.answer(text)) for phrase, text in pairs]
        return self._likelihoods(both, alone=False)

    def log_likelihoods(self, texts: Sequence[str]) -> list[Likelihood]:
        return self._likelihoods([self.format.alone(text) for text in texts], alone=True)

    def _likelihoods(self, both: Sequence[tuple[list[int], list[int]]], *, alone: bool) -> list[Likelihood]:
        """How likely each answer is after its prompt, in batches of one length of both: nothing is padded."""
        found = [Likelihood(0.0, 0)] * len(both)
        shapes = _shapes((len(prompt) for prompt, _ in both), [len(answer) for _, answer in both])
        for batch in batches(shapes, CHUNK_ROWS):
            if not (count := len(both[batch[0]][1])):
                continue
            rows = filled(np.array(batch))
            prompts, answers = (torch.tensor([both[row][side] for row in rows], device=self.device) for side in (0, 1))
            with torch.inference_mode():
                logits = self._logits(prompts, answers, alone=alone).float()
                said = logits.gather(2, answers[..., None])[..., 0] - torch.logsumexp(logits, dim=2)
            for each, total in zip(batch, said.double().sum(dim=1).tolist(), strict=False):
                found[each] = Likelihood(round(total, DECIMALS), count)
        return found


def _shapes(lengths: Iterable[int], others: Sequence[int]) -> list[int]:
    """A number for each two lengths, in order of the first."""
    return [one * (max(others) + 1) + other for one, other in zip(lengths, others, strict=True)]
