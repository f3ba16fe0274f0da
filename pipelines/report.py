"""Writes the report of finished datasets again: `python -m pipelines.report DIR...`"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pipelines.cli import run_tool

DESCRIPTION = "Writes report.html of finished datasets again."


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, or 2 where a directory is no dataset."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.report", description=DESCRIPTION)
    parser.add_argument("directories", nargs="+", metavar="DIR", help="a dataset, on a disk or at s3:// or gs://")
    return run_tool("report", parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
