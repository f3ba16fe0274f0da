"""What a run does in this process when no unit shows its progress: planning, publishing. `progress.py` shows it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Phase(NamedTuple):
    """`what` is done since `began`, a Unix time; empty if there is nothing to say."""

    what: str = ""
    began: float = 0.0


NOTHING = Phase()
_current = NOTHING


@contextmanager
def phase(what: str) -> Iterator[None]:
    """Say what is done during the block. There is one at a time in a process; a block within another replaces it."""
    global _current
    around, _current = _current, Phase(what, time.time())
    try:
        yield
    finally:
        _current = around


def current_phase() -> Phase:
    return _current
