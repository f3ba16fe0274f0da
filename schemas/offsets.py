"""Whether sentences and contexts say where they really stand: every row, against the documents' text.

A shard of sentences mirrors the shard of documents of the same number. Contexts stand in hash order, so the documents
are read once for each CHUNK_BYTES of contexts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.dataset import Dataset, RowGroup
from schemas.errors import UserError
from schemas.records import PROVENANCE
from schemas.rules import I64, Breach, hashes, shown

CHUNK_BYTES = 1 << 27
"""Contexts that are held at once."""

PROVENANCE_NAMES = [each.name for each in PROVENANCE]
_LINE_BREAK = re.compile(r"\s*\n\s*")


def find_documents(dataset: Dataset, elsewhere: str | None) -> Dataset:
    """The documents that a dataset was made from. UserError where they do not lie there, or others do."""
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
        folder = dataset.folder.joined(each.path)
        try:
            found = Dataset.open(folder.uri)
        except UserError as error:
            reason = str(error)
            continue
        if found.manifest.record == "Document":
            if found.manifest.fingerprint == each.hash:
                return found
            reason = f"{folder}: holds others, with the fingerprint {found.manifest.fingerprint[:16]}"
    raise UserError(reason)


def check_offsets(dataset: Dataset, documents: Dataset) -> Iterator[Breach]:
    """The sentences or contexts whose offsets do not point at their text in the documents."""
    if dataset.manifest.record == "Sentence":
        return _sentences(dataset, documents)
    return _contexts(dataset, documents)


def _sentences(dataset: Dataset, documents: Dataset) -> Iterator[Breach]:
    for shard, texts_shard in zip(dataset.shards(), documents.shards(), strict=False):
        texts = _columns(documents.table(texts_shard, columns=["doc_id", "text"]), "doc_id", "text")
        by_id: dict[str, str] = dict(zip(*texts, strict=True))
        table = dataset.table(shard, columns=["sentence_id", "doc_id", "start_char", "text"])
        ids, doc_ids, starts, sentences = _columns(table, "sentence_id", "doc_id", "start_char", "text")
        absent = [row for row, doc_id in enumerate(doc_ids) if doc_id not in by_id]
        if absent:
            detail = f"{shown(doc_ids[absent[0]])} is not in {documents.folder}/{texts_shard.path}"
            yield Breach(
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
            detail = f"{shown(ids[row])}: {shown(sentences[row])}, in the document {shown(there)}"
            yield Breach(shard, "the text does not stand at start_char in the document", _rows(wrong), detail)


def _rows(rows: list[int]) -> I64:
    return np.array(rows, dtype=np.int64)


def _columns(table: pa.Table, *names: str) -> list[list[Any]]:
    return [table.column(name).to_pylist() for name in names]


_COLUMNS = ["phrase", "surface", "context", "mask_start", "doc_id", "start_char", "end_char", *PROVENANCE_NAMES]


def _contexts(dataset: Dataset, documents: Dataset) -> Iterator[Breach]:
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


def _chunk(chunk: list[RowGroup], documents: Dataset, mask: str) -> Iterator[Breach]:
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
                wrong.setdefault(rule, {})[row] = f"{shown(phrase)} in {shown(doc_id)}: {detail}"
            if origin != expected:
                detail = f"{shown(doc_id)}: {origin} instead of {expected}"
                wrong.setdefault(f"{', '.join(PROVENANCE_NAMES)} are not the document's", {})[row] = detail
    absent = np.flatnonzero(~seen).tolist()
    if absent:
        doc_ids = table.column("doc_id")
        wrong["the document is not in the documents dataset"] = {row: shown(doc_ids[row].as_py()) for row in absent}
    for rule, details in wrong.items():
        before = 0
        for shard, first_row, n in places:
            here = [row for row in sorted(details) if before <= row < before + n]
            if here:
                yield Breach(shard, rule, _rows(here) - before + first_row, details[here[0]])
            before += n


def _problems(
    text: str, start: int, end: int, surface: str, around: tuple[str, str], mask: str
) -> Iterator[tuple[str, str]]:
    """The rules that a context breaks, each with what is wrong; `around` is what stands before and behind its mask."""
    if text[start:end] != surface:
        detail = f"{shown(surface)}, in the document {shown(text[start:end])}"
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
        there = f"{shown(text_before[-30:])} and {shown(text_after[:30])}"
        detail = f"{shown(before[-30:] + mask + after[:30])}, in the document {there}"
        yield "the context is not the document's text around the phrase", detail


def _quick_line(text: str) -> str:
    """Right for tidy text."""
    return text.replace("\n\n", " ").replace("\n", " ")


def _one_line(text: str) -> str:
    return _LINE_BREAK.sub(" ", text)
