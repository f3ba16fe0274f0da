"""What a run shows while it goes on: a line when a stage begins and ends, a count of units in between."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TextIO

from pipelines.stages import Completion, Stage


class Progress:
    """Lines about the stages of a run. On a terminal the running stage's line is rewritten in place."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._done = 0
        self._units = 0
        self._begun = 0.0
        self._tokens = 0
        self.seconds: dict[str, float] = {}
        """Wall time of each stage of this run."""
        self.rates: dict[str, float] = {}
        """Tokens a second of each stage of this run that has to do with tokens."""

    def begin(self, stage: Stage, units: int) -> None:
        self._done, self._tokens, self._units, self._begun = 0, 0, units, time.monotonic()

    def advance(self, stage: Stage, completion: Completion) -> None:
        self._done += 1
        self._tokens += completion.counters.get("tokens", 0)
        if self._live:
            self._stream.write(f"\r\x1b[K{stage.name}: {self._done:,}/{self._units:,} units")
            self._stream.flush()

    def end(self, stage: Stage, completions: Sequence[Completion]) -> None:
        seconds = time.monotonic() - self._begun
        self.seconds[stage.name] = seconds
        rate = ""
        if self._tokens:
            self.rates[stage.name] = self._tokens / seconds
            rate = f", {self.rates[stage.name]:,.0f} tokens/s"
        units = f"{len(completions):,} unit{'' if len(completions) == 1 else 's'}"
        before = len(completions) - self._units
        known = f" ({before:,} done before)" if before else ""
        self._line(f"{stage.name}: {units}{known}, {seconds:.1f} s{rate}")

    def _line(self, text: str) -> None:
        self._stream.write(f"\r\x1b[K{text}\n" if self._live else f"{text}\n")
        self._stream.flush()
