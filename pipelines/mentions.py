"""All mentions of an entity in a mentions dataset.

python -m pipelines.mentions out/mention-pairs-mentions Q84 --limit 20
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from schemas.addresses import checked_arguments
from schemas.dataset import Dataset
from schemas.errors import UserError, storage_error
from schemas.records import MENTIONS, record_name
from transforms.mentions.titles import normalise
from transforms.mentions.view import mentions_of

DESCRIPTION = "All mentions of an entity, by Wikidata id or title, in a mentions dataset."
_LIMIT = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 where the entity has no mention, 2 where the directory is no mentions dataset."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.mentions", description=DESCRIPTION)
    parser.add_argument("dataset", metavar="DIR", help="a mentions dataset")
    parser.add_argument("entity", metavar="ENTITY", help='a Wikidata id ("Q84") or the title of a page ("London")')
    parser.add_argument("--limit", type=int, default=_LIMIT, metavar="N", help=f"sentences shown (default {_LIMIT})")
    parser.add_argument("--json", action="store_true", help="all of them as JSON lines")
    try:
        chosen = parser.parse_args(checked_arguments(arguments))
        dataset = Dataset.open(chosen.dataset)
        if dataset.manifest.record != record_name(MENTIONS):
            raise UserError(f"{dataset.folder}: holds {dataset.manifest.record} records; give a mentions dataset")
        entity = normalise(chosen.entity) or chosen.entity
        rows = (row for table in mentions_of(dataset, entity) for row in table.to_pylist())
        shown = _print_json(rows) if chosen.json else _print(rows, entity, chosen.limit)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {storage_error(error)}", file=sys.stderr)
        return 2
    return 0 if shown else 1


def _print_json(rows: Iterator[Mapping[str, Any]]) -> int:
    number = 0
    for number, row in enumerate(rows, start=1):  # noqa: B007 - how many there were
        print(json.dumps(row, ensure_ascii=False))
    return number


def _print(rows: Iterator[Mapping[str, Any]], entity: str, limit: int) -> int:
    first = list(islice(rows, max(limit, 0)))
    surfaces = Counter(row["mention"] for row in first)
    for row in first:
        start, end = row["start_char"], row["end_char"]
        print(f"{row['title']}: {row['text'][:start]}[{row['mention']}]{row['text'][end:]}")
    rest = 0
    for row in rows:
        rest += 1
        surfaces[row["mention"]] += 1
    if not surfaces:
        print(f"{entity}: no mention; titles are those of pages, redirects followed", file=sys.stderr)
        return 0
    named = ", ".join(f"{surface} ({n:,})" for surface, n in surfaces.most_common(20))
    print(f"\n{len(first) + rest:,} mentions" + (f", {len(first):,} of them shown" if rest else "") + f"; as {named}")
    return len(first) + rest


if __name__ == "__main__":
    sys.exit(main())
