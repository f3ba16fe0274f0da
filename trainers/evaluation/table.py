"""The table of an evaluation beside published scores, as text, Markdown and JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trainers.evaluation.published import PAPERS, Published, figures
from trainers.evaluation.resampling import Difference, Spread
from trainers.evaluation.task import Measure, Task
from transforms.reports.figures import text_of

WIDTH = 120
_HEADING = ("task", "measure", "score", "±", "95 %", "published", "of", "gap")
_AGAINST = ("task", "measure", "score", "other", "difference", "95 %", "p")
_LEFT = ("task", "measure", "of")
_WIDEST = {"task": 34, "measure": 26}
"""Columns of what is wrapped in the text, so that the table has at most 120."""


class Row(NamedTuple):
    """A score of a task. `beside`: the published one; `remarks`: why they cannot be compared."""

    task: Task
    measure: Measure
    spread: Spread
    beside: Published | None
    remarks: Sequence[str] = ()
    notes: Sequence[str] = ()
    read: Mapping[str, int] = {}


class Compared(NamedTuple):
    """A score of a task beside that of another model."""

    task: Task
    measure: Measure
    score: float
    other: float
    difference: Difference


class Report(NamedTuple):
    """What an evaluation found.

    model        what it is, as JSON; its name is under "name"
    rows         in the order of tables
    comparisons  by the name of the other model
    missing      tasks that were not run, with what is missing
    """

    model: Mapping[str, Any]
    rows: Sequence[Row]
    comparisons: Mapping[str, Sequence[Compared]]
    missing: Mapping[str, str]


def as_text(report: Report) -> str:
    """For a terminal of 120 columns."""
    notes = _Notes(report)
    lines = [f"{report.model['name']}", "", *_drawn(_HEADING, _cells(report.rows, notes))]
    for name, rows in report.comparisons.items():
        lines += ["", f"against {name}", "", *_drawn(_AGAINST, _compared(rows))]
    lines += [""] if notes.lines else []
    for number, note in enumerate(notes.lines, 1):
        lines += textwrap.wrap(f"[{number}] {note}", WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    for said in _legend(report):
        lines += ["", *textwrap.wrap(said, WIDTH, break_on_hyphens=False)]
    return "\n".join(lines) + "\n"


def as_markdown(report: Report) -> str:
    notes = _Notes(report)
    lines = [f"# {_escaped(report.model['name'])}", "", *_piped(_HEADING, _cells(report.rows, notes))]
    for name, rows in report.comparisons.items():
        lines += ["", f"## Against {_escaped(name)}", "", *_piped(_AGAINST, _compared(rows))]
    lines += [""] if notes.lines else []
    lines += [f"- [{number}] {_escaped(note)}" for number, note in enumerate(notes.lines, 1)]
    for said in _legend(report):
        lines += ["", _escaped(said)]
    return "\n".join(lines) + "\n"


def as_json(report: Report) -> str:
    """Scores with six digits after the point: those after them depend on the machine."""
    tasks: dict[str, Any] = {}
    for row in report.rows:
        task, measure, spread, beside, remarks, notes, read = row
        said = tasks.setdefault(
            task.name,
            {
                "title": task.title,
                "protocol": task.protocol,
                "read": dict(read),
                "comparable": not remarks,
                "remarks": [*remarks],
                "notes": [*notes],
                "measures": {},
            },
        )
        same = [each for each in figures() if (each.task, each.measure) == (task.name, measure.name)]
        said["measures"][measure.name] = {
            "mean": _number(spread.mean),
            "deviation": _number(spread.deviation),
            "interval": [_number(spread.low), _number(spread.high)],
            "by_seed": [*map(_number, spread.by_seed)],
            "beside": beside and beside.model,
            "published": [{"model": each.model, "figure": each.figure, "where": _where(each)} for each in same],
        }
    against = {
        name: [
            {
                "task": each.task.name,
                "measure": each.measure.name,
                "score": _number(each.score),
                "other": _number(each.other),
                "difference": _number(each.difference.difference),
                "interval": [_number(each.difference.low), _number(each.difference.high)],
                "p": _number(each.difference.p),
            }
            for each in rows
        ]
        for name, rows in report.comparisons.items()
    }
    said = {"model": report.model, "tasks": tasks, "against": against, "missing": report.missing}
    return json.dumps(said, indent=1, ensure_ascii=False) + "\n"


RENDERERS = {"text": as_text, "markdown": as_markdown, "json": as_json}


class _Notes:
    """The footnotes: one for each different remark, in the order of the table."""

    def __init__(self, report: Report) -> None:
        self.lines: list[str] = []
        for row in report.rows:
            for line in self._of(row):
                if line not in self.lines:
                    self.lines.append(line)

    def mark(self, row: Row) -> str:
        """What stands after the title: " [1, 3]"."""
        numbers = sorted(self.lines.index(line) + 1 for line in self._of(row))
        return f" [{', '.join(map(str, numbers))}]" if numbers else ""

    def _of(self, row: Row) -> list[str]:
        return [*(f"not as published: {each}" for each in row.remarks), *row.notes]


def _cells(rows: Sequence[Row], notes: _Notes) -> Iterator[tuple[str, ...]]:
    last = None
    for row in rows:
        _, measure, spread, beside, remarks, *_ = row
        gap = f"{spread.mean - beside.figure:+.1f}" if beside else ""
        yield (
            f"{row.task.title}{notes.mark(row)}" if row.task is not last else "",
            measure.name,
            f"{spread.mean:.1f}",
            "" if spread.deviation is None else f"{spread.deviation:.1f}",
            f"{spread.low:.1f}–{spread.high:.1f}",
            f"{beside.figure:.1f}" if beside else "",
            beside.model if beside else "",
            f"({gap})" if gap and remarks else gap,
        )
        last = row.task


def _compared(rows: Sequence[Compared]) -> Iterator[tuple[str, ...]]:
    last = None
    for task, measure, score, other, (difference, low, high, p) in rows:
        yield (
            task.title if task is not last else "",
            measure.name,
            f"{score:.1f}",
            f"{other:.1f}",
            f"{difference:+.1f}",
            f"{low:+.1f} to {high:+.1f}",
            f"{p:.3f}",
        )
        last = task


def _legend(report: Report) -> Iterator[str]:
    sources = {(each.beside.model, _where(each.beside)): None for each in report.rows if each.beside}
    if sources:
        yield "published: " + "; ".join(f"{model}: {where}" for model, where in sources) + "."
    seeds = max((len(each.spread.by_seed) for each in report.rows), default=0)
    if seeds:
        over = f"±: standard deviation over {seeds} seeds; " if seeds > 1 else ""
        yield (
            f"{over}95 %: interval when the items are drawn again (bootstrap); gap: score less published, in brackets "
            "where they cannot be compared."
        )
    if report.comparisons:
        yield "p: of no difference, two-sided, by the paired bootstrap over the items of all seeds."
    if report.missing:
        said = "; ".join(f"{task} ({what})" for task, what in report.missing.items())
        yield f"not run: {said}. docs/evaluation.md says where the files come from."


def _where(each: Published) -> str:
    return f"{PAPERS[each.paper]}, {each.where}"


def _drawn(heading: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Sequence[str]:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in heading:
        table.add_column(name, justify="left" if name in _LEFT else "right", max_width=_WIDEST.get(name))
    for row in rows:
        table.add_row(*row)
    return text_of(table)


def _piped(heading: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heading)} |"
    yield "|" + "|".join("---" if name in _LEFT else "---:" for name in heading) + "|"
    for row in rows:
        yield f"| {' | '.join(map(_escaped, row))} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _number(value: float | None) -> float | None:
    return None if value is None else round(value, 6) + 0.0
