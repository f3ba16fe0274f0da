"""Books: Gutenberg's boilerplate, titles and licences, encodings, damage, and the real books."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pyarrow import fs

from transforms.sources.books import TEXT, book_of, without_contents
from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Corrupt, Document, Filtered, Item, Rejected
from transforms.sources.options import ReadOptions

LOCAL = fs.LocalFileSystem()

BODY = "Call me Ishmael.\n\nSome years ago, never mind how long precisely, I thought I would sail about a little."


def read(path: Path, *, name: str | None = None, options: ReadOptions | None = None) -> list[Item]:
    file = InputFile(str(path), name or path.name, path.stat().st_size)
    (segment,) = TEXT.split(LOCAL, file, target_bytes=1 << 20)
    return list(TEXT.read(LOCAL, file, segment, options=options or ReadOptions()))


def written(folder: Path, data: bytes, name: str = "book.txt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("header", "footer", "title", "url"),
    [
        (
            "\ufeffThe Project Gutenberg eBook of Moby Dick\n\nThis ebook is for the use of anyone.\n\n"
            "Title: Moby Dick; Or, The Whale\n\n\nAuthor: Herman Melville\n\n"
            "Release date: July 1, 2001 [eBook #2701]\n                Most recently updated: August 18, 2021\n\n"
            "*** START OF THE PROJECT GUTENBERG EBOOK MOBY DICK; OR, THE WHALE ***\n\n\n"
            "Produced by: Daniel Lazarus, Jonesey, and David Widger\n\n\n",
            "\n\n\n\n*** END OF THE PROJECT GUTENBERG EBOOK MOBY DICK; OR, THE WHALE ***\n\nUpdated editions will\n",
            "Moby Dick; Or, The Whale",
            "https://www.gutenberg.org/ebooks/2701",
        ),
        (
            "Project Gutenberg's Moby Dick, by Herman Melville\n\nTitle: Moby Dick\n       A Whale\n\n"
            "Release Date: February 21, 2005 [EBook #15]\n\nCharacter set encoding: ASCII\n\n"
            "***START OF THIS PROJECT GUTENBERG EBOOK MOBY\nDICK***\n\n\n"
            "E-text prepared by Juliet Sutherland, Emmy, and the Online\nDistributed Proofreading Team\n"
            "(https://www.pgdp.net)\n\n\n\n[Transcriber's Note: Spelling [sic] as in the original.\n\n"
            "Errors are listed below.]\n\n\n",
            "\n\nTRANSCRIBER'S NOTES:\n\nA comma.\n\nEnd of Project Gutenberg's Moby Dick, by Herman Melville\n\n"
            "***END OF THIS PROJECT GUTENBERG EBOOK MOBY DICK***\n\n******* This file should be named\n",
            "Moby Dick: A Whale",
            "https://www.gutenberg.org/ebooks/15",
        ),
        (
            "The Project Gutenberg Etext of Moby Dick, by Herman Melville\n\n***START**THE SMALL PRINT!**FOR PUBLIC "
            "DOMAIN ETEXTS**START***\nWhy is this here?\n*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*"
            "Ver.04.29.93*END*\n\n\nThis etext was prepared by Daniel Lazarus.\n\n",
            "\n\n\nEnd of The Project Gutenberg Etext of Moby Dick, by Melville\n",
            "Moby Dick",
            "",
        ),
    ],
    ids=["new", "2005", "1993"],
)
def test_gutenberg_header_and_footer(header: str, footer: str, title: str, url: str) -> None:
    book = book_of(header + BODY + footer, name="pg.txt")
    assert book == (title, url, "public domain", BODY)


def test_a_copyrighted_gutenberg_book_is_not_in_the_public_domain() -> None:
    header = "** This is a COPYRIGHTED Project Gutenberg eBook, Details Below **\n\nTitle: New\n\n"
    start = "*** START OF THE PROJECT GUTENBERG EBOOK NEW ***\n\n"
    assert book_of(header + start + BODY, name="x.txt").licence == "unknown"


def test_joined_gutenberg_files_keep_all_their_books() -> None:
    one = (
        "Title: One\n\n*** START OF THE PROJECT GUTENBERG EBOOK ONE ***\n\nFirst.\n\n"
        "*** END OF THE PROJECT GUTENBERG EBOOK ONE ***\n"
    )
    two = one.replace("One", "Two").replace("ONE", "TWO").replace("First", "Second")
    assert book_of(one + "licence\n" + two + "licence\n", name="x.txt").text == "First.\n\nSecond."


def test_standard_ebooks_are_known_by_name_and_typography() -> None:
    text = "Left Munich\u2060—at once."
    url = "https://standardebooks.org/ebooks/h-g-wells/the-war-of-the-worlds"
    name = "h-g-wells_the-war-of-the-worlds.txt"
    assert book_of(text, name=name) == ("The War of the Worlds", url, "public domain", "Left Munich—at once.")
    assert book_of(text, name="war.txt").licence == "unknown"
    assert book_of("Left Munich—at once.", name=name).licence == "unknown"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "A NOVEL\n\nCONTENTS\n\nI. The Whale 1\nII. The Sea 9\n\nCHAPTER I.\n\nThe Whale\n\nIt blew.",
            "A NOVEL\n\nCHAPTER I.\n\nThe Whale\n\nIt blew.",
        ),
        ("Contents\nPAGE\nPreface ... v\nThe End ... 90\n\nPREFACE\n\nRead.", "PREFACE\n\nRead."),
        # kept if it is not certain: the entry does not occur again, or there is prose in between
        ("Contents\n\nLoomings\n\nThe Carpet-Bag\n\nCHAPTER 1\n\nIt blew.",) * 2,
        (f"Contents\n\nLoomings\n\nOne\n\n{'It blew. ' * 20}\n\nLoomings\n\nIt blew.",) * 2,
        ("The contents of the chest\n\nGold\n\nSilver\n\nGold",) * 2,
    ],
)
def test_contents(text: str, expected: str) -> None:
    assert without_contents(text) == expected


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfcaf\xc3\xa9\r\nnoir", "café\nnoir"),
        ("Слово и слово".encode("utf-16-le"), "Слово и слово"),
        (b"Character set encoding: ISO-8859-1\n*** START OF THIS PROJECT GUTENBERG EBOOK X ***\n\ncaf\xe9", "café"),
    ],
)
def test_encodings(tmp_path: Path, data: bytes, text: str) -> None:
    (item,) = read(written(tmp_path, data))
    assert isinstance(item, Document)
    assert item.text == text
    assert item.doc_id == "books:book.txt"
    assert item.source == "books"


@pytest.mark.parametrize(
    ("data", "reason", "byte", "says"),
    [
        (b"", "empty_file", 0, "is empty"),
        (b"good\nbad \xff here", "bad_utf8", 9, "0xff at byte 9"),
        ("text".encode("utf-16") + b"\x00\xdca\0", "bad_utf8", 0, "is not UTF-16, which its first bytes promise, at "),
        ("text".encode("utf-16")[:-1], "truncated", 0, "ends inside a character of UTF-16"),
    ],
)
def test_bad_files(tmp_path: Path, data: bytes, reason: str, byte: int, says: str) -> None:
    (item,) = read(written(tmp_path, data))
    assert isinstance(item, Corrupt)
    assert (item.reason, item.byte) == (reason, byte)
    assert says in item.message
    assert "book.txt" in item.message


def test_compressed_books(tmp_path: Path) -> None:
    packed = gzip.compress(b"line\n" * 100_000 + b"the end")
    (item,) = read(written(tmp_path, packed, "book.txt.gz"))
    assert isinstance(item, Document)
    assert item.text.endswith("the end")
    (item,) = read(written(tmp_path, packed[:-100], "cut.txt.gz"))
    assert isinstance(item, Corrupt)
    assert item.reason == "truncated"


def test_limits_and_nothing(tmp_path: Path) -> None:
    (item,) = read(written(tmp_path, b"x" * 101), options=ReadOptions(max_document_bytes=100))
    assert isinstance(item, Rejected)
    assert item.reason == "document_too_large"
    assert read(written(tmp_path, b" \n\n")) == [Filtered("no_text")]


def test_recognises() -> None:
    assert TEXT.recognises("a/b.TXT.gz", b"Call me")
    assert not TEXT.recognises("a/b.txt", b"\x00\xff\x01binary")
    assert not TEXT.recognises("a/README.md", b"# Title")


def test_real_books(test_data: Path) -> None:
    """The same novel with a paragraph in each line and hard-wrapped: the same paragraphs in the same characters."""
    folder = test_data / "corpora" / "books"
    books = {}
    for path in sorted(folder.glob("*.txt")):
        (item,) = read(path)
        assert isinstance(item, Document)
        assert item.licence == "public domain"
        assert item.title
        assert item.url
        assert not set(item.text) & set("_“”‘’…\u00a0\u2060\ufeff[]")
        assert "Gutenberg" not in item.text
        assert "Produced by" not in item.text
        books[path.stem] = [line for line in item.text.split("\n") if line]
    ours = books["jane-austen_pride-and-prejudice"]
    wrapped = books["gutenberg-1342-raw"]
    assert wrapped[:4] == ["PRIDE AND PREJUDICE", "By Jane Austen", "Chapter 1", ours[1]]
    assert wrapped[-1] == ours[-1]
    assert abs(len(wrapped) - len(ours)) < 0.02 * len(ours)
    same = len(set(wrapped) & set(ours))
    assert same > 0.35 * len(ours)  # the editions differ in punctuation and in hyphens


def test_segments_are_whole_files(tmp_path: Path) -> None:
    path = written(tmp_path, b"x" * 5_000)
    file = InputFile(str(path), "x.txt", 5_000)
    assert TEXT.split(LOCAL, file, target_bytes=100) == [Segment(0, 5_000)]
