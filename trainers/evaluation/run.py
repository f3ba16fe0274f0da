"""Runs the tasks that are not finished, and makes the report of them."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from schemas.errors import UserError
from trainers.evaluation.model import FoundModel
from trainers.evaluation.options import Evaluation
from trainers.evaluation.published import groups, models, nearest, shown
from trainers.evaluation.resampling import difference, spread
from trainers.evaluation.results import (
    MARKDOWN,
    RESULTS,
    MadeFrom,
    Results,
    TaskResult,
    files_below,
    hashes,
    is_results,
)
from trainers.evaluation.table import Compared, Report, Row, as_json, as_markdown
from trainers.evaluation.task import Setting, Task
from transforms.reports.figures import duration

OUTPUT = Path("out/evaluation")


class Shown(Protocol):
    """What shows the progress."""

    def doing(self, words: str) -> None:
        """What is done now."""
        ...

    def done(self, words: str) -> None:
        """What was done."""
        ...


class _Finished(NamedTuple):
    """The results of a model."""

    name: str
    model: Mapping[str, Any]
    tasks: Mapping[str, TaskResult]


def evaluate(
    chosen: Evaluation,
    find: Callable[[str, bool], FoundModel],
    progress: Shown,
    tasks: Mapping[str, Task],
) -> Report:
    """The report; it is also written, with what it follows from, to the output. UserError if something is missing.

    `find(name, own)` finds a model, with the options that were chosen (`own`) or with their defaults.
    """
    wanted = _wanted(chosen.tasks, tasks)
    if chosen.published is not None and chosen.published not in models():
        raise UserError(f"--published {chosen.published}: no such model; there are {', '.join(models())}")
    known = is_results(chosen.model)
    if known:
        output, missing = Path(chosen.model), dict[str, str]()
        names = _of_results(Results(output), wanted, tasks)
    else:
        names, missing = _there(chosen, wanted, tasks)
        output = chosen.output or OUTPUT / _slug(chosen.model)
    others = [(name, Results(name) if is_results(name) else None) for name in chosen.against]
    for _, results in others:  # before anything is computed
        if results is not None:
            _of_results(results, names, tasks)
    found = _finished(Results(output), None if known else find(chosen.model, True), names, chosen, tasks, progress)
    rows = [*_rows(found, names, chosen, tasks)]
    comparisons = {}
    for name, results in others:
        beside = results or Results(output / "against" / _slug(name))
        other = _finished(beside, None if results else find(name, False), names, chosen, tasks, progress)
        comparisons[name] = [*_compare(found, other, names, chosen, tasks)]
    report = Report(found.model, rows, comparisons, missing)
    if not known:
        results = Results(output)
        results.folder.write(MARKDOWN, as_markdown(report).encode())
        results.folder.write(RESULTS, as_json(report).encode())
        progress.done(f"{results}: {RESULTS}, {MARKDOWN}, items/")
    return report


def _wanted(given: Sequence[str] | None, tasks: Mapping[str, Task]) -> list[str] | None:
    """The names of the tasks that were asked for, in the order of tables; None: all."""
    if given is None:
        return None
    papers, found = groups(), set()
    for each in given:
        if each not in tasks and each not in papers:
            near = difflib.get_close_matches(each, [*tasks, *papers], n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join([*papers, *tasks])}"
            raise UserError(f"--tasks {each}: no such task or paper; {hint}")
        found |= {each} if each in tasks else {*papers[each]}
    return [each for each in tasks if each in found]


def _there(
    chosen: Evaluation, wanted: Sequence[str] | None, tasks: Mapping[str, Task]
) -> tuple[list[str], dict[str, str]]:
    """The tasks whose files are there, and of the others what is missing. UserError if one was asked for by name."""
    if chosen.data is None:
        raise UserError("--data: has to be given; docs/evaluation.md describes the folder of the evaluation sets")
    if not chosen.data.is_dir():
        raise UserError(f"{chosen.data}: no such folder; give the folder of the evaluation sets (docs/evaluation.md)")
    names: list[str] = []
    missing: dict[str, str] = {}
    for name in wanted if wanted is not None else tasks:
        lacks = [pattern for pattern, paths in files_below(chosen.data, tasks[name].files) if not paths]
        if not lacks:
            names.append(name)
            continue
        missing[name] = f"{', '.join(lacks)} missing"
        if name in (chosen.tasks or ()):
            raise UserError(
                f"{chosen.data / lacks[0]}: no such file, which {name} needs; docs/evaluation.md says where it is from"
            )
    if not names:
        raise UserError(f"{chosen.data}: has no file of any task; docs/evaluation.md lists their names")
    return names, missing


def _of_results(results: Results, wanted: Sequence[str] | None, tasks: Mapping[str, Task]) -> list[str]:
    """The tasks of results, or those of them that were asked for. UserError if one is not there."""
    there = results.tasks()
    if not there:
        raise UserError(f"{results}: holds no results; evaluate again with this --output")
    lacks = [each for each in wanted or () if each not in there]
    if lacks:
        raise UserError(
            f"{results}: has no results of {', '.join(lacks)}; evaluate that model on them, or name others with --tasks"
        )
    return [each for each in tasks if each in (there if wanted is None else wanted)]


def _finished(
    results: Results,
    candidate: FoundModel | None,
    names: Sequence[str],
    chosen: Evaluation,
    tasks: Mapping[str, Task],
    progress: Shown,
) -> _Finished:
    """The results of these tasks; with a candidate, those that are not finished are computed and written."""
    if candidate is not None:
        _compute(results, candidate, names, chosen, tasks, progress)
    found = {name: results.read(name) for name in names}
    identity = results.model()
    assert identity is not None
    return _Finished(str(results), identity, found)


def _compute(
    results: Results,
    candidate: FoundModel,
    names: Sequence[str],
    chosen: Evaluation,
    tasks: Mapping[str, Task],
    progress: Shown,
) -> None:
    assert chosen.data is not None
    identity = {"name": candidate.name, **candidate.identity}
    before = results.model()
    if before is not None and before != identity:
        raise UserError(
            f"{results}: holds results of {before['name']} with other files or options; "
            "give another --output, or delete it"
        )
    model = None
    for number, name in enumerate(names, 1):
        task, title = tasks[name], f"{number}/{len(names)} {tasks[name].title}"
        seeds = chosen.seeds if task.seeded else ()
        made_from = MadeFrom(identity, name, task.version, hashes(chosen.data, task.files), seeds)
        if results.has(made_from):
            progress.done(f"{title}: finished before")
            continue
        if model is None:
            progress.doing(f"loading {candidate.name}")
            model = candidate.load()
        began = time.monotonic()
        progress.doing(title)

        def note(words: str, title: str = title) -> None:
            progress.doing(f"{title}: {words}")

        outcome = task.run(model, Setting(chosen.data, chosen.seeds, note))
        results.write(TaskResult(made_from, outcome, tuple(model.remarks())))
        progress.done(f"{title}: {duration(time.monotonic() - began)}")


def _rows(found: _Finished, names: Sequence[str], chosen: Evaluation, tasks: Mapping[str, Task]) -> Iterator[Row]:
    like = chosen.published or nearest(str(found.model["name"]))
    for name in names:
        result = found.tasks[name]
        items, read, remarks = result.outcome
        for measure in tasks[name].measures:
            beside = shown(name, measure.name, like)
            yield Row(
                tasks[name], measure, spread(measure, items, draws=chosen.draws), beside, remarks, result.notes, read
            )


def _compare(
    found: _Finished, other: _Finished, names: Sequence[str], chosen: Evaluation, tasks: Mapping[str, Task]
) -> Iterator[Compared]:
    for name in names:
        one, two = found.tasks[name], other.tasks[name]
        if one.made_from.seeds != two.made_from.seeds:
            raise UserError(
                f"{other.name}: {name} has other seeds than {found.name}; evaluate both with the same --seeds"
            )
        if one.items_digest != two.items_digest:
            raise UserError(
                f"{other.name}: {name} has other items than {found.name}; evaluate both on the same --data and version"
            )
        for measure in tasks[name].measures:
            items, others = one.outcome.items, two.outcome.items
            apart = difference(measure, items, others, draws=chosen.draws)
            score, beside = (
                measure.scale * sum(measure.score(each) for each in seeds) / len(seeds) for seeds in (items, others)
            )
            yield Compared(tasks[name], measure, score, beside, apart)


def _slug(name: str) -> str:
    """A name as one of a folder: the last two parts of a path or of a name on the hub."""
    return re.sub(r"[^\w.]+", "-", "-".join(Path(name).parts[-2:])).strip("-.") or "model"
