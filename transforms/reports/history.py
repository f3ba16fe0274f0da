"""How a dataset was made, from its manifest and those of the datasets that it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from schemas.errors import UserError
from schemas.kinds import FILTER_REASONS, REJECT_REASONS
from schemas.manifest import Input, Ledger, Manifest, read_manifest
from schemas.storage.folder import Folder

_DATASETS = 16
_PARTS = 24


class Step(NamedTuple):
    """The counts of a stage; `dataset` is the name of the dataset that the stage belongs to.

    `counters` are for a stage without a ledger, such as the number that it selected; empty otherwise.
    """

    dataset: str
    stage: str
    ledger: Ledger | None
    counters: dict[str, int]


class Branch(NamedTuple):
    """A part of what a stage read: what was written (`reason` is empty), or filtered or rejected for a reason."""

    kind: str  # "written", "filtered" or "rejected"
    reason: str
    meaning: str
    number: int


class Pace(NamedTuple):
    """The speed of a stage of a dataset: its wall time, the seconds of its workers (0 if unknown), units, rows, tokens.

    `rows` and `tokens` are rates: (seconds since the run began, number per second) in equal parts of the time.
    """

    dataset: str
    stage: str
    wall_seconds: float
    worker_seconds: float
    total_units: int
    total_rows: int
    total_tokens: int
    rows: list[tuple[float, float]]
    tokens: list[tuple[float, float]]


def lineage(folder: Folder, manifest: Manifest) -> list[tuple[Folder, Manifest]]:
    """The datasets that this one was made from, as far as they can be found, and this one last; each once.

    A dataset that was moved or replaced (its fingerprint differs) is left out.
    """
    found: dict[str, tuple[Folder, Manifest]] = {}

    def visit(folder: Folder, manifest: Manifest) -> None:
        for each in manifest.inputs:
            if each.kind == "dataset" and each.hash not in found and len(found) < _DATASETS:
                try:
                    before = folder.joined(each.path)
                    made_from = read_manifest(before)
                except (UserError, OSError):
                    continue
                if made_from.fingerprint == each.hash:
                    visit(before, made_from)
        found.setdefault(manifest.fingerprint, (folder, manifest))

    visit(folder, manifest)
    return list(found.values())


def raw_inputs(chain: Sequence[tuple[Folder, Manifest]]) -> list[Input]:
    """The raw files that a chain of datasets was made from."""
    found = {(each.name, each.hash): each for _, manifest in chain for each in manifest.inputs if each.kind == "file"}
    return [found[key] for key in sorted(found)]


def steps(chain: Sequence[tuple[Folder, Manifest]]) -> list[Step]:
    """The stages of a chain of datasets that read or counted something, in order."""
    return [
        Step(folder.name, stage.name, stage.ledger, {} if stage.ledger else stage.counters)
        for folder, manifest in chain
        for stage in manifest.stages
        if (stage.ledger.read if stage.ledger else stage.counters)
    ]


def branches(ledger: Ledger) -> list[Branch]:
    """The parts of what was read: written, filtered, rejected, the most frequent reasons first."""
    found = [Branch("written", "", "", ledger.written)]
    for kind, counts, meanings in (
        ("filtered", ledger.filtered, FILTER_REASONS),
        ("rejected", ledger.rejected, REJECT_REASONS),
    ):
        ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        found += [Branch(kind, reason, meanings.get(reason, ""), count) for reason, count in ordered if count]
    return found


def paces(dataset: str, manifest: Manifest) -> list[Pace]:
    """The pace of each stage of a dataset, from its manifest's figures of the run, of which older ones have fewer."""
    wall, worker = manifest.run.get("wall_seconds", {}), manifest.run.get("seconds", {})
    points = manifest.run.get("throughput", {})
    found = []
    for stage in manifest.stages:
        course = points.get(stage.name, [])
        last = course[-1] if course else (0, stage.units, 0, 0)
        found.append(
            Pace(
                dataset,
                stage.name,
                wall.get(stage.name, 0),
                worker.get(stage.name, 0),
                last[1],
                last[2],
                last[3],
                _rates(course, 2),
                _rates(course, 3),
            )
        )
    return found


def _rates(course: Sequence[Sequence[float]], column: int) -> list[tuple[float, float]]:
    """The rates in equal parts of a stage's time, at their middles; empty if the column has no counts.

    Units end in bursts, one for each worker. So the rate between two points is taken as constant, and there are fewer
    parts than points. Here are 2 parts of 2 s. At 2 s, half way between 2 rows at 1 s and 6 rows at 3 s, it is 4 rows.

    >>> _rates([(0, 0, 0), (1, 1, 2), (3, 2, 6), (4, 3, 7)], 2)
    [(1.0, 2.0), (3.0, 1.5)]
    """
    if len(course) < 2 or course[-1][0] <= course[0][0] or not course[-1][column]:
        return []
    edges = np.linspace(course[0][0], course[-1][0], num=min(len(course) // 2, _PARTS) + 1)
    done = np.interp(edges, [point[0] for point in course], [point[column] for point in course])
    rates = np.diff(done) / np.diff(edges)
    middles = (edges[1:] + edges[:-1]) / 2
    return [(round(float(at), 2), round(float(rate), 3)) for at, rate in zip(middles, rates, strict=True)]
