"""The options of parsing (docs/parsers.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import BadValue, count, option
from transforms.parsing.registry import PARSERS, RUNTIME_OPTIONS

Settings = tuple[tuple[str, str | float], ...]
"""Options of a parser by name."""


def _name_and_value(text: str) -> str:
    if "=" not in text:
        raise BadValue(f"must be NAME=VALUE, not {text}")
    return text


@dataclass(frozen=True)
class ParsingOptions:
    """Which parser, and its own options."""

    group: ClassVar[str] = "parsing"

    parser: str = option("phrasemill", choices=PARSERS, help="the parser of constituents")
    model: str | None = option(
        None, metavar="NAME", help="the parser's model: a name or a path", unset="the parser's own"
    )
    max_sentence_tokens: int | None = option(
        None, takes=count, metavar="N", help="reject longer sentences", unset="the parser's"
    )
    parser_option: tuple[str, ...] = option(
        (),
        takes=_name_and_value,
        repeated=True,
        metavar="NAME=VALUE",
        help="an option of that parser (docs/parsers.md); may be repeated",
    )

    def settings(self) -> Settings:
        """All options of the parser, sorted by name."""
        found: dict[str, str | float] = {}
        if self.model is not None:
            found["model"] = self.model
        if self.max_sentence_tokens is not None:
            found["max_tokens"] = self.max_sentence_tokens
        for each in self.parser_option:
            name, _, value = each.partition("=")
            found[name.replace("-", "_")] = _value(value)
        return tuple(sorted(found.items()))

    def runtime_options(self) -> Settings:
        """Those of them that do not change its output."""
        return tuple(each for each in self.settings() if each[0] in RUNTIME_OPTIONS.get(self.parser, ()))

    def output_options(self) -> Settings:
        """The others: what decides its output."""
        return tuple(each for each in self.settings() if each not in self.runtime_options())


def _value(text: str) -> str | float:
    """A number, where the text is one."""
    for of in (int, float):
        try:
            return of(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True)
class GivenSentences:
    """Options for sentences that are given as input."""

    group: ClassVar[str] = "input"

    documents: str | None = option(
        None, place=True, metavar="DIR", help="the documents of the given sentences, if they were moved"
    )
