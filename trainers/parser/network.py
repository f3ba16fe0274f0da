"""The network of the parser `phrasemill`: BERT layers, a score for every labelled span, a tag for every word.

Each span is scored separately from its two fenceposts (the biaffine scorer of Dozat and Manning 2017, over the
fenceposts of Kitaev and Klein 2018), without a chart. The probability of a span is the sigmoid of its score.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig, BertModel

from transforms.parsing.phrasemill.encoding import CRAFT

SHAPES = CRAFT + 1
"""The number of shapes: those of words, and the conventions of [CLS] and [SEP]."""

LENGTHS = 64
"""The number of span lengths with their own bias; longer spans share the last."""

QUERY = 32
"""Dimensions of the product of a span's two fenceposts, for each label."""


class Batch(NamedTuple):
    """B sentences of at most N words in L pieces, padded with zeros (transforms/parsing/phrasemill/encoding.py)."""

    pieces: Tensor  # [B, L]
    shapes: Tensor  # [B, L]
    left: Tensor  # [B, N + 1], index of the last piece before a fencepost
    right: Tensor  # [B, N + 1], index of the first piece after it; 0 if there is no fencepost


class Output(NamedTuple):
    spans: Tensor  # [B, labels, N + 1, N + 1], logits of spans from fencepost i to j
    tags: Tensor  # [B, N, tags], logits


class ParserNetwork(nn.Module):
    """`labels` and `tags` are the numbers of labels and tags, `hidden` is the width of the heads."""

    def __init__(self, encoder: BertModel, *, labels: int, tags: int, hidden: int = 192, dropout: float = 0.15) -> None:
        super().__init__()
        width = encoder.config.hidden_size
        self.encoder = encoder
        self.labels = labels
        self.start = nn.Linear(2 * width, hidden)
        self.end = nn.Linear(2 * width, hidden)
        self.query = nn.Linear(hidden, labels * QUERY, bias=False)
        self.key = nn.Linear(hidden, labels * QUERY, bias=False)
        self.start_bias = nn.Linear(hidden, labels)
        self.end_bias = nn.Linear(hidden, labels, bias=False)
        self.length_bias = nn.Parameter(torch.zeros(labels, LENGTHS))
        self.tag_hidden = nn.Linear(2 * width, hidden)
        self.tag_output = nn.Linear(hidden, tags)
        self.dropout = nn.Dropout(dropout)
        nn.init.constant_(self.start_bias.bias, -2.0)  # few spans are constituents

    def forward(self, batch: Batch) -> Output:
        states = self.dropout(
            self.encoder(
                input_ids=batch.pieces, token_type_ids=batch.shapes, attention_mask=batch.pieces != 0
            ).last_hidden_state
        )
        before, after = _at(states, batch.left), _at(states, batch.right)
        fences = torch.cat([before, after], 2)
        start = self.dropout(functional.gelu(self.start(fences)))
        end = self.dropout(functional.gelu(self.end(fences)))
        size, places = batch.left.shape
        query = self.query(start).view(size, places, self.labels, QUERY).transpose(1, 2)
        key = self.key(end).view(size, places, self.labels, QUERY).transpose(1, 2)
        place = torch.arange(places, device=states.device)
        length = (place[None, :] - place[:, None]).clamp(0, LENGTHS - 1)
        spans = (
            query @ key.transpose(2, 3) / QUERY**0.5
            + self.start_bias(start).transpose(1, 2)[:, :, :, None]
            + self.end_bias(end).transpose(1, 2)[:, :, None, :]
            + self.length_bias[:, length]
        )
        words = torch.cat([after[:, :-1], before[:, 1:]], 2)  # a word's first and last piece
        tags = self.tag_output(self.dropout(functional.gelu(self.tag_hidden(words))))
        return Output(spans, tags)


def load_encoder(name: str | Path, *, layers: int, feed_forward: int) -> BertModel:
    """The lowest layers of a BERT, by hub id or path, with token types for the shapes of words.

    The `feed_forward` neurons with the largest weights of each feed-forward layer are kept.
    """
    config = BertConfig.from_pretrained(name, num_hidden_layers=layers)
    encoder = BertModel.from_pretrained(name, config=config, add_pooling_layer=False)
    old = encoder.embeddings.token_type_embeddings.weight.data
    types = nn.Embedding(SHAPES, old.shape[1])
    types.weight.data = old[:1].repeat(SHAPES, 1)
    encoder.embeddings.token_type_embeddings = types
    encoder.config.type_vocab_size = SHAPES
    if feed_forward < encoder.config.intermediate_size:
        layer: Any
        for layer in encoder.encoder.layer:
            inner, outer = layer.intermediate.dense, layer.output.dense
            size = inner.weight.norm(dim=1) * outer.weight.norm(dim=0)
            kept = size.topk(feed_forward).indices.sort().values
            inner.weight = nn.Parameter(inner.weight.data[kept])
            inner.bias = nn.Parameter(inner.bias.data[kept])
            outer.weight = nn.Parameter(outer.weight.data[:, kept])
        encoder.config.intermediate_size = feed_forward
    return encoder


def real_spans(batch: Batch) -> Tensor:
    """[B, 1, N + 1, N + 1]: whether i and j are fenceposts of the sentence and i < j."""
    real = batch.right > 0
    both = real[:, :, None] & real[:, None, :]
    return torch.triu(both, diagonal=1)[:, None]


def _at(states: Tensor, index: Tensor) -> Tensor:
    return states.gather(1, index[:, :, None].expand(-1, -1, states.shape[2]))
