"""`--units=I/N`: does a slice of a dataset's first stage on this machine, as one task of an array job.

The machines share nothing but storage, and Beam is not used. Datasets before the output must be finished. After the
slices comes a whole run with `--resume`: it does the units that they left undone, closes the stage, does the later
stages and publishes.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from pipelines.cli import Command
from pipelines.corpus import ChainDataset
from pipelines.engine.dataset_build import DatasetBuild, refuse_empty
from pipelines.engine.driver import run
from pipelines.engine.executors import PoolExecutor
from pipelines.engine.lease import refuse_second, refusing_second
from pipelines.engine.limits import Limits
from pipelines.engine.progress import Progress
from pipelines.engine.stage import Slice
from pipelines.options import InputOptions, RunOptions
from schemas.errors import UserError, resumes
from schemas.kind import Kind
from schemas.manifest import is_dataset, read_manifest
from schemas.options import Chosen


def require_finished(chain: Sequence[ChainDataset], chosen: Chosen) -> None:
    """UserError unless all datasets before the last are finished; it names the first that is not, and what makes it."""
    for number, dataset in enumerate(chain[:-1]):
        build = dataset.build
        if build is None:
            continue
        if not is_dataset(dataset.folder):
            refuse_second(dataset.folder)
            begun = build.begun_fingerprint() == build.fingerprint
            make = f"finish it first: {_making(chain, number, chosen, resume=True)}"
            if not begun:
                make = f"make it first, whole or in slices of its own: {_making(chain, number, chosen)}"
            raise UserError(f"{dataset.folder}: is not there yet, and --units needs it finished; {make}")
        manifest = read_manifest(dataset.folder)
        if manifest.fingerprint != dataset.fingerprint:
            again = _making(chain, number, chosen, overwrite=True)
            raise UserError(
                f"{dataset.folder}: {build.misfit(manifest)}; choose another --output, or make it again: {again}"
            )
        refuse_empty(dataset.folder, manifest)


def _making(chain: Sequence[ChainDataset], number: int, chosen: Chosen, **changes: Any) -> str:
    """The command line that makes a dataset of the chain from the one before it, with the options that it reads."""
    build = chain[number].build
    assert build is not None
    command = _maker(build.kind)
    own: list[Any] = [chosen[each] for each in command.flags.groups if each is not RunOptions]
    if number:
        before = chain[number - 1].folder
        done = _maker(read_manifest(before).kind).flags.groups
        given = type(chosen[InputOptions])(input=(str(before),))
        own = [given, *(each for each in own if type(each) not in done)]
    return command.line(*own, RunOptions(output=str(build.output), **changes))


def _maker(kind: Kind) -> Command:
    command: Command = importlib.import_module(f"pipelines.{kind.command}").COMMAND
    return command


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
    """Do a slice of the units of the first stage; returns a line on the progress of the stage. Raises what stopped it.

    `command` continues the slice if it ends early, `finish` is the command after all slices.
    """
    output, work, stage = build.output, build.work, build.stages[0]
    finished = f"{output}: is finished already: nothing to do"
    with refusing_second([] if is_dataset(output) else [output], part):
        if not build.join(write=False):
            return finished
    if work.is_closed(stage.name):
        return f"{output}: {stage.name} is done already: nothing to do; to finish: {finish}"
    before = sum(map(part.has, work.finished(stage.name)))
    begun = False

    def begin() -> list[DatasetBuild]:
        nonlocal begun
        begun = build.join()
        return [build] if begun else []

    try:
        run(
            [build],
            PoolExecutor(workers, limits=limits),
            progress=Progress(),
            begin=begin,
            command=command,
            max_reject_rate=max_reject_rate,
            part=part,
            finish=finish,
        )
    except BaseException as error:
        if begun and resumes(error):
            print(f"to go on from here: {command}", file=sys.stderr)
        raise
    if is_dataset(output):
        return finished
    units = len(work.units(stage.name))
    done = len(part.units(units)) - before
    return ended_line(part, stage.name, done, before, len(work.finished(stage.name)), units, finish)


def ended_line(part: Slice, stage: str, done: int, before: int, done_in_all: int, units: int, finish: str) -> str:
    """The last line of a slice: units that it did, units that an earlier run of it did, units of all slices."""
    then = "to finish" if done_in_all == units else "to finish, when no slice is at work any more"
    earlier = f" ({before:,} before)" if before else ""
    here = f"{done:,} unit{'' if done == 1 else 's'} done{earlier}"
    return f"slice {part} of {stage}: {here}; {done_in_all:,} of {units:,} in all; {then}: {finish}"
