"""Divides the training sets of SemEval2013 5(a) and Turney2012 into a training set and a test set.

    python -m trainers.pgru.split eval eval-parts

Where the test sets of the evaluation are missing, its tasks read the training sets, which is no test of a model that
has learned from them. In the new folder, in the same format, a fifth of the bigrams, by the hash of their two words in
any order, are the test set: no bigram, and no reversal of one, is in both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from schemas.errors import UserError

SHARES = (4, 1)


def split(data: Path, output: Path) -> list[str]:
    """What was written, a line a file."""
    from trainers.evaluation.files import lines_of
    from trainers.pgru.tasks import TRAINING_SETS, part_of

    said = []
    for task in TRAINING_SETS.values():
        if (output / task.test).exists() or not (data / task.train).exists():
            continue
        lines = [line for _, line in lines_of(data / task.train)]
        parts: tuple[list[str], list[str]] = ([], [])
        for number, instance in enumerate(task.read(data / task.train)):
            parts[part_of(instance, SHARES, seed=0)].extend(lines[number * task.lines : (number + 1) * task.lines])
        for name, part in zip((task.train, task.test), parts, strict=True):
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            (output / name).write_bytes("".join(f"{line}\n" for line in part).encode())
            said.append(f"{output / name}: {len(part) // task.lines:,} of {len(lines) // task.lines:,} instances")
    if not said:
        raise UserError(f"{data}: has no training set of SemEval2013 5(a) or Turney2012, or {output} has them already")
    return said


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Training sets of tasks, divided into a training set and a test set.")
    parser.add_argument("data", type=Path, help="the folder of the evaluation sets")
    parser.add_argument("output", type=Path, help="the folder of the divided ones")
    chosen = parser.parse_args(arguments)
    try:
        print(*split(chosen.data, chosen.output), sep="\n")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
