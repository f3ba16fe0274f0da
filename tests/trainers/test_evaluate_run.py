"""Evaluating: which tasks run, what is kept, what is compared, and what is said of what is missing."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest

from schemas.errors import UserError
from trainers.evaluate import main
from trainers.evaluation.files import lines_of, malformed
from trainers.evaluation.measures import mean_of
from trainers.evaluation.models.options import ModelOptions
from trainers.evaluation.models.registry import find_model
from trainers.evaluation.options import Evaluation
from trainers.evaluation.results import MadeFrom, Results, TaskResult
from trainers.evaluation.run import evaluate
from trainers.evaluation.table import as_text
from trainers.evaluation.task import Measure, Outcome, Task

QUESTIONS = """\
red bird | redbird | horse
sea horse | seahorse | bird
fire fly | firefly | sea
blue bell | bluebell | red
"""


def questions(model, setting, name):
    path = setting.data / name
    rows = [line.split(" | ") for _, line in lines_of(path)]
    for number, row in enumerate(rows, 1):
        if len(row) != 3:
            raise malformed(path, number, "bigram with two words")
    vectors = model.encode([text for row in rows for text in row]).reshape(len(rows), 3, -1)
    scores = np.einsum("nd,ncd->nc", vectors[:, 0], vectors[:, 1:])
    return {"item": np.array([" | ".join(row) for row in rows], object), "right": scores[:, 0] > scores[:, 1]}


def choose(model, setting):
    found = questions(model, setting, "choose/questions.txt")
    return Outcome([found], {"questions": len(found["item"])}, ["4 of 10 questions"])


def parts(model, setting):
    """Three questions of four, by seed."""
    found = questions(model, setting, "parts.txt")
    kept = [np.sort(np.random.default_rng(seed).permutation(4)[:3]) for seed in setting.seeds]
    return Outcome([{name: column[rows] for name, column in found.items()} for rows in kept], {"questions": 4})


ACCURACY = (Measure("accuracy", mean_of("right")),)
TASKS = {
    each.name: each
    for each in (
        Task("choose", "Choose", ("choose/*.txt",), "which word is nearer", ACCURACY, choose),
        Task("parts", "Parts", ("parts.txt",), "the same for a part", ACCURACY, parts, seeded=True),
        Task("turney", "Turney", ("turney/turney.txt",), "not here", ACCURACY, choose),
    )
}


class Said(list):
    """The lines that stay on the terminal."""

    def doing(self, words):
        pass

    def done(self, words):
        self.append(words)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "eval"
    (folder / "choose").mkdir(parents=True)
    (folder / "choose/questions.txt").write_text(QUESTIONS)
    (folder / "parts.txt").write_text(QUESTIONS)
    return folder


def run(model, data, output, *, said=None, tasks=TASKS, **options):
    chosen = Evaluation(model, data=data, output=output, seeds=(0, 1, 2), draws=50, **options)
    return evaluate(chosen, lambda name, own: find_model(name, ModelOptions()), Said() if said is None else said, tasks)


def written(output):
    return {path.relative_to(output).as_posix(): path.read_bytes() for path in output.rglob("*") if path.is_file()}


def titles(said):
    return [each.split(":")[0] + (" again" if "finished before" in each else "") for each in said]


def test_all_tasks_whose_files_are_there(data, tmp_path):
    report = run("characters", data, tmp_path / "out")
    assert [(row.task.name, row.spread.by_seed, row.read) for row in report.rows] == [
        ("choose", (100.0,), {"questions": 4}),
        ("parts", (100.0, 100.0, 100.0), {"questions": 4}),
    ]
    assert report.missing == {"turney": "turney/turney.txt missing"}
    assert {*written(tmp_path / "out")} == {"items/choose.parquet", "items/parts.parquet", "results.json", "results.md"}
    assert "Choose [1]" in (tmp_path / "out/results.md").read_text()
    tasks = json.loads((tmp_path / "out/results.json").read_text())["tasks"]
    assert (tasks["choose"]["comparable"], tasks["parts"]["comparable"]) == (False, True)


def test_items_are_kept(data, tmp_path):
    run("characters", data, tmp_path / "out")
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "out/items/parts.parquet")
    assert table.column_names == ["seed", "item", "right"]
    assert table["seed"].to_pylist() == [0] * 3 + [1] * 3 + [2] * 3
    back = Results(tmp_path / "out").read("choose")
    assert back.outcome.items[0]["item"].tolist() == QUESTIONS.splitlines()
    assert back.outcome.items[0]["right"].tolist() == [True] * 4
    assert back.outcome.remarks == ("4 of 10 questions",)


def test_an_interrupted_run_goes_on_to_the_same_bytes(data, tmp_path):
    def interrupted(model, setting):
        raise KeyboardInterrupt

    whole, said = tmp_path / "whole", Said()
    run("characters", data, whole, said=said)
    assert titles(said)[:2] == ["1/2 Choose", "2/2 Parts"]
    stopped, said = tmp_path / "stopped", Said()
    broken = TASKS | {"parts": Task("parts", "Parts", ("parts.txt",), "", ACCURACY, interrupted, seeded=True)}
    with pytest.raises(KeyboardInterrupt):
        run("characters", data, stopped, tasks=broken)
    assert {*written(stopped)} == {"items/choose.parquet"}
    run("characters", data, stopped, said=said)
    assert titles(said)[:2] == ["1/2 Choose again", "2/2 Parts"]
    assert written(stopped) == written(whole)


def test_what_is_computed_again(data, tmp_path):
    def titles_of(**options):
        said = Said()
        run("characters", data, tmp_path / "out", said=said, **options)
        return titles(said)[:2]

    assert titles_of() == ["1/2 Choose", "2/2 Parts"]
    assert titles_of() == ["1/2 Choose again", "2/2 Parts again"]
    (data / "parts.txt").write_text(QUESTIONS.replace("horse\n", "house\n"))
    assert titles_of() == ["1/2 Choose again", "2/2 Parts"]
    newer = TASKS | {"choose": Task("choose", "Choose", ("choose/*.txt",), "", ACCURACY, choose, version=2)}
    assert titles_of(tasks=newer) == ["1/2 Choose", "2/2 Parts again"]


def test_against_another_model(data, tmp_path):
    report = run("characters", data, tmp_path / "out", against=("random",))
    rows = report.comparisons["random"]
    assert [(row.task.name, row.score) for row in rows] == [("choose", 100.0), ("parts", 100.0)]
    assert all(row.difference.difference == pytest.approx(100 - row.other) for row in rows)
    assert (tmp_path / "out/against/random/items/choose.parquet").exists()
    assert "against random" in as_text(report)


def test_against_itself_from_its_results(data, tmp_path):
    run("characters", data, tmp_path / "out")
    report = run("characters", data, tmp_path / "out", against=(str(tmp_path / "out"),))
    assert {row.difference for row in report.comparisons[str(tmp_path / "out")]} == {(0.0, 0.0, 0.0, 1.0)}


def test_results_are_shown_again(data, tmp_path):
    first = run("characters", data, tmp_path / "out")
    before = written(tmp_path / "out")
    again = run(str(tmp_path / "out"), None, None, tasks=TASKS | {"choose": TASKS["choose"]})
    assert as_text(again).replace(str(tmp_path), "") == as_text(first._replace(missing={}))
    assert written(tmp_path / "out") == before


def test_some_tasks(data, tmp_path):
    assert [row.task.name for row in run("characters", data, tmp_path / "out", tasks=TASKS).rows] == ["choose", "parts"]
    chosen = Evaluation("characters", data=data, output=tmp_path / "out", tasks=("parts",), seeds=(0, 1, 2))
    report = evaluate(chosen, lambda name, own: find_model(name, ModelOptions()), Said(), TASKS)
    assert [row.task.name for row in report.rows] == ["parts"]
    assert Results(tmp_path / "out").tasks() == ["choose", "parts"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["characters"], "--data: has to be given"),
        (["characters", "--data", "{data}/none"], "{data}/none: no such folder"),
        (["characters", "--data", "{tmp}/empty"], "{tmp}/empty: has no file of any task"),
        (
            ["characters", "--data", "{data}", "--tasks", "turnej"],
            "--tasks turnej: no such task or paper; did you mean",
        ),
        (
            ["characters", "--data", "{data}", "--tasks", "turney"],
            "{data}/turney/turney.txt: no such file, which turney",
        ),
        (
            ["characters", "--data", "{data}", "--published", "E6"],
            "--published E6: no such model; there are Phrase-BERT",
        ),
        (["characters", "--data", "{data}", "--seeds", "1,1"], "must be a number of seeds, or different seeds"),
        (["characters", "--data", "{tmp}/full", "--against", "{tmp}/hollow"], "{tmp}/hollow: holds no results"),
        (["{tmp}/hollow"], "{tmp}/hollow: holds no results; evaluate again"),
        (["characters", "--data", "{data}", "--pool", "mean"], "--pool: no such flag"),
    ],
)
def test_errors_of_the_command(arguments, said, data, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "hollow").mkdir()
    (tmp_path / "hollow/results.json").write_text("{}")
    write_turney(tmp_path / "full")
    named = {"data": str(data), "tmp": str(tmp_path)}
    assert main([each.format(**named) for each in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert said.format(**named) in error
    assert len(error.splitlines()) == 1


def refuses(said, *arguments, **options):
    with pytest.raises(UserError) as caught:
        run(*arguments, **options)
    assert said in str(caught.value)


def test_a_malformed_file_is_named_with_its_line(data, tmp_path):
    (data / "parts.txt").write_text("red bird | redbird | horse\nsea horse\n")
    refuses(f"{data}/parts.txt: line 2 is no bigram with two words", "characters", data, tmp_path / "out")


def test_an_output_holds_one_model(data, tmp_path):
    run("characters", data, tmp_path / "out")
    refuses("out: holds results of characters with other files", "random", data, tmp_path / "out")


def test_damaged_results(data, tmp_path):
    run("characters", data, tmp_path / "out")
    shutil.copytree(tmp_path / "out", tmp_path / "other")
    (tmp_path / "other/items/parts.parquet").write_bytes(b"PAR1")
    damaged = "other/items/parts.parquet: is no file of results"
    refuses(damaged, "characters", data, tmp_path / "out", against=(str(tmp_path / "other"),))
    refuses(damaged, "characters", data, tmp_path / "other")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: (data / "parts.txt").write_text(QUESTIONS.replace("bluebell", "blue")), "parts has other items"),
        (lambda data: (data / "parts.txt").unlink(), "has no results of parts"),
    ],
)
def test_only_the_same_items_are_compared(change, said, data, tmp_path):
    run("characters", data, tmp_path / "out")
    shutil.copytree(data, tmp_path / "changed")
    change(tmp_path / "changed")
    run("random", tmp_path / "changed", tmp_path / "other")
    refuses(said, "characters", data, tmp_path / "out", against=(str(tmp_path / "other"),))


def test_only_the_same_seeds_are_compared(data, tmp_path):
    run("characters", data, tmp_path / "out")
    chosen = Evaluation("random", data=data, output=tmp_path / "other", seeds=(0, 1))
    evaluate(chosen, lambda name, own: find_model(name, ModelOptions()), Said(), TASKS)
    refuses("parts has other seeds", "characters", data, tmp_path / "out", against=(str(tmp_path / "other"),))


def write_turney(data):
    (data / "turney").mkdir(parents=True)
    (data / "turney/turney.txt").write_text("red bird | redbird | red | bird | horse | house | sea | ox\n" * 4)


def test_the_command(tmp_path, capsys):
    write_turney(tmp_path)
    arguments = ["characters", "--data", str(tmp_path), "--output", str(tmp_path / "out"), "--tasks", "turney"]
    assert main([*arguments, "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["tasks"]["turney"]["measures"]["accuracy"]["mean"] == 100.0
    assert printed.out == (tmp_path / "out/results.json").read_text()
    assert "1/1 Turney" in printed.err


def test_a_missing_extra_is_named(tmp_path, capsys, monkeypatch):
    columns = {name: np.array(["a", "b"], object) for name in ("item", "type", "sentence")}
    items = {**columns, "cluster": np.array([0, 1])}
    made_from = MadeFrom({"name": "random"}, "mention_clustering_conll", 1, {}, (0,))
    Results(tmp_path).write(TaskResult(made_from, Outcome([items], {"mentions": 2})))
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)  # as if it were not installed
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "error: this needs scipy.optimize: pip install 'phrasemill[evaluate,transformers]'\n"
    )
