"""The worked examples in docstrings are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("pipelines", "schemas", "transforms")
    for path in (ROOT / folder).rglob("*.py")
    if " >>> " in path.read_text()
)


@pytest.mark.parametrize("module", MODULES)
def test_examples(module):
    found = doctest.testmod(import_module(module))
    assert found.attempted
    assert not found.failed
