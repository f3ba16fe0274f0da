"""The command of a recipe, which is a declaration. Imports nothing large."""

from __future__ import annotations

import importlib
import shlex
import signal
import sys
from collections.abc import Callable, Sequence

from schemas.commands import Tool
from trainers.training.options import Training


def recipe_command(
    name: str, description: str, options: type[Training], *, recipe: str
) -> tuple[Tool, Callable[[Sequence[str]], int]]:
    """The TOOL and the `main` of `trainers.train NAME`.

    `recipe`: what makes the recipe of the options, as "trainers.pearl.recipe:Pearl"; imported when it is needed.

    TOOL, main = recipe_command("pearl", "Trains ...", PearlTraining, recipe="trainers.pearl.recipe:Pearl")
    """
    tool = Tool(f"trainers.train {name}", description, options)

    def main(arguments: Sequence[str]) -> int:
        flags = tool.flags
        chosen: Training = flags.parse(arguments)[options]
        import torch

        from trainers.training import distributed
        from trainers.training.checkpoint import seed_torch
        from trainers.training.loop import fit

        module, _, made_by = recipe.partition(":")
        if chosen.threads is not None:
            torch.set_num_threads(chosen.threads)
        with distributed.processes():
            seed_torch(chosen.seed)  # new weights
            made = getattr(importlib.import_module(module), made_by)(chosen)
            command = shlex.join([*flags.parser.prog.split(), *flags.arguments(chosen)])
            try:
                fit(made, chosen, command=command, about=description)
            except KeyboardInterrupt:  # while it evaluates; a step is finished first
                print("interrupted: the same command goes on", file=sys.stderr)
                return 128 + signal.SIGINT
        return 0

    return tool, main
