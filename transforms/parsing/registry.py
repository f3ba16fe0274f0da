"""The parsers by name. Each is imported only when it is asked for: the last three need an extra."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any

from schemas.errors import UserError
from transforms.parsing.interface import Parser, ParserIdentity

_CLASSES = {
    "phrasemill": ("transforms.parsing.phrasemill_parser", "PhrasemillParser"),
    "spacy": ("transforms.parsing.spacy_parser", "SpacyParser"),
    "benepar": ("transforms.parsing.benepar_parser", "BeneparParser"),
    "stanza": ("transforms.parsing.stanza_parser", "StanzaParser"),
    "corenlp": ("transforms.parsing.corenlp_parser", "CoreNLPParser"),
}

PARSERS = tuple(_CLASSES)

MEANS = {"phrasemill": ("threads",), "corenlp": ("endpoint", "home", "memory", "threads", "timeout")}
"""Options that say by what means a parser works, not what it finds: they are no part of a fingerprint."""


def load_parser(name: str, **options: Any) -> Parser:
    """Load a parser with its own options (docs/parsers.md). UserError names what is missing or unknown."""
    if name not in _CLASSES:
        raise UserError(f"no parser {name!r}; choose among {', '.join(PARSERS)}")
    module, cls = _CLASSES[name]
    try:
        parser = getattr(importlib.import_module(module), cls)
    except ModuleNotFoundError as error:
        raise UserError(f"the parser {name} needs {error.name}: pip install 'phrasemill[{name}]'") from error
    known = list(inspect.signature(parser).parameters)
    for option in sorted({*options} - {*known}):
        raise UserError(f"the parser {name} has no option {option!r}; it takes {', '.join(known)}")
    try:
        return parser(**options)
    except LookupError as error:
        # NLTK looks for benepar's models, and says so in twenty lines.
        model = options.get("model", "")
        raise UserError(
            f"the parser {name}: found no model {model!r}; give the path of one, or fetch it first: "
            f"python -c \"import benepar; benepar.download('{model}')\""
        ) from error
    except (OSError, TypeError, ValueError) as error:
        raise UserError(f"the parser {name}: {error}") from error


@functools.lru_cache(maxsize=2)
def parser_identity(name: str, **options: Any) -> ParserIdentity:
    """What decides the parser's output, for a fingerprint."""
    return load_parser(name, **options).identity
