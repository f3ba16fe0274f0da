"""`--units=I/N`: slices of a stage at the same time, as tasks of an array job, and the last call, which finishes it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy import poisoned_words, word_count

from pipelines import extract_documents, mine_contexts, parse_sentences, status
from pipelines.__main__ import commands
from pipelines.array_job import ended_line, run_slice
from pipelines.cli import main
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.driver import run
from pipelines.engine.executors import InlineExecutor
from pipelines.engine.lease import Lease, read_run, read_slices, refuse_second, run_file
from pipelines.engine.limits import LIMITS
from pipelines.engine.progress import Progress, RunFigures
from pipelines.engine.stage import WHOLE, Slice, close_stage, open_stage
from pipelines.engine.task_writer import do_unit
from pipelines.options import RunOptions
from schemas.errors import UserError
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from transforms.sources.sample import sample_inputs

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ("a b a", "c", "a d d", "e", "b c", "f a", "g")


# ---- The units of each slice


@pytest.mark.parametrize(
    ("part", "total", "units"),
    [
        ((1, 1), 3, [0, 1, 2]),
        ((1, 3), 7, [0, 3, 6]),
        ((2, 3), 7, [1, 4]),
        ((3, 3), 7, [2, 5]),
        ((3, 3), 2, []),
        ((1, 3), 0, []),
    ],
)
def test_the_units_of_a_slice(part, total, units):
    assert list(Slice(*part).units(total)) == units
    assert [unit for unit in range(total) if Slice(*part).has(unit)] == units


@given(of=st.integers(1, 50), total=st.integers(0, 500))
def test_the_slices_are_the_whole(of, total):
    parts = [list(Slice(number, of).units(total)) for number in range(1, of + 1)]
    assert sorted(unit for part in parts for unit in part) == list(range(total)) == list(WHOLE.units(total))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(
    ("figures", "line"),
    [
        (
            (5, 0, 12, 13),
            "slice 2/3 of parse: 5 units done; 12 of 13 in all; to finish, when no slice is at work any more",
        ),
        ((1, 4, 13, 13), "slice 2/3 of parse: 1 unit done (4 before); 13 of 13 in all; to finish"),
        ((0, 5, 1200, 1300), "slice 2/3 of parse: 0 units done (5 before); 1,200 of 1,300 in all; to finish, when no"),
    ],
)
def test_what_a_slice_says_at_its_end(figures, line):
    said = ended_line(Slice(2, 3), "parse", *figures, "python -m this --resume")
    assert said.startswith(line)
    assert said.endswith(": python -m this --resume")


# ---- Options


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(
            (
                [f"--units={text}"],
                f"argument --units: must be I/N with I from 1 to N, such as 3/64, not {text}; see --help",
            )
            for text in ("0/4", "5/4", "x", "1", "1/0", "0/0", "-1/4", "1/4/2", "1.0/4", " 1/4", "1/x")
        ),
        (["--units="], "argument --units: must not be empty; see --help"),
        (["--units=1/4", "--overwrite"], "--overwrite and --units exclude each other, .*; delete .*out first"),
        (["--units=1/4", "--plan"], "--plan and --units exclude each other"),
        (["--units=1/4", "--runner=FlinkRunner"], "--runner FlinkRunner and --units exclude each other"),
        (["--units=1/4", "--job_name=x"], "--job_name=x: --units takes no flags of Beam"),
        (["--units=1/4", "--job_nam=x"], "--job_nam: no such flag; did you mean --job_name?"),
    ],
)
def test_options_that_do_not_fit(arguments, message, tmp_path, capsys):
    assert main(extract_documents.COMMAND, [f"--output={tmp_path}/out", *arguments]) == 2
    shown = capsys.readouterr().err
    assert re.match(f"error: {message}", shown)
    assert len(shown.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_the_line_that_goes_on():
    """Options in the order in which users type them: the input first, of the run last, then Beam's, no secrets."""
    given = ["--units=3/4", "--output=x/docs", "--resume", "--dedup=off", "--sample-documents=0.5", "--input=a b"]
    chosen, _ = extract_documents.COMMAND.parse([*given, "--input", "c", "--max-documents", "7", "--workers=3"])
    assert extract_documents.COMMAND.line(*chosen).partition(" -m ")[2] == (
        "pipelines.extract_documents --input 'a b' --input c --max-documents 7 --sample-documents 0.5 "
        "--output x/docs --workers 3 --units 3/4 --resume"
    )
    run = replace(chosen[RunOptions], units=None, output="out/documents", resume=False)
    shown = extract_documents.COMMAND.line(
        run, beam_args=["--job_name=x", "--s3_session_token=S", "--s3_secret_key", "S"]
    )
    assert shown.partition(" -m ")[2] == (
        "pipelines.extract_documents --workers 3 --job_name=x '--s3_session_token=***' --s3_secret_key '***'"
    )


# ---- Slices of a toy's first stage, in this process


def do_slice(build: DatasetBuild, text: str, **changes: object) -> str:
    number, of = map(int, text.split("/"))
    return run_slice(
        build,
        Slice(number, of),
        **{"workers": 1, "limits": LIMITS, "max_reject_rate": 1.0, "command": "again", "finish": "finish"} | changes,  # type: ignore[arg-type]
    )


def finish(build: DatasetBuild) -> None:
    assert build.check(resume=True, overwrite=False, reuse=False)
    build.begin(resume=True)
    run([build], InlineExecutor(), progress=Progress(io.StringIO()))


def shards(output: Path) -> dict[str, str]:
    found = [*output.glob("data/*.parquet"), *output.glob("rejects/*.pq")]
    return {str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(found)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The toy's shards, made by one run."""
    output = tmp_path_factory.mktemp("whole") / "words"
    finish(word_count(output, TEXTS))
    return shards(output)


@pytest.mark.parametrize(
    ("slices", "done"),
    [
        (["3/3", "1/3"], 5),  # one never ran
        (["1/4", "2/5", "9/9"], 4),  # numbers of slices that do not fit: units 0, 4; 1, 6; none
    ],
)
def test_slices_and_the_last_call_make_what_a_whole_run_makes(tmp_path, whole, slices, done):
    build = word_count(tmp_path / "words", TEXTS)
    for text in slices:
        said = do_slice(build, text)
    assert f"; {done} of 7 in all; to finish" in said
    finish(build)
    assert shards(tmp_path / "words") == whole
    assert not (tmp_path / "words/_work").exists()
    before = files(tmp_path)
    assert do_slice(build, "1/3") == f"{tmp_path}/words: is finished already: nothing to do"
    with pytest.raises(UserError, match=r"made from other inputs or with other settings \(.*\); choose another"):
        do_slice(word_count(tmp_path / "words", ("other",)), "1/3")
    assert files(tmp_path) == before


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_slice_goes_on_where_it_stopped(tmp_path, capsys):
    failing = word_count(tmp_path / "words", TEXTS, fail_always=True)
    with pytest.raises(Exception, match="it always fails"):
        do_slice(failing, "1/3")
    assert "to go on from here: again\n" in capsys.readouterr().err
    build = word_count(tmp_path / "words", TEXTS)
    do_unit(build.work, build.stages[0], 3)
    assert do_slice(build, "1/3").startswith("slice 1/3 of count: 2 units done (1 before); 3 of 7 in all")
    assert do_slice(build, "1/3").startswith("slice 1/3 of count: 0 units done (3 before); 3 of 7 in all")
    assert read_run(build.output, Slice(1, 3))["state"] == "done"


def test_a_stage_that_is_closed_is_left_alone(tmp_path):
    build = word_count(tmp_path / "words", TEXTS)
    do_slice(build, "1/1")
    close_stage(build.work, build.stages[0])
    before = files(tmp_path)
    assert do_slice(build, "2/3") == f"{tmp_path}/words: count is done already: nothing to do; to finish: finish"
    assert files(tmp_path) == before


def test_a_slice_has_to_do_with_its_own_records_only(tmp_path):
    build = word_count(tmp_path / "words", TEXTS)
    do_slice(build, "1/1")
    stage = build.stages[0]
    damaged = tmp_path / "words/_work/count/done/000001.json"
    damaged.write_text("{")
    assert open_stage(build.work, stage, Slice(1, 2)) == []
    assert damaged.exists()
    assert open_stage(build.work, stage, Slice(2, 2)) == [1]
    assert not damaged.exists()


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (
            "other settings",
            r"holds an unfinished run with other settings \(texts: .* -> .*\); give the same settings, choose",
        ),
        ("files", "is not empty and holds no phrasemill dataset"),
    ],
)
def test_what_is_in_the_way_is_refused_and_left_alone(tmp_path, there, message):
    output = tmp_path / "words"
    if there == "files":
        output.mkdir()
        (output / "notes.txt").write_text("mine")
    else:
        do_slice(word_count(output, ("other",)), "2/2")  # it has no unit: even without progress
    before = files(tmp_path)
    with pytest.raises(UserError, match=message):
        do_slice(word_count(output, TEXTS), "1/2")
    assert files(tmp_path) == before


def test_faults_and_rejects_of_a_slice_are_in_the_dataset(tmp_path):
    build = poisoned_words(tmp_path / "words", ("a b", f"c DIE:{tmp_path / 'mark'} d BAD", "e", "f"))
    assert do_slice(build, "2/2").startswith("slice 2/2 of words: 2 units done; 2 of 4")
    finish(build)
    manifest = read_manifest(build.output)
    assert manifest.stage("words").ledger.rejected == {"bad_record": 1}
    assert [(each.unit, each.reason) for each in manifest.run["faults"]] == [(1, "worker_died")]


def test_too_many_rejects_end_a_slice(tmp_path):
    """Its own rejects among what it reads itself; those of other slices do not count."""
    build = poisoned_words(tmp_path / "words", ("good " * 100, "good BAD BAD " * 5) * 10)
    with pytest.raises(UserError, match=r"more than --max-reject-rate=0\.01"):
        do_slice(build, "2/2", max_reject_rate=0.01)


# ---- Leases


def mark(part: str | None, **changes: object) -> dict[str, object]:
    """The lease of a run on another machine, written a moment ago."""
    lease = Lease([], command="go", figures=dict, part=part and Slice(*map(int, part.split("/"))))  # type: ignore[arg-type]
    others = {"run": "other", "host": "elsewhere", "state": "running", "beat": time.time(), "finish": "finish"}
    return {**lease._mark, **others, **RunFigures().to_json(), **changes}


def leave(folder: Folder, part: str | None, **changes: object) -> None:
    name = run_file(part and Slice(*map(int, part.split("/"))))  # type: ignore[arg-type]
    folder.write(name, json.dumps(mark(part, **changes)).encode())


GONE = {"beat": time.time() - 3600}


@pytest.mark.parametrize(
    ("marks", "asks", "refused"),
    [
        ([(None, {})], "1/3", r"words: is being written by process \d+ of .* on elsewhere since .*wait for it"),
        ([(None, GONE)], "1/3", ""),
        ([("1/3", {})], "1/3", r"words: slice 1/3 of its units is being done by process \d+ of .* on elsewhere since"),
        ([("1/3", GONE)], "1/3", ""),
        ([("1/3", {"state": "done"})], "1/3", ""),
        ([("2/3", {})], "1/3", ""),
        ([("1/4", {})], "1/3", ""),
        (
            [("2/3", {})],
            None,
            r"words: slice 2/3 of its units is being done by .*; wait for it, or end it; .*python -m",
        ),
        ([("2/3", GONE), ("3/3", {"state": "stopped"})], None, ""),
        (
            [("1/3", {}), ("2/3", {}), ("10/64", {}), ("3/3", GONE)],
            None,
            r"words: slice 1/3 .*, and 2 more are at work; wait for them",
        ),
    ],
)
def test_who_is_refused_while_others_are_at_work(tmp_path, marks, asks, refused):
    folder = Folder(str(tmp_path / "words"))
    for part, changes in marks:
        leave(folder, part, **changes)
    part = asks and Slice(*map(int, asks.split("/")))
    if not refused:
        refuse_second(folder, part)
        return
    with pytest.raises(UserError, match=refused):
        refuse_second(folder, part)
    before = read_run(folder, part)
    with pytest.raises(UserError, match=refused), Lease([folder], command="", figures=dict, part=part):
        pass
    assert read_run(folder, part) == before  # a run that is refused leaves no trace


def test_a_slice_ends_when_its_place_is_taken_or_the_dataset_finished(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.engine.lease._EVERY_LOCAL", 0.05)
    taken, finished = Folder(str(tmp_path / "taken")), Folder(str(tmp_path / "finished"))
    for folder, what in (
        (taken, "another run took it: slice 1/2 of its units is being done by process"),
        (finished, "finished: another run has finished it; this one ends"),
    ):
        with Lease([folder], command="", figures=dict, part=Slice(1, 2)) as lease:
            if folder is taken:
                leave(folder, "1/2")
            else:
                (tmp_path / "finished" / run_file(Slice(1, 2))).unlink()
                (tmp_path / "finished/manifest.json").write_text("{}")
            deadline = time.monotonic() + 10
            while lease.lost is None and time.monotonic() < deadline:
                time.sleep(0.02)
        assert what in str(lease.lost)
    assert list(read_slices(taken)) == [Slice(1, 2)]


def test_status_of_slices(tmp_path, capsys):
    build = word_count(tmp_path / "words", TEXTS)
    do_slice(build, "3/3")
    figures = read_run(build.output, Slice(3, 3))
    at_work = {"stages": figures["stages"], "started": time.time() - 20}
    leave(build.output, "2/3", **at_work)
    leave(build.output, "1/3", state="failed: no memory", command="python -m this --units=1/3")
    assert status.main([str(build.output)]) == 0
    assert re.fullmatch(
        r""".*/words: 1 slice is at work, 1 ended well, 2 of 7 units of count are done
  slice 2/3  process \d+ on elsewhere  100 %  2/2 units .*
  slice 1/3, process \d+ on elsewhere, failed: no memory
    to go on: python -m this --units=1/3
to finish, when no slice is at work any more: finish
""",
        capsys.readouterr().out,
    )
    assert status.main([str(build.output), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["alive"], found["stage"], found["units"], found["done"]) == (True, "count", 7, 2)
    assert [(each["slice"], each["alive"]) for each in found["slices"]] == [
        ([1, 3], False),
        ([2, 3], True),
        ([3, 3], False),
    ]
    leave(build.output, "2/3", **at_work, **GONE)
    assert status.main([str(build.output)]) == 1
    shown = capsys.readouterr().out
    assert "0 slices are at work, 1 ended well" in shown
    assert "on elsewhere, ended unexpectedly\n" in shown
    assert shown.endswith("to finish: finish\n")
    # Once the last call has begun, its lease counts.
    leave(build.output, None, started=time.time() + 1)
    assert status.main([str(build.output)]) == 0
    assert "words: is being written by process" in capsys.readouterr().out


# ---- The commands


def command(module: str, source: Path, output: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", f"pipelines.{module}", f"--input={source}", f"--output={output}", *more]


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, error = process.communicate(timeout=300)
    return process.returncode, out, error


def start(arguments: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_for(condition: Callable[[], object], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="module")
def chapters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The beginnings of chapters of the shipped sample, a file for each."""
    folder = tmp_path_factory.mktemp("chapters")
    (sample,) = [path for path in sample_inputs() if "books" in path.name]
    with tarfile.open(sample) as archive:
        for number, member in enumerate(each for each in archive if each.isfile()):
            text = archive.extractfile(member).read()[:5000]  # type: ignore[union-attr]
            (folder / f"{number}.txt").write_bytes(text[: text.rindex(b".") + 1])
    return folder


@pytest.mark.heavy
def test_the_errors_lead_to_the_slice(chapters, tmp_path, capsys):
    """Errors name each missing dataset and the command that makes it; after those commands the slice works."""
    arguments = [
        f"--output={tmp_path}/new/c",
        "--max-documents=1",
        "--max-phrase-tokens=3",
        "--workers=1",
        "--units=1/1",
    ]
    arguments.append(f"--input={chapters}")
    made = []
    while main(mine_contexts.COMMAND, arguments) != 0:
        shown = capsys.readouterr().err
        named = re.search(
            r"^error: (.*): is not there yet, and --units needs it finished; make it first, whole or in slices of its "
            r"own: .* -m pipelines\.(\S+) (--.*)$",
            shown,
            re.M,
        )
        assert named, shown
        made.append((named[2], named[3].replace(str(tmp_path), "").replace(str(chapters), "IN")))
        maker = {each.module: each for each in commands()}[named[2]]
        assert main(maker, [*shlex.split(named[3]), "--workers=1"]) == 0
        assert (Path(named[1]) / "manifest.json").exists()
        capsys.readouterr()
    assert made == [
        ("extract_documents", "--input IN --max-documents 1 --output /new/c-documents"),
        ("parse_sentences", "--input /new/c-documents --output /new/c-sentences"),
        ("count_phrases", "--input /new/c-sentences --max-phrase-tokens 3 --output /new/c-phrases"),
    ]
    assert capsys.readouterr().out.startswith("slice 1/1 of choose: 1 unit done; 1 of 1 in all; to finish: ")


def test_what_is_missing_may_be_unfinished_or_another(chapters, tmp_path, capsys):
    documents = tmp_path / "c-documents"
    given = [f"--input={chapters}", "--shard-bytes=500"]
    assert main(extract_documents.COMMAND, [*given, f"--output={documents}", "--units=1/3", "--workers=1"]) == 0
    sentences = [f"--output={tmp_path}/c", "--units=1/2"]  # its documents: c-documents
    assert main(parse_sentences.COMMAND, [*given, *sentences]) == 2
    assert re.search(
        rf"needs it finished; finish it first: .*-m pipelines.extract_documents --input {chapters} --shard-bytes 500 "
        rf"--output {tmp_path}/c-documents --resume\n",
        capsys.readouterr().err,
    )
    other = [f"--input={chapters}", "--shard-bytes=700"]
    assert main(extract_documents.COMMAND, [*given, f"--output={documents}", "--resume", "--workers=1"]) == 0
    capsys.readouterr()
    assert main(parse_sentences.COMMAND, [*other, *sentences]) == 2
    assert re.search(
        r"c-documents: holds a dataset made from other inputs or with other settings \(shard_bytes: .* -> 700\); "
        r"choose another --output, or make it again: .*extract_documents --input .* --shard-bytes 700 --output "
        r".*/c-documents --overwrite\n",
        capsys.readouterr().err,
    )


def test_slices_of_a_command_at_once(chapters, tmp_path, capsys):
    """All slices start at the same time, on an output that does not exist."""
    more = ("--shard-bytes=500", "--workers=1")
    assert len(list(chapters.iterdir())) >= 3
    started = [
        start(command("extract_documents", chapters, tmp_path / "docs", *more, f"--units={number}/2"))
        for number in (1, 2)
    ]
    for number, process in enumerate(started, start=1):
        code, out, error = ended(process)
        assert code == 0, error
        assert re.search(
            rf"^slice {number}/2 of extract: \d+ units? done; \d+ of \d+ in all; to finish.*: .* --resume$", out, re.M
        )
    last = out.strip().rpartition(": ")[2]
    assert "--units" not in last
    assert main(extract_documents.COMMAND, shlex.split(last.partition(" -m pipelines.extract_documents ")[2])) == 0
    assert re.search(r"^extract: (\d+) units \(\1 done before\)", capsys.readouterr().err, re.M)
    assert main(extract_documents.COMMAND, [f"--input={chapters}", f"--output={tmp_path}/whole", *more]) == 0
    assert shards(tmp_path / "docs") == shards(tmp_path / "whole")
    assert (
        main(extract_documents.COMMAND, [f"--input={chapters}", f"--output={tmp_path}/docs", *more, "--units=2/2"]) == 0
    )


@pytest.mark.heavy  # loads the parser in twelve processes
def test_slices_that_are_killed_stopped_doubled_or_never_run(chapters, tmp_path):
    """The expensive stage in four slices. Whatever happens to them, the last call makes the same dataset."""
    documents, output = tmp_path / "docs", tmp_path / "sentences"
    assert main(extract_documents.COMMAND, [f"--input={chapters}", f"--output={documents}", "--shard-bytes=500"]) == 0
    units = len(list((documents / "data").iterdir()))
    assert units >= 8
    done = output / "_work/parse/done"

    def slice_of(number: int) -> list[str]:
        return command("parse_sentences", documents, output, f"--units={number}/4", "--workers=1")

    def finished(number: int) -> list[int]:
        return [unit for unit in Slice(number, 4).units(units) if (done / f"{unit:06d}.json").exists()]

    first, again, killed, stopped = started = [start(slice_of(number)) for number in (1, 1, 2, 3)]
    try:
        kill = {2: (killed, signal.SIGKILL), 3: (stopped, signal.SIGSTOP)}
        while kill:
            assert all(process.poll() is None for process, _ in kill.values())
            for number in [each for each in kill if finished(each)]:
                process, with_signal = kill.pop(number)
                os.killpg(process.pid, with_signal)
            time.sleep(0.01)
        code, _, error = ended(start(command("parse_sentences", documents, output, "--resume")))
        assert code == 2
        assert re.search(r"sentences: slice \d/4 of its units is being done by process \d+ of ", error)
        shown = subprocess.run([sys.executable, "-m", "pipelines.status", output], capture_output=True, text=True)
        assert re.search(rf"at work, \d ended well, \d of {units} units of parse are done\n  slice \d/4 ", shown.stdout)
        stopped.terminate()
        os.killpg(stopped.pid, signal.SIGCONT)
        code, _, error = ended(stopped)
        assert (code, len(finished(3)) < len(Slice(3, 4).units(units))) == (143, True)
        (on,) = re.findall(r"^to go on from here: (.*)$", error, re.M)
        assert on.endswith("--workers 1 --units 3/4")
        codes = [ended(each)[0] for each in (first, again)]
        assert sorted(codes) in ([0, 2], [0, 0])  # both did all, or one saw the other
    finally:
        for each in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()
    code, out, error = ended(start(shlex.split(on)))
    assert code == 0, error
    assert re.search(rf"^slice 3/4 of parse: \d units? done \(\d before\); \d+ of {units} in all; to", out, re.M)
    assert finished(4) == []
    (last,) = re.findall(r"to finish, when .*?: (.*)$", out, re.M)
    before = sum(len(finished(number)) for number in (1, 2, 3))
    code, out, error = ended(start(shlex.split(last)))
    assert code == 0, error
    assert f"parse: {units} units ({before} done before)" in error
    assert main(parse_sentences.COMMAND, [f"--input={documents}", f"--output={tmp_path}/whole"]) == 0
    assert shards(output) == shards(tmp_path / "whole")
    assert not (output / "_work").exists()
    code, out, error = ended(start(slice_of(2)))
    assert (code, out) == (0, f"{output}: is finished already: nothing to do\n")
