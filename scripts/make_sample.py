"""Cut the shipped sample out of a larger dump fragment and whole books.

    python scripts/make_sample.py ../shared/data/corpora transforms/sources/sample

The rule is fixed, so that anyone can cut the same sample from the same files:

- Wikipedia: every redirect of the fragment, and every article that links to or is linked from at least
  MIN_NEIGHBOURS other articles of the fragment, after redirects are followed. Pages are copied byte for byte in the
  dump's order, between the dump's own header and footer, and packed like the real multistream dumps: a bz2 stream for
  the header, one for every PAGES_PER_STREAM pages, one for the footer.
- Books: the first CHAPTERS chapters of each of BOOKS, CHAPTERS_PER_FILE to a text file, in a .tar.gz (as Books3 was
  shipped). Files have 3,000 to 18,000 words, and enough of their edition's typography to be recognised by it.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import html
import io
import re
import tarfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

MIN_NEIGHBOURS = 2
PAGES_PER_STREAM = 20
CHAPTERS = 12
CHAPTERS_PER_FILE = 3
BOOKS = {
    "bram-stoker_dracula": "Bram Stoker, *Dracula* (1897)",
    "h-g-wells_the-war-of-the-worlds": "H. G. Wells, *The War of the Worlds* (1898)",
    "jane-austen_pride-and-prejudice": "Jane Austen, *Pride and Prejudice* (1813)",
    "mary-shelley_frankenstein": "Mary Shelley, *Frankenstein* (1818, revised 1831)",
}

PAGE = re.compile(rb"^  <page>\n.*?^  </page>\n", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[\[([^\[\]|#<>{}]+)")
CHAPTER_HEADING = re.compile(r"^(?:(?:Chapter|Letter) )?[IVXLC]+$", re.MULTILINE)


class Page(NamedTuple):
    """One page of a dump: its bytes, and what the cut and the attribution need."""

    xml: bytes
    title: str
    redirect: str  # the title it points to, empty for an article
    revision: str
    timestamp: str
    link_targets: frozenset[str]


def read_page(xml: bytes) -> Page:
    text = xml.decode()

    def first(pattern: str) -> str:
        found = re.search(pattern, text, re.DOTALL)
        return html.unescape(found[1]) if found else ""

    targets = (found.strip().replace("_", " ") for found in LINK.findall(first(r"<text[^>]*>(.*)</text>")))
    return Page(
        xml=xml,
        title=first(r"<title>(.*?)</title>"),
        redirect=first(r'<redirect title="(.*?)"'),
        revision=first(r"<revision>\s*<id>(\d+)</id>"),
        timestamp=first(r"<timestamp>(.*?)</timestamp>"),
        link_targets=frozenset(target[:1].upper() + target[1:] for target in targets),
    )


def choose_pages(pages: list[Page]) -> list[Page]:
    """The redirects, and the articles with enough neighbours, in the given order."""
    articles = {page.title for page in pages if not page.redirect}
    redirects = {page.title: page.redirect for page in pages if page.redirect}
    neighbours: dict[str, set[str]] = defaultdict(set)
    for page in pages:
        for target in {redirects.get(target, target) for target in page.link_targets}:
            if {page.title, target} <= articles and target != page.title:
                neighbours[page.title].add(target)
                neighbours[target].add(page.title)
    return [page for page in pages if page.redirect or len(neighbours[page.title]) >= MIN_NEIGHBOURS]


def multistream(header: bytes, pages: list[Page], footer: bytes) -> bytes:
    groups = [pages[start : start + PAGES_PER_STREAM] for start in range(0, len(pages), PAGES_PER_STREAM)]
    streams = [header, *(b"".join(page.xml for page in group) for group in groups), footer]
    return b"".join(bz2.compress(stream) for stream in streams)


def parts(book: str) -> list[str]:
    """The first chapters of a book, a few in each part; a chapter extends from its heading to the next heading."""
    starts = [match.start() for match in CHAPTER_HEADING.finditer(book)][: CHAPTERS + 1 : CHAPTERS_PER_FILE]
    return [book[start:end].strip() + "\n" for start, end in pairwise(starts)]


def tar_gz(files: dict[str, str]) -> bytes:
    """An archive without owners or times, so that the same texts give the same bytes."""
    tarred = io.BytesIO()
    with tarfile.open(fileobj=tarred, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(tarred.getvalue(), mtime=0)


def readme(pages: list[Page]) -> str:
    """What the sample is, its licences, and the attribution that CC BY-SA requires."""
    articles = [page for page in pages if not page.redirect]
    rows = "\n".join(
        f"| [{page.title}](https://en.wikipedia.org/w/index.php?title={quote(page.title.replace(' ', '_'))}"
        f"&oldid={page.revision}) | {page.revision} | {page.timestamp[:10]} |"
        for page in articles
    )
    books = "\n".join(
        f"- {described}: https://standardebooks.org/ebooks/{name.replace('_', '/')}"
        for name, described in BOOKS.items()
    )
    return f"""# The sample

Written by `scripts/make_sample.py`, which states the rule it was cut by. What a run without `--input` reads.

## enwiki-sample.xml.bz2: {len(articles)} articles and {len(pages) - len(articles)} redirects of the English Wikipedia

An excerpt of Wikimedia's dump of the English Wikipedia: whole pages, unmodified, as MediaWiki XML in bz2 streams of
{PAGES_PER_STREAM} pages. The text is by Wikipedia contributors, under the Creative Commons Attribution-ShareAlike
licence (CC BY-SA 4.0, https://creativecommons.org/licenses/by-sa/4.0/; when these revisions were written Wikipedia
used version 3.0 of it). What is made of the text and passed on, such as a corpus of contexts, is under the same
licence and names its articles: the columns `title`, `url` and `licence` are for that. Each link below leads to the
revision in the sample; the page's history there names its authors. The redirects have no text of their own.

| article | revision | date |
|---|---|---|
{rows}

## books-sample.tar.gz: the first {CHAPTERS} chapters of {len(BOOKS)} novels

In the public domain; from the editions of Standard Ebooks, whose work is dedicated to the public domain (CC0 1.0,
https://creativecommons.org/publicdomain/zero/1.0/). {CHAPTERS_PER_FILE} chapters a file, a paragraph a line,
characters as they came (curly quotes, no-break spaces, word joiners).

{books}
"""


def make_sample(corpora: Path, out: Path) -> None:
    """Write the sample's three files into `out` from `corpora`/wikipedia and `corpora`/books."""
    dump = bz2.decompress((corpora / "wikipedia" / "enwiki-fragment.xml.bz2").read_bytes())
    found = list(PAGE.finditer(dump))
    header, footer = dump[: found[0].start()], dump[found[-1].end() :]
    pages = choose_pages([read_page(match[0]) for match in found])
    texts = {
        f"{name}_{number:02}.txt": text
        for name in BOOKS
        for number, text in enumerate(parts((corpora / "books" / f"{name}.txt").read_text()), start=1)
    }
    (out / "enwiki-sample.xml.bz2").write_bytes(multistream(header, pages, footer))
    (out / "books-sample.tar.gz").write_bytes(tar_gz(texts))
    (out / "README.md").write_text(readme(pages))


def main() -> None:
    parser = argparse.ArgumentParser(description="Cut the shipped sample.")
    parser.add_argument("corpora", type=Path, help="folder with wikipedia/enwiki-fragment.xml.bz2 and books/*.txt")
    parser.add_argument("out", type=Path, help="folder to write into")
    options = parser.parse_args()
    make_sample(options.corpora, options.out)


if __name__ == "__main__":
    main()
