"""The manifest of a dataset directory: its contents, how it was made, and the ledgers that prove that nothing was lost.

`manifest.json` is written last: a directory without one is not a dataset. Except for its `run` part it is a function of
the input, the options, the seed and the software.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

import pyarrow as pa

from schemas.columns import SCHEMA_VERSION
from schemas.errors import UserError
from schemas.json_values import Inside, Signed, checked, json_value
from schemas.kind import Kind, kind_of
from schemas.overlaps import notes as overlap_notes
from schemas.storage.folder import Folder

MANIFEST = "manifest.json"
FORMAT = "phrasemill dataset"
SPLITS = ("train", "validation", "test")

CHANGED = "the manifest was changed after it was written; restore it, or write the dataset again with --overwrite"


def file_name(group: str, index: int, of: int) -> str:
    """The published name of file `index` of a split, or of a side table, which has `of` files.

    Those of side tables have another suffix, so that `**/*.parquet` in a dataset matches the rows alone.
    """
    return f"data/{group}-{index:05d}-of-{of:05d}.parquet" if group in SPLITS else f"{group}/part-{index:05d}.pq"


class Shard(NamedTuple):
    """One Parquet file of a dataset; `path` is relative to the dataset."""

    path: Inside
    rows: int
    bytes: int
    sha256: str


@dataclass
class Ledger:
    """Counts of what a stage read, in the stage's own unit (`counts`): read = written + filtered + rejected."""

    counts: str
    read: int = 0
    written: int = 0
    filtered: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Ledger) -> Ledger:
        return Ledger(
            self.counts,
            self.read + other.read,
            self.written + other.written,
            self.filtered + other.filtered,
            self.rejected + other.rejected,
        )

    @property
    def lost(self) -> int:
        """The number that the ledger does not account for: 0 unless there is a bug."""
        return self.read - self.written - self.filtered.total() - self.rejected.total()

    def to_json(self) -> dict[str, Any]:
        """A JSON value, reasons in order of their names."""
        filtered, rejected = (dict(sorted(each.items())) for each in (self.filtered, self.rejected))
        return {
            "counts": self.counts,
            "read": self.read,
            "written": self.written,
            "filtered": filtered,
            "rejected": rejected,
        }


class StageReport(NamedTuple):
    """A finished stage in a manifest."""

    name: str
    version: int
    units: int
    ledger: Ledger | None
    counters: dict[str, int]


class Input(NamedTuple):
    """Something that a dataset was made from: a raw file, or another dataset.

    `path` is relative to this dataset if both are in one store. `hash` is the sha256 of a raw file, the fingerprint of
    a dataset.
    """

    kind: str  # "file" or "dataset"
    name: str
    path: str
    hash: str
    bytes: int = 0


class Point(NamedTuple):
    """What a stage had done after some seconds of the run."""

    seconds: float
    units: int
    rows: int
    tokens: int


class Fault(NamedTuple):
    """A failed attempt at a unit. `reason` is one of REJECT_REASONS; `record` is the number of the record it failed at.

    `record` is None unless the unit was done record by record.
    """

    stage: str
    unit: int
    attempt: int
    reason: str
    what: str
    record: int | None
    time: float  # Unix time


class RunFigures(TypedDict, total=False):
    """Times, memory, throughput and failed attempts of the run. Older manifests have fewer of them.

    `seconds` are those of the workers together, by stage.
    """

    finished: str
    seconds: dict[str, float]
    wall_seconds: dict[str, float]
    peak_memory: int
    throughput: dict[str, list[Point]]
    faults: list[Fault]
    report: str  # why there is none


@dataclass(frozen=True)
class Manifest:
    """See the module's docstring; `docs/datasets.md` describes each field for users."""

    record: str
    fingerprint: str
    seed: Signed | None
    options: dict[str, Any]
    inputs: list[Input]
    splits: dict[str, list[Shard]]
    sides: dict[str, list[Shard]]
    stages: list[StageReport]
    licences: dict[str, int]
    models: list[dict[str, Any]]
    versions: dict[str, str]
    cpu: str
    run: RunFigures

    @property
    def shards(self) -> list[Shard]:
        return [shard for split in SPLITS for shard in self.splits.get(split, [])]

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)

    @property
    def sha256(self) -> str:
        """The sha256 of what `sha256sum data/*.parquet` prints in the dataset: one for all shards."""
        lines = sorted((shard.path, shard.sha256) for shard in self.shards)
        return hashlib.sha256("".join(f"{sha256}  {path}\n" for path, sha256 in lines).encode()).hexdigest()

    @property
    def schema(self) -> pa.Schema:
        return self.kind.schema

    @property
    def kind(self) -> Kind:
        kind = kind_of(self.record)
        assert kind is not None
        return kind

    def stage(self, name: str) -> StageReport:
        return next(each for each in self.stages if each.name == name)

    def has(self, stage: str) -> bool:
        return any(each.name == stage for each in self.stages)

    def ledger(self, stage: str) -> Ledger:
        """The ledger of a stage; an empty one if the manifest has none."""
        return next((each.ledger for each in self.stages if each.name == stage and each.ledger), Ledger(""))

    @property
    def last_written(self) -> int:
        """What the last stage with a ledger wrote."""
        return next((each.ledger.written for each in reversed(self.stages) if each.ledger), self.rows)

    def side_rows(self, side: str) -> int:
        return sum(shard.rows for shard in self.sides.get(side, []))

    def counter(self, name: str) -> int:
        """The sum of a counter over all stages."""
        return sum(stage.counters.get(name, 0) for stage in self.stages)

    @property
    def notes(self) -> list[str]:
        """Lines for the end of a run."""
        return [*self.kind.notes(self), *overlap_notes(self)]

    def to_json(self) -> str:
        columns = [
            {"name": each.name, "type": str(each.type), "description": (each.metadata or {})[b"description"].decode()}
            for each in self.schema
        ]
        run: dict[str, Any] = {**self.run}
        if "faults" in run:
            run["faults"] = [each._asdict() for each in run["faults"]]
        data = {
            "format": FORMAT,
            "record": self.record,
            "schema_version": SCHEMA_VERSION,
            "columns": columns,
            "fingerprint": self.fingerprint,
            "seed": self.seed,
            "options": self.options,
            "inputs": [each._asdict() for each in self.inputs],
            "rows": {split: sum(shard.rows for shard in shards) for split, shards in self.splits.items()},
            "splits": {split: [shard._asdict() for shard in shards] for split, shards in self.splits.items()},
            "sides": {side: [shard._asdict() for shard in shards] for side, shards in self.sides.items()},
            "stages": [
                {**each._asdict(), "ledger": each.ledger.to_json() if each.ledger else None} for each in self.stages
            ],
            "licences": self.licences,
            "models": self.models,
            "versions": self.versions,
            "cpu": self.cpu,
            "run": run,
        }
        return json.dumps(data, indent=1, ensure_ascii=False, sort_keys=False) + "\n"

    def problems(self) -> Iterator[str]:
        """What no reader takes, in words; `schemas.check` finds more."""
        for what, known, named in (("split", SPLITS, self.splits), ("side", _sides(), self.sides)):
            for name in sorted({*named} - {*known}):
                yield f"there is no {what} {_quoted(name)}, only {', '.join(known)}"
        for each in self.inputs:
            if each.kind not in ("file", "dataset") or "\0" in each.path:
                yield f"an input is the {each.kind!a} {each.path!a}"
        stages = Counter(stage.name for stage in self.stages)
        yield from (f"stage {_quoted(name)} is named {n:,} times" for name, n in stages.items() if n > 1)
        for name, of in self.kind.options.items():
            try:
                checked(of, self.options.get(name, of()), f"options.{name}")
            except ValueError as error:
                yield str(error)


def _sides() -> tuple[str, ...]:
    from schemas.kinds import SIDES  # which imports this module

    return tuple(SIDES)


def _quoted(text: str) -> str:
    return json.dumps(text)


def load_manifest(folder: Folder) -> Manifest:
    """The manifest of a dataset, with values of the right types. UserError if there is none or it cannot be read."""
    if not folder.exists(MANIFEST):
        if not folder.exists():
            raise UserError(f"{folder}: no such dataset")
        raise UserError(
            f"{folder}: not a dataset: it has no {MANIFEST}, which is written last; finish the run with --resume"
        )
    place = f"{folder}/{MANIFEST}"
    try:
        data = json_value(folder.read(MANIFEST))
        head = checked(_Head, data)
        if head.format != FORMAT:
            raise ValueError(f"format {head.format!r} instead of {FORMAT!r}")
        if head.schema_version != SCHEMA_VERSION:
            raise UserError(
                f"{place}: has schema version {head.schema_version}, this phrasemill reads version {SCHEMA_VERSION}; "
                "use the phrasemill that wrote it, or write the dataset again with --overwrite"
            )
        if kind_of(head.record) is None:
            raise UserError(f"{place}: records of unknown type {head.record!r}; update phrasemill")
        return checked(Manifest, data)
    except ValueError as error:
        raise UserError(
            f"{place}: cannot be read ({error}); it was cut or changed: write the dataset again with --overwrite"
        ) from error


class _Head(NamedTuple):
    """What says whether this phrasemill reads a manifest."""

    format: str
    schema_version: int
    record: str


def read_manifest(folder: Folder) -> Manifest:
    """The manifest of a dataset. UserError if there is none, or it is none that phrasemill writes."""
    manifest = load_manifest(folder)
    for problem in manifest.problems():
        raise UserError(f"{folder}/{MANIFEST}: {problem}; {CHANGED}")
    return manifest


def is_dataset(folder: Folder) -> bool:
    return folder.exists(MANIFEST)


def canonical_hash(value: Any) -> str:
    """A hash of a JSON value that does not depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
