"""`python -m pipelines.rejects` on finished datasets, and on runs that are at work or were stopped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import ClassVar

import pytest
from literal import run_inline
from toy import WORDS, PoisonedWords, Text, poisoned_words

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.stage import open_stage
from pipelines.engine.task_writer import TaskWriter, do_unit
from pipelines.rejects import main
from schemas.commands import typed
from schemas.manifest import Input, read_manifest
from schemas.storage.folder import Folder

TEXTS = ("a b BAD c", "BAD d", "BAD BAD")


class Faulty(PoisonedWords):
    """Also has an excerpt with control characters of a terminal, a second reason, and filtered numbers."""

    name: ClassVar[str] = "words"

    def process(self, unit: Text, write: TaskWriter) -> None:
        words = unit.words.split()
        plain = [word for word in words if not word.isdigit() and word != "CUT"]
        super().process(Text(" ".join(plain)), write)
        for word in words:
            if word == "CUT":
                where = {"source": "toy.txt", "position": "byte 7", "exception": "EOFError: it ends"}
                write.reject("truncated", excerpt="\x1b[31mred\nline", **where)
                write.ledger.read += 1
            elif word.isdigit():
                write.ledger.filtered["number"] += 1
                write.ledger.read += 1


def faulty(path: Path, *texts: str, made_from: Path | None = None) -> DatasetBuild:
    inputs = ()
    if made_from:
        inputs = (Input("dataset", "before", str(made_from), read_manifest(Folder(str(made_from))).fingerprint),)
    return DatasetBuild(Folder(str(path)), WORDS, (Faulty(texts=texts),), inputs, {})


def test_a_finished_dataset(tmp_path, capsys):
    run_inline(faulty(tmp_path / "toy", "a 1 2 CUT", "BAD b 3", "BAD c BAD"))
    assert main([str(tmp_path / "toy"), "--examples=2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/toy: finished",
        "",
        "stage  rejected    count   share  meaning",
        "words  bad_record      3  30.0 %  a line, row or file of another format, or without a text in --text-column",
        "words  truncated       1  10.0 %  input that ends in the middle of a record or of a compressed stream",
        "",
        "stage  filtered  count   share  meaning",
        "words  number        3  30.0 %  a constituent or mention of numbers only (--keep-numbers)",
        "",
        "bad_record in words, 2 of 3:",
        "  toy, word 0",
        "  toy, word 0",
        "",
        "truncated in words, 1 of 1:",
        "  toy.txt, byte 7",
        r"      \x1b[31mred line",
        "      EOFError: it ends",
    ]


def test_nothing_rejected(tmp_path, capsys):
    run_inline(faulty(tmp_path / "toy", "a b"))
    assert main([str(tmp_path / "toy")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/toy: finished",
        "",
        "rejected: nothing",
        "",
        "filtered: nothing",
    ]


def unfinished(path: Path) -> DatasetBuild:
    """A run of three units, of which the second is not done, and the first was done twice."""
    build = poisoned_words(path, TEXTS)
    build.begin(resume=False)
    (stage,) = build.stages
    assert open_stage(build.work, stage) == [0, 1, 2]
    for unit in (0, 0, 2):
        do_unit(build.work, stage, unit)
    return build


def test_an_unfinished_run(tmp_path, capsys):
    """Each unit that is done counts once."""
    unfinished(tmp_path / "toy")
    assert main([str(tmp_path / "toy")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{tmp_path}/toy: unfinished; of the units that are done"
    assert lines[3].split()[:4] == ["words", "bad_record", "3", "50.0"]
    assert lines[-4:] == ["bad_record in words, 3 of 3:", "  toy, word 2", "  toy, word 0", "  toy, word 1"]


def test_a_run_that_has_done_nothing_yet(tmp_path, capsys):
    poisoned_words(tmp_path / "toy", TEXTS).begin(resume=False)
    assert main([str(tmp_path / "toy")]) == 0
    assert "rejected: nothing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "rejected", "filtered"),
    [
        ([], {"bad_record": 1, "truncated": 1}, {"number": 1}),
        (["--reason=truncated"], {"truncated": 1}, {}),
        (["--reason=parser_error"], {}, {}),
        (["--stage=words"], {"bad_record": 1, "truncated": 1}, {"number": 1}),
        (["--stage=words", "--reason=bad_record"], {"bad_record": 1}, {}),
    ],
)
def test_for_machines(flags, rejected, filtered, tmp_path, capsys):
    run_inline(faulty(tmp_path / "toy", "a 1 CUT BAD"))
    assert main([str(tmp_path / "toy"), "--json", *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["dataset"] == str(tmp_path / "toy")
    assert found["finished"]
    assert {each["reason"]: each["number"] for each in found["rejected"]} == rejected
    assert {each["reason"]: each["number"] for each in found["filtered"]} == filtered
    assert all((each["stage"], each["read"], each["counts"]) == ("words", 4, "words") for each in found["rejected"])
    for each in found["rejected"]:
        assert [example["reason"] for example in each["examples"]] == [each["reason"]]


def test_no_examples(tmp_path, capsys):
    run_inline(faulty(tmp_path / "toy", "BAD"))
    assert main([str(tmp_path / "toy"), "--examples=0"]) == 0
    assert "toy, word" not in capsys.readouterr().out


def test_the_datasets_before_are_named_where_they_have_rejects(tmp_path, capsys):
    for number, text in enumerate(("BAD BAD a", "a", "b")):
        before = tmp_path / str(number - 1) if number else None
        run_inline(faulty(tmp_path / str(number), text, made_from=before))
    assert main([str(tmp_path / "2")]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "rejects of the datasets that it was made from:",
        f"          2  {typed('pipelines.rejects', tmp_path / '0')}",
    ]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["{empty}"], "{empty}: neither a dataset nor an unfinished run; give the --output of a run"),
        (["{empty}/nothing"], "{empty}/nothing: neither a dataset nor an unfinished run; give the --output of a run"),
        (["{toy}", "--reason=truncate"], "--reason truncate: there is no such reason; did you mean truncated?"),
        (["{toy}", "--stage=xyz"], "--stage xyz: there is no such stage; there are words"),
        (["{cut}"], "{cut}/_work/build.json: was cut short or changed"),
    ],
)
def test_what_is_wrong_is_one_line(flags, message, tmp_path, capsys):
    places = {name: tmp_path / name for name in ("empty", "toy", "cut")}
    places["empty"].mkdir()
    run_inline(faulty(places["toy"], "a BAD"))
    unfinished(places["cut"])
    (places["cut"] / "_work/build.json").write_text("{")
    assert main([each.format(**places) for each in flags]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 1
    assert shown[0].startswith("error: " + message.format(**places))


def test_files_that_vanish_while_they_are_read(tmp_path, capsys):
    """As if the run finished at that moment."""
    build = unfinished(tmp_path / "toy")
    shutil.rmtree(Path(build.output.path) / "_work/words/files")
    assert main([str(tmp_path / "toy")]) == 2
    assert "changed while it was read" in capsys.readouterr().err
