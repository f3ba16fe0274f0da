"""Checks of a whole dataset: its files, rows and manifest (`schemas/check.py` lists them)."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from schemas.checks import Broken, Violation, quoted
from schemas.columns import SCHEMA_VERSION, record_name
from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.json_values import json_value
from schemas.kind import Problem, Source
from schemas.kinds import FILTER_REASONS, KINDS, REJECT_REASONS, SIDES
from schemas.manifest import CHANGED, MANIFEST, Manifest, Shard, file_name, load_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file

_CARD = "README.md"

_COPY = "copy the dataset again, or write it again with --overwrite"
_ROWS = "write the dataset again with --overwrite; if that does not help, report it as a bug in phrasemill"
_STRANGER = "move it elsewhere: readers of data/*.parquet would read it, too"


class Finding(NamedTuple):
    """Something that is wrong: where, what (expected and found), and how to fix it."""

    place: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}; {self.remedy}"


def check_dataset(path: str, *, elsewhere: str | None = None, quick: bool = False) -> Iterator[Finding]:
    """Yields all findings on a dataset. UserError if there is no dataset in the directory.

    `elsewhere` is the directory of the dataset that its rows point into, if it is not where the manifest says. `quick`
    leaves out the checks that read data: hashes and rows.
    """
    folder = Folder(path)
    if not folder.exists(MANIFEST):
        load_manifest(folder)
    try:
        manifest = load_manifest(folder)
    except UserError as error:
        problem, _, remedy = str(error).removeprefix(f"{folder}/{MANIFEST}: ").rpartition("; ")
        yield Finding(f"{folder}/{MANIFEST}", problem, remedy)
        return
    dataset = Dataset(folder, manifest)
    malformed = [*manifest.problems(), *_odd(manifest)]
    yield from (_manifest_finding(folder, problem) for problem in malformed)
    if malformed:
        return
    yield from _check_manifest(dataset)
    yield from _check_ledgers(dataset)
    sound = []
    for shard, schema in _named(manifest):
        findings = list(_check_file(folder, shard, schema, quick=quick))
        yield from findings
        if not findings:
            sound.append(shard.path)
    yield from _check_strangers(dataset)
    if not quick:
        yield from _check_rejects(dataset, sound)
        yield from _check_sides(dataset, sound)
        yield from _check_rows(dataset, sound)
        if all(shard.path in sound for shard in manifest.shards):
            yield from _check_source(dataset, elsewhere)


def _named(manifest: Manifest) -> Iterator[tuple[Shard, pa.Schema]]:
    """The files that a manifest names, with the schema that each should have."""
    for shard in manifest.shards:
        yield shard, manifest.schema
    for side, shards in manifest.sides.items():
        for shard in shards:
            yield shard, SIDES.get(side, manifest.schema)


def _odd(manifest: Manifest) -> Iterator[str]:
    """What readers can do without: the names that phrasemill gives to files, and the options that checks read."""
    for name, shards in (*manifest.splits.items(), *manifest.sides.items()):
        for index, shard in enumerate(shards):
            path = file_name(name, index, len(shards))
            if shard.path not in (path, path.replace(".pq", ".parquet")):  # as datasets of before have it
                yield f"file {index:,} of {quoted(name)} is {quoted(shard.path)} instead of {quoted(path)}"
    paths = Counter(shard.path for shard, _ in _named(manifest))
    yield from (f"{quoted(path)} is named {n:,} times" for path, n in paths.items() if n > 1)
    for name in manifest.kind.options:
        if name not in manifest.options:
            yield f"options lack {name!r}"


def _check_manifest(dataset: Dataset) -> Iterator[Finding]:
    """What the manifest says twice agrees, and this version knows all of it."""
    folder, manifest = dataset.folder, dataset.manifest
    data = json_value(folder.read(MANIFEST))
    expected = json.loads(manifest.to_json())
    for name in ("columns", "rows"):
        if data.get(name) != expected[name]:
            yield _manifest_finding(folder, f"{name} are {_brief(data.get(name))} instead of {_brief(expected[name])}")
    if not folder.exists(_CARD):
        yield Finding(f"{folder}/{_CARD}", "is missing", _COPY)


def _manifest_finding(folder: Folder, problem: str) -> Finding:
    return Finding(f"{folder}/{MANIFEST}", problem, CHANGED)


def _brief(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) < 120 else text[:117] + "..."


def _check_ledgers(dataset: Dataset) -> Iterator[Finding]:
    """read = written + filtered + rejected in each stage, and the stages agree with each other and with the rows."""
    manifest = dataset.manifest
    for stage in manifest.stages:
        ledger = stage.ledger
        if ledger is None:
            continue
        if ledger.lost:
            yield _manifest_finding(
                dataset.folder,
                f"stage {stage.name}: the ledger of {ledger.counts} does not add up: {ledger.read:,} read, not "
                f"{ledger.read - ledger.lost:,} = {ledger.written:,} written + {ledger.filtered.total():,} filtered + "
                f"{ledger.rejected.total():,} rejected",
            )
        unknown = {*ledger.rejected} - {*REJECT_REASONS} | {*ledger.filtered} - {*FILTER_REASONS}
        for reason in sorted(unknown):
            yield _manifest_finding(dataset.folder, f"stage {stage.name}: there is no reason {quoted(reason)}")
    yield from _problems(dataset.folder, manifest.kind.sums(manifest), manifest_finding=CHANGED)


def _problems(folder: Folder, problems: Iterator[Problem], *, manifest_finding: str) -> Iterator[Finding]:
    for side, problem in problems:
        yield Finding(f"{folder}/{side or MANIFEST}", problem, _ROWS if side else manifest_finding)


def _check_file(folder: Folder, shard: Shard, schema: pa.Schema, *, quick: bool) -> Iterator[Finding]:
    """A Parquet file exists and has the bytes, sha256, schema and number of rows that it should have."""
    place = f"{folder}/{shard.path}"
    if not folder.exists(shard.path):
        yield Finding(place, "is missing; the manifest names it", _COPY)
        return
    size = folder.size(shard.path)
    if size != shard.bytes:
        yield Finding(place, f"has {size:,} bytes; the manifest says {shard.bytes:,}", _COPY)
    elif not quick and (found := folder.sha256(shard.path)) != shard.sha256:
        yield Finding(place, f"has the sha256 {found[:16]}...; the manifest says {shard.sha256[:16]}...", _COPY)
    try:
        with parquet_file(folder, shard.path) as reader:
            found_schema, rows = reader.schema_arrow, reader.metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        yield Finding(place, f"cannot be read as a Parquet file ({str(error).splitlines()[0]})", _COPY)
        return
    for problem in _schema_problems(found_schema, schema):
        yield Finding(place, problem, _COPY)
    if rows != shard.rows:
        yield Finding(place, f"has {rows:,} rows; the manifest says {shard.rows:,}", _COPY)


def _schema_problems(found: pa.Schema, expected: pa.Schema) -> Iterator[str]:
    if record_name(found) != record_name(expected):
        yield f"holds {record_name(found) or 'unnamed'} records, not {record_name(expected)} records"
    version = (found.metadata or {}).get(b"phrasemill.schema_version", b"none").decode()
    if version != str(SCHEMA_VERSION):
        yield f"has schema version {version}, not {SCHEMA_VERSION}"
    if found.names != expected.names:
        yield f"has the columns {', '.join(found.names)}, not {', '.join(expected.names)}"
        return
    for column, wanted in zip(found, expected, strict=True):
        if not column.equals(wanted):
            yield f"column {column.name} is {_field(column)}, not {_field(wanted)}"


def _field(field: pa.Field) -> str:
    return f"{field.type}{' or null' if field.nullable else ''}"


def _check_strangers(dataset: Dataset) -> Iterator[Finding]:
    """Parquet files that the manifest does not name."""
    named = {shard.path for shard, _ in _named(dataset.manifest)}
    for part in ("data", *SIDES):
        for name in dataset.folder.files(part, recursive=True):
            if name.endswith((".parquet", ".pq")) and name not in named:
                yield Finding(f"{dataset.folder}/{name}", "is not named in the manifest", _STRANGER)


def _check_rejects(dataset: Dataset, sound: Sequence[str]) -> Iterator[Finding]:
    """The rejects agree with the ledgers, for each stage and reason."""
    manifest = dataset.manifest
    shards = manifest.sides.get("rejects", [])
    if not all(shard.path in sound for shard in shards):
        return
    found: Counter[tuple[str, str]] = Counter()
    for shard in shards:
        for group in dataset.row_groups(shard, columns=["stage", "reason"]):
            pairs = zip(*(group.table.column(name).to_pylist() for name in ("stage", "reason")), strict=True)
            found.update(pairs)
    said = {
        (stage.name, reason): n
        for stage in manifest.stages
        if stage.ledger
        for reason, n in stage.ledger.rejected.items()
        if n
    }
    place = f"{dataset.folder}/rejects"
    for stage, reason in sorted({*found, *said}):
        rows, ledger = found[stage, reason], said.get((stage, reason), 0)
        if rows != ledger:
            problem = (
                f"{rows:,} rows of stage {quoted(stage)} have the reason {quoted(reason)}; its ledger says {ledger:,}"
            )
            yield Finding(place, problem, _ROWS)


def _check_sides(dataset: Dataset, sound: Sequence[str]) -> Iterator[Finding]:
    """The rules for each row of a side table."""
    for name, side in dataset.manifest.kind.sides.items():
        for shard in dataset.manifest.sides.get(name, []):
            if side.broken is None or shard.path not in sound:
                continue
            broken = _Gathered(dataset.folder, shard)
            for group in dataset.row_groups(shard):
                for each in side.broken(group.table):
                    broken.add(each, group.first_row)
            yield from broken.findings()


def _check_rows(dataset: Dataset, sound: Sequence[str]) -> Iterator[Finding]:
    """The rules of the kind for each row, in the shards that can be read."""
    manifest = dataset.manifest
    checks = manifest.kind.checks(manifest)
    for split, shards in manifest.splits.items():
        for shard in shards:
            if shard.path not in sound:
                continue
            broken = _Gathered(dataset.folder, shard)
            for group in dataset.row_groups(shard):
                try:
                    group.table.validate(full=True)
                except pa.ArrowInvalid as error:
                    yield Finding(f"{dataset.folder}/{shard.path}", f"holds invalid values ({error})", _ROWS)
                    return
                for check in checks:
                    for each in check.rows(group, split):
                        broken.add(each, group.first_row)
            yield from broken.findings()
    if not all(shard.path in sound for shard in manifest.shards):
        return
    for check in checks:
        for violation in check.end(dataset):
            yield _violation_finding(dataset.folder, violation)
    for check in checks:
        yield from _problems(dataset.folder, check.totals(), manifest_finding=_ROWS)


class _Gathered:
    """Collects the rules that rows of one shard break, each with its first row and the number of further rows."""

    def __init__(self, folder: Folder, shard: Shard) -> None:
        self._place = f"{folder}/{shard.path}"
        self._first: dict[str, str] = {}
        self._more: Counter[str] = Counter()

    def add(self, broken: Broken, first_row: int) -> None:
        if not len(broken.rows):
            return
        self._more[broken.rule] += len(broken.rows)
        if broken.rule not in self._first:
            row = int(broken.rows[0])
            self._first[broken.rule] = f"row {first_row + row:,}: {broken.rule}: {broken.show(row)}"

    def findings(self) -> Iterator[Finding]:
        for rule, problem in self._first.items():
            yield Finding(self._place, problem + _and_more(self._more[rule]), _ROWS)


def _violation_finding(folder: Folder, violation: Violation) -> Finding:
    problem = f"row {violation.rows[0]:,}: {violation.rule}" + (f": {violation.detail}" if violation.detail else "")
    return Finding(f"{folder}/{violation.shard.path}", problem + _and_more(len(violation.rows)), _ROWS)


def _check_source(dataset: Dataset, elsewhere: str | None) -> Iterator[Finding]:
    """Rows agree with the dataset that they were made from, if it can be found."""
    source = dataset.manifest.kind.source
    if source is None:
        return
    try:
        origin = find_source(dataset, source, elsewhere)
    except UserError:
        if elsewhere is not None:
            raise
        return
    here, there = len(dataset.shards()), len(origin.shards())
    if source.mirrors and here != there:
        yield Finding(str(dataset.folder), f"has {here:,} shards; {origin.folder} has {there:,}", _ROWS)
    for violation in source.check(dataset, origin):
        yield _violation_finding(dataset.folder, violation)


def find_source(dataset: Dataset, source: Source, elsewhere: str | None) -> Dataset:
    """The dataset that `dataset` was made from and points into. UserError if it is missing or was replaced by another.

    `elsewhere`: where it is, if it was moved. A dataset of another kind there is meant for another of the checked
    datasets and is not used.
    """
    wanted = {each.hash: each for each in dataset.manifest.inputs if each.kind == "dataset"}
    if elsewhere is not None and (found := Dataset.open(elsewhere)).manifest.record in source.records:
        if found.manifest.fingerprint not in wanted:
            rows = found.manifest.kind.rows
            raise UserError(
                f"{found.folder}: {dataset.folder} was not made from these {rows}, whose fingerprint is "
                f"{found.manifest.fingerprint[:16]}; give others with --source"
            )
        return found
    reason = "it was not made from a dataset"
    for each in wanted.values():
        try:
            folder = dataset.folder.joined(each.path)
            found = Dataset.open(folder.uri)
        except UserError as error:
            reason = str(error)
            continue
        if found.manifest.record in source.records:
            if found.manifest.fingerprint == each.hash:
                return found
            reason = f"{folder}: holds another dataset, with the fingerprint {found.manifest.fingerprint[:16]}"
    raise UserError(reason)


def _and_more(rows: int) -> str:
    return f" (and {rows - 1:,} rows more)" if rows > 1 else ""


def summary(path: str, *, elsewhere: str | None = None, quick: bool = False) -> str:
    """A line on a dataset without findings."""
    dataset = Dataset.open(path)
    manifest = dataset.manifest
    n = len(manifest.shards)
    shards = f"{n:,} shard{'s' if n != 1 else ''}"
    done = [f"{manifest.rows:,} {manifest.record} rows in {shards}", f"sha256 {manifest.sha256[:16]}", "ledgers add up"]
    if quick:
        done.append("hashes and rows not checked (--quick)")
    elif source := manifest.kind.source:
        try:
            found = find_source(dataset, source, elsewhere).folder
            done.append(f"{source.agrees} agree with {_near(str(found))}")
        except UserError as error:
            done.append(f"{source.agrees} not checked: {error}; give the {KINDS[source.record].rows} with --source")
    return f"{dataset.folder}: ok: " + ", ".join(done)


def _near(path: str) -> str:
    """A local path, relative to the working directory if that is shorter."""
    return path if "://" in path else min(os.path.relpath(path), os.path.abspath(path), key=len)
