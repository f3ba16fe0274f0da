"""Overlaps with evaluation sets: the side table that lists them, and what a manifest says of them.

Any kind of dataset whose `texts` are declared may have them (docs/decontamination.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from schemas.columns import column, schema, term

if TYPE_CHECKING:
    from schemas.manifest import Manifest

OVERLAPS = schema(
    "Overlap",
    term("shard", "the shard of the row in the dataset that was given"),
    column("row", pa.int64(), "the row in that shard, from 0"),
    term("column", "the column whose text has the overlap"),
    column("words", pa.string(), "the words that are in both, in lower case, without punctuation"),
    term("file", "the file of the evaluation set"),
    column("place", pa.int64(), "the line, row or record of the file that has the words first, from 1"),
)

SIDE = "overlaps"
FILTERS = {"evaluation_text": "a row with a text of an evaluation set (--evaluation, --min-words, --shared-words)"}

ROWS = "rows_with_overlaps"
"""The counter of the rows that have overlaps."""

_FILES_SHOWN = 8


def counter(column: str, file: str) -> str:
    """The counter of the texts of a column that have an overlap with a file."""
    return f"overlap:{column}:{file}"


def notes(manifest: Manifest) -> Iterator[str]:
    """How many rows have overlaps, with which files and in which columns."""
    for stage in manifest.stages:
        if stage.ledger is None or ROWS not in stage.counters:
            continue
        rows, read, removed = stage.counters[ROWS], stage.ledger.read, stage.ledger.filtered.total()
        what = f"{rows:,} of {read:,} {stage.ledger.counts} ({rows / max(read, 1):.2%})"
        found: Counter[tuple[str, ...]] = Counter()
        for name, number in stage.counters.items():
            if name.startswith("overlap:"):
                found[tuple(name.split(":", 2)[1:])] += number
        said = [f"{number:,} {file} ({column})" for (column, file), number in found.most_common(_FILES_SHOWN)]
        more = f", and {len(found) - len(said):,} more" if len(found) > len(said) else ""
        yield f"evaluation texts: in {what}; {removed:,} were removed"
        if said:
            yield f"evaluation texts by file: {', '.join(said)}{more}; all of them are listed in {SIDE}/"
