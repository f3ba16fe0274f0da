"""What datasets are for in the training, the tables that are joined to rows by their phrase, and a step's rows.

A dataset is read for what its columns are: texts that mean the same are pairs to learn from, types and hard negatives
of phrases are joined to the pairs. Without torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.checks import hashes
from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.keys import match_keys
from schemas.kind import kind_of
from schemas.manifest import canonical_hash, is_dataset
from schemas.storage.folder import Folder
from trainers.data import Source
from transforms.arrays import I64, U64, Bools, mix64

PHRASE, POSITIVE = "phrase", "positive"
PAIRS = (("phrase", "augmented"), ("phrase", "context"), ("phrase", "paraphrase"))
"""Columns of a phrase and of what means the same, of datasets whose kind does not say it."""
MASK = "[MASK]"
"""What stands for the phrase in contexts; a text that holds it is one."""
MENTIONS = ("mention_2", "text_1", "start_char_1", "end_char_1")
"""Of a pair of mentions: the second one, and the sentence of the first with its place there."""


def keys_of(phrases: pa.Array | pa.ChunkedArray) -> U64:
    """[n] a hash of each phrase that its spellings in upper and lower case share."""
    return hashes(match_keys(phrases))


# ---- What a dataset is for


class Given(NamedTuple):
    """A dataset, its columns, and those that are pairs if it has some."""

    place: str
    columns: tuple[str, ...]
    pair: tuple[str, str] | None

    @property
    def has_mentions(self) -> bool:
        return {*MENTIONS} <= {*self.columns}

    @property
    def has_types(self) -> bool:
        return {"phrase", "type"} <= {*self.columns}

    @property
    def has_negatives(self) -> bool:
        return {"phrase", "negatives"} <= {*self.columns}


def given(place: str) -> Given:
    """UserError if nothing can be learned from the dataset."""
    kind, columns = None, tuple(Source.open(place).schema.names)
    if is_dataset(Folder(place)):
        kind = kind_of(Dataset.open(place).manifest.record)
    pair = (kind.alike.one, kind.alike.other) if kind and kind.alike else None
    found = Given(place, columns, pair or next((each for each in PAIRS if {*each} <= {*columns}), None))
    if not (found.pair or found.has_mentions or found.has_types or found.has_negatives):
        raise UserError(
            f"{place}: has no pairs, types or hard negatives (columns {', '.join(columns)}); give augmentations, "
            "paraphrases, pairs, contexts, pairs of mentions, typed phrases or hard negatives"
        )
    return found


class Chosen(NamedTuple):
    """Which rows are learned from.

    min_score    of pairs with a score
    types        the entity types of the phrases that are rows themselves; none: no phrase is
    types_words  words of such a phrase, at most
    """

    min_score: float | None = None
    types: tuple[str, ...] = ()
    types_words: int = 6


def sources_of(all_given: Sequence[Given], chosen: Chosen, folder: Path) -> list[Source]:
    """The pairs of all datasets, then typed phrases. What is not taken whole is written to the folder.

    UserError if there are none.
    """
    found = []
    for number, each in enumerate(all_given):
        if each.pair:
            names = {each.pair[0]: PHRASE, each.pair[1]: POSITIVE}
            if chosen.min_score is None or "score" not in each.columns:
                found.append(Source.open(each.place, columns=names))
            else:
                parts = (
                    table.filter(pc.fill_null(pc.greater_equal(table.column("score"), chosen.min_score), True))
                    for table in _tables(each, [*names, "score"])
                )
                pairs = (table.select([*names]).rename_columns([*names.values()]) for table in parts)
                found.append(_written(folder / f"pairs-{number}.parquet", pairs, each.place))
        elif each.has_mentions:
            found.append(
                _written(folder / f"mentions-{number}.parquet", map(mention_rows, _tables(each, MENTIONS)), each.place)
            )
    for number, each in enumerate(all_given):
        if chosen.types and each.has_types and "entity_type" in each.columns:
            tables = (typed_rows(table, chosen) for table in _tables(each, ["phrase", "entity_type"]))
            found.append(_written(folder / f"typed-{number}.parquet", tables, each.place))
    if not found:
        raise UserError(
            f"--data {all_given[0].place}: no dataset has pairs of texts; give augmentations, paraphrases, pairs or "
            "contexts, too"
        )
    return found


def typed_rows(table: pa.Table, chosen: Chosen) -> pa.Table:
    """The phrases of the types, each with itself."""
    phrase = table.column("phrase")
    of_type = pc.is_in(table.column("entity_type"), pa.array(chosen.types))
    kept = phrase.filter(pc.and_(of_type, pc.less(pc.count_substring(phrase, " "), chosen.types_words)))
    return pa.table([kept, kept], names=[PHRASE, POSITIVE])


def mention_rows(table: pa.Table) -> pa.Table:
    """The second mention of each pair, with the sentence of the first one, masked."""
    places = (table.column(name).to_pylist() for name in MENTIONS[1:])
    contexts = [f"{text[:start]}{MASK}{text[end:]}" for text, start, end in zip(*places, strict=True)]
    return pa.table([table.column(MENTIONS[0]), pa.array(contexts, pa.string())], names=[PHRASE, POSITIVE])


def _written(file: Path, tables: Iterator[pa.Table], place: str) -> Source:
    rows = 0
    with pq.ParquetWriter(file, pa.schema([(PHRASE, pa.string()), (POSITIVE, pa.string())])) as writer:
        for table in tables:
            rows += table.num_rows
            writer.write_table(table.cast(writer.schema))
    if not rows:
        raise UserError(f"{place}: no row is left by --min-score or --types-of; choose others")
    return replace(Source.open([file]), place=place)


# ---- What is joined by phrase


@dataclass(frozen=True)
class Keys:
    """Sorted keys: 8 bytes a phrase."""

    sorted: U64

    def rows(self, keys: U64) -> I64:
        """[n] the place of each key, -1 where it is not there."""
        if not len(self.sorted):
            return np.full(len(keys), -1)
        place = np.minimum(np.searchsorted(self.sorted, keys), len(self.sorted) - 1)
        return np.where(self.sorted[place] == keys, place, -1)


@dataclass(frozen=True)
class Types:
    """The type of each phrase: 18 bytes a phrase, and 6 for each of its shares (one of 1 where they are not read)."""

    keys: Keys
    names: tuple[str, ...]
    main: np.ndarray  # [phrases] int16
    starts: I64  # [phrases + 1] into those after it
    type: np.ndarray  # int16
    share: np.ndarray  # float32

    def classes(self, keys: U64) -> I64:
        """[n] the number of the type, -1 where none is known."""
        rows = self.keys.rows(keys)
        return np.where(rows >= 0, self.main[rows] if len(self.main) else -1, -1).astype(np.int64)

    def shares(self, keys: U64) -> np.ndarray:
        """[n, types] float32: the shares of the types, which add up to 1; zeros where none is known."""
        found = np.zeros((len(keys), len(self.names)), np.float32)
        rows = self.keys.rows(keys)
        known = np.flatnonzero(rows >= 0)
        size = np.diff(self.starts)[rows[known]]
        owner = np.repeat(known, size)
        item = np.repeat(self.starts[rows[known]] - np.cumsum(size) + size, size) + np.arange(size.sum())
        np.add.at(found, (owner, self.type[item]), self.share[item])
        return found / np.maximum(found.sum(axis=1, keepdims=True), 1e-9)


@dataclass(frozen=True)
class Negatives:
    """The hard negatives of each phrase: 16 bytes a phrase, 4 for each negative, and each text once."""

    keys: Keys
    starts: I64  # [phrases + 1]
    text: np.ndarray  # [negatives] int32, into texts
    texts: pa.Array

    def drawn(self, keys: U64, *, number: int) -> tuple[I64, pa.Array]:
        """At most `number` negatives of each phrase: the phrases they are of, and the texts.

        Which ones is decided by a hash of the phrase and of all phrases that are given: a row has other negatives in
        another batch.
        """
        rows = self.keys.rows(keys)
        known = np.flatnonzero(rows >= 0)
        size = np.diff(self.starts)[rows[known]]
        owner = np.repeat(known, size)
        within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        item = self.starts[rows[owner]] + within
        batch = mix64(np.array([mix64(keys).sum(dtype=np.uint64)]))
        place = mix64(mix64(keys[owner] + batch) + within.astype(np.uint64))
        order = np.lexsort((place, owner))
        rank = np.arange(len(order)) - np.repeat(np.cumsum(size) - size, size)
        chosen = np.sort(order[rank < number])
        return owner[chosen], self.texts.take(pa.array(self.text[item[chosen]]))


def read_types(all_given: Sequence[Given], *, shares: bool = True) -> Types | None:
    """The types of all datasets that have some; of a phrase that is there twice the first row counts."""
    places = [each for each in all_given if each.has_types]
    if not places:
        return None
    tables = [table for each in places for table in _typed(each, shares=shares)]
    table, keys = _once(pa.concat_tables(tables))
    lists = table.column("type_shares").combine_chunks()
    items = lists.flatten()
    of, share = pc.struct_field(items, "type"), pc.struct_field(items, "share")
    named = pa.array(sorted({*pc.unique(table.column("type")).to_pylist(), *pc.unique(of).to_pylist()}))
    return Types(
        keys,
        tuple(named.to_pylist()),
        pc.index_in(table.column("type"), named).to_numpy().astype(np.int16),
        _starts(lists),
        pc.index_in(of, named).to_numpy().astype(np.int16),
        share.to_numpy().astype(np.float32),
    )


def _typed(each: Given, *, shares: bool) -> Iterator[pa.Table]:
    """Phrases with their types and the shares of these."""
    has = shares and "type_shares" in each.columns
    for table in _tables(each, ["phrase", "type", *(["type_shares"] if has else [])]):
        lists = _lists(table.column("type_shares"), "type", "share") if has else _whole(table)
        yield pa.table([table.column("phrase"), table.column("type"), lists], names=["phrase", "type", "type_shares"])


def _whole(table: pa.Table) -> pa.Array:
    """Type shares of 1 for the type."""
    types = table.column("type").combine_chunks()
    items = pa.StructArray.from_arrays([types, pa.array(np.ones(len(types), np.float32))], names=["type", "share"])
    return pa.ListArray.from_arrays(pa.array(np.arange(len(types) + 1, dtype=np.int32)), items)


def read_negatives(all_given: Sequence[Given]) -> Negatives | None:
    """The hard negatives of all datasets that have some; of a phrase that is there twice the first row counts."""
    tables = [
        pa.table([table.column("phrase"), _lists(table.column("negatives"), "phrase")], names=["phrase", "negatives"])
        for each in all_given
        if each.has_negatives
        for table in _tables(each, ["phrase", "negatives"])
    ]
    if not tables:
        return None
    table, keys = _once(pa.concat_tables(tables))
    lists = table.column("negatives").combine_chunks()
    coded = lists.flatten().dictionary_encode()
    return Negatives(keys, _starts(lists), coded.indices.to_numpy().astype(np.int32), coded.dictionary)


def _tables(each: Given, columns: Sequence[str]) -> Iterator[pa.Table]:
    from trainers.loading.sources import Files

    source, files = Source.open(each.place, columns=columns), Files()
    for group in source.groups:
        yield pa.Table.from_batches(files.read(group, source))
    files.close()


def _lists(lists: pa.ChunkedArray, *fields: str) -> pa.Array:
    """Lists of structs with some of their fields, of the same type whichever file they come from."""
    found = lists.combine_chunks()
    parts = [pc.struct_field(found.flatten(), each) for each in fields]
    items = pa.StructArray.from_arrays(parts, names=fields) if len(fields) > 1 else parts[0]
    return pa.ListArray.from_arrays(pa.array(_starts(found).astype(np.int32)), items)


def _starts(lists: pa.Array) -> I64:
    return np.append(0, np.cumsum(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)))


def _once(table: pa.Table) -> tuple[pa.Table, Keys]:
    """The first row of each phrase, in order of the keys."""
    keys, first = np.unique(keys_of(table.column("phrase")), return_index=True)
    return table.take(pa.array(first)).combine_chunks(), Keys(keys)


# ---- A step's rows


class Rows(NamedTuple):
    """The texts of a step: phrases, positives, hard negatives, one after the other; and what is known of them.

    candidates  [m] the keys of positives and hard negatives, among which each phrase finds its own positive
    owners      [m] the key of the phrase of which a positive is one; of a hard negative its own key
    contexts    [m] 1 where a candidate is a context, 0 where it is a phrase
    """

    texts: list[str]
    phrases: U64
    candidates: U64
    owners: U64
    contexts: U64


def rows_of(table: pa.Table, *, negatives: Negatives | None, number: int, words: int) -> Rows:
    """`number` hard negatives a phrase; contexts are cut to `words` words on each side of the mask."""
    phrases, positives = table.column(PHRASE), table.column(POSITIVE)
    anchors, own = keys_of(phrases), keys_of(positives)
    contexts = pc.match_substring(positives, MASK).to_numpy().astype(np.uint64)
    texts = phrases.to_pylist() + [window(each, words) for each in positives.to_pylist()]
    if negatives is None or not number:
        return Rows(texts, anchors, own, anchors, contexts)
    _, hard = negatives.drawn(anchors, number=number)
    others = keys_of(hard)
    return Rows(
        texts + hard.to_pylist(),
        anchors,
        np.concatenate([own, others]),
        np.concatenate([anchors, others]),
        np.append(contexts, np.zeros_like(others)),
    )


def left_out(phrases: U64, candidates: U64, owners: U64, contexts: U64, right: I64, *, apart: bool = False) -> Bools:
    """[n, m] the candidates that are no negatives of a phrase: the phrase itself, the text of its positive, and other
    positives of the phrase. Not its own positive, `right`. `apart`: contexts also where its positive is none, and
    candidates that are none where it is one.
    """
    found = (phrases[:, None] == candidates) | (phrases[:, None] == owners)
    found |= candidates[right][:, None] == candidates
    if apart:
        found |= contexts[right][:, None] != contexts
    found[np.arange(len(phrases)), right] = False
    return found


_WORD = re.compile(r"\S+")


def window(text: str, words: int) -> str:
    """The words around the first mask of a context; any other text as it is.

    >>> window("He saw the [MASK], and then left", 1)
    'the [MASK], and'
    """
    at = text.find(MASK)
    if at < 0:
        return text
    spans = [each.span() for each in _WORD.finditer(text)]
    place = next(number for number, (_, end) in enumerate(spans) if end > at)
    return text[spans[max(0, place - words)][0] : spans[min(len(spans) - 1, place + words)][1]]


def digest_of(all_given: Sequence[Given]) -> str:
    """A hash of the content of all datasets."""
    return canonical_hash([Source.open(each.place).digest for each in all_given])
