"""Options as fields of frozen dataclasses; flags, `--help` and the tables of the docs follow from them.

    @dataclass(frozen=True)
    class WindowRules:
        group: ClassVar[str] = "contexts"

        window: int = option(120, takes=count, metavar="N", help="tokens of a context, the phrase included")
        mask_others: bool = option(True, flag="--keep-other-occurrences", help="mask only the chosen occurrence")

    flags = Flags("python -m pipelines.mine_contexts", (WindowRules,))
    chosen, rest = flags.parse_known(["--window", "60", "--job_name=x"])
    chosen[WindowRules]                            WindowRules(window=60, mask_others=True)
    flags.arguments(chosen[WindowRules])           ["--window", "60"]
    rest                                           ["--job_name=x"]

The classes are ordinary ones: code that is called without a command line has the same defaults. The name of a flag is
that of its field. An option that is True by default is switched off by its flag, which has to be named.

A class with an option `preset` has `presets`, by name: instances of classes, whose values are then the defaults.
"""

from __future__ import annotations

import argparse
import difflib
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, NoReturn, TypeVar

from schemas.errors import UserError
from schemas.storage.addresses import checked_arguments

T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """An option: the field's name and default (MISSING: it has to be given), and what is said of it.

    takes       makes the value from a text; raises BadValue for one that is none
    own_flag    the flag, where it is not the field's name; without dashes: a positional argument
    also        other names of the flag
    repeated    the flag may be given several times; the value is a tuple
    place       the value is a path or an address
    unset       what `--help` says of the default where its value does not say it
    opposite    of a switch that is on: the help of its flag where an instance has it off; the flag is the field's name
    more        what the docs say beyond the help: sentences
    source      the paper that the default follows, with the section
    """

    name: str
    default: Any
    help: str
    takes: Callable[[str], Any]
    metavar: str | None
    choices: tuple[str, ...]
    own_flag: str
    also: tuple[str, ...]
    repeated: bool
    place: bool
    unset: str
    opposite: str
    more: str
    source: str

    @property
    def is_switch(self) -> bool:
        return isinstance(self.default, bool)

    @property
    def is_positional(self) -> bool:
        return not self.flag.startswith("--")

    @property
    def flag(self) -> str:
        return self.own_flag or "--" + self.name.replace("_", "-")

    @property
    def back_flag(self) -> str:
        """The flag that gives a switch its default again where a preset has changed it."""
        return ("--" if self.default else "--no-") + self.name.replace("_", "-")

    @property
    def shown_default(self) -> str:
        """The default as people read it; empty if there is none."""
        if self.unset or self.is_switch or self.default in (MISSING, None, "", ()):
            return self.unset
        if isinstance(self.default, int | float):
            return format(self.default, "," if isinstance(self.default, int) else "g")
        return _text(self.default)


def option(
    default: Any = MISSING,
    *,
    help: str,
    takes: Callable[[str], Any] = str,
    metavar: str | None = None,
    choices: tuple[str, ...] = (),
    flag: str = "",
    also: tuple[str, ...] = (),
    repeated: bool = False,
    place: bool = False,
    unset: str = "",
    opposite: str = "",
    more: str = "",
    source: str = "",
) -> Any:
    """A field of a dataclass that is an option; one without a default has to be given."""
    if default is True and not flag:
        raise ValueError("what is on by default needs a name for the flag that switches it off")
    said = (help, takes, metavar, choices, flag, also, repeated, place, unset, opposite, more, source)
    return field(default=default, metadata={"option": said})


def options_of(group: Any) -> Iterator[Option]:
    """The options of a class, or of an instance, whose values are then the defaults."""
    for each in fields(group):
        if said := each.metadata.get("option"):
            found = Option(each.name, each.default, *said)
            own = each.default if isinstance(group, type) else getattr(group, each.name)
            if own == each.default:
                yield found
            elif each.default is True:
                if not found.opposite:
                    raise ValueError(f"{each.name}: what the flag does that switches it on is not said (opposite=)")
                yield replace(found, default=own, own_flag="", help=found.opposite, more="")
            else:
                yield replace(found, default=own, unset="")


# ---- What a text has to be


class BadValue(argparse.ArgumentTypeError):
    """A text that is no value of an option; says what it must be."""


def number(of: Callable[[str], float], fits: Callable[[float], bool], wanted: str) -> Callable[[str], float]:
    """A number within limits."""

    def convert(text: str) -> float:
        try:
            found = of(text)
        except ValueError:
            found = None
        if found is None or not fits(found):
            raise BadValue(f"must be {wanted}, not {text}")
        return found

    return convert


whole = number(int, lambda each: True, "a whole number")
natural = number(int, lambda each: each >= 0, "a whole number of 0 or more")
count = number(int, lambda each: each >= 1, "a whole number of 1 or more")
rate = number(float, lambda each: 0 < each <= 1, "a number above 0 and at most 1")
share = number(float, lambda each: 0 <= each < 1, "a number of 0 or more and below 1")
reject_rate = number(float, lambda each: 0 <= each <= 1, "a number from 0 to 1")


def some_of(terms: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Some of these terms, with commas between; they come in the order of `terms`."""

    def convert(text: str) -> tuple[str, ...]:
        wanted = {each.strip().casefold() for each in text.split(",") if each.strip()}
        if not wanted or wanted - {each.casefold() for each in terms}:
            raise BadValue(f"choose among {', '.join(terms)}, not {text}")
        return tuple(each for each in terms if each.casefold() in wanted)

    return convert


# ---- Chosen options


def _text(value: Any) -> str:
    if type(value) is not tuple:
        return str(value)
    # A whole number alone may be how many there are.
    return ",".join(map(str, value)) + ("," if len(value) == 1 and isinstance(value[0], int) else "")


class Chosen:
    """The options that somebody chose: an instance of each class."""

    def __init__(self, options: Sequence[Any]) -> None:
        self._options = {type(each): each for each in options}

    def __getitem__(self, of: type[T]) -> T:
        """The instance of a class, or else of a class derived from it."""
        found: T = self._options.get(of) or next(each for each in self if isinstance(each, of))
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._options.values())

    def with_(self, *options: Any) -> Chosen:
        """The same with other instances of some classes."""
        return Chosen([*self, *options])


# ---- The command line


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see --help")


class Flags:
    """The flags of a command. `groups` are classes of options, or instances whose values are the defaults."""

    def __init__(
        self,
        prog: str,
        groups: Sequence[Any],
        *,
        description: str = "",
        usage: str | None = None,
        epilog: str | None = None,
    ) -> None:
        self._groups = {each if isinstance(each, type) else type(each): each for each in groups}
        self.parser = _Parser(
            prog=prog,
            usage=usage,
            description=description,
            epilog=epilog,
            formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=34, width=110),
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
        )
        self._presets = {name: own for of in self._groups for name, own in getattr(of, "presets", {}).items()}
        self.places: list[argparse.Action] = []
        """The flags of paths and addresses, for completion in a shell."""
        titles: dict[str, Any] = {"": self.parser}
        for of, group in self._groups.items():
            title = getattr(of, "group", "")
            if title not in titles:
                titles[title] = self.parser.add_argument_group(title)
            in_presets = [each for own in self._presets.values() for each in own if type(each) is of]
            for each in options_of(group):
                dest = f"{_dest(of)}{each.name}"
                action = _add(titles[title], each, dest=dest)
                if each.place:
                    self.places.append(action)
                if each.is_switch and any(getattr(own, each.name) != each.default for own in in_presets):
                    back = "store_true" if each.default else "store_false"
                    titles[title].add_argument(each.back_flag, action=back, dest=dest, help=argparse.SUPPRESS)

    @property
    def groups(self) -> tuple[type, ...]:
        return tuple(self._groups)

    def options(self, group: type) -> Iterator[Option]:
        """The options of a class, with the defaults that they have here."""
        return options_of(self._groups[group])

    @property
    def names(self) -> list[str]:
        shown = (action for action in self.parser._actions if action.help != argparse.SUPPRESS)
        return [flag for action in shown for flag in action.option_strings]

    def parse(self, arguments: Sequence[str] | None) -> Chosen:
        """The options. UserError for a flag that there is not, naming the nearest."""
        chosen, rest = self.parse_known(arguments)
        if rest:
            raise UserError(no_such_flag(rest[0], self.names))
        return chosen

    def parse_known(self, arguments: Sequence[str] | None) -> tuple[Chosen, list[str]]:
        """The options, and the arguments that are no flags of ours."""
        given, rest = self.parser.parse_known_args(checked_arguments(arguments))
        values = vars(given)
        chosen = (values.get(f"{_dest(of)}preset") for of in self._groups if hasattr(of, "presets"))
        preset, found = self._preset(next(chosen, None)), []
        for of, group in self._groups.items():
            own = vars(preset[of]) if of in preset else {} if isinstance(group, type) else vars(group)
            for each in options_of(group):
                value = values.get(f"{_dest(of)}{each.name}", MISSING)
                if value is not MISSING:
                    own = own | {each.name: tuple(value) if each.repeated else value}
            found.append(of(**own))
        return Chosen(found), rest

    def _preset(self, name: str | None) -> dict[type, Any]:
        """What a preset has instead of the defaults, by class."""
        return {type(each): each for each in self._presets.get(name, ())}

    def arguments(self, *options: Any) -> list[str]:
        """Options as one would type them, less those that have their defaults, or what the preset among them has."""
        preset = self._preset(next((each.preset for each in options if hasattr(each, "presets")), None))
        found: list[str] = []
        for chosen in options:
            for each in self.options(type(chosen)):
                value = getattr(chosen, each.name)
                if value == getattr(preset.get(type(chosen)), each.name, each.default):
                    continue
                if each.is_switch:
                    found.append(each.flag if value != each.default else each.back_flag)
                    continue
                for text in map(_text, value if each.repeated else [value]):
                    if each.is_positional:
                        found.append(text)
                    else:
                        found += [f"{each.flag}={text}"] if text.startswith("-") else [each.flag, text]
        return found


def no_such_flag(argument: str, known: Sequence[str]) -> str:
    """What is said of an argument that nobody takes, with the nearest that somebody does."""
    flag = argument.split("=")[0]
    if not flag.startswith("-"):
        is_input = argument.strip() and "--input" in known
        remedy = f"to read it: --input {shlex.quote(argument)} (once for each input; quote a glob)" if is_input else ""
        return f"{argument!r}: is no flag; {remedy or 'see --help'}"
    near = difflib.get_close_matches(flag, known, n=1)
    return f"{flag}: no such flag" + (f"; did you mean {near[0]}?" if near else "; see --help")


def _dest(of: type) -> str:
    return f"{of.__module__}.{of.__qualname__}."


def _add(to: Any, each: Option, *, dest: str) -> Any:
    help = each.help + (f" (default: {each.shown_default})" if each.shown_default else "")
    said: dict[str, Any] = {"help": help.replace("%", "%%"), "dest": dest}
    if each.is_switch:
        return to.add_argument(each.flag, *each.also, action="store_false" if each.default else "store_true", **said)
    said |= {"type": _not_empty(each.takes), "metavar": each.metavar, "choices": each.choices or None}
    if each.is_positional:
        return to.add_argument(**{**said, "metavar": each.flag}, nargs="+" if each.repeated else None)
    said |= {"action": "append" if each.repeated else "store", "required": each.default is MISSING}
    return to.add_argument(each.flag, *each.also, **said)


def _not_empty(takes: Callable[[str], Any]) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        if not text.strip():
            raise BadValue("must not be empty")
        return takes(text)

    return convert
