"""How a run goes, seen from another terminal or machine.

python -m pipelines.status out/contexts
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipelines.hold import holder, is_alive, read_run
from pipelines.progress import RunFigures, bar_columns, duration
from schemas.errors import UserError
from schemas.manifest import is_dataset, read_manifest
from schemas.storage import Folder

DESCRIPTION = "How a run goes, seen from another terminal or machine."
RUNNING, ENDED = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 the dataset is finished or a run is at work on it, 1 a run has ended early, 2 neither."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.status", description=DESCRIPTION)
    parser.add_argument("dataset", help="the --output of the run, or a dataset beside it")
    parser.add_argument("--json", action="store_true", help="for machines")
    chosen = parser.parse_args(arguments)
    folder = Folder(chosen.dataset)
    try:
        run = read_run(folder)
        if run is None or is_dataset(folder):
            return _finished(folder, as_json=chosen.json)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    alive = is_alive(run)
    if chosen.json:
        print(json.dumps({**run, "alive": alive}, indent=1))
    else:
        print("\n".join(report(folder, run, alive=alive, now=time.time())))
    return RUNNING if alive else ENDED


def _finished(folder: Folder, *, as_json: bool) -> int:
    if not is_dataset(folder) and folder.entries():
        raise UserError(f"{folder}: no run has begun here, or what it left was deleted")
    manifest = read_manifest(folder)
    finished = manifest.run["finished"]
    if as_json:
        print(json.dumps({"state": "finished", "finished": finished, "rows": manifest.rows}, indent=1))
    else:
        print(f"{folder}: finished at {finished}, {manifest.rows:,} {manifest.record} records; see report.html in it")
    return RUNNING


def report(folder: Folder, run: Mapping[str, Any], *, alive: bool, now: float) -> Iterator[str]:
    """A run in lines of text."""
    figures = RunFigures.from_json(dict(run))
    if alive:
        yield f"{folder}: {holder(run)}"
    else:
        state = "it ended without a word" if run["state"] == "running" else run["state"]
        yield f"{folder}: no run is at work; the last, of process {run['pid']} on {run['host']}, {_ended(state)}"
        now = run["beat"]  # its figures are of that moment
    rows = [(stage.name, *bar_columns(stage, figures.memory, now=now).values()) for stage in figures.stages]
    if rows:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
            yield "  " + "  ".join(cells).rstrip()
    if alive:
        for each in figures.at_work:
            done = each.tally.read or each.tally.rows
            yield f"  worker {each.pid}: unit {each.unit}, {done:,} done of it, {each.memory / 1e9:.1f} GB"
    faults = sum(stage.faults for stage in figures.stages)
    ago = duration(max(now - run["started"], 0))
    yield f"  {ago} since its start, {figures.peak_memory / 1e9:.1f} GB at most, {faults} failed attempts"
    if not alive:
        yield f"to go on: {run['command']}"


def _ended(state: str) -> str:
    return {"stopped": "was stopped"}.get(state, state)


if __name__ == "__main__":
    sys.exit(main())
