"""`--help` of every command takes a moment: nothing large is imported for it.

A command that declares its stage in its own module imports what stages need, but no model and no Beam.
"""

from __future__ import annotations

import re
import subprocess
import sys

from pipelines.__main__ import COMMANDS, TOOLS

MODELS = ("spacy", "apache_beam", "torch", "onnxruntime")
LARGE = (*MODELS, "pyarrow", "numpy", "jinja2", "yaml", "lxml")

PROGRAM = f"""
import contextlib, io, runpy, sys
for line in sys.stdin:
    module, *arguments = line.split()
    sys.argv = [module, *arguments]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    print(line.strip(), len(said.getvalue().splitlines()) > 2, sorted({{*{LARGE}}} & {{*sys.modules}}))
"""


def test_help_imports_nothing_large() -> None:
    with_stages = [each.module for each in COMMANDS if hasattr(sys.modules[each.build.__module__], "Stage")]
    light = [each.module for each in (*COMMANDS, *TOOLS) if each.module not in with_stages]
    others = ["schemas.check --help", "trainers.train --help", "trainers.train parser --help"]
    lines = [*(f"pipelines.{each} --help" for each in light), *others]
    heavier = [*(f"pipelines.{each} --help" for each in with_stages), "pipelines"]
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], input="\n".join(lines + heavier), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[: len(lines)] == [f"{line} True []" for line in lines]
    assert [found for found in said[len(lines) :] if {*MODELS} & {*re.findall(r"'(\w+)'", found)}] == []
