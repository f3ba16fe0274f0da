"""The character encoder as a module of sentence-transformers.

It is named by its import path in modules.json, so a folder that has it loads where phrasemill is installed.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_model, save_model
from torch import Tensor, nn
from torch.nn import functional

PAD, START, PARTS, END = range(4)
"""Of the sequence of a word: start, its characters, parts, its sub-words, end."""
_MARKS = ("Ġ", "▁")
"""How tokens that begin a word begin, in vocabularies that do not mark those that continue one (##)."""


class Spelling(NamedTuple):
    """What the tokens of a vocabulary are made of.

    characters  [tokens, most]  numbers of their characters from END + 1 on, PAD after the last
    begins      [tokens]  whether the token begins a word
    number      of different characters
    """

    characters: Tensor
    begins: Tensor
    number: int


def spelling_of(tokens: list[str], special: set[int]) -> Spelling:
    """The spelling of tokens by number; special ones have none."""
    continued = any(each.startswith("##") for each in tokens)
    marked = not continued and any(each.startswith(_MARKS) for each in tokens)
    begins = [each.startswith(_MARKS) if marked else not each.startswith("##") for each in tokens]
    texts = [each.removeprefix("##") if continued else each.lstrip("".join(_MARKS)) for each in tokens]
    texts = ["" if number in special else text for number, text in enumerate(texts)]
    numbers = {each: place for place, each in enumerate(sorted({*"".join(texts)}), END + 1)}
    characters = torch.zeros(len(texts), max(1, *map(len, texts)), dtype=torch.int16)
    for row, text in enumerate(texts):
        characters[row, : len(text)] = torch.tensor([numbers[each] for each in text], dtype=torch.int16)
    return Spelling(characters, torch.tensor(begins), len(numbers))


class Words(NamedTuple):
    """The words of some texts.

    sequences  [words, longest]  start, characters, parts, sub-words, end; PAD after that
    text       [words]  the text of each word
    """

    sequences: Tensor
    text: Tensor


class CharacterEncoder(nn.Module):
    """Concatenates a vector of the characters and sub-words of a text with that of the modules before it.

    The network is LOVE (Chen, Varoquaux and Suchanek 2022) as PEARL uses it (section 3.2): for each word the embeddings
    of its characters and its sub-words; attention by position alone (sinusoidal), two layers, added to the embeddings;
    their sum with length 1; the mean over the words of the text; and a linear layer that reduces it. Both kinds of
    input come from the tokens: their strings are a table beside the weights, so nothing but `input_ids` is needed, on
    any device. A word is a run of tokens that continue one. Characters that the vocabulary lacks are lost.

    width      of the embeddings
    dimension  of the reduced vector
    base       that of the vector before it
    scale      of the reduced vector
    """

    spelled: Tensor
    begins: Tensor

    def __init__(
        self, *, tokens: int, characters: int, most: int, width: int, dimension: int, base: int, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.config = {
            "tokens": tokens,
            "characters": characters,
            "most": most,
            "width": width,
            "dimension": dimension,
            "base": base,
            "scale": scale,
        }
        self._first_token, self._scale = END + 1 + characters, scale
        self.register_buffer("spelled", torch.zeros(tokens, most, dtype=torch.int16))
        self.register_buffer("begins", torch.zeros(tokens, dtype=torch.bool))
        self.embedding = nn.Embedding(self._first_token + tokens, width, padding_idx=PAD)
        self.layers = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)
        self.reduction = nn.Linear(width, dimension, bias=False)

    @classmethod
    def new(cls, tokenizer: Any, *, width: int, dimension: int, base: int, length: float) -> CharacterEncoder:
        """With random weights, whose vectors have a length of about `length` at most."""
        strings = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        spelling = spelling_of(strings, {*tokenizer.all_special_ids})
        found = cls(
            tokens=len(strings),
            characters=spelling.number,
            most=spelling.characters.shape[1],
            width=width,
            dimension=dimension,
            base=base,
            scale=length,
        )
        found.spelled.copy_(spelling.characters)
        found.begins.copy_(spelling.begins)
        nn.init.orthogonal_(found.reduction.weight, gain=math.sqrt(max(1.0, width / dimension)))
        return found

    def words(self, ids: Tensor, mask: Tensor) -> Words:
        """The words of texts [n, tokens], whose mask has the same shape."""
        kept = mask.bool() & (self.spelled[ids, 0] != PAD)
        text, token = kept.nonzero()[:, 0], ids[kept]
        if not len(token):
            return Words(ids.new_zeros(0, 1), text)
        begins = self.begins[token]
        begins[0] = True
        begins[1:] |= text[1:] != text[:-1]
        word, first = begins.cumsum(0) - 1, begins.nonzero()[:, 0]
        letters = self.spelled[token].long()
        there = letters != PAD
        length = there.sum(1)
        before = length.cumsum(0) - length
        parts = torch.diff(first, append=first.new_tensor([len(token)]))
        own = before.new_zeros(len(first)).index_add(0, word, length)
        sequences = ids.new_full((len(first), int((own + parts).max()) + 3), PAD)
        number = torch.arange(len(first), device=ids.device)
        sequences[:, 0] = START
        places = 1 + (before - before[first][word])[:, None] + torch.arange(letters.shape[1], device=ids.device)
        sequences[word[:, None].expand_as(places)[there], places[there]] = letters[there]
        sequences[number, 1 + own] = PARTS
        within = torch.arange(len(token), device=ids.device) - first[word]
        sequences[word, 2 + own[word] + within] = self._first_token + token
        sequences[number, 2 + own + parts] = END
        return Words(sequences, text[first])

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """[n, dimension] of texts [n, tokens]."""
        sequences, text = self.words(ids, mask)
        found = torch.zeros(len(ids), self.reduction.in_features, device=ids.device)
        if len(sequences):
            there = sequences != PAD
            embedded = self.embedding(sequences)
            weights = _nearness(sequences.shape[1], embedded.shape[2], device=ids.device)
            weights = weights.expand(len(there), -1, -1).masked_fill(~there[:, None], -torch.inf).softmax(2)
            mixed = self.norm(self.layers(weights.to(embedded.dtype) @ embedded))
            states = embedded + self.dropout(mixed)
            vectors = functional.normalize((states * there[..., None]).float().sum(1), dim=1)
            number = torch.zeros(len(ids), device=ids.device).index_add(0, text, torch.ones_like(vectors[:, 0]))
            found = found.index_add(0, text, vectors) / number.clamp(min=1)[:, None]
        return self._scale * self.reduction(found.to(self.reduction.weight.dtype))

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        before = features["sentence_embedding"]
        added = self.encode(features["input_ids"], features["attention_mask"])
        features["sentence_embedding"] = torch.cat([before, added.to(before.dtype)], dim=1)
        return features

    # ---- What sentence-transformers asks of a module

    def get_embedding_dimension(self) -> int:
        return int(self.config["base"] + self.config["dimension"])

    get_sentence_embedding_dimension = get_embedding_dimension  # its name before version 6

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        folder = Path(output_path)
        (folder / "config.json").write_text(json.dumps(self.config, indent=2) + "\n")
        save_model(self, str(folder / "model.safetensors"))

    @classmethod
    def load(cls, input_path: str) -> CharacterEncoder:
        """From its own folder: sentence-transformers of any version calls a `load` of one argument so."""
        folder = Path(input_path)
        found = cls(**json.loads((folder / "config.json").read_text()))
        load_model(found, str(folder / "model.safetensors"))
        return found


def _nearness(length: int, width: int, *, device: torch.device) -> Tensor:
    """[length, length] the products of the sinusoidal vectors of places, by the root of the width."""
    rates = torch.exp(torch.arange(0, width, 2, device=device) * (-math.log(10_000) / width))
    apart = torch.arange(length, device=device)[:, None] - torch.arange(length, device=device)[None]
    return torch.cos(apart[..., None] * rates).sum(2) / math.sqrt(width)
