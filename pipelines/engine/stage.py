"""Stages: units of work, their completion records and ledgers.

    plan(inputs, options)  -> units                      fixed by the data alone
    process(unit)          -> files, ledger, counters    a pure function of the unit; a completion record comes last
    finish(records)        -> the dataset                only when every ledger adds up (`dataset_build.py`)

Nothing here knows where units are done (`executors.py`) or what they are about (`pipelines/stages/`).

A stage works in `<dataset>/_work/<stage>/`: `plan.json` holds its units, `done/` a completion record for each
finished unit, `files/` what the attempts at units wrote, each under a name of its own. Only files that a completion
record names are ever read or published, so a lost worker or two attempts at one unit do no harm.
"""

from __future__ import annotations

import functools
import json
import operator
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from schemas.errors import UserError
from schemas.manifest import Ledger
from schemas.storage.folder import Folder

if TYPE_CHECKING:
    from pipelines.engine.task_writer import TaskWriter

WORK = "_work"
REJECTS_ROLE = "rejects"
"""The role of files of rejects; the roles of other side tables are those of `schemas.kinds.SIDES`."""

_RECORD = re.compile(r"done/(\d+)\.json")

FEW_REJECTS = 20
"""As many rejects as that never stop a run."""


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
    """A failed attempt at a unit: `reason` is one of REJECT_REASONS, `record` the one at which it failed."""

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

    def sample(self, folder: Folder) -> Stage:
        """The same stage for `--plan`: small units of raw input; what cannot be split is copied in part to `folder`."""
        return self

    def size(self, unit: Any) -> float:
        """How much raw input a unit reads, in a measure that is the same for all; 0 if it reads datasets alone."""
        return 0.0

    def most_rows(self, work: Work) -> int | None:
        """The most rows that it writes in all, if an option limits them."""
        return None

    def settings(self) -> dict[str, Any]:
        """What of the stage decides its output, for the fingerprint."""
        found: dict[str, Any] = {"version": self.version}
        for each in fields(self):  # type: ignore[arg-type]
            if "location" not in each.metadata:
                value = getattr(self, each.name)
                found |= _values(value) if is_dataclass(value) else {each.name: value}
        return found


def _values(rules: Any) -> dict[str, Any]:
    return {each.name: getattr(rules, each.name) for each in fields(rules)}


def location(**options: Any) -> Any:
    """A field of a stage that says where something lies, and so does not change what the stage writes."""
    return field(metadata={"location": True}, **options)


@dataclass(frozen=True)
class Work:
    """The work on one dataset, in its folder: what each stage has planned and finished."""

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

    def unit(self, stage: Stage, number: int) -> Any:
        """One unit of a planned stage."""
        return stage.Unit(*self.units(stage.name)[number])

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
    names = [record_name(unit) for unit in sorted(work.finished(stage.name)) if part.has(unit)]
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
    records = work.stage_folder(stage.name).read_all([record_name(unit) for unit in sorted(units)])
    return [Completion.from_json(json.loads(record)) for record in records]


def finished_unit(work: Work, stage: Stage, unit: int) -> Completion | None:
    """The completion record of a unit, if it has one."""
    if not work.stage_folder(stage.name).exists(record_name(unit)):
        return None
    return read_completions(work, stage, [unit])[0]


def record_name(unit: int) -> str:
    return f"done/{unit:06d}.json"


def close_stage(work: Work, stage: Stage, *, max_reject_rate: float = 1.0) -> list[Completion]:
    """Gather the completion records of a stage whose units are all done; the next stage is planned from them.

    UserError if more than `max_reject_rate` of what was read are rejects.
    """
    folder = work.stage_folder(stage.name)
    if work.is_closed(stage.name):
        completions = work.completions(stage.name)
    else:
        done = work.finished(stage.name)
        missing = [unit for unit in range(len(work.units(stage.name))) if unit not in done]
        if missing and not work.is_planned(stage.name):
            raise UserError(f"{work.folder}: was deleted under the run; start again with --overwrite")
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
    """Whether a stage goes wrong: rejects above `rate`, and more than a handful.

    `expected` is how much it will have read at its end. Before a twentieth of that is read, the rejects are held
    against the twentieth: one bad place in a good corpus does not stop a run, nor the order in which units come.
    """
    return tally.rejected > FEW_REJECTS and tally.rejected > rate * max(tally.read, expected / 20)


def check_rejects(work: Work, stage: Stage, tally: Tally, *, rate: float, expected: float) -> None:
    """UserError if there are `too_many_rejects`: the limit on rejects, wherever it is looked at."""
    if too_many_rejects(tally, rate=rate, expected=expected):
        raise UserError(
            f"{stage.name}: {tally.rejected:,} rejects among the first {tally.read:,} {stage.counts}, more than "
            f"--max-reject-rate={rate:g}; look at them: python -m pipelines.rejects {work.folder}; "
            "if they may be lost, go on with a higher rate and --resume"
        )


def note_fault(work: Work, fault: Fault) -> None:
    """Write down a failed attempt, for the manifest."""
    name = f"faults/{fault.unit:06d}.{uuid.uuid4().hex[:12]}.json"
    work.stage_folder(fault.stage).write(name, json.dumps(fault._asdict()).encode())


def read_faults(work: Work, stage: Stage, known: Collection[str] = ()) -> dict[str, Fault]:
    """The failed attempts at units of a stage, by the name of their file, less those known."""
    folder = work.stage_folder(stage.name)
    names = [name for name in folder.files("faults") if name not in known]
    return {name: Fault(**json.loads(data)) for name, data in zip(names, folder.read_all(names), strict=True)}
