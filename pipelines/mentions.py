"""All mentions of an entity in a mentions dataset.

python -m pipelines.mentions out/mention-pairs-mentions Q84 --limit 20
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pipelines.cli import run_tool

DESCRIPTION = "All mentions of an entity, by Wikidata id or title, in a mentions dataset."


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 where the entity has no mention, 2 where the directory is no mentions dataset."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.mentions", description=DESCRIPTION)
    parser.add_argument("dataset", metavar="DIR", help="a mentions dataset")
    parser.add_argument("entity", metavar="ENTITY", help='a Wikidata id ("Q84") or the title of a page ("London")')
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="sentences shown (default 20)")
    parser.add_argument("--json", action="store_true", help="all of them as JSON lines")
    return run_tool("mentions", parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
