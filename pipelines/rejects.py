"""What a run rejected, with examples, and what it filtered; the dataset may be finished or unfinished.

python -m pipelines.rejects out/contexts-sentences --reason parser_error --examples 10
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.cli import run_tool
from schemas.commands import Tool
from schemas.options import natural, option


@dataclass(frozen=True)
class Rejects:
    """Which rejects, and how many of them."""

    dataset: str = option(flag="DIR", place=True, help="a dataset, or the --output of an unfinished run")
    reason: str | None = option(None, metavar="R", help="only this reason")
    stage: str | None = option(None, metavar="S", help="only this stage")
    examples: int = option(3, takes=natural, metavar="N", help="of each kind")
    json: bool = option(False, help="for machines")


TOOL = Tool(
    "pipelines.rejects", "What a run rejected, with examples, and what it filtered; also while it goes on.", Rejects
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 if the directory is neither a dataset nor an unfinished run."""
    return run_tool(TOOL, arguments)


if __name__ == "__main__":
    sys.exit(main())
