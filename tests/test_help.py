"""`--help` of every command, with and without the console script, takes a moment: nothing large is imported for it.

A command that declares its stage in its own module imports what stages need, but no model and no Beam.
"""

from __future__ import annotations

import re
import subprocess
import sys

from phrasemill.__main__ import ALL_TOOLS
from pipelines.__main__ import COMMANDS, commands
from schemas.commands import name_of

MODELS = ("spacy", "apache_beam", "torch", "onnxruntime")
LARGE = (*MODELS, "pyarrow", "numpy", "jinja2", "rich", "yaml", "lxml", "shtab")

PROGRAM = f"""
import contextlib, io, runpy, sys
for line in sys.stdin:
    module, *arguments = line.split()
    sys.argv = [module, *arguments]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    print(line.strip(), bool(said.getvalue().strip()), sorted({{*{LARGE}}} & {{*sys.modules}}))
"""


def test_help_imports_nothing_large() -> None:
    with_stages = [each.module for each in commands() if hasattr(sys.modules[each.build.__module__], "Stage")]
    modules = [*(f"pipelines.{each}" for each in COMMANDS if each not in with_stages), *ALL_TOOLS]
    scripts = [f"phrasemill {name_of(each)} --help" for each in modules]
    others = ["trainers.train parser --help", "phrasemill train parser --help", "phrasemill --version"]
    lines = [*(f"{each} --help" for each in modules), *scripts, *others]
    heavier = [*(f"pipelines.{each} --help" for each in with_stages), "pipelines", "phrasemill", "phrasemill --help"]
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], input="\n".join(lines + heavier), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[: len(lines)] == [f"{line} True []" for line in lines]
    assert [found for found in said[len(lines) :] if {*MODELS} & {*re.findall(r"'(\w+)'", found)}] == []


def test_the_package_imports_what_is_used() -> None:
    program = f"import sys, phrasemill; phrasemill.__version__; dir(phrasemill); print({{*{LARGE}}} & {{*sys.modules}})"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "set()\n"
