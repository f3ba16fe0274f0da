"""How long a worker may keep silent; a leaf, for the options' sake."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """When a worker counts as hung, in seconds."""

    silent: float = 30.0  # no beat: it was stopped, or something holds the interpreter
    idle: float = 300.0  # no progress, and its CPU does nothing: it waits for what does not come
    stalled: float = 1800.0  # no progress


LIMITS = Limits()
