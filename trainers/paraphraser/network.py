"""The causal language model of a paraphraser: a new one of GPT-2's architecture, or one to fine-tune."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

from schemas.errors import UserError
from trainers.paraphraser.options import ParaphraserTraining
from trainers.paraphraser.vocabulary import embeddings_of, make_tokenizer
from transforms.hub import locate_model
from transforms.libraries import quiet_transformers

HEAD = 64  # width of an attention head
DEVIATION = 0.05
"""The standard deviation of an encoder's word embeddings here."""


class Paraphraser(NamedTuple):
    """A causal language model and its tokenizer."""

    model: Any
    tokenizer: Any


def _placed(model: nn.Module) -> nn.Module:
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


def new_paraphraser(options: ParaphraserTraining, texts: Sequence[str]) -> Paraphraser:
    """One of GPT-2's architecture, with a vocabulary made for some texts."""
    tokenizer = make_tokenizer(texts, options.vocabulary)
    embeddings = None
    width = options.width
    if options.embeddings not in (None, "none"):
        embeddings = embeddings_of(_located(str(options.embeddings), "--embeddings"), tokenizer, deviation=DEVIATION)
        width = embeddings.shape[1]
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=width,
        n_layer=options.layers,
        n_head=max(1, width // HEAD),
        n_positions=2 * options.max_tokens,
        activation_function="gelu_pytorch_tanh",  # GPT-2's function, computed at once
        resid_pdrop=options.dropout,
        embd_pdrop=options.dropout,
        attn_pdrop=0.0,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = GPT2LMHeadModel(config)
    if embeddings is not None:
        with torch.no_grad():
            known = torch.from_numpy(embeddings)
            rows = known.abs().sum(1) > 0
            model.transformer.wte.weight[rows] = known[rows]
    return Paraphraser(_placed(model), tokenizer)


def load_base(options: ParaphraserTraining) -> Paraphraser:
    """A causal language model of the hub or on disk."""
    folder = _located(str(options.base), "--base")
    with quiet_transformers():
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(folder)
    return Paraphraser(_placed(model), tokenizer)


def _located(name: str, flag: str) -> str:
    try:
        return str(locate_model(name))
    except OSError as error:
        raise UserError(f"{flag} {name}: {error}") from error


def trained_parameters(model: Any, options: ParaphraserTraining) -> list[nn.Parameter]:
    """The weights that are trained; the others are frozen."""
    if options.trained_layers is not None:
        model.requires_grad_(False)
        (layers,) = [each for each in model.base_model.children() if isinstance(each, nn.ModuleList)]
        for layer in layers[len(layers) - options.trained_layers :]:
            layer.requires_grad_(True)
    if options.frozen_embeddings:
        model.get_input_embeddings().requires_grad_(False)
    return [each for each in model.parameters() if each.requires_grad]
