"""Recipes: a file to the commands that it stands for, and what is said of a wrong one."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.recipe import SHIPPED, RecipeOptions, find, lines, main, read
from schemas.errors import UserError
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder

ROOT = Path(__file__).resolve().parent.parent.parent

TOY = """\
about = "A toy (Nobody, 2000)"

[scales.tiny]
model = "org/small"

[scales.full]
model = "org/large"

[[steps]]
run = "extract-pairs --input {input} --output {output}/pairs"
full = "--min-score 2 --letters-only"

[[steps]]
run = "decontaminate --input {output}/pairs --evaluation {evaluation} --output {output}/clean"

[[steps]]
only = "full"
run = "label-pairs --input {output}/clean --output {output}/labelled --rows 20"

[[steps]]
run = \"\"\"contrast-pairs --contrasts 3 --input {output}/clean
    --output {output}/contrasts\"\"\"

[[steps]]
run = "evaluate {here}/model --data {evaluation} --output {here}/evaluation --against {model}"
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    place = tmp_path / "toy.toml"
    place.write_text(TOY)
    return place


def told(place: Path, beam_args: tuple[str, ...] = (), /, **chosen: object) -> list[str]:
    """The commands as texts, with what this run adds after a bar."""
    options = RecipeOptions(recipe=str(place), **chosen)  # type: ignore[arg-type]
    return [
        " ".join([each.module, *each.arguments, *(("|", *each.of_run) if each.of_run else ())])
        for each in lines(read(place), options, beam_args=beam_args)
    ]


@pytest.mark.parametrize(
    ("chosen", "beam_args", "expected"),
    [
        (
            {"input": ("a.gz", "b c.gz")},
            (),
            [
                "pipelines.extract_pairs --input a.gz --input b c.gz --output out/toy/pairs | --resume",
                "pipelines.contrast_pairs --contrasts 3 --input out/toy/pairs --output out/toy/contrasts | --resume",
            ],
        ),
        (
            {"input": ("a",), "evaluation": "my eval", "output": "o/", "model": "m", "workers": 3},
            (),
            [
                "pipelines.extract_pairs --input a --output o/pairs | --resume --workers 3",
                "pipelines.decontaminate --input o/pairs --evaluation my eval --output o/clean | --resume --workers 3",
                "pipelines.contrast_pairs --contrasts 3 --input o/clean --output o/contrasts | --resume --workers 3",
                "trainers.evaluate o/model --data my eval --output o/evaluation --against m",
            ],
        ),
        (
            {"input": ("a",), "scale": "full", "runner": "FlinkRunner", "output": "s3://b/o", "evaluation": "e"},
            ("--parallelism=4",),
            [
                f"{command} | --resume --runner FlinkRunner --parallelism=4"
                for command in (
                    "pipelines.extract_pairs --input a --output s3://b/o/pairs --min-score 2 --letters-only",
                    "pipelines.decontaminate --input s3://b/o/pairs --evaluation e --output s3://b/o/clean",
                    "pipelines.label_pairs --input s3://b/o/clean --output s3://b/o/labelled --rows 20",
                    "pipelines.contrast_pairs --contrasts 3 --input s3://b/o/clean --output s3://b/o/contrasts",
                )
            ]
            + ["trainers.evaluate out/toy/model --data e --output out/toy/evaluation --against org/large"],
        ),
    ],
    ids=["tiny", "evaluated", "full"],
)
def test_the_commands_of_a_recipe(toy, chosen, beam_args, expected):
    assert told(toy, beam_args, **chosen) == expected


def test_a_value_that_is_set(toy):
    chosen = {"input": ("a",), "evaluation": "e"}
    assert told(toy, set=("model=x=y",), **chosen)[-1].endswith("--against x=y")


def test_no_input_is_the_sample(toy):
    """The flag is left out; commands that have no sample say that it is missing."""
    toy.write_text(TOY.replace("extract-pairs", "mine-phrases").replace("full = ", "tiny = ").split("[[steps]]\n")[0])
    toy.write_text(toy.read_text() + '[[steps]]\nrun = "mine-phrases --input {input} --output {output}/p"\n')
    assert told(toy) == ["pipelines.mine_phrases --output out/toy/p | --resume"]
    toy.write_text(TOY)
    with pytest.raises(UserError, match=r"step 1: extract-pairs: the following arguments are required: --input"):
        told(toy)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("about =", "title =", "no key 'title'; there are about, scales, steps"),
        ('about = "A toy (Nobody, 2000)"', "", "has no 'about'"),
        ('about = "A toy (Nobody, 2000)"', "about = 7", "about: must be a text, not 7"),
        ('"org/small"', "3", "scales.tiny: model: must be a text, not 3"),
        ("[scales.full]", "[scales.full.deep]", "scales.full: deep: must be a text, not {'model': 'org/large'}"),
        ("run = ", "does = ", "step 1: no key 'does'; there are run, only, tiny, full"),
        ("full = ", "large = ", "step 1: no key 'large'; there are run, only, tiny, full"),
        ('only = "full"', 'only = "huge"', "step 3: only: no scale 'huge'; there are tiny, full"),
        ('only = "full"\nrun', 'only = "full"\ntiny', "step 3: has no 'run'"),
        ("extract-pairs", "extract-pears", "step 1: extract-pears: no such command; did you mean extract-pairs?"),
        ("extract-pairs", "", "step 1: --input: no such command"),
        ("contrast-pairs", "contrast-pairs --contrast 3", "--contrast: no such flag; did you mean --contrasts?"),
        ("evaluate {here}", "train baker {here}", "step 5: train: there are parser, entities, paraphraser, "),
        ("evaluate {here}", "evaluate --widow 3 {here}", "step 5: evaluate: --widow: no such flag; see --help"),
        ("--against {model}", "--against {base}", "step 5: {base} has no value here: give --set base=VALUE"),
        ("--against {model}", "--against {", "step 5: {: names are put in braces, such as {output}"),
        ("--against {model}", "--against 'x", "step 5: cannot be split into words: No closing quotation"),
        ("[scales.tiny]", "[scales.tiny", "cannot be read as a recipe: "),
    ],
)
def test_a_wrong_recipe(toy, old, new, message):
    assert old in TOY
    toy.write_text(TOY.replace(old, new, 1))
    with pytest.raises(UserError) as found:
        told(toy, input=("a",), evaluation="e")
    assert str(found.value).startswith(f"{toy}: ")
    assert message in str(found.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pearll"], "pearll: no such recipe; did you mean pearl?"),
        (["x"], f"x: no such recipe; there are {', '.join(SHIPPED)}, or give a .toml file"),
        (["no.toml"], "no.toml: cannot be read as a recipe: [Errno 2] No such file or directory: 'no.toml'"),
        ([], "the following arguments are required: RECIPE; see --help"),
        (["TOY", "--scale", "half"], "TOY: no scale 'half'; there are tiny, full"),
        (["TOY", "--set", "model"], "--set model: must be NAME=VALUE"),
        (["TOY", "--set", "encoder=x"], "TOY: no step takes a value 'encoder' that can be set"),
        (["TOY", "--set", "output=x"], "TOY: no step takes a value 'output' that can be set"),
        pytest.param(
            ["TOY", "--sclae", "full"],
            "--sclae: no such flag; did you mean --scale?",
            marks=pytest.mark.heavy,  # Beam's flags are looked up
        ),
    ],
)
def test_a_wrong_command_line(toy, arguments, message, capsys):
    assert main([each.replace("TOY", str(toy)) for each in arguments]) == 2
    assert capsys.readouterr().err == f"error: {message.replace('TOY', str(toy))}\n"


def test_a_dry_run_prints_what_can_be_pasted(toy, capsys):
    assert main([str(toy), "--dry-run", "--input", "my pairs.gz"]) == 0
    python = shlex.quote(shlex.split(capsys.readouterr().out.splitlines()[2])[0])
    assert main([str(toy), "--dry-run", "--input", "my pairs.gz"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "# A toy (Nobody, 2000), tiny",
        "# without --evaluation no model is evaluated, and nothing is decontaminated",
        f"{python} -m pipelines.extract_pairs --input 'my pairs.gz' --output out/toy/pairs --resume",
        f"{python} -m pipelines.contrast_pairs --contrasts 3 --input out/toy/pairs --output out/toy/contrasts --resume",
    ]


def test_a_command_that_fails_ends_the_recipe(tmp_path, capfd):
    place = tmp_path / "two.toml"
    place.write_text(
        'about = "Two"\n[scales.tiny]\n[[steps]]\nrun = "check {output}"\n[[steps]]\nrun = "status {output}"\n'
    )
    assert main([str(place), "--output", str(tmp_path / "nothing")]) == 2
    said = capfd.readouterr()
    assert "schemas.check" in said.out
    assert "pipelines.status" not in said.out
    *_, failed, again = said.err.splitlines()
    assert re.fullmatch(r"error: command 1 of 2 failed \(exit status 2\): \S+ -m schemas\.check \S+/nothing", failed)
    assert re.fullmatch(rf"to go on from here: \S+ -m pipelines\.recipe {place} --output \S+/nothing", again)


@pytest.mark.parametrize("scale", ["tiny", "full"])
@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_recipe_names_only_what_there_is(name, scale):
    """Each command's own flags parse the arguments of its step, so a renamed option is found here."""
    options = RecipeOptions(recipe=name, input=("in",), scale=scale, evaluation="eval", model="model")
    found = [*lines(read(find(name)), options)]
    modules = [each.module for each in found]
    assert (
        modules.index("pipelines.decontaminate") < modules.index("trainers.train") < modules.index("trainers.evaluate")
    )
    without = RecipeOptions(recipe=name, input=("in",), scale=scale, model="model")
    assert [each.module for each in lines(read(find(name)), without)] == [
        each.module for each in found if "eval" not in each.arguments
    ]


NOUNS = "boat port sea house road river field stone tree hill bridge garden".split()
PAIRS = "\n".join(f"large {each}\tbig {each}" for each in NOUNS)


@pytest.mark.heavy
def test_a_recipe_is_run_and_goes_on(toy, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    toy.write_text(TOY.partition('[[steps]]\nrun = "evaluate')[0])
    Path("pairs.tsv").write_text(PAIRS)
    Path("eval.txt").write_text("large boat\n")
    command = [str(toy), "--input", "pairs.tsv", "--output", "o", "--evaluation", "eval.txt"]
    assert main(command) == 0
    said = capfd.readouterr().out
    assert [each for each in said.splitlines() if each.startswith(("# 1", "# 2", "# 3"))] == [
        each for each in said.splitlines() if re.match(r"# \d of 3 done, \d+ s$", each)
    ]
    assert [read_manifest(Folder(f"o/{each}")).rows for each in ("pairs", "clean", "contrasts")] == [12, 11, 11]
    manifest = Path("o/contrasts/manifest.json").read_bytes()
    assert main(command) == 0
    assert capfd.readouterr().out.count("is there already and fits") == 3
    assert Path("o/contrasts/manifest.json").read_bytes() == manifest


@pytest.mark.heavy
def test_a_signal_goes_on_to_the_command(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("The old miller lived near the old bridge. " * 20_000)
    place = tmp_path / "one.toml"
    place.write_text(
        'about = "One"\n[scales.tiny]\n[[steps]]\nrun = "mine-phrases --input {input} --output {output}/p"\n'
    )
    command = [sys.executable, "-m", "pipelines.recipe", place, "--input", text, "--output", tmp_path / "o"]
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not [*tmp_path.glob("o/p-documents/manifest.json")] and time.monotonic() < until:
        time.sleep(0.2)
    run.send_signal(signal.SIGTERM)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 128 + signal.SIGTERM
    assert said.count("to go on from here: ") == 2  # of the command, too
    assert said.splitlines()[-1].startswith("to go on from here: ")
