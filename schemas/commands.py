"""Our commands as one types them: `phrasemill mine-contexts`, or `python -m pipelines.mine_contexts`.

Both do the same. What we print has the form in which the process was started, so that it can be pasted.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import NamedTuple

from schemas.options import Flags, options_of

SCRIPT = "phrasemill"


def name_of(module: str) -> str:
    """What the console script calls a module: `pipelines.mine_contexts` -> `mine-contexts`."""
    name, *arguments = module.rpartition(".")[2].split()
    return " ".join([name.replace("_", "-"), *arguments])


def by_script() -> bool:
    """Whether the console script started this process, or the one of which it is a worker."""
    return os.path.basename(sys.argv[0]) == SCRIPT


def spelled(module: str) -> str:
    """A command as it is documented. `module` may have arguments after it: "trainers.train parser"."""
    return f"{SCRIPT} {name_of(module)}" if by_script() else f"python -m {module}"


def started(module: str, *arguments: object) -> list[str]:
    """What starts a command in a process of its own."""
    program = sys.argv[0] if by_script() else sys.executable
    return [program, *spelled(module).split()[1:], *map(str, arguments)]


def typed(module: str, *arguments: object) -> str:
    """A command to paste in the current folder."""
    program, *rest = started(module, *arguments)
    return shlex.join([_as_typed(program), *rest])


def _as_typed(program: str) -> str:
    """The name of a program if the shell finds it; otherwise its path, relative if it is in the current folder."""
    path, name = os.path.abspath(program), os.path.basename(program)
    if (found := shutil.which(name)) and os.path.abspath(found) == path:
        return name
    here = os.path.relpath(path)
    return path if here.startswith(os.pardir) else here


class Tool(NamedTuple):
    """A command that does no stages: its module, with the first arguments if these choose it, and its options.

    `more`: classes of options that others own.
    """

    module: str
    description: str
    options: type
    more: tuple[type, ...] = ()

    @property
    def takes(self) -> str:
        """What has to be given, as `DIR`."""
        return " ".join(each.flag for each in options_of(self.options) if each.is_positional)

    @property
    def flags(self) -> Flags:
        return Flags(spelled(self.module), (self.options, *self.more), description=self.description)
