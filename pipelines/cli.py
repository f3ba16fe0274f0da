"""Runs a command: read its options, find the input, build what is missing, print a summary.

Heavy modules are imported when they are needed, so `--help` and errors in flags are fast.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.engine.stopping import ended_by_signals, wait_if_stopping
from pipelines.options import InputOptions, RunOptions, check_beam_flags, shown_arguments
from schemas.commands import Tool, spelled, typed
from schemas.errors import CorruptInput, UserError, resumes
from schemas.options import Chosen, Flags, options_of
from schemas.process import leave_out_pandas, limit_threads, silence, until_pipe_closes
from schemas.storage.addresses import is_address
from schemas.storage.errors import storage_error
from transforms.sources.options import DocumentOptions, NearRules, ReadOptions

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from pipelines.engine.dataset_build import DatasetBuild
    from pipelines.engine.executors import Executor
    from pipelines.engine.preflight import Submission
    from pipelines.engine.progress import Progress
    from schemas.storage.folder import Folder

SMALL_INPUT = 1 << 16
"""Up to this many bytes of input are done in this process: starting others, and Beam, takes longer than the work."""


class Command(NamedTuple):
    """A pipeline as a command.

    `options` are its classes of options, beyond those of every command, or instances whose values are the defaults.
    `build` returns the datasets in order; the last is the output. `reading`: the options of what it reads, of which the
    first are the `InputOptions`.
    """

    module: str
    description: str
    output: str
    takes: str
    options: tuple[Any, ...]
    build: Callable[[Given, Chosen, Folder], list[ChainDataset]]
    reading: tuple[Any, ...] = (InputOptions, DocumentOptions, NearRules, ReadOptions)

    @property
    def flags(self) -> Flags:
        name = spelled(f"pipelines.{self.module}")
        return Flags(
            name,
            (RunOptions(output=self.output), *self.reading, *self.options),
            usage=f"{name} [--input PATH ...] [--output DIR] [option ...]",
            description=f"{self.description} Takes {self.takes}.",
            epilog="Flags of Apache Beam pass through. docs/ has a page for each task.",
        )

    def parse(self, arguments: Sequence[str]) -> tuple[Chosen, list[str]]:
        """The options, and the flags that are Beam's. UserError for a flag that is neither, naming the nearest."""
        flags = self.flags
        chosen, beam_args = flags.parse_known(arguments)
        if beam_args:
            check_beam_flags(beam_args, flags.names)
        chosen[RunOptions].check(beam_args)
        return chosen, beam_args

    def line(self, *chosen: Any, beam_args: Sequence[str] = ()) -> str:
        """The command line with these options; without credentials, which belong in the environment."""
        ordered = sorted(chosen, key=lambda each: (type(each) is RunOptions, not isinstance(each, InputOptions)))
        arguments = shown_arguments([*self.flags.arguments(*ordered), *beam_args])
        return typed(f"pipelines.{self.module}", *arguments)


def _absolute(place: str) -> str:
    return place if is_address(place) else os.path.abspath(place)


def with_absolute_places(chosen: Chosen) -> tuple[Chosen, list[str]]:
    """The options with absolute paths, for workers with another working directory, and these paths."""
    found, places = chosen, []
    for options in chosen:
        for each in options_of(options):
            value = getattr(options, each.name)
            if each.place and value:
                absolute = [_absolute(one) for one in (value if each.repeated else [value])]
                changed = {each.name: tuple(absolute) if each.repeated else absolute[0]}
                found = found.with_(replace(found[type(options)], **changed))
                places += absolute
    return found, places


def main(command: Command, arguments: Sequence[str] | None = None, *, program: bool | None = None) -> int:
    """Run a command; errors that a user can fix are one line, not a traceback. Returns the exit status.

    `program`: whether this process is there for the command, so that a signal may end it; by default if the arguments
    are the process's own.

    A module that runs as a program has the name `__main__`, under which other processes do not find its classes, such
    as stages. So the command is taken from the module of its name.
    """
    if command is getattr(sys.modules["__main__"], "COMMAND", None):
        command = importlib.import_module(f"pipelines.{command.module}").COMMAND
    silence()
    limit_threads()
    with ended_by_signals() if (arguments is None if program is None else program) else nullcontext():
        try:
            return _run(command, sys.argv[1:] if arguments is None else arguments)
        except BaseException as error:
            wait_if_stopping()
            return _failed(error)


def run_tool(tool: Tool, arguments: Sequence[str] | None) -> int:
    """Run a tool; the module of its name in `pipelines/tools` implements it. Errors are as in `main`.

    Returns the exit status.
    """
    try:
        chosen: Any = tool.flags.parse(arguments)[tool.options]
        leave_out_pandas()
        with until_pipe_closes():
            return int(importlib.import_module(tool.module.replace("pipelines", "pipelines.tools")).run(chosen))
        return 0
    except BaseException as error:
        return _failed(error)


def _failed(error: BaseException) -> int:
    """Print what ended a run. Returns the exit status."""
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
    typed, beam_args = command.parse(arguments)
    chosen = typed
    if not chosen[InputOptions].input:
        print("no --input: taking the sample that comes with phrasemill (docs/sources.md)")
        chosen = chosen.with_(replace(chosen[InputOptions], input=_sample()))
    leave_out_pandas()
    from pipelines import corpus
    from schemas.storage.folder import Folder

    Folder(chosen[RunOptions].output).require_writable()
    submission = None
    if chosen[RunOptions].runner != "DirectRunner":
        chosen, places = with_absolute_places(chosen)
        if not chosen[RunOptions].plan:
            from pipelines.engine import preflight

            submission = preflight.prepare(chosen[RunOptions].runner, beam_args, places)
    source = chosen[InputOptions].find()
    for notice in [*(source.raw.notices if source.raw else ()), *(submission.notices if submission else ())]:
        print(notice)
    run = chosen[RunOptions]
    chain = command.build(source, chosen, Folder(run.output))
    if chain[-1].build is None:
        raise UserError(f"{chain[-1].folder}: the input is what this command would write: nothing to do")
    size = source.size + corpus.size_of_files(chain)

    def line(**changes: Any) -> str:
        return command.line(*typed.with_(replace(typed[RunOptions], **changes)), beam_args=beam_args)

    if run.units:
        _slice(typed, chain, line)
    elif run.plan:
        _plan(run, chain, line, size)
    else:
        _whole(run, chain, line, _executor(run, size, submission, beam_args))
    return 0


def _sample() -> tuple[str, ...]:
    from transforms.sources.sample import sample_inputs

    return tuple(str(path) for path in sample_inputs())


def _slice(chosen: Chosen, chain: Sequence[ChainDataset], line: Callable[..., str]) -> None:
    from pipelines.array_job import require_finished, run_slice
    from pipelines.engine.worker_pool import usable_cores

    require_finished(chain, chosen)
    run, build = chosen[RunOptions], chain[-1].build
    assert build is not None
    assert run.units is not None
    said = run_slice(
        build,
        run.units,
        workers=run.workers or usable_cores(),
        limits=run.limits,
        max_reject_rate=run.max_reject_rate,
        command=line(resume=False),
        finish=line(resume=True, units=None),
    )
    print(said)


def _plan(run: RunOptions, chain: Sequence[ChainDataset], line: Callable[..., str], size: int) -> None:
    from pipelines.engine import plan
    from pipelines.engine.executors import InlineExecutor, PoolExecutor
    from pipelines.engine.worker_pool import usable_cores

    workers = run.workers or usable_cores()
    small = not run.workers and size <= SMALL_INPUT
    plan.show(
        [(each.folder, each.build) for each in chain],
        _to_build(chain, run),
        InlineExecutor() if small else PoolExecutor(workers, limits=run.limits),
        local=run.runner == "DirectRunner",
        workers=workers,
        max_reject_rate=run.max_reject_rate,
        run=line(plan=False),
    )


def _whole(
    chosen: RunOptions, chain: Sequence[ChainDataset], line: Callable[..., str], executor: Callable[[], Executor]
) -> None:
    from pipelines import summary
    from pipelines.engine.progress import Progress

    progress = Progress()
    resume, again = line(resume=True, overwrite=False), line(resume=False, overwrite=True)
    try:
        build_chain(chosen, chain, executor, progress, resume=resume)
    except CorruptInput:
        print(f"when the input, or --on-corrupt, is another one, start again: {again}", file=sys.stderr)
        raise
    print(summary.text([dataset.folder for dataset in chain], progress.rates))


def build_chain(
    chosen: RunOptions,
    chain: Sequence[ChainDataset],
    executor: Callable[[], Executor],
    progress: Progress,
    *,
    resume: str,
) -> None:
    """Build what is missing of a chain. Nothing is written or removed before its leases are taken."""
    from pipelines.engine.driver import run
    from pipelines.engine.lease import refusing_second

    with refusing_second([each.folder for each in chain if each.build]):
        todo = _to_build(chain, chosen)
    begun = False

    def begin() -> list[DatasetBuild]:
        nonlocal begun
        # Checked again: another run may have ended since.
        left = [each for each in todo if _is_to_build(each, chosen, reuse=each is not chain[-1].build)]
        for build in left:
            build.begin(resume=chosen.resume)
        begun = True
        return left

    if not todo:
        return
    rate = chosen.max_reject_rate
    try:
        with progress.watching():
            run(todo, executor(), progress=progress, begin=begin, command=resume, max_reject_rate=rate)
    except BaseException as error:
        if begun and resumes(error):
            print(f"to go on from here: {resume}", file=sys.stderr)
        raise


def _to_build(chain: Sequence[ChainDataset], run: RunOptions) -> list[DatasetBuild]:
    """The datasets of a chain that must be built; prints which are reused. UserError names all that do not fit."""
    from pipelines.engine.dataset_build import Misfit
    from pipelines.engine.lease import tidy

    todo, misfits = [], list[Misfit]()
    for dataset in chain:
        if dataset.build is None:
            continue
        reuse = dataset is not chain[-1]
        try:
            if _is_to_build(dataset.build, run, reuse=reuse):
                todo.append(dataset.build)
            else:
                tidy(dataset.folder)
        except Misfit as error:
            misfits.append(error)
    if len(misfits) > 1:
        whats = "; ".join(each.what for each in misfits)
        raise UserError(f"{whats}; choose another --output, or replace them with --overwrite")
    for each in misfits:
        raise each
    return todo


def _is_to_build(build: DatasetBuild, run: RunOptions, *, reuse: bool) -> bool:
    needed = build.check(resume=run.resume, overwrite=run.overwrite, reuse=reuse)
    if not needed:
        print(f"{build.output}: is there already and fits: taken as it is")
    return needed


def _executor(
    run: RunOptions, size: int, submission: Submission | None, beam_args: Sequence[str]
) -> Callable[[], Executor]:
    """Where the units are done. `size`: bytes of the input."""
    if submission is None and not (beam_args or run.workers) and size <= SMALL_INPUT:
        from pipelines.engine.executors import InlineExecutor

        return InlineExecutor

    def on_beam() -> Executor:
        from pipelines.engine.beam import BeamExecutor  # takes seconds to import
        from pipelines.engine.preflight import HERE

        job = submission or HERE._replace(arguments=[*beam_args])
        return BeamExecutor(job, workers=run.workers, limits=run.limits)

    return on_beam
