"""The benchmark of sentence splitters: its running text, its scores, and a run as its users start it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

# What `python -m` finds, pytest does not: the benchmarks are not installed.
sys.path.insert(0, str(ROOT))
from benchmarks import sentences as benchmark  # noqa: E402
from schemas.errors import UserError  # noqa: E402
from transforms.parsing.treebank import TreebankSentence  # noqa: E402


@pytest.mark.parametrize(
    ("tagged", "text"),
    [
        ("The_DT dog_NN ,_, he_PRP said_VBD ,_, barked_VBD ._.", "The dog, he said, barked."),
        ("I_PRP ca_MD n't_RB see_VB Tom_NNP 's_POS dogs_NNS '_POS den_NN !_.", "I can't see Tom's dogs' den!"),
        ("We_PRP ’re_VBP gon_VBG na_TO see_VB why_WRB I_PRP can_MD not_RB", "We’re gonna see why I cannot"),
        ("He_PRP asked_VBD :_: \"_`` Who_WP ?_. \"_'' And_CC left_VBD", 'He asked: "Who?" And left'),
        ("a_DT well_RB -_HYPH known_VBN his_PRP /_, hers_PRP", "a well-known his/hers"),
        ("it_PRP —_: or_CC ..._: not_RB", "it—or... not"),
        ("(_-LRB- for_IN $_$ 5_CD or_CC 6_CD %_NN )_-RRB- now_RB", "(for $5 or 6%) now"),
        ("a_DT [_-LRB- new_JJ ]_-RRB- end_NN ._. [_-LRB- 3_CD ]_-RRB- [_-LRB- 4_CD ]_-RRB-", "a [new] end.[3][4]"),
        ("Go_VB ._. ”_'' [_-LRB- 3_CD ]_-RRB-", "Go.”[3]"),
    ],
)
def test_detokenised(tagged: str, text: str) -> None:
    words, tags = zip(*(token.rsplit("_", 1) for token in tagged.split()), strict=True)
    assert benchmark.detokenised(words, tags) == text


@pytest.mark.parametrize(
    ("words", "heading"),
    [
        ("Early life", True),
        ("Early life [ 1 ] [ 2 ]", True),
        ("“ Early life ”", True),
        ("He left .", False),
        ("He left . [ 1 ]", False),
        ("“ He left . ”", False),
        ("He said :", False),
    ],
)
def test_headings(words: str, heading: bool) -> None:
    assert benchmark.is_heading(words.split()) == heading


def sentence(text: str) -> TreebankSentence:
    words = text.split()
    return TreebankSentence(words, ["NN" if word[0].isalnum() else "." for word in words], [])


def test_lines_of_running_text() -> None:
    document = [sentence(text) for text in ("One .", "Two", "Three", "Four .", "Five !")]
    assert list(benchmark.paragraphs(document)) == [
        ("One.", [0]),
        ("Two", [0]),
        ("Three", [0]),
        ("Four. Five!", [0, 6]),
    ]
    assert list(benchmark.spaces(document)) == [("One. Two Three Four. Five!", [0, 5, 9, 15, 21])]
    assert [len(line.starts) for line in benchmark.paragraphs([sentence("One .")] * 21)] == [10, 10, 1]


@pytest.mark.parametrize(
    ("gold", "predicted", "scores"),
    [
        ([[0, 5, 9]], [[0, 5, 9]], (1.0, 1.0, 1.0)),
        ([[0, 5, 9]], [[0, 5]], (1.0, 1 / 2, 2 / 3)),
        ([[0, 5], [0, 7]], [[0, 5, 7], [0, 3, 7]], (1 / 2, 1.0, 2 / 3)),
        ([[0, 5]], [[0]], (0.0, 0.0, 0.0)),
        ([[0], [0, 5]], [[0], [5]], (1.0, 1.0, 1.0)),  # the beginning of a line is given
    ],
)
def test_score(gold: list[list[int]], predicted: list[list[int]], scores: tuple[float, float, float]) -> None:
    assert tuple(benchmark.score(gold, predicted).values()) == pytest.approx(scores)


TREES = "(ROOT (S (NP (NNP Dr.) (NNP Who)) (VP (VBD left)) (. .)))\n(ROOT (S (NP (PRP She)) (VP (VBD ran)) (. .)))\n"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.sentences", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_table_and_json(tmp_path: Path) -> None:
    gold, documents, out = tmp_path / "gold.ptb", tmp_path / "docs.tsv", tmp_path / "out" / "figures.json"
    gold.write_text(TREES * 2)
    documents.write_text("one\tnews\t1\t2\ntwo\tnews\t3\t2\n")
    finished = run("--gold", str(gold), "--documents", str(documents), "--json", str(out))
    assert finished.returncode == 0, finished.stderr
    figures = json.loads(out.read_text())
    assert list(figures) == list(benchmark.SPLITTERS)
    right = {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert figures["phrasemill"]["scores"] == {"paragraphs": right, "spaces": right}
    for splitter, result in figures.items():
        if splitter in benchmark.NOT_REQUIRED and not find_spec(splitter):
            assert result == {"skipped": f"not installed; pip install {splitter}"}
            assert f"{splitter}: skipped: not installed; pip install {splitter}" in finished.stdout
        else:
            assert result["tokens_per_cpu_second"] > 0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("one\tnews\t1", ":1: expected name, genre, first sentence and number of sentences"),
        ("one\tnews\t0\t1", ":1: one is not within the 2 sentences of"),
        ("one\tnews\t2\t2", ":1: one is not within the 2 sentences of"),
    ],
)
def test_faults_in_the_table_of_documents(tmp_path: Path, row: str, message: str) -> None:
    gold, documents = tmp_path / "gold.ptb", tmp_path / "docs.tsv"
    gold.write_text(TREES)
    documents.write_text(row + "\n")
    with pytest.raises(UserError, match=message):
        benchmark.read_documents(gold, documents)
