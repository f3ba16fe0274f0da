"""The tables in docs/ that are written from declarations."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = str(ROOT / "scripts/docs_tables.py")
TABLES = runpy.run_path(SCRIPT)


def test_the_tables_are_current_and_have_every_option():
    """In a process of its own: other tests register kinds."""
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_in_no_table():
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    assert "--window" not in TABLES["missing"](pages)
    without = pages.replace("| `--window N`", "| `--windows`")
    assert {*TABLES["missing"](without)} - {*TABLES["missing"](pages)} == {"--window"}


@pytest.mark.parametrize(
    ("marker", "lines"),
    [
        (
            "options: mine_contexts: contexts",
            [
                "| option | default | meaning |",
                "|---|---|---|",
                "| `--contexts-per-phrase M` | `1` | contexts of each phrase. A phrase with fewer occurrences has one",
                "| `--window N` | `120` | tokens of a context, the phrase included (Phrase-BERT, section 3) |",
                r"| `--placement random\|centre` | `random` | where the phrase stands in its window |",
            ],
        ),
        ("options: parse_sentences: output and run", ["", "", r"| `--output DIR` | `out/sentences` | the dataset to "]),
        ("options: every command: output and run", ["", "", r"| `--output DIR` |  | the dataset to write."]),
        ("columns: MaskedMentionPair beyond MentionPair", ["", "", "| `anchor` | string | ", "| `positive` | string"]),
        ("columns: Sentence", ["", "", "| `sentence_id` | string | &lt;doc_id>#&lt;start_char> |"]),
        ("reasons: Phrase", ["| reason | counted as | meaning |", "", "| `unknown_token` | filtered | a constituent "]),
        ("commands", ["", "", "| `mine-contexts` | Raw text to masked contexts"]),
    ],
)
def test_a_table_between_its_marks(marker, lines):
    page = f"before\n<!-- {marker} -->\n\nwas here\n<!-- end -->\nafter\n"
    written = TABLES["written"](page)
    table = re.fullmatch(rf"before\n<!-- {marker} -->\n\n(.*)\n\n<!-- end -->\nafter\n", written, re.DOTALL)
    assert table
    for line, beginning in zip(table[1].split("\n"), lines, strict=False):
        assert line.startswith(beginning)
    assert "was here" not in written
    assert TABLES["written"](written) == written


def test_a_group_that_there_is_not():
    with pytest.raises(LookupError, match="mine_contexts has no options in a group 'pairs'"):
        TABLES["written"]("<!-- options: mine_contexts: pairs -->\n<!-- end -->\n")
