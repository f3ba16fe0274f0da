"""What decides each finder's output, from files and packages: no model is loaded, and no library that runs it."""

from __future__ import annotations

import json
from importlib.metadata import version

from schemas.errors import UserError
from transforms.entities.interface import FinderIdentity, types_of
from transforms.entities.spacy_model import recogniser
from transforms.entities.tags import tags_of
from transforms.hub import locate_model, sha256_of_model
from transforms.parsing.identities import sha256_of_folder
from transforms.parsing.phrasemill.model_file import ENTITY_HEAD, ModelFile, read_model_file
from transforms.parsing.spacy_files import find_spacy

VERSIONS = {"phrasemill": 1, "spacy": 1, "transformers": 1}
"""The version of our own code for each finder, raised by hand when its output changes."""


def phrasemill(model: str = "", *, types: str = "") -> FinderIdentity:
    parser, head = read_model_file(), read_model_file(model or None, ENTITY_HEAD)
    if head.metadata.get("parser") != parser.sha256:
        raise UserError(f"{head.name}: made for another parser than the shipped one; train it again")
    inventory = types_of(sorted({each.type for each in tags_of(dict(enumerate(labels_of(head))))} - {""}), types)
    libraries = {name: version(name) for name in ("onnxruntime", "numpy")}
    return _identity("phrasemill", "phrasemill", "", f"{parser.sha256} {head.sha256}", inventory, libraries)


def labels_of(head: ModelFile) -> list[str]:
    """The labels of an entity head, in the order of their numbers."""
    return [str(each) for each in json.loads(head.metadata["labels"])]


def spacy(model: str = "", *, types: str = "") -> FinderIdentity:
    files = find_spacy(model)
    inventory = types_of((files.labels or {}).get(recogniser(files).name, ()), types)
    libraries = {name: version(name) for name in ("spacy", "thinc", "numpy")}
    return _identity("spacy", files.name, files.version, sha256_of_folder(files.folder), inventory, libraries)


def transformers(model: str = "", *, types: str = "", batch_tokens: object = 1, threads: object = 1) -> FinderIdentity:
    if not model:
        raise ValueError("give a token classifier with --entity-model: a folder, or a name of the hub (OWNER/NAME)")
    for name, value in (("batch_tokens", batch_tokens), ("threads", threads)):
        if not (isinstance(value, int) and value >= 1):
            raise ValueError(f"{name} must be a whole number of 1 or more, not {value!r}")
    folder = locate_model(model)
    config = json.loads((folder / "config.json").read_bytes())
    architectures = config.get("architectures") or ["nothing"]
    if not any(each.endswith("ForTokenClassification") for each in architectures):
        raise ValueError(f"{model} is no token classifier: its config.json names {', '.join(architectures)}")
    labels = {int(number): str(label) for number, label in config.get("id2label", {}).items()}
    inventory = types_of(sorted({each.type for each in tags_of(labels)} - {""}), types)
    of_hub = folder.parent.name == "snapshots"
    libraries = {name: version(name) for name in ("torch", "transformers", "tokenizers")}
    return _identity(
        "transformers",
        model if of_hub else folder.name,
        folder.name if of_hub else "",
        sha256_of_model(folder),
        inventory,
        libraries,
    )


def _identity(
    finder: str, model: str, model_version: str, sha256: str, types: dict[str, str], libraries: dict[str, str]
) -> FinderIdentity:
    inventory = sorted({*types.values()} - {""})
    return FinderIdentity(finder, VERSIONS[finder], model, model_version, sha256, inventory, libraries)
