"""What every command does: read its options, find the input, build what is missing, sum up."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipelines import corpus, options, planning, runners, summary
from pipelines.array_job import command_line, require_finished, run_slice
from pipelines.engine import preflight
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.lease import refuse_second
from pipelines.engine.progress import Progress
from pipelines.engine.stage import StageError
from pipelines.engine.worker_pool import LIMITS, Limits, usable_cores
from schemas.addresses import is_address
from schemas.errors import UserError, storage_error
from schemas.storage import Folder
from transforms.sources.sample import sample_inputs


class Command(NamedTuple):
    """A pipeline as a command. `build` gives the datasets in order, the last of them the output."""

    module: str
    description: str
    output: str
    takes: str
    groups: tuple[Callable[[argparse.ArgumentParser], None], ...]
    build: Callable[[corpus.Given, argparse.Namespace, Folder], list[corpus.ChainDataset]]


class _Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM), as batch systems and containers do."""


def _terminate(signum: int, frame: object) -> None:
    raise _Terminated


def run_command(command: Command, arguments: Sequence[str]) -> str:
    """What one types for a run; without credentials, which belong into the environment."""
    return command_line(command.module, arguments)


def resume_command(command: Command, arguments: Sequence[str]) -> str:
    """What one types to go on with a run."""
    return run_command(command, [*_without(arguments, "--resume", "--overwrite"), "--resume"])


def _without(arguments: Sequence[str], *flags: str) -> list[str]:
    """Arguments less some flags without a value."""
    return [each for each in arguments if each not in flags]


def _without_units(arguments: Sequence[str]) -> list[str]:
    """Arguments less --units and its value."""
    kept: list[str] = []
    value = False
    for each in arguments:
        if not value and each.partition("=")[0] != "--units":
            kept.append(each)
        value = each == "--units"
    return kept


def _absolute(place: str) -> str:
    return place if is_address(place) else os.path.abspath(place)


def main(command: Command, arguments: Sequence[str] | None = None) -> int:
    """Run a command; errors that a user can mend are one line, not a traceback. Returns the exit status."""
    runners.silence()
    signal.signal(signal.SIGTERM, _terminate)
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        return _run(command, arguments)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {storage_error(error, final=True)}", file=sys.stderr)
        return 2
    except StageError as error:
        if error.__cause__:
            traceback.print_exception(error.__cause__)
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        print("stopped", file=sys.stderr)
        return 143 if isinstance(interrupt, _Terminated) else 130


def _run(command: Command, arguments: Sequence[str]) -> int:
    parser = options.command(command.module, command.description, output=command.output)
    options.add_input(parser, takes=command.takes)
    for add in command.groups:
        add(parser)
    chosen, beam_args = options.parse(parser, arguments)
    if not chosen.input:
        print("no --input: taking the sample that comes with phrasemill (docs/sources.md)")
    inputs = chosen.input or [str(path) for path in sample_inputs()]
    submission = None
    if chosen.runner != "DirectRunner":
        inputs = [_absolute(each) for each in inputs]  # a worker's working directory is another
        chosen.output = _absolute(chosen.output)
        if getattr(chosen, "documents", None):
            chosen.documents = _absolute(chosen.documents)
        tables = getattr(chosen, "tables", [])
        tables[:] = map(_absolute, tables)
        if not chosen.plan:
            submission = preflight.prepare(chosen.runner, beam_args, [*inputs, *tables, chosen.output])
    source = corpus.given(inputs, input_format=chosen.input_format)
    for notice in [*(source.raw.notices if source.raw else ()), *(submission.notices if submission else ())]:
        print(notice)
    chain = command.build(source, chosen, Folder(chosen.output))
    if chain[-1].build is None:
        raise UserError(f"{chain[-1].folder}: the input is what this command would write: nothing to do")
    if chosen.units:
        _slice(command, arguments, chosen, chain)
    elif chosen.plan:
        _plan(command, arguments, chosen, chain)
    else:
        _whole(command, arguments, chosen, chain, submission, beam_args)
    return 0


def _slice(
    command: Command, arguments: Sequence[str], chosen: argparse.Namespace, chain: Sequence[corpus.ChainDataset]
) -> None:
    require_finished(chain, chosen)
    build = chain[-1].build
    assert build is not None
    said = run_slice(
        build,
        chosen.units,
        workers=chosen.workers or usable_cores(),
        limits=_limits(chosen),
        max_reject_rate=chosen.max_reject_rate,
        command=run_command(command, _without(arguments, "--resume")),
        finish=resume_command(command, _without_units(arguments)),
    )
    print(said)


def _plan(
    command: Command, arguments: Sequence[str], chosen: argparse.Namespace, chain: Sequence[corpus.ChainDataset]
) -> None:
    planning.show(
        chain,
        _to_build(chain, chosen),
        runner=chosen.runner,
        workers=chosen.workers or usable_cores(),
        max_reject_rate=chosen.max_reject_rate,
        run=run_command(command, _without(arguments, "--plan")),
    )


def _whole(
    command: Command,
    arguments: Sequence[str],
    chosen: argparse.Namespace,
    chain: Sequence[corpus.ChainDataset],
    submission: preflight.Submission | None,
    beam_args: Sequence[str],
) -> None:
    for dataset in chain:
        if dataset.build is not None:
            refuse_second(dataset.folder)
    todo = _to_build(chain, chosen)
    for build in todo:
        build.begin(resume=chosen.resume)
    progress = Progress()
    if todo:
        resume = resume_command(command, arguments)
        try:
            runners.run(
                todo,
                workers=chosen.workers,
                submission=submission,
                beam_args=beam_args,
                progress=progress,
                command=resume,
                limits=_limits(chosen),
                max_reject_rate=chosen.max_reject_rate,
            )
        except BaseException:
            print(f"to go on from here: {resume}", file=sys.stderr)
            raise
    print(summary.text([dataset.folder for dataset in chain], progress.rates))


def _to_build(chain: Sequence[corpus.ChainDataset], chosen: argparse.Namespace) -> list[DatasetBuild]:
    """The datasets of a chain that are not there yet; says which are."""
    todo = []
    for dataset in chain:
        if dataset.build is None:
            continue
        reuse = dataset is not chain[-1]
        if dataset.build.check(resume=chosen.resume, overwrite=chosen.overwrite, reuse=reuse):
            todo.append(dataset.build)
        else:
            print(f"{dataset.folder}: is there already and fits: taken as it is")
    return todo


def _limits(chosen: argparse.Namespace) -> Limits:
    return LIMITS._replace(stalled=chosen.stall_limit, idle=min(LIMITS.idle, chosen.stall_limit))
