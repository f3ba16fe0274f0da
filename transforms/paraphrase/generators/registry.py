"""Loads a generator. The modules that run one import torch, so they are imported only here."""

from __future__ import annotations

import importlib

from schemas.errors import UserError
from transforms.paraphrase.generators.identities import KNOWN, find_model, generator_identity, missing, prompt_of
from transforms.paraphrase.generators.interface import Generator
from transforms.paraphrase.options import ConstraintRules, GeneratorOptions


def load_generator(chosen: GeneratorOptions, *, unlikely: float = ConstraintRules().unlikely) -> Generator:
    """The generator chosen; `unlikely` is of the constraint. UserError if the model, or a library, is missing."""
    known, identity = KNOWN[chosen.generator], generator_identity(chosen)
    try:
        module = importlib.import_module(known.module)
        generator: Generator = getattr(module, known.cls)(
            find_model(chosen), identity, options=chosen, prompt=prompt_of(chosen), unlikely=unlikely
        )
    except ModuleNotFoundError as error:
        raise UserError(missing(chosen, error.name)) from error
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"--generator {chosen.generator}: {said}") from error
    return generator
