"""The console script: what it runs, and that no folder in which it is started gets in its way."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from phrasemill.__main__ import ALL_TOOLS, MODULES, main
from pipelines.__main__ import COMMANDS
from schemas.commands import spelled, typed
from trainers.train import MODELS as TRAINED

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
TEXT = "The old miller lived near the old bridge. He had three sons and a grey cat.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine-context"], "mine-context: no such command; did you mean mine-contexts?"),
        (["mine_contexs"], "mine_contexs: no such command; did you mean mine-contexts?"),
        (["bake"], "bake: no such command; `phrasemill` lists them"),
        (["--input=x"], "--input=x: no such command; `phrasemill` lists them"),
        (["check", "x", "--quikc"], "--quikc: no such flag; did you mean --quick?"),
        (
            ["mine_contexts", "--workers=0"],
            "argument --workers: must be a whole number of 1 or more, not 0; see --help",
        ),
        (["check"], "the following arguments are required: DIR; see --help"),
        (["train", "cook"], f"no model 'cook'; there are {', '.join(TRAINED)}"),
        (["completion"], "the following arguments are required: SHELL; see --help"),
    ],
)
def test_a_wrong_command_is_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_each_command_has_a_name_of_its_own(capsys):
    assert len(MODULES) == len(COMMANDS) + len(ALL_TOOLS)
    assert MODULES["mine-contexts"] == "pipelines.mine_contexts"
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: phrasemill COMMAND")


def test_commands_are_shown_as_they_were_typed(tmp_path, monkeypatch):
    script = tmp_path / "my env/bin/phrasemill"
    script.parent.mkdir(parents=True)
    script.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin")

    def shown(program: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", [program, "mine-contexts"])
        return spelled("schemas.check"), typed("schemas.check", "a b")

    assert shown("my env/bin/phrasemill") == ("phrasemill check", "'my env/bin/phrasemill' check 'a b'")
    monkeypatch.chdir(Path(__file__).parent)
    assert shown(str(script)) == ("phrasemill check", f"'{script}' check 'a b'")
    monkeypatch.setenv("PATH", str(script.parent))
    assert shown(str(script)) == ("phrasemill check", "phrasemill check 'a b'")
    monkeypatch.setattr(sys, "executable", "/opt/bin/python3")
    assert shown("/opt/pipelines/status.py") == ("python -m schemas.check", "/opt/bin/python3 -m schemas.check 'a b'")


@pytest.fixture
def traps(tmp_path: Path) -> Path:
    """A folder that has modules of the names of ours, and an input."""
    for name in ("phrasemill", "pipelines", "schemas", "trainers", "transforms", "rich", "pyarrow"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('the {name} of this folder')\n")
    (tmp_path / "tale.txt").write_text(TEXT)
    return tmp_path


def in_folder(folder: Path, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [script.name, *arguments]
    environment = {**os.environ, "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_packages_in_the_current_folder_are_not_ours(traps):
    """Neither in the process of the script nor in its workers; and what is printed works when pasted."""
    script = BIN / "phrasemill"
    done = in_folder(traps, script, "extract-documents", "--input=tale.txt", "--output=out/d", "--units=1/1")
    assert done.returncode == 0, done.stderr
    for said in (done.stdout, in_folder(traps, script, "status", "out/d").stdout):
        finish = said.splitlines()[-1].partition("to finish: ")[2]
        assert finish == "phrasemill extract-documents --input tale.txt --output out/d --resume"
    finished = in_folder(traps, script, *shlex.split(finish)[1:])
    assert finished.stdout.splitlines()[-1] == "next: phrasemill parse-sentences --input out/d", finished.stderr
    checked = in_folder(traps, script, "check", "out/d")
    assert checked.stdout.startswith("out/d: ok: 1 Document row"), checked.stderr


def test_python_says_which_package_is_hidden(tmp_path):
    """Ours come last, as after any install."""
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/__init__.py").touch()
    program = f"import sys; sys.path.append({str(ROOT)!r}); import phrasemill; phrasemill.Dataset"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: phrasemill: {tmp_path}/schemas hides its package 'schemas'; "
        "start Python in another folder, or rename yours"
    )


def test_a_folder_of_the_name_of_ours_hides_nothing(tmp_path):
    """Such as a clone, beside which somebody starts Python."""
    for name in ("phrasemill", "schemas"):
        (tmp_path / name).mkdir()
    done = subprocess.run(
        [sys.executable, "-c", "import phrasemill; print(phrasemill.Dataset.__module__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("schemas.dataset\n", "")


@pytest.mark.heavy
def test_a_wheel_works_in_a_fresh_environment(traps, tmp_path_factory):
    """The wheel has all that a run needs. The libraries are those of this environment, without our editable install."""
    made = tmp_path_factory.mktemp("wheel")
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in files.split("\0"):
        if name and (ROOT / name).is_file():
            (made / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            (made / "source" / name).write_bytes((ROOT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--wheel-dir", made, made / "source"], check=True)
    (wheel,) = made.glob("*.whl")
    venv.create(made / "env", with_pip=False)
    python = made / "env/bin/python"
    install = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*install, "--no-deps", "--no-index", wheel], check=True)
    (site,) = (made / "env/lib").glob("python*/site-packages")
    ours = sysconfig.get_path("purelib")
    (site / "libraries.pth").write_text(f"{ours}\n")  # the .pth files there, such as our editable install, are not read

    script = made / "env/bin/phrasemill"
    assert in_folder(traps, script, "--version").stdout == "phrasemill 0.1.0\n"
    done = in_folder(
        traps, script, "mine-contexts", "--input=tale.txt", "--output=out/c", "--workers=2", "--min-frequency=1"
    )
    assert done.returncode == 0, done.stderr
    *_, next_line = done.stdout.splitlines()
    assert next_line == "next: phrasemill check out/c"
    _, *check = shlex.split(next_line.removeprefix("next: "))
    assert in_folder(traps, script, *check).stdout.startswith("out/c: ok: ")
    program = "import phrasemill; print(phrasemill.__file__, len(phrasemill.Dataset.open('c')) > 0)"
    python_said = subprocess.run([python, "-c", program], cwd=traps / "out", capture_output=True, text=True, check=True)
    assert python_said.stdout == f"{site}/phrasemill/__init__.py True\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, capsys):
    assert main(["completion", shell]) == 0
    made = capsys.readouterr().out
    assert {"mine-contexts", "check", "max-reject-rate", "FlinkRunner"} <= {*re.findall(r"[a-zA-Z][\w-]+", made)}
