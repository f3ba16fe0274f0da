"""Pairs of phrases as examples for a language model: read, chosen, parted, and put into batches of one length."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.kind import kind_of
from transforms.arrays import I64, U64, Bools, mix64
from transforms.paraphrase.options import TrainingPairRules
from transforms.paraphrase.training_pairs import why_not

F32 = npt.NDArray[np.float32]

WEIGHTS = (0.25, 4.0)
"""The limits of an example's weight: its score over the mean score of its source."""


class Pairs(NamedTuple):
    """Pairs of texts, by their numbers in `texts`, in order of the pairs' hash. `keys` are the hashes of the texts."""

    texts: list[str]
    keys: U64
    one: I64
    other: I64
    weight: F32

    def take(self, rows: I64 | Bools) -> Pairs:
        return self._replace(one=self.one[rows], other=self.other[rows], weight=self.weight[rows])


def read_pairs(places: Sequence[str], *, most: int, one_direction: bool) -> Pairs:
    """All pairs of some places, each once in each direction, or the `most` of lowest hash. The order of the places and
    of their rows makes no difference.
    """
    tables = [_table(place) for place in places]
    ones, others = (
        pa.chunked_array([c for each in tables for c in each.column(name).chunks], pa.string())
        for name in ("one", "other")
    )
    weight = np.concatenate([_weights(each.column("score")) for each in tables])
    both = pa.chunked_array([*ones.chunks, *others.chunks], pa.string()).combine_chunks().dictionary_encode()
    texts = both.dictionary.to_pylist()
    keys = np.array([xxhash.xxh3_64_intdigest(each.encode()) for each in texts], np.uint64)
    codes = both.indices.to_numpy().astype(np.int64)
    one, other = codes[: len(ones)], codes[len(ones) :]
    real = one != other
    one, other, weight = one[real], other[real], weight[real]
    if not one_direction:
        one, other, weight = np.append(one, other), np.append(other, one), np.append(weight, weight)
    key = mix64(mix64(keys[one]) + keys[other])
    order = np.lexsort((-weight, key))
    kept = np.ones(len(order), bool)
    kept[1:] = key[order[1:]] != key[order[:-1]]
    order = order[kept][:most]
    if not len(order):
        raise UserError(f"{places[0]}: has no pair of two phrases; give a dataset of pairs, such as mine_pairs makes")
    return Pairs(texts, keys, one[order], other[order], weight[order])


def filtered(pairs: Pairs) -> tuple[Pairs, dict[str, int]]:
    """The pairs that the filter of Phrase-BERT's training pairs leaves, and how many it does not, by reason."""
    reasons = [
        why_not(pairs.texts[one], pairs.texts[other], TrainingPairRules())
        for one, other in zip(pairs.one.tolist(), pairs.other.tolist(), strict=True)
    ]
    return pairs.take(np.array([not each for each in reasons], bool)), dict(
        sorted(Counter(filter(None, reasons)).items())
    )


def _table(place: str) -> pa.Table:
    """The columns one, other and score (null if not known)."""
    if place.endswith(".parquet"):
        if not os.path.exists(place):
            raise UserError(f"{place}: no such file; give a dataset of pairs, such as mine_pairs makes")
        return _columns(pq.read_table(place), "phrase", "paraphrase")
    dataset = Dataset.open(place)
    kind = kind_of(dataset.manifest.record)
    if kind is None or kind.alike is None:
        raise UserError(
            f"{place}: its rows are no pairs; mine_pairs makes a dataset of pairs, extract_pairs one of a file"
        )
    names = [kind.alike.one, kind.alike.other, *(["score"] if "score" in kind.schema.names else [])]
    return _columns(pa.concat_tables(dataset.tables(columns=names)), kind.alike.one, kind.alike.other)


def _columns(table: pa.Table, one: str, other: str) -> pa.Table:
    score = (
        table.column("score").cast(pa.float32())
        if "score" in table.column_names
        else pa.nulls(len(table), pa.float32())
    )
    return pa.table(
        {"one": table.column(one).cast(pa.string()), "other": table.column(other).cast(pa.string()), "score": score}
    )


def _weights(score: pa.ChunkedArray) -> F32:
    """Scores of one source over their mean; 1 where there is none."""
    found = score.to_numpy().astype(np.float32)
    known = np.isfinite(found) & (found > 0)
    if not known.any():
        return np.ones(len(found), np.float32)
    mean = found[known].mean(dtype=np.float64)
    return np.clip(np.where(np.isfinite(found), found / np.float32(mean), 1), *WEIGHTS).astype(np.float32)


class Parts(NamedTuple):
    """Pairs to learn from and pairs that are only scored. `left_out` is the number of pairs that are neither."""

    learned: Pairs
    held_out: Pairs
    left_out: int


def part(pairs: Pairs, rate: float) -> Parts:
    """Some phrases, chosen by hash, are held out with all their paraphrases: no phrase of a held-out pair is learned.

    A pair of such a paraphrase with another phrase is left out.
    """
    chosen = mix64(pairs.keys + np.uint64(1)) < np.uint64(rate * 2.0**64)
    held = chosen[pairs.one] | chosen[pairs.other]
    seen = np.zeros(len(pairs.texts), bool)
    seen[pairs.one[held]] = seen[pairs.other[held]] = True
    learned = ~(seen[pairs.one] | seen[pairs.other])
    return Parts(pairs.take(learned), pairs.take(held), int((~held & ~learned).sum()))


@dataclass(frozen=True)
class Examples:
    """Rows of tokens: `tokens[starts[i] : starts[i + 1]]` of which those from `answer[i]` on are learned.

    `key`: the identity of each row, from which its place in an epoch follows.
    """

    tokens: npt.NDArray[np.int32]
    starts: I64
    answer: I64
    weight: F32
    key: U64

    def __len__(self) -> int:
        return len(self.answer)

    @property
    def lengths(self) -> I64:
        return np.diff(self.starts)


class Encoded(NamedTuple):
    """Texts as tokens, one after the other: `tokens[starts[i] : starts[i + 1]]`."""

    tokens: npt.NDArray[np.int32]
    starts: I64

    @property
    def lengths(self) -> I64:
        return np.diff(self.starts)


def examples_of(pairs: Pairs, encoded: Encoded, *, separator: int, end: int, alone: float, max_tokens: int) -> Examples:
    """An example for each pair: phrase, separator, paraphrase, end; and for a share `alone` of the phrases one without
    a phrase before the separator. Those of more than `max_tokens` are left out.
    """
    numbers = np.unique(np.append(pairs.one, pairs.other))
    by_itself = numbers[mix64(pairs.keys[numbers] + np.uint64(2)) < np.uint64(alone * 2.0**64)]
    by_itself = by_itself[np.argsort(pairs.keys[by_itself])]
    sizes = np.append(encoded.lengths, 0)
    one = np.append(pairs.one, np.full(len(by_itself), len(sizes) - 1))
    other = np.append(pairs.other, by_itself)
    weight = np.append(pairs.weight, np.ones(len(by_itself), np.float32))
    key = np.append(mix64(mix64(pairs.keys[pairs.one]) + pairs.keys[pairs.other]), mix64(pairs.keys[by_itself]))
    fits = (sizes[one] + sizes[other] + 2 <= max_tokens) & (sizes[other] > 0)
    one, other, weight, key = one[fits], other[fits], weight[fits], key[fits]
    lengths = sizes[one] + sizes[other] + 2
    starts = np.append(0, np.cumsum(lengths))
    tokens = np.empty(starts[-1], np.int32)
    answer = sizes[one] + 1
    begins = np.append(encoded.starts[:-1], 0)
    _copy(encoded.tokens, begins[one], sizes[one], tokens, starts[:-1])
    tokens[starts[:-1] + sizes[one]] = separator
    _copy(encoded.tokens, begins[other], sizes[other], tokens, starts[:-1] + answer)
    tokens[starts[1:] - 1] = end
    return Examples(tokens, starts, answer, weight, key)


def _copy(source: npt.NDArray[np.int32], begins: I64, sizes: I64, to: npt.NDArray[np.int32], places: I64) -> None:
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    to[np.repeat(places, sizes) + within] = source[np.repeat(begins, sizes) + within]


class Batch(NamedTuple):
    """Rows of one length: tokens [B, L], which of them are learned [B, L], the rows' weights [B]."""

    tokens: I64
    learned: Bools
    weight: F32


def steps_of_epoch(examples: Examples, batch_tokens: int) -> int:
    """The number of batches of an epoch."""
    counts = np.bincount(examples.lengths)
    return sum(-(-int(counts[each]) // max(1, batch_tokens // each)) for each in np.flatnonzero(counts).tolist())


def batches(examples: Examples, *, batch_tokens: int, seed: int, epoch: int, first: int = 0) -> Iterator[Batch]:
    """The batches of an epoch from number `first` on, in an order that the seed and the epoch decide."""
    place = mix64(examples.key + mix64(np.array([seed * 1_000_003 + epoch], np.int64).astype(np.uint64)))
    order = np.argsort(place, kind="stable")
    lengths = examples.lengths[order]
    found: list[I64] = []
    for length in np.unique(lengths).tolist():
        rows = order[lengths == length]
        size = max(1, batch_tokens // length)
        found += [rows[at : at + size] for at in range(0, len(rows), size)]
    # A batch comes where one of its rows would, so that all lengths are mixed.
    turn = np.argsort(np.array([place[rows[len(rows) // 2]] for rows in found], np.uint64), kind="stable")
    for number in turn[first:].tolist():
        yield batch_of(examples, found[number])


def batch_of(examples: Examples, rows: I64) -> Batch:
    """The batch of some examples of one length."""
    length = int(examples.lengths[rows[0]])
    tokens = examples.tokens[examples.starts[rows][:, None] + np.arange(length)].astype(np.int64)
    return Batch(tokens, np.arange(length) >= examples.answer[rows][:, None], examples.weight[rows])
