"""The parsers by name. Each is imported only when it is used: the last three need an extra."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from schemas.errors import UserError

if TYPE_CHECKING:
    from transforms.parsing.interface import Parser, ParserIdentity


class _Listed(NamedTuple):
    """A parser's class and its options; those in `runtime` do not affect the output."""

    module: str
    cls: str
    options: str
    runtime: tuple[str, ...] = ()


_SERVER = ("endpoint", "home", "memory", "threads", "timeout")

_PARSERS = {
    "phrasemill": _Listed("phrasemill_parser", "PhrasemillParser", "model max_tokens threads", ("threads",)),
    "spacy": _Listed("spacy_parser", "SpacyParser", "model max_tokens"),
    "benepar": _Listed("benepar_parser", "BeneparParser", "model spacy_model max_tokens batch_tokens threads"),
    "stanza": _Listed(
        "stanza_parser",
        "StanzaParser",
        "model resources pretrain forward_charlm backward_charlm spacy_model max_tokens batch_tokens threads",
    ),
    "corenlp": _Listed("corenlp_parser", "CoreNLPParser", f"model {' '.join(_SERVER)} max_tokens batch_chars", _SERVER),
}

PARSERS = tuple(_PARSERS)

RUNTIME_OPTIONS = {name: listed.runtime for name, listed in _PARSERS.items()}
"""By parser, the options that do not affect the output, such as `threads`: no part of the fingerprint."""


def load_parser(name: str, **options: Any) -> Parser:
    """Load a parser with its own options (docs/parsers.md). UserError names what is missing or unknown."""
    with _mendable(name, options) as listed:
        parser: Parser = getattr(importlib.import_module(f"transforms.parsing.{listed.module}"), listed.cls)(**options)
        return parser


@functools.lru_cache(maxsize=2)
def parser_identity(name: str, **options: Any) -> ParserIdentity:
    """What decides the parser's output, for a fingerprint; from its files. UserError as from `load_parser`."""
    from transforms.parsing import identities

    with _mendable(name, options):
        if name == "stanza" and not identities.is_stanza_file(options.get("model", "")):
            return load_parser(name, **options).identity  # only Stanza knows the file of a package's name
        identity: ParserIdentity = getattr(identities, name)(**options)
        return identity


def needs_torch(name: str, **options: Any) -> bool:
    """Whether the parser runs on torch."""
    from transforms.parsing.spacy_files import find_spacy

    with _mendable(name, options):
        return find_spacy(options.get("model", "")).needs_torch if name == "spacy" else name != "phrasemill"


@contextlib.contextmanager
def _mendable(name: str, options: dict[str, Any]) -> Iterator[_Listed]:
    """Raises UserError for an unknown name or option, and for what the parser lacks."""
    if name not in _PARSERS:
        raise UserError(f"no parser {name!r}; choose among {', '.join(PARSERS)}")
    listed = _PARSERS[name]
    known = listed.options.split()
    for option in sorted({*options} - {*known}):
        raise UserError(f"the parser {name} has no option {option!r}; it takes {', '.join(known)}")
    try:
        yield listed
    except ModuleNotFoundError as error:
        raise UserError(f"the parser {name} needs {error.name}: pip install 'phrasemill[{name}]'") from error
    except LookupError as error:
        # NLTK looks for benepar's models, and its own message has twenty lines.
        model = options.get("model", "")
        raise UserError(
            f"the parser {name}: found no model {model!r}; give the path of one, or fetch it first: "
            f"python -c \"import benepar; benepar.download('{model}')\""
        ) from error
    except (OSError, TypeError, ValueError) as error:
        raise UserError(f"the parser {name}: {error}") from error
