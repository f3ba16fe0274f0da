"""The options of parsing (docs/parsers.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import count, option
from transforms.parsing.registry import PARSERS, REGISTRY
from transforms.registry import Settings, name_and_value, settings_of


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
        takes=name_and_value,
        repeated=True,
        metavar="NAME=VALUE",
        help="an option of that parser (docs/parsers.md); may be repeated",
    )

    def settings(self) -> Settings:
        """All options of the parser, sorted by name."""
        return settings_of(self.parser_option, model=self.model, max_tokens=self.max_sentence_tokens)

    def runtime_options(self) -> Settings:
        """Those of them that do not change its output."""
        return REGISTRY.runtime(self.parser, self.settings())

    def output_options(self) -> Settings:
        """The others: what decides its output."""
        return tuple(each for each in self.settings() if each not in self.runtime_options())


@dataclass(frozen=True)
class GivenSentences:
    """Options for sentences that are given as input."""

    group: ClassVar[str] = "input"

    documents: str | None = option(
        None, place=True, metavar="DIR", help="the documents of the given sentences, if they were moved"
    )
