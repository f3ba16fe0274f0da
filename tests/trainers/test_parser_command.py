"""The whole training, from treebanks to a file that parses, with encoders of a few thousand weights."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from literal import dataset, shard
from watched import watch

from trainers.train import main
from transforms.parsing.phrasemill_parser import PhrasemillParser

TREE = "(S (NP (DT the) (NN {0})) (VP (VBD saw) (NP (DT a) (JJ black) (NN {1}))) (. .))\n"
NOUNS = "dog cat bird fish man boy girl horse sheep cow".split()


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Treebanks, raw sentences, a small encoder and a recipe that learns from them in a second."""
    pytest.importorskip("torch")
    pytest.importorskip("onnx")
    from transformers import BertConfig, BertModel

    from trainers.parser.recipe import RECIPE

    folder = tmp_path_factory.mktemp("given")
    trees = [TREE.format(first, second) for first in NOUNS for second in NOUNS]
    for name in ("gum", "craft"):
        (folder / name).mkdir()
        (folder / name / "train.ptb").write_text("".join(trees) + "(NP (NN two words))\n")
        (folder / name / "dev.ptb").write_text("".join(trees[:20]))
    tables = [shard({"d": " | ".join(f"the {noun} saw a black {noun} ~." for noun in NOUNS)}).sentences]
    dataset(folder / "sentences", tables)
    BertModel(
        BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    ).save_pretrained(folder / "bert")
    recipe = RECIPE.read_text()
    for old, new in {
        "frozen_layers = 3": "frozen_layers = 1",
        "layers = 9": "layers = 2",
        "layers = 3": "layers = 1",
        "feed_forward = 3072": "feed_forward = 64",
        "feed_forward = 1536": "feed_forward = 32",
        "pieces = 700_000": "pieces = 12_000\nbatch_pieces = 200",
        "pieces = 4_000_000": "pieces = 12_000\nbatch_pieces = 200",
        "words = 800_000": "words = 50",
    }.items():
        assert old in recipe
        recipe = recipe.replace(old, new)
    (folder / "recipe.toml").write_text(recipe)
    return folder


def command(given: Path, output: Path, *more: str) -> list[str]:
    flags = {
        "treebanks": given,
        "sentences": given / "sentences",
        "recipe": given / "recipe.toml",
        "teacher-encoder": given / "bert",
        "student-encoder": given / "bert",
        "output": output,
        "threads": 1,
    }
    return ["parser", *(f"--{name}={value}" for name, value in flags.items()), *more]


def test_from_treebanks_to_a_parser(given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second run trains nothing again."""
    assert main(command(given, tmp_path)) == 0
    said = capsys.readouterr()
    assert said.err.count("two words, 'two' and 'words', under 'NN'") == 2
    scores = json.loads(said.out)
    assert json.loads((tmp_path / "scores-0.json").read_text()) == scores
    assert scores["gum"]["f1"] > 0.9
    assert scores["gum"]["tags"] > 0.9
    (parse,) = PhrasemillParser(str(tmp_path / "parser-0.onnx")).parse_words(["the dog saw a black cow .".split()])
    assert parse.constituents == [("S", 0, 7), ("NP", 0, 2), ("VP", 2, 6), ("NP", 3, 6)]
    before = made(tmp_path)
    assert main(command(given, tmp_path)) == 0
    assert made(tmp_path) == before


def made(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


@pytest.mark.heavy
def test_another_seed_and_another_folder(given: Path, tmp_path: Path) -> None:
    assert main(command(given, tmp_path)) == 0
    before = made(tmp_path)
    assert main(command(given, tmp_path, "--seed=1")) == 0
    new = made(tmp_path)
    assert {name for name in new if new[name] != before.get(name)} == {
        f"{name}{end}" for name in ("student-1.pt", "parser-1.onnx", "scores-1.json") for end in ("", ".made.json")
    }
    assert (tmp_path / "parser-0.onnx").read_bytes() != (tmp_path / "parser-1.onnx").read_bytes()
    assert main(command(given, tmp_path / "b")) == 0
    for name in ("soft-labels.parquet", "parser-0.onnx"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.heavy
def test_training_calls_nobody_and_writes_only_its_output(given: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    seen = watch([sys.executable, "-m", "trainers.train", *command(given, output)], tmp_path / "watched", [output])
    assert (seen.calls, seen.written, seen.status) == ([], [], 0), seen.printed


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["parser", "--treebanks=nowhere", "--sentences=x"], "nowhere/gum/train.ptb: no such file; --treebanks is"),
        (["parsers"], "no model 'parsers'; there are parser"),
    ],
)
def test_errors(arguments: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, f"--output={tmp_path}"]) == 2
    assert f"error: {error}" in capsys.readouterr().err
