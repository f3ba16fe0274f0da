"""Exact counts of phrases: a shard at a time, then merged by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from schemas.kinds.phrases import PHRASES
from schemas.terms import PHRASE_LABELS
from transforms.arrays import U64, slice_strings
from transforms.phrases.occurrences import Occurrences, Tokens, find_occurrences, read_tokens
from transforms.phrases.options import PhraseRules

_KEY_FIELDS = [("key_hi", pa.uint64()), ("key_lo", pa.uint64())]

COUNTS = pa.schema(
    [
        *_KEY_FIELDS,
        ("phrase", pa.string()),
        ("frequency", pa.int64()),
        ("document_frequency", pa.int64()),
        *((label, pa.int64()) for label in PHRASE_LABELS),
    ]
)
"""Counts of phrases: the frequency, in total and for each label. The key is any 128-bit hash of the phrase."""

SUMMED = ("frequency", "document_frequency", *PHRASE_LABELS)

ORDER = (("frequency", "descending"), ("phrase", "ascending"))
"""The order of phrases: the most frequent first, ties by the UTF-8 bytes of the phrase."""


class ShardCounts(NamedTuple):
    """The counts of one shard, keyed by `slice_hashes`, and how many constituents were read and filtered."""

    table: pa.Table
    tokens: int
    read: int
    written: int
    filtered: dict[str, int]


def count_shard(sentences: pa.Table, rules: PhraseRules) -> ShardCounts:
    """Count the phrases of a shard of sentences. A document lies in one shard, so document frequencies add up."""
    tokens = read_tokens(sentences, lowercase=rules.lowercase)
    found = find_occurrences(sentences, tokens, rules)
    table = _count(tokens, found)
    return ShardCounts(table, len(tokens.form), found.read, len(found.start), found.filtered)


def _count(tokens: Tokens, found: Occurrences) -> pa.Table:
    order = np.argsort(found.hash_hi, kind="stable")
    hi, lo = found.hash_hi[order], found.hash_lo[order]
    starts = group_starts(hi, lo)
    if not len(starts):
        return COUNTS.empty_table()
    document = tokens.document[found.sentence[order]]
    # Occurrences are in order of the text, so a document's are side by side within a phrase.
    new_document = np.ones(len(order), dtype=np.int64)
    new_document[1:] = document[1:] != document[:-1]
    new_document[starts] = 1
    label = found.label[order]
    head = order[starts]
    columns: dict[str, Any] = {
        "key_hi": hi[starts],
        "key_lo": lo[starts],
        "phrase": slice_strings(
            tokens.buffer, tokens.byte_start[found.start[head]], tokens.byte_end[found.end[head] - 1]
        ),
        "frequency": np.diff(np.append(starts, len(order))),
        "document_frequency": np.add.reduceat(new_document, starts),
    }
    for place, name in enumerate(PHRASE_LABELS):
        columns[name] = np.add.reduceat((label == place).astype(np.int64), starts)
    return pa.table(columns, schema=COUNTS)


def group_starts(hi: U64, lo: U64) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Where each group of equal keys begins; equal keys are side by side.

    >>> group_starts(np.array([1, 1, 1], np.uint64), np.array([4, 4, 7], np.uint64))
    array([0, 2])
    """
    new = np.ones(len(hi), dtype=bool)
    new[1:] = (hi[1:] != hi[:-1]) | (lo[1:] != lo[:-1])
    return np.flatnonzero(new)


def merge_counts(tables: Sequence[pa.Table]) -> pa.Table:
    """Counts added up by key, in order of key."""
    table = pa.concat_tables([COUNTS.empty_table(), *tables]).combine_chunks()
    hi, lo = table.column("key_hi").to_numpy(), table.column("key_lo").to_numpy()
    order = np.lexsort((lo, hi))
    starts = group_starts(hi[order], lo[order])
    if not len(starts):
        return table
    heads = pa.array(order[starts])
    columns = {name: table.column(name).take(heads) for name in ("key_hi", "key_lo", "phrase")}
    for name in SUMMED:
        columns[name] = np.add.reduceat(table.column(name).to_numpy()[order], starts)
    return pa.table(columns, schema=COUNTS)


def with_phrase_keys(table: pa.Table) -> pa.Table:
    """The same counts, keyed by xxh3 of the phrase as on storage."""
    hi, lo = phrase_keys(table.column("phrase"))
    return table.set_column(0, "key_hi", pa.array(hi)).set_column(1, "key_lo", pa.array(lo))


def phrase_keys(phrases: pa.ChunkedArray | pa.Array) -> tuple[U64, U64]:
    """128 bits of xxh3 over each phrase's UTF-8 bytes, as two 64-bit columns."""
    digest = xxhash.xxh3_128_digest
    joined = b"".join([digest(phrase) for phrase in phrases.cast(pa.binary()).to_pylist()])
    keys = np.frombuffer(joined, dtype=">u8").reshape(-1, 2).astype(np.uint64)
    return keys[:, 0].copy(), keys[:, 1].copy()


def to_phrases(counts: pa.Table) -> pa.Table:
    """Phrase records (PHRASES) from counts. The label is the most frequent one, ties by the order of PHRASE_LABELS."""
    by_label = np.stack([counts.column(name).to_numpy() for name in PHRASE_LABELS])
    frequency = counts.column("frequency").to_numpy()
    best = by_label.argmax(axis=0) if counts.num_rows else np.zeros(0, dtype=np.int64)
    shares = (by_label / np.maximum(frequency, 1)).astype(np.float32)
    labels = pa.array(PHRASE_LABELS).take(pa.array(best, pa.int64()))
    share_type = PHRASES.field("label_shares").type
    columns = {
        "phrase": counts.column("phrase"),
        "label": labels,
        "label_shares": pa.StructArray.from_arrays(
            [pa.array(each, pa.float32()) for each in shares], fields=list(share_type)
        ),
        "frequency": frequency,
        "document_frequency": counts.column("document_frequency"),
        "entity_type": pa.array([""] * counts.num_rows, pa.string()),
    }
    return pa.table(columns, schema=PHRASES)


def sort_counts(counts: pa.Table) -> pa.Table:
    """The counts in the order ORDER."""
    return counts.take(pc.sort_indices(counts, sort_keys=list(ORDER)))
