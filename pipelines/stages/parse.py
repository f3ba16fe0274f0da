"""Parse: documents -> sentences. The expensive stage, which all corpora share."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from pipelines.engine.stage import Isolation, Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.models import check_model, import_spacy
from schemas.kinds.sentences import SENTENCES
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.activity import begin_call, parsed, parsed_share
from transforms.parsing.interface import ParsedSentence, Parser
from transforms.parsing.lines import parts
from transforms.parsing.registry import load_parser, needs_torch

SAMPLE_TEXT = 1 << 14
"""For `--plan`: characters of a document, about; longer ones are cut. A slow parser takes seconds for these."""


class DocumentShard(NamedTuple):
    """A shard of the documents dataset. The sentence shard of the same number is made from it."""

    path: str


@dataclass(frozen=True)
class Parse(Stage):
    """Sentences with tokens, tags and constituents, for each shard of documents.

    Each line of a document is a text for the parser, or several lines that run on (`transforms/parsing/lines.py`).
    Batches of texts cross documents, but not shards. A sentence that the parser refuses becomes a reject with its
    position; so does a document on which workers die.
    """

    name: ClassVar[str] = "parse"
    version: ClassVar[int] = 2
    counts: ClassVar[str] = "sentences"
    isolates: ClassVar[bool] = True
    Unit: ClassVar[type] = DocumentShard

    parser: str
    parser_options: tuple[tuple[str, str | float], ...]
    documents: str = location()
    runtime_options: tuple[tuple[str, str | float], ...] = location(default=())

    def plan(self, work: Work) -> list[DocumentShard]:
        return [DocumentShard(shard.path) for shard in read_manifest(Folder(self.documents)).shards]

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        parser = cached_parser(self.parser, self.parser_options + self.runtime_options)
        check_model(f"--parser {self.parser}", models[0], parser.identity)

    def shorter(self, rows: pa.Table) -> pa.Table:
        found: list[dict[str, Any]] = []
        for row in rows.to_pylist():
            pieces = [*_pieces(row["text"])]
            parts = [{"doc_id": f"{row['doc_id']}~{n}", "text": text, "links": []} for n, text in enumerate(pieces)]
            found += [{**row, **part} for part in parts] if len(parts) > 1 else [row]
        return pa.Table.from_pylist(found, schema=rows.schema)

    def process(self, unit: DocumentShard, write: TaskWriter) -> None:
        with write.busy("loading the parser"):
            parser = cached_parser(self.parser, self.parser_options + self.runtime_options)
        documents = read_parquet(Folder(self.documents), unit.path, ["doc_id", "licence", "text"])
        licences = documents.column("licence").to_pylist()
        write.counters["documents"] += len(licences)
        write.counters.update(f"licence:{licence}" for licence in licences)
        texts = list(zip(documents.column("doc_id").to_pylist(), documents.column("text").to_pylist(), strict=True))
        rows = _Rows()
        parsed_before = parsed()
        write.ahead = lambda: parsed() - parsed_before
        if write.isolation is None:
            begin_call()
            with write.part(0.95, parsed_share):
                _parse(parser, texts, rows, write)
        else:
            _parse_apart(parser, texts, rows, write, write.isolation)
        write.ledger.written += len(rows.text)
        write.counters["tokens"] += len(rows.tags)
        # One row group, because readers take a whole shard.
        write.table("train", rows.table(), row_group_rows=1 << 30)


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces of about SAMPLE_TEXT characters, cut at line breaks where there are some."""
    start = 0
    while len(text) - start > 2 * SAMPLE_TEXT:
        end = text.find("\n", start + SAMPLE_TEXT, start + 2 * SAMPLE_TEXT) + 1 or start + SAMPLE_TEXT
        yield text[start:end]
        start = end
    yield text[start:]


def _parse(parser: Parser, texts: Sequence[tuple[str, str]], rows: _Rows, write: TaskWriter) -> None:
    """Parse documents, (id, text) each, and add their sentences to `rows`."""
    places: list[tuple[str, int]] = []
    passages: list[str] = []
    for doc_id, text in texts:
        for start, end in parts(text):
            places.append((doc_id, start))
            passages.append(text[start:end])
    # A line break becomes a blank, because spaCy makes tokens of line breaks.
    parsed_passages = parser.parse_texts([passage.replace("\n", " ") for passage in passages])
    for (doc_id, start), passage, sentences in zip(places, passages, parsed_passages, strict=True):
        for sentence in sentences:
            write.ledger.read += 1
            if isinstance(sentence, ParsedSentence):
                rows.add(doc_id, start, passage, sentence)
            else:
                write.reject(
                    sentence.reason,
                    source=doc_id,
                    position=f"characters {start + sentence.start_char}-{start + sentence.end_char}",
                    excerpt=passage[sentence.start_char : sentence.end_char],
                    exception=sentence.exception,
                )


def _parse_apart(
    parser: Parser, texts: Sequence[tuple[str, str]], rows: _Rows, write: TaskWriter, isolation: Isolation
) -> None:
    """Parse document by document. One on which workers fail is one reject, because its sentences are unknown."""
    for number, (doc_id, text) in enumerate(write.each(texts, 0.95)):
        if fault := isolation.faults.get(number):
            write.ledger.read += 1
            write.reject(fault.reason, source=doc_id, position="the whole document", excerpt=text, exception=fault.what)
        else:
            isolation.at(number)
            _parse(parser, [(doc_id, text)], rows, write)


class _Rows:
    """Sentences as columns. The items of lists are flat: those of sentence i are [edges[i], edges[i + 1])."""

    def __init__(self) -> None:
        self.sentence_id: list[str] = []
        self.doc_id: list[str] = []
        self.start_char: list[int] = []
        self.text: list[str] = []
        self.token_edges: list[int] = [0]
        self.token_starts: list[int] = []
        self.token_ends: list[int] = []
        self.tags: list[str] = []
        self.constituent_edges: list[int] = [0]
        self.constituents: list[tuple[str, int, int]] = []

    def add(self, doc_id: str, offset: int, passage: str, sentence: ParsedSentence) -> None:
        start = offset + sentence.start_char
        self.sentence_id.append(f"{doc_id}#{start}")
        self.doc_id.append(doc_id)
        self.start_char.append(start)
        self.text.append(passage[sentence.start_char : sentence.end_char])
        self.token_starts += [offset + each for each in sentence.token_starts]
        self.token_ends += [offset + each for each in sentence.token_ends]
        self.tags += sentence.tags
        self.token_edges.append(len(self.tags))
        self.constituents += sentence.constituents
        self.constituent_edges.append(len(self.constituents))

    def table(self) -> pa.Table:
        labels, starts, ends = zip(*self.constituents, strict=True) if self.constituents else ((), (), ())
        columns: dict[str, Any] = {
            "sentence_id": self.sentence_id,
            "doc_id": self.doc_id,
            "start_char": self.start_char,
            "text": self.text,
            "tokens": _lists("tokens", self.token_edges, (self.token_starts, self.token_ends, self.tags)),
            "constituents": _lists("constituents", self.constituent_edges, (labels, starts, ends)),
        }
        return pa.table(columns, schema=SENTENCES)


def _lists(name: str, edges: list[int], columns: tuple[Any, ...]) -> pa.ListArray:
    """A column of lists of structs from flat columns. Edges 0 2 2 3 make lists of 2, 0 and 1 items."""
    type_ = SENTENCES.field(name).type
    fields = list(type_.value_type)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.ListArray.from_arrays(
        pa.array(edges, pa.int32()), pa.StructArray.from_arrays(arrays, fields=fields), type=type_
    )


@functools.lru_cache(maxsize=2)
def cached_parser(name: str, options: tuple[tuple[str, str | float], ...]) -> Parser:
    """The parser, loaded once per process."""
    keywords: Mapping[str, Any] = dict(options)
    if not needs_torch(name, **keywords):
        import_spacy()
    return load_parser(name, **keywords)
