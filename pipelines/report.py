"""Writes the report of finished datasets again: `python -m pipelines.report DIR...`"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.cli import run_tool
from schemas.commands import Tool
from schemas.options import option


@dataclass(frozen=True)
class Report:
    """Which datasets."""

    directories: tuple[str, ...] = option(
        flag="DIR", repeated=True, place=True, help="a dataset, on a disk or at s3:// or gs://"
    )


TOOL = Tool("pipelines.report", "Writes report.html of finished datasets again.", Report)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 if a directory is not a dataset."""
    return run_tool(TOOL, arguments)


if __name__ == "__main__":
    sys.exit(main())
