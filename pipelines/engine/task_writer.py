"""One attempt at one unit: its files, side tables, ledger, counters and checkpoints, and its completion record.

Each attempt writes files under its own name. The completion record is written last and names the files that count.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from pipelines.engine.stage import (
    REJECTS_ROLE,
    WORK,
    Completion,
    File,
    Isolation,
    Stage,
    StageError,
    Tally,
    Work,
    record_name,
)
from schemas.commands import typed
from schemas.errors import UserError
from schemas.kinds import FILTER_REASONS, REJECT_REASONS, SIDES
from schemas.manifest import SPLITS, Ledger
from schemas.storage.folder import AtomicFile
from schemas.storage.parquet import parquet_writer

_SIDE_ROWS = 50_000

T = TypeVar("T")


class _Part(NamedTuple):
    """A part of a unit, from `begin` to `end` (the unit is 0 to 1), and how far it is, from 0 to 1."""

    begin: float = 0.0
    end: float = 1.0
    done: Callable[[], float] = float  # 0


def do_unit(
    work: Work,
    stage: Stage,
    unit: int,
    *,
    isolation: Isolation | None = None,
    watch: Callable[[TaskWriter], None] = lambda write: None,
) -> Completion:
    """Do one unit and write its completion record. It may be called twice for a unit, even at the same time.

    `watch` gets the writer, whose `tally` another thread may call.
    """
    folder = work.stage_folder(stage.name)
    attempt = uuid.uuid4().hex[:12]
    write = TaskWriter(work, stage, unit, attempt, isolation)
    watch(write)
    try:
        stage.process(work.unit(stage, unit), write)
        completion = write.completion()
        folder.write(record_name(unit), completion.to_json().encode())
    except BaseException as error:
        with contextlib.suppress(OSError):  # if storage failed, this fails too and would hide the cause
            write.discard()
        if isinstance(error, OSError) and "CRC checksum" in str(error):
            raise UserError(
                f"{stage.name}: unit {unit} reads a file that was damaged after it was written ({error}); find it with "
                f"{typed('schemas.check')} on the datasets that {work.folder} is made from; if they are sound, the "
                "file belongs to this run: start again with --overwrite"
            ) from None
        raise
    return completion


class _Checkpoint(NamedTuple):
    """What was kept of an attempt: the state of the stage, and what was written."""

    state: Any
    done: Completion


class TaskWriter:
    """What `process` writes to: files, the ledger, counters and rejects of one attempt at one unit.

    `resumed` is the state of the last checkpoint of an earlier attempt, None if there was none. `isolation` is set if
    the unit is done record by record.
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
        """How much was read that the ledger does not count yet: it shows progress until the ledger does."""
        self.busy_with = ""
        """What it does instead of its work, such as loading a model; empty if it works."""
        self._part = _Part()
        self.resumed: Any = None
        if found := self._checkpoint():
            done = found.done
            self.resumed, self.files, self.counters = found.state, done.files, Counter(done.counters)
            self.ledger = done.ledger or self.ledger
            self._began -= done.seconds
            self._kept = {file.path for file in self.files}

    @property
    def _checkpoint_name(self) -> str:
        return f"{WORK}/{self._stage.name}/checkpoints/{self._unit:06d}.json"

    def _checkpoint(self) -> _Checkpoint | None:
        if not self.work.folder.exists(self._checkpoint_name):
            return None
        remedy = "delete this file and go on with --resume"
        return self.work.folder.read_json(self._checkpoint_name, _Checkpoint, remedy=remedy)

    def checkpoint(self, state: Any) -> None:
        """Keep what was written so far. If the attempt dies, the next one starts from `state`, a JSON value.

        For units that take long. A checkpoint ends the files of side tables, so call it at points that depend on the
        data alone: then the files are the same with and without an interruption.
        """
        if any(not file.sha256 for file in self.files):
            raise ValueError(f"{self._stage.name}: a checkpoint in the middle of a file")
        kept = {"state": state, "done": json.loads(self._done().to_json())}
        self.work.folder.write(self._checkpoint_name, json.dumps(kept).encode())
        self._kept = {file.path for file in self.files}

    @contextmanager
    def file(self, role: str, schema: pa.Schema, *, supersedes: str = "") -> Iterator[Callable[[pa.Table], None]]:
        """A Parquet file, written table by table: each table is one row group, even if it is empty."""
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
        """A Parquet file of one table. A split's file has no row group without rows: `datasets` fails on those."""
        with self.file(role, table.schema, supersedes=supersedes) as write:
            for start in range(0, max(table.num_rows, role not in SPLITS), row_group_rows):
                write(table.slice(start, row_group_rows))

    def side(self, role: str, row: dict[str, Any]) -> None:
        """Add a row to a side table, such as a redirect."""
        rows = self._side_rows.setdefault(role, [])
        rows.append(row)
        if len(rows) >= _SIDE_ROWS:
            self._flush_side(role)

    def reject(self, reason: str, *, source: str, position: str, excerpt: str = "", exception: str = "") -> None:
        """Add a reject, something refused for a fault, and count it in the ledger."""
        if reason not in REJECT_REASONS:
            raise ValueError(f"{reason!r} is none of schemas.kinds.REJECT_REASONS")
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
            self.table(role, pa.Table.from_pylist(rows, schema=SIDES[role]))

    @contextmanager
    def part(self, share: float = 1.0, done: Callable[[], float] = float) -> Iterator[None]:
        """The block is a share of what is left of the unit, or of the part around it: for the progress that is shown.

        Shares are of time, roughly. `done` tells how far the block is, from 0 to 1; any thread may call it. Parts
        within such a block are not looked at.
        """
        around = self._part
        if around.done is not float:
            yield
            return
        end = around.begin + (around.end - around.begin) * share
        self._part = _Part(around.begin, end, done)
        try:
            yield
        finally:
            self._part = around._replace(begin=end)

    def each(self, items: Sequence[T], share: float = 1.0) -> Iterator[T]:
        """The items, one after the other, each as a `part`, all of the same size."""
        with self.part(share):
            for number, item in enumerate(items):
                with self.part(1 / (len(items) - number)):
                    yield item

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """The block does something else than work, such as "loading the parser"."""
        self.busy_with = what
        try:
            yield
        finally:
            self.busy_with = ""

    def fraction(self) -> float:
        """How much of the unit is done, from 0 to 1. It may be called from any thread."""
        part = self._part
        return part.begin + (part.end - part.begin) * min(max(part.done(), 0.0), 1.0)

    def tally(self) -> Tally:
        """What was done so far. It may be called from any thread."""
        rows = sum(file.rows for file in list(self.files))
        filtered, rejected = (sum(list(each.values())) for each in (self.ledger.filtered, self.ledger.rejected))
        read = max(self.ledger.read, self.ahead())
        return Tally(read, self.ledger.written, filtered, rejected, rows, self.counters["tokens"])

    def _done(self) -> Completion:
        """A record of what was done so far. Ends the files of side tables."""
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
            raise ValueError(f"{sorted(unknown)} are none of schemas.kinds.FILTER_REASONS")
        if self._stage.counts and self.ledger.lost:
            raise StageError(
                f"{self._stage.name}: unit {self._unit} lost {self.ledger.lost:,} {self._stage.counts}: {self.ledger}; "
                "this is a bug in phrasemill, please report it"
            )
        return completion

    def discard(self) -> None:
        """Remove what a failed attempt wrote after its last checkpoint."""
        for name in self.work.folder.files(f"{WORK}/{self._stage.name}/files"):
            if name.startswith(self._base) and name not in self._kept:
                self.work.folder.remove(name)


def peak_memory() -> int:
    """The peak memory of this process, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
