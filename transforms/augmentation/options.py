"""The options of augmentations (docs/augmentation.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class AugmenterOptions:
    """Options of single operations, such as the path of a lexicon: `registry.py` says which operation takes which."""

    group: ClassVar[str] = "operations"
