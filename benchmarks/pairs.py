"""Pairs of mentions at scale: time and peak memory as skewed mentions double, and what all combinations would take.

    python -m benchmarks.pairs --mentions 5000000 --work /tmp/pairs --json pairs.json

The mentions are synthetic. The share of the entity of rank r falls with r to the power of 1.1; the first entity has a
tenth of all mentions, and a quarter of them are of entities with one mention each. An entity has two surfaces of its
own and one shared with others. The real stages, from a mentions dataset to a pairs dataset, run on half of them and on
all.
"""

from __future__ import annotations

import functools
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks import harness
from pipelines import corpus, mention_corpus
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.stage import Stage, Work
from pipelines.engine.task_writer import TaskWriter
from pipelines.mine_mentions import COMMAND
from schemas.kinds.mentions import KIND, MENTIONS
from schemas.manifest import Input, read_manifest
from schemas.storage.folder import Folder
from transforms.arrays import I64, U64, mix64

SHARD = 50_000
TOP, EXPONENT, RANKED = 0.1, 1.1, 100_000
SHARED = 997  # surfaces that entities share

BEFORE = "Number {0} is a sentence {0:x} about as {0:o} long as {0:b} those of {0:e} an encyclopedia {0:09d}, where "


class Drawn(NamedTuple):
    """Mentions [first, first + n) of an endless corpus; each is a function of its number."""

    number: I64
    entity: I64
    surface: I64  # by number; the entity's own are 2 * entity and 2 * entity + 1, shared ones are negative
    common: I64  # 1 if the sentence is repeated for the entity


def draw(first: int, n: int) -> Drawn:
    number = np.arange(first, first + n)
    chance, which, repeats = (mix64(number.astype(np.uint64) * np.uint64(3) + np.uint64(part)) for part in range(3))
    ranked = np.searchsorted(_shares(), _unit(chance), side="right")
    entity = np.where(ranked < RANKED, ranked, RANKED + number)
    tenth = which % np.uint64(10)
    surface = np.where(tenth < 7, 2 * entity, np.where(tenth < 9, 2 * entity + 1, -1 - entity % SHARED))
    return Drawn(number, entity, surface, (repeats % np.uint64(100) == 0).astype(np.int64))


@functools.cache
def _shares() -> np.ndarray:
    """[RANKED] the share of the mentions that belong to entities up to each rank."""
    return np.cumsum(TOP * np.arange(1, RANKED + 1) ** -EXPONENT)


def _unit(hashes: U64) -> np.ndarray:
    return hashes / 2.0**64


def mentions(drawn: Drawn) -> pa.Table:
    """The same as rows (MENTIONS)."""
    rows = zip(*(each.tolist() for each in drawn), strict=True)
    surfaces, texts, starts, sentences = [], [], [], []
    for number, _, name, common in rows:
        surface = f"Name {name}" if name >= 0 else f"Shared {-name}"
        before = "" if common else BEFORE.format(number)
        surfaces.append(surface)
        starts.append(len(before))
        texts.append(before + surface + (" is a place." if common else ", with more to say of it."))
        sentences.append(f"made:{number // 20}#{number % 20 * 200}")
    entities = drawn.entity.tolist()
    start = np.array(starts)
    n = len(entities)
    columns: dict[str, Any] = {
        **{name: pa.repeat("", n) for name in ("title", "url")},
        "source": pa.repeat("made", n),
        "licence": pa.repeat("none", n),
        "resolution": pa.repeat("qid", n),
        "origin": pa.repeat("link", n),
        "entity_id": pa.array([f"Q{entity + 1}" for entity in entities]),
        "target_title": pa.array([f"Entity {entity}" for entity in entities]),
        "section": pa.repeat("", n),
        "mention": pa.array(surfaces),
        "sentence_id": pa.array(sentences),
        "text": pa.array(texts),
        "start_char": pa.array(start.astype(np.uint32)),
        "end_char": pa.array((start + [len(each) for each in surfaces]).astype(np.uint32)),
        "doc_id": pa.array([each.partition("#")[0] for each in sentences]),
    }
    return pa.table([columns[name] for name in MENTIONS.names], schema=MENTIONS)


def combinations(drawn: Drawn) -> dict[str, int]:
    """The number of all pairs: of mentions of an entity; and of mentions of a surface with two entities."""
    both = mix64(drawn.entity.astype(np.uint64)) + drawn.surface.astype(np.uint64)
    by_entity, by_surface, by_both = (_twos(each) for each in (drawn.entity, drawn.surface, both))
    return {"entity": by_entity, "surface": by_surface - by_both}


def _twos(keys: np.ndarray) -> int:
    counts = np.unique(keys, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


class Part(NamedTuple):
    """A shard to make."""

    first: int
    n: int


@dataclass(frozen=True)
class Make(Stage):
    """Writes the mentions."""

    name: ClassVar[str] = "make"
    counts: ClassVar[str] = "mentions"
    Unit: ClassVar[type] = Part

    mentions: int

    def plan(self, work: Work) -> list[Part]:
        return [Part(first, min(SHARD, self.mentions - first)) for first in range(0, self.mentions, SHARD)]

    def process(self, unit: Part, write: TaskWriter) -> None:
        write.table("train", mentions(draw(*unit)))
        write.ledger.read += unit.n
        write.ledger.written += unit.n


def make_pairs(number: int, work: Path, workers: int) -> dict[str, Any]:
    """Make mentions and run the stages that pair them, with the default options; returns the figures."""
    stage = Make(mentions=number)
    source = Input("file", "made", "made", str(number))
    folder, output = Folder(str(work / "mentions")), Folder(str(work / "pairs"))
    made = corpus.built(DatasetBuild(folder, KIND, (stage,), (source,), stage.settings()))
    chosen, _ = COMMAND.parse([])
    builds = corpus.to_build([made, mention_corpus.pairs(made, chosen, output)])
    meter, by_stage = harness.build(builds, workers)
    seconds = sum(by_stage.values()) - by_stage[stage.name]
    manifest = read_manifest(output)
    ledger = manifest.stage("pair").ledger
    assert ledger is not None
    return {
        "mentions": number,
        "candidate_pairs": ledger.read,
        "filtered": dict(ledger.filtered),
        "pairs": manifest.rows,
        "pairs_bytes": sum(shard.bytes for shard in manifest.shards),
        "seconds": round(seconds, 1),
        "mentions_per_second": round(number / seconds),
        "peak_memory_bytes": meter.peak,
        "seconds_by_stage": by_stage,
    }


def all_combinations(number: int, *, bytes_a_pair: float) -> dict[str, Any]:
    """What the paper's enumeration of the same mentions would take."""
    drawn = draw(0, number)
    twos = combinations(drawn)
    pairs = sum(twos.values())
    largest = int(np.unique(drawn.entity, return_counts=True)[1].max())
    return {"largest_key": largest, "by_kind": twos, "pairs": pairs, "bytes": round(pairs * bytes_a_pair)}


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--mentions", type=int, default=5_000_000, help="in the larger set (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=Path("out/pairs"), help="where the sets are made (deleted)")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    found = []
    for number in (arguments.mentions // 2, arguments.mentions):
        shutil.rmtree(arguments.work, ignore_errors=True)
        figures = make_pairs(number, arguments.work, arguments.workers)
        a_pair = figures["pairs_bytes"] / max(figures["pairs"], 1)
        found.append({**figures, "all_combinations": all_combinations(number, bytes_a_pair=a_pair)})
        print(json.dumps(found[-1], indent=1), flush=True)
    shutil.rmtree(arguments.work)
    print(harness.twice("mentions", found))
    harness.write(arguments.json, found)


if __name__ == "__main__":
    main()
