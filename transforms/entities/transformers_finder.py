"""The entity finder `transformers`: any token classifier of the Hugging Face hub, or in a folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import transformers

from transforms.entities import identities
from transforms.entities.interface import Entity, Words, types_of
from transforms.entities.tags import OUTSIDE, spans, tags_of
from transforms.hub import locate_model
from transforms.libraries import quiet_transformers
from transforms.parsing.trees import batches_by_length

POSITIONS = 514
"""Positions of an encoder that does not say how many it has. Those such as RoBERTa read two subwords fewer."""
MAX_CELLS = 4_000_000
"""The most cells in the attention of a batch."""


class TransformersFinder:
    """A token classifier: its folder, or its name on the hub (OWNER/NAME, or OWNER/NAME@REVISION).

    A word has the label of its first subword. A sentence that is longer than the encoder reads is read in windows that
    overlap by half, and a word takes its label from the window in whose middle it is most. `batch_tokens` limits the
    subwords of a batch, padding included; `threads` is the number of torch's threads in this process. It runs on a GPU
    if there is one. `types` gives types other names (`types_of`). Raises OSError without a model, ValueError if it is
    no classifier of tokens, or its labels are not those of entities.
    """

    def __init__(self, model: str = "", *, types: str = "", batch_tokens: int = 4000, threads: int = 1) -> None:
        self.identity = identities.transformers(model, types=types, batch_tokens=batch_tokens, threads=threads)
        folder = str(locate_model(model))
        torch.set_num_threads(threads)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._batch_tokens = batch_tokens
        self._tokenizer = _tokenizer(folder)
        self._model = _classifier(folder).to(self._device)
        self._tags = tags_of(self._model.config.id2label)
        self._types = types_of(sorted({each.type for each in self._tags} - {""}), types)
        positions = getattr(self._model.config, "max_position_embeddings", None) or POSITIONS
        self._window = min(self._tokenizer.model_max_length, positions - 2)
        self._tokenizer.model_max_length = sys.maxsize  # or it warns of longer sentences

    def find(self, sentences: Sequence[Words]) -> list[list[Entity]]:
        windows = [*self._windows([each.words for each in sentences])]
        labels = [np.zeros(len(each.words), np.int64) for each in sentences]
        # How far the word is from the ends of the window that labelled it; 0: none did.
        margins = [np.zeros(len(each.words), np.int64) for each in sentences]
        lengths = [len(each.inputs["input_ids"]) for each in windows]
        for batch in batches_by_length(lengths, max_padded=self._batch_tokens, max_cells=MAX_CELLS):
            for number, best in zip(batch, self._label([windows[number] for number in batch]), strict=True):
                sentence, words, places = windows[number].sentence, windows[number].words, windows[number].places
                margin = np.minimum(places, lengths[number] - 1 - places) + 1
                better = margin > margins[sentence][words]
                labels[sentence][words[better]] = best[places[better]]
                margins[sentence][words[better]] = margin[better]
        return [
            spans([self._tags[n] if m else OUTSIDE for n, m in zip(*each, strict=True)], self._types)
            for each in zip(labels, margins, strict=True)
        ]

    def _windows(self, sentences: Sequence[list[str]]) -> Iterator[_Window]:
        """The sentences as subwords; several windows for one that is longer than the encoder reads."""
        numbers = [number for number, words in enumerate(sentences) if words]
        if not numbers:
            return
        encoded = self._tokenizer(
            [sentences[number] for number in numbers],
            is_split_into_words=True,
            truncation=True,
            max_length=self._window,
            stride=self._window // 2,
            return_overflowing_tokens=True,
        )
        owners = encoded.pop("overflow_to_sample_mapping")
        for row, owner in enumerate(owners):
            words: dict[int, int] = {}
            for place, word in enumerate(encoded.word_ids(row)):
                if word is not None:
                    words.setdefault(word, place)
            yield _Window(
                numbers[owner],
                np.array([*words], np.int64),
                np.array([*words.values()], np.int64),
                {name: encoded[name][row] for name in self._tokenizer.model_input_names if name in encoded},
            )

    def _label(self, batch: Sequence[_Window]) -> npt.NDArray[np.int64]:
        """[batch, subwords] the label of each subword."""
        inputs = self._tokenizer.pad([each.inputs for each in batch], return_tensors="pt")
        with torch.inference_mode():
            logits = self._model(**inputs.to(self._device)).logits
        found: npt.NDArray[np.int64] = logits.argmax(dim=-1).cpu().numpy()
        return found


class _Window(NamedTuple):
    """Subwords of a sentence. `words`: those that begin here, by number; `places`: their first subwords."""

    sentence: int
    words: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    inputs: dict[str, list[int]]


def _tokenizer(folder: str) -> Any:
    """The tokenizer for words that are given one by one; ValueError if it does not tell which subwords a word has."""
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    if not tokenizer.is_fast:
        raise ValueError(f"the tokenizer in {folder} has no fast version, which tells the subwords of a word")
    if "ByteLevel" in json.dumps(json.loads(tokenizer.backend_tokenizer.to_str())["pre_tokenizer"]):
        # Bytes have a blank before a word, not between words.
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    return tokenizer


def _classifier(folder: str) -> Any:
    """The model in single precision; ValueError if it has no trained classifier of tokens."""
    with quiet_transformers():
        model, loaded = transformers.AutoModelForTokenClassification.from_pretrained(folder, output_loading_info=True)
    if missing := sorted(loaded["missing_keys"]):
        raise ValueError(f"the model in {folder} is no token classifier: it has no weights for {', '.join(missing)}")
    return model.float().eval()
