"""Readers of Wikipedia dumps side by side: ours, gensim's, mwparserfromhell, wikipedia2vec's, and commands on a dump.

    python -m benchmarks.extraction --input enwiki.xml.bz2 --plain --only phrasemill gensim mwparserfromhell
    python -m benchmarks.extraction --input enwiki-fragment.xml.bz2 --megabytes 10 --json mentions.json

Each reads the dump in its own process, on one core; commands use --workers processes. MB are 10^6 bytes of the input:
with --plain the XML, decompressed beforehand; otherwise a bz2 of several streams, made from varied copies of the dump
up to this size, and the time includes decompression. Memory is that of all processes, libraries included.

Links are all that each reader gives: wikipedia2vec also counts links to categories and other wikis, gensim links to
other wikis, mwparserfromhell links in templates and references. `gensim` and `mwparserfromhell` give only text.
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
from typing import NamedTuple, TypeAlias

from benchmarks import harness
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder

PAGES_A_STREAM = 100  # as in Wikimedia's multistream dumps

Reader: TypeAlias = Callable[[Path], Iterator[tuple[str, int]]]
"""A function from a dump to the text of each article and the number of its links."""


class Result(NamedTuple):
    links: int
    seconds: float  # by the clock
    cpu_seconds: float
    peak_mib: int


# ---- Readers, in one process


def phrasemill() -> Reader:
    return lambda path: ((document.text, len(document.links)) for document in harness.documents(path))


def phrasemill_mentions() -> Reader:
    """Links in their sentences, filtered; titles are not resolved, because redirects are known only at the end."""
    from transforms.mentions.finding import Source, Target, find_mentions
    from transforms.mentions.options import MentionRules

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
    """What its build-dump-db does with a page, unpacked for counting."""
    from wikipedia2vec.dump_db import _parse_page
    from wikipedia2vec.utils.wiki_dump_reader import WikiDumpReader

    def read(path: Path) -> Iterator[tuple[str, int]]:
        for page in WikiDumpReader(str(path)):
            parsed = _parse_page(page, None)
            if parsed is not None and parsed[0] == "page":
                paragraphs = pickle.loads(zlib.decompress(parsed[1][1]))[0]
                yield "".join(text for text, _, _ in paragraphs), sum(len(links) for _, links, _ in paragraphs)

    return read


def wikitexts() -> Callable[[Path], Iterator[str]]:
    """The wikitext of each article of a dump, plain or .bz2, by gensim's reader."""
    from gensim.corpora.wikicorpus import extract_pages

    def read(path: Path) -> Iterator[str]:
        with bz2.open(path) if path.suffix == ".bz2" else path.open("rb") as stream:
            for _, text, _ in extract_pages(stream, filter_namespaces=("0",)):
                if not text.lstrip().lower().startswith("#redirect"):
                    yield text

    return read


def gensim() -> Reader:
    from gensim.corpora.wikicorpus import filter_wiki

    articles = wikitexts()
    return lambda path: ((filter_wiki(text), 0) for text in articles(path))


def gensim_links() -> Reader:
    from gensim.corpora.wikicorpus import filter_wiki, find_interlinks

    articles = wikitexts()
    return lambda path: ((filter_wiki(text), len(find_interlinks(text))) for text in articles(path))


def mwparserfromhell() -> Reader:
    import mwparserfromhell as parser

    articles = wikitexts()
    return lambda path: ((parser.parse(text).strip_code(), 0) for text in articles(path))


def mwparserfromhell_links() -> Reader:
    import mwparserfromhell as parser

    parsed = (lambda articles: lambda path: map(parser.parse, articles(path)))(wikitexts())
    return lambda path: ((code.strip_code(), len(code.filter_wikilinks())) for code in parsed(path))


READERS = {
    each.__name__: each
    for each in (
        *(phrasemill, phrasemill_mentions, wikipedia2vec),
        *(gensim, gensim_links, mwparserfromhell, mwparserfromhell_links),
    )
}


def read_all(reader: Callable[[], Reader], path: Path) -> Result:
    """Read a dump in this process; the time does not include loading the reader."""
    read = reader()
    with harness.Meter() as meter:
        links = sum(links for _, links in read(path))
    return Result(links, meter.seconds, meter.cpu_seconds, meter.peak >> 20)


# ---- Commands: the arguments of Python, and a function that counts the links in the output


def pipeline(module: str, mentions: str, dump: Path, folder: Path, workers: int) -> tuple[list[str], Callable[[], int]]:
    def links() -> int:
        stages = read_manifest(Folder(str(folder / mentions))).stages
        return next(stage.ledger.read for stage in stages if stage.ledger)

    arguments = ["--input", str(dump), "--output", str(folder / module), "--workers", str(workers)]
    return ["-m", f"pipelines.{module}", *arguments], links


def wikipedia2vec_db(dump: Path, folder: Path, workers: int) -> tuple[list[str], Callable[[], int]]:
    """The command build-dump-db of wikipedia2vec."""

    def links() -> int:
        from wikipedia2vec.dump_db import DumpDB

        db = DumpDB(str(folder / "dump.db"))
        return sum(len(paragraph.wiki_links) for title in db.titles() for paragraph in db.get_paragraphs(title))

    arguments = ["build-dump-db", str(dump), str(folder / "dump.db"), "--pool-size", str(workers)]
    return ["-c", "from wikipedia2vec.cli import cli; cli()", *arguments], links


COMMANDS: dict[str, Callable[[Path, Path, int], tuple[list[str], Callable[[], int]]]] = {
    "find_mentions": partial(pipeline, "find_mentions", "find_mentions"),
    "mine_mentions": partial(pipeline, "mine_mentions", "mine_mentions-mentions"),
    "wikipedia2vec_db": wikipedia2vec_db,
}


def result(name: str, dump: Path, folder: Path, workers: int) -> Result:
    if name in READERS:
        return harness.apart(partial(read_all, READERS[name], dump))[0]
    command, links = COMMANDS[name](dump, folder, workers)
    with harness.Meter() as meter:
        harness.run(*command)
    return Result(links(), meter.seconds, meter.cpu_seconds, meter.added >> 20)


# ---- The input


def larger(dump: Path, megabytes: float, out: Path) -> None:
    """Write a bz2 of at least `megabytes`, in many streams, from varied copies of a dump."""
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


_TITLE = re.compile(r"(<title>[^<]*)(</title>)")
_PAGE = "  <page>"


def main() -> None:
    names = [*READERS, *COMMANDS]
    parser = harness.arguments(__doc__)
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="a dump, plain or .bz2")
    parser.add_argument("--plain", action="store_true", help="read the XML, decompressed")
    parser.add_argument("--megabytes", type=float, default=0, help="make the input this large, as bz2")
    parser.add_argument("--workers", type=int, default=2, help="processes of a command (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=f"of {names}")
    options = parser.parse_args()
    installed = find_spec("wikipedia2vec") is not None
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder, "dump.xml" if options.plain else "dump.xml.bz2")
        if options.plain:
            dump.write_text(harness.xml_of(options.input), encoding="utf-8")
        else:
            larger(options.input, options.megabytes, dump)
        megabytes = dump.stat().st_size / 1e6
        results = {
            name: result(name, dump, Path(folder), options.workers)
            for name in options.only
            if installed or not name.startswith("wikipedia2vec")
        }
    rows = []
    for name, each in results.items():
        speeds = megabytes / each.seconds, megabytes / each.cpu_seconds
        rows.append((name, *speeds, round(each.links / each.cpu_seconds), each.peak_mib, each.links))
    headings = ("", "MB/s", "MB/CPU s", "links/CPU s", "MiB", "links")
    harness.show(f"{dump.name} of {options.input.name}, {megabytes:.1f} MB", headings, rows)
    if len(results) < len(options.only):
        print("wikipedia2vec: skipped: not installed; pip install wikipedia2vec")
    harness.write(options.json, {"megabytes": megabytes, **{name: each._asdict() for name, each in results.items()}})


if __name__ == "__main__":
    main()
