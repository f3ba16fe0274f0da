"""The progress of a run, from another terminal or machine.

python -m pipelines.status out/contexts
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.cli import run_tool
from schemas.commands import Tool
from schemas.options import option


@dataclass(frozen=True)
class Status:
    """Which run."""

    dataset: str = option(flag="DIR", place=True, help="the --output of the run, or a dataset beside it")
    json: bool = option(False, help="for machines")


TOOL = Tool("pipelines.status", "The progress of a run, from another terminal or machine.", Status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 if the dataset is finished or a run is at work on it, 1 if a run has ended early, 2
    if neither."""
    return run_tool(TOOL, arguments)


if __name__ == "__main__":
    sys.exit(main())
