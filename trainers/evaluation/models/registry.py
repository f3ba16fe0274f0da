"""Finds the model that a name stands for. A kind is one module with `find`, and its name in KINDS."""

from __future__ import annotations

from importlib import import_module

from trainers.evaluation.model import FoundModel
from trainers.evaluation.models.options import ModelOptions

KINDS = ("baselines", "pgru", "word_vectors", "encoders")
"""The modules, in the order in which they are asked: each has `find(name, options)`, a `FoundModel`, or None.

The last one raises UserError for a name that is of no kind.
"""


def find_model(name: str, options: ModelOptions | None = None) -> FoundModel:
    """The model with that name: a baseline, word vectors, a folder, or a name on the hub. Nothing is loaded.

    UserError if there is none.
    """
    chosen = options or ModelOptions()
    found = (import_module(f"trainers.evaluation.models.{kind}").find(name, chosen) for kind in KINDS)
    return next(each for each in found if each is not None)
