"""The report as one HTML page that needs no network and no other file.

The content of a corpus is untrusted. The template escapes all of it. Numbers for the charts are JSON in a block that
browsers do not run. The only scripts that run are the two whose hashes are in the content security policy, which allows
no requests.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import shlex
from collections.abc import Sequence
from importlib import resources
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from schemas.manifest import Manifest, RunFigures
from schemas.shown import cut
from schemas.storage.folder import Folder
from transforms.reports import history
from transforms.reports.figures import duration, plain, share, size
from transforms.reports.rejects import Refusal, Reject, ledgers_of, refusals, reject_examples, reject_files
from transforms.reports.statistics import Categories, Distribution, Histogram, Ranks, survey

_COURSE = 4
"""A stage with fewer points than this has no curve over time, only totals."""
_EXAMPLES = 3
_ROWS_OF_TABLE = 40
_TEXT = 300


class Figure(NamedTuple):
    """A chart: what `charts.js` draws, a description in words, and its numbers as a table."""

    title: str
    summary: str
    label: str
    chart: dict[str, Any] | None
    columns: tuple[str, str]
    rows: list[tuple[str, str]]


class Flow(NamedTuple):
    """A stage and the parts of what it read. There is no chart if it wrote all of it, or has no ledger."""

    step: history.Step
    branches: list[history.Branch]
    chart: dict[str, Any] | None
    label: str


class Rejects(NamedTuple):
    """The number of rejects of one stage and reason in one dataset, and the first of them."""

    dataset: str
    refusal: Refusal
    examples: list[Reject]


def dataset_report(folder: Folder, manifest: Manifest) -> str:
    """The text of `report.html` for a finished dataset, whose shards are in the folder.

    Time and size are bounded: a sample of a large dataset's row groups is read, texts and tables are cut.
    """
    chain = history.lineage(folder, manifest)
    found = survey(folder, manifest)
    flows = [_flow(step) for step in history.steps(chain)]
    figures = [_figure(each) for each in found.distributions]
    paces = {of.fingerprint: history.paces(made.name, of) for made, of in chain}
    own = paces[manifest.fingerprint]
    courses = [each for each in (_course("rows", own), _course("tokens", own)) if each]
    local = folder.is_local
    drawn: list[Flow | Figure] = [*flows, *figures, *courses]
    charts = [each.chart for each in drawn if each.chart]
    for number, chart in enumerate(charts):
        chart["id"] = f"chart-{number}"
    scripts = [_file("echarts/echarts.min.js"), _file("charts.js")]
    return _template().render(
        name=folder.name,
        is_local=local,
        place=folder.path if local else folder.uri,
        data_place=folder.at("data") if local else (folder / "data").uri,
        split=next((split for split, files in manifest.splits.items() if any(each.rows for each in files)), ""),
        views=manifest.kind.views,
        about=manifest.kind.about,
        manifest=manifest,
        key_figures=_key_figures(manifest, [of.run for _, of in chain]),
        inputs=history.raw_inputs(chain),
        chain=chain[:-1],
        licences=sorted(manifest.licences.items(), key=lambda each: (-each[1], each[0])),
        funnel=_funnel(flows),
        flows=flows,
        notes=[note for _, of in chain for note in of.notes],
        survey=found,
        failed_attempts=manifest.run.get("faults", [])[:_ROWS_OF_TABLE],
        figures=figures,
        samples=found.samples,
        rejects=[each for folder, manifest in chain for each in _rejects(folder, manifest)],
        courses=courses,
        paces=[
            each
            for found in paces.values()
            for each in found
            if each.wall_seconds or each.worker_seconds or each.total_rows
        ],
        options={name: _value(value) for name, value in manifest.options.items()},
        models=[{name: _value(value) for name, value in each.items()} for each in manifest.models],
        columns=[(each.name, each.metadata[b"description"].decode()) for each in manifest.schema],
        charts=charts,
        style=Markup(_file("style.css")),
        scripts=[Markup(each) for each in scripts],
        hashes=[_csp_hash(each) for each in scripts],
    )


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"count": lambda number: f"{number:,}", "size": size, "share": share, "cut": _cut}
    environment.filters |= {"plain": plain, "duration": duration}
    environment.filters["literal"] = lambda text: json.dumps(text, ensure_ascii=False)
    environment.filters["shell"] = shlex.quote
    environment.filters["is_number"] = lambda text: text.replace(",", "").isdecimal()
    environment.filters["rows"] = lambda number: "1 row" if number == 1 else f"{number:,} rows"
    return environment.from_string(_file("template.html"))


@functools.cache
def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _csp_hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _cut(text: str, most: int = _TEXT) -> str:
    return cut(text, most)


def _value(value: Any) -> str:
    return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True), 600)


def _key_figures(manifest: Manifest, runs: Sequence[RunFigures]) -> list[tuple[str, str]]:
    """`runs`: of the dataset and of those that it was made from, whose times are added up."""
    documents = sum(manifest.licences.values())
    work = sum(sum(run.get("seconds", {}).values()) for run in runs)
    clock = sum(sum(run.get("wall_seconds", {}).values()) for run in runs)
    most = max(run.get("peak_memory", 0) for run in runs)
    found = [
        ("rows", f"{manifest.rows:,}"),
        ("documents", f"{documents:,}" if documents != manifest.rows else ""),
        ("tokens", f"{max(each.counters.get('tokens', 0) for each in manifest.stages):,}" if manifest.stages else ""),
        ("on disk", size(sum(each.bytes for each in manifest.shards))),
        ("shards", f"{len(manifest.shards):,}"),
        ("worker time", duration(work) if work else ""),
        ("clock time", duration(clock) if clock else ""),
        ("largest worker", size(most) if most else ""),
        ("finished", manifest.run.get("finished", "")[:16].replace("T", " ") + " UTC"),
    ]
    return [(name, text) for name, text in found if text not in ("", "0") or name == "rows"]


# Charts


def _flow(step: history.Step) -> Flow:
    ledger = step.ledger
    if ledger is None:
        return Flow(step, [], None, "")
    found = history.branches(ledger)
    chart = {
        "kind": "flow",
        "counts": ledger.counts,
        "read": ledger.read,
        "branches": [
            {
                "kind": each.kind,
                "name": plain(each.reason) or "written",
                "meaning": each.meaning,
                "count": each.number,
                "share": share(each.number, ledger.read),
            }
            for each in found
            if each.number
        ],
    }
    parts = ", ".join(f"{each.number:,} {each.kind} {plain(each.reason)}".strip() for each in found)
    label = f"{step.stage} read {ledger.read:,} {ledger.counts}: {parts}"
    return Flow(step, found, chart if ledger.written != ledger.read else None, label)


def _funnel(flows: Sequence[Flow]) -> list[tuple[str, int]]:
    """(unit, number) for what the first stage read, and then wherever the unit or the number changes."""
    found: list[tuple[str, int]] = []
    for flow in flows:
        ledger = flow.step.ledger
        if ledger is None:
            continue
        if not found or found[-1] != (ledger.counts, ledger.read):
            found.append((ledger.counts, ledger.read))
        if ledger.written != ledger.read:
            found.append((ledger.counts, ledger.written))
    return found


def _figure(found: Distribution) -> Figure:
    if isinstance(found, Histogram):
        if found.least == found.most:
            return Figure(found.title, f"{found.least:,} {found.unit} throughout", "", None, ("", ""), [])
        summary = (
            f"{found.least:,} to {found.most:,} {found.unit}, median {found.median:,.0f}, mean {found.mean:,.1f}; "
            f"95 % have at most {found.p95:,.0f}"
        )
        labels, counts = [each.label for each in found.bins], [each.times for each in found.bins]
        rows = [(label, f"{count:,}") for label, count in zip(labels, counts, strict=True)]
        chart = {
            "kind": "histogram",
            "unit": found.unit,
            "labels": labels,
            "starts": [each.start for each in found.bins],
            "is_open": found.bins[-1].end is None,
            "counts": counts,
        }
        return Figure(found.title, summary, f"{found.title}: {summary}", chart, (found.unit, "count"), rows)
    if isinstance(found, Ranks):
        first, last = found.points[0], found.points[-1]
        summary = f"{first[1]:,} {found.unit} at rank {first[0]:,}, {last[1]:,} at rank {last[0]:,}"
        step = max(1, -(-len(found.points) // _ROWS_OF_TABLE))
        rows = [(f"{rank:,}", f"{frequency:,}") for rank, frequency in found.points[::step]]
        chart = {"kind": "ranks", "unit": found.unit, "points": found.points}
        label = f"{found.title}, both logarithmic: {summary}"
        return Figure(found.title, summary, label, chart, ("rank", found.unit), rows)
    return _bars(found)


def _bars(found: Categories) -> Figure:
    total = sum(count for _, count in found.values) + found.others
    values = [(_cut(value, 80) or "(empty)", count) for value, count in found.values]
    if found.others:
        values.append((f"{found.distinct - len(values):,} others", found.others))
    rows = [(value, f"{count:,} ({share(count, total)})") for value, count in values]
    if found.distinct == 1:
        return Figure(found.title, f"{values[0][0]} throughout", "", None, ("", found.unit), [])
    summary = f"{found.distinct:,} distinct; {values[0][0]} has {share(values[0][1], total)} of the {found.unit}"
    chart = {
        "kind": "bars",
        "unit": found.unit,
        "labels": [value for value, _ in values],
        "counts": [count for _, count in values],
        "shares": [share(count, total) for _, count in values],
    }
    return Figure(found.title, summary, f"{found.title}: {summary}", chart, ("", found.unit), rows)


def _course(unit: str, paces: Sequence[history.Pace]) -> Figure | None:
    """The rates of the stages over the time of the run; None if the manifest has too few points."""
    series = [(each.stage, each.rows if unit == "rows" else each.tokens) for each in paces]
    drawn = [{"name": stage, "points": points} for stage, points in series if len(points) >= _COURSE]
    if not drawn:
        return None
    title = f"{unit.capitalize()} a second"
    label = f"{title} over the time of the run, of the stages {', '.join(str(each['name']) for each in drawn)}"
    return Figure(title, "", label, {"kind": "course", "unit": f"{unit}/s", "series": drawn}, ("", ""), [])


def _rejects(folder: Folder, manifest: Manifest) -> list[Rejects]:
    """The rejects of a dataset; without examples if its files of rejects were deleted."""
    faults = [each for each in refusals(ledgers_of(manifest.stages)) if each.is_fault]
    try:
        examples = reject_examples(folder, reject_files(manifest), faults, most=_EXAMPLES)
    except FileNotFoundError:
        examples = {}
    return [Rejects(folder.name, each, examples.get((each.stage, each.reason), [])) for each in faults]
