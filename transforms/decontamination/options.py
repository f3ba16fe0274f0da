"""The options of decontamination (docs/decontamination.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import count, option

EVALUATION_FORMAT_OBJECTS = {
    "parquet": "PARQUET",
    "json": "JSON",
    "columns": "COLUMNS",
    "csv": "CSV",
    "lines": "LINES",
}
"""The formats of evaluation sets by name, each an object in `files.py`, in the order in which a file is tried.

`lines` is last, because the others, except for Parquet, are lines, too.
"""


@dataclass(frozen=True)
class OverlapRules:
    """What counts as a text of an evaluation set; part of the fingerprint."""

    group: ClassVar[str] = "overlap"

    min_words: int = option(
        2,
        takes=count,
        metavar="N",
        help="leave out evaluation texts of fewer than N words",
        more="With 1 also every single word of the evaluation sets is looked for",
    )
    shared_words: int = option(
        8,
        takes=count,
        metavar="N",
        help="N consecutive words of an evaluation text are an overlap, too, not only the whole of it",
        more="GPT-3 has 13 in its training texts, and 8 to 13 in the analysis of its evaluation sets",
        source="Brown et al. 2020, appendix C",
    )


@dataclass(frozen=True)
class Marking:
    """What is done with the rows that have an overlap; part of the fingerprint."""

    group: ClassVar[str] = "overlap"

    mark: bool = option(False, help="keep all rows; only list the overlaps in overlaps/")
