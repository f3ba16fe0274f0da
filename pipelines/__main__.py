"""Lists the commands: `python -m pipelines`.

This is the only list of them. Each module declares its COMMAND, or its TOOL and a `main`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from schemas.commands import Tool, spelled

if TYPE_CHECKING:
    from pipelines.cli import Command

COMMANDS = (
    "mine_contexts",
    "mine_mentions",
    "mine_phrases",
    "extract_documents",
    "parse_sentences",
    "find_entities",
    "count_phrases",
    "find_mentions",
    "find_neighbours",
    "embed_phrases",
    "mine_negatives",
    "augment",
    "extract_pairs",
    "mine_pairs",
    "label_pairs",
    "contrast_pairs",
    "generate_paraphrases",
    "paraphrase",
    "decontaminate",
)
"""The modules in `pipelines/` that write datasets."""

TOOLS = (
    "pipelines.recipe",
    "pipelines.status",
    "pipelines.rejects",
    "pipelines.report",
    "pipelines.mentions",
    "schemas.check",
    "trainers.train",
    "trainers.evaluate",
)
"""The modules of commands that do something else."""


def commands() -> list[Command]:
    return [import_module(f"pipelines.{each}").COMMAND for each in COMMANDS]


def tools(modules: Sequence[str] = TOOLS) -> list[Tool]:
    return [import_module(each).TOOL for each in modules]


def listing(modules: Sequence[str] = TOOLS) -> str:
    """A line for each command: how it is called, what it does."""
    writers = [(spelled(f"pipelines.{each.module}"), each.description) for each in commands()]
    others = [(f"{spelled(each.module)} {each.takes}".rstrip(), each.description) for each in tools(modules)]
    width = max(len(name) for name, _ in (*writers, *others))
    return "\n".join(f"{name:{width}}  {text}".rstrip() for name, text in (*writers, ("", ""), *others))


if __name__ == "__main__":
    print(listing())
