"""Peak memory of this process and all its children, sampled while a block of code runs."""

from __future__ import annotations

import threading
from types import TracebackType

import psutil


class PeakMemory:
    """`with PeakMemory() as peak: ...`, then `peak.bytes`: the largest sum of resident memory over all processes.

    Pages that processes share count once a process, so the sum is an upper bound.
    """

    def __init__(self, interval: float = 0.25) -> None:
        self.bytes = 0
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._stop.wait(self._interval):
            total = 0
            for process in (me, *me.children(recursive=True)):
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            self.bytes = max(self.bytes, total)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
