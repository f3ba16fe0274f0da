"""Documents with constituents, written as brackets, and the tables and datasets that stages read.

    literal("[NP The old man] [VP saw [NP a well ~- ~known whale]] ~.")

Tokens are parted by blanks; "~" before one says that no white space stands before it in the text; "/MD" after one is
its tag (none: "X"), "[NP" and "]" open and close a constituent. " | " ends a sentence, a line is a paragraph, "((" and
"))" around a sentence say that it is in the text but was rejected by the parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pytest

from pipelines import cli, corpus, mine_contexts
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.stage import Stage, Work, close_stage, location, open_stage
from pipelines.engine.task_writer import TaskWriter, do_unit
from pipelines.options import InputOptions, RunOptions
from schemas.columns import record_name
from schemas.kinds import KINDS
from schemas.kinds.documents import DOCUMENTS
from schemas.kinds.sentences import SENTENCES
from schemas.manifest import Input, canonical_hash, read_manifest
from schemas.options import Chosen
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file
from transforms.parsing.treebank import read_treebank

Row = dict[str, Any]


class Shard(NamedTuple):
    """A shard of documents and the shard of sentences that mirrors it."""

    documents: pa.Table
    sentences: pa.Table


def shard(documents: Mapping[str, str]) -> Shard:
    """A shard of documents in brackets, by id."""
    texts: list[Row] = []
    sentences: list[Row] = []
    for doc_id, brackets in documents.items():
        lines = []
        start = 0
        for line in brackets.split("\n"):
            found = []
            for piece in line.split(" | "):
                text, tokens, constituents = literal(piece.replace("((", "").replace("))", ""))
                if text and "((" not in piece:
                    sentences.append(
                        {
                            "sentence_id": f"{doc_id}#{start}",
                            "doc_id": doc_id,
                            "start_char": start,
                            "text": text,
                            "tokens": [
                                {"start_char": start + first, "end_char": start + last, "tag": tag}
                                for first, last, tag in tokens
                            ],
                            "constituents": [
                                {"label": label, "start_token": first, "end_token": last}
                                for label, first, last in constituents
                            ],
                        }
                    )
                found.append(text)
                start += len(text) + 1
            lines.append(" ".join(found))
        texts.append(document_row(doc_id, "\n".join(lines)))
    return Shard(pa.Table.from_pylist(texts, schema=DOCUMENTS), pa.Table.from_pylist(sentences, schema=SENTENCES))


def document_row(doc_id: str, text: str) -> Row:
    return {
        "doc_id": doc_id,
        "source": doc_id.split(":")[0],
        "title": f"Title of {doc_id}",
        "url": f"https://example.org/{doc_id}",
        "licence": "CC0-1.0",
        "text": text,
        "language": "en",
        "links": [],
    }


def sentences(*brackets: str) -> pa.Table:
    """The sentences of one document."""
    return shard({"d": " | ".join(brackets)}).sentences


_TAGGED = re.compile(r"(.+)/([A-Z]+\$?)")


def literal(brackets: str) -> tuple[str, list[tuple[int, int, str]], list[tuple[str, int, int]]]:
    """The text, the tokens [start_char, end_char) in it with tags, and the constituents (label, first, end)."""
    text = ""
    tokens: list[tuple[int, int, str]] = []
    opened: list[int] = []
    constituents: list[tuple[str, int, int]] = []
    for piece in brackets.split():
        closing = len(piece) - len(piece.rstrip("]"))
        piece = piece.rstrip("]")
        if piece.startswith("["):
            opened.append(len(constituents))
            constituents.append((piece[1:], len(tokens), -1))
        elif piece:
            if piece.startswith("~"):
                piece = piece[1:]
            elif text:
                text += " "
            tagged = _TAGGED.fullmatch(piece)
            piece, tag = (tagged[1], tagged[2]) if tagged else (piece, "X")
            tokens.append((len(text), len(text) + len(piece), tag))
            text += piece
        for _ in range(closing):
            number = opened.pop()
            constituents[number] = (*constituents[number][:2], len(tokens))
    # The order of a parser's output: by start, longest first, the outermost first.
    return text, tokens, sorted(constituents, key=lambda each: (each[1], -each[2]))


class Place(NamedTuple):
    number: int


@dataclass(frozen=True)
class Given(Stage):
    """Writes tables as the shards of a dataset."""

    name: ClassVar[str] = "given"
    counts: ClassVar[str] = "rows"
    Unit: ClassVar[type] = Place

    tables: tuple[pa.Table, ...] = location()

    def plan(self, work: Work) -> list[Place]:
        return [Place(number) for number in range(len(self.tables))]

    def process(self, unit: Place, write: TaskWriter) -> None:
        table = self.tables[unit.number]
        write.table("train", table, row_group_rows=1 << 30)
        write.ledger.read += table.num_rows
        write.ledger.written += table.num_rows
        if "tokens" in table.column_names:
            write.counters["tokens"] += len(table.column("tokens").combine_chunks().flatten())


def dataset(
    folder: Path, tables: Sequence[pa.Table], *, made_from: Sequence[corpus.ChainDataset] = (), **options: Any
) -> corpus.ChainDataset:
    """A dataset that holds the tables as shards, made with some options."""
    schema = tables[0].schema
    content = canonical_hash([json.dumps(table.to_pylist()) for table in tables])
    build = DatasetBuild(
        output=Folder(str(folder)),
        kind=KINDS[record_name(schema)],
        stages=(Given(tuple(tables)),),
        inputs=(*(each.as_input for each in made_from), Input("file", record_name(schema), "given", content)),
        options=options,
    )
    run_inline(build)
    return corpus.ChainDataset(build.output, build.fingerprint)


def run_inline(build: DatasetBuild, *, order: int = 1) -> None:
    """All stages of a dataset in this process, without Beam; `order=-1` does the units of each backwards."""
    build.begin(resume=False)
    for stage in build.stages:
        for unit in open_stage(build.work, stage)[::order]:
            do_unit(build.work, stage, unit)
        close_stage(build.work, stage)
    build.finish()


def run_here(command: cli.Command, *arguments: str) -> None:
    """A command in this process, whatever the size of its input."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "SMALL_INPUT", 1 << 40)
        assert cli.main(command, arguments) == 0


class Mined(NamedTuple):
    """What was mined with which flags: the datasets and their rows in order."""

    folder: Path
    flags: tuple[str, ...]
    documents: list[Row]
    sentences: list[Row]
    phrases: list[Row]
    train: list[Row]
    validation: list[Row]

    @property
    def contexts(self) -> list[Row]:
        return self.train + self.validation


def parse_options(*flags: str, command: cli.Command = mine_contexts.COMMAND) -> Chosen:
    """The options of a command."""
    return command.parse(flags)[0]


def chain_of(command: cli.Command, *flags: str) -> list[corpus.ChainDataset]:
    """The datasets that a command makes, in order."""
    chosen = parse_options(*flags, command=command)
    return command.build(chosen[InputOptions].find(), chosen, Folder(chosen[RunOptions].output))


def dump(path: Path, pages: Mapping[int, str]) -> Path:
    """A dump of Wikipedia with these pages, by id."""
    path.write_text(
        "<mediawiki><siteinfo><sitename>Wikipedia</sitename><dbname>enwiki</dbname>"
        "<base>https://en.wikipedia.org/wiki/Main_Page</base><case>first-letter</case><namespaces>"
        '<namespace key="0" case="first-letter" /></namespaces></siteinfo>'
        + "".join(
            f"<page><title>Page {number}</title><ns>0</ns><id>{number}</id><revision><id>1</id><model>wikitext</model>"
            f"<text>{text}</text></revision></page>"
            for number, text in pages.items()
        )
        + "</mediawiki>"
    )
    return path


def mine(folder: Path, shards: Sequence[Shard], *flags: str, order: int = 1) -> Mined:
    """Count, choose and cut: the real stages over given documents and sentences, with flags of mine_contexts.

    All phrases are kept, also of one letter: in a few literal sentences most occur once.
    """
    documents = dataset(folder / "documents", [each.documents for each in shards])
    sentences = dataset(folder / "sentences", [each.sentences for each in shards])
    return mine_datasets(
        folder, documents, sentences, "--min-frequency=1", "--min-phrase-letters=1", *flags, order=order
    )


def mine_datasets(
    folder: Path, documents: corpus.ChainDataset, sentences: corpus.ChainDataset, *flags: str, order: int = 1
) -> Mined:
    """The same over datasets."""
    chosen = parse_options(*flags)
    phrases = corpus.phrases(sentences, chosen, Folder(str(folder / "phrases")))
    contexts = corpus.contexts(documents, sentences, phrases, chosen, Folder(str(folder / "contexts")))
    for build in corpus.to_build([phrases, contexts]):
        run_inline(build, order=order)
    return Mined(
        folder,
        flags,
        documents=rows(documents.folder),
        sentences=rows(sentences.folder),
        phrases=rows(phrases.folder),
        train=rows(contexts.folder),
        validation=rows(contexts.folder, "validation"),
    )


def rows(folder: Folder, split: str = "train") -> list[Row]:
    """The rows of a split of a dataset, in order."""
    found: list[Row] = []
    for each in read_manifest(folder).splits.get(split, []):
        with parquet_file(folder, each.path) as reader:
            found += reader.read().to_pylist()
    return found


NO_BLANK_BEFORE = frozenset(". , ; : ? ! ) % 's n't 're 've 'll 'd 'm ' '' \u2019 \u2019s".split())


def treebank_shards(path: Path, *, shards: int, sentences_a_document: int = 12) -> list[Shard]:
    """Real sentences with the constituents of a treebank, as documents in shards; no blank before a full stop."""
    read = list(read_treebank(path))
    chunks = [read[first : first + sentences_a_document] for first in range(0, len(read), sentences_a_document)]
    found = []
    for number in range(shards):
        texts: list[Row] = []
        parsed: list[Row] = []
        for document in range(number, len(chunks), shards):
            doc_id = f"treebank:{document:04d}"
            text = ""
            for sentence in chunks[document]:
                text += " " if text else ""
                start = len(text)
                tokens: list[Row] = []
                for word, tag in zip(sentence.words, sentence.tags, strict=True):
                    text += " " if tokens and word not in NO_BLANK_BEFORE else ""
                    tokens.append({"start_char": len(text), "end_char": len(text) + len(word), "tag": tag})
                    text += word
                parsed.append(
                    {
                        "sentence_id": f"{doc_id}#{start}",
                        "doc_id": doc_id,
                        "start_char": start,
                        "text": text[start:],
                        "tokens": tokens,
                        "constituents": [each._asdict() for each in sentence.constituents],
                    }
                )
            texts.append(document_row(doc_id, text))
        found.append(
            Shard(pa.Table.from_pylist(texts, schema=DOCUMENTS), pa.Table.from_pylist(parsed, schema=SENTENCES))
        )
    return found
