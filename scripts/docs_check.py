"""Runs the commands and the Python of README.md and docs/, and compares what they print with the pages.

    python scripts/docs_check.py                     # make docs-check: all pages, minutes
    python scripts/docs_check.py docs/python.md ...  # some of them; those that read out/contexts come after README.md

In a page, an indented block that begins with a command, or with `$ `, is run line by line in bash; the lines after a
`$ ` are what it prints. A fenced block of Python is run, and an indented block right after it is what it prints. `>>>`
is a doctest. These comments before a block are for us:

    <!-- $ COMMAND -->          the block is what COMMAND prints (or, before a block of commands, it is run first)
    <!-- not run: REASON -->    it is listed, not run
    <!-- test data: WHAT -->    the block is of the larger test data (test-data/), and left out without it
    <!-- varies: WHY -->        no number is compared

Commands that need what is not here are in NOT_RUN, with the reason. Names such as enwiki.xml.bz2 stand for small inputs
from the sample that is shipped, or from the test data (PHRASEMILL_TEST_DATA); s3:// is a server on this machine. Each
page finds in out/ what README.md makes. Not compared are white space, times, speeds, sizes, and who ran on which
machine (`_NOT_COMPARED`); `...` stands for anything. Exit status: 0, or 1 if something differs or fails.
"""

from __future__ import annotations

import bz2
import contextlib
import doctest
import gzip
import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "docker/README.md", ROOT / "CONTRIBUTING.md"]
ARTICLES = 3
DATA = Path(os.environ.get("PHRASEMILL_TEST_DATA", ROOT.parent / "shared/data"))

NOT_RUN = {
    r"^(pip install|python3 -m venv)": "installs; make does the same",
    r"^make (?!run|help)|^\.ci/run": "is run by itself",
    r"^(docker|buildah|cd docker)|localhost:7070|AWS_ACCESS_KEY_ID=phrasemill": "needs Docker; tests/docker",
    r"^(go install|prism)|--runner=|worker_pool_main": "needs a Beam cluster; tests/clusters runs such jobs",
    r"corenlp|CORENLP": "needs Java and CoreNLP; tests/parsing/test_corenlp_parser.py",
    r"--encoder|mine-negatives|embed-phrases": "needs an encoder; tests/pipelines/test_mine_negatives.py",
    r"--parser benepar": "needs a model of benepar; tests/parsing/test_benepar_parser.py",
    r"benchmarks\.": "takes long; make bench-smoke runs each benchmark at its smallest",
    r"train (parser|entities)|out/mine/": "needs treebanks, and hours; tests/trainers",
    r"phrasemill recipe (?!mine.toml)": "takes half an hour, and needs models of the hub",
    r"phrasemill evaluate": "needs evaluation sets; tests/trainers/test_evaluate_run.py",
}

# ---- Reading a page

_PROGRAM = re.compile(
    r"(?:phrasemill|python3?|make|pip|docker|buildah|go|prism|java|export|cd|echo|\.ci/run)(?: |$)|[A-Z_]+=\S* "
)
_COMMENT = re.compile(r"<!-- (\$|not run:|test data:|varies:) ?(.*?) ?-->", re.DOTALL)


class Step(NamedTuple):
    """A command, and what the page says that it prints; None if it does not say."""

    line: int
    command: str
    prints: str | None


@dataclass
class Block:
    """A block of a page. `what`: "shell", "text", or the language of a fence. `marks` are the comments before it."""

    line: int
    what: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    def steps(self) -> Iterator[Step]:
        """The commands of a "shell" block."""
        lines = self.text.split("\n")
        is_session = lines[0].startswith("$ ")
        number = 0
        while number < len(lines):
            first, command = number, lines[number].removeprefix("$ ")
            while command.endswith("\\"):
                number += 1
                command = command[:-1] + lines[number].lstrip()
            number += 1
            printed = []
            while is_session and number < len(lines) and not lines[number].startswith("$ "):
                printed.append(lines[number])
                number += 1
            if command.strip():
                yield Step(self.line + first, command, "\n".join(printed).strip() or None if is_session else None)


def blocks(text: str) -> Iterator[Block]:
    """The fenced and indented blocks of a page, with the comments that stand directly before each."""
    lines = text.split("\n")
    marks: dict[str, str] = {}
    number = 0
    while number < len(lines):
        line, first = lines[number], number
        number += 1
        if line.startswith("<!--"):
            while "-->" not in lines[number - 1]:
                number += 1
            if found := _COMMENT.fullmatch(" ".join(each.strip() for each in lines[first:number])):
                marks[found[1].rstrip(":")] = found[2]
            continue
        if line.startswith("```"):
            while lines[number] != "```":
                number += 1
            number += 1
            yield Block(first + 2, line[3:], "\n".join(lines[first + 1 : number - 1]), marks)
        elif line.startswith("    ") and not (first and lines[first - 1].strip()):
            while number < len(lines) and (lines[number].startswith("    ") or not lines[number].strip()):
                number += 1
            inner = "\n".join(each[4:] for each in lines[first:number]).rstrip()
            is_shell = inner.startswith("$ ") or _PROGRAM.match(inner)
            yield Block(first + 1, "shell" if is_shell else "text", inner, marks)
        elif not line.strip():
            continue
        marks = {}


# ---- What is compared

_NUMBER = r"[\d,.]+"
_SPAN = rf"(?:< )?{_NUMBER}(?:-{_NUMBER})?"
_NOT_COMPARED = [
    (r"(?m)^\d+ s of at most .*\n", ""),  # progress: more lines on a slow machine
    (r"(tokens/s: )[^\n]*", r"\1SPEEDS"),
    (rf"{_NUMBER} (\w+/s)\b", r"SPEED \1"),
    (rf"{_SPAN} (?:B|kB|MB|GB|TB)\b(?:-{_NUMBER} (?:B|kB|MB|GB|TB)\b)?", "SIZE"),
    (rf"(?:{_SPAN} (?:d|h|min|s)\b ?-?)+", "TIME "),
    (r"process \d+ (?:of \S+ )?on \S+", "PROCESS"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ?", "DATE"),
    (r"(?m)^\w+: (?:[\d.]+ %, )?\d+/\d+ units?, .*\n", ""),  # likewise
]


def compared(text: str, *, numbers: bool) -> str:
    for pattern, by in [*_NOT_COMPARED, *([] if numbers else [(rf"{_NUMBER}(?:-{_NUMBER})?", "N")])]:
        text = re.sub(pattern, by, text + "\n").rstrip("\n")
    return text


def same(expected: str, printed: str, *, numbers: bool = True) -> bool:
    """Whether a program printed what the page says."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(
        compared(expected, numbers=numbers), compared(printed, numbers=numbers), flags
    )


# ---- Inputs


def make_inputs(folder: Path) -> None:
    """What the pages name as inputs."""
    import zstandard

    from transforms.sources.sample import sample_inputs

    sample, chapters = map(Path, sample_inputs())
    first, *pages, end = bz2.decompress(sample.read_bytes()).split(b"</page>")
    articles = [each for each in pages if b"<redirect" not in each]
    articles = articles[:ARTICLES] + [each for each in articles[ARTICLES:] if b"[[London]]" in each][:2]
    few = bz2.compress(b"</page>".join([first, *articles, end]))
    fragment = DATA / "corpora/wikipedia/enwiki-fragment.xml.bz2"
    large = (fragment if fragment.exists() else sample).read_bytes()
    (folder / "enwiki.xml.bz2").write_bytes(few)
    (folder / "enwiki-pages-articles-multistream.xml.bz2").write_bytes(few)
    (folder / "enwiki-fragment.xml.bz2").write_bytes(large)
    (folder / "cut.xml.bz2").write_bytes(large[:1_000_000])
    with tarfile.open(chapters) as archive:
        archive.extractall(folder / "books", members=[each for each in archive if "_01" in each.name], filter="data")
    if fragment.exists():
        (folder / "test-data").symlink_to(DATA)
    (folder / "latin.txt").write_bytes("caf\xe9 au lait\n".encode("latin-1"))
    (folder / "notes.jsonl").write_text('{"body": "The old miller had a grey cat.", "title": "A note"}\n')
    rows = [
        {"title": f"Tale {n}", "text": f"The old miller had {n} grey cats. They lived near the old bridge."}
        for n in range(2, 9)
    ]
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), folder / "wikipedia.parquet")
    pq.write_table(pa.table({"text": [b"The old miller had a grey cat."]}), folder / "rows.parquet")
    story = "The old miller had three grey cats, and they lived near the old bridge in a mill that nobody else had seen"
    copies = [{"text": f"{story}.\n{number} of them is an edition."} for number in range(2)]
    (folder / "crawl.jsonl").write_text("".join(json.dumps(each) + "\n" for each in copies))
    (folder / "pile").mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "pile/00.jsonl.zst").write_bytes(zstandard.compress(lines.encode()))
    columns = {
        "page_props": ("pp_page", "pp_propname", "pp_value", "pp_sortkey"),
        "page": ("page_id", "page_namespace", "page_title", "page_is_redirect"),
    }
    values = {"page_props": "(17867,'wikibase_item','Q84',NULL)", "page": "(17867,0,'London',0)"}
    for table, names in columns.items():
        declared = ",\n".join(f"  `{name}` int(11)" for name in names)
        sql = f"CREATE TABLE `{table}` (\n{declared}\n);\nINSERT INTO `{table}` VALUES {values[table]};\n"
        (folder / f"enwiki-20261101-{table}.sql.gz").write_bytes(gzip.compress(sql.encode()))
    html = next((ROOT / "tests/data/wikipedia-html").glob("*.json.tar.gz"))
    shutil.copyfile(html, folder / "enwiki-NS0-20240601-ENTERPRISE-HTML.json.tar.gz")
    with tarfile.open(html) as archive:
        for number, member in enumerate(each for each in archive if each.isfile()):
            opened = archive.extractfile(member)
            assert opened
            (folder / f"enwiki_namespace_0_{number}.ndjson").write_bytes(opened.read())
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / name, folder)
    (folder / ".venv").symlink_to(sys.prefix)
    for name in (".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"):
        (folder / "home" / name).mkdir(parents=True)


@contextlib.contextmanager
def store(folder: Path) -> Iterator[tuple[FileSystem, dict[str, str]]]:
    """A server that is s3:// for the commands; yields it, and what they need in the environment."""
    from moto.server import ThreadedMotoServer
    from pyarrow import fs

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_DEFAULT_REGION": "us-east-1"}
        variables = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", **keys}
        os.environ.update(variables)
        remote = fs.S3FileSystem(endpoint_override=variables["AWS_ENDPOINT_URL"], allow_bucket_creation=True)
        for bucket in ("bucket", "corpora"):
            remote.create_dir(bucket)
        fs.copy_files(str(folder / "books"), "bucket/books", destination_filesystem=remote)
        yield remote, variables
    finally:
        server.stop()


# ---- Running


@dataclass
class Report:
    ran: int = 0
    outputs: int = 0
    faults: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


class Runner:
    """Runs the blocks of pages in a folder."""

    def __init__(self, folder: Path, remote: FileSystem, variables: dict[str, str]) -> None:
        self.folder = folder
        self._remote = remote
        self.report = Report()
        self._made = folder / "made"
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            **variables,
            "PATH": f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "PYTHONUNBUFFERED": "1",
            "I": "1",
        }

    def page(self, path: Path) -> None:
        if self._made.exists():
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            shutil.copytree(self._made, self.folder / "out")
        self._remote.delete_dir_contents("corpora")
        self._written: set[str] = set()
        names: dict[str, Any] = {"__name__": "__main__"}
        made_by_python: str | None = None
        text = path.read_text()
        shown = str(path.relative_to(ROOT))
        for block in blocks(text):
            place = f"{shown}:{block.line}"
            before, made_by_python = made_by_python, None
            if "not run" in block.marks:
                self.report.left_out.append(f"{place}: {block.marks['not run']}")
                continue
            if "test data" in block.marks and not DATA.exists():
                self.report.left_out.append(f"{place}: is of {block.marks['test data']}")
                continue
            if command := block.marks.get("$"):
                printed = self._shell(place, command, must=block.what == "shell")
                if block.what == "text":
                    self._compare(place, block, block.text, printed)
                    continue
            if block.what == "shell":
                for step in block.steps():
                    place = f"{shown}:{step.line}"
                    if why := next((why for pattern, why in NOT_RUN.items() if re.search(pattern, step.command)), ""):
                        self.report.left_out.append(f"{place}: {step.command.split('  ')[0]}: {why}")
                        continue
                    printed = self._shell(place, step.command, must=step.prints is None)
                    if step.prints is not None:
                        self._compare(place, block, step.prints, printed)
            elif block.what == "python":
                made_by_python = self._python(place, block.text, names)
            elif block.what == "sql":
                self._python(
                    place, f"import duckdb\nfor each in {block.text.split(';')[:-1]}: duckdb.sql(each).fetchall()", {}
                )
            elif block.what == "text" and before:
                self._compare(place, block, block.text, before)
        if " >>> " in text:
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                failed, tried = doctest.testfile(str(path), module_relative=False)
            self.report.outputs += tried
            if failed:
                self.report.faults.append(f"{shown}: {said.getvalue()}")
        if path.name == "README.md" and not self._made.exists():
            (self.folder / "out").rename(self._made)

    def _shell(self, place: str, command: str, *, must: bool) -> str:
        """What a command prints. It is a fault if it fails and `must` not."""
        began = time.monotonic()
        self._make_room(command)
        # The .venv of the folder is that of the project, so nothing has to be installed.
        command = re.sub(r"^make run\b", "make --silent --old-file=.venv/base.stamp run", command)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.report.ran += 1
        print(f"{place}: {command}: {time.monotonic() - began:.0f} s", flush=True)
        if must and done.returncode:
            self.report.faults.append(f"{place}: {command}: ended with {done.returncode}\n{done.stdout}")
        return done.stdout

    def _make_room(self, command: str) -> None:
        """Remove what README.md made where a page makes it itself."""
        found = re.search(r"--output (out/[\w-]+)", command)
        if found and found[1] not in self._written and self._made.exists():
            for each in self.folder.glob(f"{found[1]}*"):
                if each.name == Path(found[1]).name or each.name.startswith(f"{Path(found[1]).name}-"):
                    shutil.rmtree(each)
        self._written |= {found[1]} if found else set()

    def _python(self, place: str, program: str, names: dict[str, Any]) -> str:
        said = io.StringIO()
        self.report.ran += 1
        try:
            with contextlib.redirect_stdout(said):
                exec(compile(program, place, "exec"), names)
        except Exception:
            self.report.faults.append(f"{place}: {traceback.format_exc()}")
        print(f"{place}: Python", flush=True)
        return said.getvalue()

    def _compare(self, place: str, block: Block, expected: str, printed: str) -> None:
        self.report.outputs += 1
        printed = printed.replace(f"{self.folder}/", "")
        if not same(expected, printed, numbers="varies" not in block.marks):
            self.report.faults.append(f"{place}: prints\n{printed.rstrip()}\nnot\n{expected}")


def main(arguments: Sequence[str]) -> int:
    sys.path.insert(0, str(ROOT))
    os.environ["HF_HUB_OFFLINE"] = "1"
    pages = [Path(each).resolve() for each in arguments] or PAGES
    with tempfile.TemporaryDirectory(prefix="docs-check-") as name:
        folder = Path(name).resolve()
        os.chdir(folder)
        make_inputs(folder)
        with store(folder) as (remote, variables):
            runner = Runner(folder, remote, variables)
            for page in pages:
                runner.page(page)
    report = runner.report
    print("\nnot run:", *report.left_out, sep="\n  ")
    for each in report.faults:
        print(f"\n{each}")
    print(f"\n{report.ran} run, {report.outputs} outputs compared, {len(report.left_out)} not run")
    print(f"{len(report.faults)} faults" if report.faults else "no fault")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
