"""Stages: units of work, their completion records and ledgers.

    plan(inputs, options)  -> units                      fixed by the data alone
    process(unit)          -> files, ledger, counters    a pure function of the unit; a completion record comes last
    finish(records)        -> the dataset                only when every ledger adds up (`dataset_build.py`)

Nothing here knows Beam (`pipelines/runners.py` places the work) or a subject (the pipelines' own modules do).

A stage works in `<dataset>/_work/<stage>/`: `plan.json` holds its units, `done/` a completion record for each
finished unit, `files/` what the attempts at units wrote, each under a name of its own. Only files that a completion
record names are ever read or published, so a lost worker or two attempts at one unit do no harm.
"""

from __future__ import annotations

import contextlib
import functools
import json
import operator
import re
import resource
import sys
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from schemas.errors import UserError
from schemas.manifest import (
    SPLITS,
    Ledger,
)
from schemas.records import FILTER_REASONS, PAGES, REDIRECTS, REJECT_REASONS, REJECTS
from schemas.storage import AtomicFile, Folder, parquet_writer

WORK = "_work"
REJECTS_ROLE = "rejects"
SIDE_TABLES = (REJECTS_ROLE, "redirects", "pages")
"""Roles of files that are published beside a dataset's shards."""

_SIDE_SCHEMAS = {REJECTS_ROLE: REJECTS, "redirects": REDIRECTS, "pages": PAGES}
_SIDE_ROWS = 50_000

_RECORD = re.compile(r"done/(\d+)\.json")

FEW_REJECTS = 20
"""So many rejects never stop a run."""


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


class Slice(NamedTuple):
    """Every `of`-th unit of a stage, from the `number`-th on: what one of `of` machines does. Numbers begin at 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def has(self, unit: int) -> bool:
        return unit % self.of == self.number - 1

    def units(self, total: int) -> range:
        """Which of `total` units."""
        return range(self.number - 1, total, self.of)


WHOLE = Slice(1, 1)


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
    def process(self, unit: Any, write: TaskWriter) -> None:
        """Do one unit: the same files for the same unit, whoever does it and however often."""

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:  # noqa: B027 - most need nothing
        """UserError if this machine lacks what the stage needs. Asked of a worker before a run on a cluster begins.

        `models` are those of the dataset, as its manifest has them.
        """

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

    def is_planned(self, stage: str) -> bool:
        return self.stage_folder(stage).exists("plan.json")

    def is_closed(self, stage: str) -> bool:
        return self.stage_folder(stage).exists("completions.json")

    def finished(self, stage: str) -> set[int]:
        """The units that have a completion record, whoever did them."""
        found = map(_RECORD.fullmatch, self.stage_folder(stage).files("done"))
        return {int(name[1]) for name in found if name}

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


class TaskWriter:
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
        published = role in (*SPLITS, *SIDE_TABLES)
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


def open_stage(work: Work, stage: Stage, part: Slice = WHOLE) -> list[int]:
    """Plan a stage, or find its plan; returns the units of a slice of it that are still to be done."""
    folder = work.stage_folder(stage.name)
    if not folder.exists("plan.json"):
        units = [list(unit) for unit in stage.plan(work)]
        folder.write("plan.json", json.dumps(units, ensure_ascii=False).encode())
        _plan.cache_clear()  # an earlier run of this process may have planned another one here
    if not folder.exists("completions.json"):
        _forget_damaged(work, stage, part)
    done = work.finished(stage.name)
    return [unit for unit in part.units(len(_plan(folder.uri))) if unit not in done]


@functools.lru_cache(maxsize=8)
def _plan(folder_uri: str) -> list[list[Any]]:
    return Folder(folder_uri).read_json("plan.json", remedy="delete this file and go on with --resume")


def _forget_damaged(work: Work, stage: Stage, part: Slice) -> None:
    """Remove the completion records that were cut short, or whose files are not there whole: their units are undone."""
    folder = work.stage_folder(stage.name)
    names = [_record_name(unit) for unit in sorted(work.finished(stage.name)) if part.has(unit)]
    sizes = work.folder.sizes(f"{WORK}/{stage.name}/files") if names else {}
    for name, data in zip(names, folder.read_all(names), strict=True):
        try:
            files = Completion.from_json(json.loads(data)).files
        except (ValueError, KeyError, TypeError):
            folder.remove(name)
            continue
        if any(sizes.get(file.path) != file.bytes for file in files):
            folder.remove(name)


def read_completions(work: Work, stage: Stage, units: Iterable[int]) -> list[Completion]:
    """The completion records of units, in order."""
    records = work.stage_folder(stage.name).read_all([_record_name(unit) for unit in sorted(units)])
    return [Completion.from_json(json.loads(record)) for record in records]


def finished_unit(work: Work, stage: Stage, index: int) -> Completion | None:
    """The completion record of a unit, if it has one."""
    if not work.stage_folder(stage.name).exists(_record_name(index)):
        return None
    return read_completions(work, stage, [index])[0]


def _record_name(index: int) -> str:
    return f"done/{index:06d}.json"


def run_unit(
    work: Work,
    stage: Stage,
    index: int,
    *,
    isolation: Isolation | None = None,
    watch: Callable[[TaskWriter], None] = lambda write: None,
) -> Completion:
    """Do one unit and write its completion record. Called in a worker; safe to call twice, also at once.

    `watch` is given the writer, from which another thread may read how far it has come.
    """
    folder = work.stage_folder(stage.name)
    unit = stage.Unit(*_plan(folder.uri)[index])
    attempt = uuid.uuid4().hex[:12]
    write = TaskWriter(work, stage, index, attempt, isolation)
    watch(write)
    try:
        stage.process(unit, write)
        completion = write.completion()
        folder.write(_record_name(index), completion.to_json().encode())
    except BaseException as error:
        with contextlib.suppress(OSError):  # where storage fails, this fails too, and is not what went wrong
            write.discard()
        if isinstance(error, OSError) and "CRC checksum" in str(error):
            raise UserError(
                f"{stage.name}: unit {index} reads a file that was damaged after it was written ({error}); see which "
                f"by python -m schemas.check on the datasets that {work.folder} is made from; if they are sound, it is "
                "one of its own: start anew with --overwrite"
            ) from None
        raise
    return completion


def done_before(work: Work, stage: Stage, part: Slice = WHOLE) -> Tally:
    """What an earlier run has done of a slice of a stage that was opened."""
    return sum_tallies(read_completions(work, stage, filter(part.has, work.finished(stage.name))))


def close_stage(work: Work, stage: Stage, *, max_reject_rate: float = 1.0) -> list[Completion]:
    """Gather the completion records of a stage whose units are all done; the next stage is planned from them.

    UserError if more than `max_reject_rate` of what was read are rejects.
    """
    folder = work.stage_folder(stage.name)
    if folder.exists("completions.json"):
        completions = work.completions(stage.name)
    else:
        done = work.finished(stage.name)
        missing = [index for index in range(len(_plan(folder.uri))) if index not in done]
        if missing and not folder.exists("plan.json"):
            raise UserError(f"{work.folder}: was deleted under the run; start anew with --overwrite")
        if missing:
            raise StageError(f"{stage.name}: {len(missing)} units have no completion record, the first is {missing[0]}")
        completions = read_completions(work, stage, done)
    total = sum_tallies(completions)
    if too_many_rejects(total, rate=max_reject_rate, expected=total.read):
        raise UserError(rejects_error(work, stage, total, rate=max_reject_rate))
    if not folder.exists("completions.json"):
        folder.write("completions.json", json.dumps([json.loads(each.to_json()) for each in completions]).encode())
    return completions


def sum_tallies(completions: Iterable[Completion]) -> Tally:
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


def note_fault(work: Work, fault: Fault) -> None:
    """Write down a failed attempt, for the manifest."""
    name = f"faults/{fault.unit:06d}.{uuid.uuid4().hex[:12]}.json"
    work.stage_folder(fault.stage).write(name, json.dumps(fault._asdict()).encode())
