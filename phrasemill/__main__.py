"""The console script: `phrasemill mine-contexts --input ...` does what `python -m pipelines.mine_contexts` does.

It works in any folder, because Python does not look for modules in the current folder of a script, and so do the
processes that it starts.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from pipelines.__main__ import COMMANDS, TOOLS, listing
from schemas.commands import SCRIPT, by_script, name_of

ALL_TOOLS = (*TOOLS, "phrasemill.completion")
MODULES = {name_of(each): each for each in (*(f"pipelines.{name}" for name in COMMANDS), *ALL_TOOLS)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit status."""
    if by_script():
        os.environ.setdefault("PYTHONSAFEPATH", "1")  # Beam may start workers with `python -m`
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(f"usage: {SCRIPT} COMMAND [option ...]", listing(ALL_TOOLS), sep="\n\n")
        print(f"\n{SCRIPT} COMMAND --help lists the options of one.")
        return 0
    if name == "--version":
        from phrasemill import __version__

        print(f"{SCRIPT} {__version__}")
        return 0
    if (module := MODULES.get(name.replace("_", "-"))) is None:
        near = difflib.get_close_matches(name.replace("_", "-"), MODULES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"`{SCRIPT}` lists them"
        print(f"error: {name}: no such command; {hint}", file=sys.stderr)
        return 2
    found = import_module(module)
    if (command := getattr(found, "COMMAND", None)) is None:
        return int(found.main(rest))
    from pipelines.cli import main as run

    return run(command, rest, program=arguments is None)


if __name__ == "__main__":
    sys.exit(main())
