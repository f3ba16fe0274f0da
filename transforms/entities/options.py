"""The options of finding entities (docs/entities.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import option
from transforms.entities.registry import ENTITY_FINDERS
from transforms.registry import Settings, name_and_value, settings_of


@dataclass(frozen=True)
class EntityOptions:
    """Which finder of entities, and its own options."""

    group: ClassVar[str] = "entities"

    entity_finder: str = option("phrasemill", choices=ENTITY_FINDERS, help="what finds named entities in the sentences")
    entity_model: str | None = option(
        None, metavar="NAME", help="the model of that: a name or a path", unset="the finder's own"
    )
    entity_option: tuple[str, ...] = option(
        (),
        takes=name_and_value,
        repeated=True,
        metavar="NAME=VALUE",
        help="an option of that finder (docs/entities.md); may be repeated",
    )
    keep_uncapitalised: bool = option(
        False,
        help="keep entities without a capital",
        more="Without it, those of the types of names are left out: nearly all are common nouns",
    )

    def settings(self) -> Settings:
        """All options of the finder, sorted by name."""
        return settings_of(self.entity_option, model=self.entity_model)
