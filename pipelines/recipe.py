"""Runs a recipe: the commands from raw text to the evaluation table of a paper, one after the other.

python -m pipelines.recipe phrase_bert --input enwiki.xml.bz2 --output out/phrase_bert --evaluation eval
python -m pipelines.recipe my.toml --scale full --dry-run

A recipe is a TOML file (recipes/*.toml are those that are shipped):

    about = "Phrase-BERT (Wang, Thompson and Iyyer, EMNLP 2021)"

    [scales.tiny]                  # each table is a scale; its values are the {names} that commands use
    model = "sentence-transformers/all-MiniLM-L6-v2"

    [[steps]]
    run = "mine-contexts --input {input} --output {output}/contexts"
    tiny = "--max-phrases 3000"    # more options, at this scale
    only = "tiny"                  # the step is left out at other scales

{input} is each --input, {output} the folder of --output, {here} the same where that is no address (for what is always
written on this machine), {evaluation} the folder of evaluation sets. A step that uses {evaluation} is left out without
one, and what would read its output reads its input.
"""

from __future__ import annotations

import difflib
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.options import RUNNERS, check_beam_flags, shown_arguments
from schemas.commands import Tool, name_of, started, typed
from schemas.errors import UserError
from schemas.options import count, option
from schemas.storage.addresses import is_address

FOLDER = Path(__file__).resolve().parent.parent / "recipes"
SIGNALS = (signal.SIGINT, signal.SIGTERM)
SHIPPED = tuple(sorted(each.stem for each in FOLDER.glob("*.toml")))


@dataclass(frozen=True)
class RecipeOptions:
    """Which recipe, from what, to what."""

    recipe: str = option(flag="RECIPE", help=f"{', '.join(SHIPPED)}, or a TOML file of your own")
    input: tuple[str, ...] = option(
        (), repeated=True, place=True, metavar="PATH", help="what to read; may be repeated", unset="the sample"
    )
    output: str | None = option(
        None, place=True, metavar="DIR", help="the folder of all that is made", unset="out/ and the recipe's name"
    )
    scale: str = option("tiny", metavar="NAME", help="a scale of the recipe: tiny or full")
    evaluation: str | None = option(
        None,
        also=("--data",),
        place=True,
        metavar="DIR",
        help="the folder of the evaluation sets (docs/evaluation.md); without it nothing is evaluated",
    )
    model: str | None = option(
        None, metavar="MODEL", help="the model to begin with: a folder, or a name on the hub", unset="the recipe's"
    )
    set: tuple[str, ...] = option(
        (), repeated=True, metavar="NAME=VALUE", help="another value of the recipe's scale, such as encoder=DIR"
    )
    runner: str = option("DirectRunner", choices=RUNNERS, help="where datasets are made", unset="this machine")
    workers: int | None = option(None, takes=count, metavar="N", help="processes on a machine", unset="one a core")
    dry_run: bool = option(False, help="only print the commands")


TOOL = Tool("pipelines.recipe", "Runs all commands of a paper, from raw text to the table.", RecipeOptions)


class Step(NamedTuple):
    """A step of a recipe. `place`: the file and the step, for errors. `more`: further options, by scale."""

    place: str
    run: str
    more: Mapping[str, str]
    only: str | None

    def words(self, scale: str) -> list[str]:
        try:
            return shlex.split(f"{self.run} {self.more.get(scale, '')}")
        except ValueError as error:
            raise UserError(f"{self.place}: cannot be split into words: {error}") from error


class Recipe(NamedTuple):
    """`scales`: the values of each."""

    place: str
    about: str
    scales: Mapping[str, Mapping[str, str]]
    steps: Sequence[Step]


# ---- Reading a file


def find(name: str) -> Path:
    """The file of a recipe."""
    if name in SHIPPED:
        return FOLDER / f"{name}.toml"
    if name.endswith(".toml"):
        return Path(name)
    near = difflib.get_close_matches(name, SHIPPED, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(SHIPPED)}, or give a .toml file"
    raise UserError(f"{name}: no such recipe; {hint}")


def read(path: Path) -> Recipe:
    """UserError names the file and the key that is missing, unknown or of the wrong type."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: cannot be read as a recipe: {error}") from error
    place = str(path)
    _check(table, {"about": str, "scales": dict, "steps": list}, place)
    for scale, values in table["scales"].items():
        _check(values, dict.fromkeys(values, str) if isinstance(values, dict) else {}, f"{place}: scales.{scale}")
    steps = []
    for number, step in enumerate(table["steps"], 1):
        here = f"{place}: step {number}"
        _check(step, {"run": str} | dict.fromkeys(("only", *table["scales"]), str), here, optional=True)
        steps.append(Step(here, step["run"], more=step, only=step.get("only")))
        if steps[-1].only not in (None, *table["scales"]):
            raise UserError(f"{here}: only: no scale {steps[-1].only!r}; there are {', '.join(table['scales'])}")
    return Recipe(place, table["about"], table["scales"], steps)


_TYPES: Mapping[type, str] = {str: "a text", dict: "a table", list: "a list of tables"}


def _check(table: Any, known: Mapping[str, type], place: str, *, optional: bool = False) -> None:
    """UserError unless these are its keys and types; `optional`: only the first has to be there."""
    if not isinstance(table, dict):
        raise UserError(f"{place}: must be a table, not {table!r}")
    for key, value in table.items():
        if key not in known:
            raise UserError(f"{place}: no key {key!r}; there are {', '.join(known)}")
        if not isinstance(value, known[key]):
            raise UserError(f"{place}: {key}: must be {_TYPES[known[key]]}, not {value!r}")
    for key in list(known)[: 1 if optional else None]:
        if key not in table:
            raise UserError(f"{place}: has no {key!r}")


# ---- Its commands


class Line(NamedTuple):
    """A command that is run: its module, the recipe's arguments, and those of this run."""

    module: str
    arguments: Sequence[str]
    of_run: Sequence[str] = ()

    @property
    def typed(self) -> str:
        """To paste in the current folder, without credentials."""
        return typed(self.module, *shown_arguments([*self.arguments, *self.of_run]))


def lines(recipe: Recipe, options: RecipeOptions, *, beam_args: Sequence[str] = ()) -> Iterator[Line]:
    """The commands at a scale, each parsed as it will be. UserError for what one of them does not take.

    `beam_args` go to the commands that write datasets; they are checked already.
    """
    of_run = ["--resume"]
    of_run += ["--runner", options.runner] if options.runner != "DirectRunner" else []
    of_run += ["--workers", str(options.workers)] if options.workers else []
    values = _values(recipe, options)
    instead = dict[str, str]()
    for step in recipe.steps:
        if step.only not in (None, options.scale):
            continue
        words = step.words(options.scale)
        if options.evaluation or not any("{evaluation}" in each for each in words):
            filled = [instead.get(each, each) for each in _filled(words, values, step.place)]
            found = _parsed(filled, of_run, step.place)
            yield found._replace(of_run=[*found.of_run, *beam_args]) if found.of_run else found
        elif "--input" in words and "--output" in words:
            source, output = (
                _filled([words[words.index(flag) + 1]], values, step.place)[0] for flag in ("--input", "--output")
            )
            instead[output] = instead.get(source, source)


def _values(recipe: Recipe, options: RecipeOptions) -> Mapping[str, Sequence[str]]:
    if options.scale not in recipe.scales:
        raise UserError(f"{recipe.place}: no scale {options.scale!r}; there are {', '.join(recipe.scales)}")
    default = f"out/{Path(recipe.place).stem}"
    output = options.output or default
    given = {"model": options.model} if options.model else {}
    for each in options.set:
        name, equals, value = each.partition("=")
        if not equals or not value:
            raise UserError(f"--set {each}: must be NAME=VALUE")
        given[name] = value
    used = " ".join(part for step in recipe.steps for part in (step.run, *step.more.values()))
    for name in given:
        if f"{{{name}}}" not in used or name in ("input", "output", "here", "evaluation"):
            raise UserError(f"{recipe.place}: no step takes a value {name!r} that can be set")
    found = {**recipe.scales[options.scale], **given, "output": output.rstrip("/")}
    found["here"] = default if is_address(output) else found["output"]
    if options.evaluation:
        found["evaluation"] = options.evaluation
    return {"input": options.input} | {name: (value,) for name, value in found.items()}


def _filled(words: Sequence[str], values: Mapping[str, Sequence[str]], place: str) -> list[str]:
    """The words with values for names; a flag is repeated for each of several values, and left out for none."""
    found: list[str] = []
    for word in words:
        if word == "{input}":
            flag = found.pop()
            found += [part for value in values["input"] for part in (flag, value)]
            continue
        try:
            found.append(word.format_map({name: value[0] for name, value in values.items() if value}))
        except KeyError as error:
            name = error.args[0]
            raise UserError(f"{place}: {{{name}}} has no value here: give --set {name}=VALUE") from error
        except (ValueError, IndexError, AttributeError) as error:
            raise UserError(f"{place}: {word}: names are put in braces, such as {{output}} ({error})") from error
    return found


def _parsed(words: Sequence[str], of_run: Sequence[str], place: str) -> Line:
    """UserError if there is no such command, or it does not take these options."""
    from pipelines.__main__ import COMMANDS, TOOLS

    modules = {name_of(each): each for each in (*(f"pipelines.{each}" for each in COMMANDS), *TOOLS)}
    name, *arguments = words or [""]
    if name not in modules:
        near = difflib.get_close_matches(name, modules, n=1)
        raise UserError(f"{place}: {name}: no such command" + (f"; did you mean {near[0]}?" if near else ""))
    module = import_module(modules[name])
    try:
        if hasattr(module, "COMMAND"):
            module.COMMAND.flags.parse([*arguments, *of_run])
            return Line(modules[name], arguments, of_run)
        if models := getattr(module, "MODELS", {}):
            if not arguments or arguments[0] not in models:
                raise UserError(f"there are {', '.join(models)}")
            import_module(models[arguments[0]]).TOOL.flags.parse(arguments[1:])
        else:
            module.TOOL.flags.parse(arguments)
    except UserError as error:
        raise UserError(f"{place}: {name}: {error}") from error
    return Line(modules[name], arguments)


# ---- Running them


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: that of the command that failed."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        options, beam_args = TOOL.flags.parse_known(given)
        if beam_args:
            check_beam_flags(beam_args, TOOL.flags.names)
        chosen = options[RecipeOptions]
        recipe = read(find(chosen.recipe))
        todo = [*lines(recipe, chosen, beam_args=beam_args)]
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"# {recipe.about}, {chosen.scale}")
    if not chosen.evaluation and any("{evaluation}" in each.run for each in recipe.steps):
        print("# without --evaluation no model is evaluated, and nothing is decontaminated")
    return run(todo, dry=chosen.dry_run, again=typed(TOOL.module, *shown_arguments(given)))


def run(todo: Sequence[Line], *, dry: bool, again: str) -> int:
    """Run commands, each in a process of its own, which ends with its memory. Ends with the first that fails."""
    began = time.monotonic()
    for number, line in enumerate(todo, 1):
        print(line.typed, flush=True)
        if dry:
            continue
        start = time.monotonic()
        status = _done([*started(line.module, *line.arguments), *line.of_run])
        if status:
            said = f"exit status {status}" if status > 0 else f"signal {-status}"
            print(
                f"error: command {number} of {len(todo)} failed ({said}): {line.typed}\nto go on from here: {again}",
                file=sys.stderr,
            )
            return status if status > 0 else 128 - status
        print(f"# {number} of {len(todo)} done, {time.monotonic() - start:.0f} s", flush=True)
    if not dry:
        print(f"# all done, {time.monotonic() - began:.0f} s")
    return 0


def _done(command: Sequence[str]) -> int:
    """Run a command; its exit status. SIGINT and SIGTERM go on to it, and it ends in its own order.

    In a session of its own: a signal from the terminal comes once, from here.
    """
    process = subprocess.Popen(command, start_new_session=True)
    before = {each: signal.signal(each, lambda number, _: process.send_signal(number)) for each in SIGNALS}
    try:
        return process.wait()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


if __name__ == "__main__":
    sys.exit(main())
