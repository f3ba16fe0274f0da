"""The augmentations by name. Each is imported only when it is used: some need an extra."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from transforms.augmentation.interface import Augmenter

CHARACTER, TOKEN, PHRASE = GRANULARITIES = ("character", "token", "phrase")
UNCHANGED = "unchanged"
"""The operation that leaves a phrase as it is, and its granularity."""


class _Listed(NamedTuple):
    """An operation: its granularity, its class, and the options that it takes, by name (`AugmenterOptions`).

    `places` are those of its options that do not change its output, such as the path of a lexicon whose content is in
    its identity. `always`: it is among the operations where --operations does not say which.
    """

    granularity: str
    module: str
    cls: str
    options: str = ""
    places: str = ""
    always: bool = True


_OPERATIONS = {
    "swap_characters": _Listed(CHARACTER, "characters", "Swap", "min_word_letters"),
    "drop_character": _Listed(CHARACTER, "characters", "Drop", "min_word_letters"),
    "insert_character": _Listed(CHARACTER, "characters", "Insert", "min_word_letters"),
    "keyboard": _Listed(CHARACTER, "characters", "Keyboard", "min_word_letters"),
    "swap_tokens": _Listed(TOKEN, "tokens", "SwapTokens", "swap"),
    "synonym": _Listed(TOKEN, "synonyms", "Synonym"),
    "nearest_word": _Listed(TOKEN, "vectors", "NearestWord", "min_cosine", "vectors", always=False),
    "contextual": _Listed(TOKEN, "contextual", "Contextual", places="masked_lm", always=False),
    "nlpaug_keyboard": _Listed(CHARACTER, "nlpaug_augmenters", "Keyboard", always=False),
    "nlpaug_ocr": _Listed(CHARACTER, "nlpaug_augmenters", "Ocr", always=False),
    "nlpaug_spelling": _Listed(TOKEN, "nlpaug_augmenters", "Spelling", always=False),
    "paraphrase": _Listed(PHRASE, "paraphrases", "FromPairs", "candidates", always=False),
}

CODE = {CHARACTER: 0.10, TOKEN: 0.30, "swap_tokens": 0.05, PHRASE: 0.50, UNCHANGED: 0.05}
"""The shares of PEARL's code, by operation or granularity: a granularity is that of its other operations."""

OPERATIONS = tuple(_OPERATIONS)
FROM_PAIRS = tuple(name for name, listed in _OPERATIONS.items() if "candidates" in listed.options.split())
"""Those that are made of pairs of texts that mean the same, and loaded with those of some phrases."""

ALWAYS = tuple(name for name, listed in _OPERATIONS.items() if listed.always)
GRANULARITY = {name: listed.granularity for name, listed in _OPERATIONS.items()}


def load_augmenter(operation: str, options: Mapping[str, Any]) -> Augmenter:
    """Load an operation with those of the options that it takes. UserError if it lacks a model, lexicon or library."""
    loaded: Augmenter = _class(operation)(**taken(operation, options))
    return loaded


def augmenter_identity(operation: str, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The model or lexicon of an operation, without loading it; None if it has none. UserError as in load_augmenter."""
    if operation == UNCHANGED:
        return None
    found: Mapping[str, Any] | None = _class(operation).identity(**taken(operation, options))
    return found


def place_options(operations: Iterable[str]) -> set[str]:
    """The options of operations that do not change their output."""
    return {name for each in operations if each in _OPERATIONS for name in _OPERATIONS[each].places.split()}


def taken(operation: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that an operation takes."""
    if operation == UNCHANGED:
        return {}
    listed = _OPERATIONS[operation]
    wanted = [*listed.options.split(), *listed.places.split()]
    return {name: value for name, value in options.items() if name in wanted}


def _class(operation: str) -> Any:
    listed = _OPERATIONS[operation]
    return getattr(importlib.import_module(f"transforms.augmentation.{listed.module}"), listed.cls)
