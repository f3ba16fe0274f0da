"""The parsers' benchmark as its users run it, in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
GOLD = "(ROOT (S (NP-SBJ (DT The) (NN dog)) (VP (VBD saw) (NP (PRP me))) (. .)))\n"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.parsers", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_table_and_json(tmp_path: Path) -> None:
    gold, text, out = tmp_path / "gold.ptb", tmp_path / "book.txt", tmp_path / "out" / "figures.json"
    gold.write_text(GOLD * 3)
    text.write_text("The dog saw me.\n\nIt barked. I ran.\n")
    flags = ["--parsers", "spacy", "--processes", "2", "--json", str(out)]
    finished = run("--gold", str(gold), "--text", str(text), *flags)
    assert finished.returncode == 0, finished.stderr
    assert "tokens/CPU s" in finished.stdout
    figures = json.loads(out.read_text())["spacy"]
    on_gold, on_text = figures[str(gold)], figures[str(text)]
    assert (on_gold["f1"], on_gold["f1_by_label"]["NP"], on_gold["sentences"], on_gold["tokens"]) == (1.0, 1.0, 3, 15)
    assert (on_text["sentences"], on_text["tokens"], on_text["refused"]) == (3, 11, 0)
    assert (on_gold["processes"], on_text["processes"]) == (2, 2)
    for result in (on_gold, on_text):
        assert min(result[key] for key in ("tokens_per_second", "tokens_per_cpu_second", "peak_memory_mib")) > 0


def test_a_parser_that_cannot_be_loaded_is_skipped_with_the_reason(tmp_path: Path) -> None:
    gold, out = tmp_path / "gold.ptb", tmp_path / "figures.json"
    gold.write_text(GOLD)
    files = ["--gold", str(gold), "--text", str(gold), "--processes", "2"]
    spacy = f"spacy={tmp_path / 'missing'}"
    finished = run(*files, "--parsers", spacy, "--json", str(out))
    assert finished.returncode == 0, finished.stderr
    assert f"{spacy}: skipped: the parser spacy: no spaCy pipeline" in finished.stdout.replace("\n", "")
    assert list(json.loads(out.read_text())[spacy][str(gold)]) == ["skipped"]


def test_faults_are_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ptb"
    broken.write_text("(S (NN a)\n")
    for arguments, message in [
        (["--gold", str(broken)], f"{broken}:1: 1 ')' are missing from the tree that begins here"),
        (["--gold", str(tmp_path / "none.ptb")], f"no such file: {tmp_path / 'none.ptb'}"),
        (["--parsers", "spaycy", "--gold", str(broken)], "no parser 'spaycy'; choose among phrasemill, spacy"),
        (["--processes", "0", "--gold", str(broken)], "--processes: must be 1 or more, not 0"),
        ([], "give at least one --gold or --text file"),
    ]:
        finished = run(*arguments)
        assert finished.returncode != 0
        assert message in finished.stderr
