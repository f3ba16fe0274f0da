"""Wikipedia extraction side by side: ours (with its links), gensim's WikiCorpus filter, mwparserfromhell.

    python -m benchmarks.extraction --input enwiki.xml.bz2 --json extraction.json

Each reader reads all inputs in a process of its own: CPU seconds, megabytes (10^6 bytes) of XML a CPU second, peak
memory of the process, libraries included. The XML is decompressed beforehand, so that all do the same work: from XML to
the plain text of the articles. gensim's filter drops the links; mwparserfromhell's strip_code keeps their text only.
"""

from __future__ import annotations

import bz2
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from benchmarks import harness

Reader: TypeAlias = Callable[[Path], Iterator[tuple[str, int]]]
"""A dump to the text of each article and the number of its links."""


class Measured(NamedTuple):
    documents: int
    characters: int
    links: int
    seconds: float  # by the clock
    cpu_seconds: float
    peak_mib: int


def phrasemill() -> Reader:
    return lambda path: ((document.text, len(document.links)) for document in harness.documents(path))


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


def mwparserfromhell() -> Reader:
    import mwparserfromhell as parser

    articles = wikitexts()
    return lambda path: ((parser.parse(text).strip_code(), 0) for text in articles(path))


READERS = (phrasemill, gensim, mwparserfromhell)


def measure(reader: Callable[[], Reader], paths: list[Path]) -> Measured:
    """Read everything in this process; the time is without loading the reader."""
    read = reader()
    with harness.Meter() as meter:
        found = [(len(text), links) for path in paths for text, links in read(path)]
    characters, links = map(sum, zip(*found, strict=True))
    return Measured(len(found), characters, links, meter.seconds, meter.cpu_seconds, meter.peak >> 20)


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--input", nargs="+", type=Path, required=True, metavar="FILE", help="dumps, plain or .bz2")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plain = [Path(folder, f"{number}.xml") for number in range(len(arguments.input))]
        for path, given in zip(plain, arguments.input, strict=True):
            path.write_text(harness.xml_of(given), encoding="utf-8")
        megabytes = sum(path.stat().st_size for path in plain) / 1e6
        figures = {each.__name__: harness.apart(partial(measure, each, plain))[0] for each in READERS}
    headings = ("reader", "MB/CPU s", "CPU s", "peak MiB", "documents", "characters", "links")
    rows = [
        (
            name,
            megabytes / each.cpu_seconds,
            each.cpu_seconds,
            each.peak_mib,
            each.documents,
            each.characters,
            each.links,
        )
        for name, each in figures.items()
    ]
    harness.show(f"{megabytes:.1f} MB of XML", headings, rows)
    harness.write(arguments.json, {name: each._asdict() for name, each in figures.items()})


if __name__ == "__main__":
    main()
