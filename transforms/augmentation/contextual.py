"""Words that a masked language model finds likely where a word of a phrase stands.

nlpaug's own augmenter of this kind does not run with transformers 5, takes one text at a time and joins tokens; so the
model is asked directly, many phrases at once.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.errors import UserError
from transforms.arrays import U64
from transforms.augmentation.interface import Augmenter, pick, share_of
from transforms.augmentation.synonyms import FUNCTION_WORDS, in_case_of
from transforms.hub import locate_model, sha256_of_model

TOP = 20
"""How many words are drawn from, by their probabilities."""

_ROWS = 64
_MORE = 8
_WORD = re.compile(r"(?<!\S)[\"'(\[{]*([^\W\d_]{2,}(?:-[^\W\d_]+)*)(?='?s?[^\w\s]*(?:\s|$))")


class Contextual(Augmenter):
    """One word of content becomes another that the model finds likely there."""

    def __init__(self, *, masked_lm: str) -> None:
        self.identity(masked_lm=masked_lm)
        import torch
        from transformers import AutoModelForMaskedLM, AutoTokenizer

        folder = locate_model(masked_lm)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).to(self._device).eval()
        if (mask := self._tokenizer.mask_token) is None:
            raise UserError(f"--masked-lm {masked_lm}: its tokenizer has no mask; give a masked language model")
        self._mask: str = mask
        self._words = self._whole_words()
        self._allowed = torch.tensor(sorted(self._words), device=self._device)

    def _whole_words(self) -> dict[int, str]:
        """The tokens that are words of content, by their numbers."""
        found = {}
        for token, number in self._tokenizer.get_vocab().items():
            word = self._tokenizer.convert_tokens_to_string([token]).strip()
            alone = self._tokenizer.tokenize(f"{self._mask} {word}")[1:] == [token]
            if word.isalpha() and len(word) > 2 and alone and word.lower() not in FUNCTION_WORDS:
                found[number] = word
        return found

    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        texts = phrases.to_pylist()
        spans = [[found.span(1) for found in _WORD.finditer(text) if _is_content(found[1])] for text in texts]
        chosen = pick(seeds, 0, np.array([len(each) for each in spans], np.int64)).tolist()
        rows = [row for row, each in enumerate(spans) if each]
        places = {row: spans[row][chosen[row]] for row in rows}
        masked = [texts[row][: places[row][0]] + self._mask + texts[row][places[row][1] :] for row in rows]
        made: list[str | None] = [None] * len(texts)
        for row, words in zip(rows, self._likely(masked), strict=True):
            start, end = places[row]
            others = [each for each in words if not _alike(each[0], texts[row][start:end])][:TOP]
            until = np.cumsum([probability for _, probability in others])
            drawn = share_of(seeds[row : row + 1] + np.uint64(1))[0] * until[-1]
            word = others[int(np.searchsorted(until, drawn, side="right"))][0]
            made[row] = texts[row][:start] + in_case_of(texts[row][start:end], word.lower()) + texts[row][end:]
        return pa.array(made, pa.string())

    def _likely(self, masked: list[str]) -> list[list[tuple[str, float]]]:
        """For each text with a mask the likeliest words, with their probabilities, likeliest first."""
        import torch

        ids = self._tokenizer(masked, truncation=True)["input_ids"] if masked else []
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        found: list[list[tuple[str, float]]] = [[] for _ in ids]
        first = 0
        while first < len(order):
            # Texts of one length: nothing is padded, so what is beside a text in its batch changes nothing of it.
            length = len(ids[order[first]])
            batch = [row for row in order[first : first + _ROWS] if len(ids[row]) == length]
            first += len(batch)
            inputs = torch.tensor([ids[row] for row in batch], device=self._device)
            at = (inputs == self._tokenizer.mask_token_id).int().argmax(dim=1)
            with torch.inference_mode():
                logits = self._model(input_ids=inputs).logits[torch.arange(len(batch)), at][:, self._allowed]
            best = torch.topk(logits, min(TOP + _MORE, len(self._words)), dim=1)
            numbers = self._allowed[best.indices].cpu().numpy()
            # Rounded, so that the last bits decide as little as they can.
            scores = np.round(best.values.double().cpu().numpy(), 3)
            for row, tokens, score in zip(batch, numbers, scores, strict=True):
                by_score = sorted(zip((-score).tolist(), tokens.tolist(), strict=True))
                best_score = by_score[0][0]
                found[row] = [(self._words[token], float(np.exp(best_score - each))) for each, token in by_score]
        return found

    @classmethod
    def identity(cls, *, masked_lm: str = "", **options: Any) -> dict[str, Any]:
        try:
            libraries = {each: version(each) for each in ("torch", "transformers", "tokenizers")}
            folder = locate_model(masked_lm)
        except (PackageNotFoundError, ModuleNotFoundError) as error:
            raise UserError(
                f"--operations contextual: needs {error.name}: pip install 'phrasemill[augment]'"
            ) from error
        except OSError as error:
            raise UserError(f"--masked-lm: {error}") from error
        name = masked_lm.rstrip("/").rpartition("/")[2]
        return {
            "operation": "contextual",
            "model": name,
            "model_sha256": sha256_of_model(folder),
            "libraries": libraries,
        }


def _is_content(word: str) -> bool:
    return word.lower() not in FUNCTION_WORDS


def _alike(one: str, other: str) -> bool:
    """Whether two words are forms of one, as far as their letters say: one begins like the other, but for its last."""
    one, other = one.lower(), other.lower()
    return one.startswith(other[: max(3, len(other) - 1)]) or other.startswith(one[: max(3, len(one) - 1)])
