"""Training corpora for phrase representations, in Python: open a dataset, check it, parse text (docs/python.md).

import phrasemill

contexts = phrasemill.Dataset.open("out/contexts")

A name is imported when it is used, so `import phrasemill` takes no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schemas.dataset import Dataset
    from schemas.dataset_checks import check_dataset
    from schemas.errors import UserError
    from trainers.data import Loader, Source, torch_dataset
    from transforms.parsing.registry import load_parser

    __version__: str

__all__ = [
    "Dataset",
    "Loader",
    "Source",
    "UserError",
    "__version__",
    "check_dataset",
    "load_parser",
    "torch_dataset",
]

_PLACES = {
    "Dataset": "schemas.dataset",
    "Loader": "trainers.data",
    "Source": "trainers.data",
    "UserError": "schemas.errors",
    "check_dataset": "schemas.dataset_checks",
    "load_parser": "transforms.parsing.registry",
    "torch_dataset": "trainers.data",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("phrasemill")
    elif name in _PLACES:
        found = getattr(_imported(_PLACES[name]), name)
    else:
        raise AttributeError(f"module 'phrasemill' has no attribute {name!r}; it has {', '.join(__all__)}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__


def _imported(module: str) -> Any:
    """A module of ours. Python looks into the current folder first, where another package may have the same name."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        found = ", ".join(import_module(package).__path__)
        raise ImportError(
            f"phrasemill: {found} hides its package {package!r}; start Python in another folder, or rename yours"
        ) from None
