"""Sentences: tokens with their tags, and constituents over them."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import (
    I64,
    Bools,
    Broken,
    Rows,
    SideBySide,
    Unique,
    Violation,
    Wrong,
    broken_items,
    broken_spans,
    nested,
    quoted,
    showing,
    where,
)
from schemas.columns import column, list_of, schema, struct, term
from schemas.dataset import Dataset
from schemas.kind import Kind, Source
from schemas.measures import item_extent, item_value, length
from schemas.shown import PASSAGE, Piece, Row, Shown, cut
from schemas.terms import PHRASE_LABELS

SENTENCES = schema(
    "Sentence",
    column("sentence_id", pa.string(), "<doc_id>#<start_char>"),
    term("doc_id", "the document"),
    column("start_char", pa.uint32(), "start of the sentence in the document's text"),
    column("text", pa.string(), "the sentence as it stands in the document's text; in verse with line breaks"),
    column(
        "tokens",
        list_of(
            struct(
                column("start_char", pa.uint32(), "start of the token in the document's text"),
                column("end_char", pa.uint32(), "end of the token in the document's text"),
                term("tag", "Penn Treebank part of speech"),
            )
        ),
        "tokens in order, none of them whitespace",
    ),
    column(
        "constituents",
        list_of(
            struct(
                term("label", "phrase label: NP, VP, PP, ADJP, ADVP and what else the parser gives"),
                column("start_token", pa.uint16(), "first token, counted in the sentence"),
                column("end_token", pa.uint16(), "token after the last"),
            )
        ),
        "labelled spans, each once, by start, longest first; of a unary chain the outermost first",
    ),
)

_TOKENS_SHOWN = 70


def _span(table: pa.Table) -> tuple[I64, I64]:
    """[n], [n] the start and end of each sentence in its document."""
    start = table.column("start_char").to_numpy().astype(np.int64)
    return start, start + pc.utf8_length(table.column("text")).to_numpy().astype(np.int64)


def _rules(table: pa.Table) -> Iterator[Broken]:
    ids, doc_ids, texts = (table.column(name).to_pylist() for name in ("sentence_id", "doc_id", "text"))
    start, end = _span(table)
    expected = [f"{doc_id}#{at}" for doc_id, at in zip(doc_ids, start.tolist(), strict=True)]
    yield Broken(
        "sentence_id is not <doc_id>#<start_char>",
        where([found != wanted for found, wanted in zip(ids, expected, strict=True)]),
        lambda row: f"{quoted(ids[row])} instead of {quoted(expected[row])}",
    )
    yield Broken("the text has an empty line", where(["\n\n" in text for text in texts]), lambda row: quoted(ids[row]))
    yield from _tokens(table, start, end, ids, texts)
    yield from _constituents(table, ids)


def _tokens(table: pa.Table, low: I64, high: I64, ids: list[str], texts: list[str]) -> Iterator[Broken]:
    tokens = table.column("tokens").combine_chunks()
    owner, first, (start, end) = nested(tokens, ("start_char", "end_char"))
    none = where(pc.equal(pc.list_value_length(tokens), 0))
    yield Broken("the sentence has no token", none, lambda row: quoted(ids[row]))

    def show(token: int) -> str:
        row = owner[token]
        return f"{quoted(ids[row])}: token [{start[token]:,}:{end[token]:,}], sentence [{low[row]:,}:{high[row]:,}]"

    inside = (start >= low[owner]) & (end <= high[owner])
    yield broken_items("a token is outside of the sentence", ~inside, owner, show)
    yield from broken_spans("a token", start, end, first, owner, show)
    blank = _are_blank("".join(texts), start, end, np.cumsum(high - low) - high, owner, inside)
    yield broken_items("a token is whitespace", blank, owner, lambda token: quoted(ids[owner[token]]))


def _are_blank(text: str, start: I64, end: I64, shift: I64, owner: I64, inside: Bools) -> Bools:
    """[tokens] whether each token is only whitespace. `text` is that of all sentences, one after the other.

    `shift` moves the offsets of each sentence to their places in `text`. Sentences "Ab c" at 10 and "d" at 20 make the
    text "Ab cd": their shifts are -10 and 4 - 20 = -16.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    sound = np.flatnonzero(inside & (start < end))
    at = start[sound] + shift[owner[sound]]
    # Few tokens, if any, begin with whitespace; only those are looked at whole.
    spaces = _spaces()
    suspects = np.flatnonzero(spaces[np.minimum(codes[at], len(spaces) - 1)])
    blank = np.zeros(len(start), dtype=bool)
    for place in suspects.tolist():
        token = sound[place]
        blank[token] = text[at[place] : at[place] + end[token] - start[token]].isspace()
    return blank


@functools.cache
def _spaces() -> Bools:
    """Whether each of the code points below U+3002 is whitespace; none above is."""
    return np.array([chr(code).isspace() for code in range(0x3002)])


def _constituents(table: pa.Table, ids: list[str]) -> Iterator[Broken]:
    owner, first, (label, start, end) = nested(
        table.column("constituents").combine_chunks(), ("label", "start_token", "end_token")
    )
    tokens = pc.list_value_length(table.column("tokens")).to_numpy()

    def show(item: int) -> str:
        row = owner[item]
        return f"{quoted(ids[row])}: {label[item]} [{start[item]}:{end[item]}], {tokens[row]} tokens"

    yield broken_items("a constituent is empty or ends before it starts", start >= end, owner, show)
    yield broken_items("a constituent ends after the last token", end > tokens[owner], owner, show)
    disordered = np.zeros(len(start), dtype=bool)
    back = (start[1:] < start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] > end[:-1]))
    disordered[1:] = back & ~first[1:]
    yield broken_items("constituents are not in order of start, longest first", disordered, owner, show)
    yield broken_items("a constituent occurs twice", _repeated(label, start, end, owner), owner, show)


def _repeated(label: pa.StringArray, start: I64, end: I64, owner: I64) -> Bools:
    """[constituents] whether each has the label and span of an earlier one of its sentence.

    Those of one span are side by side (a unary chain). Each is compared with the one before it, then with the second
    before it, and so on while the span is the same. NP S NP over one span: at distance 2 the last NP repeats the first.
    """
    code = label.dictionary_encode().indices.to_numpy()
    repeated = np.zeros(len(start), dtype=bool)
    chain = np.arange(len(start))
    for distance in range(1, len(start)):
        chain = chain[chain >= distance]
        before = chain - distance
        same = (owner[chain] == owner[before]) & (start[chain] == start[before]) & (end[chain] == end[before])
        chain, before = chain[same], before[same]
        if not len(chain):
            break
        repeated[chain[code[chain] == code[before]]] = True
    return repeated


def _check_source(dataset: Dataset, documents: Dataset) -> Iterator[Violation]:
    """Shard i of sentences points into shard i of documents."""
    for shard, texts_shard in zip(dataset.shards(), documents.shards(), strict=False):
        texts = documents.table(texts_shard, columns=["doc_id", "text"])
        by_id: dict[str, str] = dict(zip(*(texts.column(name).to_pylist() for name in ("doc_id", "text")), strict=True))
        names = ("sentence_id", "doc_id", "start_char", "text")
        table = dataset.table(shard, columns=names)
        wrong = Wrong()
        rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
        for row, (sentence_id, doc_id, start, sentence) in enumerate(rows):
            if doc_id not in by_id:
                rule = "the document is not in the shard of documents of the same number"
                wrong.add(rule, row, f"{quoted(doc_id)} is not in {documents.folder}/{texts_shard.path}")
            elif not by_id[doc_id].startswith(sentence, start):
                there = by_id[doc_id][start : start + len(sentence)]
                detail = f"{quoted(sentence_id)}: {quoted(sentence)}, in the document {quoted(there)}"
                wrong.add("the text is not at start_char in the document", row, detail)
        yield from wrong.violations(shard)


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    """The sentence with its phrasal constituents in labelled brackets."""
    tokens = row["tokens"][:_TOKENS_SHOWN]
    opened: defaultdict[int, list[str]] = defaultdict(list)
    closed: Counter[int] = Counter()
    for each in row["constituents"]:
        if each["label"] in PHRASE_LABELS and each["start_token"] < len(tokens):
            opened[each["start_token"]].append(each["label"])
            closed[min(each["end_token"], len(tokens)) - 1] += 1
    pieces: list[Piece] = []
    first = place = row["start_char"]
    for number, token in enumerate(tokens):
        start, end = token["start_char"], token["end_char"]
        pieces.append(Piece("", row["text"][place - first : start - first]))
        pieces += [Piece("open", label) for label in opened[number]]
        pieces.append(Piece("", row["text"][start - first : end - first]))
        pieces += [Piece("close", "")] * closed[number]
        place = end
    if len(row["tokens"]) > len(tokens):
        pieces.append(Piece("", " …"))
    shown = tuple(each._replace(text=cut(each.text, PASSAGE)) for each in pieces if each.text or each.kind)
    return Shown(cut(row["sentence_id"]), f"{len(row['tokens']):,} tokens", "", shown)


KIND = Kind(
    schema=SENTENCES,
    rows="sentences",
    about="Sentences with their tokens and constituents, in the order of the text.",
    command="parse_sentences",
    after="pipelines.count_phrases --input",
    order="source",
    show=show,
    source=Source("Document", "offsets", _check_source, mirrors=True),
    checks=lambda manifest: (
        Unique("the document has sentences in another shard", "doc_id", by="shard"),
        SideBySide(
            "the document's sentences are not side by side",
            "the sentence begins before the one before it ends",
            lambda table: table.column("doc_id").to_pylist(),
            lambda table: tuple(each.tolist() for each in _span(table)),
            lambda table: showing(table.column("sentence_id")),
        ),
        Rows(_rules),
    ),
    measures=(
        length("Length of a sentence", "tokens", "tokens"),
        item_extent("Length of a constituent", "tokens", "constituents", "start_token", "end_token"),
        item_value("Label of a constituent", "constituents", "constituents", "label"),
        item_value("Part of speech", "tokens", "tokens", "tag"),
    ),
    tasks=("token-classification",),
    texts=("text",),
    parsed=True,
    rejects={
        "too_many_tokens": "a sentence longer than the parser's limit in tokens (--max-sentence-tokens)",
        "too_many_subwords": "a sentence longer than the parser's limit in subwords",
        "parser_error": "a sentence on which the parser failed",
    },
)
