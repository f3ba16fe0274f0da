"""What every command does: read its options, find the input, build what is missing, sum up.

What is heavy is imported when it is needed: `--help` and a mistyped flag take a moment.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pipelines import options
from pipelines.engine.limits import LIMITS, Limits
from schemas.errors import UserError
from schemas.process import leave_out_pandas, limit_threads, silence
from schemas.storage.addresses import checked_arguments, is_address
from schemas.storage.errors import storage_error

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from pipelines.engine.dataset_build import DatasetBuild
    from pipelines.engine.executors import Executor
    from pipelines.engine.preflight import Submission
    from schemas.storage.folder import Folder

SMALL_INPUT = 1 << 16
"""Bytes of input that are done in this process: starting others, and Beam, would take longer than the work."""


class Command(NamedTuple):
    """A pipeline as a command. `build` gives the datasets in order, the last of them the output."""

    module: str
    description: str
    output: str
    takes: str
    groups: tuple[Callable[[argparse.ArgumentParser], None], ...]
    build: Callable[[Given, argparse.Namespace, Folder], list[ChainDataset]]


def python() -> str:
    """This Python, as one would type it here."""
    here = os.path.relpath(sys.executable)
    return "python" if here.startswith(os.pardir) else here


def command_line(module: str, arguments: Sequence[str]) -> str:
    """What one types to run a module of the pipelines; without credentials, which belong into the environment."""
    return shlex.join([python(), "-m", f"pipelines.{module}", *options.shown_arguments(arguments)])


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
    silence()
    limit_threads()
    received: list[int] = []

    def stop(signum: int, frame: object) -> None:
        received.append(signum)
        raise KeyboardInterrupt(signum)  # Beam makes a RuntimeError of one without an argument

    before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        return _run(command, sys.argv[1:] if arguments is None else arguments)
    except BaseException as error:
        if received:  # whatever became of it on its way through libraries
            print("stopped", file=sys.stderr)
            return 128 + received[0]
        return _failed(error)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def run_tool(name: str, parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    """Run one of `pipelines/tools`, with errors as `main` has them. Returns the exit status."""
    try:
        chosen = parser.parse_args(checked_arguments(arguments))
        leave_out_pandas()
        return int(importlib.import_module(f"pipelines.tools.{name}").run(chosen))
    except BaseException as error:
        return _failed(error)


def _failed(error: BaseException) -> int:
    """Say what ended a run; the exit status."""
    if not isinstance(error, Exception):
        raise error  # argparse's SystemExit
    if isinstance(error, UserError):
        print(f"error: {error}", file=sys.stderr)
        return 2
    if isinstance(error, OSError):
        print(f"error: {storage_error(error, final=True)}", file=sys.stderr)
        return 2
    from pipelines.engine.stage import StageError

    if isinstance(error, StageError):
        if error.__cause__:
            traceback.print_exception(error.__cause__)
        print(f"error: {error}", file=sys.stderr)
        return 1
    raise error


def _run(command: Command, arguments: Sequence[str]) -> int:
    parser = options.command(command.module, command.description, output=command.output)
    options.add_input(parser, takes=command.takes)
    for add in command.groups:
        add(parser)
    chosen, beam_args = options.parse(parser, arguments)
    if not chosen.input:
        print("no --input: taking the sample that comes with phrasemill (docs/sources.md)")
    leave_out_pandas()
    inputs = chosen.input or _sample()
    from pipelines import corpus
    from schemas.storage.folder import Folder

    submission = None
    if chosen.runner != "DirectRunner":
        inputs = [_absolute(each) for each in inputs]  # a worker's working directory is another
        chosen.output = _absolute(chosen.output)
        if getattr(chosen, "documents", None):
            chosen.documents = _absolute(chosen.documents)
        tables = getattr(chosen, "tables", [])
        tables[:] = map(_absolute, tables)
        if not chosen.plan:
            from pipelines.engine import preflight

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
        size = source.size + corpus.size_of_files(chain)
        _whole(command, arguments, chosen, chain, _executor(chosen, size, submission, beam_args))
    return 0


def _sample() -> list[str]:
    from transforms.sources.sample import sample_inputs

    return [str(path) for path in sample_inputs()]


def _slice(
    command: Command, arguments: Sequence[str], chosen: argparse.Namespace, chain: Sequence[ChainDataset]
) -> None:
    from pipelines.array_job import require_finished, run_slice
    from pipelines.engine.worker_pool import usable_cores

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
    command: Command, arguments: Sequence[str], chosen: argparse.Namespace, chain: Sequence[ChainDataset]
) -> None:
    from pipelines import planning
    from pipelines.engine.worker_pool import usable_cores

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
    chain: Sequence[ChainDataset],
    executor: Callable[[], Executor],
) -> None:
    from pipelines import summary
    from pipelines.engine.driver import run
    from pipelines.engine.lease import refuse_second
    from pipelines.engine.progress import Progress

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
            run(todo, executor(), progress=progress, command=resume, max_reject_rate=chosen.max_reject_rate)
        except BaseException:
            print(f"to go on from here: {resume}", file=sys.stderr)
            raise
    print(summary.text([dataset.folder for dataset in chain], progress.rates))


def _to_build(chain: Sequence[ChainDataset], chosen: argparse.Namespace) -> list[DatasetBuild]:
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


def _executor(
    chosen: argparse.Namespace, size: int, submission: Submission | None, beam_args: Sequence[str]
) -> Callable[[], Executor]:
    """Where the units are to be done. `size`: bytes of the input."""
    if submission is None and not (beam_args or chosen.workers) and size <= SMALL_INPUT:
        from pipelines.engine.executors import InlineExecutor

        return InlineExecutor
    from pipelines.engine.beam import BeamExecutor
    from pipelines.engine.preflight import HERE

    job = submission or HERE._replace(arguments=[*beam_args])
    return lambda: BeamExecutor(job, workers=chosen.workers, limits=_limits(chosen))


def _limits(chosen: argparse.Namespace) -> Limits:
    return LIMITS._replace(stalled=chosen.stall_limit, idle=min(LIMITS.idle, chosen.stall_limit))
