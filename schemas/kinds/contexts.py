"""Contexts: phrases masked in their windows, with the context of another phrase as the negative (Phrase-BERT)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import (
    Broken,
    Check,
    InSplit,
    Licences,
    Ordered,
    Rows,
    Show,
    Unique,
    Violation,
    Wrong,
    hashes,
    is_empty,
    is_not_one_of,
    quoted,
    where,
)
from schemas.columns import PROVENANCE, PROVENANCE_NAMES, column, schema, term
from schemas.dataset import Dataset, RowGroup
from schemas.keys import row_key
from schemas.kind import Kind, Problem, Source, equal
from schemas.manifest import Manifest, Shard
from schemas.measures import frequency_by_rank, share_before, value, words
from schemas.negatives import KEY_COLUMNS, WITHOUT, Circle, Keys, find_negatives, given_up
from schemas.shown import Row, Shown, cut, passage, web_address
from schemas.terms import NEGATIVES, PHRASE_LABELS, UNKNOWN_TOKEN

CONTEXTS = schema(
    "Context",
    column("phrase", pa.string(), "the normalised phrase"),
    term("label", "the phrase's label"),
    column("frequency", pa.int64(), "the phrase's frequency in the corpus"),
    column("surface", pa.string(), "the phrase as it stands in the document: text[start_char:end_char]"),
    column("context", pa.string(), "the window of the document's text with the phrase replaced by the mask"),
    column("mask_start", pa.uint32(), "where this occurrence's mask stands in `context`, in code points"),
    column("negative", pa.string(), "another phrase's masked context, from another document where there is one"),
    term("doc_id", "the document"),
    column("sentence_id", pa.string(), "the sentence of the occurrence"),
    column("start_char", pa.uint32(), "start of the surface in the document's text"),
    column("end_char", pa.uint32(), "end of the surface in the document's text"),
    *PROVENANCE,
)


def _show_row(table: pa.Table) -> Show:
    phrase, sentence_id = table.column("phrase"), table.column("sentence_id")
    return lambda row: f"{quoted(phrase[row].as_py())} in {quoted(sentence_id[row].as_py())}"


def _rules(table: pa.Table, mask: str) -> Iterator[Broken]:
    show = _show_row(table)
    contexts, ids, doc_ids = (table.column(name).to_pylist() for name in ("context", "sentence_id", "doc_id"))
    start, end = (table.column(name).to_numpy().astype(np.int64) for name in ("start_char", "end_char"))
    places = table.column("mask_start").to_pylist()
    yield is_empty(table, "phrase", show)
    yield is_not_one_of(table, "label", PHRASE_LABELS, show)
    yield Broken("the frequency is below 1", where(pc.less(table.column("frequency"), 1)), show)
    yield Broken(
        "there is no mask at mask_start",
        where([not context.startswith(mask, at) for context, at in zip(contexts, places, strict=True)]),
        lambda row: f"{show(row)}: {quoted(contexts[row][places[row] :])} at {places[row]:,}, not {quoted(mask)}",
    )
    length = pc.utf8_length(table.column("surface")).to_numpy()
    yield Broken(
        "surface is empty or not as long as end_char - start_char",
        where((end - start != length) | (length == 0)),
        lambda row: f"{show(row)}: {length[row]:,} characters, [{start[row]:,}:{end[row]:,}]",
    )
    yield Broken(
        "sentence_id is not that of a sentence of the document before the phrase",
        where([not _is_sentence(*each) for each in zip(ids, doc_ids, start.tolist(), strict=True)]),
        lambda row: f"{quoted(ids[row])}, document {quoted(doc_ids[row])}, phrase at {start[row]:,}",
    )


def _is_sentence(sentence_id: str, doc_id: str, start_char: int) -> bool:
    before, _, start = sentence_id.rpartition("#")
    return before == doc_id and start.isdecimal() and int(start) <= start_char


def _keys(table: pa.Table, seed: int) -> list[bytes]:
    rows = zip(*(table.column(name).to_pylist() for name in ("doc_id", "start_char", "phrase")), strict=True)
    return [row_key(seed=seed, doc_id=doc_id, start_char=start, phrase=phrase) for doc_id, start, phrase in rows]


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    mask, seed = str(manifest.options["mask_token"]), manifest.seed or 0
    return (
        Rows(lambda table: _rules(table, mask)),
        Unique("the document is in another split, too", "doc_id", by="split"),
        InSplit(
            "the document belongs to the other split, by the hash of its id",
            lambda table: [table.column("doc_id").to_pylist()],
            manifest,
        ),
        Ordered("the row is not after the one before it, by hash", lambda table: _keys(table, seed), _show_row),
        # Where rows were taken out, the licences are those of the documents that it was made from.
        Licences(manifest, of_all=manifest.has("cut")),
        *([Negatives(manifest)] if manifest.options["negatives"] in NEGATIVES else []),
    )


class Negatives(Check):
    """The negatives are those of `schemas/negatives.py`, and so is how often a condition was given up."""

    RULE = "the negative is not the context of the next row that may be it (docs/contexts.md)"

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._mask, self._negatives = str(manifest.options["mask_token"]), str(manifest.options["negatives"])
        self._found: Counter[str] = Counter()

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        for shards in self._manifest.splits.values():
            circle = _Shards(dataset, shards)
            for number, shard in enumerate(shards):
                own = dataset.table(shard, columns=["phrase", "negative"])
                expected, counters = find_negatives(
                    circle, number, own.column("phrase").to_pylist(), negatives=self._negatives, mask=self._mask
                )
                self._found += counters
                wrong = where(pc.not_equal(own.column("negative"), pa.array(expected, pa.string())))
                if len(wrong):
                    row = int(wrong[0])
                    found = quoted(own.column("negative")[row].as_py())
                    yield Violation(shard, self.RULE, wrong, f"{found}, not {quoted(expected[row])}")

    def totals(self) -> Iterator[Problem]:
        for name in (*map(given_up, reversed(NEGATIVES[self._negatives])), WITHOUT):
            if self._found[name] != (said := self._manifest.counter(name)):
                yield "", f"{self._found[name]:,} rows count as {quoted(name)}; the manifest says {said:,}"


class _Shards(Circle):
    """The shards of a split."""

    def __init__(self, dataset: Dataset, shards: Sequence[Shard]) -> None:
        self._dataset, self._shards = dataset, shards
        self.ranges = len(shards)

    def keys(self, number: int) -> Keys:
        return Keys.of(self._dataset.table(self._shards[number], columns=KEY_COLUMNS))

    def contexts(self, number: int) -> pa.ChunkedArray:
        return self._dataset.table(self._shards[number], columns=["context"]).column("context")


# ---- Against the documents


CHUNK_BYTES = 1 << 27
"""Bytes of contexts in memory at a time. The documents are read once for each such chunk."""

_COLUMNS = ["phrase", "surface", "context", "mask_start", "doc_id", "start_char", "end_char", *PROVENANCE_NAMES]
_LINE_BREAK = re.compile(r"\s*\n\s*")


def _check_source(dataset: Dataset, documents: Dataset) -> Iterator[Violation]:
    tokens = tuple(str(dataset.manifest.options[name]) for name in ("mask_token", "unknown_token"))
    chunk: list[RowGroup] = []
    held = 0
    for shard in dataset.shards():
        for group in dataset.row_groups(shard, columns=_COLUMNS):
            chunk.append(group)
            held += group.table.nbytes
            if held >= CHUNK_BYTES:
                yield from _chunk(chunk, documents, *tokens)
                chunk, held = [], 0
    if chunk:
        yield from _chunk(chunk, documents, *tokens)


def _chunk(chunk: list[RowGroup], documents: Dataset, mask: str, unknown: str) -> Iterator[Violation]:
    """Check the contexts of some row groups, one shard of documents after the other.

    Contexts are sorted by a hash of their document, so those of a document are a range: with the sorted hashes 3 3 5 8,
    document 3 has the places [0, 2) of `order`.
    """
    table = pa.concat_tables([group.table for group in chunk]).combine_chunks()
    places = [(group.shard, group.first_row, group.table.num_rows) for group in chunk]
    chunk.clear()
    keys = hashes(table.column("doc_id"))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    seen = np.zeros(len(keys), dtype=bool)
    wrong = Wrong()
    for shard in documents.shards():
        ids = hashes(documents.table(shard, columns=["doc_id"]).column("doc_id"))
        first, end = (np.searchsorted(keys, ids, side=side) for side in ("left", "right"))
        runs = [order[a:b] for a, b in zip(first.tolist(), end.tolist(), strict=True) if b > a]
        if not runs:
            continue
        rows = np.concatenate(runs)
        seen[rows] = True
        names = ["doc_id", "text", *PROVENANCE_NAMES]
        texts = zip(*_lists(documents.table(shard, columns=names), names), strict=True)
        by_id = {doc_id: rest for doc_id, *rest in texts}
        contexts = zip(rows.tolist(), *_lists(table.take(pa.array(rows)), _COLUMNS), strict=True)
        for row, phrase, surface, context, mask_start, doc_id, start, end, *origin in contexts:
            text, *expected = by_id[doc_id]
            around = (context[:mask_start], context[mask_start + len(mask) :])
            for rule, detail in _problems(text, start, end, surface, around, mask, unknown):
                wrong.add(rule, row, f"{quoted(phrase)} in {quoted(doc_id)}: {detail}")
            if origin != expected:
                detail = f"{quoted(doc_id)}: {origin} instead of {expected}"
                wrong.add(f"{', '.join(PROVENANCE_NAMES)} are not the document's", row, detail)
    for row in np.flatnonzero(~seen).tolist():
        wrong.add("the document is not in the documents dataset", row, quoted(table.column("doc_id")[row].as_py()))
    before = 0
    for shard, first_row, n in places:
        yield from wrong.violations(shard, range(before, before + n), first_row)
        before += n


def _lists(table: pa.Table, names: list[str]) -> list[list[Any]]:
    return [table.column(name).to_pylist() for name in names]


def _problems(
    text: str, start: int, end: int, surface: str, around: tuple[str, str], mask: str, unknown: str
) -> Iterator[tuple[str, str]]:
    """The rules that a context breaks, each with what is wrong. `around`: the context before and after its mask."""
    if text[start:end] != surface and _quick_line(text[start:end]) != surface:
        detail = f"{quoted(surface)}, in the document {quoted(text[start:end])}"
        yield "the surface is not at start_char in the document", detail
    # Up to the nearest other masks, the context is the document's text, with a space for each line break and a token
    # for each unknown word.
    before, after = around[0].rpartition(mask)[2], around[1].partition(mask)[0]
    if text.endswith(before, 0, start) and text.startswith(after, end):
        return
    text_before = text[max(start - 2 * len(before) - 2, 0) : start].replace(UNKNOWN_TOKEN, unknown)
    text_after = text[end : end + 2 * len(after) + 2].replace(UNKNOWN_TOKEN, unknown)
    if not any(
        one_line(text_before).endswith(before) and one_line(text_after).startswith(after)
        for one_line in (_quick_line, _one_line)
    ):
        there = f"{quoted(text_before[-30:])} and {quoted(text_after[:30])}"
        detail = f"{quoted(before[-30:] + mask + after[:30])}, in the document {there}"
        yield "the context is not the document's text around the phrase", detail


def _quick_line(text: str) -> str:
    """As `_one_line`, if no line begins or ends with whitespace."""
    return text.replace("\n\n", " ").replace("\n", " ")


def _one_line(text: str) -> str:
    return _LINE_BREAK.sub(" ", text)


# ---- Manifest, people


def _sums(manifest: Manifest) -> Iterator[Problem]:
    if manifest.options["negatives"] not in NEGATIVES:
        yield "", f"options.negatives is {manifest.options['negatives']!r}, not one of {', '.join(NEGATIVES)}"
    yield from equal(manifest.rows, manifest.last_written, "rows, and contexts that the last stage wrote")
    if manifest.has("cut"):
        cut_ = manifest.ledger("cut")
        what = "contexts that were cut, and those that the last stage wrote"
        yield from equal(cut_.written, manifest.last_written, what)
        yield from equal(cut_.read, manifest.counter("selected"), "occurrences that cut read, and those selected")


_GIVEN_UP = {"label": "of another label", "source": "of another source", "document": "of the same document"}


def _notes(manifest: Manifest) -> Iterator[str]:
    """How many negatives are not what they should be."""
    found = {what: manifest.counter(given_up(condition)) for condition, what in _GIVEN_UP.items()}
    found["missing"] = manifest.counter(WITHOUT)
    if any(found.values()):
        said = ", ".join(f"{n:,} {what}" for what, n in found.items() if n)
        yield f"negatives: {said}: no other was found (docs/contexts.md)"


def _unmasked(table: pa.Table, options: Mapping[str, Any]) -> pa.Table:
    """Contexts with the surface instead of each mask."""
    between = pc.split_pattern(table.column("context"), str(options["mask_token"]))
    place = table.column_names.index("context")
    return table.set_column(place, "context", pc.binary_join(between, table.column("surface")))


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    """The context with the surface instead of its mask, marked. Other masks stay."""
    mask = options.get("mask_token", "[MASK]")
    start = row["mask_start"]
    pieces = passage(row["context"], start, start + len(mask), row["surface"], mask, masks=mask)
    remarks = (("negative", cut(row["negative"])),) if row["negative"] else ()
    heading = f"{cut(row['phrase'])} · {row['label']} · {row['frequency']:,}×"
    return Shown(heading, cut(row["title"] or row["doc_id"]), web_address(row["url"]), tuple(pieces), remarks)


KIND = Kind(
    schema=CONTEXTS,
    rows="contexts",
    about="Phrases masked in their contexts, with the context of another phrase, in random order.",
    command="mine_contexts",
    show=show,
    source=Source("Document", "offsets", _check_source),
    checks=_checks,
    options={"mask_token": str, "unknown_token": str, "negatives": str, "validation_rate": float},
    sums=_sums,
    notes=_notes,
    measures=(
        words("Length of a phrase", "phrase"),
        value("Label", "contexts", "label"),
        frequency_by_rank("Frequency of the phrases against rank", "occurrences", "phrase", "frequency"),
        words("Length of a context", "context"),
        share_before("Place of the mask", "mask_start", "context"),
        value("Source", "contexts", "source"),
        value("Licence", "contexts", "licence"),
    ),
    views={"triplets": ("phrase", "context", "negative")},
    tasks=("sentence-similarity", "feature-extraction", "fill-mask"),
    texts=("phrase", "context"),
    unmasked=_unmasked,
    parsed=True,
    filters={
        "not_in_vocabulary": "an occurrence of a phrase that is not among the most frequent (--max-phrases, "
        "--min-frequency)",
        "unknown_words": "a context with more unknown words than --max-unknown-words",
    },
)
