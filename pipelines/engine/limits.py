"""How long a worker may be silent. This module imports nothing of ours, so that options can import it."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """When a worker counts as hung, in seconds."""

    silent: float = 30.0  # no heartbeat: it was stopped, or something holds the interpreter's lock
    idle: float = 300.0  # no progress and no CPU time: it waits for something that does not happen
    stalled: float = 1800.0  # no progress


LIMITS = Limits()
