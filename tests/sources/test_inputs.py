"""What --input names: files, folders, globs, addresses, datasets; names, notices and errors."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from transforms.sources.formats import FORMAT_OBJECTS
from transforms.sources.inputs import (
    FORMATS,
    Datasets,
    InputError,
    RawFiles,
    _pattern,
    file_sha256,
    resolve_inputs,
)

XML = b'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" xml:lang="en"></mediawiki>'


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with a file of each format and other files that such folders have."""
    folder = tmp_path / "corpus"
    (folder / "books" / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "books" / "a.txt").write_text("A book.")
    (folder / "books" / "deep" / "b.txt").write_text("Another.")
    (folder / "dump.xml.bz2").write_bytes(bz2.compress(XML))
    (folder / "pile.jsonl.gz").write_bytes(gzip.compress(b'{"text": "x"}\n'))
    pq.write_table(pa.table({"text": ["x"]}), folder / "wiki.parquet")
    (folder / "wiki.tokens").write_bytes(b" \n = Title = \n \n Text . \n")
    (folder / "README.txt").write_text("About this corpus.")
    (folder / "cover.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    (folder / ".DS_Store").write_bytes(b"\0")
    (folder / ".git" / "x.txt").write_text("hidden")
    return folder


def names(*inputs: Path | str, input_format: str | None = None) -> list[tuple[str, str]]:
    resolved = resolve_inputs([str(each) for each in inputs], input_format=input_format)
    assert isinstance(resolved, RawFiles)
    return [(each.file.name, each.format.name) for each in resolved.inputs]


def notices(*inputs: Path | str) -> tuple[str, ...]:
    resolved = resolve_inputs([str(each) for each in inputs])
    assert isinstance(resolved, RawFiles)
    return resolved.notices


ALL = [
    ("books/a.txt", "text"),
    ("books/deep/b.txt", "text"),
    ("dump.xml.bz2", "wikipedia-xml"),
    ("pile.jsonl.gz", "jsonl"),
    ("wiki.parquet", "parquet"),
    ("wiki.tokens", "wikitext-corpus"),
]


def test_a_folder(corpus: Path) -> None:
    assert names(corpus) == ALL
    (notice,) = notices(corpus)
    assert "'README.txt', 'cover.png'" in notice


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("books/*.txt", ["a.txt"]),
        ("books/**/*.txt", ["a.txt", "deep/b.txt"]),
        ("**/?.txt", ["books/a.txt", "books/deep/b.txt"]),
        ("boo*/[ab].txt", ["books/a.txt"]),
        ("books/[!a]*/*", ["deep/b.txt"]),
        ("*.[xj]*", ["dump.xml.bz2", "pile.jsonl.gz"]),
    ],
)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_globs(corpus: Path, scheme: str, pattern: str, expected: list[str]) -> None:
    assert [name for name, _ in names(f"{scheme}{corpus}/{pattern}")] == expected


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("*.txt", "a.txt", True),
        ("*.txt", "a/b.txt", False),
        ("**/*.txt", "a.txt", True),
        ("**/*.txt", "a/b/c.txt", True),
        ("**", "a/b", True),
        ("a?c", "a/c", False),
        ("[!a].txt", "/.txt", False),
        ("a.b", "axb", False),
    ],
)
def test_patterns(glob: str, path: str, matches: bool) -> None:
    assert bool(_pattern(glob).fullmatch(path)) is matches


def test_files_and_addresses_have_their_own_name(corpus: Path) -> None:
    assert names(corpus / "books" / "a.txt") == [("a.txt", "text")]
    assert names(f"file://{corpus}/books") == [("a.txt", "text"), ("deep/b.txt", "text")]
    weird = corpus / "books" / "[1].txt"
    weird.write_text("Brackets in its name.")
    assert names(weird) == [("[1].txt", "text")]


def test_order_and_overlap_change_nothing(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus)
    (corpus / "link.txt").symlink_to(corpus / "books" / "a.txt")
    inputs = ["books", f"{corpus}/books/a.txt", "books/../books/*.txt", "link.txt"]
    assert len({(tuple(names(*order)), notices(*order)) for order in itertools.permutations(inputs)}) == 1
    assert names(*inputs) == [("a.txt", "text"), ("deep/b.txt", "text")]
    assert notices(*inputs) == (f"named more than once, read once: '{corpus}/books/a.txt'",)


def test_the_same_name_and_other_content(corpus: Path) -> None:
    for folder, text in {"x": "one", "y": "two", "z": "one"}.items():
        (corpus / folder).mkdir()
        (corpus / folder / "same.txt").write_text(text)
    x, y, z = (corpus / folder / "same.txt" for folder in "xyz")
    one, two = (file_sha256(fs.LocalFileSystem(), str(path))[:8] for path in (x, y))
    expected = sorted([(f"same~{one}.txt", "text"), (f"same~{two}.txt", "text")])
    assert all(names(*order) == expected for order in itertools.permutations([x, y, z]))
    assert notices(x, z) == (f"'{z}' has the name and the content of '{x}'; read once",)
    assert names(x, z) == [("same.txt", "text")]
    assert "2 different files are named 'same.txt'" in notices(x, y)[0]


def test_file_sha256(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert file_sha256(fs.LocalFileSystem(), str(tmp_path / "x")) == expected


@pytest.mark.parametrize(
    ("inputs", "input_format", "says"),
    [
        ([], None, "no input; name one with --input"),
        (["{}/boks"], None, "no 'boks' in '{}'; did you mean 'books'?"),
        (["{}/books/nothing-like-it"], None, "'{}/books' holds 'a.txt', 'deep'"),
        (["{}/gone/a.txt"], None, "no 'gone' in '{}'"),
        (["file://{}/books/c.txt"], None, "did you mean"),
        (["{}/books/*.xml"], None, "matches no file; '{}/books' holds 'a.txt'"),
        (["{}/gone/*.xml"], None, "no 'gone' in '{}'"),
        (["{}/empty"], None, "holds no file"),
        (["{}/images"], None, "holds nothing to read: 'one.png'; the formats are wikipedia-xml, wikipedia-html"),
        (["{}/zero.txt"], None, "'{}/zero.txt' is empty"),
        (["{}/cover.png"], None, "begins with b'\\x89PNG\\r\\n\\x1a\\n\\x00' and is of no known format; the formats"),
        (["{}/array.json"], None, "a JSON array must become one object a line"),
        (["{}/notes"], None, "--input-format=text reads it as a book"),
        (["{}/cut.gz"], None, "ends inside a gzip member"),
        (["{}/books"], "jsonlines", "--input-format=jsonlines is none of wikipedia-xml, wikipedia-html"),
        (["{}/books"], "jsonlin", "did you mean 'jsonl'?"),
        (["{}/books/a.txt"], "parquet", "does not fit --input-format=parquet"),
        (["{}/cover.png"], "text", "does not fit --input-format=text"),
        (["nowhere://x/y"], None, "nowhere://x/y: cannot be opened"),
        (["{}/dataset", "{}/books"], None, "'{}/dataset' is a dataset and '{}/books/a.txt' a raw file"),
        (["{}/dataset"], "text", "--input names a dataset"),
    ],
)
def test_errors(corpus: Path, inputs: list[str], input_format: str | None, says: str) -> None:
    for folder in ("empty", "images", "dataset"):
        (corpus / folder).mkdir()
    (corpus / "images" / "one.png").write_bytes(b"\x89PNG\0")
    (corpus / "zero.txt").touch()
    (corpus / "array.json").write_text(json.dumps([{"text": "x"}]))
    (corpus / "notes").write_text("plain text")
    (corpus / "cut.gz").write_bytes(gzip.compress(b"x")[:10])
    (corpus / "dataset" / "manifest.json").write_text("{}")
    with pytest.raises(InputError) as caught:
        resolve_inputs([each.format(corpus) for each in inputs], input_format=input_format)
    assert says.replace("{}", str(corpus)) in str(caught.value)


def test_input_format_overrides_names(corpus: Path) -> None:
    odd = corpus / "records.dat"
    odd.write_bytes(b'{"text": "x"}\n')
    assert names(odd, input_format="jsonl") == [("records.dat", "jsonl")]
    assert names(odd, input_format="text") == [("records.dat", "text")]
    assert names(corpus, input_format="text")[0] == ("books/a.txt", "text")


def test_damaged_and_empty_files_of_a_folder_reach_their_reader(tmp_path: Path) -> None:
    (tmp_path / "zero.txt").touch()
    for name in ("a.jsonl.gz", "b.xml.bz2", "c.tar.gz", "d.txt.zst"):
        (tmp_path / name).write_bytes(b"\0\1\2 not compressed" * 9)
    assert [format_ for _, format_ in names(tmp_path)] == ["jsonl", "wikipedia-xml", "archive", "text", "text"]
    assert names(tmp_path / "b.xml.bz2") == [("b.xml.bz2", "wikipedia-xml")]


def test_datasets(corpus: Path) -> None:
    for name in ("documents", "sentences"):
        (corpus / name / "data").mkdir(parents=True)
        (corpus / name / "manifest.json").write_text("{}")
        pq.write_table(pa.table({"text": ["x"]}), corpus / name / "data" / "train.parquet")
    both = [str(corpus / "sentences"), str(corpus / "documents"), str(corpus / "documents") + "/"]
    resolved = resolve_inputs(both)
    assert isinstance(resolved, Datasets)
    assert [folder.path for folder in resolved.folders] == [str(corpus / "documents"), str(corpus / "sentences")]
    # Below a folder of raw files they are left out, with a notice.
    assert names(corpus) == ALL
    assert any("documents" in notice and "datasets" in notice for notice in notices(corpus))


def test_formats_are_named_after_themselves() -> None:
    assert [(name, each.name) for name, each in FORMATS.items()] == [(name, name) for name in FORMAT_OBJECTS]
    assert all(each.version >= 1 for each in FORMATS.values())
