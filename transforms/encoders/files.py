"""Encoders on disk: how a model pools, and what decides its output, without loading it."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from schemas.errors import UserError
from transforms.encoders.interface import EncoderIdentity
from transforms.encoders.options import POOLINGS
from transforms.hub import locate_model, sha256_of_model

VERSION = 1
"""The version of our own code for encoders, raised by hand when its output changes."""


class EncoderFiles(NamedTuple):
    """A model in a folder.

    `pooling` is "cls", "mean" or "max"; empty if the model has modules that only sentence-transformers can run.
    `max_tokens` is None, and `lowercase` False, if the model's folder does not say.
    """

    folder: Path
    pooling: str
    normalised: bool
    max_tokens: int | None
    lowercase: bool


def find_encoder(name: str, *, asked: str = "--encoder") -> EncoderFiles:
    """The encoder in a folder, or with a name on the hub, fetched unless it is in the cache.

    UserError, which begins with the option that asked for it, if there is none.
    """
    try:
        folder = locate_model(name)
    except ModuleNotFoundError as error:
        raise UserError(f"{asked} {name}: {missing(error.name)}") from error
    except OSError as error:
        raise UserError(f"{asked}: {error}") from error
    settings = _json(folder, "sentence_bert_config.json") or {}
    lowercase = bool(settings.get("do_lower_case"))
    return EncoderFiles(folder, *_modules(folder), settings.get("max_seq_length"), lowercase)


def _modules(folder: Path) -> tuple[str, bool]:
    """How a model pools, and whether it normalises, by its modules.json; by default the mean, as it is."""
    modules = _json(folder, "modules.json") or [{"type": "Transformer", "path": ""}]
    kinds = [each["type"].rpartition(".")[2] for each in modules]
    normalised = kinds[-1] == "Normalize"
    ours = kinds in (["Transformer"], ["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
    if not ours or modules[0]["path"]:
        return "", normalised
    if len(kinds) == 1:
        return "mean", False
    pooling = _json(folder / modules[1]["path"], "config.json") or {}
    chosen = [POOLINGS.get(name, "") for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True]
    if "pooling_mode" in pooling:  # as sentence-transformers 6 writes it
        chosen = [pooling["pooling_mode"]]
    return chosen[0] if len(chosen) == 1 and chosen[0] in POOLINGS.values() else "", normalised


_IMPORTED = ("sentence_transformers.", "transforms.", "trainers.")


def brings_no_code(folder: Path) -> bool:
    """Whether the modules that a model's folder names are all of sentence-transformers or ours, and no code comes with
    it: then sentence-transformers may import them (its option trust_remote_code).
    """
    modules = _json(folder, "modules.json") or []
    named = all(each["type"].startswith(_IMPORTED) for each in modules)
    remote = any("auto_map" in (_json(each.parent, each.name) or {}) for each in folder.rglob("config.json"))
    return named and not remote and next(folder.rglob("*.py"), None) is None


def _json(folder: Path, name: str) -> Any:
    """What is in a JSON file, None if there is none."""
    path = folder / name
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path}: is no JSON ({error}); fetch the model again") from error


@cache
def encoder_identity(name: str, *, asked: str = "--encoder") -> EncoderIdentity:
    """What decides an encoder's output, from its files. UserError if it, or a library, is missing."""
    files = find_encoder(name, asked=asked)
    libraries = ("torch", "transformers", "tokenizers", *(() if files.pooling else ("sentence-transformers",)))
    try:
        versions = {each: version(each) for each in libraries}
    except PackageNotFoundError as error:
        raise UserError(f"{asked} {name}: {missing(error.name)}") from error
    pooling = files.pooling or "its own modules"
    short = name.rstrip("/").rpartition("/")[2]
    return EncoderIdentity(short, VERSION, sha256_of_model(files.folder), pooling, files.normalised, versions)


def missing(library: str | None) -> str:
    """What is said of a library that is not installed."""
    if (library or "").startswith("sentence"):
        return "has modules that need sentence-transformers: pip install sentence-transformers"
    return f"needs {library}: pip install 'phrasemill[transformers]'"
