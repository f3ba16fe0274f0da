"""The types of occurrences of phrases, from the entities of their sentences (docs/typed-phrases.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import UserError
from schemas.terms import ENTITY_TYPES, NO_ENTITY
from transforms.arrays import I64, next_not, offsets_of, previous_not, single
from transforms.phrases.normalise import Class
from transforms.phrases.occurrences import Occurrences
from transforms.phrases.tokens import Tokens
from transforms.phrases.trees import Tree, Words


class Spans(NamedTuple):
    """n spans of tokens, counted in the shard; the ends are exclusive."""

    start: I64  # [n]
    end: I64  # [n]


def ordered_types(types: Iterable[str]) -> tuple[str, ...]:
    """The types that entities can have in the order that breaks ties: OntoNotes', others by name, NO_ENTITY."""
    own = {*types} - {NO_ENTITY}
    return (*(each for each in ENTITY_TYPES if each in own), *sorted(own - {*ENTITY_TYPES}), NO_ENTITY)


def read_entities(entities: pa.Table, types: tuple[str, ...], tokens: Tokens) -> tuple[Spans, I64]:
    """The m entities of a shard, in order, and the place of each one's type in `types`.

    `entities` has a row for each sentence of the shard. UserError if it has not, or another type.
    """
    lists = single(entities.combine_chunks(), "entities")
    sentences = len(tokens.first) - 1
    if len(lists) != sentences:
        raise UserError(f"entities: {len(lists):,} rows for {sentences:,} sentences; find them again with --overwrite")
    flat = lists.flatten()
    type_ = pc.index_in(flat.field("type"), pa.array(types))
    if type_.null_count:
        unknown = pc.filter(flat.field("type"), pc.is_null(type_))[0]
        raise UserError(f"entities: type {unknown} is none of those in the manifest; find them again with --overwrite")
    first = np.repeat(tokens.first[:-1], np.diff(offsets_of(lists)))
    start, end = (flat.field(name).to_numpy().astype(np.int64) + first for name in ("start_token", "end_token"))
    return Spans(start, end), type_.to_numpy().astype(np.int64)


def entity_types(
    sentences: pa.Table, tokens: Tokens, found: Occurrences, entities: pa.Table, types: tuple[str, ...], match: str
) -> I64:
    """[k] the entity type of each occurrence, as a place in `types`, of which the last is NO_ENTITY.

    exact      the type of the entity with the words of the phrase, or of the object of a PP
    head       that, or of the entity inside the phrase that has its head, or the head of the object of a PP
    contained  that, or of the longest entity inside the phrase, of equally long ones the first

    Determiners, punctuation and possessives at their ends do not matter: "the Rhine's" is the entity of "rhine".
    """
    words = Words(sentences, tokens)
    tree = Tree(sentences, tokens)
    leading = next_not(words.are(Class.PUNCTUATION | Class.CLITIC | Class.DETERMINER))
    trailing = previous_not(words.are(Class.PUNCTUATION | Class.POSSESSIVE))

    def trimmed(start: I64, end: I64) -> Spans:
        first, last = leading[start], trailing[end - 1] + 1
        return Spans(np.where(first < last, first, start), np.where(first < last, last, end))

    spans, type_ = read_entities(entities, types, tokens)
    spans = trimmed(*spans)
    inside = Spans(found.start, found.end)
    object_ = tree.objects(words)[found.constituent]
    ways = [_equal(trimmed(*inside), spans), _equal(trimmed(tree.start[object_], tree.end[object_]), spans)]
    if match == "head":
        ways.append(_at(tree.heads(words)[object_], spans, inside))
    if match == "contained":
        ways.append(_longest(spans, inside))
    entity = np.select([way >= 0 for way in ways], ways, -1)
    return np.append(type_, types.index(NO_ENTITY))[entity]


def _equal(sought: Spans, entities: Spans) -> I64:
    """The entity with each span, -1 where there is none."""
    place = np.searchsorted(entities.start, sought.start)
    start, end = (np.append(each, -1)[place] for each in entities)
    return np.where((start == sought.start) & (end == sought.end), place, -1)


def _at(token: I64, entities: Spans, inside: Spans) -> I64:
    """The entity with each token, if it is inside of a span; -1 where there is none, or no token (-1)."""
    place = np.searchsorted(entities.start, token, side="right") - 1
    start, end = (np.append(each, -1)[place] for each in entities)
    return np.where((token >= 0) & (end > token) & (start >= inside.start) & (end <= inside.end), place, -1)


def _longest(entities: Spans, inside: Spans) -> I64:
    """The longest entity inside each span, of equally long ones the first; -1 where there is none.

    Of four entities with 3 2 1 2 tokens, the ranks are 15 10 5 8: the highest rank in a span is that of its entity, and
    the rest of its division by 4 is the number of entities after it.
    """
    n = len(entities.start)
    after = np.arange(n)[::-1]
    rank = np.append((entities.end - entities.start) * n + after, 0)
    first = np.searchsorted(entities.start, inside.start)
    last = np.maximum(np.searchsorted(entities.end, inside.end, side="right"), first)
    if not len(first):
        return first
    highest = np.maximum.reduceat(rank, np.stack([first, last], axis=1).ravel())[::2]
    return np.where(first < last, n - 1 - highest % max(n, 1), -1)
