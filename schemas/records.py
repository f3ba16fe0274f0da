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

PAGES = schema(
    "Page",
    term("source", "the dump's name"),
    column("page_id", pa.string(), "the page's id in the source"),
    column("title", pa.string(), "the page's title"),
    column("entity_id", pa.string(), "the Wikidata id of what the page is about, empty if the input does not say"),
    column("disambiguation", pa.bool_(), "whether the page only lists what its title may mean"),
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

RESOLUTIONS = ("qid", "redirect", "title", "NIL")
"""How the target of a mention was found (docs/mentions.md)."""

ORIGINS = ("link", "title", "repeat")
"""What makes a mention: a hyperlink, the page's own title, an anchor that the page linked before."""

PAIR_KINDS = ("entity", "surface")
"""What two mentions of a pair share."""

MENTION_FIELDS = (
    term("entity_id", "the Wikidata id of the entity, empty where none is known"),
    column("target_title", pa.string(), "the title of the entity's page, redirects followed"),
    column("mention", pa.string(), "the anchor as it stands in the sentence: text[start_char:end_char]"),
    column("sentence_id", pa.string(), "<doc_id>#<start of the sentence in the document's text>"),
    column("text", pa.string(), "the sentence as it stands in the document's text"),
    column("start_char", pa.uint32(), "start of the mention in `text`, the sentence"),
    column("end_char", pa.uint32(), "end of the mention in `text`, the sentence"),
    term("resolution", "how the target was found: qid, redirect, title or NIL (docs/mentions.md)"),
    term("origin", "link: a hyperlink; title: the page's own title; repeat: an anchor linked before in the page"),
)

MENTIONS = schema(
    "Mention",
    *MENTION_FIELDS,
    term("doc_id", "the document"),
    *PROVENANCE,
)

PAIRED_FIELDS = tuple(each for each in MENTION_FIELDS if each.name not in ("resolution", "origin"))
"""What a pair keeps of each of its two mentions; the rest is found by sentence_id."""


def _of_side(field: pa.Field, side: int) -> pa.Field:
    """The field of a mention as that of one of two."""
    which = {1: b", of the first", 2: b", of the second"}[side]
    metadata = {**field.metadata, b"description": field.metadata[b"description"] + which}
    return field.with_name(f"{field.name}_{side}").with_metadata(metadata)


MENTION_PAIRS = schema(
    "MentionPair",
    term("kind", "entity: two mentions of one entity; surface: of two entities that share the surface"),
    column("key", pa.string(), "what the two share: the entity's Wikidata id, else its title, or the surface"),
    *(_of_side(each, side) for side in (1, 2) for each in PAIRED_FIELDS),
    column("unmasked", pa.uint8(), "which of the two keeps its words in training: 0 neither, 1 or 2 (by hash)"),
)

MASKED_MENTION_PAIRS = schema(
    "MaskedMentionPair",
    *MENTION_PAIRS,
    column("anchor", pa.string(), "the first sentence, its mention masked unless `unmasked` is 1"),
    column("positive", pa.string(), "the second sentence, its mention masked unless `unmasked` is 2"),
)

ALIAS_PAIRS = schema(
    "AliasPair",
    term("entity_id", "the Wikidata id of the entity, empty where none is known"),
    column("target_title", pa.string(), "the title of the entity's page"),
    column("alias_1", pa.string(), "a surface of the entity"),
    column("alias_2", pa.string(), "another one, not more frequent; ties by UTF-8 bytes"),
    column("count_1", pa.int64(), "mentions of the entity by the first"),
    column("count_2", pa.int64(), "mentions of the entity by the second"),
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

RECORDS = {
    record_name(each): each
    for each in (
        *(DOCUMENTS, REDIRECTS, PAGES, SENTENCES, PHRASES, CONTEXTS),
        *(MENTIONS, MENTION_PAIRS, MASKED_MENTION_PAIRS, ALIAS_PAIRS, REJECTS),
    )
}

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
    "punctuation": "a constituent or mention of punctuation only",
    "unbalanced": "a constituent with half of a pair of brackets or quotes: the parser went astray",
    "pronoun": "a lone pronoun or determiner",
    "number": "a constituent or mention of numbers only",
    "too_long": "a constituent longer than --max-phrase-tokens",
    "same_words": "a constituent over the same words as another, which counts",
    "too_rare": "a phrase that is not among the most frequent",
    "not_in_vocabulary": "an occurrence of a phrase that is not among the most frequent",
    "across_sentences": "an anchor that no sentence holds whole",
    "whole_sentence": "a mention that is all of its sentence, or its sentence but for punctuation",
    "long_sentence": "a mention in a sentence longer than --max-sentence-words",
    "long_mention": "a mention longer than --max-mention-words",
    "date": "a mention that is a date, a year or a part of one",
    "list_page": "a mention on a page that lists: lists, indexes, disambiguation pages",
    "to_disambiguation": "a link to a disambiguation page: no entity is meant",
    "red_link": "a link to a title that is no page (--drop-red-links)",
    "ambiguous_anchor": "a further mention of an anchor or title that is linked to two targets in the page",
    "same_sentence": "a pair of mentions in one sentence, or in two of the same words",
    "same_entity": "a pair by surface of two mentions of one entity: it is a pair by entity",
    "crosses_splits": "a pair by surface whose entities belong to different splits",
    "case_only": "a pair of aliases that differ in case only",
}
"""The closed list of reasons for which a stage leaves something out by a rule."""
