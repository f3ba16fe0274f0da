"""The tags of token classifiers: what the labels of a model mean, and the spans that a sentence's tags make."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from transforms.entities.interface import Entity

_LABEL = re.compile(r"([BILUSEMW])[-_](.+)")
_UNNAMED = re.compile(r"LABEL_\d+")


class Tag(NamedTuple):
    """Whether a word begins or ends an entity for certain, and its type; "" outside of all entities."""

    begins: bool
    ends: bool
    type: str


OUTSIDE = Tag(False, False, "")


def tags_of(labels: Mapping[int, str]) -> list[Tag]:
    """The tag of each label of a model, by number, for the schemes BIO, IO, BILOU and BIOES.

    A label is a letter and a type (B-PER, or B_PER), or a type alone (PER), or O. ValueError if this is no tagger of
    entities: its labels have no O, or no names.
    """
    names = [labels[number] for number in range(len(labels))]
    if "O" not in names or any(map(_UNNAMED.fullmatch, names)):
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise ValueError(f"its labels are not those of entities, with O for the words outside of them: {shown}")
    found = []
    for name in names:
        match = _LABEL.fullmatch(name)
        letter, type_ = match.groups() if match else ("I", name)
        found.append(OUTSIDE if name == "O" else Tag(letter in "BUSW", letter in "LUESW", type_))
    return found


def spans(tags: Sequence[Tag], types: Mapping[str, str]) -> list[Entity]:
    """The entities of a sentence from the tags of its words; `types` names their types ("": left out).

    An entity goes on over words of the same type of which none begins one, or follows one that ends it. So a word with
    I after O, or after another type, begins an entity.
    """
    found: list[Entity] = []
    start = 0
    for place, tag in enumerate([*tags, OUTSIDE]):
        before = tags[place - 1] if place else OUTSIDE
        if before.type and (tag.type != before.type or tag.begins or before.ends):
            found.append(Entity(start, place, types[before.type]))
        if tag.type and (tag.type != before.type or tag.begins or before.ends):
            start = place
    return [each for each in found if each.type]
