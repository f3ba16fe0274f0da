"""Shows what a run rejected and filtered, for `python -m pipelines.rejects`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.table import Table

from pipelines.engine.dataset_build import BUILD_FILE, Begun
from pipelines.engine.stage import REJECTS_ROLE, WORK, Completion
from schemas.commands import typed
from schemas.errors import UserError
from schemas.kinds import REJECT_REASONS
from schemas.manifest import Ledger, is_dataset, read_manifest
from schemas.storage.folder import Folder
from transforms.reports.figures import printable, share, text_of
from transforms.reports.history import lineage
from transforms.reports.rejects import Refusal, Reject, ledgers_of, refusals, reject_examples, reject_files

if TYPE_CHECKING:
    from pipelines.rejects import Rejects


class Found(NamedTuple):
    """Whether the dataset in a directory is finished, its ledgers by stage, and its files of rejects.

    `before`: the datasets that it was made from, with their numbers of rejects, if they have any.
    """

    is_finished: bool
    ledgers: dict[str, Ledger]
    files: list[str]
    before: list[tuple[str, int]]


def run(chosen: Rejects) -> int:
    folder = Folder(chosen.dataset)
    try:
        found = _find(folder)
        if chosen.reason is not None:
            _check("reason", chosen.reason, REJECT_REASONS)
        if chosen.stage is not None:
            _check("stage", chosen.stage, found.ledgers)
        shown = [
            each
            for each in refusals(found.ledgers)
            if chosen.stage in (None, each.stage) and (chosen.reason is None or each.reason == chosen.reason)
        ]
        faults = [each for each in shown if each.is_fault]
        rules = [each for each in shown if not each.is_fault and chosen.reason is None]
        examples = reject_examples(folder, found.files, faults, most=chosen.examples)
    except FileNotFoundError as error:
        raise UserError(f"{folder}: changed while it was read ({error}); try again") from error
    if chosen.json:
        print(json.dumps(_as_json(folder, found, faults, rules, examples), indent=1))
    else:
        print("\n".join(_lines(folder, found, faults, rules, examples)))
    return 0


def _check(what: str, given: str, known: Collection[str]) -> None:
    if given not in known:
        near = difflib.get_close_matches(given, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "there are " + ", ".join(sorted(known))
        raise UserError(f"--{what} {given}: there is no such {what}; {hint}")


def _find(folder: Folder) -> Found:
    """What is found in a directory. UserError if it is neither a dataset nor has an unfinished run."""
    if is_dataset(folder):
        manifest = read_manifest(folder)
        before = [
            (str(each), sum(ledger.rejected.total() for ledger in ledgers_of(made_from.stages).values()))
            for each, made_from in lineage(folder, manifest)[:-1]
        ]
        return Found(True, ledgers_of(manifest.stages), reject_files(manifest), [each for each in before if each[1]])
    if not folder.exists(BUILD_FILE):
        raise UserError(f"{folder}: neither a dataset nor an unfinished run; give the --output of a run")
    found = Found(False, {}, [], [])
    begun = folder.read_json(BUILD_FILE, Begun, remedy="start the run again with --overwrite")
    for stage in filter(str.isidentifier, begun.parts):  # the stages in order, among other things
        for completion in _completions(folder, stage):
            if completion.ledger:
                found.ledgers[stage] = found.ledgers.get(stage, Ledger(completion.ledger.counts)) + completion.ledger
            found.files.extend(each.path for each in completion.files if each.role == REJECTS_ROLE and each.rows)
    return found


def _completions(folder: Folder, stage: str) -> Iterator[Completion]:
    """The completion records of a stage. If a unit has two, the first by name counts."""
    done: dict[str, str] = {}
    for name in folder.files(f"{WORK}/{stage}/done"):
        if name.endswith(".json"):
            done.setdefault(name.rpartition("/")[2].split(".")[0], name)
    for name in done.values():
        yield folder.read_json(name, Completion, remedy="delete this file and go on with --resume")


_Examples = Mapping[tuple[str, str], Sequence[Reject]]


def _lines(
    folder: Folder, found: Found, faults: Sequence[Refusal], rules: Sequence[Refusal], examples: _Examples
) -> Iterator[str]:
    yield f"{folder}: {'finished' if found.is_finished else 'unfinished; of the units that are done'}"
    for title, refused in (("rejected", faults), ("filtered", rules)):
        yield ""
        if refused:
            yield from _table(title, refused)
        else:
            yield f"{title}: nothing"
    for each in faults:
        rejects = examples[each.stage, each.reason]
        if rejects:
            yield ""
            yield f"{each.reason} in {each.stage}, {len(rejects):,} of {each.number:,}:"
        for reject in rejects:
            yield f"  {printable(reject.source)}, {printable(reject.position)}"
            yield from (f"      {printable(text)}" for text in (reject.excerpt, reject.exception) if text)
    if found.before:
        yield ""
        yield "rejects of the datasets that it was made from:"
        yield from (f"  {number:>9,}  {typed('pipelines.rejects', place)}" for place, number in found.before)


def _table(title: str, refused: Sequence[Refusal]) -> Sequence[str]:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("stage", title, "count", "share", "meaning"):
        table.add_column(name, justify="right" if name in ("count", "share") else "left")
    for each in refused:
        table.add_row(each.stage, each.reason, f"{each.number:,}", share(each.number, each.read), each.meaning)
    return text_of(table)


def _as_json(
    folder: Folder, found: Found, faults: Sequence[Refusal], rules: Sequence[Refusal], examples: _Examples
) -> dict[str, Any]:
    def described(each: Refusal) -> dict[str, Any]:
        named = {"stage": each.stage, "reason": each.reason, "meaning": each.meaning, "number": each.number}
        return {**named, "read": each.read, "counts": each.counts}

    return {
        "dataset": str(folder),
        "finished": found.is_finished,
        "rejected": [
            {**described(each), "examples": [reject._asdict() for reject in examples[each.stage, each.reason]]}
            for each in faults
        ],
        "filtered": [described(each) for each in rules],
        "made_from": [{"dataset": place, "rejects": number} for place, number in found.before],
    }
