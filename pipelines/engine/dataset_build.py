"""Datasets to be built: their fingerprint, what may be in the output already, and their publication.

`finish` checks the ledgers, moves the files that completion records name to their published names, and writes the
report, the card and, last, the manifest.
"""

from __future__ import annotations

import functools
import itertools
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

from pipelines.engine.lease import RUN_FILE
from pipelines.engine.phase import phase
from pipelines.engine.stage import (
    REJECTS_ROLE,
    WORK,
    Completion,
    File,
    Stage,
    StageError,
    Tally,
    Work,
    read_faults,
)
from pipelines.engine.versions import cpu_model, library_versions
from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.kind import Kind
from schemas.kinds import SIDES
from schemas.manifest import (
    MANIFEST,
    SPLITS,
    Fault,
    Input,
    Ledger,
    Manifest,
    RunFigures,
    Shard,
    StageReport,
    canonical_hash,
    file_name,
    is_dataset,
    read_manifest,
)
from schemas.storage.folder import Folder
from transforms.reports.card import dataset_card
from transforms.reports.figures import printable
from transforms.reports.rejects import ledgers_of, nothing_left

BUILD_FILE = f"{WORK}/build.json"

_ROWS_OF_CARD = 2

_MOST_SHOWN = 6
"""Differences that a message names."""

POINTS = 120
"""Points that the manifest keeps of a stage's throughput over time."""


class Misfit(UserError):
    """An output holds something else than what is to be built: `what` says which settings or inputs differ."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what


class InputPart(NamedTuple):
    """An input in a fingerprint; a dataset has no name in it."""

    kind: str
    name: str
    hash: str


class Parts(TypedDict, total=False):
    """What a fingerprint covers, besides the settings of the stages by their names."""

    record: str
    inputs: list[InputPart]
    models: list[dict[str, Any]]


class Begun(NamedTuple):
    """The content of `build.json`: what an unfinished run makes, by its fingerprint and what that covers."""

    fingerprint: str
    parts: Parts


@dataclass(frozen=True)
class DatasetBuild:
    """A dataset to be built: where, of what kind, by which stages, from which inputs.

    The fingerprint covers the stages' settings and versions, the models and the content of the inputs, and nothing
    else. `options` are for readers of the manifest.
    """

    output: Folder
    kind: Kind
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
        """What the fingerprint covers, by name, so that an error can name what differs."""
        return {
            "record": self.kind.record,
            "inputs": sorted((each.kind, each.name if each.kind == "file" else "", each.hash) for each in self.inputs),
            "models": [dict(each) for each in self.models],
            **{stage.name: stage.settings() for stage in self.stages},
        }

    @functools.cached_property
    def fingerprint(self) -> str:
        return canonical_hash(self.parts)

    def check(self, *, resume: bool, overwrite: bool, reuse: bool) -> bool:
        """Whether the dataset has to be built: False if it is finished and can be used as it is.

        `reuse`: use a finished dataset of the same fingerprint (for the intermediate datasets of a run). UserError if
        the output has something that must not be replaced.
        """
        if is_dataset(self.output):
            found = read_manifest(self.output)
            same = found.fingerprint == self.fingerprint
            if same and (reuse or (resume and not overwrite)):
                refuse_empty(self.output, found)
                return False
            if not overwrite:
                what = "holds this dataset, finished" if same else self.misfit(found)
                raise Misfit(f"{self.output}: {what}", "choose another --output, or replace it with --overwrite")
        elif self._has_begun():
            if not overwrite and self._has_progress() and self._begun().fingerprint:
                self._check_unfinished(resume)
        else:
            self._refuse_foreign()
        return True

    def begin(self, *, resume: bool) -> None:
        """Prepare the output, after `check`: continue or replace what is there. Leaves the run's own lease."""
        if (
            resume
            and self._has_begun()
            and not is_dataset(self.output)
            and self._begun().fingerprint == self.fingerprint
        ):
            return
        self._write_state("")  # so that a folder that is emptied in part counts as ours, and as empty
        _remove(self.output)
        self._write_state(self.fingerprint)

    def join(self, *, write: bool = True) -> bool:
        """Prepare the output for a slice of the work, or only check it. Other slices may do so at the same time.

        Removes nothing. False if the dataset is finished already. UserError if the output has anything else.
        """
        remedy = "choose another --output, or delete it first"
        if is_dataset(self.output):
            found = read_manifest(self.output)
            if found.fingerprint != self.fingerprint:
                raise UserError(f"{self.output}: {self.misfit(found)}; {remedy}")
            return False
        if not self._has_begun():
            self._refuse_foreign()
            if not write:
                return True
            self._write_state(self.fingerprint)
        # Checked even if it was just written: another slice may have begun at the same time, with other settings.
        self._check_settings(f"give the same settings, {remedy}")
        self.require_rows()
        return True

    def _refuse_foreign(self) -> None:
        """UserError if the output has files that are not ours."""
        if set(self.output.entries()) - {WORK}:
            raise UserError(
                f"{self.output}: is not empty and holds no phrasemill dataset; choose another --output, "
                "or empty it yourself"
            )

    def _write_state(self, fingerprint: str) -> None:
        state = {"fingerprint": fingerprint, "parts": self.parts}
        self.output.write(BUILD_FILE, json.dumps(state).encode())

    def _has_begun(self) -> bool:
        return self.output.exists(BUILD_FILE)

    def _begun(self) -> Begun:
        return self.output.read_json(BUILD_FILE, Begun, remedy="start again with --overwrite")

    def begun_fingerprint(self) -> str:
        """The fingerprint of the run that has begun in the output; empty if there is none, or it cannot be seen."""
        return self._begun().fingerprint if self._has_begun() else ""

    def _has_progress(self) -> bool:
        return any("/done/" in name for name in self.output.files(WORK, recursive=True))

    def _check_unfinished(self, resume: bool) -> None:
        """UserError unless the unfinished run can be continued, or came to nothing with other settings."""
        if self._came_to_nothing():
            if self._begun().fingerprint == self.fingerprint:
                self.require_rows()
            return
        self._check_settings("give the same settings with --resume, or start again with --overwrite")
        if not resume:
            raise UserError(
                f"{self.output}: holds an unfinished run; --resume continues it, --overwrite starts from scratch"
            )

    def _check_settings(self, remedy: str) -> None:
        """UserError if the unfinished run in the output has another fingerprint."""
        begun = self._begun()
        if begun.fingerprint != self.fingerprint:
            changed = _difference(begun.parts, json.loads(json.dumps(self.parts)))
            raise Misfit(f"{self.output}: holds an unfinished run with other settings ({changed})", remedy)

    def misfit(self, found: Manifest) -> str:
        """What the finished dataset in the output is, and how it differs from this one."""
        before = _parts(found.record, found.inputs, found.models, found.options, found.stages)
        now = _parts(self.kind.record, self.inputs, self.models, self.options, self.stages)
        changed = _difference(before, json.loads(json.dumps(now))) or "settings that its manifest does not name"
        return f"holds a dataset made from other inputs or with other settings ({changed})"

    def require_rows(self) -> None:
        """UserError if all stages are closed and there is nothing to publish. The rejects stay readable."""
        if self._came_to_nothing():
            reports = (_report(stage, self.work.completions(stage.name)) for stage in self.stages)
            raise UserError(nothing_left(self.output, self.kind, ledgers_of(reports)))

    def _came_to_nothing(self) -> bool:
        """Whether a run ended here without rows."""
        if self.kind.may_be_empty or not all(self.work.is_closed(stage.name) for stage in self.stages):
            return False
        files = _current(
            file for stage in self.stages for each in self.work.completions(stage.name) for file in each.files
        )
        return not any(file.rows for file in files if file.role in SPLITS)

    def finish(self) -> Manifest:
        """Check the ledgers, publish the files that the records name, write the report, the card and the manifest."""
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
            record=self.kind.record,
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
        rows = Dataset(self.output, manifest).head(_ROWS_OF_CARD)
        self.output.write("README.md", dataset_card(manifest, name=self.output.name, rows=rows).encode())
        self.output.write(MANIFEST, manifest.to_json().encode())
        for name in self.output.files():
            if name.endswith(".part"):  # of a run that was killed here
                self.output.remove(name)
        self.output.delete(WORK)
        return manifest

    def _write_report(self, manifest: Manifest) -> None:
        """Write the report. If it fails, the manifest says so: the data is not affected."""
        from transforms.reports.page import dataset_report  # imports jinja2, which workers do not need

        try:
            with phase(f"writing the report of {self.output.name}"):
                self.output.write("report.html", dataset_report(self.output, manifest).encode())
        except OSError:
            raise
        except Exception as error:
            manifest.run["report"] = f"not written: {type(error).__name__}: {error}"

    def _faults(self) -> list[Fault]:
        """The failed attempts at units, in order of time."""
        faults = [fault for stage in self.stages for fault in read_faults(self.work, stage).values()]
        return sorted(faults, key=lambda fault: fault.time)

    def _publish(self, role: str, files: Sequence[File]) -> list[Shard]:
        """Move the files of a role to their published names, except those that were moved before an interruption."""
        chosen = [file for file in files if file.role == role]
        shards = []
        for index, file in enumerate(chosen):
            name = file_name(role, index, len(chosen))
            if self.output.exists(file.path):
                self.output.move(file.path, name)
            elif not self.output.exists(name) or self.output.size(name) != file.bytes:
                raise UserError(f"{self.output}: {file.path} is gone; it was deleted during the run; use --overwrite")
            shards.append(Shard(name, file.rows, file.bytes, file.sha256))
        return shards


def refuse_empty(folder: Folder, manifest: Manifest) -> None:
    """UserError for a finished dataset without rows, which nothing can be made from."""
    if not manifest.rows and not manifest.kind.may_be_empty:
        raise UserError(nothing_left(folder, manifest.kind, ledgers_of(manifest.stages)))


def _run_figures(completions: Mapping[str, Sequence[Completion]], faults: list[Fault]) -> RunFigures:
    """Times, memory, throughput and failed attempts of the run, for the manifest. See docs/datasets.md."""
    done = [each for records in completions.values() for each in records]
    throughput: dict[str, list[Any]] = {}
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
    """What a stage had done over time: points [seconds, units, rows, tokens], from [began, 0, 0, 0] on.

    Seconds count only while a unit was being done, so the time between the runs of an interrupted stage is left out.
    Units from 0 to 10 s and 5 to 20 s, then, after an interruption, from 100 to 110 s: the spans are [0, 20] and
    [100, 110], the second with 20 s of work before it. With `began` = 0, units end at 10, 20 and 20 + 110 - 100 = 30 s.
    """
    if not completions:
        return []
    points: list[list[float]] = [[round(began, 2), 0, 0, 0]]
    # Disjoint spans of time in which units were done: [start, end, seconds of work before it].
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
    # Every step-th point, counted from the last one: of 0 1 2 3 4 5 with a step of 2, 0 and 1 3 5.
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
    """Documents by licence, from the stages' counters."""
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
            "in files; this is a bug in phrasemill, please report it"
        )


def _current(files: Iterable[File]) -> list[File]:
    """The files in order, each superseded file replaced by the one that supersedes it: a, b, b2 for b give a, b2."""
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


def _parts(
    record: str,
    inputs: Iterable[Input],
    models: Iterable[Mapping[str, Any]],
    options: Mapping[str, Any],
    stages: Iterable[Stage | StageReport],
) -> dict[str, Any]:
    """What a manifest says of what its fingerprint covers, in the form of `DatasetBuild.parts`."""
    return {
        "record": record,
        "inputs": [[each.kind, each.name, each.hash] for each in inputs],
        "models": [dict(each) for each in models],
        "options": {name: value for name, value in options.items() if name != "version"},
        **{stage.name: {"version": stage.version} for stage in stages},
    }


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between the parts of two datasets, as "window: 120 -> 60; input a.xml has changed"."""
    found = list[str]()
    for part in {**before, **now}:
        old, new = before.get(part), now.get(part)
        if part == "inputs":
            found += _input_changes(old or [], new or [])
        elif part == "models":
            for one, other in itertools.zip_longest(old or [], new or []):
                found += _changes(one or {}, other or {})
        elif isinstance(old, dict) or isinstance(new, dict):
            found += _changes(old or {}, new or {}, version=f"version of {part}")
        else:
            found += _changes({part: old}, {part: new})
    found = list(dict.fromkeys(found))
    more = [f"and {len(found) - _MOST_SHOWN} more"] if len(found) > _MOST_SHOWN else []
    return "; ".join(found[:_MOST_SHOWN] + more)


def _changes(old: Mapping[str, Any], new: Mapping[str, Any], *, version: str = "version") -> Iterator[str]:
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            yield f"{version if name == 'version' else name}: {_shown(old, name)} -> {_shown(new, name)}"


def _shown(values: Mapping[str, Any], name: str) -> str:
    text = json.dumps(values[name]) if name in values else "none"
    return text if len(text) <= 60 else text[:57] + "..."


def _input_changes(old: Sequence[Sequence[str]], new: Sequence[Sequence[str]]) -> Iterator[str]:
    """Inputs are [kind, name, hash]. The name of a dataset does not count."""

    def without(inputs: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> list[str]:
        known = {(kind, name if kind == "file" else "", hash) for kind, name, hash in others}
        return [
            printable(name) or "the dataset"
            for kind, name, hash in inputs
            if (kind, name if kind == "file" else "", hash) not in known
        ]

    gone, come = without(old, new), without(new, old)
    for name in dict.fromkeys([*gone, *come]):
        how = "is new" if name not in gone else "has changed" if name in come else "is left out"
        yield f"input {name} {how}"


def _remove(output: Folder) -> None:
    """Remove the files of a dataset, and nothing else that a user may have put into its folder.

    It may be cut off anywhere: the manifest, which promises the rest, goes first. The state and the lease stay.
    """
    kept = (BUILD_FILE, RUN_FILE)
    slices = [name for name in output.files(WORK) if name.endswith(".json") and name not in kept]
    for name in (MANIFEST, *slices, "README.md", "report.html"):
        output.remove(name)
    for name in (*(f"{WORK}/{each}" for each in (output / WORK).entries()), "data", *SIDES):
        output.delete(name)
