"""What is evaluated, on which tasks, and what is shown of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from schemas.options import BadValue, count, option

FORMATS = ("text", "markdown", "json")


def seeds(text: str) -> tuple[int, ...]:
    """ "10": the seeds 0 to 9; "3,5": these."""
    try:
        found = [int(each) for each in text.split(",") if each.strip()]
    except ValueError:
        found = []
    if not found or min(found) < 0 or len({*found}) < len(found) or text.strip() == "0":
        raise BadValue(f"must be a number of seeds, or different seeds with commas between, not {text}")
    return tuple(range(found[0])) if "," not in text else tuple(found)


def _names(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())


@dataclass(frozen=True)
class Evaluation:
    """What is evaluated."""

    group: ClassVar[str] = "evaluation"

    model: str = option(
        flag="MODEL",
        place=True,
        help="a folder or a name on the hub (sentence-transformers, transformers), a file of word vectors, `random`, "
        "or the --output of an earlier run, which is shown again",
    )
    tasks: tuple[str, ...] | None = option(
        None,
        takes=_names,
        metavar="NAMES",
        help="tasks, or papers for all their tasks, with commas between",
        unset="all whose files are there",
    )
    data: Path | None = option(
        None, takes=Path, place=True, metavar="DIR", help="the folder of the evaluation sets (docs/evaluation.md)"
    )
    output: Path | None = option(
        None,
        takes=Path,
        place=True,
        metavar="DIR",
        help="where results are kept; what is finished there is not computed again",
        unset="out/evaluation/ and the model's name",
    )
    seeds: tuple[int, ...] = option(
        tuple(range(10)),
        takes=seeds,
        metavar="N",
        help="how many seeds (0, 1, ...), or which ones with commas between, for tasks that depend on them",
        unset="10",
    )
    against: tuple[str, ...] = option(
        (),
        repeated=True,
        place=True,
        metavar="MODEL",
        help="compare with this model, with its options at their defaults, or with the --output of an earlier run; "
        "repeatable",
    )
    draws: int = option(1_000, takes=count, metavar="N", help="how often items are drawn for an interval")
    published: str | None = option(
        None,
        metavar="NAME",
        help="the published model to show beside this one",
        unset="the nearest by name",
    )
    format: str = option("text", choices=FORMATS, help="of what is printed")
