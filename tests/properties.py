"""How many examples a property gets.

The same few each time; `make fuzz` takes $PHRASEMILL_FUZZ times as many, others each time.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FUZZ = int(os.environ.get("PHRASEMILL_FUZZ", "0"))


def examples(number: int) -> settings:
    """A decorator: so many examples, however long they take."""
    return settings(
        max_examples=number * max(FUZZ, 1),
        derandomize=not FUZZ,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


settings.register_profile("tests", examples(60))  # of a property that does not say how many
settings.load_profile("tests")
