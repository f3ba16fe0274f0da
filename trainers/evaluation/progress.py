"""Shows on stderr which task runs, and how long each took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status


class Progress:
    """A line that changes while a task runs, if stderr is a terminal, and one that stays when it ends."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def doing(self, words: str) -> None:
        self._status.update(words)

    def done(self, words: str) -> None:
        self._status.console.print(words)


@contextmanager
def on_stderr() -> Iterator[Progress]:
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    with console.status("") as status:
        yield Progress(status)
