"""The seeded mistakes of `make mutants` can be made: a change of the code takes them along."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_each_mistake_can_be_made():
    script = runpy.run_path(str(ROOT / "scripts/mutants.py"))
    mutants = [*script["parse"](script["TABLE"])]
    assert len({each.name for each in mutants}) == len(mutants) > 70
    for each in mutants:
        source = (ROOT / each.file).read_text()
        assert source.count(each.text) == 1, f"{each.name}: {each.text!r} is not once in {each.file}"
        compile(each.made_in(source), each.file, "exec")
        assert all((ROOT / path).exists() for path in each.tests), each.tests
