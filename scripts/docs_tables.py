"""The tables of options, columns and reasons in docs/, written from their declarations.

    python scripts/docs_tables.py             # writes those that changed
    python scripts/docs_tables.py --check     # exit status 1 if one is not current, or an option has none

A table stands between `<!-- options: mine_contexts: contexts, phrases -->` (a command or tool, or "every command", and
groups of its `--help`), `<!-- columns: Context -->`, `<!-- reasons: Context -->`, `<!-- measures -->` or
`<!-- commands -->`, and `<!-- end -->`.
Between `<!-- recipe: pearl --scale full -->` (arguments of `recipe`) and `<!-- end -->` are the commands of a recipe.
`<!-- columns: overlaps -->` is that of a side table,
`<!-- columns: MaskedMentionPair beyond MentionPair -->` leaves out the columns that the other has. `<!-- kinds -->` has
every kind, and `<!-- options: others -->` every option that no other table has, so that new ones are in the docs.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from pipelines.__main__ import commands as all_commands
from pipelines.__main__ import tools
from pipelines.recipe import TOOL, RecipeOptions, find, lines, read
from schemas.commands import name_of
from schemas.kinds import KINDS, SIDES
from schemas.options import Option, options_of
from trainers.train import MODELS

COMMANDS = all_commands()
MODULES = {each.module: each for each in (*COMMANDS, *tools(), *tools(tuple(MODELS.values())))}
DOCS = Path(__file__).resolve().parent.parent / "docs"

_TABLE = re.compile(
    r"(<!-- (options|columns|reasons|measures|commands|kinds)(?:: ([^>]+))? -->\n).*?(<!-- end -->)", re.DOTALL
)
_RECIPE = re.compile(r"(<!-- recipe: ([^>]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_WIDTH = 116


def recipe(of: str) -> Iterator[str]:
    """The commands of a recipe, as lines of at most `_WIDTH` characters."""
    chosen = TOOL.flags.parse(shlex.split(of))[RecipeOptions]
    for command in lines(read(find(chosen.recipe)), chosen):
        line = "phrasemill"
        for word in re.findall(
            r"\S+(?: (?!--)\S+)*", shlex.join([*name_of(command.module).split(), *command.arguments])
        ):
            if len(line) + len(word) > _WIDTH - 3:
                yield f"{line} \\"
                line = f"    {word}"
            else:
                line = f"{line} {word}"
        yield line


def options(of: str) -> Iterator[Sequence[str]]:
    if of == "others":
        yield from others()
        return
    module, _, titles = of.partition(": ")
    flags = MODULES.get(module, COMMANDS[0]).flags
    yield "option", "default", "meaning"
    for title in titles.split(", "):
        groups = [each for each in flags.groups if getattr(each, "group", "") == title]
        found = [
            each for group in groups for each in (flags.options(group) if module in MODULES else options_of(group))
        ]
        if not found:
            raise LookupError(f"{module} has no options in a group {title!r}")
        yield from map(_option, found)


def others() -> Iterator[Sequence[str]]:
    """The options that are in no other table of the pages."""
    pages = "".join(page.read_text() for page in DOCS.glob("*.md"))
    rest = {*missing(re.sub(r"<!-- options: others -->.*?<!-- end -->", "", pages, flags=re.DOTALL))}
    yield "option", "default", "meaning"
    for command in COMMANDS:
        for of in command.flags.groups:
            yield from (_option(each) for each in command.flags.options(of) if each.flag in rest)


def _option(each: Option) -> Sequence[str]:
    values = "" if each.is_switch else f" {each.metavar or '|'.join(each.choices)}"
    default = each.shown_default if each.unset or not each.shown_default else f"`{each.shown_default}`"
    meaning = ". ".join(filter(None, (each.help, each.more)))
    return f"`{each.flag}{values.rstrip()}`", default, meaning + (f" ({each.source})" if each.source else "")


def columns(of: str) -> Iterator[Sequence[str]]:
    record, _, other = of.partition(" beyond ")
    known = KINDS[other].schema.names if other else []
    yield "column", "type", "meaning"
    for field in KINDS[record].schema if record in KINDS else SIDES[record]:
        if field.name not in known:
            yield f"`{field.name}`", _type(field.type), field.metadata[b"description"].decode()


def _type(type_: pa.DataType) -> str:
    if pa.types.is_list(type_):
        return f"list of {_type(type_.value_type)}"
    if pa.types.is_struct(type_):
        return "(" + ", ".join(f"`{each.name}` {_type(each.type)}" for each in type_) + ")"
    return str(type_).replace("halffloat", "float16")


def reasons(of: str) -> Iterator[Sequence[str]]:
    kind = KINDS[of]
    yield "reason", "counted as", "meaning"
    for counted, found in (("filtered", kind.filters), ("rejected", kind.rejects)):
        for reason, meaning in found.items():
            yield f"`{reason}`", counted, meaning


def kinds(of: str) -> Iterator[Sequence[str]]:
    yield "record", "what a dataset of it is", "made by"
    for record, kind in sorted(KINDS.items()):
        yield record, kind.about, f"`{name_of(kind.command)}`"


def measures(of: str) -> Iterator[Sequence[str]]:
    yield "record", "distributions"
    for record, kind in sorted(KINDS.items()):  # the order of the registry is that of imports
        yield record, "; ".join(each.title for each in kind.measures)


def commands(of: str) -> Iterator[Sequence[str]]:
    yield "command", "what it makes", "takes", "default `--output`"
    for each in COMMANDS:
        yield f"`{name_of(each.module)}`", each.description.removesuffix("."), each.takes, f"`{each.output}`"


def written(text: str) -> str:
    """A page with its tables as they are to be."""

    bar = "\\|"

    def table(found: re.Match[str]) -> str:
        heading, *rows = globals()[found[2]](found[3] or "")
        lines = [
            f"| {' | '.join(cell.replace('|', bar).replace('<', '&lt;') for cell in row)} |" for row in (heading, *rows)
        ]
        lines.insert(1, "|---" * len(heading) + "|")
        return "\n".join([found[1].rstrip(), "", *lines, "", found[4]])

    def commands_of(found: re.Match[str]) -> str:
        block = "\n".join(f"    {line}" for line in recipe(found[2]))
        return f"{found[1]}\n<!-- not run: hours -->\n\n{block}\n\n{found[3]}"

    return _RECIPE.sub(commands_of, _TABLE.sub(table, text))


def missing(pages: str) -> Iterator[str]:
    """The options that are in no table."""
    tables = "\n".join(found[0] for found in _TABLE.finditer(pages))
    flags = {flag for each in COMMANDS for flag in each.flags.names if flag not in ("-h", "--help")}
    yield from sorted(flags - {*re.findall(r"^\| `(--[\w-]+)", tables, re.MULTILINE)})


def main(arguments: Sequence[str]) -> int:
    pages = {page: page.read_text() for page in sorted(DOCS.glob("*.md"))}
    changed = {page: written(text) for page, text in pages.items() if written(text) != text}
    if "--check" in arguments:
        said = [f"{page.name}: its tables are not current; make docs-tables" for page in changed]
        said += [f"{each}: is in no table of docs/" for each in missing("".join(pages.values()))]
        sys.stderr.writelines(f"{each}\n" for each in said)
        return 1 if said else 0
    for page, text in changed.items():
        page.write_text(text)
        print(page.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
