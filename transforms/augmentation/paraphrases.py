"""Augmentation of a whole phrase: a text that means the same, from a dataset of such pairs."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.keys import match_keys
from transforms.arrays import U64, run_starts, single
from transforms.augmentation.interface import Augmenter, share_of
from transforms.phrases.normalise import normalise_token

CANDIDATES = pa.schema([("key", pa.string()), ("paraphrase", pa.string()), ("weight", pa.int64())])
"""A phrase (`match_keys`), a text that means the same, and how strong the evidence is."""

_ARTICLE = re.compile(r"(?:the|an?) (?=.)", re.IGNORECASE)


def candidates(one: pa.Array, other: pa.Array, weight: pa.Array) -> pa.Table:
    """Pairs of texts as candidates of each other (CANDIDATES): twice as many rows, less those that differ in case.

    The texts take the form of phrases: single blanks, straight quotes, no leading article.
    """
    texts = [pa.array([_form(text) for text in side.to_pylist()], pa.string()) for side in (one, other)]
    keys = [match_keys(side) for side in texts]
    differ = pc.and_(pc.not_equal(*keys), pc.and_(*(pc.not_equal(each, "") for each in texts)))
    tables = [pa.table([keys[this], texts[1 - this], weight], schema=CANDIDATES).filter(differ) for this in (0, 1)]
    return pa.concat_tables(tables)


def _form(text: str) -> str:
    joined = " ".join(normalise_token(token, lowercase=False) for token in text.split())
    found = _ARTICLE.match(joined)
    return joined[found.end() :] if found else joined


def merged(table: pa.Table) -> pa.Table:
    """Candidates of each key (CANDIDATES), each once with the sum of its weights, in order of key and paraphrase.

    Paraphrases that differ in case alone are one: the form of the most weight, ties by UTF-8.
    """
    spelled = table.group_by(["key", "paraphrase"]).aggregate([("weight", "sum")])
    spelled = spelled.append_column("folded", match_keys(spelled.column("paraphrase")))
    order = [("key", "ascending"), ("folded", "ascending"), ("weight_sum", "descending"), ("paraphrase", "ascending")]
    spelled = spelled.sort_by(order)
    key, folded = (single(spelled, name).dictionary_encode().indices.to_numpy() for name in ("key", "folded"))
    starts = run_starts(key, folded)
    weight = single(spelled, "weight_sum").to_numpy()
    total = np.add.reduceat(weight, starts) if len(starts) else weight
    first = spelled.take(pa.array(starts))
    return pa.table([first.column("key"), first.column("paraphrase"), pa.array(total)], schema=CANDIDATES)


class FromPairs(Augmenter):
    """The phrase becomes one of its paraphrases, drawn by weight; in lower case, if the phrase has no capital.

    `candidates`: a result of `merged`.
    """

    def __init__(self, *, candidates: pa.Table) -> None:
        key = single(candidates, "key").dictionary_encode()
        self._keys = key.dictionary
        self._first = np.append(run_starts(key.indices.to_numpy()), len(key))
        self._paraphrase = single(candidates, "paraphrase")
        self._until = np.append(0, np.cumsum(single(candidates, "weight").to_numpy()))

    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        found = pc.index_in(match_keys(phrases), self._keys)
        known = found.is_valid().to_numpy(zero_copy_only=False)
        place = pc.fill_null(found, 0).to_numpy()
        low, high = (self._until[self._first[np.minimum(place + n, len(self._first) - 1)]] for n in range(2))
        drawn = low + (share_of(seeds) * (high - low)).astype(np.int64)
        row = np.searchsorted(self._until[1:], np.where(known, drawn, 0), side="right")
        chosen = self._paraphrase.take(pa.array(row, mask=~known))
        return pc.if_else(pc.equal(phrases, pc.utf8_lower(phrases)), pc.utf8_lower(chosen), chosen)
