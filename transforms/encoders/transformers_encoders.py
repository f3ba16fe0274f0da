"""Encoders on torch: transformers whose tokens are pooled here, and any other through sentence-transformers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
import transformers

from schemas.errors import UserError
from transforms.encoders.files import EncoderFiles, brings_no_code
from transforms.encoders.interface import F32, EncoderIdentity, Passage
from transforms.encoders.spans import masked, placed, window
from transforms.libraries import quiet_transformers
from transforms.parsing.trees import batches_by_length

BATCH_TOKENS = {"cpu": 512, "cuda": 1 << 15}
"""The most tokens of a batch, padding included: few stay in a core's cache, many fill a GPU."""
MAX_CELLS = 1 << 24
"""The most cells of a batch's attention, for texts of hundreds of tokens."""


def padded_batches(
    rows: Sequence[Sequence[int]], *, pad: int | None, device: torch.device | str
) -> Iterator[tuple[list[int], torch.Tensor, torch.Tensor]]:
    """Batches of texts of similar length, the longest first: their places, their tokens and the mask [batch, tokens].

    Texts of like length run together, as padding costs time.
    """
    lengths = np.array([len(each) for each in rows], np.int64)
    kind = torch.device(device).type
    for batch in batches_by_length(lengths.tolist(), max_padded=BATCH_TOKENS[kind], max_cells=MAX_CELLS):
        mask = np.arange(lengths[batch[0]]) < lengths[batch][:, None]
        padded = np.full(mask.shape, pad or 0)
        padded[mask] = np.concatenate([np.asarray(rows[each], np.int64) for each in batch])
        yield batch, torch.from_numpy(padded).to(device), torch.from_numpy(mask.astype(np.int64)).to(device)


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
    """A transformer whose tokens' states are pooled: their mean, their maximum, or the first. Longer texts are cut.

    The states are those of the last layer, or the mean over some `layers`, of which 0 are the embeddings.
    """

    def __init__(
        self, files: EncoderFiles, identity: EncoderIdentity, *, prefix: str, precision: str, layers: Sequence[int] = ()
    ) -> None:
        super().__init__(files, identity, prefix=prefix, precision=precision)
        with quiet_transformers():
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(files.folder)
            self._model = transformers.AutoModel.from_pretrained(files.folder, dtype=self._dtype)
        self._layers = _needed_layers(self._model, layers)
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
        for batch, states, mask in self._states(encoded["input_ids"]):
            found[batch] = self._finished(self._pooled(states, mask))
            note(len(batch))
        return found

    def encode_spans(
        self, passages: Sequence[Passage], *, masks: int | None = None, note: Callable[[int], None] = lambda done: None
    ) -> F32:
        found = np.zeros((len(passages), self.dimension), np.float32)
        if not passages:
            return found
        prefix = self._prefix
        if self._lowercase:  # before the offsets are counted: lower case may have other lengths
            prefix = prefix.lower()
            passages = [each._replace(tokens=[token.lower() for token in each.tokens]) for each in passages]
        if masks is not None:
            if self._tokenizer.mask_token is None:
                raise UserError(f"{self.identity.encoder}: has no mask token to put in the place of a mention")
            passages = [masked(each, self._tokenizer.mask_token, masks) for each in passages]
        places = [placed(each, prefix=prefix) for each in passages]
        encoded = self._tokenizer(
            [each.text for each in places], return_offsets_mapping=True, return_attention_mask=False, verbose=False
        )
        # A sentence with several spans runs once.
        spans: dict[tuple[int, ...], list[tuple[int, list[int]]]] = {}
        for row, (ids, offsets, place) in enumerate(
            zip(encoded["input_ids"], encoded["offset_mapping"], places, strict=True)
        ):
            kept, span = window(offsets, place, self._max_tokens)
            if span:
                spans.setdefault(tuple(ids[each] for each in kept), []).append((row, span))
        sentences = [*spans]
        for batch, states, _ in self._states(sentences):
            rows = [(at, row, span) for at, each in enumerate(batch) for row, span in spans[sentences[each]]]
            means = torch.stack([states[at, span].mean(dim=0) for at, _, span in rows])
            found[[row for _, row, _ in rows]] = self._finished(means)
            note(len(rows))
        return found

    def _states(self, ids: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], torch.Tensor, torch.Tensor]]:
        """Batches of texts of similar length: their places, their states [batch, tokens, dimension], and the mask."""
        # Not `pad`: its other inputs, such as token types, are the model's defaults for a single text.
        for batch, padded, mask in padded_batches(ids, pad=self._tokenizer.pad_token_id, device=self.device):
            with torch.inference_mode():
                states = self._run(padded, mask)
            yield batch, states, mask

    def _run(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if not self._layers:
            states: torch.Tensor = self._model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            return states
        layers = self._model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        return torch.stack([layers[each].float() for each in self._layers]).mean(dim=0)

    def _pooled(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """[batch, dimension]"""
        if self._pooling == "cls":
            return states[:, 0]
        if self._pooling == "max":
            return states.masked_fill(~mask[..., None].bool(), -torch.inf).amax(dim=1)
        return (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1)[:, None]

    def _finished(self, vectors: torch.Tensor) -> F32:
        found: F32 = (torch.nn.functional.normalize(vectors, dim=1) if self._normalised else vectors).cpu().numpy()
        return found


def _needed_layers(model: Any, layers: Sequence[int]) -> Sequence[int]:
    """The layers whose states are asked for; those above them are taken out of the model where that changes nothing.

    Empty: only the last of those that are left.
    """
    if not layers:
        return ()
    number = model.config.num_hidden_layers
    if max(layers) > number:
        raise ValueError(f"has the layers 0 to {number}, not {max(layers)}")
    stack = getattr(getattr(model, "encoder", None), "layer", None)  # of BERT and its kin, which end with a layer
    if stack is not None:
        del stack[max(layers) :]
        number = max(layers)
    return () if [*layers] == [number] else layers


class WrappedEncoder(_Torch):
    """A model with modules of its own, run by sentence-transformers."""

    def __init__(self, files: EncoderFiles, identity: EncoderIdentity, *, prefix: str, precision: str) -> None:
        from sentence_transformers import SentenceTransformer

        super().__init__(files, identity, prefix=prefix, precision=precision)
        with quiet_transformers():
            self._model = SentenceTransformer(
                str(files.folder),
                device=self.device,
                model_kwargs={"dtype": self._dtype},
                trust_remote_code=brings_no_code(files.folder),
            )
        self.dimension = len(self._model.encode("a", show_progress_bar=False))

    def _encode(self, texts: Sequence[str], note: Callable[[int], None]) -> F32:
        found = self._model.encode(list(texts), batch_size=64, show_progress_bar=False, convert_to_tensor=True)
        note(len(texts))
        return found.float().cpu().numpy().reshape(len(texts), self.dimension)
