"""Stages and the datasets that they build: units of work, completion records, ledgers, publication.

    plan(inputs, options)  -> units                      fixed by the data alone
    process(unit)          -> files, ledger, counters    a pure function of the unit; a completion record comes last
    finish(records)        -> the dataset                only when every ledger adds up

Nothing here knows Beam (`pipelines/runners.py` places the work) or a subject (the pipelines' own modules do).

A stage works in `<dataset>/_work/<stage>/`: `plan.json` holds its units, `done/` a completion record for each
finished attempt at a unit, `files/` what the attempts wrote, each under a name of its own. Only files that a
completion record names are ever read or published, so a lost worker or two attempts at one unit do no harm.
"""

from __future__ import annotations

import contextlib
import functools
import json
import operator
import resource
import sys
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from schemas.errors import UserError
from schemas.manifest import (
    MANIFEST,
    SPLITS,
    Input,
    Ledger,
    Manifest,
    Shard,
    StageReport,
    canonical_hash,
    is_dataset,
    read_manifest,
)
from schemas.records import FILTER_REASONS, REDIRECTS, REJECT_REASONS, REJECTS, record_name
from schemas.storage import AtomicFile, Folder, parquet_writer
from transforms.sinks.card import dataset_card
from transforms.sinks.versions import cpu_model, library_versions

WORK = "_work"
REJECTS_ROLE = "rejects"
SIDES = (REJECTS_ROLE, "redirects")
"""Roles of files that are published beside a dataset's shards."""

_SIDE_SCHEMAS = {REJECTS_ROLE: REJECTS, "redirects": REDIRECTS}
_SIDE_ROWS = 50_000

FEW_REJECTS = 20
"""So many rejects never stop a run."""
POINTS = 120
"""Points of a stage's throughput over time in the manifest."""


class StageError(RuntimeError):
    """A stage failed for a reason that is not the user's; what is done stays done."""


class File(NamedTuple):
    """A file that an attempt at a unit wrote; `path` is relative to the dataset.

    `role` says what for: a split ("train", "validation") or a side is published, any other name is read by a later
    stage. `supersedes` names the file of an earlier stage that this one takes the place of in the dataset.
    """

    role: str
    path: str
    rows: int
    bytes: int
    sha256: str
    supersedes: str = ""


class Completion(NamedTuple):
    """The record of a finished unit: what it wrote, and when, for how long and in how much memory it was done."""

    unit: int
    files: list[File]
    ledger: Ledger | None
    counters: dict[str, int]
    seconds: float
    finished: float = 0.0  # Unix time
    peak_memory: int = 0  # bytes, of the process that did it

    def to_json(self) -> str:
        return json.dumps({**self._asdict(), "ledger": self.ledger.to_json() if self.ledger else None})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Completion:
        ledger = Ledger.from_json(data["ledger"]) if data["ledger"] else None
        return cls(**{**data, "files": [File(*each) for each in data["files"]], "ledger": ledger})


class Tally(NamedTuple):
    """What was done, in figures that add up: of a unit, or of all of a stage."""

    read: int = 0
    written: int = 0
    filtered: int = 0
    rejected: int = 0
    rows: int = 0  # in files, also those that only the next stage reads
    tokens: int = 0

    @classmethod
    def of(cls, done: Completion) -> Tally:
        ledger = done.ledger or Ledger("")
        rows = sum(file.rows for file in done.files)
        left_out = ledger.filtered.total(), ledger.rejected.total()
        return cls(ledger.read, ledger.written, *left_out, rows, done.counters.get("tokens", 0))

    def plus(self, other: Tally) -> Tally:
        return Tally(*map(operator.add, self, other))


class Fault(NamedTuple):
    """A failed attempt at a unit: `reason` is one of REJECT_REASONS, `record` that of the unit it came to grief on."""

    stage: str
    unit: int
    attempt: int
    reason: str
    what: str
    record: int | None
    time: float  # Unix time


class Isolation(NamedTuple):
    """How a unit is done that brought its workers down: record by record.

    `at` is called with the number of each record before it is begun; a record with a fault is left alone, and becomes
    a reject.
    """

    faults: Mapping[int, Fault]
    at: Callable[[int], None]


class Stage(ABC):
    """A step of the work on a dataset. Subclasses are frozen dataclasses whose fields are the options it reads.

    Fields that only say where things lie (marked with `location()`) are left out of the fingerprint. `Unit` is a
    NamedTuple of JSON values; `counts` is what the ledger counts, empty for a stage that only moves rows.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    counts: ClassVar[str] = ""
    isolates: ClassVar[bool] = False  # whether `process` heeds `write.isolation`
    Unit: ClassVar[type]

    @abstractmethod
    def plan(self, work: Work) -> Sequence[Any]:
        """The units, in order. May read what earlier stages of the same dataset wrote."""

    @abstractmethod
    def process(self, unit: Any, write: UnitWriter) -> None:
        """Do one unit: the same files for the same unit, whoever does it and however often."""

    def settings(self) -> dict[str, Any]:
        """What of the stage decides its output, for the fingerprint."""
        found: dict[str, Any] = {"version": self.version}
        for each in fields(self):  # type: ignore[arg-type]
            if "location" not in each.metadata:
                value = getattr(self, each.name)
                found |= value._asdict() if hasattr(value, "_asdict") else {each.name: value}
        return found


def location(**options: Any) -> Any:
    """A field of a stage that says where something lies, and so does not change what the stage writes."""
    return field(metadata={"location": True}, **options)


@dataclass(frozen=True)
class Work:
    """The work on one dataset: its folder and the stages that build it."""

    folder: Folder

    def stage_folder(self, stage: str) -> Folder:
        return self.folder / WORK / stage

    def units(self, stage: str) -> list[list[Any]]:
        """The units of a planned stage, as JSON values."""
        return _plan(self.stage_folder(stage).uri)

    def completions(self, stage: str) -> list[Completion]:
        """The completion records of a closed stage, one a unit, in order."""
        remedy = "delete this file and go on with --resume"
        found = self.stage_folder(stage).read_json("completions.json", remedy=remedy)
        return [Completion.from_json(each) for each in found]

    def files(self, stage: str, role: str) -> list[File]:
        """The files of one role that a closed stage wrote, in order of units."""
        return [file for each in self.completions(stage) for file in each.files if file.role == role]

    def counter(self, stage: str, name: str) -> int:
        return sum(each.counters.get(name, 0) for each in self.completions(stage))


class UnitWriter:
    """What `process` writes to: files, the ledger, counters and rejects of one attempt at one unit.

    `resumed` is the state that the last checkpoint of an earlier attempt kept, None if there was none. `isolation` is
    given where workers died on the unit.
    """

    def __init__(self, work: Work, stage: Stage, unit: int, attempt: str, isolation: Isolation | None = None) -> None:
        self.work = work
        self.isolation = isolation
        self._stage, self._unit = stage, unit
        self._base = f"{WORK}/{stage.name}/files/{unit:06d}.{attempt}"
        self._began = time.monotonic()
        self.files: list[File] = []
        self.ledger = Ledger(stage.counts)
        self.counters: Counter[str] = Counter()
        self._side_rows: dict[str, list[dict[str, Any]]] = {}
        self._kept: set[str] = set()
        self.ahead: Callable[[], int] = int
        """How much was read that the ledger does not count yet: a sign of life while it stands still."""
        self.resumed: Any = None
        if found := self._checkpoint():
            done = Completion.from_json(found["done"])
            self.resumed, self.files, self.counters = found["state"], done.files, Counter(done.counters)
            self.ledger = done.ledger or self.ledger
            self._began -= done.seconds
            self._kept = {file.path for file in self.files}

    @property
    def _checkpoint_name(self) -> str:
        return f"{WORK}/{self._stage.name}/checkpoints/{self._unit:06d}.json"

    def _checkpoint(self) -> dict[str, Any] | None:
        if not self.work.folder.exists(self._checkpoint_name):
            return None
        return json.loads(self.work.folder.read(self._checkpoint_name))

    def checkpoint(self, state: Any) -> None:
        """Keep what was written so far, should the attempt die: the next one starts from `state`, a JSON value.

        For units that take long. To be called at points that the data alone fix, since it ends the files of side
        tables: so the files are the same with and without an interruption.
        """
        if any(not file.sha256 for file in self.files):
            raise ValueError(f"{self._stage.name}: a checkpoint in the middle of a file")
        kept = {"state": state, "done": json.loads(self._done().to_json())}
        self.work.folder.write(self._checkpoint_name, json.dumps(kept).encode())
        self._kept = {file.path for file in self.files}

    @contextmanager
    def file(self, role: str, schema: pa.Schema, *, supersedes: str = "") -> Iterator[Callable[[pa.Table], None]]:
        """A Parquet file, given table by table: each table is one row group, also an empty one."""
        name = f"{self._base}.{len(self.files):03d}.{role}.parquet"
        place = len(self.files)
        self.files.append(File(role, name, 0, 0, "", supersedes))
        rows = 0
        published = role in (*SPLITS, *SIDES)
        with (
            AtomicFile(self.work.folder, name) as sink,
            parquet_writer(sink, schema, to_keep=published) as writer,
        ):

            def write(table: pa.Table) -> None:
                nonlocal rows
                rows += table.num_rows
                writer.write_table(table.cast(schema), row_group_size=max(table.num_rows, 1))

            yield write
            writer.close()
        self.files[place] = File(role, name, rows, sink.bytes, sink.sha256, supersedes)

    def table(self, role: str, table: pa.Table, *, supersedes: str = "", row_group_rows: int = 1 << 16) -> None:
        """A Parquet file of one table. A published one has no row group without rows: `datasets` fails on those."""
        with self.file(role, table.schema, supersedes=supersedes) as write:
            for start in range(0, max(table.num_rows, role not in SPLITS), row_group_rows):
                write(table.slice(start, row_group_rows))

    def side(self, role: str, row: dict[str, Any]) -> None:
        """A row of a side table, such as a redirect."""
        rows = self._side_rows.setdefault(role, [])
        rows.append(row)
        if len(rows) >= _SIDE_ROWS:
            self._flush_side(role)

    def reject(self, reason: str, *, source: str, position: str, excerpt: str = "", exception: str = "") -> None:
        """Record something refused for a fault, and count it in the ledger."""
        if reason not in REJECT_REASONS:
            raise ValueError(f"{reason!r} is none of schemas.records.REJECT_REASONS")
        row = {
            "stage": self._stage.name,
            "reason": reason,
            "source": source,
            "position": position,
            "excerpt": excerpt[:200],
            "exception": exception[:500],
        }
        self.side(REJECTS_ROLE, row)
        self.ledger.rejected[reason] += 1

    def _flush_side(self, role: str) -> None:
        rows = self._side_rows.pop(role, [])
        if rows:
            self.table(role, pa.Table.from_pylist(rows, schema=_SIDE_SCHEMAS[role]))

    def tally(self) -> Tally:
        """How far it has come. Callable from any thread."""
        rows = sum(file.rows for file in list(self.files))
        filtered, rejected = (sum(list(each.values())) for each in (self.ledger.filtered, self.ledger.rejected))
        read = max(self.ledger.read, self.ahead())
        return Tally(read, self.ledger.written, filtered, rejected, rows, self.counters["tokens"])

    def _done(self) -> Completion:
        """What was done so far, as a record; ends the files of side tables."""
        for role in sorted(self._side_rows):
            self._flush_side(role)
        seconds = round(time.monotonic() - self._began, 3)
        counters = dict(sorted(self.counters.items()))
        return Completion(
            self._unit,
            self.files,
            self.ledger if self._stage.counts else None,
            counters,
            seconds,
            round(time.time(), 3),
            peak_memory(),
        )

    def completion(self) -> Completion:
        """The record of the finished unit; StageError if its ledger does not add up."""
        completion = self._done()
        if unknown := self.ledger.filtered.keys() - FILTER_REASONS.keys():
            raise ValueError(f"{sorted(unknown)} are none of schemas.records.FILTER_REASONS")
        if self._stage.counts and self.ledger.lost:
            raise StageError(
                f"{self._stage.name}: unit {self._unit} lost {self.ledger.lost:,} {self._stage.counts}: {self.ledger}; "
                "this is a fault of phrasemill, please report it"
            )
        return completion

    def discard(self) -> None:
        """Remove what a failed attempt left behind its last checkpoint."""
        for name in self.work.folder.files(f"{WORK}/{self._stage.name}/files"):
            if name.startswith(self._base) and name not in self._kept:
                self.work.folder.remove(name)


def peak_memory() -> int:
    """The most memory that this process ever had, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def open_stage(work: Work, stage: Stage) -> list[int]:
    """Plan a stage, or find its plan; returns the units that are still to be done."""
    folder = work.stage_folder(stage.name)
    if not folder.exists("plan.json"):
        units = [list(unit) for unit in stage.plan(work)]
        folder.write("plan.json", json.dumps(units, ensure_ascii=False).encode())
        _plan.cache_clear()  # an earlier run of this process may have planned another one here
    if not folder.exists("completions.json"):
        _forget_damaged(work, stage)
    done = _finished_units(work, stage)
    return [unit for unit in range(len(_plan(folder.uri))) if unit not in done]


@functools.lru_cache(maxsize=8)
def _plan(folder_uri: str) -> list[list[Any]]:
    return Folder(folder_uri).read_json("plan.json", remedy="delete this file and go on with --resume")


def _forget_damaged(work: Work, stage: Stage) -> None:
    """Remove the completion records that were cut short, or whose files are not there whole: their units are undone."""
    folder = work.stage_folder(stage.name)
    names = [name for name in folder.files("done") if name.endswith(".json")]
    sizes = work.folder.sizes(f"{WORK}/{stage.name}/files") if names else {}
    for name, data in zip(names, folder.read_all(names), strict=True):
        try:
            files = Completion.from_json(json.loads(data)).files
        except (ValueError, KeyError, TypeError):
            folder.remove(name)
            continue
        if any(sizes.get(file.path) != file.bytes for file in files):
            folder.remove(name)


def _finished_units(work: Work, stage: Stage) -> dict[int, str]:
    """The completion records that lie there: unit -> file name (of two attempts, the one first by name)."""
    found: dict[int, str] = {}
    for name in work.stage_folder(stage.name).files("done"):
        if name.endswith(".json"):
            found.setdefault(int(name.removeprefix("done/").split(".")[0]), name)
    return found


def run_unit(
    work: Work,
    stage: Stage,
    index: int,
    *,
    isolation: Isolation | None = None,
    watch: Callable[[UnitWriter], None] = lambda write: None,
) -> Completion:
    """Do one unit and write its completion record. Called in a worker; safe to call twice, also at once.

    `watch` is given the writer, from which another thread may read how far it has come.
    """
    folder = work.stage_folder(stage.name)
    unit = stage.Unit(*_plan(folder.uri)[index])
    attempt = uuid.uuid4().hex[:12]
    write = UnitWriter(work, stage, index, attempt, isolation)
    watch(write)
    try:
        stage.process(unit, write)
        completion = write.completion()
        folder.write(f"done/{index:06d}.{attempt}.json", completion.to_json().encode())
    except BaseException:
        with contextlib.suppress(OSError):  # where storage fails, this fails too, and is not what went wrong
            write.discard()
        raise
    return completion


def done_before(work: Work, stage: Stage) -> Tally:
    """What an earlier run has done of a stage that was opened."""
    done = _finished_units(work, stage)
    return _sum_tallies(_read_completions(work.stage_folder(stage.name), [done[unit] for unit in sorted(done)]))


def close_stage(work: Work, stage: Stage, *, max_reject_rate: float = 1.0) -> list[Completion]:
    """Gather the completion records of a stage whose units are all done; the next stage is planned from them.

    UserError if more than `max_reject_rate` of what was read are rejects.
    """
    folder = work.stage_folder(stage.name)
    if folder.exists("completions.json"):
        completions = work.completions(stage.name)
    else:
        done = _finished_units(work, stage)
        missing = [index for index in range(len(_plan(folder.uri))) if index not in done]
        if missing and not folder.exists("plan.json"):
            raise UserError(f"{work.folder}: was deleted under the run; start anew with --overwrite")
        if missing:
            raise StageError(f"{stage.name}: {len(missing)} units have no completion record, the first is {missing[0]}")
        completions = _read_completions(folder, [done[index] for index in sorted(done)])
    total = _sum_tallies(completions)
    if too_many_rejects(total, rate=max_reject_rate, expected=total.read):
        raise UserError(rejects_error(work, stage, total, rate=max_reject_rate))
    if not folder.exists("completions.json"):
        folder.write("completions.json", json.dumps([json.loads(each.to_json()) for each in completions]).encode())
    return completions


def _read_completions(folder: Folder, names: Sequence[str]) -> list[Completion]:
    """Completion records, many at once: on an object store each takes a while to come."""

    def read(name: str) -> Completion:
        return Completion.from_json(json.loads(folder.read(name)))

    with ThreadPoolExecutor(1 if folder.is_local else 16) as pool:
        return list(pool.map(read, names))


def _sum_tallies(completions: Iterable[Completion]) -> Tally:
    return functools.reduce(Tally.plus, map(Tally.of, completions), Tally())


def too_many_rejects(tally: Tally, *, rate: float, expected: float) -> bool:
    """Whether a stage goes wrong: rejects above `rate`, and more than a handful.

    `expected` is how much it will have read at its end. Before a twentieth of that is read, the rejects are held
    against the twentieth: one bad place in a good corpus does not stop a run, nor the order in which units come.
    """
    return tally.rejected > FEW_REJECTS and tally.rejected > rate * max(tally.read, expected / 20)


def rejects_error(work: Work, stage: Stage, tally: Tally, *, rate: float) -> str:
    return (
        f"{stage.name}: {tally.rejected:,} rejects among the first {tally.read:,} {stage.counts}, more than "
        f"--max-reject-rate={rate:g}; look at them: python -m pipelines.rejects {work.folder}; "
        "if they may be lost, go on with a higher rate and --resume"
    )


@dataclass(frozen=True)
class Build:
    """A dataset to be built: where, of what records, by which stages, from which inputs.

    The fingerprint covers the stages' settings and versions, the models and the content of the inputs, and nothing
    else. `options` are shown to readers of the manifest.
    """

    output: Folder
    schema: pa.Schema
    stages: tuple[Stage, ...]
    inputs: tuple[Input, ...]
    options: Mapping[str, Any]
    seed: int | None = None
    models: tuple[Mapping[str, Any], ...] = ()

    @property
    def work(self) -> Work:
        return Work(self.output)

    @functools.cached_property
    def parts(self) -> dict[str, Any]:
        """What the fingerprint covers, by name, so that a difference can be named."""
        return {
            "record": record_name(self.schema),
            "inputs": sorted((each.kind, each.name if each.kind == "file" else "", each.hash) for each in self.inputs),
            "models": [dict(each) for each in self.models],
            **{stage.name: stage.settings() for stage in self.stages},
        }

    @functools.cached_property
    def fingerprint(self) -> str:
        return canonical_hash(self.parts)

    def check(self, *, resume: bool, overwrite: bool, reuse: bool) -> bool:
        """Whether the dataset is to be built: False if it is there already and is to be used as it is.

        `reuse`: a finished dataset of the same fingerprint is taken (for the datasets that a run makes on its way).
        UserError if the output holds what may not be replaced. Changes nothing but what an interruption left over.
        """
        if is_dataset(self.output):
            found = read_manifest(self.output).fingerprint
            if found == self.fingerprint and (reuse or (resume and not overwrite)):
                self.output.delete(WORK)
                return False
            if not overwrite:
                raise UserError(self._occupied(found))
        elif self._has_begun():
            if not overwrite and self._has_progress():
                self._check_unfinished(resume)
        elif set(self.output.entries()) - {WORK}:
            raise UserError(
                f"{self.output}: is not empty and holds no phrasemill dataset; choose another --output, "
                "or empty it yourself"
            )
        return True

    def begin(self, *, resume: bool) -> None:
        """Make the output ready for the work, after `check`: what it holds is continued or replaced."""
        if resume and self._has_begun() and not is_dataset(self.output) and self._begun()[0] == self.fingerprint:
            return
        _remove(self.output)
        state = {"fingerprint": self.fingerprint, "parts": self.parts}
        self.output.write(f"{WORK}/build.json", json.dumps(state).encode())

    def _has_begun(self) -> bool:
        return self.output.exists(f"{WORK}/build.json")

    def _begun(self) -> tuple[str, dict[str, Any]]:
        """Fingerprint and parts of the unfinished run in the output."""
        state = self.output.read_json(f"{WORK}/build.json", remedy="start anew with --overwrite")
        return state["fingerprint"], state["parts"]

    def _has_progress(self) -> bool:
        return any("/done/" in name for name in self.output.files(WORK, recursive=True))

    def _check_unfinished(self, resume: bool) -> None:
        fingerprint, parts = self._begun()
        if fingerprint != self.fingerprint:
            changed = _difference(parts, json.loads(json.dumps(self.parts)))
            raise UserError(
                f"{self.output}: holds an unfinished run with other settings ({changed}); "
                "give the same settings with --resume, or start anew with --overwrite"
            )
        if not resume:
            raise UserError(
                f"{self.output}: holds an unfinished run; --resume goes on with it, --overwrite starts anew"
            )

    def _occupied(self, found: str) -> str:
        same = found == self.fingerprint
        held = "this very dataset, finished" if same else "a dataset made from other inputs or with other options"
        return f"{self.output}: holds {held}; choose another --output, or replace it with --overwrite"

    def finish(self) -> Manifest:
        """Check the ledgers, publish the files that the records name, write card and manifest."""
        if is_dataset(self.output):
            return read_manifest(self.output)
        completions = {stage.name: self.work.completions(stage.name) for stage in self.stages}
        reports = [_report(stage, completions[stage.name]) for stage in self.stages]
        for stage, report in zip(self.stages, reports, strict=True):
            _check(stage, report, completions[stage.name])
        files = _current(file for stage in self.stages for each in completions[stage.name] for file in each.files)
        splits = {split: self._publish(split, files) for split in SPLITS}
        sides = {side: self._publish(side, files) for side in SIDES}
        manifest = Manifest(
            record=record_name(self.schema),
            fingerprint=self.fingerprint,
            seed=self.seed,
            options=dict(self.options),
            inputs=[each._replace(path=self.output.relative(each.path)) for each in self.inputs],
            splits={split: shards for split, shards in splits.items() if shards},
            sides={side: shards for side, shards in sides.items() if shards},
            stages=reports,
            licences=_licences(reports),
            models=[dict(each) for each in self.models],
            versions=library_versions(),
            cpu=cpu_model(),
            run=_run_figures(completions, self._faults()),
        )
        self._write_report(manifest)
        self.output.write("README.md", dataset_card(manifest, name=self.output.name).encode())
        self.output.write(MANIFEST, manifest.to_json().encode())
        self.output.delete(WORK)
        return manifest

    def _write_report(self, manifest: Manifest) -> None:
        """The report; what goes wrong with it is noted in the manifest, for the data is none the worse."""
        from transforms.sinks.report import dataset_report  # not in the workers: it brings jinja2

        try:
            self.output.write("report.html", dataset_report(self.output, manifest).encode())
        except OSError:
            raise
        except Exception as error:
            manifest.run["report"] = f"not written: {type(error).__name__}: {error}"

    def _faults(self) -> list[dict[str, Any]]:
        """The failed attempts at units, in order of time."""
        faults = []
        for stage in self.stages:
            folder = self.work.stage_folder(stage.name)
            faults += [json.loads(folder.read(name)) for name in folder.files("faults")]
        return sorted(faults, key=lambda fault: fault["time"])

    def _publish(self, role: str, files: Sequence[File]) -> list[Shard]:
        """Move the files of a role to their published names; one that was moved before an interruption stays."""
        chosen = [file for file in files if file.role == role]
        shards = []
        for index, file in enumerate(chosen):
            name = (
                f"data/{role}-{index:05d}-of-{len(chosen):05d}.parquet"
                if role in SPLITS
                else f"{role}/part-{index:05d}.parquet"
            )
            if self.output.exists(file.path):
                self.output.move(file.path, name)
            elif not self.output.exists(name) or self.output.size(name) != file.bytes:
                raise UserError(f"{self.output}: {file.path} is gone; it was deleted under the run; use --overwrite")
            shards.append(Shard(name, file.rows, file.bytes, file.sha256))
        return shards


def note_fault(work: Work, fault: Fault) -> None:
    """Write down a failed attempt, for the manifest."""
    name = f"faults/{fault.unit:06d}.{uuid.uuid4().hex[:12]}.json"
    work.stage_folder(fault.stage).write(name, json.dumps(fault._asdict()).encode())


def _run_figures(completions: Mapping[str, Sequence[Completion]], faults: list[dict[str, Any]]) -> dict[str, Any]:
    """How the run went, for the manifest: times, memory, throughput, failed attempts. See docs/datasets.md."""
    done = [each for records in completions.values() for each in records]
    throughput: dict[str, list[list[float]]] = {}
    began = 0.0
    for name, records in completions.items():
        throughput[name] = throughput_of(records, began=began)
        began = throughput[name][-1][0] if throughput[name] else began
    return {
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": {name: round(sum(each.seconds for each in records), 2) for name, records in completions.items()},
        "wall_seconds": {
            name: round(points[-1][0] - points[0][0], 2) if points else 0.0 for name, points in throughput.items()
        },
        "peak_memory": max((each.peak_memory for each in done), default=0),
        "throughput": throughput,
        "faults": faults,
    }


def throughput_of(completions: Sequence[Completion], *, began: float) -> list[list[float]]:
    """A stage over time: [seconds, units, rows, tokens], what was done by then, from [began, 0, 0, 0] on.

    The time between the runs of an interrupted stage does not count: seconds go on only while a unit was at work.
    """
    if not completions:
        return []
    points: list[list[float]] = [[round(began, 2), 0, 0, 0]]
    # Disjoint times at work: [start, end, seconds of work before it].
    spans: list[list[float]] = []
    for start, end in sorted((each.finished - each.seconds, each.finished) for each in completions):
        if spans and start <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([start, end, spans[-1][2] + spans[-1][1] - spans[-1][0] if spans else 0.0])
    total = Tally()
    for units, each in enumerate(sorted(completions, key=lambda each: (each.finished, each.unit)), start=1):
        while each.finished > spans[0][1]:
            spans.pop(0)
        total = total.plus(Tally.of(each))
        seconds = began + spans[0][2] + each.finished - spans[0][0]
        points.append([round(seconds, 2), units, total.written or total.rows, total.tokens])
    step = max(-(-(len(points) - 1) // POINTS), 1)
    return points[:1] + points[:0:-step][::-1]


def _report(stage: Stage, completions: Sequence[Completion]) -> StageReport:
    ledger = sum((each.ledger for each in completions if each.ledger), start=Ledger(stage.counts))
    counters = _sum(each.counters for each in completions)
    return StageReport(stage.name, stage.version, len(completions), ledger if stage.counts else None, counters)


def _sum(counters: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums by name, sorted."""
    total = Counter[str]()
    for each in counters:
        total.update(each)
    return dict(sorted(total.items()))


def _licences(reports: Iterable[StageReport]) -> dict[str, int]:
    """Documents by licence, as the stages counted them."""
    counters = _sum(report.counters for report in reports)
    names = [name.removeprefix("licence:") for name in counters if name.startswith("licence:")]
    found = {name: counters[f"licence:{name}"] - counters.get(f"dropped_licence:{name}", 0) for name in names}
    return {name: n for name, n in found.items() if n}


def _check(stage: Stage, report: StageReport, completions: Sequence[Completion]) -> None:
    """StageError unless the ledger adds up and agrees with the rows written."""
    if report.ledger is None:
        return
    rows = sum(file.rows for each in completions for file in each.files if file.role in SPLITS)
    rejects = sum(file.rows for each in completions for file in each.files if file.role == REJECTS_ROLE)
    published = any(file.role in SPLITS for each in completions for file in each.files)
    if report.ledger.lost or (published and rows != report.ledger.written) or rejects != report.ledger.rejected.total():
        raise StageError(
            f"{stage.name}: the ledger does not add up: {report.ledger}, {rows:,} rows and {rejects:,} rejects "
            "in files; this is a fault of phrasemill, please report it"
        )


def _current(files: Iterable[File]) -> list[File]:
    """The files in order, each that was superseded replaced by its successor."""
    places: dict[str, int] = {}
    found: list[File] = []
    for file in files:
        if file.supersedes:
            places[file.path] = places[file.supersedes]
            found[places[file.path]] = file
        else:
            places[file.path] = len(found)
            found.append(file)
    return found


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Names of the settings in which two fingerprints differ."""
    names = []
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            names += [f"{key}.{each}" for each in sorted({*old, *new}) if old.get(each) != new.get(each)]
        else:
            names.append(key)
    return ", ".join(names)


def _remove(output: Folder) -> None:
    """Remove a dataset of ours, and nothing else that a user may have put into its folder."""
    for name in ("data", *SIDES, WORK):
        output.delete(name)
    for name in (MANIFEST, "README.md", "report.html"):
        output.remove(name)
