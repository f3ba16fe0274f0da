"""UTF-16 and UTF-32 are read as UTF-8 is; NULs are removed wherever they stand."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from pyarrow import fs

from transforms.sources.formats import InputFile
from transforms.sources.inputs import FORMATS, InputError, RawFiles, resolve_inputs
from transforms.sources.items import Corrupt, Document, Item
from transforms.sources.options import ReadOptions
from transforms.sources.streams import chunks

LOCAL = fs.LocalFileSystem()
PACKED: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}
ENCODED: dict[str, Callable[[str], bytes]] = {
    "utf-8-sig": lambda text: text.encode("utf-8-sig"),
    "utf-16-le": lambda text: ("\ufeff" + text).encode("utf-16-le"),
    "utf-16-be": lambda text: ("\ufeff" + text).encode("utf-16-be"),
    "utf-32-le": lambda text: ("\ufeff" + text).encode("utf-32-le"),
    "utf-32-be": lambda text: ("\ufeff" + text).encode("utf-32-be"),
}
UNMARKED: dict[str, Callable[[str], bytes]] = {
    "le without a mark": lambda text: text.encode("utf-16-le"),
    "be without a mark": lambda text: text.encode("utf-16-be"),
}


@examples(10)
@given(text=st.text(), encoding=st.sampled_from([*ENCODED][1:]), packed=st.sampled_from([*PACKED]))
def test_bytes_become_utf8(tmp_path_factory: pytest.TempPathFactory, text: str, encoding: str, packed: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"wide.txt{packed}"
    path.write_bytes(PACKED[packed](ENCODED[encoding](text)))
    assert b"".join(data for _, data in chunks(LOCAL, str(path))) == text.encode()


def items(path: Path, data: bytes) -> list[Item]:
    """The items of a file in its own format, in many segments, where it can be cut."""
    path.write_bytes(data)
    found = resolve_inputs([str(path)])
    assert isinstance(found, RawFiles)
    (input_,) = found.inputs
    file = InputFile(str(path), path.name, len(data))
    segments = input_.format.split(LOCAL, file, target_bytes=len(data) // 50 + 1)
    return [each for one in segments for each in input_.format.read(LOCAL, file, one, options=ReadOptions())]


FILES = {
    "a.txt": "Café 一.\n\nTwo 😀.\n",
    "a.jsonl": '{"text": "Café 上.", "title": "A"}\n\n{"text": "Two."}\n',
    "a.tokens": " = A = \n \n Café . \n \n = B = \n \n Two . \n",
    "a.xml": '<mediawiki xml:lang="en"><siteinfo><dbname>w</dbname></siteinfo>\n'
    + "".join(
        f"<page><title>T{n}</title><ns>0</ns><id>{n}</id><revision><text>{text}</text></revision></page>\n"
        for n, text in enumerate(("Café.", "Two 上."))
    )
    + "</mediawiki>",
    "a.ndjson": '{"name": "A", "identifier": 1, "article_body": {"html": "<p>Café.</p>"}}\n'
    '{"name": "B", "identifier": 2, "article_body": {"html": "<p>Two.</p>"}}\n',
}


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("encoding", [*ENCODED, *UNMARKED])
@pytest.mark.parametrize("name", FILES)
def test_documents_do_not_depend_on_the_encoding(tmp_path: Path, name: str, encoding: str, packed: str) -> None:
    def documents(data: bytes) -> list[tuple[str, str]]:
        found = items(tmp_path / f"{name}{packed}", PACKED[packed](data))
        assert all(isinstance(each, Document) for each in found)
        return [(each.title, each.text) for each in found if isinstance(each, Document)]

    expected = documents(FILES[name].encode())
    assert len(expected) == (1 if name == "a.txt" else 2)
    assert documents((ENCODED | UNMARKED)[encoding](FILES[name])) == expected


@pytest.mark.parametrize("nul", ["\0One two.", "One\0 two.", "One two.\0", "One two." + " " * 70_000 + "\0"])
@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.txt", "%s"),
        ("a.jsonl", '{"title": "T\\u0000", "text": "%s"}'),
        ("a.tokens", " = T\0 = \n \n%s\n"),
        ("a.ndjson", '{"name": "T\\u0000", "identifier": 1, "article_body": {"html": "%s"}}'),
    ],
)
def test_a_nul_is_removed_wherever_it_stands(tmp_path: Path, name: str, form: str, nul: str) -> None:
    """In JSON it is written as an escape: a bare one, and any in XML, is damage."""
    text = nul.replace("\0", "\\u0000") if "{" in form else nul
    (item,) = items(tmp_path / name, (form % text).encode())
    assert isinstance(item, Document)
    assert item.text == "One two."
    assert item.title == ("" if name == "a.txt" else "T")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", "Слово".encode("cp1251"), "is not UTF-8: 0xd1 at byte 0; convert it"),
        ("a.txt", "Words".encode("utf-16-le")[:-1], "ends inside a character of UTF-16-LE"),
        ("a.jsonl", b'\0{"text": "a"}', "is not JSON"),
    ],
)
def test_what_cannot_be_told_is_named(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    assert message in said(tmp_path / name, data)


def said(path: Path, data: bytes) -> str:
    """The error for a file: of its recognition, or of its first record."""
    try:
        first = items(path, data)[0]
    except InputError as error:
        return str(error)
    return first.message if isinstance(first, Corrupt) else ""


def test_all_text_formats_are_here() -> None:
    found = (next(each for each in FORMATS if FORMATS[each].recognises(name, FILES[name].encode())) for name in FILES)
    assert {*found} == {*FORMATS} - {"archive", "parquet"}
