"""What a masked language model says of words: which may stand where a word of a phrase stands, which are alike.

The model reads the phrase as it is, without a mask: at the place of "large" in "a large army" it then gives "huge",
"vast", "great", and hardly "small", which a masked place would get (Zhou et al. 2019 say so, too).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import numpy as np

from schemas.errors import UserError
from transforms.encoders.interface import F32
from transforms.hub import locate_model, sha256_of_model
from transforms.libraries import quiet_transformers

LIKELY = 60
"""How many words of a place are kept."""

_BATCH = 64
_WORD = re.compile("[a-z]{3,}")
_CACHED = 1 << 17


class MaskedIdentity(NamedTuple):
    """What decides what a model says; part of fingerprints and manifests."""

    masked_lm: str
    sha256: str
    libraries: dict[str, str]


class View(NamedTuple):
    """A place of a phrase: the words that are likely there with their log probabilities, the most likely first, and
    that of the word that is there.
    """

    own: float
    likely: Mapping[str, float]


def masked_identity(name: str) -> MaskedIdentity:
    """The identity of a model, without loading it. UserError with the remedy."""
    try:
        libraries = {each: version(each) for each in ("torch", "transformers", "tokenizers")}
        folder = locate_model(name)
    except (PackageNotFoundError, ModuleNotFoundError) as error:
        raise UserError(f"--masked-lm {name}: needs {error.name}: pip install 'phrasemill[augment]'") from error
    except OSError as error:
        raise UserError(f"--masked-lm: {error}") from error
    return MaskedIdentity(name.rstrip("/").rpartition("/")[2], sha256_of_model(folder), libraries)


class MaskedWords:
    """A loaded masked language model whose tokens are pieces of words in lower case, such as BERT's."""

    def __init__(self, name: str, *, precision: str = "float32") -> None:
        self.identity = masked_identity(name)
        import torch
        from transformers import AutoModelForMaskedLM, AutoTokenizer

        torch.set_num_threads(1)
        folder = locate_model(name)
        with quiet_transformers():
            self._tokenizer = AutoTokenizer.from_pretrained(folder)
            self._model = AutoModelForMaskedLM.from_pretrained(folder, dtype=getattr(torch, precision))
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model = self._model.to(self._device).eval()
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        self._words = {number: token for token, number in vocabulary.items() if _WORD.fullmatch(token)}
        self._numbers = {token: number for number, token in self._words.items()}
        self._tokens = len(vocabulary)
        if not self._words:
            raise UserError(f"--masked-lm {name}: has no token that is a word in lower case; give an uncased BERT")
        others = np.setdiff1d(np.arange(self._model.config.vocab_size), list(self._words))
        self._others = torch.tensor(others, device=self._device)
        table = self._model.get_input_embeddings().weight.detach().float().cpu().numpy()
        table = table - table[sorted(self._words)].mean(axis=0)  # all have one direction in common
        self._vectors: F32 = table / np.linalg.norm(table, axis=1, keepdims=True)

    @functools.lru_cache(_CACHED)  # noqa: B019 (there is one object a process)
    def _vector(self, text: str) -> F32:
        ids = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        found: F32 = self._vectors[ids].mean(axis=0)
        return found / np.sqrt(np.square(found).sum())

    def likeness(self, one: str, other: str) -> float:
        """The cosine of the input vectors of two words. Not by BLAS, whose last bits depend on where the arrays lie."""
        return round(float((self._vector(one) * self._vector(other)).sum()), 6)

    def knows(self, word: str) -> bool:
        """Whether a word is a token."""
        return word in self._numbers

    def rarity(self, word: str) -> float:
        """From 0 to 1: vocabularies of word pieces have frequent words first, and rare words not at all."""
        return self._numbers.get(word, self._tokens) / self._tokens

    def views(
        self,
        phrases: Sequence[str],
        places: Sequence[Sequence[int]],
        note: Callable[[int], None] = lambda done: None,
    ) -> list[dict[int, View]]:
        """For each phrase what is likely at some of its tokens (those between blanks, by number).

        Phrases of one length are read together, so nothing is padded; a full stop after a phrase keeps the model from
        ending its last word.
        """
        import torch

        found: list[dict[int, View]] = [{} for _ in phrases]
        wanted = [row for row, each in enumerate(places) if each]
        if not wanted:
            return found
        encoded = self._tokenizer([phrases[row] + " ." for row in wanted], truncation=True, return_offsets_mapping=True)
        ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
        order = sorted(range(len(wanted)), key=lambda each: len(ids[each]))
        first = 0
        while first < len(order):
            length = len(ids[order[first]])
            batch = [each for each in order[first : first + _BATCH] if len(ids[each]) == length]
            first += len(batch)
            asked = [
                (row, wanted[each], token, place)
                for row, each in enumerate(batch)
                for place, token in _tokens(phrases[wanted[each]], places[wanted[each]], offsets[each])
            ]
            inputs = torch.tensor([ids[each] for each in batch], device=self._device)
            with torch.inference_mode():
                logits = self._model(input_ids=inputs).logits
                logits = logits[[each[0] for each in asked], [each[2] for each in asked]].float()
                logs = torch.log_softmax(logits, dim=1)
                own = logs.gather(1, inputs[[each[0] for each in asked], [each[2] for each in asked]][:, None])[:, 0]
                logs[:, self._others] = -torch.inf
                best = torch.topk(logs, min(LIKELY, len(self._words)), dim=1)
            # Rounded, so that the last bits decide as little as they can.
            values, numbers = np.round(best.values.cpu().numpy(), 3).tolist(), best.indices.cpu().tolist()
            for (_, row, _, place), log, tokens, scores in zip(asked, own.tolist(), numbers, values, strict=True):
                likely = {self._words[token]: score for token, score in zip(tokens, scores, strict=True)}
                found[row][place] = View(round(log, 3), likely)
            note(len(batch))
        return found


def _tokens(phrase: str, places: Sequence[int], offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The places of a phrase whose words begin with a token, and that token."""
    starts = [0]
    for word in phrase.split(" "):
        starts.append(starts[-1] + len(word) + 1)
    by_start = {start: token for token, (start, end) in enumerate(offsets) if end > start}
    return [(place, by_start[starts[place]]) for place in places if starts[place] in by_start]
