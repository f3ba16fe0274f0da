"""Completion of commands, options and paths in a shell.

phrasemill completion bash > ~/.local/share/bash-completion/completions/phrasemill
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from phrasemill.__main__ import ALL_TOOLS
from pipelines.__main__ import commands, tools
from pipelines.cli import Command
from schemas.commands import SCRIPT, Tool, name_of
from schemas.errors import UserError
from schemas.options import option

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Completion:
    """For which shell."""

    shell: str = option(flag="SHELL", choices=SHELLS, help="its name")


TOOL = Tool(
    "phrasemill.completion",
    f"Prints what makes {', '.join(SHELLS[:-1])} or {SHELLS[-1]} complete commands.",
    Completion,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    try:
        shell = TOOL.flags.parse(arguments)[Completion].shell
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    import shtab

    print(shtab.complete(_parser(places=shtab.FILE), shell))
    return 0


def _parser(*, places: object) -> argparse.ArgumentParser:
    """All commands as one parser; `places` is how paths are completed."""
    root = argparse.ArgumentParser(SCRIPT)
    root.add_argument("--version", action="store_true", help="print the version")
    names = root.add_subparsers()
    found: list[Command | Tool] = [*commands(), *tools(ALL_TOOLS)]
    for each in found:
        flags, below = each.flags, names
        for action in flags.places:
            action.complete = places  # type: ignore[attr-defined]
        *groups, name = name_of(each.module).split()
        for group in groups:  # "train parser"
            below = below.add_parser(group, help=each.description).add_subparsers()
        below.add_parser(name, parents=[flags.parser], add_help=False, help=each.description)
    return root


if __name__ == "__main__":
    sys.exit(main())
