"""Counting, choosing and writing at scale: time and peak memory as the corpus doubles.

    python -m benchmarks.scale --sentences out/mix-sentences --occurrences 300e6 --work /tmp/scale --json scale.json

A large corpus is made of copies of a sentences dataset. In each copy the rare words are replaced by other words of the
same length, so that phrases keep their frequencies in a copy and the number of distinct phrases grows with the corpus.
Then the real stages run on half of the corpus and on all of it.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from benchmarks import harness
from pipelines import corpus
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.mine_contexts import COMMAND
from pipelines.stages.count import read_sentences
from schemas.kind import Kind
from schemas.kinds import documents as documents_kind
from schemas.kinds import sentences as sentences_kind
from schemas.manifest import Input, read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file
from transforms.arrays import mix64, string_bytes
from transforms.phrases.counting import count_shard
from transforms.phrases.options import PhraseRules

_WORD = re.compile(rb"(?<![A-Za-z])[a-z]{5,}(?![A-Za-z])")
_IDS = ("doc_id", "sentence_id")


class Copy(NamedTuple):
    """A copy of all shards of the base dataset."""

    number: int


@dataclass(frozen=True)
class Vary(Stage):
    """Copies of a dataset, each with its own words in place of the rare ones."""

    name: ClassVar[str] = "vary"
    Unit: ClassVar[type] = Copy

    copies: int
    rare: int
    base: str = location()
    sentences: str = location()

    def plan(self, work: Work) -> list[Copy]:
        return [Copy(number) for number in range(self.copies)]

    def process(self, unit: Copy, write: TaskWriter) -> None:
        rare = rare_words(self.sentences, self.rare)
        folder = Folder(self.base)
        for shard in read_manifest(folder).shards:
            table, places, seeds = _base_shard(self.base, shard.path, rare)
            text = table.column("text").combine_chunks()
            data, edges = string_bytes(text)
            data = data.copy()
            fresh = mix64(seeds ^ np.uint64(unit.number * 0x9E3779B97F4A7C15 % 2**64)) % np.uint64(26)
            data[places] = fresh.astype(np.uint8) + ord("a")
            varied = pa.StringArray.from_buffers(len(text), pa.py_buffer(edges.astype(np.int32)), pa.py_buffer(data))
            table = table.set_column(table.column_names.index("text"), table.schema.field("text"), varied)
            for name in _IDS:
                if name in table.column_names:
                    ids = pc.binary_join_element_wise(f"c{unit.number}", table.column(name), "-")
                    table = table.set_column(table.column_names.index(name), table.schema.field(name), ids)
            if "links" in table.column_names:
                place = table.column_names.index("links")
                none = pa.array([[]] * table.num_rows, table.schema.field(place).type)
                table = table.set_column(place, table.schema.field(place), none)
            if "tokens" in table.column_names:
                write.counters["tokens"] += len(pc.list_flatten(table.column("tokens")))
            write.table("train", table, row_group_rows=1 << 30)


@functools.lru_cache(maxsize=1)
def rare_words(sentences: str, most: int) -> frozenset[bytes]:
    """Words of at least five small letters that occur at most `most` times in the base."""
    counts: Counter[bytes] = Counter()
    folder = Folder(sentences)
    for shard in read_manifest(folder).shards:
        with parquet_file(folder, shard.path) as reader:
            text = reader.read(columns=["text"]).column("text").combine_chunks()
        counts.update(_WORD.findall(string_bytes(text)[0].tobytes()))
    return frozenset(word for word, n in counts.items() if n <= most)


@functools.lru_cache(maxsize=64)
def _base_shard(base: str, path: str, rare: frozenset[bytes]) -> tuple[pa.Table, Any, Any]:
    """A shard, the places of the bytes of rare words in its text, and a seed for each of these bytes."""
    with parquet_file(Folder(base), path) as reader:
        table = reader.read(use_threads=False)
    data = string_bytes(table.column("text").combine_chunks())[0].tobytes()
    places: list[np.ndarray] = []
    seeds: list[np.ndarray] = []
    for match in _WORD.finditer(data):
        word = match.group()
        if word in rare:
            letters = np.arange(len(word), dtype=np.uint64)
            places.append(np.arange(match.start(), match.end()))
            seeds.append(mix64(np.uint64(xxhash.xxh3_64_intdigest(word)) + letters))
    return table, np.concatenate(places), np.concatenate(seeds)


def vary(base: Folder, kind: Kind, output: Folder, sentences: Folder, copies: int, rare: int) -> DatasetBuild:
    stage = Vary(copies=copies, rare=rare, base=base.uri, sentences=sentences.uri)
    source = Input("dataset", "base", base.uri, read_manifest(base).fingerprint)
    return DatasetBuild(output, kind, (stage,), (source,), stage.settings())


def make_corpus(sentences: Folder, documents: Folder, work: Path, copies: int, rare: int, workers: int) -> None:
    """Write `work`/documents and `work`/sentences."""
    texts = vary(documents, documents_kind.KIND, Folder(str(work / "documents")), sentences, copies, rare)
    parsed = vary(sentences, sentences_kind.KIND, Folder(str(work / "sentences")), sentences, copies, rare)
    # The documents are the input of the sentences, as after a real parse.
    lies_in = Input("dataset", "documents", texts.output.uri, texts.fingerprint)
    parsed = DatasetBuild(parsed.output, parsed.kind, parsed.stages, (lies_in,), parsed.options)
    harness.build([texts, parsed], workers)


def first_half(work: Path, half: Path) -> None:
    """Datasets of the first half of the shards of `work`, with links to its files."""
    for name in ("documents", "sentences"):
        folder = half / name
        folder.mkdir(parents=True)
        (folder / "data").symlink_to((work / name / "data").resolve())
        manifest = read_manifest(Folder(str(work / name)))
        shards = manifest.splits["train"][: len(manifest.shards) // 2]
        share = sum(shard.rows for shard in shards) / manifest.rows
        # The number of tokens decides how many ranges the exchange has.
        stages = [
            stage._replace(counters={counter: round(n * share) for counter, n in stage.counters.items()})
            for stage in manifest.stages
        ]
        (folder / "manifest.json").write_text(replace(manifest, splits={"train": shards}, stages=stages).to_json())


def mine(work: Path, workers: int) -> dict[str, Any]:
    """Run the stages after parsing on a corpus; returns their figures."""
    chosen, _ = COMMAND.parse([])
    source = corpus.given([str(work / "sentences")], input_format=None)
    builds = corpus.to_build(COMMAND.build(source, chosen, Folder(str(work / "contexts"))))
    meter, by_stage = harness.build(builds, workers)
    phrases, contexts = (read_manifest(build.output) for build in builds)
    counted = phrases.stage("count").ledger
    assert counted is not None
    tokens = phrases.stage("count").counters["tokens"]
    return {
        "tokens": tokens,
        "occurrences": counted.written,
        "distinct_phrases": phrases.stage("add_up").counters["candidates"],
        "phrases": phrases.rows,
        "contexts": contexts.rows,
        "seconds": round(meter.seconds, 1),
        "tokens_per_second": round(tokens / meter.seconds),
        "peak_memory_bytes": meter.peak,
        "seconds_by_stage": by_stage,
    }


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--sentences", required=True, help="a sentences dataset to make the corpus from")
    parser.add_argument("--occurrences", type=float, default=3e6, help="occurrences of phrases in the larger corpus")
    parser.add_argument("--rare", type=int, default=1, help="how often a rare word occurs at most")
    parser.add_argument("--work", type=Path, default=Path("out/scale"), help="where the corpora are made (deleted)")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    sentences = Folder(arguments.sentences)
    source = corpus.given([arguments.sentences], input_format=None)
    if source.dataset is None or source.manifest is None:
        parser.error("--sentences: not a dataset")
    documents = corpus.documents_of(source.dataset, source.manifest, None).folder
    in_base = sum(
        count_shard(read_sentences(sentences, shard.path), PhraseRules()).written for shard in source.manifest.shards
    )
    copies = max(round(arguments.occurrences / in_base), 2)
    shutil.rmtree(arguments.work, ignore_errors=True)
    whole, half = arguments.work / "whole", arguments.work / "half"
    make_corpus(sentences, documents, whole, copies, arguments.rare, arguments.workers)
    first_half(whole, half)
    found = []
    for folder in (half, whole):
        found.append(mine(folder, arguments.workers))
        print(json.dumps(found[-1], indent=1), flush=True)
    shutil.rmtree(arguments.work)
    print(harness.twice("corpus", found))
    harness.write(arguments.json, found)


if __name__ == "__main__":
    main()
