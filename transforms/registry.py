"""Components by name, such as parsers: each is imported only when it is used, because most need an extra."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from schemas.errors import UserError
from schemas.options import BadValue

Settings = tuple[tuple[str, str | float], ...]
"""Options of a component by name."""


class Listed(NamedTuple):
    """A component's class and its options; those in `runtime` do not affect the output."""

    module: str
    cls: str
    options: str
    runtime: tuple[str, ...] = ()


class Registry(NamedTuple):
    """Components of one kind (`what`: "parser") by name. The extra that one needs has its name."""

    what: str
    listed: Mapping[str, Listed]

    def load(self, name: str, options: dict[str, Any]) -> Any:
        """The component; UserError names what is missing or unknown."""
        with self.mendable(name, options) as listed:
            return getattr(importlib.import_module(listed.module), listed.cls)(**options)

    @contextlib.contextmanager
    def mendable(self, name: str, options: Mapping[str, Any]) -> Iterator[Listed]:
        """Raises UserError for an unknown name or option, and for what the component lacks."""
        if name not in self.listed:
            raise UserError(f"no {self.what} {name!r}; choose among {', '.join(self.listed)}")
        listed = self.listed[name]
        known = listed.options.split()
        for option in sorted({*options} - {*known}):
            raise UserError(f"the {self.what} {name} has no option {option!r}; it takes {', '.join(known)}")
        try:
            yield listed
        except ModuleNotFoundError as error:
            raise UserError(f"the {self.what} {name} needs {error.name}: pip install 'phrasemill[{name}]'") from error
        except (OSError, TypeError, ValueError) as error:
            raise UserError(f"the {self.what} {name}: {error}") from error

    def runtime(self, name: str, settings: Settings) -> Settings:
        """Those settings that do not affect the output, such as `threads`: no part of the fingerprint."""
        listed = self.listed.get(name)
        return tuple(each for each in settings if listed and each[0] in listed.runtime)


def name_and_value(text: str) -> str:
    """For an option that is given as NAME=VALUE."""
    if "=" not in text:
        raise BadValue(f"must be NAME=VALUE, not {text}")
    return text


def settings_of(given: tuple[str, ...], **named: str | float | None) -> Settings:
    """Options given as NAME=VALUE, and those that have flags of their own (None: not given), sorted by name."""
    found = {name: value for name, value in named.items() if value is not None}
    for each in given:
        name, _, value = each.partition("=")
        found[name.replace("-", "_")] = _value(value)
    return tuple(sorted(found.items()))


def _value(text: str) -> str | float:
    """A number, where the text is one."""
    for of in (int, float):
        try:
            return of(text)
        except ValueError:
            continue
    return text
