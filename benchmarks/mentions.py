"""Links out of a dump side by side: ours, wikipedia2vec's dump reader, gensim's interlinks, mwparserfromhell.

    python -m benchmarks.mentions --input enwiki-fragment.xml.bz2 --megabytes 10 --json mentions.json

The input is a bz2 of several streams, made of varied copies of the dump until it has so many megabytes (10^6 bytes, as
stored); decompressing counts. Readers run in a process of their own on one core, commands with --workers processes.
Links are all that each gives: wikipedia2vec counts those to categories and other wikis too, gensim those to other
wikis, mwparserfromhell also those in templates and references. Memory is that of all processes, libraries included.
"""

from __future__ import annotations

import bz2
import pickle
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks import harness
from benchmarks.extraction import Reader, measure, phrasemill, wikitexts

PAGES_A_STREAM = 100  # as in Wikimedia's multistream dumps


class Result(NamedTuple):
    links: int
    seconds: float  # by the clock
    cpu_seconds: float
    peak_mib: int


# ---- Readers, in one process


def phrasemill_mentions() -> Reader:
    """Links in their sentences, filtered; each title is taken for itself, for redirects are known at the end only."""
    from transforms.mentions.finding import MentionRules, Source, Target, find_mentions

    class Titles(dict[str, Target]):
        def __missing__(self, title: str) -> Target:
            return Target("", title, "title")

    rules, titles = MentionRules(), Titles()

    def read(path: Path) -> Iterator[tuple[str, int]]:
        for document in harness.documents(path):
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


# ---- Commands: each gives the arguments of Python, and what counts the links in the output


def find_mentions(dump: Path, folder: Path, workers: int) -> tuple[list[str], Callable[[], int]]:
    return _pipeline("find_mentions", dump, folder / "find" / "mentions", "mentions", workers)


def mine_mentions(dump: Path, folder: Path, workers: int) -> tuple[list[str], Callable[[], int]]:
    return _pipeline("mine_mentions", dump, folder / "mine" / "pairs", "pairs-mentions", workers)


def _pipeline(
    module: str, dump: Path, output: Path, mentions: str, workers: int
) -> tuple[list[str], Callable[[], int]]:
    def links() -> int:
        stages = harness.read_manifest(harness.Folder(str(output.parent / mentions))).stages
        return next(stage.ledger.read for stage in stages if stage.ledger)

    arguments = ["--input", str(dump), "--output", str(output), "--workers", str(workers)]
    return ["-m", f"pipelines.{module}", *arguments], links


def wikipedia2vec_db(dump: Path, folder: Path, workers: int) -> tuple[list[str], Callable[[], int]]:
    """Its command build-dump-db."""

    def links() -> int:
        from wikipedia2vec.dump_db import DumpDB

        db = DumpDB(str(folder / "dump.db"))
        return sum(len(paragraph.wiki_links) for title in db.titles() for paragraph in db.get_paragraphs(title))

    arguments = ["build-dump-db", str(dump), str(folder / "dump.db"), "--pool-size", str(workers)]
    return ["-c", "from wikipedia2vec.cli import cli; cli()", *arguments], links


COMMANDS = {each.__name__: each for each in (find_mentions, mine_mentions, wikipedia2vec_db)}


def result(name: str, dump: Path, folder: Path, workers: int) -> Result:
    if name in READERS:
        each = harness.apart(partial(measure, READERS[name], [dump]))[0]
        return Result(each.links, each.seconds, each.cpu_seconds, each.peak_mib)
    command, links = COMMANDS[name](dump, folder, workers)
    with harness.Meter() as meter:
        harness.run(*command)
    return Result(links(), meter.seconds, meter.cpu_seconds, meter.added >> 20)


# ---- The input


def larger(dump: Path, megabytes: float, out: Path) -> int:
    """A bz2 of varied copies of a dump, many streams, at least so large; returns how many copies."""
    xml = harness.xml_of(dump)
    if _PAGE not in xml:
        raise SystemExit(f"{dump}: has no line with {_PAGE!r}, as Wikimedia's dumps have for each page")
    copies = max(1, -(-int(megabytes * 1e6) // len(bz2.compress(xml.encode()))))
    with out.open("wb") as file:
        for number, piece in enumerate(harness.varied(xml, copies)):
            if number > 1:  # the first is the head, the second the dump's own pages
                piece = _TITLE.sub(rf"\1 (copy {number})\2", piece)
            pages = piece.split(_PAGE)
            for first in range(0, len(pages), PAGES_A_STREAM):
                stream = _PAGE.join(pages[first : first + PAGES_A_STREAM])
                file.write(bz2.compress((stream if first == 0 else _PAGE + stream).encode()))
    return copies


_TITLE = re.compile(r"(<title>[^<]*)(</title>)")
_PAGE = "  <page>"


def main() -> None:
    names = [*READERS, *COMMANDS]
    parser = harness.arguments(__doc__)
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="a dump, plain or .bz2")
    parser.add_argument("--megabytes", type=float, default=0, help="make the input this large, as bz2 (default: as is)")
    parser.add_argument("--workers", type=int, default=2, help="of the commands (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=f"of {names}")
    options = parser.parse_args()
    installed = find_spec("wikipedia2vec") is not None
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder, "dump.xml.bz2")
        copies = larger(options.input, options.megabytes, dump)
        megabytes = dump.stat().st_size / 1e6
        results = {
            name: result(name, dump, Path(folder), options.workers)
            for name in options.only
            if installed or not name.startswith("wikipedia2vec")
        }
    rows = []
    for name, each in results.items():
        links = round(each.links / each.cpu_seconds)
        speeds = megabytes / each.seconds, megabytes / each.cpu_seconds
        rows.append((name, *speeds, links, each.peak_mib, each.links))
    headings = ("", "MB/s", "MB/CPU s", "links/CPU s", "MiB", "links")
    harness.show(f"{copies} copies of {options.input.name}, {megabytes:.1f} MB of bz2", headings, rows)
    if len(results) < len(options.only):
        print("wikipedia2vec: skipped: not installed; pip install wikipedia2vec")
    harness.write(options.json, {"megabytes": megabytes, **{name: each._asdict() for name, each in results.items()}})


if __name__ == "__main__":
    main()
