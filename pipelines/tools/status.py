"""Shows the progress of a run from its lease, for `python -m pipelines.status`."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from pipelines.engine.lease import Mark, holder, is_alive, read_run, read_slices
from pipelines.engine.progress import RunFigures, bar_columns
from pipelines.engine.stage import Slice, Work
from schemas.errors import UserError
from schemas.manifest import is_dataset, read_manifest
from schemas.storage.folder import Folder
from transforms.reports.figures import duration, printable, size, text_of, whole_percent

if TYPE_CHECKING:
    from pipelines.status import Status

RUNNING, ENDED = 0, 1


def run(chosen: Status) -> int:
    folder = Folder(chosen.dataset)
    try:
        return _show(folder, as_json=chosen.json)
    except ValueError as error:
        raise UserError(f"{folder}: the figures of its run were cut short or changed ({error})") from error


def _show(folder: Folder, *, as_json: bool) -> int:
    last, slices = read_run(folder), read_slices(folder)
    if is_dataset(folder) or (last is None and not slices):
        return _finished(folder, as_json=as_json)
    if last is None or (not is_alive(last) and any(each["started"] > last["started"] for each in slices.values())):
        return _slices(folder, slices, as_json=as_json)
    alive = is_alive(last)
    if as_json:
        print(json.dumps({**last, "alive": alive}, indent=1))
    else:
        print("\n".join(report(folder, last, alive=alive, now=time.time())))
    return RUNNING if alive else ENDED


def _slices(folder: Folder, marks: Mapping[Slice, Mark], *, as_json: bool) -> int:
    """Print the progress of the slices of `--units`, each from its lease, and of the whole stage."""
    figures = [RunFigures.from_json(each) for each in marks.values()]
    stage = next((each.stages[-1].name for each in figures if each.stages), "")
    work = Work(folder)
    planned = stage and work.is_planned(stage)
    done, units = (len(work.finished(stage)), len(work.units(stage))) if planned else (0, 0)
    alive = {part for part, mark in marks.items() if is_alive(mark)}
    if as_json:
        found = [{**mark, "alive": part in alive} for part, mark in marks.items()]
        print(json.dumps({"alive": bool(alive), "stage": stage, "units": units, "done": done, "slices": found}))
    else:
        print("\n".join(slices_report(folder, marks, alive, stage, done, units, now=time.time())))
    return RUNNING if alive else ENDED


def slices_report(
    folder: Folder,
    marks: Mapping[Slice, Mark],
    alive: Collection[Slice],
    stage: str,
    done: int,
    units: int,
    *,
    now: float,
) -> Iterator[str]:
    """Slices in lines of text: those at work, then those that ended early."""
    progress = f", {done:,} of {units:,} units of {stage} are done" if units else ""
    well = sum(mark["state"] == "done" for mark in marks.values())
    at_work = f"{len(alive):,} slice{' is' if len(alive) == 1 else 's are'} at work"
    yield f"{folder}: {at_work}, {well:,} ended well{progress}"
    rows = []
    for part, mark in marks.items():
        if part not in alive:
            continue
        figures = RunFigures.from_json(mark)
        columns = bar_columns(figures.stages[-1], figures.memory, now=now).values() if figures.stages else ("",) * 7
        rows.append((f"slice {part}", f"process {mark['pid']} on {mark['host']}", *columns))
    yield from _table(rows)
    for part, mark in marks.items():
        if part not in alive and mark["state"] != "done":
            yield f"  slice {part}, process {mark['pid']} on {mark['host']}, {_ended(mark['state'])}"
            if mark["command"]:
                yield f"    to go on: {mark['command']}"
    newest = max(marks.values(), key=lambda mark: mark["started"])
    yield f"to finish{', when no slice is at work any more' if alive else ''}: {newest.get('finish', '')}"


def _finished(folder: Folder, *, as_json: bool) -> int:
    if not is_dataset(folder) and folder.entries():
        raise UserError(f"{folder}: no run has begun here, or what it left was deleted")
    manifest = read_manifest(folder)
    finished = printable(manifest.run.get("finished", "an unknown time"))
    if as_json:
        print(json.dumps({"state": "finished", "finished": finished, "rows": manifest.rows}, indent=1))
    else:
        print(f"{folder}: finished at {finished}, {manifest.rows:,} {manifest.record} records; see report.html in it")
    return RUNNING


def report(folder: Folder, run: Mark, *, alive: bool, now: float) -> Iterator[str]:
    """The progress of a run in lines of text."""
    figures = RunFigures.from_json(run)
    if alive:
        yield f"{folder}: {holder(run)}"
    else:
        ended = _ended(run["state"])
        yield f"{folder}: no run is at work; the last, of process {run['pid']} on {run['host']}, {ended}"
        now = run["beat"]  # its figures are of that moment
    rows = [(stage.name, *bar_columns(stage, figures.memory, now=now).values()) for stage in figures.stages]
    yield from _table(rows)
    if alive:
        for each in figures.at_work:
            done = each.busy_with or f"{whole_percent(each.fraction)} done"
            yield f"  worker {each.pid}: unit {each.unit}, {done}, {size(each.memory)}"
        if doing := figures.now_doing(now):
            yield f"  {doing}"
    faults = sum(stage.faults for stage in figures.stages)
    ago = duration(max(now - run["started"], 0))
    yield f"  {ago} since its start, {size(figures.peak_memory)} at most, {faults} failed attempts"
    if not alive and run["command"]:
        yield f"to go on: {run['command']}"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows as lines, the first column left-aligned, the others right-aligned."""
    table = Table.grid(padding=(0, 2))
    for place in range(len(rows[0]) if rows else 0):
        table.add_column(justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    yield from (f"  {line}" for line in text_of(table) if rows)


def _ended(state: str) -> str:
    if state.startswith("stopped"):
        return f"was {state}"
    return "ended unexpectedly" if state == "running" else state
