"""Links out of a dump side by side: ours, wikipedia2vec's dump reader, gensim's interlinks, mwparserfromhell.

    python -m benchmarks.mentions --input enwiki-fragment.xml.bz2 --megabytes 10 --json mentions.json

The input is a bz2 of several streams, made of varied copies of the dump until it has so many megabytes (10^6 bytes, as
stored); decompressing counts. Readers run in a process of their own on one core, commands with --workers processes.
Links are all that each gives: wikipedia2vec counts those to categories and other wikis too, gensim those to other
wikis, mwparserfromhell also those in templates and references.
"""

from __future__ import annotations

import argparse
import bz2
import json
import pickle
import re
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.endurance import varied
from benchmarks.extraction import Reader, documents, measure, measure_apart, phrasemill, wikitexts
from benchmarks.memory import PeakMemory
from schemas.errors import UserError
from schemas.manifest import read_manifest
from schemas.storage import Folder

PAGES_A_STREAM = 100  # as in Wikimedia's multistream dumps


class Result(NamedTuple):
    """`cpu_seconds` and `peak_mib` are of all processes; libraries are counted in the memory, not in readers' time."""

    links: int
    seconds: float  # by the clock
    cpu_seconds: float
    peak_mib: float


class Gives(NamedTuple):
    places: str  # where the offsets of a link point into
    redirects: str
    more: str


# ---- Readers, in one process


def phrasemill_mentions() -> Reader:
    """Links in their sentences, filtered; each title is taken for itself, for redirects are known at the end only."""
    from transforms.mentions.finding import MentionRules, Source, Target, find_mentions

    class Titles(dict[str, Target]):
        def __missing__(self, title: str) -> Target:
            return Target("", title, "title")

    rules, titles = MentionRules(), Titles()

    def read(path: Path) -> Iterator[tuple[str, int]]:
        for document in documents(path):
            links = [link._asdict() for link in document.links]
            filtered: Counter[str] = Counter()
            found = sum(1 for _ in find_mentions(Source(document.title, document.text, links), titles, rules, filtered))
            assert found + filtered.total() == len(links)
            yield document.text, len(links)

    return read


def wikipedia2vec() -> Reader:
    """What its build-dump-db does with a page, unpacked again to count."""
    from wikipedia2vec.dump_db import _parse_page
    from wikipedia2vec.utils.wiki_dump_reader import WikiDumpReader

    def read(path: Path) -> Iterator[tuple[str, int]]:
        for page in WikiDumpReader(str(path)):
            parsed = _parse_page(page, None)
            if parsed is not None and parsed[0] == "page":
                paragraphs = pickle.loads(zlib.decompress(parsed[1][1]))[0]
                yield "".join(text for text, _, _ in paragraphs), sum(len(links) for _, links, _ in paragraphs)

    return read


def gensim() -> Reader:
    from gensim.corpora.wikicorpus import filter_wiki, find_interlinks

    articles = wikitexts()
    return lambda path: ((filter_wiki(text), len(find_interlinks(text))) for text in articles(path))


def mwparserfromhell() -> Reader:
    import mwparserfromhell as parser

    articles = wikitexts()

    def read(path: Path) -> Iterator[tuple[str, int]]:
        for text in articles(path):
            code = parser.parse(text)
            yield code.strip_code(), len(code.filter_wikilinks())

    return read


READERS = {each.__name__: each for each in (phrasemill, phrasemill_mentions, wikipedia2vec, gensim, mwparserfromhell)}


# ---- Commands


class Run(NamedTuple):
    """Arguments of Python, and what counts the links in the output."""

    command: list[str]
    links: Callable[[], int]


def find_mentions(dump: Path, folder: Path, workers: int) -> Run:
    return _pipeline("find_mentions", dump, folder / "find" / "mentions", "mentions", workers)


def mine_mentions(dump: Path, folder: Path, workers: int) -> Run:
    return _pipeline("mine_mentions", dump, folder / "mine" / "pairs", "pairs-mentions", workers)


def _pipeline(module: str, dump: Path, output: Path, mentions: str, workers: int) -> Run:
    def links() -> int:
        stages = read_manifest(Folder(str(output.parent / mentions))).stages
        return next(stage.ledger.read for stage in stages if stage.ledger)

    arguments = ["--input", str(dump), "--output", str(output), "--workers", str(workers)]
    return Run(["-m", f"pipelines.{module}", *arguments], links)


def wikipedia2vec_db(dump: Path, folder: Path, workers: int) -> Run:
    """Its command build-dump-db."""

    def links() -> int:
        from wikipedia2vec.dump_db import DumpDB

        db = DumpDB(str(folder / "dump.db"))
        return sum(len(paragraph.wiki_links) for title in db.titles() for paragraph in db.get_paragraphs(title))

    arguments = ["build-dump-db", str(dump), str(folder / "dump.db"), "--pool-size", str(workers)]
    return Run(["-c", "from wikipedia2vec.cli import cli; cli()", *arguments], links)


COMMANDS = {each.__name__: each for each in (find_mentions, mine_mentions, wikipedia2vec_db)}

GIVES = {
    "phrasemill": Gives("the text", "kept aside", ""),
    "phrasemill_mentions": Gives("text, sentence", "kept aside", "filters with reasons"),
    "wikipedia2vec": Gives("a paragraph", "kept aside", ""),
    "gensim": Gives("none", "none", ""),
    "mwparserfromhell": Gives("none", "none", ""),
    "find_mentions": Gives("text, sentence", "resolved", "Parquet, ids of entities"),
    "mine_mentions": Gives("text, sentence", "resolved", "and pairs, aliases"),
    "wikipedia2vec_db": Gives("a paragraph", "at look-up", "LMDB"),
}


def measure_run(run: Run) -> Result:
    before, own = resource.getrusage(resource.RUSAGE_CHILDREN), psutil.Process().memory_info().rss
    began = time.perf_counter()
    with PeakMemory() as peak:
        command = [sys.executable, *run.command]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    seconds = time.perf_counter() - began
    if ended.returncode:
        raise UserError(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout[-2_000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Result(run.links(), seconds, cpu, (peak.bytes - own) / 2**20)


# ---- The input


def larger(dump: Path, megabytes: float, out: Path) -> int:
    """A bz2 of varied copies of a dump, many streams, at least so large; returns how many copies."""
    data = dump.read_bytes()
    xml = (bz2.decompress(data) if dump.suffix == ".bz2" else data).decode()
    if _PAGE not in xml:
        raise UserError(f"{dump}: has no line with {_PAGE!r}, as Wikimedia's dumps have for each page")
    one = len(data) if dump.suffix == ".bz2" else len(bz2.compress(data))
    copies = max(1, -(-int(megabytes * 1e6) // one))
    with out.open("wb") as file:
        for number, piece in enumerate(varied(xml, copies)):
            if number > 1:  # the first is the head, the second the dump's own pages
                piece = _TITLE.sub(rf"\1 (copy {number})\2", piece)
            pages = piece.split(_PAGE)
            for first in range(0, len(pages), PAGES_A_STREAM):
                stream = _PAGE.join(pages[first : first + PAGES_A_STREAM])
                file.write(bz2.compress((stream if first == 0 else _PAGE + stream).encode()))
    return copies


_TITLE = re.compile(r"(<title>[^<]*)(</title>)")
_PAGE = "  <page>"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mentions", description=__doc__.split("\n\n")[0])
    parser.add_argument("--input", nargs="+", type=Path, required=True, metavar="FILE", help="a dump, plain or .bz2")
    parser.add_argument("--megabytes", type=float, default=0, help="make the input this large, as bz2 (default: as is)")
    parser.add_argument("--workers", type=int, default=2, help="of the commands (default: %(default)s)")
    parser.add_argument("--only", metavar="NAME,...", help=f"of {', '.join((*READERS, *COMMANDS))}")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write {name: figures} there")
    parser.add_argument("--measure", choices=list(READERS), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if missing := [path for path in options.input if not path.is_file()]:
        parser.error(f"no such file: {missing[0]}")
    if options.measure:
        print(json.dumps(measure(READERS[options.measure], options.input)))
        return
    chosen = [name.strip() for name in options.only.split(",")] if options.only else [*READERS, *COMMANDS]
    if unknown := [name for name in chosen if name not in READERS and name not in COMMANDS]:
        parser.error(f"--only {unknown[0]}: no such reader or command")
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder, "dump.xml.bz2")
        copies = larger(options.input[0], options.megabytes, dump)
        megabytes = dump.stat().st_size / 1e6
        results = {name: _measured(name, dump, Path(folder), options.workers) for name in chosen}
    done = {name: result for name, result in results.items() if result}
    _print(f"{copies} copies of {options.input[0].name}, {megabytes:.1f} MB of bz2", megabytes, done)
    for name in (name for name in chosen if name not in done):
        print(f"{name}: skipped: not installed; pip install wikipedia2vec")
    if options.json:
        figures = {name: {key: round(value, 3) for key, value in each._asdict().items()} for name, each in done.items()}
        options.json.write_text(json.dumps({"megabytes": megabytes, **figures}, indent=2) + "\n", encoding="utf-8")


def _measured(name: str, dump: Path, folder: Path, workers: int) -> Result | None:
    """None if it is not installed."""
    if name.startswith("wikipedia2vec") and not find_spec("wikipedia2vec"):
        return None
    if name in READERS:
        each = measure_apart(name, [dump], module="benchmarks.mentions")
        return Result(each.links, each.seconds, each.cpu_seconds, each.peak_mib)
    return measure_run(COMMANDS[name](dump, folder, workers))


def _print(title: str, megabytes: float, results: dict[str, Result]) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("", no_wrap=True)
    for heading in ("MB/s", "MB/CPU s", "links/CPU s", "MiB", "links"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("places in", "redirects", ""):
        table.add_column(heading)
    for name, each in results.items():
        speeds = f"{megabytes / each.seconds:.2f}", f"{megabytes / each.cpu_seconds:.2f}"
        counts = f"{each.links / each.cpu_seconds:,.0f}", f"{each.peak_mib:,.0f}", f"{each.links:,}"
        table.add_row(name, *speeds, *counts, *GIVES[name])
    Console(width=max(130, Console().width)).print(table)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"{error}")
