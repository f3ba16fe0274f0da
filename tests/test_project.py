"""The promises around the code: what a base install imports, what is pinned, what is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import distributions, metadata, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent

PINS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
]

IMPORT_ALL = """
import importlib, pkgutil, sys
for name in sys.argv[2].split():
    sys.modules[name] = None  # as if it were not installed
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    optional = ("__main__", "benepar", "stanza", "corenlp", "transformers", "ctranslate2", "torch")
    of_generators = ("causal", "seq2seq", "decoding", "sampling")
    if not module.name.rpartition(".")[2].startswith((*optional, *of_generators)):
        importlib.import_module(module.name)
"""


@pytest.mark.parametrize(
    ("package", "without"),
    [
        ("schemas", "torch transformers apache_beam spacy"),
        ("transforms", "torch transformers benepar stanza"),
        ("pipelines", "torch transformers benepar stanza"),
        ("phrasemill", "torch transformers apache_beam spacy pyarrow numpy shtab"),
    ],
)
def test_every_module_imports_without(package: str, without: str):
    """A base install has no torch; the contract needs neither Beam nor torch.

    A module named after an extra may import it; no other module may import that module at its top.
    """
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, package, without], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_constraints_are_exact_and_name_no_place():
    assert len(PINS) > 100
    for pin in PINS:
        assert re.fullmatch(r"==[0-9a-z.]+", str(pin.specifier)), pin
        assert not pin.url, pin
    assert not re.search(r"://|--|@|/", (ROOT / "constraints.txt").read_text())


def pinned() -> dict[str, str]:
    """Name -> the version pinned for this Python and machine."""
    return {
        canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
        for pin in PINS
        if pin.marker is None or pin.marker.evaluate()
    }


def test_constraints_lie_within_the_ranges_of_every_extra():
    requirements = [Requirement(each) for each in requires("phrasemill") or []]
    assert {"spacy", "apache-beam", "benepar", "stanza", "torch", "pytest"} <= {each.name for each in requirements}
    pins = pinned()
    extras = metadata("phrasemill").get_all("Provides-Extra") or []
    for requirement in requirements:
        marker = requirement.marker
        needed = marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)  # by this Python
        if needed and requirement.name != "phrasemill":
            assert pins[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_extras():
    assert set(metadata("phrasemill").get_all("Provides-Extra") or []) == {
        *(
            "languages",
            "benepar",
            "stanza",
            "corenlp",
            "ctranslate2",
            "transformers",
            "augment",
            "negatives",
            "train",
            "evaluate",
            "faiss",
            "gcp",
            "aws",
            "dev",
            "all",
        )
    }


def test_what_is_installed_is_what_is_pinned():
    """So that a green run says something about the pins. In an environment of your own: `make test` makes one."""
    pins = pinned()
    differing = {
        name: f"{each.version} installed, {pins[name]} pinned"
        for each in distributions()
        if (name := canonicalize_name(each.name)) in pins and each.version != pins[name]
    }
    assert not differing


def test_version_is_the_project_files():
    stated = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert stated
    assert version("phrasemill") == stated[1]


@pytest.mark.parametrize(
    ("package", "folder", "some"),
    [
        ("transforms.sources.sample", "", ["README.md"]),
        ("transforms.parsing.phrasemill", "model", ["model/parser.onnx", "model/vocab.txt", "model/README.md"]),
        ("trainers.parser", "", ["recipe.toml"]),
        ("recipes", "", ["phrase_bert.toml", "pearl.toml", "uctopic.toml", "pgru.toml"]),
        ("transforms.reports", "", ["template.html", "style.css", "charts.js"]),
        ("transforms.reports", "echarts", ["echarts/echarts.min.js", "echarts/NOTICE"]),
    ],
)
def test_package_data(package: str, folder: str, some: list[str]):
    """The wheel takes what the project file lists: every file that is no code matches a pattern there."""
    text = (ROOT / "pyproject.toml").read_text()
    listed = re.search(rf'^"{re.escape(package)}" = \[(.+)\]$', text, re.MULTILINE)
    assert listed
    patterns = re.findall(r'"([^"]+)"', listed[1])
    place = ROOT / package.replace(".", "/")
    files = [path for path in (place / folder).iterdir() if path.is_file() and path.suffix != ".py"]
    assert {place / name for name in some} <= {*files}
    assert all(any(path.match(pattern) for pattern in patterns) for path in files)
