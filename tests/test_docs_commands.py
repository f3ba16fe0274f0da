"""The commands of the docs: each can be parsed; `make docs-check` runs them, and compares what they print."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from phrasemill.__main__ import ALL_TOOLS
from pipelines.__main__ import commands, tools
from schemas.commands import name_of
from schemas.errors import UserError
from schemas.options import Flags
from trainers.train import MODELS

ROOT = Path(__file__).resolve().parent.parent
CHECK = runpy.run_path(str(ROOT / "scripts/docs_check.py"))
TRAINED = tools(tuple(MODELS.values()))
FLAGS: dict[str, Flags] = {name_of(each.module): each.flags for each in (*commands(), *tools(ALL_TOOLS), *TRAINED)}

WRITERS = {name_of(each.module) for each in commands()}


def lines(page: str) -> Iterator[str]:
    """What a page calls phrasemill with: in its commands, its scripts, and in the text between backquotes."""
    for block in CHECK["blocks"](page):
        steps = block.steps() if block.what == "shell" else ()
        found = [each.command for each in steps if not (each.prints or "").startswith("error: ")]
        found += re.findall(r"^exec (.*)", re.sub(r"\\\n\s*", "", block.text), re.MULTILINE)
        yield from (each.removeprefix("phrasemill ") for each in found if each.startswith("phrasemill "))
    yield from re.findall(r"`phrasemill ([a-z-]+ [^`]+)`", page)


def parse(line: str) -> None:
    """UserError for an option that there is not. Flags of Beam are known by an underscore, or are these."""
    given = shlex.split(re.sub(r"\$\(\([^)]*\)\)|\$\{?\w+\}?", "1", line.partition(" > ")[0]), comments=True)
    if not given or "--help" in given:
        return
    words = 2 if given[0] == "train" else 1
    name, arguments = " ".join(given[:words]), given[words:]
    if name not in FLAGS:
        raise UserError(f"no command {name}")
    rest = FLAGS[name].parse_known(arguments)[1] if arguments else []
    beams = r"--(parallelism|project|region|[a-z0-9]+(_[a-z0-9]+)+)(=.*)?"
    if unknown := [each for each in rest if name not in WRITERS or not re.fullmatch(beams, each)]:
        raise UserError(f"{line}: {', '.join(unknown)}")


@pytest.mark.heavy
def test_the_commands_of_a_page_are_run():
    script = [sys.executable, ROOT / "scripts/docs_check.py", ROOT / "docs/python.md"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("\n2 run, 11 outputs compared, 0 not run\nno fault\n"), done.stdout


PAGES = [each for each in CHECK["PAGES"] if any(lines(each.read_text()))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_command_can_be_parsed(page):
    for line in lines(page.read_text()):
        parse(line)


@pytest.mark.parametrize(
    "line",
    ["mine-context", "mine-contexts --window", "mine-contexts --widow 3", "check x y --quack", "status a b"],
)
def test_what_cannot_be_parsed(line):
    with pytest.raises(UserError):
        parse(line)


PAGE = """\
Text
    of a paragraph

    phrasemill check a \\
        b    # a comment
    phrasemill check c

<!-- $ phrasemill check
d -->
<!-- varies: why -->

    d: ok

```python
print(1)
```

    1

    $ phrasemill status x
    x: finished

    at 3
    $ phrasemill status y
"""


def test_blocks_of_a_page():
    found = list(CHECK["blocks"](PAGE))
    assert [(each.line, each.what, each.marks) for each in found] == [
        (4, "shell", {}),
        (12, "text", {"$": "phrasemill check d", "varies": "why"}),
        (15, "python", {}),
        (18, "text", {}),
    ]


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (
            "phrasemill check a \\\n    b    # a comment\nphrasemill check c",
            [(9, "phrasemill check a b    # a comment", None), (11, "phrasemill check c", None)],
        ),
        (
            "$ phrasemill status x\nx: finished\n\n  at 3\n$ phrasemill status y",
            [(9, "phrasemill status x", "x: finished\n\n  at 3"), (13, "phrasemill status y", None)],
        ),
    ],
)
def test_steps_of_a_block(text, steps):
    assert [tuple(each) for each in CHECK["Block"](9, "shell", text).steps()] == steps


@pytest.mark.parametrize(
    ("expected", "printed", "is_same"),
    [
        ("parse: 3 units, 24 s, 20,282 tokens/s", "parse: 3 units, 1 min 2 s, 9 tokens/s", True),
        ("parse: 3 units, 24 s", "parse: 0/3 units, 9 sentences/s\nparse: 3 units, 2 s", True),
        ("parse: 3 units, 24 s", "parse: 28.9 %, 0/3 units, 1 sentences/s\nparse: 3 units, 2 s", True),
        ("parse: 3 units, 24 s", "parse: 4 units, 24 s", False),
        ("tokens/s: parse 20,282, count 9", "tokens/s: parse 1, count 1", True),
        ("phrases  100,000  out  1 shard, 1.1 MB", "phrases 100,000 out 1 shard, 1.2 GB", True),
        ("phrases  100,000  out  1 shard, 1.1 MB", "phrases 100,001 out 1 shard, 1.1 MB", False),
        ("measured in 9 s", "10 s of at most 90 s: parse, 6 %\nmeasured in 81 s", True),
        ("filtered: 99 redirect", "filtered: 98 redirect", False),
        ("error: a line that\nis broken", "error: a line that is broken", True),
        ("order: ...\n...\nnext: x", "order: 2 units\n\nrows\nnext: x", True),
        (
            "out: process 27 of root on vm since 2026-11-22 10:58:07",
            "out: process 1 on a since 2025-01-02 11:11:11",
            True,
        ),
        ("worker time 50 s-2.8 min 1.7-7.5 s < 1 s", "worker time 3-9 s 1 s 0.5 s", True),
        ("kept 7.9-10.5 MB 840.5 kB-1.2 MB 0 B", "kept 1 B 2 kB 3 MB", True),
    ],
)
def test_what_is_compared(expected, printed, is_same):
    assert CHECK["same"](expected, printed) is is_same


def test_numbers_that_vary():
    assert CHECK["same"]("parse 7 66,400-85,800", "parse 9 1,000", numbers=False)
    assert not CHECK["same"]("parse 7 66,400-85,800", "count 9 1,000", numbers=False)
