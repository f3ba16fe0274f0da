"""Results on disk: what each task found for each item, and what follows from it.

    items/TASK.parquet    the items of a finished task, a row for each item and seed; written when the task ends
    results.json          the model, and the scores of all tasks; written at the end
    results.md            the table

A file of items says in its metadata what it was made from, so that a task is computed once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import UserError
from schemas.storage.folder import AtomicFile, Folder
from schemas.storage.parquet import parquet_writer
from trainers.evaluation.measures import Columns
from trainers.evaluation.task import ITEM, OR, Outcome

RESULTS = "results.json"
MARKDOWN = "results.md"
_ITEMS = "items"
_SEED = "seed"
_KEY = b"phrasemill.evaluation"

ModelIdentity = Mapping[str, Any]
"""What a model is, as JSON: its name, a hash of its files, the options that matter."""


class MadeFrom(NamedTuple):
    """What the items of a task are a function of. `files`: their sha256 by path below --data; `seeds`: () if none."""

    model: ModelIdentity
    task: str
    version: int
    files: Mapping[str, str]
    seeds: tuple[int, ...]


class TaskResult(NamedTuple):
    """A finished task of a model. `notes`: what the model says of the texts ("3 % of the words are unknown")."""

    made_from: MadeFrom
    outcome: Outcome
    notes: tuple[str, ...] = ()

    @property
    def items_digest(self) -> str:
        """The same for two models exactly if they were given the same items."""
        digest = hashlib.sha256()
        for items in self.outcome.items:
            digest.update("\0".join(items[ITEM]).encode() + b"\1")
        return digest.hexdigest()


class Results:
    """The results in a folder."""

    def __init__(self, place: Path | str) -> None:
        self.folder = Folder(str(place))

    def __str__(self) -> str:
        return str(self.folder)

    def model(self) -> ModelIdentity | None:
        """The model of the results; None if there are none. UserError if files are of several."""
        models = [self._metadata(task).model for task in self.tasks()]
        if models and any(each != models[0] for each in models):
            raise UserError(f"{self}: holds results of several models; give each its own --output")
        return models[0] if models else None

    def tasks(self) -> list[str]:
        """The names of the finished tasks."""
        names = (name.removeprefix(f"{_ITEMS}/") for name in self.folder.files(_ITEMS))
        return sorted(name.removesuffix(".parquet") for name in names if name.endswith(".parquet"))

    def has(self, wanted: MadeFrom) -> bool:
        """Whether a task was finished with the same model, files, seeds and version."""
        return wanted.task in self.tasks() and self._metadata(wanted.task) == wanted

    def write(self, result: TaskResult) -> None:
        made_from, outcome, notes = result
        tables = [
            pa.table({_SEED: pa.array([seed] * len(items[ITEM]), pa.int32()), **_arrow(items)})
            for seed, items in zip(made_from.seeds or (0,), outcome.items, strict=True)
        ]
        said: dict[str, Any] = {"made_from": made_from._asdict(), "read": dict(outcome.read)}
        said |= {"remarks": list(outcome.remarks), "notes": list(notes)}
        table = pa.concat_tables(tables)
        table = table.replace_schema_metadata({_KEY: json.dumps(said, ensure_ascii=False)})
        with AtomicFile(self.folder, _name(made_from.task)) as file, parquet_writer(file, table.schema) as writer:
            writer.write_table(table)

    def read(self, task: str) -> TaskResult:
        """A finished task. UserError if its file is damaged."""
        made_from, said = self._said(task)
        try:
            table = pq.read_table(self.folder.at(_name(task)))
            seeds = table[_SEED].to_numpy()
            columns = {name: _numpy(table[name]) for name in table.column_names if name != _SEED}
            ends = np.flatnonzero(np.diff(seeds)) + 1
            parts = {name: np.split(column, ends) for name, column in columns.items()}
            items = [{name: part[n] for name, part in parts.items()} for n in range(len(ends) + 1)]
            if len(items) != len(made_from.seeds or (0,)) or ITEM not in columns:
                raise ValueError("its items are not those of its seeds")
            outcome = Outcome(items, said["read"], tuple(said["remarks"]))
            return TaskResult(made_from, outcome, tuple(said["notes"]))
        except (OSError, KeyError, ValueError) as error:
            raise self._damaged(task, error) from error

    def _metadata(self, task: str) -> MadeFrom:
        return self._said(task)[0]

    def _said(self, task: str) -> tuple[MadeFrom, Mapping[str, Any]]:
        try:
            said = json.loads(pq.read_schema(self.folder.at(_name(task))).metadata[_KEY])
            made_from = MadeFrom(**said["made_from"])
            return made_from._replace(seeds=tuple(made_from.seeds)), said
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise self._damaged(task, error) from error

    def _damaged(self, task: str, error: Exception) -> UserError:
        words = " ".join(str(error).split())
        return UserError(f"{self}/{_name(task)}: is no file of results ({words}); delete it and evaluate again")


def is_results(place: str) -> bool:
    """Whether a MODEL that was given is the --output of an earlier run."""
    return (Path(place) / RESULTS).is_file() or (Path(place) / _ITEMS).is_dir()


def files_below(data: Path, patterns: Sequence[str]) -> Iterator[tuple[str, list[Path]]]:
    """For each file that a task reads, or pattern of files: what is there."""
    for pattern in patterns:
        yield pattern, sorted(path for each in pattern.split(OR) for path in data.glob(each) if path.is_file())


def hashes(data: Path, patterns: Sequence[str]) -> dict[str, str]:
    """The sha256 of the files of a task, by their paths below the folder."""
    found = {path for _, paths in files_below(data, patterns) for path in paths}
    return {path.relative_to(data).as_posix(): _sha256(path) for path in sorted(found)}


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _name(task: str) -> str:
    return f"{_ITEMS}/{task}.parquet"


def _arrow(items: Columns) -> dict[str, pa.Array]:
    return {name: pa.array(column) for name, column in items.items()}


def _numpy(column: pa.ChunkedArray) -> Any:
    return np.asarray(column.to_pylist(), dtype=object) if pa.types.is_string(column.type) else column.to_numpy()
