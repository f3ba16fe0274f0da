"""What commands and workers do first: silence libraries, and do not load large ones.

A program that imports parts of phrasemill does none of this, except `refuse_telemetry`.
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
"""The environment of a worker, which has one core. More threads would change the order of sums in models."""

_NO_TELEMETRY = {
    "ORT_DISABLE_TELEMETRY": "1",  # ONNX Runtime (1.31) sends events and keeps a device id and a queue in the cache
    "HF_HUB_DISABLE_TELEMETRY": "1",  # the hub's client, for transformers, datasets and tokenizers
    "DO_NOT_TRACK": "1",  # what other libraries agree on
}


def refuse_telemetry() -> None:
    """Libraries that report their use to their makers do not. They read these variables when they are imported.

    Our packages that load models call this when they are imported themselves. Somebody who has set a variable otherwise
    keeps it.
    """
    for name, value in _NO_TELEMETRY.items():
        os.environ.setdefault(name, value)


def silence() -> None:
    """Switch off the logs and warnings of libraries. Errors are exceptions."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)


def limit_threads() -> None:
    """One thread for each process that this one starts. Libraries read these variables when they are imported."""
    os.environ.update(THREADS)


def leave_out_pandas() -> None:
    """Keep Arrow from importing pandas, which it does for the first array of Python values and which takes seconds.

    Arrow tries only once. Pandas can still be imported later, and `to_pandas` works.
    """
    import pyarrow as pa

    with without("pandas"):
        pa.array([0])


@contextlib.contextmanager
def until_pipe_closes() -> Iterator[None]:
    """During the block, a reader of the output that has enough (`| head`) is no error; the block ends."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes the rest when it ends


@contextlib.contextmanager
def without(*modules: str) -> Iterator[None]:
    """During the block, importing these modules fails as if they were not installed, unless they are loaded."""
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
