"""The benchmark of readers of links: its input, what each reader counts, and a run as its users start it."""

from __future__ import annotations

import bz2
import json
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.errors import UserError
from transforms.sources.sample import sample_inputs

ROOT = Path(__file__).resolve().parent.parent.parent

# What `python -m` finds, pytest does not: the benchmarks are not installed.
sys.path.insert(0, str(ROOT))
from benchmarks import mentions as benchmark  # noqa: E402
from benchmarks.extraction import documents, measure  # noqa: E402

PAGES = "".join(
    f"  <page>\n    <title>{title}</title>\n    <ns>0</ns>\n    <id>{number}</id>\n    <revision>\n      <id>9</id>\n"
    f"      <text>{text}</text>\n    </revision>\n  </page>\n"
    for number, (title, text) in enumerate(
        [("A", "A is [[b]] and [[c|d]]. See [[Category:E]] too."), ("B", "#REDIRECT [[A]]"), ("C", "Some [[a]]s.")], 1
    )
)
NAMESPACE = "http://www.mediawiki.org/xml/export-0.10/"
DUMP = f'<mediawiki xmlns="{NAMESPACE}" xml:lang="en">\n{PAGES}</mediawiki>'


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "small.xml"
    path.write_text(DUMP, encoding="utf-8")
    return path


def test_larger(dump: Path, tmp_path: Path) -> None:
    one = len(bz2.compress(DUMP.encode()))
    out = tmp_path / "larger.xml.bz2"
    assert benchmark.larger(dump, 2.5 * one / 1e6, out) == 3
    streams, data = [], out.read_bytes()
    while data:
        stream = bz2.BZ2Decompressor()
        streams.append(stream.decompress(data))
        data = stream.unused_data
    assert [stream.count(b"<page>") for stream in streams] == [0, 3, 3, 3, 0]
    found = list(documents(out))
    assert [each.title for each in found] == ["A", "C", "A (copy 2)", "C (copy 2)", "A (copy 3)", "C (copy 3)"]
    assert len({each.doc_id for each in found}) == 6
    assert benchmark.larger(dump, 0, out) == 1
    assert bz2.decompress(out.read_bytes()).decode() == DUMP


def test_larger_needs_pages(tmp_path: Path) -> None:
    path = tmp_path / "other.xml"
    path.write_text("<mediawiki><page></page></mediawiki>")
    with pytest.raises(UserError, match="no line with"):
        benchmark.larger(path, 1, tmp_path / "out.bz2")


@pytest.mark.parametrize(
    ("reader", "links"),
    [("phrasemill", 3), ("phrasemill_mentions", 3), ("gensim", 3), ("mwparserfromhell", 4)],
)
def test_readers(dump: Path, reader: str, links: int) -> None:
    out = dump.with_suffix(".xml.bz2")
    benchmark.larger(dump, 0, out)
    measured = measure(benchmark.READERS[reader], [out])
    assert (measured.documents, measured.links) == (2, links)


def test_every_row_says_what_it_gives() -> None:
    assert list(benchmark.GIVES) == [*benchmark.READERS, *benchmark.COMMANDS]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "no-such.xml"], "no such file: no-such.xml"),
        (["--input", __file__, "--only", "phrasemill,all"], "--only all: no such reader or command"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        benchmark.main(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.heavy
def test_program(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.mentions", "--input", str(sample_inputs()[0]), "--workers", "1"]
    command += ["--only", "phrasemill,find_mentions,mine_mentions", "--json", str(tmp_path / "out.json")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    figures = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    links = {name: figures[name]["links"] for name in ("phrasemill", "find_mentions", "mine_mentions")}
    assert len(set(links.values())) == 1, links
    assert min(figures[name]["peak_mib"] for name in links) > 0
