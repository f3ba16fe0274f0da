"""All mentions of an entity in a mentions dataset.

python -m pipelines.mentions out/mention-pairs-mentions Q84 --limit 20
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.cli import run_tool
from schemas.commands import Tool
from schemas.options import natural, option


@dataclass(frozen=True)
class Mentions:
    """Which entity, and how many of its mentions."""

    dataset: str = option(flag="DIR", place=True, help="a mentions dataset")
    entity: str = option(flag="ENTITY", help='a Wikidata id ("Q84") or the title of a page ("London")')
    limit: int = option(20, takes=natural, metavar="N", help="sentences shown")
    json: bool = option(False, help="all of them as JSON lines")


TOOL = Tool(
    "pipelines.mentions", "All mentions of an entity, by Wikidata id or title, in a mentions dataset.", Mentions
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, 1 if the entity has no mention, 2 if the directory is not a mentions dataset."""
    return run_tool(TOOL, arguments)


if __name__ == "__main__":
    sys.exit(main())
