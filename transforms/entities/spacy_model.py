"""The recogniser of names in a spaCy pipeline on disk, found without loading it or spaCy."""

from __future__ import annotations

import json
from configparser import RawConfigParser
from typing import NamedTuple

from transforms.parsing.spacy_files import SpacyFiles

_RECOGNISERS = ("ner", "beam_ner")
_ENCODERS = ("tok2vec", "transformer", "curated_transformer")


class Recogniser(NamedTuple):
    """A component by name, the components before it whose vectors it reads, and all others, which need not run."""

    name: str
    reads: tuple[str, ...]
    others: tuple[str, ...]


def recogniser(files: SpacyFiles) -> Recogniser:
    """The first recogniser of names in a pipeline; ValueError if there is none."""
    config = RawConfigParser()
    config.read(files.folder / "config.cfg", encoding="utf-8")
    pipeline = json.loads(config["nlp"]["pipeline"])
    factories = {name: json.loads(config[f"components.{name}"]["factory"]) for name in pipeline}
    for place, name in enumerate(pipeline):
        if factories[name] in _RECOGNISERS:
            own = [config[each] for each in config.sections() if each.startswith(f"components.{name}.")]
            listens = any("Listener" in each.get("@architectures", "") for each in own)
            reads = tuple(each for each in pipeline[:place] if listens and factories[each] in _ENCODERS)
            return Recogniser(name, reads, tuple(each for each in pipeline if each not in (name, *reads)))
    raise ValueError(f"{files.folder} has no recogniser of named entities; use a pipeline such as en_core_web_sm")
