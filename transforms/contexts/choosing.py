"""Which occurrences of a phrase become contexts: the m of lowest hash, the same on any runner and in any order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from transforms.arrays import I64, U64, mix64, places_in_runs, run_begins, strings_hashes
from transforms.phrases.occurrences import Occurrences
from transforms.phrases.tokens import Tokens

CHOSEN = pa.schema(
    [
        ("phrase_index", pa.int64()),
        ("priority", pa.uint64()),
        ("shard", pa.int32()),
        ("sentence", pa.int32()),
        ("start_token", pa.uint16()),
        ("end_token", pa.uint16()),
    ]
)
"""An occurrence by its place: the phrase's number (by frequency), the shard of sentences, its row, the row's tokens."""


class Vocabulary(NamedTuple):
    """The phrases wanted, sorted by the hash of their bytes (`slice_hashes`)."""

    hash_hi: U64
    hash_lo: U64
    number: I64

    @classmethod
    def of(cls, phrases: pa.Array, first_index: int = 0) -> Vocabulary:
        hi, lo = strings_hashes(phrases)
        order = np.lexsort((lo, hi))
        return cls(hi[order], lo[order], order + first_index)

    def find(self, hi: U64, lo: U64) -> I64:
        """The index of each phrase, -1 where it is not in the vocabulary."""
        if not len(self.number):
            return np.full(len(hi), -1, dtype=np.int64)
        place = np.searchsorted(self.hash_hi, hi)
        place[place == len(self.number)] = 0
        # Two phrases with the same `hash_hi` are side by side. Three of them are too unlikely to occur.
        second = np.minimum(place + 1, len(self.number) - 1)
        place = np.where((self.hash_hi[second] == hi) & (self.hash_lo[second] == lo), second, place)
        return np.where((self.hash_hi[place] == hi) & (self.hash_lo[place] == lo), self.number[place], -1)


def occurrences_of(vocabulary: Vocabulary, tokens: Tokens, found: Occurrences, *, shard: int, seed: int) -> pa.Table:
    """The occurrences in a shard of the vocabulary's phrases, with their priorities (CHOSEN)."""
    index = vocabulary.find(found.hash_hi, found.hash_lo)
    kept = np.flatnonzero(index >= 0)
    sentence, start, end = found.sentence[kept], found.start[kept], found.end[kept]
    documents = np.array(
        [xxhash.xxh3_64_intdigest(doc_id.encode(), seed=seed) for doc_id in tokens.doc_ids.to_pylist()], dtype=np.uint64
    )
    # The priority depends on the phrase, the document, the place in it and the seed, not on shards or their order.
    place = tokens.start_char[start].astype(np.uint64)
    priority = mix64(mix64(documents[tokens.document[sentence]] ^ mix64(place)) ^ found.hash_lo[kept])
    first = tokens.first[sentence]
    columns = [index[kept], priority, np.full(len(kept), shard), sentence, start - first, end - first]
    return pa.Table.from_arrays(
        [pa.array(column).cast(field.type) for column, field in zip(columns, CHOSEN, strict=True)], schema=CHOSEN
    )


def keep_lowest(chosen: pa.Table, *, most: int) -> pa.Table:
    """The `most` occurrences of lowest priority of each phrase (CHOSEN), in order of phrase and priority.

    With `most` = 2, phrases 4 7 4 4 and priorities 9 5 3 6: the order is rows 2 3 0 1, the ranks in it are 0 1 2 0,
    so rows 2 3 1 are kept.
    """
    index, priority = chosen.column("phrase_index").to_numpy(), chosen.column("priority").to_numpy()
    ties = [chosen.column(name).to_numpy() for name in ("start_token", "sentence", "shard")]
    order = np.lexsort((*ties, priority, index))
    rank = places_in_runs(run_begins(index[order]))
    return chosen.take(pa.array(order[rank < most]))
