"""The shipped sample: what it holds, that it is the cut its script says, and whom it names."""

from __future__ import annotations

import bz2
import gzip
import re
import runpy
import tarfile
from pathlib import Path

import pytest

from transforms.sources.sample import BOOKS, WIKIPEDIA, sample_inputs

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wikipedia() -> bytes:
    return sample_inputs()[0].read_bytes()


def test_inputs_exist_and_stay_small():
    sizes = {path.name: path.stat().st_size for path in sample_inputs()}
    assert list(sizes) == [WIKIPEDIA, BOOKS]
    assert 500_000 <= sum(sizes.values()) <= 1_500_000


def test_dump_is_multistream_with_whole_pages(wikipedia: bytes):
    streams = []
    while wikipedia:
        decompressor = bz2.BZ2Decompressor()
        streams.append(decompressor.decompress(wikipedia))
        assert decompressor.eof
        wikipedia = decompressor.unused_data
    header, *middle, footer = streams
    assert header.startswith(b"<mediawiki ")
    assert header.endswith(b"</siteinfo>\n")
    assert [stream.count(b"<page>") for stream in middle] == [20] * 7 + [1]
    assert all(stream.startswith(b"  <page>") and stream.endswith(b"</page>\n") for stream in middle)
    assert footer == b"</mediawiki>\n"


def test_texts_begin_with_a_chapters_heading():
    with tarfile.open(sample_inputs()[1]) as archive:
        first_lines = {}
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None
            first_lines[member.name] = file.readline().decode().strip()
    assert len(first_lines) == 16
    assert first_lines["mary-shelley_frankenstein_01.txt"] == "Letter I"
    assert first_lines["mary-shelley_frankenstein_04.txt"] == "Chapter VI"
    assert first_lines["jane-austen_pride-and-prejudice_04.txt"] == "X"


def test_readme_names_every_article_with_its_revision(wikipedia: bytes):
    readme = (sample_inputs()[0].parent / "README.md").read_text()
    pages = bz2.decompress(wikipedia).decode().split("  <page>\n")[1:]
    articles = [page for page in pages if "<redirect " not in page]
    named = re.findall(r"^\| \[(.+)\]\(\S+&oldid=(\d+)\)", readme, re.MULTILINE)
    assert named == [
        re.search(r"<title>(.*?)</title>.*?<revision>\s*<id>(\d+)</id>", page, re.DOTALL).groups()  # type: ignore[union-attr]
        for page in articles
    ]


def test_cut_is_reproducible(test_data: Path, tmp_path: Path):
    """The script gives the shipped sample again (compressed bytes may differ between builds of zlib)."""
    runpy.run_path(str(ROOT / "scripts" / "make_sample.py"))["make_sample"](test_data / "corpora", tmp_path)
    shipped = sample_inputs()[0].parent
    for name, decompress in ((WIKIPEDIA, bz2.decompress), (BOOKS, gzip.decompress), ("README.md", bytes)):
        assert decompress((tmp_path / name).read_bytes()) == decompress((shipped / name).read_bytes()), name
