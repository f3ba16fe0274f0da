"""What decides each finder's output, from files and packages: no model is loaded, and no library that runs it."""

from __future__ import annotations

from importlib.metadata import version

from transforms.entities.interface import FinderIdentity, types_of
from transforms.entities.spacy_model import recogniser
from transforms.parsing.identities import sha256_of_folder
from transforms.parsing.spacy_files import find_spacy

VERSIONS = {"spacy": 1, "transformers": 1}
"""The version of our own code for each finder, raised by hand when its output changes."""


def spacy(model: str = "", *, types: str = "") -> FinderIdentity:
    files = find_spacy(model)
    inventory = types_of((files.labels or {}).get(recogniser(files).name, ()), types)
    libraries = {name: version(name) for name in ("spacy", "thinc", "numpy")}
    return _identity("spacy", files.name, files.version, sha256_of_folder(files.folder), inventory, libraries)


def _identity(
    finder: str, model: str, model_version: str, sha256: str, types: dict[str, str], libraries: dict[str, str]
) -> FinderIdentity:
    inventory = sorted({*types.values()} - {""})
    return FinderIdentity(finder, VERSIONS[finder], model, model_version, sha256, inventory, libraries)
