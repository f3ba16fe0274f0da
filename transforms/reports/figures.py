"""Numbers and names as people read them."""

from __future__ import annotations


def size(number: float) -> str:
    """Bytes: "999 B", "1.5 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:,.0f} {unit}" if unit == "B" else f"{number:,.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} TB"


def share(part: float, whole: float) -> str:
    """A part in per cent, with so many digits that neither little nor almost all is hidden: "0.002 %", "99.998 %"."""
    if not whole:
        return "–"
    ratio = part / whole
    if ratio in (0, 1):
        return f"{ratio:.0%}".replace("%", " %")
    for digits in range(1, 4):
        shown = f"{100 * ratio:.{digits}f}"
        if 0 < float(shown) < 100:
            return f"{shown} %"
    return "< 0.001 %" if ratio < 0.5 else "> 99.999 %"


def duration(seconds: float) -> str:
    """ "0.4 s", "12 min 5 s", "3 h 20 min"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"


def plain(name: str) -> str:
    """A name of the code as words."""
    return name.replace("_", " ")
