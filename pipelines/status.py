"""How a run goes, seen from another terminal or machine.

python -m pipelines.status out/contexts
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pipelines.cli import run_tool

DESCRIPTION = "How a run goes, seen from another terminal or machine."


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 the dataset is finished or a run is at work on it, 1 a run has ended early, 2 neither."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.status", description=DESCRIPTION)
    parser.add_argument("dataset", help="the --output of the run, or a dataset beside it")
    parser.add_argument("--json", action="store_true", help="for machines")
    return run_tool("status", parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
