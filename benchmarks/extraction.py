"""Wikipedia extraction side by side: ours (with its links), gensim's WikiCorpus filter, mwparserfromhell.

    python -m benchmarks.extraction --input enwiki.xml.bz2 --json extraction.json

Each reader reads all inputs in a process of its own: CPU seconds, megabytes (10^6 bytes) of XML a CPU second,
peak memory of the process. The XML is decompressed beforehand, so that all do the same work: from XML to the plain
text of the articles. gensim's filter drops the links; mwparserfromhell's strip_code keeps their text only.
"""

from __future__ import annotations

import argparse
import bz2
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pyarrow import fs

from transforms.sources.formats import InputFile, ReadOptions, Segment
from transforms.sources.items import Document
from transforms.sources.streams import chunks
from transforms.sources.wikipedia import WIKIPEDIA_XML


class Measured(NamedTuple):
    """`peak_mib` is the process's, libraries included; `loaded_mib` what they took before the first page."""

    documents: int
    characters: int
    links: int
    cpu_seconds: float
    mb_per_second: float
    peak_mib: float
    loaded_mib: float
    seconds: float  # by the clock


Reader: TypeAlias = Callable[[Path], Iterator[tuple[str, int]]]
"""A dump to the text of each article and the number of its links."""


def documents(path: Path) -> Iterator[Document]:
    file = InputFile(str(path), path.name, path.stat().st_size)
    for item in WIKIPEDIA_XML.read(fs.LocalFileSystem(), file, Segment(0, file.size), options=ReadOptions()):
        if isinstance(item, Document):
            yield item


def phrasemill() -> Reader:
    return lambda path: ((document.text, len(document.links)) for document in documents(path))


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


READERS = {each.__name__: each for each in (phrasemill, gensim, mwparserfromhell)}


def peak_mib() -> float:
    """Of this process since it began; getrusage's figure is at least what the process that started it held."""
    status = Path("/proc/self/status")
    held = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.exists() else None
    return (int(held[1]) if held else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024


def measure(reader: Callable[[], Reader], paths: list[Path]) -> Measured:
    """Read everything in this process."""
    read = reader()
    loaded = peak_mib()
    start, began = time.process_time(), time.perf_counter()
    articles = characters = links = 0
    for path in paths:
        for text, text_links in read(path):
            articles += 1
            characters += len(text)
            links += text_links
    seconds, wall = time.process_time() - start, time.perf_counter() - began
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    return Measured(articles, characters, links, seconds, megabytes / seconds, peak_mib(), loaded, wall)


def measure_apart(reader: str, paths: list[Path], *, module: str = "benchmarks.extraction") -> Measured:
    """`python -m <module> --measure <reader>` in a process of its own."""
    command = [sys.executable, "-m", module, "--measure", reader, "--input", *map(str, paths)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Measured(*json.loads(answer.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--input", nargs="+", type=Path, required=True, metavar="FILE", help="dumps, compressed or not")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures here")
    parser.add_argument(
        "--readers", default=",".join(READERS), help="which, separated by commas (default: %(default)s)"
    )
    parser.add_argument("--measure", choices=list(READERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(READERS[arguments.measure], arguments.input)))
        return
    local = fs.LocalFileSystem()
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        plain = []
        for number, path in enumerate(arguments.input):
            plain.append(Path(folder, f"{number}.xml"))
            with plain[-1].open("wb") as out:
                for _, data in chunks(local, str(path)):
                    out.write(data)
        print(f"{'reader':18}{'MB/s':>8}{'CPU s':>8}{'peak MiB':>10}{'documents':>11}{'characters':>12}{'links':>8}")
        for reader in arguments.readers.split(","):
            each = measure_apart(reader, plain)
            figures[reader] = {key: round(value, 3) for key, value in each._asdict().items()}
            print(
                f"{reader:18}{each.mb_per_second:8.2f}{each.cpu_seconds:8.2f}{each.peak_mib:10.0f}"
                f"{each.documents:11,}{each.characters:12,}{each.links:8,}"
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
