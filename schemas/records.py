"""The records of every dataset: Arrow schemas, declared once, each column with its meaning and unit.

Offsets are Unicode code points in the document's `text` unless the name says `token`; ends are exclusive.
Ids: `doc_id` is "<source>:<id in the source>", `sentence_id` is "<doc_id>#<start_char>".
"""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = 1

PHRASE_LABELS = ("NP", "VP", "PP", "ADJP", "ADVP")
"""The constituents that the papers make phrases of, in the fixed order that breaks ties between labels."""


UNKNOWN_TOKEN = "\ufffd"
"""In a text: a word that the source does not tell, such as WikiText's <unk>. No phrase may hold it."""


def column(name: str, type_: pa.DataType, description: str) -> pa.Field:
    """A non-null column that carries its own description."""
    return pa.field(name, type_, nullable=False, metadata={"description": description})


def term(name: str, description: str) -> pa.Field:
    """A string column of few distinct values: dictionary-encoded in the file, plain strings in memory.

    Arrow's own dictionary type is avoided: pyarrow cannot read it inside lists, nor can `datasets` at all.
    """
    return pa.field(name, pa.string(), nullable=False, metadata={"description": description, "distinct": "few"})


def schema(record: str, *fields: pa.Field) -> pa.Schema:
    """The Arrow schema of one record type, named and versioned in the file's metadata."""
    metadata = {"phrasemill.record": record, "phrasemill.schema_version": str(SCHEMA_VERSION)}
    return pa.schema(fields, metadata=metadata)


def record_name(arrow_schema: pa.Schema) -> str:
    return (arrow_schema.metadata or {}).get(b"phrasemill.record", b"").decode()


def _struct(*fields: pa.Field) -> pa.DataType:
    return pa.struct(fields)


def _list(item: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", item, nullable=False))


PROVENANCE = (
    term("source", "where the document comes from: a dump's name, a folder's name"),
    column("title", pa.string(), "the document's title, empty if it has none"),
    column("url", pa.string(), "where the document can be read, empty if unknown"),
    term("licence", "the licence of the document's text, 'unknown' if the input does not say"),
)

DOCUMENTS = schema(
    "Document",
    column("doc_id", pa.string(), "<source>:<id in the source>, unique in the dataset"),
    *PROVENANCE,
    column(
        "text",
        pa.string(),
        "plain text; a line is a paragraph, a heading or a list item; an empty line stands between paragraphs",
    ),
    column(
        "links",
        _list(
            _struct(
                column("start_char", pa.uint32(), "start of the anchor in the text"),
                column("end_char", pa.uint32(), "end of the anchor in the text"),
                column("target_title", pa.string(), "the title linked to, as written, without its fragment"),
                column("entity_id", pa.string(), "the entity's Wikidata id, empty if the input does not say"),
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
)

SENTENCES = schema(
    "Sentence",
    column("sentence_id", pa.string(), "<doc_id>#<start_char>"),
    term("doc_id", "the document"),
    column("start_char", pa.uint32(), "start of the sentence in the document's text"),
    column("text", pa.string(), "the sentence as it stands in the document's text"),
    column(
        "tokens",
        _list(
            _struct(
                column("start_char", pa.uint32(), "start of the token in the document's text"),
                column("end_char", pa.uint32(), "end of the token in the document's text"),
                term("tag", "Penn Treebank part of speech"),
            )
        ),
        "tokens in order, none of them whitespace",
    ),
    column(
        "constituents",
        _list(
            _struct(
                term("label", "phrase label: NP, VP, PP, ADJP, ADVP and what else the parser gives"),
                column("start_token", pa.uint16(), "first token, counted in the sentence"),
                column("end_token", pa.uint16(), "token after the last"),
            )
        ),
        "labelled spans, each once, by start, longest first; of a unary chain the outermost first",
    ),
)

PHRASES = schema(
    "Phrase",
    column("phrase", pa.string(), "the normalised phrase (docs/phrases.md)"),
    term("label", "the label of most of its occurrences; ties by the order NP, VP, PP, ADJP, ADVP"),
    column(
        "label_shares",
        _struct(*(column(label, pa.float32(), f"share of occurrences labelled {label}") for label in PHRASE_LABELS)),
        "share of each label among the occurrences",
    ),
    column("frequency", pa.int64(), "occurrences in all documents"),
    column("document_frequency", pa.int64(), "documents with an occurrence"),
    term("entity_type", "entity type of most occurrences, empty where entities were not annotated"),
)

CONTEXTS = schema(
    "Context",
    column("phrase", pa.string(), "the normalised phrase"),
    term("label", "the phrase's label"),
    column("frequency", pa.int64(), "the phrase's frequency in the corpus"),
    column("surface", pa.string(), "the phrase as it stands in the document: text[start_char:end_char]"),
    column("context", pa.string(), "the window of the document's text with the phrase replaced by the mask"),
    column("mask_start", pa.uint32(), "where this occurrence's mask stands in `context`, in code points"),
    column("anchor", pa.string(), "the phrase (Phrase-BERT's p)"),
    column("positive", pa.string(), "the phrase's own masked context (c+)"),
    column("negative", pa.string(), "another phrase's masked context, from another document where there is one (c-)"),
    term("doc_id", "the document"),
    column("sentence_id", pa.string(), "the sentence of the occurrence"),
    column("start_char", pa.uint32(), "start of the surface in the document's text"),
    column("end_char", pa.uint32(), "end of the surface in the document's text"),
    *PROVENANCE,
)

REJECTS = schema(
    "Reject",
    term("stage", "the stage that refused it"),
    term("reason", "one of the reasons in schemas.records.REJECT_REASONS"),
    column("source", pa.string(), "the input file or the document"),
    column("position", pa.string(), "where in it: a byte, a line, a page, a character span"),
    column("excerpt", pa.string(), "the beginning of what was refused, at most 200 characters"),
    column("exception", pa.string(), "class and message of the error, empty where a limit refused it"),
)

RECORDS = {record_name(each): each for each in (DOCUMENTS, REDIRECTS, SENTENCES, PHRASES, CONTEXTS, REJECTS)}

REJECT_REASONS = {
    "page_too_large": "a record longer than --max-page-bytes",
    "too_many_nodes": "a page with more markup than --max-nodes",
    "too_deep": "a page whose markup nests deeper than --max-depth",
    "record_too_large": "a line, member or row longer than the reader takes",
    "document_too_large": "a document longer than --max-document-bytes",
    "bad_xml": "a page that is not well-formed XML",
    "bad_utf8": "bytes that are not UTF-8",
    "bad_record": "a line or row that is not of its format",
    "truncated": "input that ends in the middle of a record or of a compressed stream",
    "corrupt": "a damaged compressed stream or file",
    "empty_file": "an input file without a byte",
    "duplicate_id": "a document whose id another document of other text has",
    "too_many_tokens": "a sentence longer than the parser's limit in tokens",
    "too_many_subwords": "a sentence longer than the parser's limit in subwords",
    "parser_error": "a sentence on which the parser failed",
    "worker_died": "a document on which worker processes died (a crash, or out of memory), also alone",
    "worker_hung": "a document on which worker processes hung, also alone",
    "worker_failed": "a document on which workers failed with an error, also alone",
}
"""The closed list of reasons for which a record is rejected (a fault), as opposed to filtered (by a rule)."""

FILTER_REASONS = {
    "redirect": "a page that only points to another; kept in redirects/",
    "not_an_article": "a page outside the article namespace",
    "not_wikitext": "a page of another content model",
    "not_a_text_file": "a member of an archive that is not text",
    "no_text": "a record without text once its markup is gone",
    "not_sampled": "a document outside --sample-documents",
    "duplicate_document": "a document whose text another has (--dedup=documents), or the same document again",
    "duplicate_paragraph": "a document of which only short lines were left (--dedup=paragraphs)",
    "unknown_token": "a constituent with a word that the source does not tell",
    "punctuation": "a constituent of punctuation only",
    "unbalanced": "a constituent with half of a pair of brackets or quotes: the parser went astray",
    "pronoun": "a lone pronoun or determiner",
    "number": "a constituent of numbers only",
    "too_long": "a constituent longer than --max-phrase-tokens",
    "same_words": "a constituent over the same words as another, which counts",
    "too_rare": "a phrase that is not among the most frequent",
    "not_in_vocabulary": "an occurrence of a phrase that is not among the most frequent",
}
"""The closed list of reasons for which a stage leaves something out by a rule."""
