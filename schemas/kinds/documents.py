"""Documents: plain texts with their links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.checks import (
    Broken,
    Check,
    Licences,
    Rows,
    Unique,
    Violation,
    broken_items,
    broken_spans,
    is_empty,
    is_no_wikidata_id,
    is_of_other_source,
    nested,
    quoted,
    showing,
    where,
)
from schemas.columns import PROVENANCE, column, list_of, schema, struct, term
from schemas.dataset import Dataset, RowGroup
from schemas.errors import UserError
from schemas.kind import Kind, Problem, Side, equal
from schemas.manifest import Manifest
from schemas.measures import characters, length, value
from schemas.shown import CELL, PASSAGE, Piece, Row, Shown, cut, web_address

DOCUMENTS = schema(
    "Document",
    column("doc_id", pa.string(), "<source>:<id in the source>, unique in the dataset"),
    *PROVENANCE,
    column(
        "text",
        pa.string(),
        "plain text; a line is a paragraph, a heading or a list item; an empty line stands between paragraphs",
    ),
    term("language", "the code of the text's language, empty if the input does not say"),
    column(
        "links",
        list_of(
            struct(
                column("start_char", pa.uint32(), "start of the anchor in the text"),
                column("end_char", pa.uint32(), "end of the anchor in the text"),
                column("target_title", pa.string(), "the title linked to, as written, without its fragment"),
                column("entity_id", pa.string(), "the entity's Wikidata id, empty if the input does not say"),
                column("section", pa.string(), "the section of the target page that is linked to, empty if it is none"),
            )
        ),
        "hyperlinks in order; text[start_char:end_char] is the anchor as shown",
    ),
)

REDIRECTS = schema(
    "Redirect",
    term("source", "the dump's name"),
    column("title", pa.string(), "the redirecting title"),
    column("target_title", pa.string(), "the title it points to, without its fragment"),
    column("section", pa.string(), "the section of that page that it points to, empty if it is none"),
)

PAGES = schema(
    "Page",
    term("source", "the dump's name"),
    column("page_id", pa.string(), "the page's id in the source"),
    column("title", pa.string(), "the page's title"),
    column("entity_id", pa.string(), "the Wikidata id of what the page is about, empty if the input does not say"),
    column("disambiguation", pa.bool_(), "whether the page only lists what its title may mean"),
)

DUPLICATE_EXCERPT = 100

DUPLICATES = schema(
    "Duplicate",
    column("doc_id", pa.string(), "the document that was left out, or that lost a paragraph"),
    column("paragraph", pa.int32(), "the number of the paragraph's line in its text as read; -1: the whole document"),
    column("repeats", pa.string(), "the document that is kept for it, or in which the paragraph is kept"),
    term("reason", "duplicate_document, near_duplicate, duplicate_paragraph, near_duplicate_paragraph"),
    column("jaccard", pa.float64(), "how alike it is to the text of its cluster that is most like it; 1: a copy"),
    column("excerpt", pa.string(), f"the beginning of what was left out, at most {DUPLICATE_EXCERPT} characters"),
)


def _rules(table: pa.Table) -> Iterator[Broken]:
    show = showing(table.column("doc_id"))
    texts = table.column("text").to_pylist()
    yield is_of_other_source(table)
    yield is_empty(table, "licence", show)
    yield Broken("the text is empty", where([not text for text in texts]), show)
    yield Broken("the text has a carriage return", where(["\r" in text for text in texts]), show)
    yield Broken(
        "a line of the text begins or ends with whitespace",
        where([_untidy_line(text) is not None for text in texts]),
        lambda row: f"{show(row)}: {quoted(_untidy_line(texts[row]))}",
    )
    yield Broken("the text has two empty lines in a row", where(["\n\n\n" in text for text in texts]), show)
    owner, first, (start, end) = nested(table.column("links").combine_chunks(), ("start_char", "end_char"))
    lengths = np.array([len(text) for text in texts])

    def show_link(link: int) -> str:
        row = owner[link]
        return f"{show(row)}: [{start[link]:,}:{end[link]:,}], text of {lengths[row]:,} characters"

    yield from broken_spans("a link", start, end, first, owner, show_link)
    yield broken_items("a link ends after the text", end > lengths[owner], owner, show_link)


def _untidy_line(text: str) -> str | None:
    return next((line for line in text.split("\n") if line != line.strip()), None)


def _broken_pages(table: pa.Table) -> Iterator[Broken]:
    show = showing(table.column("title"))
    for name in ("source", "title"):
        yield is_empty(table, name, lambda row: f"page {quoted(table.column('page_id')[row].as_py())}")
    yield is_no_wikidata_id(table.column("entity_id"), "entity_id", show)


class _HavePages(Check):
    """A source with pages has at least as many pages as documents."""

    def __init__(self) -> None:
        self._documents: Counter[str] = Counter()
        self._pages: Counter[str] = Counter()

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        self._documents.update(group.table.column("source").to_pylist())
        yield from ()

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        try:
            for shard in dataset.manifest.sides.get("pages", []):
                for group in dataset.row_groups(shard, columns=["source"]):
                    self._pages.update(group.table.column("source").to_pylist())
        except UserError:  # a file that cannot be read; another check reports it
            self._pages.clear()
        yield from ()

    def totals(self) -> Iterator[tuple[str, str]]:
        for source, pages in sorted(self._pages.items()):
            if self._documents[source] > pages:
                documents = f"it has {self._documents[source]:,} documents"
                yield "pages", f"{pages:,} rows of source {quoted(source)}; {documents}"


def _sums(manifest: Manifest) -> Iterator[Problem]:
    if not manifest.has("extract"):
        return
    extract, drop = manifest.ledger("extract"), manifest.ledger("drop")
    # `drop` reads and rewrites only the shards from which something is dropped.
    left = extract.written - (drop.read - drop.written)
    yield from equal(manifest.rows, left, "rows, and documents extracted less those dropped")
    pages, redirects = manifest.side_rows("pages"), manifest.side_rows("redirects")
    if pages > extract.read:
        yield "pages", f"{pages:,} rows; extract read {extract.read:,} {extract.counts}"
    if redirects < extract.filtered["redirect"]:
        yield "redirects", f"{redirects:,} rows; extract left out {extract.filtered['redirect']:,} redirects"
    documents = drop.filtered["duplicate_document"] + drop.filtered["near_duplicate"]
    left_out = documents + sum(_paragraphs(manifest).values())
    if "duplicates" in manifest.sides and manifest.side_rows("duplicates") != left_out:  # earlier versions have none
        yield "duplicates", f"{manifest.side_rows('duplicates'):,} rows; drop left out {left_out:,} texts"


def _paragraphs(manifest: Manifest) -> dict[str, int]:
    """The paragraphs that were left out, by what they are."""
    kinds = ("duplicate paragraph", "near duplicate paragraph")
    return {each: n for each in kinds if (n := manifest.counter(f"{each.replace(' ', '_')}s"))}


def _notes(manifest: Manifest) -> Iterator[str]:
    for what, paragraphs in _paragraphs(manifest).items():
        yield f"filtered paragraphs: {paragraphs:,} {what}"
    if characters := manifest.counter("duplicate_characters"):
        yield f"characters of filtered paragraphs: {characters:,}"


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    """The beginning of the document with its links."""
    text = row["text"][: 2 * PASSAGE]
    pieces: list[Piece] = []
    place = 0
    for link in row["links"]:
        start, end = link["start_char"], link["end_char"]
        if start < place or end > len(text):
            continue
        pieces += [Piece("", text[place:start]), Piece("link", text[start:end], cut(link["target_title"]))]
        place = end
    pieces.append(Piece("", text[place:] + (" …" if len(row["text"]) > len(text) else "")))
    remarks = (
        ("length", f"{len(row['text']):,} characters, {len(row['links']):,} links"),
        ("licence", cut(row["licence"])),
    )
    heading = cut(row["title"] or row["doc_id"], CELL)
    shown = tuple(each for each in pieces if each.text)
    return Shown(heading, cut(row["doc_id"]), web_address(row["url"]), shown, remarks)


KIND = Kind(
    schema=DOCUMENTS,
    rows="documents",
    about="Plain texts with their links, in the order of the input.",
    command="extract_documents",
    after="pipelines.parse_sentences --input",
    order="source",
    show=show,
    checks=lambda manifest: (
        Unique("doc_id is not unique", "doc_id"),
        Rows(_rules),
        Licences(manifest, are_documents=True),
        _HavePages(),
    ),
    sums=_sums,
    notes=_notes,
    sides={"redirects": Side(REDIRECTS), "pages": Side(PAGES, _broken_pages), "duplicates": Side(DUPLICATES)},
    measures=(
        characters("Length of a document", "text"),
        length("Links in a document", "links", "links"),
        value("Source", "documents", "source"),
        value("Licence", "documents", "licence"),
    ),
    filters={
        "redirect": "a page that only points to another; kept in redirects/",
        "not_an_article": "a page outside the article namespace",
        "not_wikitext": "a page of another content model",
        "not_a_text_file": "a member of an archive that is not text",
        "no_text": "a record without text after its markup is removed",
        "not_sampled": "a document outside --sample-documents",
        "duplicate_document": "a document with the text of another (--dedup=documents), or the same document again",
        "near_duplicate": "a document that is like an earlier one (--dedup=near, --near-jaccard)",
        "duplicate_paragraph": "a document with only short lines left (--dedup=paragraphs, --dedup=near-paragraphs)",
    },
    rejects={
        "page_too_large": "a record longer than --max-page-bytes",
        "too_many_nodes": "a page with more markup than --max-nodes",
        "too_deep": "a page whose markup nests deeper than --max-depth",
        "record_too_large": "a line, member or row longer than --max-document-bytes, or with too many values",
        "document_too_large": "a document longer than --max-document-bytes",
        "bad_xml": "a page that is not well-formed XML",
        "bad_utf8": "bytes that are not UTF-8",
        "bad_record": "a line, row or file of another format, or without a text in --text-column",
        "truncated": "input that ends in the middle of a record or of a compressed stream",
        "corrupt": "a damaged compressed stream or file",
        "empty_file": "an empty input file",
        "duplicate_id": "a document with the id of another document with different text",
    },
)
