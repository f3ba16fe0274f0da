"""Encoders on disk: where a model is, how it pools, and what decides its output, without loading it."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from schemas.errors import UserError
from transforms.digests import sha256_of
from transforms.encoders.interface import EncoderIdentity

VERSION = 1
"""The version of our own code for encoders, raised by hand when its output changes."""

EXTRA = "pip install 'phrasemill[encode]'"

POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
}
"""What we pool ourselves, by the names that sentence-transformers has for it."""

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_WANTED = ("*.json", "*.txt", "*.model", "*.safetensors")
_OTHER_RUNTIMES = ("onnx/*", "openvino/*")


class EncoderFiles(NamedTuple):
    """A model in a folder.

    `pooling` is "cls", "mean" or "max"; empty if the model has modules that only sentence-transformers can run.
    `max_tokens` is None, and `lowercase` False, if the model's folder does not say.
    """

    folder: Path
    name: str
    pooling: str
    normalised: bool
    max_tokens: int | None
    lowercase: bool


def find_encoder(name: str) -> EncoderFiles:
    """The encoder in a folder, or with a name on the hub, fetched unless it is in the cache. UserError if none."""
    folder = _located(name)
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise UserError(f"--encoder {name}: no model there: neither config.json nor modules.json; give its folder")
    pooling, normalised = _modules(folder)
    settings = _json(folder, "sentence_bert_config.json")
    return EncoderFiles(
        folder,
        name.rstrip("/").rpartition("/")[2],
        pooling,
        normalised,
        settings.get("max_seq_length"),
        bool(settings.get("do_lower_case")),
    )


def _located(name: str) -> Path:
    if Path(name).is_dir():
        return Path(name).resolve()
    if not _HUB_NAME.fullmatch(name):
        raise UserError(f"--encoder {name}: no such folder, and no name on the hub (OWNER/NAME); give one of both")
    try:
        from huggingface_hub import snapshot_download
    except ModuleNotFoundError as error:
        raise UserError(f"--encoder {name}: models of the hub need {error.name}: {EXTRA}") from error
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, allow_patterns=[*_WANTED], ignore_patterns=[*_OTHER_RUNTIMES]))
        if not any(folder.rglob("*.safetensors")):
            snapshot_download(name, allow_patterns=[*_WANTED, "*.bin"], ignore_patterns=[*_OTHER_RUNTIMES])
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        what = str(error).strip().splitlines()[0]
        raise UserError(
            f"--encoder {name}: is no folder, and cannot be had from the hub ({what}); fetch it where there is a "
            f"network: hf download {name} --local-dir DIR, and give --encoder DIR"
        ) from error
    return folder


def _modules(folder: Path) -> tuple[str, bool]:
    """How a model pools, and whether it normalises, by its modules.json; by default the mean, as it is."""
    modules = _json(folder, "modules.json") or [{"type": "Transformer"}]
    kinds = [each["type"].rpartition(".")[2] for each in modules]
    if kinds[0] != "Transformer" or kinds[1:] not in ([], ["Pooling"], ["Pooling", "Normalize"]):
        return "", kinds[-1] == "Normalize"
    if modules[0].get("path"):
        return "", kinds[-1] == "Normalize"
    if len(kinds) == 1:
        return "mean", False
    pooling = _json(folder / modules[1]["path"], "config.json")
    chosen = [POOLINGS.get(name, "") for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True]
    if mode := pooling.get("pooling_mode"):
        chosen = [mode if mode in POOLINGS.values() else ""]
    return chosen[0] if len(chosen) == 1 else "", kinds[-1] == "Normalize"


def _json(folder: Path, name: str) -> Any:
    path = folder / name
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path}: is no JSON ({error}); fetch the model again") from error


@cache
def encoder_identity(name: str) -> EncoderIdentity:
    """What decides an encoder's output, from its files. UserError if it, or a library, is missing."""
    files = find_encoder(name)
    libraries = ["torch", "transformers", "tokenizers"]
    try:
        versions = {each: version(each) for each in libraries}
        if not files.pooling:
            versions["sentence-transformers"] = version("sentence-transformers")
    except PackageNotFoundError as error:
        raise UserError(f"--encoder {name}: {missing(str(error.name), files)}") from error
    return EncoderIdentity(
        files.name, VERSION, _sha256(files.folder), files.pooling or "its own modules", files.normalised, versions
    )


def missing(library: str, files: EncoderFiles) -> str:
    """What is said of a library that is not installed."""
    if library.startswith("sentence"):
        return "has modules that need sentence-transformers: pip install sentence-transformers"
    return f"needs {library}: {EXTRA}"


@cache
def _sha256(folder: Path) -> str:
    """The sha256 of the files that are read, with their names: no README, no weights for other programs."""
    weights = "*.safetensors" if any(folder.rglob("*.safetensors")) else "*.bin"
    found = {file for pattern in (*_WANTED, weights) for file in folder.rglob(pattern)}
    return sha256_of(folder, [file for file in found if not any(file.match(each) for each in _OTHER_RUNTIMES)])
