"""The entity finders by name. Each is imported only when it is used: `transformers` needs an extra."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from transforms.registry import Listed, Registry

if TYPE_CHECKING:
    from transforms.entities.interface import EntityFinder, FinderIdentity

REGISTRY = Registry(
    "entity finder",
    {
        "phrasemill": Listed("transforms.entities.phrasemill_finder", "PhrasemillFinder", "model types"),
        "spacy": Listed("transforms.entities.spacy_finder", "SpacyFinder", "model types"),
        "transformers": Listed(
            "transforms.entities.transformers_finder", "TransformersFinder", "model types batch_tokens threads"
        ),
    },
)

ENTITY_FINDERS = tuple(REGISTRY.listed)


def load_finder(name: str, **options: Any) -> EntityFinder:
    """Load a finder with its own options (docs/entities.md). UserError names what is missing or unknown."""
    finder: EntityFinder = REGISTRY.load(name, options)
    return finder


@functools.lru_cache(maxsize=2)
def finder_identity(name: str, **options: Any) -> FinderIdentity:
    """What decides the finder's output, for a fingerprint; from its files. UserError as from `load_finder`."""
    from transforms.entities import identities

    with REGISTRY.mendable(name, options):
        identity: FinderIdentity = getattr(identities, name)(**options)
        return identity


def needs_torch(name: str, **options: Any) -> bool:
    """Whether the finder runs on torch."""
    from transforms.parsing.spacy_files import find_spacy

    with REGISTRY.mendable(name, options):
        return name == "transformers" or (name == "spacy" and find_spacy(options.get("model", "")).needs_torch)
