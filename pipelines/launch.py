"""What every command does: read its options, find the input, build what is missing, sum up."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipelines import corpus, options, planning, runners, summary
from pipelines.hold import refuse_second
from pipelines.progress import Progress
from pipelines.stages import StageError
from pipelines.workers import LIMITS
from schemas.addresses import shown_arguments
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
    build: Callable[[corpus.Given, argparse.Namespace, Folder], list[corpus.Dataset]]


class _Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM), as batch systems and containers do."""


def _terminate(signum: int, frame: object) -> None:
    raise _Terminated


def run_command(command: Command, arguments: Sequence[str]) -> str:
    """What one types for a run; without credentials, which belong into the environment."""
    return shlex.join([summary.python(), "-m", f"pipelines.{command.module}", *shown_arguments(arguments)])


def resume_command(command: Command, arguments: Sequence[str]) -> str:
    """What one types to go on with a run."""
    return run_command(command, [*(each for each in arguments if each not in ("--resume", "--overwrite")), "--resume"])


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
    source = corpus.given(inputs, input_format=chosen.input_format)
    for notice in source.raw.notices if source.raw else ():
        print(notice)
    chain = command.build(source, chosen, Folder(chosen.output))
    for dataset in chain:
        if dataset.build is not None and not chosen.plan:
            refuse_second(dataset.folder)
    todo = []
    for dataset in chain:
        last = dataset is chain[-1]
        if dataset.build is None:
            if last:
                raise UserError(f"{dataset.folder}: the input is what this command would write: nothing to do")
        elif dataset.build.check(resume=chosen.resume, overwrite=chosen.overwrite, reuse=not last):
            todo.append(dataset.build)
        else:
            print(f"{dataset.folder}: is there already and fits: taken as it is")
    if chosen.plan:
        planning.show(
            chain,
            todo,
            runner=chosen.runner,
            workers=chosen.workers,
            max_reject_rate=chosen.max_reject_rate,
            run=run_command(command, [each for each in arguments if each != "--plan"]),
        )
        return 0
    for build in todo:
        build.begin(resume=chosen.resume)
    progress = Progress()
    if todo:
        resume = resume_command(command, arguments)
        try:
            runners.run(
                todo,
                runner=chosen.runner,
                workers=chosen.workers,
                beam_args=beam_args,
                progress=progress,
                command=resume,
                limits=LIMITS._replace(stalled=chosen.stall_limit, idle=min(LIMITS.idle, chosen.stall_limit)),
                max_reject_rate=chosen.max_reject_rate,
            )
        except BaseException:
            print(f"to go on from here: {resume}", file=sys.stderr)
            raise
    print(summary.text([dataset.folder for dataset in chain], progress.rates))
    return 0
