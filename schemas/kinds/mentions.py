"""Mentions: hyperlinks in their sentences, with the entities that they link to (UCTopic)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import (
    I64,
    Broken,
    Check,
    Counters,
    Licences,
    Rows,
    Show,
    SideBySide,
    Unique,
    Violation,
    Wrong,
    hashes,
    is_empty,
    is_no_wikidata_id,
    is_not_one_of,
    is_of_other_source,
    nested,
    quoted,
    where,
)
from schemas.columns import PROVENANCE, PROVENANCE_NAMES, column, schema, term
from schemas.dataset import Dataset
from schemas.kind import Kind, Source
from schemas.manifest import Manifest
from schemas.measures import rows_by_rank, share_before, value, words
from schemas.reasons import DATE, NUMBER, PUNCTUATION
from schemas.shown import Piece, Row, Shown, cut, passage, web_address
from schemas.terms import ORIGINS, RESOLUTIONS

MENTION_FIELDS = (
    term("entity_id", "the Wikidata id of the entity, empty where none is known"),
    column("target_title", pa.string(), "the title of the entity's page, redirects followed"),
    column("mention", pa.string(), "the anchor as it stands in the sentence: text[start_char:end_char]"),
    column("sentence_id", pa.string(), "<doc_id>#<start of the sentence in the document's text>"),
    column("text", pa.string(), "the sentence as it stands in the document's text; in verse with line breaks"),
    column("start_char", pa.uint32(), "start of the mention in `text`, the sentence"),
    column("end_char", pa.uint32(), "end of the mention in `text`, the sentence"),
    column("section", pa.string(), "the section of the target's page that is meant, empty for the whole page"),
    term("resolution", "how the target was found: qid, redirect, title or NIL (docs/mentions.md)"),
    term("origin", "link: a hyperlink; title: the page's own title; repeat: an anchor linked before in the page"),
)

MENTIONS = schema(
    "Mention",
    *MENTION_FIELDS,
    term("doc_id", "the document"),
    *PROVENANCE,
)

_SENTENCE_ID = re.compile(r".+:.*#(0|[1-9][0-9]*)", re.DOTALL)


class MentionColumns:
    """Mentions in the columns of a table whose names end in `suffix`: "", or "_1" or "_2" for those of pairs."""

    def __init__(self, table: pa.Table, suffix: str = "") -> None:
        self._table, self._suffix = table, suffix
        self._of = {"": "", "_1": " of the first", "_2": " of the second"}[suffix]
        self.ids, self.texts, self.mentions = (self._list(name) for name in ("sentence_id", "text", "mention"))
        self.start, self.end = (table.column(name + suffix).to_pylist() for name in ("start_char", "end_char"))

    def _list(self, name: str) -> list[str]:
        return self._table.column(name + self._suffix).to_pylist()

    def show(self, row: int) -> str:
        return f"{quoted(self.mentions[row])} in {quoted(self.ids[row])}"

    def broken(self) -> Iterator[Broken]:
        """The rules for a mention, in any kind of dataset."""
        spans = list(zip(self.texts, self.start, self.end, strict=True))
        yield Broken(
            f"the mention{self._of} is empty or begins or ends with a blank",
            where([not each or each != each.strip() for each in self.mentions]),
            self.show,
        )
        yield Broken(
            f"text[start_char:end_char]{self._of} is not the mention",
            where([text[start:end] != each for each, (text, start, end) in zip(self.mentions, spans, strict=True)]),
            lambda row: (
                f"{self.show(row)}: [{self.start[row]:,}:{self.end[row]:,}] is "
                f"{quoted(spans[row][0][spans[row][1] : spans[row][2]])}"
            ),
        )
        yield Broken(
            f"sentence_id{self._of} is not <doc_id>#<start_char>",
            where([_SENTENCE_ID.fullmatch(each) is None for each in self.ids]),
            lambda row: quoted(self.ids[row]),
        )
        yield is_empty(self._table, f"target_title{self._suffix}", self.show, f"target_title{self._of}")
        entity_id = self._table.column(f"entity_id{self._suffix}")
        yield is_no_wikidata_id(entity_id, f"entity_id{self._of}", self.show)


def _rules(table: pa.Table) -> Iterator[Broken]:
    mentions = MentionColumns(table)
    doc_ids = table.column("doc_id").to_pylist()
    resolution, entity_id = table.column("resolution"), table.column("entity_id")
    yield from mentions.broken()
    yield is_not_one_of(table, "resolution", RESOLUTIONS, mentions.show)
    yield Broken(
        "resolution is not qid where the Wikidata id is known, and only there",
        where(pc.xor(pc.equal(resolution, "qid"), pc.not_equal(entity_id, ""))),
        lambda row: (
            f"{mentions.show(row)}: resolution {quoted(resolution[row].as_py())}, "
            f"entity_id {quoted(entity_id[row].as_py())}"
        ),
    )
    yield is_not_one_of(table, "origin", ORIGINS, mentions.show)
    yield is_of_other_source(table)
    yield Broken(
        "sentence_id is not that of a sentence of the document",
        where([each.rpartition("#")[0] != doc_id for each, doc_id in zip(mentions.ids, doc_ids, strict=True)]),
        lambda row: f"{quoted(mentions.ids[row])}, document {quoted(doc_ids[row])}",
    )


def _spans(table: pa.Table) -> tuple[I64, I64]:
    """[n], [n] the start and end of each mention in its document: [4, 9) in the sentence "doc#30" is [34, 39)."""
    ids = (each.rpartition("#")[2] for each in table.column("sentence_id").to_pylist())
    sentence = np.array([int(each) if each.isdecimal() else 0 for each in ids], dtype=np.int64)
    start, end = (table.column(name).to_numpy().astype(np.int64) for name in ("start_char", "end_char"))
    return sentence + start, sentence + end


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    return (
        Unique("the document has mentions in another shard", "doc_id", by="shard"),
        Rows(_rules),
        SideBySide(
            "the document's mentions are not side by side",
            "the mention begins before the one before it ends",
            lambda table: table.column("doc_id").to_pylist(),
            lambda table: tuple(each.tolist() for each in _spans(table)),
            _show_row,
        ),
        Licences(manifest, of_all=False),
        Counters("resolution", RESOLUTIONS, "resolution:{}", manifest),
    )


def _show_row(table: pa.Table) -> Show:
    mention, sentence_id = table.column("mention"), table.column("sentence_id")
    return lambda row: f"{quoted(mention[row].as_py())} in {quoted(sentence_id[row].as_py())}"


# ---- Against the documents


_IN_TEXT = ["doc_id", "sentence_id", "text", "mention", "start_char", "end_char", "origin", *PROVENANCE_NAMES]


class _Text(NamedTuple):
    """A document: its text, where it comes from, and the spans of its links."""

    text: str
    provenance: list[str]
    links: list[tuple[int, int]]

    def anchors(self) -> dict[str, int]:
        """For each anchor the end of its first link."""
        found: dict[str, int] = {}
        for start, end in self.links:
            found.setdefault(self.text[start:end], end)
        return found


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
        """[n] the number of the shard that has each document; -1 if none has.

        With the sorted hashes 2 5 8 of documents in the shards 1 0 1, the hashes 5 and 6 have the places 1 and 2 in
        that order. Place 1 has the hash 5, which is in shard 0. Place 2 has 8, not 6: -1.
        """
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
            rows = zip(*(table.column(name).to_pylist() for name in names), pairwise(cuts), strict=True)
            self._read, self._rows = shard, {doc_id: rest for doc_id, *rest in rows}
        text, *provenance, (first, last) = self._rows[doc_id]
        spans = (each[first:last].tolist() for each in self._links)
        return _Text(text, provenance, list(zip(*spans, strict=True)))


def _check_source(dataset: Dataset, documents: Dataset) -> Iterator[Violation]:
    texts = _Texts(documents)
    for shard in dataset.shards():
        wrong = Wrong()
        last, document, anchors = "", _Text("", [], []), dict[str, int]()
        for group in dataset.row_groups(shard, columns=_IN_TEXT):
            numbers = texts.shards_of(group.table.column("doc_id")).tolist()
            rows = zip(numbers, *(group.table.column(name).to_pylist() for name in _IN_TEXT), strict=True)
            for row, (number, doc_id, *mention) in enumerate(rows, start=group.first_row):
                if number < 0:
                    wrong.add("the document is not in the documents dataset", row, quoted(doc_id))
                    continue
                if doc_id != last:
                    last, document = doc_id, texts.get(number, doc_id)
                    anchors = document.anchors()
                for rule, detail in _problems(document, anchors, *mention):
                    wrong.add(rule, row, detail)
        yield from wrong.violations(shard)


def _problems(
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
    place = f"{quoted(mention)} in {quoted(sentence_id)}"
    if not document.text.startswith(text, at):
        there = document.text[at : at + len(text)]
        yield "the text is not where sentence_id says", f"{place}: {quoted(text)}, there {quoted(there)}"
        return
    span = f"{place}: [{at + start:,}:{at + end:,}]"
    if origin == "link" and (at + start, at + end) not in document.links:
        yield "the document has no link with the mention as its anchor", span
    if origin == "repeat" and anchors.get(mention, len(document.text) + 1) > at + start:
        yield "the document has no link with this anchor before the mention", span
    title = document.provenance[PROVENANCE_NAMES.index("title")]
    if origin == "title" and not title.startswith(mention):
        yield "the mention is not the document's title", f"{place}: {quoted(title)}"
    if [*provenance] != document.provenance:
        detail = f"{place}: {[*provenance]} instead of {document.provenance}"
        yield f"{', '.join(PROVENANCE_NAMES)} are not the document's", detail


# ---- People


def _notes(manifest: Manifest) -> Iterator[str]:
    """How the titles that mentions link to were resolved."""
    if not manifest.rows:
        return
    found = {name: manifest.counter(f"resolution:{name}") for name in RESOLUTIONS}
    line = "targets: " + ", ".join(f"{n:,} {name}" for name, n in found.items())
    if found["NIL"] > manifest.rows / 2:
        line += "; few of the pages linked to are known: give the whole dump, or its page table (docs/mentions.md)"
    elif not found["qid"]:
        line += "; for Wikidata ids give the wiki's page_props table with --tables (docs/mentions.md)"
    yield line


def entity(row: Row) -> str:
    """The entity of a mention, readable: its title and section, with the Wikidata id if it is known."""
    title = cut(row["target_title"] + (f"#{row['section']}" if row["section"] else ""))
    return f"{title} ({cut(row['entity_id'])})" if row["entity_id"] else title


def in_sentence(row: Row) -> Iterator[Piece]:
    """The text around a mention, with the mention marked."""
    return passage(row["text"], row["start_char"], row["end_char"], row["mention"], entity(row))


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    """The sentence with the mention marked."""
    heading = f"{cut(row['mention'])} → {entity(row)} · {row['resolution']} · {row['origin']}"
    return Shown(heading, cut(row["title"] or row["doc_id"]), web_address(row["url"]), tuple(in_sentence(row)))


KIND = Kind(
    schema=MENTIONS,
    rows="mentions",
    about="Hyperlinks in their sentences, with the entity that each of them means, in the order of the text.",
    command="find_mentions",
    after="pipelines.mine_mentions --input",
    order="source",
    show=show,
    source=Source("Document", "offsets", _check_source),
    checks=_checks,
    notes=_notes,
    measures=(
        value("Resolution", "mentions", "resolution"),
        value("Origin", "mentions", "origin"),
        words("Length of a mention", "mention"),
        words("Length of a sentence", "text"),
        share_before("Place of the mention", "start_char", "text"),
        rows_by_rank("Mentions of an entity against its rank", "mentions", "entity_id", "target_title"),
        rows_by_rank("Mentions of a surface against its rank", "mentions", "mention"),
        value("Source", "mentions", "source"),
        value("Licence", "mentions", "licence"),
    ),
    tasks=("token-classification", "feature-extraction"),
    texts=("mention", "text"),
    filters={
        **PUNCTUATION,
        **NUMBER,
        "across_sentences": "an anchor that is not inside one sentence",
        "whole_sentence": "a mention that is its whole sentence, but for punctuation (--keep-whole-sentences)",
        "long_sentence": "a mention in a sentence longer than --max-sentence-words",
        "long_mention": "a mention longer than --max-mention-words",
        **DATE,
        "list_page": "a mention on a list, index or disambiguation page (--keep-lists)",
        "to_disambiguation": "a link to a disambiguation page: no entity is meant (--keep-disambiguation)",
        "to_list_page": "a link to a list or index without one of its sections: no entity is meant (--keep-to-lists)",
        "red_link": "a link to a title that is not a page (--drop-red-links)",
        "ambiguous_anchor": "a further mention of an anchor or title that is linked to two targets in the page",
    },
)
