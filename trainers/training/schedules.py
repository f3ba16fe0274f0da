"""Learning rates as shares of the highest, pure functions of the step (from 0) and the number of steps."""

from __future__ import annotations

import math


def linear(step: int, steps: int, *, warm_up: float = 0.0) -> float:
    """It rises over a share `warm_up` of the steps, and then falls to 0 after the last."""
    return _rising(step, steps, warm_up) * _left(step, steps, warm_up)


def cosine(step: int, steps: int, *, warm_up: float = 0.0, least: float = 0.0) -> float:
    """It rises likewise, and then falls as half a cosine to `least`."""
    fallen = 1 - _left(step, steps, warm_up)
    return _rising(step, steps, warm_up) * (least + (1 - least) * 0.5 * (1 + math.cos(math.pi * fallen)))


def staircase(step: int, *, factor: float, every: int) -> float:
    """`factor` to the power of the number of times that `every` steps are done."""
    return float(factor ** (step // every))


def _warm(steps: int, warm_up: float) -> float:
    return max(1.0, warm_up * steps)


def _rising(step: int, steps: int, warm_up: float) -> float:
    return min(1.0, (step + 1) / _warm(steps, warm_up))


def _left(step: int, steps: int, warm_up: float) -> float:
    """1 until the rate has risen, then falling linearly to 0 at the end."""
    warm = _warm(steps, warm_up)
    return min(1.0, (steps - step) / max(1.0, steps - warm))
