"""Loads an encoder. The modules that run one import torch, so they are imported only here."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from schemas.errors import UserError
from transforms.encoders.files import encoder_identity, find_encoder, missing
from transforms.encoders.interface import Encoder


def load_encoder(
    name: str,
    *,
    prefix: str = "",
    precision: str = "float32",
    pooling: str = "",
    layers: Sequence[int] = (),
    raw: bool = False,
    asked: str = "--encoder",
) -> Encoder:
    """An encoder: a folder, or a name on the hub.

    UserError, which begins with the option that asked for it, if it, or a library, is missing.
    `pooling` is used instead of the model's own, and the mean of `layers` (0: the embeddings) instead of the last one;
    `raw`: the vectors do not get length 1.
    Unless the model has modules that only sentence-transformers can run, the encoder is a `SpanEncoder`.
    """
    files = find_encoder(name, asked=asked)
    identity = encoder_identity(name, asked=asked)
    if not files.pooling and (pooling or layers or raw):
        raise UserError(f"{asked} {name}: has modules of its own, so --pooling, --layers and --raw do not apply")
    files = files._replace(pooling=pooling or files.pooling, normalised=files.normalised and not raw)
    module = importlib.import_module("transforms.encoders.transformers_encoders")
    given = {"prefix": prefix, "precision": precision}
    try:
        encoder: Encoder = (
            module.TorchEncoder(files, identity, layers=layers, **given)
            if files.pooling
            else module.WrappedEncoder(files, identity, **given)
        )
    except ModuleNotFoundError as error:
        raise UserError(f"{asked} {name}: {missing(error.name)}") from error
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"{asked} {name}: {str(error).strip().splitlines()[0]}") from error
    return encoder
