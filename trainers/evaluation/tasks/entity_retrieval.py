"""Entity retrieval: which name of a dictionary a mention means."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trainers.evaluation.files import lines_of, malformed
from trainers.evaluation.measures import mean_of
from trainers.evaluation.model import Model
from trainers.evaluation.nearest import nearest
from trainers.evaluation.task import Measure, Outcome, Setting, Task
from trainers.evaluation.vectors import encoded, unit

MENTIONS = 10_000


class Source(NamedTuple):
    """The files of a set below --data, and how many thousand names the dictionary of the paper has."""

    files: str
    mentions: str
    dictionary: str
    thousands: int


def run(source: Source, model: Model, setting: Setting) -> Outcome:
    """The name with the largest cosine is chosen, of equal ones the first; it is right if it reads as it should.

    Without the dictionary the names of the mentions' file are the dictionary. A name that is there twice counts once.
    """
    path, dictionary = setting.data / source.mentions, setting.data / source.dictionary
    rows = [_mention(path, number, line) for number, line in lines_of(path)]
    closed = not dictionary.exists()
    names = list(dict.fromkeys(right for _, right in rows) if closed else _names(dictionary))
    remarks = []
    if len(rows) != MENTIONS:
        remarks.append(f"{len(rows):,} of {MENTIONS:,} mentions")
    if closed:
        remarks.append(
            f"among the {len(names):,} names of the mentions, not {source.thousands},000 ({dictionary.name})"
        )
    elif round(len(names) / 1000) != source.thousands:
        remarks.append(f"a dictionary of {len(names):,} names, not {source.thousands},000")
    setting.note(f"{len(names):,} names")
    found = unit(encoded(model, names))
    setting.note(f"{len(rows):,} mentions")
    asked = unit(encoded(model, [mention for mention, _ in rows]))
    chosen = [names[place] for place in nearest(asked, found, 1)[:, 0]]
    items = {
        "item": np.array([" | ".join(row) for row in rows], dtype=object),
        "chosen": np.array(chosen, dtype=object),
        "right": np.array([name == right for name, (_, right) in zip(chosen, rows, strict=True)], np.float64),
    }
    known = {*names}
    read = {"mentions": len(rows), "names": len(names), "mentions without their name": 0}
    read["mentions without their name"] = sum(right not in known for _, right in rows)
    return Outcome([items], read, remarks)


def _mention(path: Path, number: int, line: str) -> tuple[str, str]:
    fields = [each.strip() for each in line.split("\t")]
    if len(fields) != 2 or not all(fields):
        raise malformed(path, number, "mention and the name that it means, a tab between them")
    return fields[0], fields[1]


def _names(path: Path) -> dict[str, None]:
    """The distinct names in order."""
    names: dict[str, None] = {}
    for number, line in lines_of(path):
        if not (name := line.strip()):
            raise malformed(path, number, "name")
        names[name] = None
    return names


def _task(name: str, title: str, source: Source) -> Task:
    return Task(
        name=name,
        title=title,
        files=(source.files,),
        protocol=f"accuracy: the name of the largest cosine with a mention, of {source.thousands},000 names (PEARL, "
        "section 4); exact, where the authors' search is approximate",
        measures=(Measure("accuracy", mean_of("right")),),
        run=partial(run, source),
    )


TASKS = (
    _task("yago", "YAGO", Source("yago_er/*.txt", "yago_er/yago_test_samples.txt", "yago_er/yago_kb.txt", 572)),
    _task("umls", "UMLS", Source("umls_er/*.txt", "umls_er/umls_test_samples.txt", "umls_er/umls_kb.txt", 750)),
)
