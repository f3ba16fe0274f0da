"""The command line: whole runs, and the messages for wrong flags and inputs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from literal import run_here

from phrasemill.__main__ import ALL_TOOLS
from pipelines import mine_mentions
from pipelines.__main__ import commands, tools
from pipelines.cli import main, with_absolute_places
from pipelines.mine_contexts import COMMAND
from pipelines.options import shown_arguments
from schemas.errors import UserError
from schemas.options import Flags
from schemas.storage.folder import Folder
from transforms.sources.inputs import locate

TEXT = """The old miller lived near the old bridge. He had three sons and a grey cat.
The eldest son got the old mill, and the youngest son got the grey cat.
"What shall I do with a grey cat?" said the youngest son.

The grey cat wanted a pair of boots. The youngest son bought a pair of boots at the market.
The king lived in a castle behind the old mill, and the grey cat often walked there.
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipelines.mine_contexts", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def tale(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("input") / "tale.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def finished(tale: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    output = tmp_path_factory.mktemp("out") / "tale"
    return output, run(
        "--runner=DirectRunner", f"--input={tale}", f"--output={output}", "--workers=2", "--job_name=tale"
    )


def test_a_run_says_what_it_did_and_nothing_else(finished):
    output, done = finished
    assert done.returncode == 0, done.stderr
    # On a busy machine a slow stage prints further lines, "parse: 0/1 unit, ...".
    stages = [line.split(":")[0] for line in done.stderr.splitlines() if not re.match(r"\w+: \d+/", line)]
    assert stages == [
        *("extract", "find_duplicate_ids", "find_duplicates", "drop", "parse", "count", "add_up", "select"),
        *("choose", "keep", "cut", "order"),
    ], done.stderr
    for word in ("documents ", "sentences ", "phrases ", "contexts ", "filtered: ", "rejected: nothing", "[MASK]"):
        assert word in done.stdout
    assert done.stdout.endswith(f"-m schemas.check {output}\n")


def test_a_killed_run_leaves_no_worker_and_goes_on(tmp_path, capsys):
    many = tmp_path / "many"
    many.mkdir()
    for number in range(40):
        (many / f"tale{number}.txt").write_text(TEXT * 5)
    arguments = [f"--input={many}", f"--output={tmp_path}/out", "--shard-bytes=5000"]
    command = [sys.executable, "-m", "pipelines.mine_contexts", *arguments]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert started.stderr is not None
    for line in started.stderr:
        if line.startswith("drop:"):
            break
    done = tmp_path / "out-sentences/_work/parse/done"
    wait_for(lambda: done.is_dir())
    workers = psutil.Process(started.pid).children(recursive=True)
    assert workers
    started.kill()
    started.wait(timeout=60)
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive
    assert main(COMMAND, arguments) == 2
    assert "holds an unfinished run; --resume continues it" in capsys.readouterr().err
    run_here(COMMAND, *arguments, "--resume")
    assert "done before)" in capsys.readouterr().err


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_rows_are_the_triplets_of_the_paper(finished):
    output, _ = finished
    rows = pq.read_table(output / "data").to_pylist()
    phrases = {row["phrase"]: row["frequency"] for row in pq.read_table(f"{output}-phrases/data").to_pylist()}
    assert phrases["grey cat"] == 5
    assert phrases["old mill"] == 2
    assert phrases["youngest son"] == 3
    assert {row["phrase"] for row in rows} == set(phrases)
    for row in rows:
        assert row["context"][row["mask_start"] :].startswith("[MASK]")
        assert row["negative"] != row["context"]
        text = pq.read_table(f"{output}-documents/data").column("text")[0].as_py()
        assert text[row["start_char"] : row["end_char"]] == row["surface"]
        assert row["surface"].lower() == row["phrase"]


def test_what_fits_is_used_again(finished, tale, capsys):
    output, _ = finished
    assert main(COMMAND, [f"--input={tale}", f"--output={output}", "--overwrite", "--window=12"]) == 0
    done = capsys.readouterr()
    for name in ("documents", "sentences", "phrases"):
        assert f"{output}-{name}: is there already and fits" in done.out
    assert "parse:" not in done.err


def test_mining_goes_on_from_sentences(finished, tmp_path, capsys):
    output, _ = finished
    assert main(COMMAND, [f"--input={output}-sentences", f"--output={tmp_path}/again"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "again-phrases"]
    again, before = (pq.read_table(folder / "data") for folder in (tmp_path / "again", output))
    assert set(again.column("phrase").to_pylist()) == set(before.column("phrase").to_pylist())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--contexts-per-phrases=3"], "--contexts-per-phrases: no such flag; did you mean --contexts-per-phrase?"),
        (["--bogus=3"], "--bogus: no such flag; see --help"),
        (["a b.xml"], "'a b.xml': is no flag; to read it: --input 'a b.xml' (once for each input; quote a glob)"),
        ([""], "'': is no flag; see --help"),
        (["--workers=0"], "argument --workers: must be a whole number of 1 or more, not 0; see --help"),
        (["--window=1"], "--window: must be a whole number of 2 or more (a window of 1 token is only the mask), not 1"),
        (
            ["--window=wide"],
            "--window: must be a whole number of 2 or more (a window of 1 token is only the mask), not wide",
        ),
        (["--sample-documents=2"], "must be a number above 0 and at most 1, not 2; see --help"),
        (["--validation-rate=1"], "must be a number of 0 or more and below 1, not 1; see --help"),
        (["--job_name="], "--job_name: must not be empty; give it a value, or leave it out"),
        (["--job_name", " "], "--job_name: must not be empty; give it a value, or leave it out"),
        (["--save_main_session", ""], "--save_main_session: must not be empty; give it a value, or leave it out"),
        (
            ["--input=https://a.org/x.xml.bz2"],
            "; fetch the file first (curl -LO https://a.org/x.xml.bz2); addresses of",
        ),
        (["--output=https://a.org/x"], "https://a.org/x: cannot be opened (Unrecognized filesystem type in URI: "),
        (["--placement=left"], "argument --placement: invalid choice: 'left' (choose from "),
        (["--overwrite", "--resume"], "--overwrite and --resume exclude each other"),
        (["--labels=NP,SBAR"], "--labels: choose among NP, VP, PP, ADJP, ADVP, not NP,SBAR; see --help"),
        (["--parser-option=fast"], "--parser-option: must be NAME=VALUE, not fast; see --help"),
        (["--parser=spacy", "--model=nowhere"], "the parser spacy: "),
        (["--parser-option=fast=1"], "the parser phrasemill has no option 'fast'; it takes model, max_tokens, threads"),
        (["--max-sentence-tokens=511"], "max_tokens: must be a whole number of 1 to 510, not 511"),
        (["--model={tale}"], "{tale}: cannot be read as a network"),
        (["--parser=benepar", "--model=nowhere_en"], "the parser benepar"),
        (["--input={missing}"], "{missing}' does not exist"),
        (["--input={tale}", "--output=/proc/x/y"], "/proc/x/y: no file can be made in /proc; choose another --output"),
        (["--input={missing}", "--output={tale}/x"], "{tale}/x: a file is where a folder should be; move it away, or"),
        (["--input={tale}", "--output={full}"], "{full}: is not empty and holds no phrasemill dataset"),
        (["--input={tale}", "--input-format=parquet"], "parquet"),
    ],
)
def test_wrong_flags_and_inputs(arguments, message, tale, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    places = {"tale": tale, "missing": tmp_path / "missing.txt", "full": tmp_path / "full"}
    output = f"--output={tmp_path}/out"
    assert main(COMMAND, [output, *(each.format(**places) for each in arguments)]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert message.format(**places) in shown
    assert len(shown.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_no_option_takes_an_empty_value():
    every = [*(each.flags for each in commands()), *(Flags("", (each.options,)) for each in tools(ALL_TOOLS))]
    given = [
        (flags, each) for flags in every for of in flags.groups for each in flags.options(of) if not each.is_switch
    ]
    assert len({each.flag for _, each in given}) > 50
    for flags, each in given:
        for empty in ("", " ", "\t\n"):
            for arguments in [[empty]] if each.is_positional else [[each.flag, empty], [f"{each.flag}={empty}"]]:
                flag = "[A-Z]+" if each.is_positional else re.escape(each.flag)
                with pytest.raises(UserError, match=rf"^argument .*{flag}.*: must not be empty; see --help"):
                    flags.parse(arguments)


@pytest.mark.parametrize("opened", [Folder, locate], ids=["output", "input"])
def test_an_empty_path_is_not_the_current_folder(opened):
    with pytest.raises(UserError, match="an empty path: name a file or a folder"):
        assert opened("").path


OWN_STAGE = """
import sys
from dataclasses import dataclass, fields, replace

from pipelines import corpus
from pipelines.cli import Command, main
from pipelines.stages.extract import Extract


@dataclass(frozen=True)
class Own(Extract):
    pass


def build(source, options, output):
    made = corpus.documents(source, options, output)
    print("the module is", Own.__module__)
    stage, *others = made.build.stages
    own = Own(**{each.name: getattr(stage, each.name) for each in fields(stage)})
    return [corpus.built(replace(made.build, stages=(own, *others)))]


COMMAND = Command("own_stage", "Has a stage of its own.", "out", "text", (), build)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
"""


def test_other_processes_find_the_stages_of_a_commands_own_module(tale, tmp_path):
    (tmp_path / "own_stage.py").write_text(OWN_STAGE)
    (tmp_path / "sitecustomize.py").write_text(f"import pipelines\npipelines.__path__.append({str(tmp_path)!r})\n")
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.own_stage", f"--input={tale}", f"--output={tmp_path}/out", "--workers=1"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "the module is pipelines.own_stage\n" in done.stdout
    assert (tmp_path / "out/manifest.json").exists()


def test_workers_elsewhere_get_absolute_places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    typed, _ = mine_mentions.COMMAND.parse(["--input=a", "--input=s3://b/in", "--tables=t.gz", "--seed=3"])
    chosen, places = with_absolute_places(typed)
    assert places == [f"{tmp_path}/out/mention-pairs", f"{tmp_path}/a", "s3://b/in", f"{tmp_path}/t.gz"]
    shown = mine_mentions.COMMAND.line(*chosen).partition("mine_mentions ")[2].replace(str(tmp_path), "DIR")
    assert shown == "--input DIR/a --input s3://b/in --tables DIR/t.gz --seed 3 --output DIR/out/mention-pairs"
    assert mine_mentions.COMMAND.line(*typed).endswith("--input a --input s3://b/in --tables t.gz --seed 3")


def test_secrets_of_beams_flags_are_not_shown():
    given = ["--mask-token", "[M]", "--s3_secret_access_key", "S", "--s3_session_token=S"]
    shown = ["--mask-token", "[M]", "--s3_secret_access_key", "***", "--s3_session_token=***"]
    rest = ["--output=s3://b/y", "--azure_connection_string", "--job_name=a=b"]
    assert shown_arguments([*given, *rest]) == [*shown, *rest]


def test_the_list_of_commands():
    done = subprocess.run([sys.executable, "-m", "pipelines"], capture_output=True, text=True, timeout=60, check=True)
    lines = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert lines == [
        *(f"python -m pipelines.{each.module}" for each in commands()),
        "",
        *(f"python -m {each.module} {each.takes}".rstrip() for each in tools()),
    ]
    assert "python -m pipelines.mentions DIR ENTITY" in lines


@pytest.mark.parametrize("command", commands(), ids=lambda each: each.module)
def test_help_is_grouped_and_short(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(command, ["--help"])
    shown = capsys.readouterr().out
    assert stopped.value.code == 0
    assert shown.startswith(f"usage: python -m pipelines.{command.module} [--input PATH ...]")
    assert "output and run:" in shown
    assert "input:" in shown
    assert len(shown.splitlines()) < (90 if command.module != "paraphrase" else 135)  # it has the filters, too
