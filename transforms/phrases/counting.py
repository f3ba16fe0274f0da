"""Exact counts of phrases and of their surfaces: a shard at a time, then merged by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from schemas.columns import list_of
from schemas.keys import halves, order_by_key
from schemas.kinds.phrases import PHRASES
from schemas.kinds.typed_phrases import TYPED_PHRASES, type_names
from schemas.terms import PHRASE_LABELS
from transforms.arrays import I64, U64, Bools, offsets_of, run_hashes, run_starts, single, slice_strings, string_bytes
from transforms.phrases.occurrences import Occurrences, find_occurrences
from transforms.phrases.options import PhraseRules
from transforms.phrases.tokens import Tokens, read_tokens

Typing = Callable[[Tokens, Occurrences], I64]
"""Gives the types of the occurrences of a shard."""

_KEY_FIELDS = [("key_hi", pa.uint64()), ("key_lo", pa.uint64())]
_SUMS = ("frequency", "document_frequency", *PHRASE_LABELS)
_SUM_FIELDS = [(name, pa.int64()) for name in _SUMS]

COUNTS = pa.schema(
    [
        *_KEY_FIELDS,
        ("surface_key", pa.uint64()),
        ("phrase", pa.string()),
        ("surface", pa.string()),
        *_SUM_FIELDS,
    ]
)
"""Counts of phrases by their surfaces: the frequency, in total and for each label. All of them can be added.

The key is any 128-bit hash of the phrase, `surface_key` any hash of the surface. If that is the phrase itself,
`surface` is null and its key 0. A document counts for the surface that the phrase has in it first.
"""

TOTALS = pa.schema(
    [*_KEY_FIELDS, ("phrase", pa.string()), ("surface", pa.string()), *_SUM_FIELDS, ("of_surface", pa.int64())]
)
"""Counts of phrases, the commonest surface of each (null where it is the phrase itself), and how often that occurs."""

TYPE = pa.field("type", pa.uint16())
"""A further column of COUNTS, which are then by type, too: the place of the label, times the number of entity types,
and the place of the entity type."""

TYPES = pa.field("types", list_of(pa.struct([TYPE, pa.field("count", pa.int64())])))
"""A further column of TOTALS: how many occurrences of a phrase have a type, in order of the types."""

FREQUENCIES = pa.schema([("frequency", pa.int64()), ("phrases", pa.int64())])
"""How many phrases have a frequency."""

ORDER = (("frequency", "descending"), ("key_hi", "ascending"), ("key_lo", "ascending"))
"""The order of phrases: the most frequent first, ties by the hash of the phrase, which favours no letter."""


class ShardCounts(NamedTuple):
    """The counts of one shard, keyed by `slice_hashes`, and how many constituents were read and filtered."""

    table: pa.Table
    tokens: int
    read: int
    written: int
    filtered: dict[str, int]


def count_shard(sentences: pa.Table, rules: PhraseRules, typing: Typing | None = None) -> ShardCounts:
    """Count the phrases of a shard of sentences. A document lies in one shard, so document frequencies add up.

    With `typing`, which gives the types of occurrences, the counts are by type, too (TYPE).
    """
    tokens = read_tokens(sentences, lowercase=rules.lowercase)
    found = find_occurrences(sentences, tokens, rules)
    table = _count(tokens, found, typing(tokens, found) if typing else None)
    return ShardCounts(table, len(tokens.form), found.read, len(found.start), found.filtered)


def _count(tokens: Tokens, found: Occurrences, types: I64 | None) -> pa.Table:
    schema = COUNTS if types is None else COUNTS.append(TYPE)
    order = np.argsort(found.hash_hi, kind="stable")
    hi, lo = found.hash_hi[order], found.hash_lo[order]
    if not len(order):
        return schema.empty_table()
    document = tokens.document[found.sentence[order]]
    # Occurrences are in order of the text, so a document's are side by side within a phrase.
    new_document = np.ones(len(order), dtype=np.int64)
    new_document[1:] = document[1:] != document[:-1]
    new_document[run_starts(hi, lo)] = 1
    surface = _surface_hashes(tokens, found.start[order], found.end[order])
    more = () if types is None else (types[order].astype(np.uint64),)
    by_surface = order_by_key(hi, lo, surface, *more)
    order, new_document = order[by_surface], new_document[by_surface]
    starts = run_starts(*(key[by_surface] for key in (hi, lo, surface, *more)))
    heads = order[starts]
    first, last = found.start[heads], found.end[heads] - 1
    surface_key = surface[by_surface[starts]]
    label = found.label[order]
    columns: dict[str, Any] = {
        "key_hi": found.hash_hi[heads],
        "key_lo": found.hash_lo[heads],
        "surface_key": surface_key,
        "phrase": slice_strings(tokens.buffer, tokens.byte_start[first], tokens.byte_end[last]),
        "surface": _surfaces(tokens, first, last + 1, surface_key != 0),
        "frequency": np.diff(np.append(starts, len(order))),
        "document_frequency": np.add.reduceat(new_document, starts),
    }
    for place, name in enumerate(PHRASE_LABELS):
        columns[name] = np.add.reduceat((label == place).astype(np.int64), starts)
    if types is not None:
        columns[TYPE.name] = types[heads].astype(np.uint16)
    return pa.table(columns, schema=schema)


def _surface_hashes(tokens: Tokens, start: I64, end: I64) -> U64:
    """A hash of the surface of each span of tokens, 0 where it is the phrase itself.

    It separates surfaces of one phrase; the same surface may have two, if it is made of other tokens: "can not".
    """
    different = [
        0 if word == form else xxhash.xxh3_64_intdigest(word.encode())
        for word, form in zip(tokens.words, tokens.forms, strict=True)
    ]
    return run_hashes(np.array(different, np.uint64)[tokens.form], start, end)


def _surfaces(tokens: Tokens, start: I64, end: I64, wanted: Bools) -> pa.Array:
    """The text of the spans `wanted`, with one blank for any white space between tokens; null for the others.

    Wanted are the spans [0, 2) and [3, 4): `edges` is 0 2 3, and the tokens are 0 0 3 + 0 1 0 = 0 1 3.
    """
    start, end = start[wanted], end[wanted]
    lengths = end - start
    edges = np.concatenate(([0], np.cumsum(lengths)))
    token = np.repeat(start - edges[:-1], lengths) + np.arange(edges[-1])
    spaced = tokens.byte_start[token] > tokens.byte_end[token - 1]
    spaced[edges[:-1]] = False
    pieces = pa.array([*tokens.words, *(" " + each for each in tokens.words)], pa.string())
    data, byte_edges = string_bytes(pieces.take(pa.array(tokens.form[token] + spaced * len(tokens.words))))
    byte_edges = byte_edges[edges]
    texts = slice_strings(data, byte_edges[:-1], byte_edges[1:])
    places = np.cumsum(wanted) - 1
    return texts.take(pa.array(places, mask=~wanted))


def merge_counts(tables: Sequence[pa.Table]) -> pa.Table:
    """Counts added up by key, and by type if they have one; in order of key."""
    schema = tables[0].schema if tables else COUNTS
    table = pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()
    names = [name for name in ("key_hi", "key_lo", "surface_key", TYPE.name) if name in schema.names]
    keys = [table.column(name).to_numpy() for name in names]
    order = order_by_key(*keys)
    starts = run_starts(*(key[order] for key in keys))
    return pa.table(_add_up(table, order, starts, order[starts]), schema=schema)


def _add_up(table: pa.Table, order: I64, starts: I64, heads: I64) -> dict[str, Any]:
    """The columns of groups of rows: the sums of each group, and what else there is from the rows `heads`."""
    columns = {name: table.column(name).take(pa.array(heads)) for name in table.column_names}
    for name in _SUMS if len(starts) else ():
        columns[name] = np.add.reduceat(table.column(name).to_numpy()[order], starts)
    return columns


def total_counts(counts: pa.Table) -> pa.Table:
    """Totals of phrases (TOTALS), in the order ORDER, from counts keyed as on storage; with TYPES if those have types.

    The surface of a phrase is the one that occurs most often, ties by its hash.
    """
    types = None
    if TYPE.name in counts.column_names:
        types = _type_lists(counts)
        counts = counts.drop_columns([TYPE.name])
    hi, surface_key = (counts.column(name).to_numpy() for name in ("key_hi", "surface_key"))
    surface_key = np.where(surface_key == 0, hi, surface_key)
    counts = merge_counts([counts.set_column(2, "surface_key", pa.array(surface_key))])
    schema = TOTALS if types is None else TOTALS.append(TYPES)
    if not counts.num_rows:
        return schema.empty_table()
    hi, lo, frequency = (counts.column(name).to_numpy() for name in ("key_hi", "key_lo", "frequency"))
    starts = run_starts(hi, lo)
    sizes = np.diff(np.append(starts, len(hi)))
    # The surfaces of a phrase are in order of their hashes: the first of the most frequent is taken.
    best = np.flatnonzero(frequency == np.repeat(np.maximum.reduceat(frequency, starts), sizes))
    phrase = np.repeat(np.arange(len(starts)), sizes)
    best = best[run_starts(phrase[best])]
    columns = _add_up(counts, np.arange(len(hi)), starts, best) | {"of_surface": frequency[best]}
    # The phrases are in order of their keys.
    order = np.argsort(-columns["frequency"], kind="stable")
    if types is not None:
        columns[TYPES.name] = types
    return pa.table({name: columns[name] for name in schema.names}, schema=schema).take(pa.array(order))


def _type_lists(counts: pa.Table) -> pa.Array:
    """How often each phrase has each type (TYPES), the phrases in order of key, their types in order."""
    hi, lo, type_ = (counts.column(name).to_numpy() for name in ("key_hi", "key_lo", TYPE.name))
    order = order_by_key(hi, lo, type_)
    hi, lo, type_ = hi[order], lo[order], type_[order]
    starts = run_starts(hi, lo, type_)
    sums = np.add.reduceat(counts.column("frequency").to_numpy()[order], starts) if len(starts) else starts
    items = pa.StructArray.from_arrays([pa.array(type_[starts]), pa.array(sums)], fields=list(TYPES.type.value_type))
    edges = np.append(run_starts(hi[starts], lo[starts]), len(starts))
    return pa.ListArray.from_arrays(pa.array(edges, pa.int32()), items, type=TYPES.type)


def with_storage_keys(table: pa.Table) -> pa.Table:
    """The same counts, keyed by xxh3 of the phrase and, with 64 of its 128 bits, of the surface, as on storage."""
    hi, lo = phrase_keys(table.column("phrase"))
    surface = table.column("surface").combine_chunks()
    own = surface.is_valid().to_numpy(zero_copy_only=False)
    surface_key = np.zeros(len(hi), dtype=np.uint64)
    surface_key[own] = phrase_keys(surface.drop_null())[0]
    for place, key in enumerate((hi, lo, surface_key)):
        table = table.set_column(place, COUNTS.names[place], pa.array(key))
    return table


def phrase_keys(phrases: pa.ChunkedArray | pa.Array) -> tuple[U64, U64]:
    """128 bits of xxh3 over each phrase's UTF-8 bytes, as two 64-bit columns."""
    return halves(map(xxhash.xxh3_128_digest, phrases.cast(pa.binary()).to_pylist()))


def frequencies_of(totals: pa.Table) -> pa.Table:
    """How many phrases have each frequency (FREQUENCIES)."""
    return pa.table(list(np.unique(totals.column("frequency").to_numpy(), return_counts=True)), schema=FREQUENCIES)


class Cut(NamedTuple):
    """The end of the most frequent phrases: how many are kept, the lowest frequency of them, how many more have it."""

    kept: int
    lowest: int
    tied: int


def cut_at(frequencies: pa.Table, most: int | None) -> Cut:
    """The cut after the `most` most frequent phrases. A frequency may be in several rows of FREQUENCIES.

    5 phrases occur 9 times and 2 + 3 once. The first 6 are kept: up to the three rows there are 5, 7 and 10 phrases, so
    the sixth occurs once, as do 4 that are not kept.
    """
    frequency, phrases = (frequencies.column(name).to_numpy() for name in FREQUENCIES.names)
    if not len(frequency):
        return Cut(0, 0, 0)
    order = np.argsort(-frequency, kind="stable")
    frequency, up_to = frequency[order], np.cumsum(phrases[order])
    total = int(up_to[-1])
    kept = total if most is None else min(most, total)
    lowest = frequency[np.searchsorted(up_to, kept)]
    return Cut(kept, int(lowest), int(up_to[frequency == lowest][-1]) - kept)


def to_phrases(totals: pa.Table) -> pa.Table:
    """Phrase records (PHRASES) from totals. The label is the most frequent one, ties by the order of PHRASE_LABELS."""
    by_label = np.stack([totals.column(name).to_numpy() for name in PHRASE_LABELS])
    frequency = totals.column("frequency").to_numpy()
    best = by_label.argmax(axis=0) if totals.num_rows else np.zeros(0, dtype=np.int64)
    shares = (by_label / np.maximum(frequency, 1)).astype(np.float32)
    labels = pa.array(PHRASE_LABELS).take(pa.array(best, pa.int64()))
    share_type = PHRASES.field("label_shares").type
    columns = {
        "phrase": totals.column("phrase"),
        "surface": pc.coalesce(totals.column("surface"), totals.column("phrase")),
        "surface_share": (totals.column("of_surface").to_numpy() / np.maximum(frequency, 1)).astype(np.float32),
        "label": labels,
        "label_shares": pa.StructArray.from_arrays(
            [pa.array(each, pa.float32()) for each in shares], fields=list(share_type)
        ),
        "frequency": frequency,
        "document_frequency": totals.column("document_frequency"),
    }
    return pa.table(columns, schema=PHRASES)


def to_typed_phrases(totals: pa.Table, entity_types: Sequence[str]) -> pa.Table:
    """Typed phrase records (TYPED_PHRASES) from totals with TYPES.

    The type is the most frequent among the occurrences with the phrase's label, ties by the order of `entity_types`.
    """
    table = to_phrases(totals)
    lists = single(totals, TYPES.name)
    edges = offsets_of(lists)
    items = lists.flatten()
    code, count = items.field(TYPE.name).to_numpy().astype(np.int64), items.field("count").to_numpy()
    phrase = np.repeat(np.arange(len(table)), np.diff(edges))
    label = pc.index_in(table.column("label"), pa.array(PHRASE_LABELS)).to_numpy()
    own = np.flatnonzero(code // len(entity_types) == label[phrase])
    # The types of a phrase are in order: the first of the most frequent is taken.
    best = own[np.lexsort((-count[own], phrase[own]))]
    best = best[run_starts(phrase[best])]
    order = np.lexsort((code, -count, phrase))
    shares = (count[order] / np.repeat(totals.column("frequency").to_numpy(), np.diff(edges))).astype(np.float32)
    names = pa.array(type_names(entity_types))
    columns = {name: table.column(name) for name in table.column_names} | {
        "type": names.take(pa.array(code[best])),
        "entity_type": pa.array(entity_types).take(pa.array(code[best] % len(entity_types))),
        "type_shares": pa.ListArray.from_arrays(
            pa.array(edges, pa.int32()),
            pa.StructArray.from_arrays(
                [names.take(pa.array(code[order])), pa.array(shares)],
                fields=list(TYPED_PHRASES.field("type_shares").type.value_type),
            ),
            type=TYPED_PHRASES.field("type_shares").type,
        ),
    }
    return pa.table(columns, schema=TYPED_PHRASES)
