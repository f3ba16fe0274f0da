"""What a run rejected and filtered: counts from its ledgers, and examples of its rejects, in bounded time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from schemas.commands import typed
from schemas.kind import Kind
from schemas.kinds import FILTER_REASONS, REJECT_REASONS
from schemas.manifest import Ledger, Manifest, StageReport
from schemas.reasons import REJECTS, options_in
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file

_FILES = 64


class Reject(NamedTuple):
    """A row of `schemas.reasons.REJECTS`."""

    stage: str
    reason: str
    source: str
    position: str
    excerpt: str
    exception: str


class Refusal(NamedTuple):
    """The number, of `read`, that a stage left out for a reason: by a rule or, if `is_fault`, for a fault."""

    stage: str
    reason: str
    is_fault: bool
    number: int
    read: int
    counts: str

    @property
    def meaning(self) -> str:
        return (REJECT_REASONS if self.is_fault else FILTER_REASONS).get(self.reason, "")

    @property
    def options(self) -> list[str]:
        """The options that decide what is left out for this reason."""
        return options_in(self.meaning)


def refusals(ledgers: Mapping[str, Ledger]) -> list[Refusal]:
    """The refusals of ledgers: stages in the order given, rejected before filtered, the most frequent reason first."""
    return [
        Refusal(stage, reason, is_fault, number, ledger.read, ledger.counts)
        for stage, ledger in ledgers.items()
        for is_fault, counts in ((True, ledger.rejected), (False, ledger.filtered))
        for reason, number in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        if number
    ]


def nothing_left(folder: Folder, kind: Kind, ledgers: Mapping[str, Ledger]) -> str:
    """The error for a dataset without rows: what left them out, and which options decide that."""
    found = refusals(ledgers)
    said = [
        f"{each.stage} {'rejected' if each.is_fault else 'filtered'} {each.number:,} of {each.read:,} {each.counts} as "
        + " ".join([each.reason, *([f"({', '.join(each.options)})"] if each.options else [])])
        for each in found
    ] or [f"{stage} read {ledger.read:,} {ledger.counts}" for stage, ledger in ledgers.items()][:1]
    look = f"; look at them: {typed('pipelines.rejects', folder)}" if found else ""
    change = "change these options, or " if any(each.options for each in found) else ""
    return (
        f"{folder}: no {kind.rows} are left of the input: {', '.join(said) or 'it is empty'}{look}; "
        f"{change}give other input with --overwrite"
    )


def ledgers_of(stages: Iterable[StageReport]) -> dict[str, Ledger]:
    """The ledgers of a dataset by stage."""
    return {stage.name: stage.ledger for stage in stages if stage.ledger}


def reject_files(manifest: Manifest) -> list[str]:
    """The files of a dataset that have rejects."""
    return [each.path for each in manifest.sides.get("rejects", []) if each.rows]


def reject_examples(
    folder: Folder, files: Iterable[str], faults: Sequence[Refusal], *, most: int
) -> dict[tuple[str, str], list[Reject]]:
    """The first rejects of each (stage, reason) of the faults, at most `most` of each.

    `files` are Parquet files of the folder, of which at most 64 are opened. Reading stops when all are found.
    """
    wanted = {(each.stage, each.reason): min(each.number, most) for each in faults}
    found: dict[tuple[str, str], list[Reject]] = {key: [] for key in wanted}
    for name in list(files)[:_FILES]:
        with parquet_file(folder, name, REJECTS) as reader:
            for batch in reader.iter_batches(batch_size=4096):
                if all(len(found[key]) >= number for key, number in wanted.items()):
                    return found
                for row in batch.to_pylist():
                    reject = Reject(**row)
                    kind = found.get((reject.stage, reject.reason))
                    if kind is not None and len(kind) < most:
                        kind.append(reject)
    return found
