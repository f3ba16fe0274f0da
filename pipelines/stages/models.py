"""What stages that run models share: the same model on every machine, and spaCy without what it does not need."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

from schemas.errors import UserError
from schemas.process import without


def check_model(flag: str, wanted: Mapping[str, Any], identity: NamedTuple) -> None:
    """UserError unless the model of this machine is that of the dataset, in the manifest's form. `flag` chose it."""
    wanted = json.loads(json.dumps(wanted))
    found = json.loads(json.dumps(identity._asdict()))
    for name in sorted({*wanted, *found}):
        if wanted.get(name) != found.get(name):
            raise UserError(
                f"{flag}: its {name} is {found.get(name)} on the workers and {wanted.get(name)} here; give both the "
                "same model and libraries"
            )


def import_spacy() -> None:
    """Import spaCy without torch, which its library thinc tries to import, and without its command line.

    Both take each process seconds and memory, and are not used here. They can still be imported later.
    """
    if "spacy" in sys.modules:
        return
    command_line = {name: ModuleType(name) for name in ("spacy.cli", "spacy.cli.info")}
    vars(command_line["spacy.cli.info"])["info"] = None  # the only name that spaCy itself imports from there
    sys.modules.update(command_line)
    try:
        with without("torch"):
            importlib.import_module("spacy")
    finally:
        for name in command_line:
            del sys.modules[name]
