"""The worked examples in docstrings and in docs/python.md are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

from pipelines.cli import main
from pipelines.mine_contexts import COMMAND

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


def test_examples_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tale.txt").write_text("The old miller lived near the old bridge. He had three sons and a grey cat.\n")
    assert main(COMMAND, ["--input=tale.txt", "--output=out/tale", "--min-frequency=1"]) == 0
    found = doctest.testfile(str(ROOT / "docs/python.md"), module_relative=False)
    assert found.attempted > 8
    assert not found.failed
