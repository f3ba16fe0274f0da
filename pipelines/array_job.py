"""`--units=I/N`: a slice of a dataset's first stage on this machine, beside others elsewhere, as an array job does it.

The machines share nothing but storage, and no Beam is at work. Datasets before the output must be there. A whole run
with `--resume` follows the slices: it does what they left undone, closes the stage, does the later ones and publishes.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipelines import options
from pipelines.cli import command_line
from pipelines.corpus import ChainDataset
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.driver import run
from pipelines.engine.executors import PoolExecutor
from pipelines.engine.lease import refuse_second
from pipelines.engine.limits import Limits
from pipelines.engine.progress import Progress
from pipelines.engine.stage import Slice
from schemas.errors import UserError
from schemas.manifest import is_dataset, read_manifest


class _Maker(NamedTuple):
    """The command that makes a dataset from the one before it, and the groups of options that concern it."""

    module: str
    groups: tuple[Callable[[argparse.ArgumentParser], object], ...]


_MAKERS = {
    "Document": _Maker("extract_documents", (functools.partial(options.add_input, takes=""),)),
    "Sentence": _Maker("parse_sentences", (options.add_parsing,)),
    "Phrase": _Maker("count_phrases", (options.add_documents, options.add_phrases)),
    "Mention": _Maker("find_mentions", (options.add_mentions,)),
}


def require_finished(chain: Sequence[ChainDataset], chosen: argparse.Namespace) -> None:
    """UserError unless all datasets before the last are there; it names the first that is not, and what makes it."""
    for number, dataset in enumerate(chain[:-1]):
        build = dataset.build
        if build is None:
            continue
        if not is_dataset(dataset.folder):
            begun = build.begun_fingerprint() == build.fingerprint
            make = f"finish it first: {_making(chain, number, chosen)} --resume"
            if not begun:
                make = f"make it first, whole or in slices of its own: {_making(chain, number, chosen)}"
            raise UserError(f"{dataset.folder}: is not there yet, and --units needs it finished; {make}")
        if read_manifest(dataset.folder).fingerprint != dataset.fingerprint:
            raise UserError(
                f"{dataset.folder}: holds a dataset made from other inputs or with other options; choose another "
                f"--output, or make it again: {_making(chain, number, chosen)} --overwrite"
            )


def _making(chain: Sequence[ChainDataset], number: int, chosen: argparse.Namespace) -> str:
    build = chain[number].build
    assert build is not None
    maker = _MAKERS[build.kind.record]
    before = ["--input", str(chain[number - 1].folder)] if number else []
    own = options.as_arguments(chosen, maker.groups)
    return command_line(maker.module, [*before, *own, "--output", str(build.output)])


def run_slice(
    build: DatasetBuild,
    part: Slice,
    *,
    workers: int,
    limits: Limits,
    max_reject_rate: float,
    command: str,
    finish: str,
) -> str:
    """Do a slice of the units of the first stage, and say how far the stage is. Raises what stopped it.

    `command` is what goes on with the slice, should it end early, `finish` what follows all slices.
    """
    output, work, stage = build.output, build.work, build.stages[0]
    if not is_dataset(output):
        refuse_second(output, part)
    if not build.join():
        return f"{output}: is finished already: nothing to do"
    if work.is_closed(stage.name):
        return f"{output}: {stage.name} is done already: nothing to do; to finish: {finish}"
    before = sum(map(part.has, work.finished(stage.name)))
    try:
        run(
            [build],
            PoolExecutor(workers, limits=limits),
            progress=Progress(),
            command=command,
            max_reject_rate=max_reject_rate,
            part=part,
            finish=finish,
        )
    except BaseException:
        print(f"to go on from here: {command}", file=sys.stderr)
        raise
    units = len(work.units(stage.name))
    done = len(part.units(units)) - before
    return ended_line(part, stage.name, done, before, len(work.finished(stage.name)), units, finish)


def ended_line(part: Slice, stage: str, done: int, before: int, done_in_all: int, units: int, finish: str) -> str:
    """What a slice says at its end: units that it did, units that an earlier run of it did, units of all slices."""
    then = "to finish" if done_in_all == units else "to finish, when no slice is at work any more"
    earlier = f" ({before:,} before)" if before else ""
    here = f"{done:,} unit{'' if done == 1 else 's'} done{earlier}"
    return f"slice {part} of {stage}: {here}; {done_in_all:,} of {units:,} in all; {then}: {finish}"
