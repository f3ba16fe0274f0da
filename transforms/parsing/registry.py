"""The parsers by name. Each is imported only when it is used: the last three need an extra."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from schemas.errors import UserError
from transforms.registry import Listed, Registry

if TYPE_CHECKING:
    from transforms.parsing.interface import Parser, ParserIdentity


def _listed(name: str, cls: str, options: str, runtime: tuple[str, ...] = ()) -> Listed:
    return Listed(f"transforms.parsing.{name}_parser", cls, options, runtime)


_SERVER = ("endpoint", "home", "memory", "threads", "timeout")

REGISTRY = Registry(
    "parser",
    {
        "phrasemill": _listed("phrasemill", "PhrasemillParser", "model max_tokens threads", ("threads",)),
        "spacy": _listed("spacy", "SpacyParser", "model max_tokens"),
        "benepar": _listed("benepar", "BeneparParser", "model spacy_model max_tokens batch_tokens threads"),
        "stanza": _listed(
            "stanza",
            "StanzaParser",
            "model resources pretrain forward_charlm backward_charlm spacy_model max_tokens batch_tokens threads",
        ),
        "corenlp": _listed("corenlp", "CoreNLPParser", f"model {' '.join(_SERVER)} max_tokens batch_chars", _SERVER),
    },
)

PARSERS = tuple(REGISTRY.listed)


def load_parser(name: str, **options: Any) -> Parser:
    """Load a parser with its own options (docs/parsers.md). UserError names what is missing or unknown."""
    with _mendable(options):
        parser: Parser = REGISTRY.load(name, options)
        return parser


@functools.lru_cache(maxsize=2)
def parser_identity(name: str, **options: Any) -> ParserIdentity:
    """What decides the parser's output, for a fingerprint; from its files. UserError as from `load_parser`."""
    from transforms.parsing import identities

    with _mendable(options), REGISTRY.mendable(name, options):
        if name == "stanza" and not identities.is_stanza_file(options.get("model", "")):
            return load_parser(name, **options).identity  # only Stanza knows the file of a package's name
        identity: ParserIdentity = getattr(identities, name)(**options)
        return identity


def needs_torch(name: str, **options: Any) -> bool:
    """Whether the parser runs on torch."""
    from transforms.parsing.spacy_files import find_spacy

    with REGISTRY.mendable(name, options):
        return find_spacy(options.get("model", "")).needs_torch if name == "spacy" else name != "phrasemill"


@contextlib.contextmanager
def _mendable(options: dict[str, Any]) -> Iterator[None]:
    """UserError where NLTK looks for benepar's models in vain: its own message has twenty lines."""
    try:
        yield
    except LookupError as error:
        model = options.get("model", "")
        raise UserError(
            f"the parser benepar: found no model {model!r}; give the path of one, or fetch it first: "
            f"python -c \"import benepar; benepar.download('{model}')\""
        ) from error
