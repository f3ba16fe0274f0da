"""What a process of ours does first: it keeps the screen for our lines, and leaves large libraries unloaded.

For commands and workers, not for those who use a part of phrasemill in a process of their own.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator

THREADS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""The environment of a worker: it is one core, and more threads would change the order of sums in models."""


def silence() -> None:
    """Keep the screen for our own lines: libraries log and warn much. What goes wrong comes as an exception."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)


def limit_threads() -> None:
    """One thread a process, for the processes that this one starts: libraries read it when they are imported."""
    os.environ.update(THREADS)


def leave_out_pandas() -> None:
    """Arrow imports pandas, where it is installed, with the first array of Python values: seconds, for nothing here.

    It looks once. An import of pandas later on works, and `to_pandas` too.
    """
    import pyarrow as pa

    with without("pandas"):
        pa.array([0])


@contextlib.contextmanager
def without(*modules: str) -> Iterator[None]:
    """Meanwhile an import of these modules, unless they are loaded, fails as if they were not installed."""
    finder = _NotThere(modules)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _NotThere:
    def __init__(self, modules: tuple[str, ...]) -> None:
        self._modules = modules

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in self._modules:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
