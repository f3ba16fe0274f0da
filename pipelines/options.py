"""The options of the command lines, in groups, declared once for all pipelines.

`--help` imports this module and what it names: all of that is light.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from pipelines.engine.limits import LIMITS
from schemas.errors import UserError
from schemas.storage.addresses import checked_arguments
from transforms.parsing.registry import PARSERS
from transforms.sources.formats import DEDUP_MODES, FORMAT_NAMES, ReadOptions

if TYPE_CHECKING:
    from pipelines.engine.stage import Slice

_SECRET_FLAG = re.compile(r"--\w*(?:secret|password|session_token|access_key|connection_string|credential)\w*")
"""Flags of Beam, such as --s3_secret_access_key."""

RUNNERS = ("DirectRunner", "PrismRunner", "PortableRunner", "FlinkRunner", "DataflowRunner")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see --help")


def _number(of: Callable[[str], float], fits: Callable[[float], bool], wanted: str) -> Callable[[str], float]:
    """A converter for argparse that says what is wanted."""

    def convert(text: str) -> float:
        try:
            number = of(text)
        except ValueError:
            number = None
        if number is None or not fits(number):
            raise argparse.ArgumentTypeError(f"must be {wanted}, not {text}")
        return number

    return convert


_positive = _number(int, lambda number: number >= 1, "a whole number of 1 or more")
_rate = _number(float, lambda number: 0 < number <= 1, "a number above 0 and at most 1")
_reject_rate = _number(float, lambda number: 0 <= number <= 1, "a number from 0 to 1")
_share = _number(float, lambda number: 0 <= number < 1, "a number of 0 or more and below 1")


def _slice(text: str) -> Slice:
    from pipelines.engine.stage import Slice

    found = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
    part = Slice(int(found[1]), int(found[2])) if found else None
    if part is None or not 1 <= part.number <= part.of:
        raise argparse.ArgumentTypeError(f"must be I/N with I from 1 to N, such as 3/64, not {text}")
    return part


def _mask(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def command(module: str, description: str, *, output: str) -> argparse.ArgumentParser:
    """The parser of a pipeline's command line; groups of options are added to it."""
    parser = _Parser(
        prog=f"python -m pipelines.{module}",
        usage=f"python -m pipelines.{module} [--input PATH ...] [--output DIR] [option ...]",
        description=description,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=34, width=110),
        allow_abbrev=False,
        epilog="Flags of Apache Beam pass through. docs/ has a page for each task.",
    )
    group = parser.add_argument_group("output and run")
    add = group.add_argument
    add("--output", default=output, metavar="DIR", help=f"the dataset to write (default {output})")
    add("--overwrite", action="store_true", help="replace the dataset in --output")
    add("--resume", action="store_true", help="go on with an unfinished run")
    add("--plan", action="store_true", help="measure a sample, say what a run will make, take and need, and end")
    add("--units", type=_slice, metavar="I/N", help="do slice I of N of the first step, N the same for all, and end")
    add("--runner", default="DirectRunner", choices=RUNNERS, help="where to run (default: this machine)")
    add("--workers", type=_positive, metavar="N", help="processes on a machine (default: one a core)")
    add(
        "--max-reject-rate",
        type=_reject_rate,
        default=0.01,
        metavar="RATE",
        help="stop where more of a stage's input is rejected (0.01)",
    )
    add(
        "--stall-limit",
        type=_positive,
        default=round(LIMITS.stalled),
        metavar="SECONDS",
        help=f"a worker without progress for so long counts as hung ({LIMITS.stalled:.0f})",
    )
    return parser


def add_input(parser: argparse.ArgumentParser, *, takes: str) -> None:
    limits = ReadOptions()
    group = parser.add_argument_group("input")
    add = group.add_argument
    add("--input", action="append", default=[], metavar="PATH", help=f"{takes}; may be repeated (default: the sample)")
    add("--input-format", choices=sorted(FORMAT_NAMES), help="instead of detecting it")
    add("--text-column", default=limits.text_column, metavar="NAME", help="of JSON lines and Parquet (default text)")
    add("--on-corrupt", choices=("fail", "skip"), default="fail", help="stop at damaged input, or reject it and go on")
    add("--max-documents", type=_positive, metavar="N", help="take the first N documents")
    add("--sample-documents", type=_rate, default=1.0, metavar="RATE", help="take a random share, by hash of the id")
    add("--sample-seed", type=int, default=0, metavar="N", help="of that share (default 0)")
    add("--dedup", choices=DEDUP_MODES, default="off", help="leave out exact duplicates (default off)")
    add("--shard-bytes", type=_positive, default=1 << 20, metavar="N", help="text in a shard of documents (1 MiB)")
    for name in ("max_page_bytes", "max_document_bytes", "max_nodes", "max_depth"):
        flag, default = "--" + name.replace("_", "-"), getattr(limits, name)
        add(flag, type=_positive, default=default, metavar="N", help=f"reject what has more ({default:,})")


def add_parsing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("parsing")
    add = group.add_argument
    add("--parser", choices=PARSERS, default="phrasemill", help="of constituents (default phrasemill)")
    add("--model", metavar="NAME", help="the parser's model: a name or a path (default: the parser's own)")
    add("--max-sentence-tokens", type=_positive, metavar="N", help="reject longer sentences (default: the parser's)")
    add("--parser-option", action="append", default=[], metavar="NAME=VALUE", help="see docs/parsers.md")
    add_documents(group)


def add_documents(to: argparse._ActionsContainer) -> None:
    to.add_argument("--documents", metavar="DIR", help="where the documents of given sentences lie, if they were moved")


def add_phrases(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("phrases")
    add = group.add_argument
    add("--labels", default="NP,VP,ADJP,ADVP", metavar="L,L", help="constituents to take (NP,VP,ADJP,ADVP)")
    add("--max-phrase-tokens", type=_positive, default=10, metavar="N", help="longer ones are left out (default 10)")
    add("--max-phrases", type=_positive, metavar="K", help="the K most frequent (default 100,000)")
    add("--min-frequency", type=_positive, metavar="N", help="all that occur so often, instead of the K most frequent")
    for name, what in (
        ("case", "upper case"),
        ("punctuation", "leading and trailing punctuation"),
        ("determiners", "leading determiners"),
        ("pronouns", "lone pronouns"),
        ("numbers", "lone numbers"),
    ):
        add(f"--keep-{name}", action="store_true", help=f"keep {what}")


def add_contexts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("contexts")
    add = group.add_argument
    add("--contexts-per-phrase", type=_positive, default=1, metavar="M", help="contexts of each phrase (default 1)")
    add("--window", type=_positive, default=120, metavar="N", help="tokens of a context, phrase included (120)")
    add("--placement", choices=("random", "centre"), default="random", help="of the phrase in its window")
    add("--keep-other-occurrences", action="store_true", help="mask only the chosen occurrence in its window")
    _add_choices(group, apart="documents")


def _add_choices(to: argparse._ActionsContainer, *, apart: str) -> None:
    """What every dataset of training examples asks for."""
    add = to.add_argument
    add("--mask-token", type=_mask, default="[MASK]", metavar="TEXT", help="replaces the phrase (default [MASK])")
    add("--validation-rate", type=_share, default=0.0, metavar="RATE", help=f"share of {apart} set apart (default 0)")
    add("--seed", type=int, default=0, metavar="N", help="of every choice (default 0)")


def add_mentions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("mentions")
    add = group.add_argument
    add(
        "--tables",
        action="append",
        default=[],
        metavar="FILE",
        help="a wiki's page, redirect or page_props .sql.gz, for Wikidata ids and redirects; may be repeated",
    )
    add("--max-mention-words", type=_positive, default=10, metavar="N", help="longer ones are left out (default 10)")
    add("--max-sentence-words", type=_positive, default=100, metavar="N", help="so are those in longer ones (100)")
    for name, what in (
        ("numbers", "mentions of numbers only"),
        ("dates", "dates and years"),
        ("lists", "links on lists and disambiguation pages"),
        ("whole-sentences", "mentions that are all of their sentence"),
        ("disambiguation", "links to disambiguation pages"),
    ):
        add(f"--keep-{name}", action="store_true", help=f"keep {what}")
    add("--drop-red-links", action="store_true", help="leave out links to titles that are no page")
    add("--own-titles", action="store_true", help="also where a page's text names its title")
    add("--repeated-anchors", action="store_true", help="also where a page repeats an anchor without the link")


def add_pairs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("pairs")
    add = group.add_argument
    add("--pairs-by", default="entity,surface", metavar="K,K", help="what two mentions share (entity,surface)")
    add("--mentions-per-key", type=_positive, default=32, metavar="M", help="of an entity or surface, by hash (32)")
    add("--partners", type=_positive, default=4, metavar="K", help="each of them is paired with the next K (4)")
    add("--all-pairs", action="store_true", help="every two mentions of a key, as the paper does: no caps")
    add("--masked", action="store_true", help="write the masked sentences, too; else they are masked at load time")
    add("--masks", choices=("one", "subtokens"), default="one", help="one mask a mention, or one a sub-token")
    add("--tokenizer", metavar="NAME", help="whose sub-tokens: a name or folder of Hugging Face's")
    _add_choices(group, apart="entities")
    group = parser.add_argument_group("aliases")
    add = group.add_argument
    add("--aliases-per-entity", type=_positive, default=10, metavar="N", help="the N most frequent (default 10)")
    add("--min-alias-count", type=_positive, default=2, metavar="N", help="mentions that an alias needs (default 2)")


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """The options, and the flags that are Beam's. UserError for a flag that is neither, naming the nearest."""
    options, rest = parser.parse_known_args(checked_arguments(arguments))
    if rest:
        _check_beam_flags(rest, [flag for action in parser._actions for flag in action.option_strings])
    if options.overwrite and options.resume:
        raise UserError("--overwrite and --resume exclude each other")
    if options.units:
        _check_units(options, rest)
    return options, rest


def _check_units(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """UserError for what a slice cannot be combined with."""
    if options.overwrite:
        raise UserError(
            "--overwrite and --units exclude each other, for a slice may not remove what others did; "
            f"delete {options.output} first, or choose another --output"
        )
    if options.plan:
        raise UserError("--plan and --units exclude each other, for a plan is of all units; leave out --units")
    if options.runner != "DirectRunner":
        raise UserError(
            f"--runner {options.runner} and --units exclude each other, for a slice is done without Beam, on the "
            "machine where it is started; leave out one of them"
        )
    if rest:
        raise UserError(f"{rest[0]}: --units takes no flags of Beam, for a slice is done without it; leave it out")


def as_arguments(
    options: argparse.Namespace, groups: Sequence[Callable[[argparse.ArgumentParser], object]]
) -> list[str]:
    """The options of some groups as one would type them, less those that have their defaults."""
    parser = _Parser(add_help=False)
    for add in groups:
        add(parser)
    found = []
    for action in parser._actions:
        value = getattr(options, action.dest)
        if value == action.default:
            continue
        for each in value if isinstance(value, list) else [value]:
            found += [action.option_strings[0]] if value is True else [action.option_strings[0], str(each)]
    return found


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


def _check_beam_flags(rest: Sequence[str], own: Sequence[str]) -> None:
    from pipelines.engine.beam import job_server_flags, known_flags

    beams = set(known_flags())
    if not all(each.split("=")[0] in beams for each in rest if each.startswith("--")):
        beams.update(job_server_flags(rest))
    expects_value = False
    for argument in rest:
        if not argument.startswith("--"):
            if not expects_value:
                raise UserError(f"{argument!r}: is no flag; see --help")
            expects_value = False
            continue
        flag = argument.split("=")[0]
        if flag not in beams:
            near = difflib.get_close_matches(flag, [*own, *beams], n=1)
            raise UserError(f"{flag}: no such flag" + (f"; did you mean {near[0]}?" if near else "; see --help"))
        expects_value = "=" not in argument


def choice_of_labels(text: str) -> tuple[str, ...]:
    """The labels of a comma-separated list, in their fixed order."""
    from schemas.terms import PHRASE_LABELS

    wanted = [label.strip().upper() for label in text.split(",") if label.strip()]
    unknown = [label for label in wanted if label not in PHRASE_LABELS]
    if unknown or not wanted:
        raise UserError(f"--labels {text}: choose among {', '.join(PHRASE_LABELS)}")
    return tuple(label for label in PHRASE_LABELS if label in wanted)


def kinds_of_pairs(options: argparse.Namespace) -> tuple[str, ...]:
    """The kinds of a comma-separated list, in their fixed order."""
    from schemas.terms import PAIR_KINDS

    wanted = {kind.strip().lower() for kind in options.pairs_by.split(",") if kind.strip()}
    if not wanted or wanted - {*PAIR_KINDS}:
        raise UserError(f"--pairs-by {options.pairs_by}: choose among {', '.join(PAIR_KINDS)}")
    return tuple(kind for kind in PAIR_KINDS if kind in wanted)


def parser_options(options: argparse.Namespace) -> tuple[tuple[str, str | float], ...]:
    """The parser's own options, sorted by name."""
    found: dict[str, str | float] = {}
    if options.model is not None:
        found["model"] = options.model
    if options.max_sentence_tokens is not None:
        found["max_tokens"] = options.max_sentence_tokens
    for each in options.parser_option:
        name, equals, value = each.partition("=")
        if not equals:
            raise UserError(f"--parser-option {each}: must be NAME=VALUE")
        found[name.replace("-", "_")] = _value(value)
    return tuple(sorted(found.items()))


def _value(text: str) -> str | float:
    """A number, where the text is one."""
    for of in (int, float):
        try:
            return of(text)
        except ValueError:
            continue
    return text
