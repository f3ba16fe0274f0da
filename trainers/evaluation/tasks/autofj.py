"""AutoFJ: fuzzy joins of 50 pairs of tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from schemas.errors import UserError
from trainers.evaluation.files import malformed, text_of
from trainers.evaluation.measures import mean_of
from trainers.evaluation.model import Model
from trainers.evaluation.nearest import nearest
from trainers.evaluation.task import Measure, Outcome, Setting, Task
from trainers.evaluation.vectors import encoded, unit

FOLDER, TABLES = "autofj", 50


class Right(NamedTuple):
    """A row on the right that has a match: its id, its title, and the titles that match it."""

    id: str
    title: str
    matches: set[str]


class Table(NamedTuple):
    """The titles on the left, the rows on the right that have a match, and how many there are with the others."""

    name: str
    left: list[str]
    asked: list[Right]
    rights: int


def rows_of(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file and the numbers of their last lines. UserError for other columns or an empty field."""
    reader = csv.reader(io.StringIO(text_of(path), newline=""), strict=True)
    wanted = f"row of {', '.join(columns)}"
    try:
        if tuple(next(reader, ())) != columns:
            raise malformed(path, 1, f"line with the names of columns, {','.join(columns)}")
        for row in reader:
            if len(row) != len(columns) or not all(field.strip() for field in row):
                raise malformed(path, reader.line_num, wanted)
            yield reader.line_num, row
    except csv.Error as error:
        raise malformed(path, reader.line_num, f"{wanted} ({error})") from error


def read_table(folder: Path) -> Table:
    """A table, by the ids of its rows. UserError if a match names a row that is not there."""
    left, right = _titles(folder / "left.csv"), _titles(folder / "right.csv")
    asked: dict[str, Right] = {}
    path = folder / "gt.csv"
    for number, (left_id, left_title, right_id, right_title) in rows_of(path, ("id_l", "title_l", "id_r", "title_r")):
        if left.get(left_id) != left_title or right.get(right_id) != right_title:
            raise malformed(path, number, "match of a row of left.csv and one of right.csv")
        asked.setdefault(right_id, Right(right_id, right_title, set())).matches.add(left_title)
    if not asked:
        raise malformed(path, 2, "match")
    return Table(folder.name, [*left.values()], [*asked.values()], len(right))


def _titles(path: Path) -> dict[str, str]:
    """The titles by id, in order."""
    titles: dict[str, str] = {}
    for number, (id, title) in rows_of(path, ("id", "title")):
        if titles.setdefault(id, title) is not title:
            raise malformed(path, number, f"row of its own: the id {id} is there twice")
    return titles


def run(model: Model, setting: Setting) -> Outcome:
    """The left title with the largest cosine is chosen, of equal ones the first; titles are compared."""
    tables = [read_table(path.parent) for path in sorted(setting.data.glob(f"{FOLDER}/*/gt.csv"))]
    if not tables:
        raise UserError(
            f"{setting.data / FOLDER}: has no folders with gt.csv; docs/evaluation.md says where they are from"
        )
    rows: list[tuple[str, str, str, float]] = []
    for table in tables:
        setting.note(table.name)
        left = unit(encoded(model, table.left))
        places = nearest(unit(encoded(model, [each.title for each in table.asked])), left, 1)[:, 0]
        for right, place in zip(table.asked, places, strict=True):
            chosen = table.left[place]
            item = f"{table.name} {right.id}: {right.title}"
            rows.append((table.name, item, chosen, float(chosen in right.matches)))
    found, items, chosen_titles, rights = zip(*rows, strict=True)
    columns = {
        "item": np.array(items, dtype=object),
        "table": np.array(found, dtype=object),
        "chosen": np.array(chosen_titles, dtype=object),
        "right": np.array(rights),
    }
    read = {
        "tables": len(tables),
        "left titles": sum(len(each.left) for each in tables),
        "right titles": sum(each.rights for each in tables),
        "right titles with a match": len(rows),
    }
    return Outcome([columns], read, [] if len(tables) == TABLES else [f"{len(tables)} of {TABLES} tables"])


TASKS = (
    Task(
        name="autofj",
        title="AutoFJ",
        files=(f"{FOLDER}/*/*.csv",),
        protocol="the mean over 50 tables of the accuracy: the left title of the largest cosine, for each right title "
        "that has a match (PEARL, section 4)",
        measures=(Measure("accuracy", mean_of("right", parts="table"), group="table"),),
        run=run,
    ),
)
