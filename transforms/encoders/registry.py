"""Loads an encoder. The modules that run one import torch, so they are imported only here."""

from __future__ import annotations

import importlib

from schemas.errors import UserError
from transforms.encoders.files import encoder_identity, find_encoder, missing
from transforms.encoders.interface import Encoder


def load_encoder(name: str, *, prefix: str = "", precision: str = "float32") -> Encoder:
    """An encoder: a folder, or a name on the hub. UserError if it, or a library, is missing."""
    files = find_encoder(name)
    identity = encoder_identity(name)
    module = importlib.import_module("transforms.encoders.transformers_encoders")
    try:
        encoder: Encoder = (module.TorchEncoder if files.pooling else module.WrappedEncoder)(
            files, identity, prefix=prefix, precision=precision
        )
    except ModuleNotFoundError as error:
        raise UserError(f"--encoder {name}: {missing(error.name)}") from error
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"--encoder {name}: {str(error).strip().splitlines()[0]}") from error
    return encoder
