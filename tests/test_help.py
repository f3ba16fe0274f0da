"""`--help` of every command takes a moment: nothing large is imported for it.

A command that declares its stage in its own module needs Arrow and NumPy for it, and nothing more.
"""

from __future__ import annotations

import subprocess
import sys

from pipelines.__main__ import COMMANDS, TOOLS

LARGE = ("pyarrow", "numpy", "spacy", "apache_beam", "jinja2", "torch", "onnxruntime", "yaml", "lxml")

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
    lines = [f"pipelines.{each.module} --help" for each in COMMANDS] + [
        f"pipelines.{each.module} --help" for each in TOOLS
    ]
    lines += ["pipelines", "schemas.check --help", "trainers.train --help", "trainers.train parser --help"]
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    with_stages = {
        f"pipelines.{each.module}" for each in COMMANDS if hasattr(sys.modules[each.build.__module__], "Stage")
    }
    assert said.stdout.splitlines() == [
        f"{line} True {['numpy', 'pyarrow'] if line.split()[0] in with_stages else []}" for line in lines
    ]
