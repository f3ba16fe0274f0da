"""Options as fields: what a command line makes of them, what is said of them, and back."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from schemas.errors import UserError
from schemas.options import Flags, count, natural, option, options_of, rate, reject_rate, share, some_of, whole


@dataclass(frozen=True)
class Rules:
    group: ClassVar[str] = "rules"

    labels: tuple[str, ...] = option(("NP", "VP"), takes=some_of(("NP", "VP", "PP")), metavar="L,L", help="to take")
    max_tokens: int = option(1000, takes=count, flag="--max-phrase-tokens", metavar="N", help="100% of them")
    lowercase: bool = option(True, flag="--keep-case", help="keep upper case")
    all_pairs: bool = option(False, help="no caps")
    placement: str = option("random", choices=("random", "centre"), help="where")
    digest: str = ""


@dataclass(frozen=True)
class Limits:
    group: ClassVar[str] = "rules"

    most: int | None = option(None, takes=count, metavar="K", help="at most", unset="all of them")
    tables: tuple[str, ...] = option((), repeated=True, metavar="FILE", help="may be repeated")


@dataclass(frozen=True)
class Where:
    output: str = option(metavar="DIR", also=("--to",), help="is written")


@dataclass(frozen=True)
class Tool:
    dataset: Path = option(flag="DIR", takes=Path, help="a dataset")
    others: tuple[str, ...] = option(flag="MORE", repeated=True, help="others")
    rate: float = option(0.5, takes=rate, metavar="RATE", help="how much")


OUT = Where(output="out")
FLAGS = Flags("x", (OUT, Rules, Limits), description="Does x.")


@pytest.mark.parametrize(
    ("arguments", "expected", "typed"),
    [
        ("", [OUT, Rules(), Limits()], ""),
        ("--keep-case --all-pairs", [OUT, Rules(lowercase=False, all_pairs=True), Limits()], None),
        ("--labels=pp,np", [OUT, Rules(labels=("NP", "PP")), Limits()], "--labels NP,PP"),
        ("--labels NP,VP --placement random --to out", [OUT, Rules(), Limits()], ""),
        ("--tables b --tables=a --most 7", [OUT, Rules(), Limits(7, ("b", "a"))], "--most 7 --tables b --tables a"),
        ("--to=-", [Where("-"), Rules(), Limits()], "--output=-"),
        ("--to here", [Where("here"), Rules(), Limits()], "--output here"),
        ("--max-phrase-tokens 3", [OUT, Rules(max_tokens=3), Limits()], None),
    ],
)  # fmt: skip
def test_arguments_there_and_back(arguments, expected, typed):
    chosen, rest = FLAGS.parse_known(arguments.split())
    assert [*chosen] == expected
    assert (chosen[Rules], chosen[Limits], rest) == (expected[1], expected[2], [])
    assert " ".join(FLAGS.arguments(*chosen)) == (arguments if typed is None else typed)
    assert [*FLAGS.parse(FLAGS.arguments(*chosen))] == expected


PLAIN = Rules(max_tokens=9, lowercase=False, all_pairs=True)


@dataclass(frozen=True)
class Style:
    presets: ClassVar = {"plain": (Limits(most=3), PLAIN)}

    preset: str = option("rich", choices=("rich", "plain"), help="values of options")


@pytest.mark.parametrize(
    ("arguments", "rules", "limits"),
    [
        ("", Rules(), Limits()),
        ("--preset plain", PLAIN, Limits(3)),
        ("--most 5 --preset plain", PLAIN, Limits(5)),
        ("--max-phrase-tokens 1000 --preset plain", replace(PLAIN, max_tokens=1000), Limits(3)),
        ("--lowercase --no-all-pairs --preset plain", Rules(max_tokens=9), Limits(3)),
        ("--max-phrase-tokens 9 --keep-case", Rules(max_tokens=9, lowercase=False), Limits()),
    ],
)
def test_a_preset_has_other_defaults(arguments, rules, limits):
    flags = Flags("x", (Rules, Limits, Style))
    chosen = flags.parse(arguments.split())
    assert (chosen[Rules], chosen[Limits]) == (rules, limits)
    typed = flags.arguments(chosen[Limits], chosen[Rules], chosen[Style])
    assert " ".join(typed) == arguments
    assert [*flags.parse(typed)] == [*chosen]


def test_what_is_not_ours_is_passed_on_in_order():
    chosen, rest = FLAGS.parse_known("--job_name=x --most 3 --stage y --max-tokens 5 z".split())
    assert (chosen[Limits].most, rest) == (3, ["--job_name=x", "--stage", "y", "--max-tokens", "5", "z"])
    other = chosen.with_(Limits(most=4))
    assert (other[Limits].most, other[Rules], chosen[Limits].most) == (4, Rules(), 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--labels=NP,S"], "argument --labels: choose among NP, VP, PP, not NP,S; see --help"),
        (["--labels=,"], "argument --labels: choose among NP, VP, PP, not ,; see --help"),
        (["--most=0"], "argument --most: must be a whole number of 1 or more, not 0; see --help"),
        (["--most"], "argument --most: expected one argument; see --help"),
        (["--to="], "argument --output/--to: must not be empty; see --help"),
        (["--tables", " "], "argument --tables: must not be empty; see --help"),
        (["--placement="], "argument --placement: must not be empty; see --help"),
        (["--placement=left"], "argument --placement: invalid choice: 'left'"),
        (["--keep-case=no"], "argument --keep-case: ignored explicit argument 'no'; see --help"),
        (["--all-pair"], "--all-pair: no such flag; did you mean --all-pairs?"),
        (["--keep_case"], "--keep_case: no such flag; did you mean --keep-case?"),
        (["--xyzzy=1"], "--xyzzy: no such flag; see --help"),
        (["stray"], "'stray': is no flag; see --help"),
    ],
)
def test_refused_arguments(arguments, message):
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        FLAGS.parse(arguments)


@pytest.mark.parametrize(
    ("takes", "good", "bad"),
    [
        (whole, {"-3": -3, "0": 0}, ["x", "1.5"]),
        (natural, {"0": 0, "7": 7}, ["-1", "x"]),
        (count, {"1": 1}, ["0", "-1", "1.0"]),
        (rate, {"1": 1.0, "1e-3": 0.001}, ["0", "1.1", "x", "nan"]),
        (share, {"0": 0.0, "0.9": 0.9}, ["1", "-0.1", "nan"]),
        (reject_rate, {"0": 0.0, "1": 1.0}, ["1.1", "-0.1", "nan"]),
    ],
)
def test_numbers_and_their_limits(takes, good, bad):
    assert {text: takes(text) for text in good} == good
    for text in bad:
        with pytest.raises(Exception, match=f"must be a .*number.*, not {re.escape(text)}$"):
            takes(text)


def test_positional_arguments():
    flags = Flags("x", (Tool,))
    assert flags.parse(["a", "b", "c", "--rate=1"])[Tool] == Tool(Path("a"), ("b", "c"), 1.0)
    assert flags.arguments(Tool(Path("a"), ("b", "c"))) == ["a", "b", "c"]
    for arguments, message in (
        ([], "required: DIR, MORE"),
        (["a"], "required: MORE"),
        (["a", ""], "MORE: must not be"),
    ):
        with pytest.raises(UserError, match=message):
            flags.parse(arguments)


def test_what_has_no_default_has_to_be_given():
    with pytest.raises(UserError, match="required: --output/--to; see --help"):
        Flags("x", (Where,)).parse([])


def test_help_is_in_groups_and_says_the_defaults(capsys):
    with pytest.raises(SystemExit):
        FLAGS.parse(["--help"])
    shown = capsys.readouterr().out
    assert re.sub(r"\s+", " ", shown.partition("rules:")[2]).strip() == (
        "--labels L,L to take (default: NP,VP) --max-phrase-tokens N 100% of them (default: 1,000) "
        "--keep-case keep upper case --all-pairs no caps --placement {random,centre} where (default: random) "
        "--most K at most (default: all of them) --tables FILE may be repeated"
    )
    assert "is written (default: out)" in shown


def test_the_defaults_of_an_instance(capsys):
    """An instance that has a switch off which is on in its class has a flag that puts it on, with the field's name."""

    @dataclass(frozen=True)
    class Words:
        drop_dates: bool = option(True, flag="--keep-dates", help="keep dates", opposite="leave out dates")
        most: int | None = option(None, takes=natural, metavar="N", help="at most", unset="all of them")

    own = Flags("x", (Words(drop_dates=False, most=3),))
    assert own.parse([])[Words] == Words(False, 3)
    assert own.parse(["--drop-dates"])[Words] == Words(True, 3)
    assert own.arguments(Words(True, 3)) == ["--drop-dates"]
    assert [(each.flag, each.help, each.shown_default) for each in own.options(Words)] == [
        ("--drop-dates", "leave out dates", ""),
        ("--most", "at most", "3"),
    ]
    with pytest.raises(UserError, match="did you mean --drop-dates"):
        own.parse(["--drop-date"])
    with pytest.raises(ValueError, match="lowercase: what the flag does that switches it on is not said"):
        Flags("x", (Rules(lowercase=False),))


def test_what_is_on_by_default_needs_a_flag_that_switches_it_off():
    with pytest.raises(ValueError, match="switches it off"):
        option(True, help="x")
    assert [each.name for each in options_of(Rules)] == ["labels", "max_tokens", "lowercase", "all_pairs", "placement"]
