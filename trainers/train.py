"""Trains a model: `python -m trainers.train MODEL --help` says how."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from schemas.commands import spelled
from schemas.errors import UserError
from trainers.parser.command import TOOL as TOOL

MODELS = {
    "parser": "trainers.parser.command",
    "entities": "trainers.entities.command",
    "paraphraser": "trainers.paraphraser.command",
    "phrase_bert": "trainers.phrase_bert.command",
    "pearl": "trainers.pearl.command",
    "uctopic": "trainers.uctopic.command",
    "uctopic_clusters": "trainers.uctopic.clusters_command",
    "pgru": "trainers.pgru.command",
}
"""The module of each model; it has a `TOOL`, and `main(arguments) -> exit status`."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        print(f"usage: {spelled('trainers.train')} MODEL [option ...]\n\nMODEL is one of")
        for name, module in MODELS.items():
            print(f"  {name:16}  {importlib.import_module(module).TOOL.description}")
        return 0 if given else 2
    name, *rest = given
    name = name.replace("-", "_")
    if name not in MODELS:
        print(f"error: no model {name!r}; there are {', '.join(MODELS)}", file=sys.stderr)
        return 2
    try:
        return int(importlib.import_module(MODELS[name]).main(rest))
    except ModuleNotFoundError as error:
        print(f"error: training needs {error.name}: pip install 'phrasemill[train]'", file=sys.stderr)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
