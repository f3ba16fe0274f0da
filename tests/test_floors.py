"""Each floor of the house imports only what lies below it, and no module goes round in a circle."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.kinds import KINDS

ROOT = Path(__file__).resolve().parent.parent

FLOORS = (
    ("phrasemill",),
    ("pipelines",),
    ("pipelines.stages",),
    ("pipelines.engine", "trainers"),
    ("transforms",),
    ("schemas",),
)
"""From the roof down. What is on one floor does not import each other."""

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("phrasemill", "pipelines", "trainers", "transforms", "schemas")
    for path in sorted((ROOT / package).rglob("*.py"))
}


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def floor_of(module: str) -> tuple[int, str]:
    """The number of a module's floor from the roof, and the package there that it belongs to."""
    found = [(n, room) for n, floor in enumerate(FLOORS) for room in floor if f"{module}.".startswith(f"{room}.")]
    return max(found, key=lambda each: len(each[1]))


def imports(path: Path, *, at_import: bool = False) -> Iterator[str]:
    """The modules of ours that a file imports; `at_import`: only those of its top level, when it is imported."""
    tree = parsed(path)
    nodes = list(tree.body) if at_import else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name for each in node.names for name in [each.name] if name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                name = f"{node.module}.{each.name}"
                if name in MODULES or node.module in MODULES:
                    yield name if name in MODULES else node.module


@pytest.mark.parametrize("module", MODULES)
def test_no_import_goes_up(module):
    floor, room = floor_of(module)
    above = [each for each in imports(MODULES[module]) if floor_of(each)[0] < floor]
    across = [each for each in imports(MODULES[module]) if floor_of(each)[0] == floor and floor_of(each)[1] != room]
    assert (above, across) == ([], [])


def test_no_circle():
    edges = {module: {*imports(path, at_import=True)} for module, path in MODULES.items()}
    while free := {module for module, below in edges.items() if not below & edges.keys()}:
        edges = {module: below for module, below in edges.items() if module not in free}
    assert not edges, "these import each other in a circle"


@pytest.mark.parametrize(
    ("library", "places"),
    [
        ("apache_beam", ["pipelines.engine.beam"]),
    ],
)
def test_one_module_knows_the_library(library, places):
    found = []
    for module, path in MODULES.items():
        for node in ast.walk(parsed(path)):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(f"{name}.".startswith(f"{library}.") for name in names):
                found.append(module)
    assert sorted({*found}) == places


STAGES = {
    name
    for path in (ROOT / "pipelines/stages").glob("*.py")
    for name in re.findall(r'^    name: ClassVar\[str\] = "(\w+)"', path.read_text(), re.MULTILINE)
}
OF_KINDS = ("schemas.kinds", "pipelines.stages")


@pytest.mark.parametrize("module", [each for each in MODULES if not each.startswith(OF_KINDS)])
def test_no_module_names_a_kind_or_a_stage(module):
    """What is true of a kind is said where it is declared, and nothing else asks which kind it has."""
    named = []
    for node in ast.walk(parsed(MODULES[module])):
        if isinstance(node, ast.Constant) and node.value in [*KINDS]:
            named.append(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            first = node.args[0]
            if node.func.attr in ("stage", "ledger", "has", "completions", "files", "units", "counter"):
                named += [first.value] if isinstance(first, ast.Constant) and first.value in STAGES else []
    assert named == []
