"""What a run rejected, with examples, and what it filtered, of a finished dataset or of a run that goes on or stopped.

python -m pipelines.rejects out/contexts-sentences --reason parser_error --examples 10
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pipelines.cli import run_tool

DESCRIPTION = "What a run rejected, with examples, and what it filtered; also while it goes on."


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, or 2 where the directory is neither a dataset nor an unfinished run."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.rejects", description=DESCRIPTION)
    parser.add_argument("dataset", metavar="DIR", help="a dataset, or the --output of an unfinished run")
    parser.add_argument("--reason", metavar="R", help="only this reason")
    parser.add_argument("--stage", metavar="S", help="only this stage")
    parser.add_argument("--examples", type=int, default=3, metavar="N", help="of each kind (default 3)")
    parser.add_argument("--json", action="store_true", help="for machines")
    return run_tool("rejects", parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
