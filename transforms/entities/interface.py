"""The interface of entity finders: tokenised sentences in, spans of their tokens with types out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from schemas.terms import ENTITY_TYPES


class Words(NamedTuple):
    """A sentence as its tokens, and whether white space follows each of them."""

    words: list[str]
    space_after: list[bool]


class Entity(NamedTuple):
    """A span of tokens that names something; the end is exclusive."""

    start_token: int
    end_token: int
    type: str


class FinderIdentity(NamedTuple):
    """What decides a finder's output; part of fingerprints and manifests."""

    entity_finder: str
    version: int  # of our own code for it, raised by hand
    model: str
    model_version: str
    model_sha256: str
    types: list[str]  # all that it can give, sorted
    libraries: dict[str, str]


class EntityFinder(Protocol):
    """A loaded finder, loaded once in a process.

    The output of a call depends only on its input and the identity.
    """

    identity: FinderIdentity

    def find(self, sentences: Sequence[Words]) -> list[list[Entity]]:
        """The entities of each sentence, in order, without overlaps. The sentences may be of several documents."""
        ...


_ALIKE = {"PER": "PERSON"}
"""Names of types in other inventories that mean the same as OntoNotes'."""


def types_of(labels: Sequence[str], given: str = "") -> dict[str, str]:
    """The type that each label of a model becomes; "" for a label that is left out.

    A label becomes OntoNotes' type of the same name, whatever its case, or one that means the same, or else is kept as
    it is: MISC stays MISC. `given` decides otherwise: "LOC:GPE,MISC:" makes LOC GPE and leaves out MISC. ValueError if
    it names a label that the model does not have.
    """
    found = {}
    for label in labels:
        name = _ALIKE.get(label.upper(), label.upper())
        found[label] = name if name in ENTITY_TYPES else label
    for each in filter(None, given.split(",")):
        label, colon, type_ = each.partition(":")
        if not colon or label not in found:
            raise ValueError(f"types: {each!r} is not LABEL:TYPE with a label of the model: {', '.join(sorted(found))}")
        found[label] = type_
    return found
