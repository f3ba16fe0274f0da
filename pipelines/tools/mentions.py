"""Prints all mentions of an entity in a mentions dataset, for `python -m pipelines.mentions`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.kinds import mentions
from transforms.mentions.titles import normalise
from transforms.mentions.view import mentions_of

if TYPE_CHECKING:
    from pipelines.mentions import Mentions


def run(chosen: Mentions) -> int:
    dataset = Dataset.open(chosen.dataset)
    if dataset.manifest.kind is not mentions.KIND:
        raise UserError(f"{dataset.folder}: holds {dataset.manifest.record} records; give a mentions dataset")
    entity = normalise(chosen.entity) or chosen.entity
    rows = (row for table in mentions_of(dataset, entity) for row in table.to_pylist())
    return 0 if (_print_json(rows) if chosen.json else _print(rows, entity, chosen.limit)) else 1


def _print_json(rows: Iterator[Mapping[str, Any]]) -> int:
    number = 0
    for number, row in enumerate(rows, start=1):  # noqa: B007 - how many there were
        print(json.dumps(row, ensure_ascii=False))
    return number


def _print(rows: Iterator[Mapping[str, Any]], entity: str, limit: int) -> int:
    first = list(islice(rows, limit))
    surfaces = Counter(row["mention"] for row in first)
    for row in first:
        start, end = row["start_char"], row["end_char"]
        print(f"{row['title']}: {row['text'][:start]}[{row['mention']}]{row['text'][end:]}")
    rest = 0
    for row in rows:
        rest += 1
        surfaces[row["mention"]] += 1
    if not surfaces:
        print(f"{entity}: no mention; give a Wikidata id, or the title of a page, not of a redirect", file=sys.stderr)
        return 0
    named = ", ".join(f"{surface} ({n:,})" for surface, n in surfaces.most_common(20))
    print(f"\n{len(first) + rest:,} mentions" + (f", {len(first):,} of them shown" if rest else "") + f"; as {named}")
    return len(first) + rest
