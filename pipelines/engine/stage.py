"""Stages: units of work, their completion records and ledgers.

    plan(inputs, options)  -> units                      depends on the data and the options alone
    process(unit)          -> files, ledger, counters    a pure function of the unit; the completion record comes last
    finish(records)        -> the dataset                only when every ledger adds up (`dataset_build.py`)

This module does not depend on where units are done (`executors.py`) or what they are about (`pipelines/stages/`).

A stage works in `<dataset>/_work/<stage>/`: `plan.json` has its units, `done/` a completion record for each finished
unit, `files/` what the attempts at units wrote, each under its own name. Only files that a completion record names are
read or published, so a lost worker or two attempts at one unit do no harm.
"""

from __future__ import annotations

import functools
import itertools
import json
import operator
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from schemas.commands import typed
from schemas.errors import UserError
from schemas.json_values import Inside, checked, json_value
from schemas.manifest import Fault, Ledger, Manifest, Shard, is_dataset, read_manifest
from schemas.storage.errors import StorageError
from schemas.storage.folder import Folder

if TYPE_CHECKING:
    from pyarrow import Table

    from pipelines.engine.task_writer import TaskWriter

T = TypeVar("T")

WORK = "_work"
REJECTS_ROLE = "rejects"
"""The role of files of rejects; the roles of other side tables are those of `schemas.kinds.SIDES`."""

_REMEDY = "delete this file and go on with --resume"
"""For a file that was damaged: what it says is found out again."""

_FILE = re.compile(r'"([^"]+\.(?:parquet|pq))"')
_RECORD = re.compile(r"done/(\d+)\.json")

FEW_REJECTS = 20
"""This many rejects or fewer never stop a run in which anything is left (`DatasetBuild.require_rows`)."""


class StageError(RuntimeError):
    """A stage failed for a reason that the user did not cause. Finished units stay finished."""


class File(NamedTuple):
    """A file that an attempt at a unit wrote; `path` is relative to the dataset.

    `role` says what it is for: a split ("train", "validation") or a side table is published; files of any other role
    are read by a later stage. `supersedes` is the path of an earlier stage's file that this one replaces in the
    dataset.
    """

    role: str
    path: Inside
    rows: int
    bytes: int
    sha256: str
    supersedes: str = ""


class Completion(NamedTuple):
    """The record of a finished unit: what it wrote, when, how long it took and how much memory."""

    unit: int
    files: list[File]
    ledger: Ledger | None
    counters: dict[str, int]
    seconds: float
    finished: float = 0.0  # Unix time
    peak_memory: int = 0  # bytes, of the worker process

    def to_json(self) -> str:
        return json.dumps({**self._asdict(), "ledger": self.ledger.to_json() if self.ledger else None})


class Slice(NamedTuple):
    """The units that one of `of` machines does: every `of`-th, beginning with the `number`-th, counted from 1.

    >>> list(Slice(2, 4).units(10))
    [1, 5, 9]
    """

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def has(self, unit: int) -> bool:
        return unit % self.of == self.number - 1

    def units(self, total: int) -> range:
        """The numbers of its units, of `total`."""
        return range(self.number - 1, total, self.of)


WHOLE = Slice(1, 1)


class Tally(NamedTuple):
    """Counts of what was done, of a unit or a stage; they can be added."""

    read: int = 0
    written: int = 0
    filtered: int = 0
    rejected: int = 0
    rows: int = 0  # in all files, including those that only a later stage reads
    tokens: int = 0

    @classmethod
    def of(cls, done: Completion) -> Tally:
        ledger = done.ledger or Ledger("")
        rows = sum(file.rows for file in done.files)
        left_out = ledger.filtered.total(), ledger.rejected.total()
        return cls(ledger.read, ledger.written, *left_out, rows, done.counters.get("tokens", 0))

    def plus(self, other: Tally) -> Tally:
        return Tally(*map(operator.add, self, other))


class Isolation(NamedTuple):
    """How to do a unit whose workers died or failed: record by record.

    Call `at` with the number of each record before it is begun. A record in `faults` is not tried; it becomes a
    reject.
    """

    faults: Mapping[int, Fault]
    at: Callable[[int], None]


class Stage(ABC):
    """A step of the work on a dataset. Subclasses are frozen dataclasses whose fields are the options that they read.

    Fields that only say where something is (marked with `location()`) are not in the fingerprint. `Unit` is a
    NamedTuple of JSON values. `counts` is what the ledger counts, empty for a stage that only moves rows.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    counts: ClassVar[str] = ""
    isolates: ClassVar[bool] = False  # whether `process` supports `write.isolation`
    compares_all: ClassVar[bool] = False  # whether each row meets all others: its time grows with their square
    Unit: ClassVar[type]

    @abstractmethod
    def plan(self, work: Work) -> Sequence[Any]:
        """The units, in order. It may read what earlier stages of the same dataset wrote."""

    @abstractmethod
    def process(self, unit: Any, write: TaskWriter) -> None:
        """Do one unit. The same unit gives the same files, on any machine and in any attempt."""

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:  # noqa: B027 - most need nothing
        """UserError if this machine lacks what the stage needs. Called on a worker before a run on a cluster begins.

        `models` are those of the dataset, in the manifest's form.
        """

    def sample(self, folder: Folder) -> Stage:
        """The same stage for `--plan`: small units of raw input; what cannot be split is copied in part to `folder`."""
        return self

    def shorter(self, rows: Table) -> Table:
        """Rows of the dataset that it reads, for `--plan`: those that take long are cut."""
        return rows

    def size(self, unit: Any) -> float:
        """How much raw input a unit reads, in a measure that is the same for all; 0 if it reads datasets alone."""
        return 0.0

    def most_rows(self, work: Work) -> int | None:
        """The most rows that it writes in all, if an option limits them."""
        return None

    def settings(self) -> dict[str, Any]:
        """The version and options that decide the stage's output, for the fingerprint."""
        found: dict[str, Any] = {"version": self.version}
        for each in fields(self):  # type: ignore[arg-type]
            if "location" not in each.metadata:
                value = getattr(self, each.name)
                found |= _values(value) if is_dataclass(value) else {each.name: value}
        return found


def _values(rules: Any) -> dict[str, Any]:
    return {each.name: getattr(rules, each.name) for each in fields(rules)}


def location(**options: Any) -> Any:
    """A field of a stage that says where something is, and does not change what the stage writes."""
    return field(metadata={"location": True}, **options)


def locations(stage: Stage) -> dict[str, str]:
    """The fields of a stage that may say where a dataset lies."""
    found = {each.name: getattr(stage, each.name) for each in fields(stage) if "location" in each.metadata}  # type: ignore[arg-type]
    return {name: value for name, value in found.items() if value and isinstance(value, str)}


def files_named(unit: Any) -> list[str]:
    """The names of files of datasets in a unit, a JSON value."""
    return _FILE.findall(json.dumps(unit, ensure_ascii=False))


def published(manifest: Manifest) -> list[Shard]:
    return [*manifest.shards, *itertools.chain(*manifest.sides.values())]


def unit_sizes(stage: Stage, units: Sequence[Any]) -> list[float]:
    """The sizes of units, relative to each other: of raw input, or of the files that they name; all 1 if unknown."""
    folders = [Folder(uri) for uri in locations(stage).values()]
    files = {file.path: file.bytes for each in folders if is_dataset(each) for file in published(read_manifest(each))}
    sizes = [
        stage.size(checked(stage.Unit, unit)) or sum(files.get(name, 0) for name in files_named(unit)) for unit in units
    ]
    # No unit takes no time.
    least = sum(sizes) / max(len(sizes), 1) / 20 or 1.0
    return [max(each, least) for each in sizes]


@dataclass(frozen=True)
class Work:
    """The work on one dataset, in its folder: the plan and the finished units of each stage."""

    folder: Folder

    def stage_folder(self, stage: str) -> Folder:
        return self.folder / WORK / stage

    def is_planned(self, stage: str) -> bool:
        return self.stage_folder(stage).exists("plan.json")

    def is_closed(self, stage: str) -> bool:
        return self.stage_folder(stage).exists("completions.json")

    def finished(self, stage: str) -> set[int]:
        """The units that have a completion record, of this run or an earlier one."""
        found = map(_RECORD.fullmatch, self.stage_folder(stage).files("done"))
        return {int(name[1]) for name in found if name}

    def units(self, stage: str) -> list[list[Any]]:
        """The units of a planned stage, as JSON values."""
        return _plan(self.stage_folder(stage).uri)

    def unit(self, stage: Stage, number: int) -> Any:
        """One unit of a planned stage."""
        try:
            return checked(stage.Unit, self.units(stage.name)[number], f"unit {number}")
        except (ValueError, IndexError) as error:
            place = self.stage_folder(stage.name).place("plan.json")
            raise StorageError(f"{place}: was cut short or changed ({error}); {_REMEDY}") from None

    def completions(self, stage: str) -> list[Completion]:
        """The completion records of a closed stage, one for each unit, in order."""
        return self.stage_folder(stage).read_json("completions.json", list[Completion], remedy=_REMEDY)

    def files(self, stage: str, role: str) -> list[File]:
        """The files of one role that a closed stage wrote, in order of units."""
        return [file for each in self.completions(stage) for file in each.files if file.role == role]

    def counter(self, stage: str, name: str) -> int:
        return sum(each.counters.get(name, 0) for each in self.completions(stage))


def open_stage(work: Work, stage: Stage, part: Slice = WHOLE) -> list[int]:
    """Plan a stage, or read its plan; returns the units of the slice `part` that are still to be done."""
    folder = work.stage_folder(stage.name)
    if not folder.exists("plan.json"):
        units = [list(unit) for unit in stage.plan(work)]
        folder.write("plan.json", json.dumps(units, ensure_ascii=False).encode())
        _plan.cache_clear()  # an earlier run in this process may have had another plan here
    if not folder.exists("completions.json"):
        _forget_damaged(work, stage, part)
    done = work.finished(stage.name)
    return [unit for unit in part.units(len(_plan(folder.uri))) if unit not in done]


@functools.lru_cache(maxsize=8)
def _plan(folder_uri: str) -> list[list[Any]]:
    return Folder(folder_uri).read_json("plan.json", list[list[Any]], remedy=_REMEDY)


def _forget_damaged(work: Work, stage: Stage, part: Slice) -> None:
    """Remove damaged completion records, and those with a file that is missing or cut: their units are done again."""
    folder = work.stage_folder(stage.name)
    names = [record_name(unit) for unit in sorted(work.finished(stage.name)) if part.has(unit)]
    sizes = work.folder.sizes(f"{WORK}/{stage.name}/files") if names else {}
    for name, data in zip(names, folder.read_all(names), strict=True):
        try:
            files = checked(Completion, json_value(data)).files
        except ValueError:
            folder.remove(name)
            continue
        if any(sizes.get(file.path) != file.bytes for file in files):
            folder.remove(name)


def read_completions(work: Work, stage: Stage, units: Iterable[int]) -> list[Completion]:
    """The completion records of units, in order."""
    return _read_all(work, stage, Completion, [record_name(unit) for unit in sorted(units)])


def _read_all(work: Work, stage: Stage, of: type[T], names: Sequence[str]) -> list[T]:
    """Small JSON files of a stage. StorageError, which names the file, if one was cut short or changed."""
    folder = work.stage_folder(stage.name)
    found = []
    for name, data in zip(names, folder.read_all(names), strict=True):
        try:
            found.append(checked(of, json_value(data)))
        except ValueError as error:
            raise StorageError(f"{folder.place(name)}: was cut short or changed ({error}); {_REMEDY}") from None
    return found


def finished_unit(work: Work, stage: Stage, unit: int) -> Completion | None:
    """The completion record of a unit, if it has one."""
    if not work.stage_folder(stage.name).exists(record_name(unit)):
        return None
    return read_completions(work, stage, [unit])[0]


def record_name(unit: int) -> str:
    return f"done/{unit:06d}.json"


def close_stage(work: Work, stage: Stage, *, max_reject_rate: float = 1.0) -> list[Completion]:
    """Gather the completion records of a stage whose units are all done. The next stage is planned from them.

    UserError if more than `max_reject_rate` of the records read are rejects.
    """
    folder = work.stage_folder(stage.name)
    if work.is_closed(stage.name):
        completions = work.completions(stage.name)
    else:
        done = work.finished(stage.name)
        missing = [unit for unit in range(len(work.units(stage.name))) if unit not in done]
        if missing and not work.is_planned(stage.name):
            raise UserError(f"{work.folder}: was deleted during the run; start again with --overwrite")
        if missing:
            raise StageError(f"{stage.name}: {len(missing)} units have no completion record, the first is {missing[0]}")
        completions = read_completions(work, stage, done)
    total = sum_tallies(completions)
    check_rejects(work, stage, total, rate=max_reject_rate, expected=total.read)
    if not work.is_closed(stage.name):
        folder.write("completions.json", json.dumps([json.loads(each.to_json()) for each in completions]).encode())
    return completions


def sum_tallies(completions: Iterable[Completion]) -> Tally:
    return functools.reduce(Tally.plus, map(Tally.of, completions), Tally())


def too_many_rejects(tally: Tally, *, rate: float, expected: float) -> bool:
    """Whether a stage has more rejects than `rate` allows, and more than FEW_REJECTS.

    `expected` is the number of records that it will have read at its end. Until a twentieth of that is read, the
    rejects are compared with the twentieth, so that one bad place in a good corpus does not stop a run, whichever
    units come first. With a rate of 0.01 and 100,000 expected, 30 rejects among the first 200 records are compared with
    0.01 * 5,000 = 50: not too many.
    """
    return tally.rejected > FEW_REJECTS and tally.rejected > rate * max(tally.read, expected / 20)


def check_rejects(
    work: Work, stage: Stage, tally: Tally, *, rate: float, expected: float, part: Slice | None = None
) -> None:
    """UserError if there are `too_many_rejects`, of the stage or of a slice of it."""
    if part is None and tally.rejected >= expected:
        return  # all that the stage reads: a higher rate would not help, and `DatasetBuild.require_rows` says what may
    if too_many_rejects(tally, rate=rate, expected=expected):
        without = "; if you can do without them, go on with a higher rate and --resume"
        raise UserError(
            f"{stage.name}: {tally.rejected:,} rejects among the first {tally.read:,} {stage.counts}, more than "
            f"--max-reject-rate={rate:g}; look at them: {typed('pipelines.rejects', work.folder)}"
            + (without if tally.rejected < tally.read else "")
        )


def note_fault(work: Work, fault: Fault) -> None:
    """Record a failed attempt, for the manifest."""
    name = f"faults/{fault.unit:06d}.{uuid.uuid4().hex[:12]}.json"
    work.stage_folder(fault.stage).write(name, json.dumps(fault._asdict()).encode())


def read_faults(work: Work, stage: Stage, known: Collection[str] = ()) -> dict[str, Fault]:
    """The failed attempts at units of a stage, by the name of their file, without those in `known`."""
    folder = work.stage_folder(stage.name)
    names = [name for name in folder.files("faults") if name not in known]
    return dict(zip(names, _read_all(work, stage, Fault, names), strict=True))
