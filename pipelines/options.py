"""The options of every run, and the flags of Beam that pass through.

`--help` imports this module, so it imports nothing heavy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pipelines.engine.limits import LIMITS, Limits
from schemas.errors import UserError
from schemas.options import BadValue, count, no_such_flag, option, reject_rate
from transforms.entities.options import EntityOptions
from transforms.pairs.options import PAIR_FORMAT_OBJECTS
from transforms.parsing.options import GivenSentences, ParsingOptions
from transforms.phrases.options import TYPED_RULES, TYPED_VOCABULARY, TypeRules
from transforms.sources.formats import FORMAT_OBJECTS

if TYPE_CHECKING:
    from pipelines.corpus import Given
    from pipelines.engine.stage import Slice

_SECRET_FLAG = re.compile(r"--\w*(?:secret|password|session_token|access_key|connection_string|credential)\w*")
"""Flags of Beam, such as --s3_secret_access_key."""

TYPED_PHRASES = (ParsingOptions(), GivenSentences(), EntityOptions(), TypeRules(), TYPED_RULES, TYPED_VOCABULARY)
"""The options of `mine_phrases`; commands that take phrases make them with these defaults, or take given ones."""

RUNNERS = ("DirectRunner", "PrismRunner", "PortableRunner", "FlinkRunner", "DataflowRunner")


def _slice(text: str) -> Slice:
    from pipelines.engine.stage import Slice

    found = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
    part = Slice(int(found[1]), int(found[2])) if found else None
    if part is None or not 1 <= part.number <= part.of:
        raise BadValue(f"must be I/N with I from 1 to N, such as 3/64, not {text}")
    return part


@dataclass(frozen=True)
class RunOptions:
    """Where a run writes, and how it runs."""

    group: ClassVar[str] = "output and run"

    output: str = option(
        place=True,
        metavar="DIR",
        help="the dataset to write",
        more="The datasets that it is made from are written beside it",
    )
    runner: str = option("DirectRunner", choices=RUNNERS, help="where to run", unset="DirectRunner, this machine")
    workers: int | None = option(
        None,
        takes=count,
        metavar="N",
        help="processes on a machine",
        unset="one a core",
        more="On a cluster: on each of its machines",
    )
    max_reject_rate: float = option(
        0.01, takes=reject_rate, metavar="RATE", help="stop if a larger share of a stage's input is rejected"
    )
    stall_limit: int = option(
        round(LIMITS.stalled),
        takes=count,
        metavar="SECONDS",
        help="a worker without progress for this long is hung",
    )
    plan: bool = option(
        False,
        help="measure a sample, say what a run will make, take and need, and end",
        more="See [operations.md](operations.md)",
    )
    units: Slice | None = option(
        None,
        takes=_slice,
        metavar="I/N",
        help="do slice I of N of the first step, N the same for all, and end",
        more="See [arrays.md](arrays.md)",
    )
    overwrite: bool = option(False, help="replace the dataset in --output")
    resume: bool = option(False, help="continue an unfinished run")

    @property
    def limits(self) -> Limits:
        return LIMITS._replace(stalled=self.stall_limit, idle=min(LIMITS.idle, self.stall_limit))

    def check(self, beam_args: Sequence[str]) -> None:
        """UserError for options that cannot be combined."""
        if self.overwrite and self.resume:
            raise UserError("--overwrite and --resume exclude each other")
        if not self.units:
            return
        if self.overwrite:
            raise UserError(
                "--overwrite and --units exclude each other, since a slice may not remove what others did; "
                f"delete {self.output} first, or choose another --output"
            )
        if self.plan:
            raise UserError("--plan and --units exclude each other, since a plan is of all units; leave out --units")
        if self.runner != "DirectRunner":
            raise UserError(
                f"--runner {self.runner} and --units exclude each other, since a slice is done without Beam, on the "
                "machine where it is started; leave out one of them"
            )
        if beam_args:
            raise UserError(
                f"{beam_args[0]}: --units takes no flags of Beam, since a slice is done without it; leave it out"
            )


@dataclass(frozen=True)
class InputOptions:
    """What is read."""

    group: ClassVar[str] = "input"

    input: tuple[str, ...] = option(
        (), repeated=True, place=True, metavar="PATH", help="what to read; may be repeated", unset="the sample"
    )
    input_format: str | None = option(
        None, choices=tuple(sorted(FORMAT_OBJECTS)), help="read all files in this format instead of detecting it"
    )

    def find(self) -> Given:
        """What --input names."""
        from pipelines import corpus

        return corpus.given(self.input, input_format=self.input_format)


@dataclass(frozen=True)
class PairInput(InputOptions):
    """What is read by commands that take pairs of phrases."""

    input: tuple[str, ...] = option(repeated=True, place=True, metavar="PATH", help="what to read; may be repeated")
    input_format: str | None = option(
        None, choices=tuple(sorted(PAIR_FORMAT_OBJECTS)), help="read all files in this format instead of detecting it"
    )

    def find(self) -> Given:
        from pipelines import corpus
        from transforms.pairs.formats import PAIR_FORMATS

        return corpus.given(self.input, input_format=self.input_format, formats=PAIR_FORMATS)


@dataclass(frozen=True, kw_only=True)
class DatasetInput(InputOptions):
    """What is read by the command that compares a dataset with evaluation sets."""

    input: tuple[str, ...] = option(repeated=True, place=True, metavar="PATH", help="the dataset to read")
    evaluation: tuple[str, ...] = option(
        repeated=True, place=True, metavar="PATH", help="a file, folder or glob of evaluation sets; may be repeated"
    )
    input_format: str | None = None  # not an option

    def find(self) -> Given:
        from pipelines import corpus
        from transforms.decontamination.files import EVALUATION_FORMATS
        from transforms.sources.inputs import InputError

        found = corpus.given(self.input)
        if found.raw is not None:
            raise UserError(f"--input {self.input[0]}: is no phrasemill dataset; give a finished one")
        try:
            sets = corpus.given(self.evaluation, formats=EVALUATION_FORMATS)
        except InputError as error:  # which names an option that is not there
            raise UserError(f"--evaluation: {str(error).replace(' (--input-format)', '')}") from None
        if sets.raw is None:
            raise UserError(f"--evaluation {self.evaluation[0]}: is a dataset; give its files, such as data/*.parquet")
        return found._replace(raw=sets.raw)


def shown_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command without the secrets that flags of Beam hold."""
    found: list[str] = []
    for each in arguments:
        flag, equals, _ = each.partition("=")
        if found and not each.startswith("-") and _SECRET_FLAG.fullmatch(found[-1]):
            found.append("***")
        else:
            found.append(f"{flag}=***" if equals and _SECRET_FLAG.fullmatch(flag) else each)
    return found


def check_beam_flags(rest: Sequence[str], own: Sequence[str]) -> None:
    """UserError for a flag that Beam does not know either, naming the nearest, or without a value; `own` are ours."""
    from pipelines.engine.beam import job_server_flags, known_flags

    beams = set(known_flags())
    if not all(each.split("=")[0] in beams for each in rest if each.startswith("--")):
        beams.update(job_server_flags(rest))
    flag, expects_value = "", False
    for argument in rest:
        is_flag = argument.startswith("--")
        if (is_flag and argument.split("=")[0] not in beams) or not (is_flag or expects_value):
            raise UserError(no_such_flag(argument, [*own, *beams]))
        flag, equals, value = argument.partition("=") if is_flag else (flag, "=", argument)
        if equals and not value.strip():
            raise UserError(f"{flag}: must not be empty; give it a value, or leave it out")
        expects_value = is_flag and not equals
