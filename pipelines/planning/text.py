"""A plan as text: a table, what the run needs and what is there, warnings."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Sequence

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.planning.estimates import Estimate
from pipelines.planning.machine import available_memory
from pipelines.planning.plan import Plan
from schemas.storage.folder import Folder


def warnings(
    found: Plan, output: Folder, todo: Sequence[DatasetBuild], *, workers: int, max_reject_rate: float
) -> list[str]:
    """What will not do, or may not, with what to do about it."""
    lines = []
    if (free := free_disk(output, todo)) is not None and found.disk.high > free:
        lines.append(
            f"warning: the disk of {output} {_will(found.disk.low > free)} do: it has {size(free)} for the "
            f"{span_of_bytes(found.disk)} that the run needs at one time; choose another --output, free some, or take "
            "less (--sample-documents, --max-documents)"
        )
    available = available_memory()
    memory = found.memory(workers)
    if memory.high > available:
        fitting = max(int((available - found.main_memory) // max(found.worker_memory.high, 1)), 0)
        remedy = f"--workers={fitting}" if fitting else "not even one worker fits: take a machine with more"
        lines.append(
            f"warning: memory {_will(memory.low > available)} do: {size(available)} are free for the "
            f"{span_of_bytes(memory)} of {workers} workers; {remedy}"
        )
    for stage, completions in found.measured.stages.items():
        ledgers = [each.ledger for each in completions if each.ledger]
        rejected, read = sum(each.rejected.total() for each in ledgers), sum(each.read for each in ledgers)
        if rejected > max_reject_rate * read:
            lines.append(
                f"warning: {stage} rejected {rejected:,} of {read:,} {ledgers[0].counts} of the sample, more than "
                f"--max-reject-rate={max_reject_rate:g}; the run would stop"
            )
    return lines


def free_disk(output: Folder, todo: Sequence[DatasetBuild]) -> int | None:
    """Bytes free where the output goes, with what the run replaces there; None on an object store."""
    if not output.is_local:
        return None
    there = output.path
    while not os.path.exists(there):
        there = os.path.dirname(there)
    replaced = sum(each.output.size(name) for each in todo for name in each.output.files(recursive=True))
    return shutil.disk_usage(there).free + replaced


def _will(surely: bool) -> str:
    return "will not" if surely else "may not"


# ---- Text


def describe(
    found: Plan,
    output: Folder,
    todo: Sequence[DatasetBuild],
    *,
    runner: str,
    workers: int,
    max_reject_rate: float,
    run: str,
) -> str:
    """The plan as a table with what it needs, warnings, and the command `run` that does it."""
    local = runner == "DirectRunner"
    rows = [("", "units", "rows", "writes", "worker time", "time" if local else "")]
    for each in found.forecasts:
        rows.append((str(each.folder), "", f"{span_of_bytes(each.kept)} kept", "", "", ""))
        for line in each.lines:
            made = f"{span_of_numbers(line.rows)} {line.what}" if line.what else ""
            times = span_of_seconds(line.work), span_of_seconds(line.wall) if local else ""
            rows.append((f"  {line.stage}", span_of_numbers(line.units), made, span_of_bytes(line.bytes), *times))
    in_all = span_of_seconds(found.work), span_of_seconds(found.wall) if local else ""
    rows.append(("in all", "", f"{span_of_bytes(found.kept)} kept", "", *in_all))
    lines = [sampled(found), "", *_aligned(rows), ""]
    if found.tokens.middle:
        rate = found.tokens.middle / max(found.wall.middle, 1e-9)
        lines.append(f"tokens   {span_of_numbers(found.tokens)}" + (f", {rate:,.0f} a second" if local else ""))
    if not local:
        hours = found.work * (1 / 3600)
        lines.append(f"time     {_span(hours, 1, 'core-hours of a machine like this')}, shared by the workers")
    free = free_disk(output, todo)
    has = "of a store that does not say what it has" if free is None else f"of {size(free)} for the output"
    lines.append(f"disk     {span_of_bytes(found.disk)} at the fullest, {has}")
    if local:
        each_one = span_of_bytes(found.worker_memory)
        lines.append(
            f"memory   {span_of_bytes(found.memory(workers))} ({workers} workers of {each_one}), "
            f"of {size(available_memory())}"
        )
    else:
        lines.append(f"memory   {span_of_bytes(found.worker_memory)} a worker")
    problems = warnings(found, output, todo, workers=workers, max_reject_rate=max_reject_rate) if local else []
    return "\n".join([*lines, *problems, "", f"to run it: {run}"])


def sampled(found: Plan) -> str:
    pieces = found.measured.pieces
    took = f"in {span_of_seconds(Estimate.exactly(found.measured.seconds))}"
    if pieces.is_whole:
        return f"all of the input was measured, {took}"
    where = f"measured on {len(pieces.pieces)} pieces, {_significant(100 * pieces.share, 2)} % of the input, {took}"
    begun = "" if not pieces.begun else "; of what cannot be split the beginning only, hence the wide intervals"
    return f'{where}; "a-b": nine times of ten the truth lies there{begun}'


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    # The name of a dataset may be long, and has nothing beside it but its size.
    lines = []
    for row in rows:
        first, *rest = (
            cell.ljust(width) if place in (0, 2) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *rest]).rstrip())
    return lines


def _significant(number: float, digits: int = 3) -> str:
    """A number with so many digits that say something, without an exponent."""
    if not number or not math.isfinite(number):
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(number)))
    return f"{round(number, places):,.{min(max(places, 0), 2)}f}"


def _span(estimate: Estimate, unit: float, name: str, digits: int = 3) -> str:
    """The interval in a unit: "1.2-1.5 GB"."""
    low, high = (_significant(each / unit, digits) for each in (estimate.low, estimate.high))
    return f"{low} {name}" if low == high else f"{low}-{high} {name}"


def span_of_numbers(estimate: Estimate) -> str:
    if estimate.is_exact:
        return f"{round(estimate.middle):,}"
    ends = (round(each) for each in (estimate.low, estimate.high))
    return "-".join(dict.fromkeys(_significant(each) if each >= 1000 else str(each) for each in ends))


def span_of_bytes(estimate: Estimate) -> str:
    return _in_units(estimate, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")), above=1)


def span_of_seconds(estimate: Estimate) -> str:
    if estimate.high < 1:
        return "< 1 s"
    return _in_units(estimate, ((86400, "days"), (3600, "h"), (60, "min"), (1, "s")), above=2, digits=2)


def _in_units(estimate: Estimate, units: Sequence[tuple[float, str]], *, above: float, digits: int = 3) -> str:
    """In the largest unit of which there are more than `above`."""
    unit, name = next((each for each in units if estimate.high >= above * each[0]), units[-1])
    return _span(estimate, unit, name, digits)


def size(number: float) -> str:
    return span_of_bytes(Estimate.exactly(number))
