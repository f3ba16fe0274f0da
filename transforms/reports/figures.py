"""Formats numbers, names and tables for people."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from typing import Any

_WIDTH = 10_000
"""Columns of a table that does not go to a terminal: nothing is cut or wrapped."""


def text_of(table: Any) -> list[str]:
    """The plain lines of a rich table, the same on any terminal: for files, pipes and tests."""
    from rich.console import Console  # workers use this module, but no tables

    console = Console(file=io.StringIO(), width=_WIDTH, color_system=None, markup=False, highlight=False, emoji=False)
    console.print(table)
    file = console.file
    assert isinstance(file, io.StringIO)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def plural(number: int, thing: str) -> str:
    """ "1 shard", "2,000 shards"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """Bytes: "999 B", "1.5 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:,.0f} {unit}" if unit == "B" else f"{number:,.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} TB"


def whole_percent(ratio: float) -> str:
    """A ratio in whole per cent: "34 %"."""
    return f"{ratio:.0%}".replace("%", " %")


def share(part: float, whole: float) -> str:
    """A part in per cent, with enough digits to show that it is not 0 or 100: "0.002 %", "99.998 %"."""
    if not whole:
        return "–"
    ratio = part / whole
    if ratio in (0, 1):
        return whole_percent(ratio)
    for digits in range(1, 4):
        shown = f"{100 * ratio:.{digits}f}"
        if 0 < float(shown) < 100:
            return f"{shown} %"
    return "< 0.001 %" if ratio < 0.5 else "> 99.999 %"


def duration(seconds: float) -> str:
    """ "0.4 s", "45 s", "12 min 5 s", "3 h 20 min", "2 days 3 h"."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24:,} days {hours % 24} h"


def rounded(number: float) -> str:
    """A number with three digits that say something: "12", "1,230,000"."""
    return f"{round(number) if number < 1000 else round(number, 2 - math.floor(math.log10(number))):,.0f}"


def roughly(seconds: float) -> str:
    """A time in one unit: "0.4 s", "45 s", "2.7 min", "3.1 h", "2.0 days"."""
    for unit, most in (("s", 90), ("min", 90), ("h", 48)):
        if seconds < most:
            return f"{seconds:.{int(seconds < 10)}f} {unit}"
        seconds /= 60 if unit != "h" else 24
    return f"{seconds:,.1f} days"


def between(ends: Sequence[float], say: Callable[[float], str]) -> str:
    """A range: "1.2-1.5 MB", "50 s-2.1 min", or one figure where its ends read the same."""
    low, high = say(ends[0]), say(ends[-1])
    if low == high:
        return low
    number, _, unit = low.partition(" ")
    return f"{number if high.partition(' ')[2] == unit else low}-{high}"


def plain(name: str) -> str:
    """A name of the code as words."""
    return name.replace("_", " ")


def printable(text: str) -> str:
    """A text on one line. Characters that would control the terminal are escaped."""
    words = " ".join(text.split())
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in words)
