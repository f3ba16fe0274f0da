"""Whether rows say where they really stand: every sentence, context and mention, against the documents' text.

A shard of sentences mirrors the shard of documents of the same number. Contexts stand in hash order, so the documents
are read once for each CHUNK_BYTES of contexts. Mentions stand in the order of the documents. Pairs of mentions are
compared with the mentions that they were made from, by a hash of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import I64, U64, Violation, hashes, nested, quoted
from schemas.dataset import Dataset, RowGroup
from schemas.errors import UserError
from schemas.records import PAIRED_FIELDS, PROVENANCE

CHUNK_BYTES = 1 << 27
"""Contexts that are held at once."""

MADE_FROM = {
    "Sentence": "Document",
    "Context": "Document",
    "Mention": "Document",
    "MentionPair": "Mention",
    "MaskedMentionPair": "Mention",
}
"""Records that point into others, and into which."""

PROVENANCE_NAMES = [each.name for each in PROVENANCE]
_LINE_BREAK = re.compile(r"\s*\n\s*")


def find_origin(dataset: Dataset, elsewhere: str | None) -> Dataset:
    """The dataset that one was made from and points into. UserError where it does not lie there, or another does.

    `elsewhere`: where the documents lie, if they were moved.
    """
    wanted = {each.hash: each for each in dataset.manifest.inputs if each.kind == "dataset"}
    if elsewhere is not None:
        found = Dataset.open(elsewhere)
        if found.manifest.fingerprint not in wanted:
            raise UserError(
                f"{found.folder}: {dataset.folder} was not made from these documents, whose fingerprint is "
                f"{found.manifest.fingerprint[:16]}; give others with --documents"
            )
        return found
    reason = "it was made from no dataset"
    for each in wanted.values():
        try:
            folder = dataset.folder.joined(each.path)
            found = Dataset.open(folder.uri)
        except UserError as error:
            reason = str(error)
            continue
        if found.manifest.record == MADE_FROM[dataset.manifest.record]:
            if found.manifest.fingerprint == each.hash:
                return found
            reason = f"{folder}: holds others, with the fingerprint {found.manifest.fingerprint[:16]}"
    raise UserError(reason)


def check_offsets(dataset: Dataset, origin: Dataset) -> Iterator[Violation]:
    """The rows whose offsets do not point at their text in the dataset that they were made from."""
    match dataset.manifest.record:
        case "Sentence":
            return _sentences(dataset, origin)
        case "Context":
            return _contexts(dataset, origin)
        case "Mention":
            return _mentions(dataset, origin)
        case _:
            return _pairs(dataset, origin)


def _sentences(dataset: Dataset, documents: Dataset) -> Iterator[Violation]:
    for shard, texts_shard in zip(dataset.shards(), documents.shards(), strict=False):
        texts = _columns(documents.table(texts_shard, columns=["doc_id", "text"]), "doc_id", "text")
        by_id: dict[str, str] = dict(zip(*texts, strict=True))
        table = dataset.table(shard, columns=["sentence_id", "doc_id", "start_char", "text"])
        ids, doc_ids, starts, sentences = _columns(table, "sentence_id", "doc_id", "start_char", "text")
        absent = [row for row, doc_id in enumerate(doc_ids) if doc_id not in by_id]
        if absent:
            detail = f"{quoted(doc_ids[absent[0]])} is not in {documents.folder}/{texts_shard.path}"
            yield Violation(
                shard, "the document is not in the shard of documents of the same number", _rows(absent), detail
            )
        wrong = [
            row
            for row, (doc_id, start, sentence) in enumerate(zip(doc_ids, starts, sentences, strict=True))
            if doc_id in by_id and not by_id[doc_id].startswith(sentence, start)
        ]
        if wrong:
            row = wrong[0]
            there = by_id[doc_ids[row]][starts[row] : starts[row] + len(sentences[row])]
            detail = f"{quoted(ids[row])}: {quoted(sentences[row])}, in the document {quoted(there)}"
            yield Violation(shard, "the text does not stand at start_char in the document", _rows(wrong), detail)


def _rows(rows: list[int]) -> I64:
    return np.array(rows, dtype=np.int64)


def _columns(table: pa.Table, *names: str) -> list[list[Any]]:
    return [table.column(name).to_pylist() for name in names]


_COLUMNS = ["phrase", "surface", "context", "mask_start", "doc_id", "start_char", "end_char", *PROVENANCE_NAMES]


def _contexts(dataset: Dataset, documents: Dataset) -> Iterator[Violation]:
    mask = str(dataset.manifest.options["mask_token"])
    chunk: list[RowGroup] = []
    held = 0
    for shard in dataset.shards():
        for group in dataset.row_groups(shard, columns=_COLUMNS):
            chunk.append(group)
            held += group.table.nbytes
            if held >= CHUNK_BYTES:
                yield from _chunk(chunk, documents, mask)
                chunk, held = [], 0
    if chunk:
        yield from _chunk(chunk, documents, mask)


def _chunk(chunk: list[RowGroup], documents: Dataset, mask: str) -> Iterator[Violation]:
    """Contexts of some row groups, document by document."""
    table = pa.concat_tables([group.table for group in chunk]).combine_chunks()
    places = [(group.shard, group.first_row, group.table.num_rows) for group in chunk]
    chunk.clear()
    keys = hashes(table.column("doc_id"))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    seen = np.zeros(len(keys), dtype=bool)
    wrong: dict[str, dict[int, str]] = {}
    for shard in documents.shards():
        ids = hashes(documents.table(shard, columns=["doc_id"]).column("doc_id"))
        first, end = (np.searchsorted(keys, ids, side=side) for side in ("left", "right"))
        runs = [order[a:b] for a, b in zip(first.tolist(), end.tolist(), strict=True) if b > a]
        if not runs:
            continue
        rows = np.concatenate(runs)
        seen[rows] = True
        names = ["doc_id", "text", *PROVENANCE_NAMES]
        texts = zip(*_columns(documents.table(shard, columns=names), *names), strict=True)
        by_id = {doc_id: rest for doc_id, *rest in texts}
        contexts = zip(rows.tolist(), *_columns(table.take(pa.array(rows)), *_COLUMNS), strict=True)
        for row, phrase, surface, context, mask_start, doc_id, start, end, *origin in contexts:
            text, *expected = by_id[doc_id]
            around = (context[:mask_start], context[mask_start + len(mask) :])
            for rule, detail in _problems(text, start, end, surface, around, mask):
                wrong.setdefault(rule, {})[row] = f"{quoted(phrase)} in {quoted(doc_id)}: {detail}"
            if origin != expected:
                detail = f"{quoted(doc_id)}: {origin} instead of {expected}"
                wrong.setdefault(f"{', '.join(PROVENANCE_NAMES)} are not the document's", {})[row] = detail
    absent = np.flatnonzero(~seen).tolist()
    if absent:
        doc_ids = table.column("doc_id")
        wrong["the document is not in the documents dataset"] = {row: quoted(doc_ids[row].as_py()) for row in absent}
    for rule, details in wrong.items():
        before = 0
        for shard, first_row, n in places:
            here = [row for row in sorted(details) if before <= row < before + n]
            if here:
                yield Violation(shard, rule, _rows(here) - before + first_row, details[here[0]])
            before += n


def _problems(
    text: str, start: int, end: int, surface: str, around: tuple[str, str], mask: str
) -> Iterator[tuple[str, str]]:
    """The rules that a context breaks, each with what is wrong; `around` is what stands before and behind its mask."""
    if text[start:end] != surface:
        detail = f"{quoted(surface)}, in the document {quoted(text[start:end])}"
        yield "the surface does not stand at start_char in the document", detail
    # Up to the masks beside this one the context is the document's text, with a blank for a line break.
    before, after = around[0].rpartition(mask)[2], around[1].partition(mask)[0]
    if text.endswith(before, 0, start) and text.startswith(after, end):
        return
    text_before = text[max(start - 2 * len(before) - 2, 0) : start]
    text_after = text[end : end + 2 * len(after) + 2]
    if not any(
        one_line(text_before).endswith(before) and one_line(text_after).startswith(after)
        for one_line in (_quick_line, _one_line)
    ):
        there = f"{quoted(text_before[-30:])} and {quoted(text_after[:30])}"
        detail = f"{quoted(before[-30:] + mask + after[:30])}, in the document {there}"
        yield "the context is not the document's text around the phrase", detail


def _quick_line(text: str) -> str:
    """Right for tidy text."""
    return text.replace("\n\n", " ").replace("\n", " ")


def _one_line(text: str) -> str:
    return _LINE_BREAK.sub(" ", text)


# Mentions

_IN_TEXT = ["doc_id", "sentence_id", "text", "mention", "start_char", "end_char", "origin", *PROVENANCE_NAMES]


class _Text(NamedTuple):
    """A document: its text, where it comes from, and the spans of its links."""

    text: str
    provenance: list[str]
    links: list[tuple[int, int]]


class _Texts:
    """Documents by id, of one shard at a time."""

    def __init__(self, documents: Dataset) -> None:
        self._documents, self._shards = documents, documents.shards()
        ids = [hashes(documents.table(each, columns=["doc_id"]).column("doc_id")) for each in self._shards]
        shard = np.repeat(np.arange(len(ids)), [len(each) for each in ids])
        self._ids = np.concatenate([np.empty(0, np.uint64), *ids])
        order = np.argsort(self._ids, kind="stable")
        self._ids, self._shard = self._ids[order], shard[order]
        self._read, self._rows = -1, dict[str, list[Any]]()

    def shards_of(self, doc_ids: pa.ChunkedArray) -> I64:
        """The number of the shard that holds each document; -1 where none does."""
        wanted = hashes(doc_ids)
        if not len(self._ids):
            return np.full(len(wanted), -1)
        place = np.searchsorted(self._ids, wanted).clip(max=len(self._ids) - 1)
        return np.where(self._ids[place] == wanted, self._shard[place], -1)

    def get(self, shard: int, doc_id: str) -> _Text:
        if shard != self._read:
            names = ["doc_id", "text", *PROVENANCE_NAMES]
            table = self._documents.table(self._shards[shard], columns=[*names, "links"])
            owner, _, (start, end) = nested(table.column("links").combine_chunks(), ("start_char", "end_char"))
            cuts = np.searchsorted(owner, np.arange(table.num_rows + 1)).tolist()
            self._links = start, end
            rows = zip(*_columns(table, *names), pairwise(cuts), strict=True)
            self._read, self._rows = shard, {doc_id: rest for doc_id, *rest in rows}
        text, *provenance, (first, last) = self._rows[doc_id]
        spans = (each[first:last].tolist() for each in self._links)
        return _Text(text, provenance, list(zip(*spans, strict=True)))


def _mentions(dataset: Dataset, documents: Dataset) -> Iterator[Violation]:
    texts = _Texts(documents)
    for shard in dataset.shards():
        wrong: dict[str, dict[int, str]] = {}
        last, document, anchors = "", _Text("", [], []), dict[str, int]()
        for group in dataset.row_groups(shard, columns=_IN_TEXT):
            numbers = texts.shards_of(group.table.column("doc_id")).tolist()
            rows = zip(numbers, *_columns(group.table, *_IN_TEXT), strict=True)
            for row, (number, doc_id, *mention) in enumerate(rows, start=group.first_row):
                if number < 0:
                    wrong.setdefault("the document is not in the documents dataset", {})[row] = quoted(doc_id)
                    continue
                if doc_id != last:
                    last, document = doc_id, texts.get(number, doc_id)
                    anchors = _anchors(document)
                for rule, detail in _mention_problems(document, anchors, *mention):
                    wrong.setdefault(rule, {})[row] = detail
        for rule, details in wrong.items():
            yield Violation(shard, rule, _rows([*details]), next(iter(details.values())))


def _anchors(document: _Text) -> dict[str, int]:
    """Where the first link of each anchor ends."""
    found: dict[str, int] = {}
    for start, end in document.links:
        found.setdefault(document.text[start:end], end)
    return found


def _mention_problems(
    document: _Text,
    anchors: dict[str, int],
    sentence_id: str,
    text: str,
    mention: str,
    start: int,
    end: int,
    origin: str,
    *provenance: str,
) -> Iterator[tuple[str, str]]:
    """The rules that a mention breaks, each with what is wrong."""
    begin = sentence_id.rpartition("#")[2]
    at = int(begin) if begin.isdecimal() else 0
    where_ = f"{quoted(mention)} in {quoted(sentence_id)}"
    if not document.text.startswith(text, at):
        there = document.text[at : at + len(text)]
        yield "the text does not stand where sentence_id says", f"{where_}: {quoted(text)}, there {quoted(there)}"
        return
    place = f"{where_}: [{at + start:,}:{at + end:,}]"
    if origin == "link" and (at + start, at + end) not in document.links:
        yield "the document has no link with the mention as its anchor", place
    if origin == "repeat" and anchors.get(mention, len(document.text) + 1) > at + start:
        yield "the document has no link with this anchor before the mention", place
    title = document.provenance[PROVENANCE_NAMES.index("title")]
    if origin == "title" and not title.startswith(mention):
        yield "the mention is not the document's title", f"{where_}: {quoted(title)}"
    if [*provenance] != document.provenance:
        detail = f"{where_}: {[*provenance]} instead of {document.provenance}"
        yield f"{', '.join(PROVENANCE_NAMES)} are not the document's", detail


# Pairs


def _pairs(dataset: Dataset, mentions: Dataset) -> Iterator[Violation]:
    names = [each.name for each in PAIRED_FIELDS]
    known = [_row_hashes(table, names) for table in mentions.tables(columns=names)]
    found = np.unique(np.concatenate([np.empty(0, np.uint64), *known]))
    sides = {which: [f"{name}_{side}" for name in names] for side, which in ((1, "first"), (2, "second"))}
    for shard in dataset.shards():
        wrong: dict[str, dict[int, str]] = {which: {} for which in sides}
        for group in dataset.row_groups(shard, columns=[name for each in sides.values() for name in each]):
            for which, columns in sides.items():
                absent = ~np.isin(_row_hashes(group.table, columns), found)
                for row in np.flatnonzero(absent).tolist():
                    what = group.table.slice(row, 1).select(columns).to_pylist()[0]
                    detail = f"{quoted(what[columns[2]])} in {quoted(what[columns[3]])}"
                    wrong[which][group.first_row + row] = detail
        for which, details in wrong.items():
            if details:
                rule = f"the {which} of the two is no row of {mentions.folder}"
                yield Violation(shard, rule, _rows([*details]), next(iter(details.values())))


def _row_hashes(table: pa.Table, names: Sequence[str]) -> U64:
    """[n] a hash of some columns of each row."""
    if not table.num_rows:
        return np.empty(0, np.uint64)
    return hashes(pc.binary_join_element_wise(*(table.column(name).cast(pa.string()) for name in names), "\0"))
