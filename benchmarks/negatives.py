"""Neighbours by edit similarity: ours, all pairs by RapidFuzz's cdist, and a loop over all pairs in Python.

    python -m benchmarks.negatives --phrases phrases.txt --sizes 10000 20000 300000 1000000 --json negatives.json

`--phrases` is a text of phrases, one a line (`.gz`: compressed); of each size the N distinct ones of lowest hash are
taken. Every phrase gets the 50 most similar of all with an edit similarity above .70, ties by hash.

ours    the stage of `find_neighbours` over a dataset on disk, with all that it reads and writes; above `--whole`
        phrases only `--units` of its units, evenly spread
cdist   rapidfuzz.process.cdist, a block of rows at a time, and the 50 best of each row by NumPy; above `--whole`
        phrases only `--rows` rows
loop    rapidfuzz.fuzz.ratio for each pair, in two nested loops; up to `--looped` phrases, and `--loop-rows` rows

Each has its own process, one after the other; what they find is compared where all rows were done. Figures are CPU
seconds of one thread, for a phrase and, extrapolated, for all; `compile` is what numba takes to compile the loops,
once a process, and is not in the other figures. The memory is the peak of the process.
"""

from __future__ import annotations

import gzip
import heapq
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from benchmarks import harness
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.stage import Stage, Work, location, open_stage
from pipelines.engine.task_writer import TaskWriter, do_unit
from pipelines.stages.neighbours import FindNeighbours
from pipelines.stages.units import All
from schemas.kinds import neighbours, phrases
from schemas.manifest import Input
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.negatives.options import NeighbourRules

MOST, LEAST = 50, 0.70
BLOCK = 256


class Done(NamedTuple):
    rows: int
    seconds: float
    memory: int
    found: str  # a hash of the neighbours of all rows, empty if some were left out
    compiling: float = 0.0


def peak_memory() -> int:
    """The peak memory of this process in bytes, without that of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def read_phrases(path: Path, most: int) -> list[str]:
    """The distinct phrases of lowest hash, in order of it."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:  # type: ignore[attr-defined]
        distinct = {line.strip() for line in lines} - {""}
    return heapq.nsmallest(most, distinct, key=lambda text: xxhash.xxh3_128_digest(text.encode()))


@dataclass(frozen=True)
class Given(Stage):
    """Writes phrases as a dataset."""

    name: ClassVar[str] = "given"
    counts: ClassVar[str] = "phrases"
    Unit: ClassVar[type] = All

    texts: Sequence[str] = location()

    def plan(self, work: Work) -> list[All]:
        return [All()]

    def process(self, unit: All, write: TaskWriter) -> None:
        n = len(self.texts)
        row = {"surface_share": 1.0, "label": "NP", "frequency": 2, "document_frequency": 1}
        columns: list[Any] = []
        for column in phrases.PHRASES:
            if column.name in ("phrase", "surface"):
                columns.append(pa.array(self.texts, pa.string()))
            elif pa.types.is_struct(column.type):
                columns.append(
                    pa.array([{each.name: float(each.name == "NP") for each in column.type}] * n, column.type)
                )
            else:
                columns.append(pa.repeat(pa.scalar(row.get(column.name, ""), column.type), n))
        write.table("train", pa.table(columns, schema=phrases.PHRASES))
        write.ledger.read += n
        write.ledger.written += n


def write_dataset(folder: Path, texts: Sequence[str]) -> Folder:
    build = DatasetBuild(
        output=Folder(str(folder)),
        kind=phrases.KIND,
        stages=(Given(texts),),
        inputs=(Input("file", "phrases", "given", str(len(texts))),),
        options={},
    )
    for _ in harness.build_here(build):
        pass
    return build.output


def digest(found: Iterator[Sequence[int]]) -> str:
    """A hash of the places of the neighbours of each row."""
    return xxhash.xxh3_128_hexdigest(repr([[*map(int, each)] for each in found]).encode())


def ours(dataset: str, output: str, units: int | None) -> Done:
    def build(of: str, to: str) -> DatasetBuild:
        stage = FindNeighbours(rules=NeighbourRules(candidates=MOST, min_edit_similarity=LEAST), phrases=of)
        return DatasetBuild(Folder(to), neighbours.KIND, (stage,), (), stage.settings())

    began = time.process_time()
    few = write_dataset(Path(output + "-few-phrases"), ["house", "houses", "x" * 70, "x" * 71])
    for _ in harness.build_here(build(few.uri, output + "-few")):
        pass
    compiled = time.process_time()
    whole = build(dataset, output)
    whole.begin(resume=False)
    planned = open_stage(whole.work, whole.stages[0])
    step = len(planned) if units is None else min(units, len(planned))
    chosen = [planned[len(planned) * n // step] for n in range(step)]
    done = [do_unit(whole.work, whole.stages[0], unit) for unit in chosen]
    seconds = time.process_time() - compiled
    rows = sum(each.ledger.read for each in done if each.ledger)
    shards = (read_parquet(whole.output, file.path) for each in done for file in each.files)
    lists = (each for table in shards for each in table.column("neighbours").to_pylist())
    found = digest([item["row"] for item in each] for each in lists) if len(chosen) == len(planned) else ""
    return Done(rows, seconds, peak_memory(), found, compiled - began)


def by_cdist(texts: Sequence[str], rows: int | None) -> Done:
    from rapidfuzz import fuzz
    from rapidfuzz.process import cdist

    began = time.process_time()
    rank = np.argsort(np.argsort([xxhash.xxh3_128_digest(text.encode()) for text in texts]))
    todo = range(len(texts)) if rows is None else range(0, len(texts), max(len(texts) // rows, 1))[:rows]
    found = []
    for start in range(0, len(todo), BLOCK):
        block = todo[start : start + BLOCK]
        similarity = cdist([texts[row] for row in block], texts, scorer=fuzz.ratio, score_cutoff=70, dtype=np.float32)
        for row, of_row in zip(block, similarity, strict=True):
            of_row[row] = 0
            near = np.flatnonzero(of_row > 70 + 1e-4)
            found.append(near[np.lexsort((rank[near], -of_row[near]))[:MOST]])
    seconds = time.process_time() - began
    return Done(len(todo), seconds, peak_memory(), digest(iter(found)) if rows is None else "")


def by_loop(texts: Sequence[str], rows: int) -> Done:
    from rapidfuzz import fuzz

    began = time.process_time()
    keys = [xxhash.xxh3_128_digest(text.encode()) for text in texts]
    found = []
    for row, text in enumerate(texts[:rows]):
        near = []
        for other, candidate in enumerate(texts):
            similarity = fuzz.ratio(text, candidate) / 100
            if similarity > LEAST + 1e-9 and other != row:
                near.append((-round(similarity, 9), keys[other], other))
        found.append([place for *_, place in sorted(near)[:MOST]])
    seconds = time.process_time() - began
    return Done(len(found), seconds, peak_memory(), digest(iter(found)) if len(found) == len(texts) else "")


def main(argv: list[str] | None = None) -> int:
    parser = harness.arguments(__doc__)
    parser.add_argument("--phrases", type=Path, required=True, metavar="FILE")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 20_000, 100_000], metavar="N")
    parser.add_argument("--looped", type=int, default=20_000, metavar="N", help="the most phrases of the loop")
    parser.add_argument("--loop-rows", type=int, default=10_000, metavar="N", help="the most rows of the loop")
    parser.add_argument("--whole", type=int, default=20_000, metavar="N", help="the most phrases of which all are done")
    parser.add_argument("--rows", type=int, default=256, metavar="N", help="rows for cdist where not all are done")
    parser.add_argument("--units", type=int, default=2, metavar="N", help="units of ours where not all are done")
    arguments = parser.parse_args(argv)
    all_texts = read_phrases(arguments.phrases, max(arguments.sizes))
    figures: dict[str, dict[str, dict[str, object]]] = {}
    table, differ = [], False
    for size in sorted({min(size, len(all_texts)) for size in arguments.sizes}):
        texts, whole = all_texts[:size], size <= arguments.whole
        with tempfile.TemporaryDirectory() as name:
            dataset = write_dataset(Path(name) / "phrases", texts)
            works: dict[str, Callable[[], Done]] = {
                "ours": partial(ours, dataset.uri, f"{name}/neighbours", None if whole else arguments.units),
                "cdist": partial(by_cdist, texts, None if whole else arguments.rows),
            }
            if size <= arguments.looped:
                works["loop"] = partial(by_loop, texts, arguments.loop_rows)
            done = {}
            for way, work in works.items():
                done[way] = harness.apart(work)[0]
                print(f"{size:,} phrases, {way}: {done[way]}", file=sys.stderr, flush=True)
        own = done["ours"].seconds / done["ours"].rows
        differ |= len({each.found for each in done.values() if each.found}) > 1
        for way, each in done.items():
            a_phrase = each.seconds / each.rows
            figures.setdefault(str(size), {})[way] = {
                "ms_a_phrase": a_phrase * 1e3,
                "seconds_for_all": a_phrase * size,
                "rows": each.rows,
                "peak_memory_bytes": each.memory,
                "compile_seconds": each.compiling,
                "found": each.found,
            }
            memory = round(each.memory / 2**20)
            table.append((f"{size:,} {way}", each.rows, a_phrase * 1e3, a_phrase * size, memory, a_phrase / own))
    headings = ("phrases", "rows done", "ms a phrase", "CPU s for all", "MiB", "times ours")
    harness.show("Neighbours of every phrase", headings, table)
    print("the neighbours differ" if differ else "the same neighbours wherever all rows were done")
    harness.write(arguments.json, figures)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
