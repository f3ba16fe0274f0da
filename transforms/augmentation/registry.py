"""The augmentations by name. Each is imported only when it is used: some need an extra."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from transforms.augmentation.interface import Augmenter

CHARACTER, TOKEN, PHRASE = GRANULARITIES = ("character", "token", "phrase")


class _Listed(NamedTuple):
    """An operation: its granularity, its class, and the options that it takes, by name (`AugmenterOptions`).

    `always`: it is among the operations where --operations does not say which.
    """

    granularity: str
    module: str
    cls: str
    options: str = ""
    always: bool = True


_OPERATIONS = {
    "swap_characters": _Listed(CHARACTER, "characters", "Swap", "min_word_letters"),
    "drop_character": _Listed(CHARACTER, "characters", "Drop", "min_word_letters"),
    "insert_character": _Listed(CHARACTER, "characters", "Insert", "min_word_letters"),
    "keyboard": _Listed(CHARACTER, "characters", "Keyboard", "min_word_letters"),
    "swap_tokens": _Listed(TOKEN, "tokens", "SwapTokens", "swap"),
    "paraphrase": _Listed(PHRASE, "paraphrases", "Paraphrase", "candidates", always=False),
}

OPERATIONS = tuple(_OPERATIONS)
ALWAYS = tuple(name for name, listed in _OPERATIONS.items() if listed.always)
GRANULARITY = {name: listed.granularity for name, listed in _OPERATIONS.items()}


def load_augmenter(operation: str, options: Mapping[str, Any]) -> Augmenter:
    """Load an operation with those of the options that it takes. UserError if it lacks a model, lexicon or library."""
    loaded: Augmenter = _class(operation)(**taken(operation, options))
    return loaded


def augmenter_identity(operation: str, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The model or lexicon of an operation, without loading it; None if it has none. UserError as in load_augmenter."""
    found: Mapping[str, Any] | None = _class(operation).identity(**taken(operation, options))
    return found


def taken(operation: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that an operation takes."""
    wanted = _OPERATIONS[operation].options.split()
    return {name: value for name, value in options.items() if name in wanted}


def _class(operation: str) -> Any:
    listed = _OPERATIONS[operation]
    return getattr(importlib.import_module(f"transforms.augmentation.{listed.module}"), listed.cls)
