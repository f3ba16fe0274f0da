"""The sample goes through the real stages in a folder of its own; what they did is written down."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus import ChainDataset
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.driver import run
from pipelines.engine.exchange import read_range
from pipelines.engine.executors import PoolExecutor
from pipelines.engine.progress import Progress
from pipelines.engine.stage import Completion, Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.planning.datasets import sample_datasets
from pipelines.planning.estimates import Estimate, independent, total
from pipelines.planning.keys import Keys, keys_of_aliases, keys_of_kind, table_of
from pipelines.planning.pieces import (
    Lengths,
    Piece,
    Pieces,
    most_text_of,
    name_of,
)
from pipelines.planning.raw import first_documents, pieces_of, sample_raw
from pipelines.planning.tables import cut_dumps
from pipelines.stages.extract import Extract
from pipelines.stages.mentions import FindMentions, ReadTables, SqlFile
from pipelines.stages.parse import Parse, cached_parser
from pipelines.stages.units import All
from schemas.storage.folder import AtomicFile, Folder
from schemas.storage.parquet import parquet_file, parquet_writer
from schemas.terms import PAIR_KINDS
from transforms.phrases.counting import COUNTS, merge_counts

_MEASURED = "measured.json"
_BEGINNING = 0.3
"""Half width, as a share, of what is known of a file's beginning only: dumps begin with old, long articles."""


class Measured(NamedTuple):
    """What was measured."""

    pieces: Pieces
    stages: dict[str, list[Completion]]
    parts: list[tuple[float, float]]  # tokens and distinct phrases of nested parts of the sample
    often: list[float]  # of the distinct phrases, the shares that occur 1, 2, ... times or more
    shards: list[Lengths]
    full_size: dict[str, float]  # by stage, bytes as they would be in files of full size or of a large corpus
    keys: dict[str, Keys]  # entities, surfaces, aliases with their mentions
    larger: list[float]  # how many times as large as its copy each SQL dump is
    seconds: float  # of the run
    peak_memory: int  # of the largest worker

    def sum(self, stage: str, of: Callable[[Completion], float]) -> float:
        return sum(of(each) for each in self.stages[stage])

    def total(self, stage: str, of: Callable[[Completion], float], *, thinned: bool = True) -> Estimate:
        """The total of a figure over the whole input, for a stage that reads the input part by part.

        `thinned`: whether the figure is one of the documents that went through all stages.
        """
        pieces = self.pieces.pieces
        sums = [0.0] * len(pieces)
        shards = len(self.pieces.of_shards)
        step = -(-shards // max(len(self.stages[stage]), 1))
        for each in self.stages[stage]:
            if stage == "extract":
                own = self.pieces.of_units[each.unit]
            else:
                own = [self.pieces.of_shards[min(each.unit * step, shards - 1)]]
            size = sum(pieces[piece].size for piece in own)
            for piece in own:
                part = pieces[piece].size / size if size else 1 / len(own)
                sums[piece] += of(each) * part * (pieces[piece].thinned if thinned else 1)
        strata = []
        for number, size in enumerate(self.pieces.sizes):
            here = [(value, piece) for value, piece in zip(sums, pieces, strict=True) if piece.stratum == number]
            strata.append(
                total(
                    [value for value, _ in here], [each.size for _, each in here], [each.hits for _, each in here], size
                )
            )
        unseen = 0 if self.pieces.is_whole else 1
        return independent(strata).widened(_BEGINNING * self.pieces.begun * unseen)


@dataclass(frozen=True)
class TimedParse(Parse):
    """Parse that counts apart how long the parser takes to load, and the processor's time."""

    def process(self, unit: Any, write: TaskWriter) -> None:
        start = time.monotonic()
        cached_parser(self.parser, self.parser_options + self.runtime_options)
        write.counters["load_ms"] += round((time.monotonic() - start) * 1000)
        start, begun = time.monotonic(), time.process_time()
        super().process(unit, write)
        write.counters["parse_ms"] += round((time.monotonic() - start) * 1000)
        # CoreNLP works in another process.
        if self.parser != "corenlp":
            write.counters["cpu_ms"] += round((time.process_time() - begun) * 1000)


class Worker(NamedTuple):
    """A unit for each worker."""

    number: int


@dataclass(frozen=True)
class WarmUp(Stage):
    """The first stage of a sample's first dataset: what every process loads once is not to count as work."""

    name: ClassVar[str] = "warm_up"
    Unit: ClassVar[type] = Worker

    workers: int

    def plan(self, work: Work) -> list[Worker]:
        return [Worker(number) for number in range(self.workers)]

    def process(self, unit: Worker, write: TaskWriter) -> None:
        """Nothing: a process that is asked for a unit has imported the stages."""


@dataclass(frozen=True)
class Measure(Stage):
    """The last stage of a sample's dataset: writes down what the others did, before that is removed."""

    name: ClassVar[str] = "measure"
    Unit: ClassVar[type] = All

    stages: tuple[str, ...]
    shard_bytes: int
    to: str = location()

    def plan(self, work: Work) -> list[All]:
        return [All()]

    def process(self, unit: All, write: TaskWriter) -> None:
        work = write.work
        found: dict[str, Any] = {
            "stages": {name: [json.loads(each.to_json()) for each in work.completions(name)] for name in self.stages},
            "full_size": {},
        }
        if "count" in self.stages:
            found["parts"] = _nested_parts(work)
            found["often"] = _often(work)
        if "extract" in self.stages:
            found["shards"] = _lengths(work)
        for stage in {"extract", "parse"} & {*self.stages}:
            found["full_size"][stage] = _in_full_shards(work, stage, self.shard_bytes, Folder(self.to))
        if "order" in self.stages:
            found["full_size"]["order"] = _far_apart(work, Folder(self.to))
        if "group" in self.stages:
            found["keys"] = {kind: keys_of_kind(work, kind) for kind in PAIR_KINDS}
        if "count_surfaces" in self.stages:
            found["keys"] = {"alias": keys_of_aliases(work)}
        if "order_pairs" in self.stages:
            found["full_size"]["order_pairs"] = _unlike(work, Folder(self.to))
        Folder(self.to).write(_MEASURED, json.dumps(found).encode())


def _in_full_shards(work: Work, stage: str, shard_bytes: int, to: Folder) -> float:
    """The bytes of a dataset if its shards had their full size, for each byte they have: larger ones pack better."""
    files = work.files(stage, "train")
    tables = [table_of(work, file) for file in files]
    size = sum(pc.sum(pc.binary_length(table.column("text"))).as_py() or 0 for table in tables)
    together = max(round(shard_bytes * len(files) / max(size, 1)), 1)
    groups = [pa.concat_tables(tables[first : first + together]) for first in range(0, len(tables), together)]
    return sum(_written(table, to) for table in groups) / max(sum(file.bytes for file in files), 1)


def _far_apart(work: Work, to: Folder) -> float:
    """The bytes of contexts that have no word in common, for each byte that as many have in the sample.

    In a much larger text, the contexts that share a page of a file hardly overlap.
    """
    files = work.files("order", "train")
    if not files:
        return 1.0
    table = pa.concat_tables([table_of(work, file) for file in files]).combine_chunks()
    places = zip(*(table.column(name).to_pylist() for name in ("doc_id", "start_char", "context")), strict=True)
    kept, last, end = [], "", 0
    for doc_id, start, row, length in sorted(
        (doc_id, start, row, len(context)) for row, (doc_id, start, context) in enumerate(places)
    ):
        if doc_id != last or start > end:
            kept.append(row)
            last, end = doc_id, start + length
    apart = table.take(pa.array(sorted(kept), pa.int64()))
    # Negatives too are to be contexts of these rows.
    shifted = [(row + 1) % max(len(kept), 1) for row in range(len(kept))]
    place = apart.column_names.index("negative")
    apart = apart.set_column(
        place, apart.schema.field(place), apart.column("context").take(pa.array(shifted, pa.int64()))
    )
    share = len(kept) / max(table.num_rows, 1)
    return _written(apart, to) / max(share * sum(file.bytes for file in files), 1)


def _written(table: pa.Table, to: Folder) -> int:
    """The bytes of a table as a file."""
    with AtomicFile(to, "written.parquet") as sink, parquet_writer(sink, table.schema) as writer:
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
    return sink.bytes


def _unlike(work: Work, to: Folder) -> float:
    """The bytes of pairs of which no two share a sentence, for each byte that as many have in the sample."""
    files = work.files("order_pairs", "train")
    if not files:
        return 1.0
    table = pa.concat_tables([table_of(work, file) for file in files]).combine_chunks()
    ids = zip(*(table.column(f"sentence_id_{side}").to_pylist() for side in (1, 2)), strict=True)
    kept, seen = [], set[str]()
    for row, pair in enumerate(ids):
        if not seen & {*pair}:
            kept.append(row)
            seen |= {*pair}
    share = len(kept) / max(table.num_rows, 1)
    apart = table.take(pa.array(kept, pa.int64()))
    return _written(apart, to) / max(share * sum(file.bytes for file in files), 1)


def _nested_parts(work: Work) -> list[tuple[float, float]]:
    """Tokens and distinct phrases of the quarters of the sample, its halves (the mean of each) and the whole."""
    keys, tokens = [], []
    for each in work.completions("count"):
        for file in each.files:
            with parquet_file(work.folder, file.path) as reader:
                keys.append(reader.read(columns=["key_hi"], use_threads=False).column("key_hi").to_numpy())
        tokens.append(each.counters.get("tokens", 0))
    found = []
    for ways in (4, 2, 1):
        if len(keys) >= ways:
            distinct = [len(np.unique(np.concatenate(keys[way::ways]))) for way in range(ways)]
            found.append((sum(tokens) / ways, sum(distinct) / ways))
    return found


def _often(work: Work) -> list[float]:
    """Of the distinct phrases, the shares that occur 1, 2, ... 100 times or more."""
    files = work.files("count", "counts")
    tables = [read_range(work.folder, files, index, COUNTS) for index in range(work.units("count")[0][2])]
    frequency = np.concatenate([merge_counts([table]).column("frequency").to_numpy() for table in tables])
    return [float((frequency >= times).mean()) for times in range(1, 101)] if len(frequency) else []


def _lengths(work: Work) -> list[Lengths]:
    found = []
    for file in work.files("extract", "train"):
        with parquet_file(work.folder, file.path) as reader:
            text = reader.read(columns=["text"], use_threads=False).column("text")
        length = pc.utf8_length(text).to_numpy().astype(float)
        found.append(Lengths(len(length), float(length.sum()), float((length**2).sum())))
    return found


def measure(chain: Sequence[ChainDataset], todo: Sequence[DatasetBuild], folder: Folder, *, workers: int) -> Measured:
    """Take a sample of the input through the stages of all datasets from the first of `todo` on."""
    first = next(number for number, each in enumerate(chain) if each.build in todo)
    builds = [each.build for each in chain[first:] if each.build is not None]
    parser = next((stage.parser for build in builds for stage in build.stages if isinstance(stage, Parse)), None)
    most_text = most_text_of(parser)
    places = {build.output.uri: folder / name_of(build.output) for build in builds}
    raw, pieces = None, None
    extract = builds[0].stages[0]
    if isinstance(extract, Extract):
        shard_bytes = extract.shard_bytes
        raw = sample_raw(extract, folder, most_text)
        if raw is not None:
            builds[0] = replace(builds[0], stages=(raw.stage, *builds[0].stages[1:]))
    else:
        pieces, shard_bytes = sample_datasets(chain[:first], places, folder, most_text, parses=parser is not None)
    larger: list[float] = []
    if raw is not None or (pieces is not None and not pieces.is_whole):
        builds, larger = _with_less_of_tables(builds, folder)
    samples = [_sample_of(build, places, shard_bytes) for build in builds]
    samples[0] = replace(samples[0], stages=(WarmUp(workers), *samples[0].stages))
    start = time.monotonic()
    for build in samples:
        build.begin(resume=False)
    run(samples, PoolExecutor(workers), progress=Progress(io.StringIO()))
    seconds = time.monotonic() - start
    found = [json.loads(build.output.read(_MEASURED)) for build in samples]
    stages = {
        name: [Completion.from_json(each) for each in completions]
        for each in found
        for name, completions in each["stages"].items()
    }
    shards = [Lengths(*each) for each in found[0].get("shards", [])]
    if raw is not None:
        by_documents = raw.stage.max_documents is not None
        pieces = first_documents(raw.stage, shards) if by_documents else pieces_of(raw, stages["extract"], shards)
    elif pieces is None:
        pieces = Pieces([Piece(1)], [1], [[0]] * len(stages["extract"]), [0] * max(len(shards), 1))
    parts: list[list[float]] = next((each["parts"] for each in found if "parts" in each), [])
    often: list[float] = next((each["often"] for each in found if "often" in each), [])
    full_size = {stage: more for each in found for stage, more in each["full_size"].items()}
    keys = {kind: Keys(*of) for each in found for kind, of in each.get("keys", {}).items()}
    larger = larger or [1.0] * len(_dumps(builds))
    peak = max(each.peak_memory for completions in stages.values() for each in completions)
    nested = [(tokens, n) for tokens, n in parts]
    return Measured(pieces, stages, nested, often, shards, full_size, keys, larger, seconds, peak)


def _dumps(builds: Sequence[DatasetBuild]) -> tuple[SqlFile, ...]:
    tables = (stage for build in builds for stage in build.stages if isinstance(stage, ReadTables))
    return next((stage.dumps for stage in tables), ())


def _with_less_of_tables(builds: Sequence[DatasetBuild], folder: Folder) -> tuple[list[DatasetBuild], list[float]]:
    """The builds with the beginnings of SQL dumps, and how many times larger those are.

    A part of the documents knows few of the pages that it links to, so links to others are not to be left out.
    """
    dumps, larger = cut_dumps(_dumps(builds), folder)
    found = []
    for build in builds:
        stages = tuple(
            replace(stage, dumps=dumps)
            if isinstance(stage, ReadTables)
            else replace(stage, rules=replace(stage.rules, drop_red_links=False))
            if isinstance(stage, FindMentions)
            else stage
            for stage in build.stages
        )
        found.append(replace(build, stages=stages))
    return found, larger


def _sample_of(build: DatasetBuild, places: Mapping[str, Folder], shard_bytes: int) -> DatasetBuild:
    """The same build, in and from the folders of the sample, its stages measured."""
    stages = []
    for stage in build.stages:
        moved = {
            each.name: places[value].uri
            for each in fields(stage)  # type: ignore[arg-type]
            if isinstance(value := getattr(stage, each.name), str) and "location" in each.metadata and value in places
        }
        kind = TimedParse if type(stage) is Parse else type(stage)
        stages.append(kind(**{each.name: getattr(stage, each.name) for each in fields(stage)} | moved))  # type: ignore[arg-type]
    output = places[build.output.uri]
    last = Measure(tuple(stage.name for stage in stages), shard_bytes, to=output.uri)
    return replace(build, output=output, stages=(*stages, last))
