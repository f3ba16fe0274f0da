"""Between tables and finders: a table of sentences to their words, entities to a table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.kinds.entities import ENTITIES
from schemas.terms import NAME_TYPES
from transforms.arrays import I64
from transforms.entities.interface import Entity, Words

SENTENCE_COLUMNS = ("sentence_id", "start_char", "text", "tokens")
"""The columns of sentences that are read."""


def read_words(sentences: pa.Table) -> list[Words]:
    """The words of each sentence: the tokens of its dataset, and whether anything stands between them and the next.

    Verse begins its lines with a capital, and a recogniser takes it for that of a name ("Forest of the night" after a
    line break). A word that begins a line within a sentence, and has not the tag of a name, begins with a small letter.
    """
    tokens = sentences.column("tokens").combine_chunks()
    edges = np.concatenate([[0], np.cumsum(pc.list_value_length(tokens).to_numpy().astype(np.int64))])
    items = tokens.flatten()
    starts, ends = (items.field(name).to_numpy().astype(np.int64) for name in ("start_char", "end_char"))
    space_after = np.zeros(len(starts), dtype=bool)
    space_after[:-1] = starts[1:] > ends[:-1]
    space_after[edges[1:][np.diff(edges) > 0] - 1] = False
    shift = np.repeat(sentences.column("start_char").to_numpy().astype(np.int64), np.diff(edges))
    places = list(zip((starts - shift).tolist(), (ends - shift).tolist(), strict=True))
    spaces = space_after.tolist()
    found = []
    for text, (first, last) in zip(
        sentences.column("text").to_pylist(), itertools.pairwise(edges.tolist()), strict=True
    ):
        words = [text[start:end] for start, end in places[first:last]]
        if "\n" in text:
            tags = items.field("tag").slice(first, last - first).to_pylist()
            for place in range(1, len(words)):
                between = text[places[first + place - 1][1] : places[first + place][0]]
                if "\n" in between and tags[place] and not tags[place].startswith("NNP"):
                    words[place] = words[place][:1].lower() + words[place][1:]
        found.append(Words(words, spaces[first:last]))
    return found


def is_uncapitalised(words: Sequence[str], entity: Entity) -> bool:
    """Whether an entity has the type of a name, small letters, and no capital: nearly always a common noun."""
    text = "".join(words[entity.start_token : entity.end_token])
    return entity.type in NAME_TYPES and text == text.lower() != text.upper()


def groups(sentences: Sequence[Words], tokens: int) -> Iterator[Sequence[Words]]:
    """The sentences in order, in groups of about so many tokens."""
    lengths = np.array([len(each.words) for each in sentences], np.int64)
    return (sentences[first:last] for first, last in _runs(lengths, tokens))


def slices(sentences: pa.Table, tokens: int) -> list[pa.Table]:
    """The rows of a table of sentences in order, in parts of about so many tokens."""
    lengths = pc.list_value_length(sentences.column("tokens")).to_numpy().astype(np.int64)
    return [sentences.slice(first, last - first) for first, last in _runs(lengths, tokens)]


def _runs(lengths: I64, tokens: int) -> Iterator[tuple[int, int]]:
    """[first, last) of consecutive items whose lengths add up to `tokens`, or as little more as possible."""
    ends = np.cumsum(lengths)
    first = 0
    while first < len(ends):
        reached = int(np.searchsorted(ends, ends[first] - lengths[first] + tokens)) + 1
        last = min(reached, len(ends))
        yield first, last
        first = last


def entities_table(sentence_ids: pa.ChunkedArray, found: Sequence[Sequence[Entity]]) -> pa.Table:
    """The entities of sentences, a row for each sentence."""
    type_ = ENTITIES.field("entities").type
    fields = list(type_.value_type)
    columns = zip(*itertools.chain.from_iterable(found), strict=True)
    flat = [[*column] for column in columns] or [[] for _ in fields]
    structs = pa.StructArray.from_arrays(
        [pa.array(column, field.type) for column, field in zip(flat, fields, strict=True)], fields=fields
    )
    edges = np.cumsum([0, *map(len, found)])
    lists = pa.ListArray.from_arrays(pa.array(edges, pa.int32()), structs, type=type_)
    return pa.table([sentence_ids, lists], schema=ENTITIES)
