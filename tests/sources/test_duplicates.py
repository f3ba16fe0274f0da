"""Exact duplicates: what is dropped, what stays, and the offsets of the remaining links."""

from __future__ import annotations

import bz2
import itertools
import json
import re
from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import parse_options, rows, run_inline
from properties import examples

from pipelines import corpus
from schemas.manifest import Manifest, read_manifest
from schemas.storage.folder import Folder
from transforms.sources.duplicates import (
    KEYS,
    MIN_PARAGRAPH,
    PARAGRAPH_BITS,
    KeyRows,
    find_drops,
    without_paragraphs,
)
from transforms.sources.items import Document, Link

LONG = "It is a truth universally acknowledged that a single man is rich."
OTHER = "However little known his feelings may be on his first entering it."
SHORT = "Yes."
assert len(SHORT) < MIN_PARAGRAPH <= min(len(LONG), len(OTHER))

Drop = tuple[int, int, int, str]


def drops(mode: str, shards: list[list[tuple[str, str]]]) -> list[Drop]:
    """What is dropped from documents (id, text) in shards: (shard, row, paragraph, reason)."""
    keys = KeyRows(mode)
    places = {}
    for shard, documents in enumerate(shards):
        for row, (doc_id, text) in enumerate(documents):
            number = len(places)
            places[number] = shard, row
            keys.add(Document(doc_id, "", "", "", "", text), number)
    order = [(name, "ascending") for name in ("key_hi", "key_lo", "kind", "item")]
    table = keys.table()
    assert table.schema == KEYS
    found = find_drops(table.take(pc.sort_indices(table, sort_keys=order))).to_pylist()
    for row in found:
        first = places[row["first"] >> PARAGRAPH_BITS]
        assert row["repeats"] in ("", shards[first[0]][first[1]][0])
        assert row["first"] < row["item"]
    return sorted(
        (*places[row["item"] >> PARAGRAPH_BITS], (row["item"] & ((1 << PARAGRAPH_BITS) - 1)) - 1, row["reason"])
        for row in found
    )


@pytest.mark.parametrize(
    ("mode", "shards", "expected"),
    [
        ("off", [], []),
        ("off", [[("a", LONG), ("b", LONG)]], []),
        # one id: the first stays, the same text is a copy, another text is a fault
        ("off", [[("a", LONG), ("a", LONG)]], [(0, 1, -1, "duplicate_document")]),
        ("off", [[("a", LONG)], [("a", OTHER), ("b", LONG)]], [(1, 0, -1, "duplicate_id")]),
        ("documents", [[("a", LONG), ("b", OTHER)], [("c", LONG)]], [(1, 0, -1, "duplicate_document")]),
        ("documents", [[("a", LONG), ("b", LONG + " ")]], []),
        ("documents", [[("a", ""), ("b", "")]], [(0, 1, -1, "duplicate_document")]),
        ("paragraphs", [[("a", f"{LONG}\n\n{SHORT}"), ("b", f"{SHORT}\n{LONG}")]], [(0, 1, 1, "duplicate_paragraph")]),
        ("paragraphs", [[("a", f"{LONG}\n\n{LONG}")]], [(0, 0, 2, "duplicate_paragraph")]),
        # an id, a text and a paragraph with the same characters are different things
        ("paragraphs", [[(LONG, LONG)]], []),
        ("documents", [[(LONG, OTHER), (OTHER, LONG)]], []),
    ],
)
def test_what_is_dropped(mode, shards, expected):
    assert drops(mode, shards) == expected


def test_the_first_is_by_place_whatever_the_hash():
    for number in range(20):
        text = f"{LONG} {number}"
        assert drops("documents", [[("x", OTHER)], [("b", text)], [("a", text)]]) == [(2, 0, -1, "duplicate_document")]


@pytest.mark.parametrize(
    ("lines", "dropped", "kept"),
    [
        (["a", "b", "c"], {1}, ["a", "c"]),
        (["a", "b"], set(), ["a", "b"]),
        (["a", "b"], {0, 1}, []),
        (["a", "", "b", "", "c"], {2}, ["a", "", "c"]),
        (["a", "", "b"], {2}, ["a"]),
        (["a", "", "b"], {0}, ["b"]),
        (["a", "", "b", "", "c"], {0, 4}, ["b"]),
    ],
)
def test_lines_that_stay(lines, dropped, kept):
    assert without_paragraphs("\n".join(lines), [], dropped) == ("\n".join(kept), [])


def test_links_move_with_their_lines():
    text = "😀 see Emma\n\nand Persuasion too\n\nthe end: Emma"
    links = [Link(match.start(), match.end(), match[0]) for match in re.finditer("Emma|Persuasion|end: Emma", text)]
    kept, moved = without_paragraphs(text, [*links, Link(6, 20, "over lines")], {2})
    assert kept == "😀 see Emma\n\nthe end: Emma"
    assert [kept[link.start_char : link.end_char] for link in moved] == ["Emma", "end: Emma"]
    assert without_paragraphs(text, links, {0, 2, 4}) == ("", [])


LINES = st.lists(st.sampled_from(["", "x", "é😀 y", "zz z"]), max_size=8)


@given(LINES, st.sets(st.integers(0, 8)), st.data())
def test_any_lines_and_links(lines, dropped, data):
    text = "\n".join(lines)
    places = st.tuples(st.integers(0, len(text)), st.integers(1, 6)).map(lambda place: (place[0], sum(place)))
    spans = [span for span in data.draw(st.lists(places, max_size=6)) if span[1] <= len(text)]
    links = [Link(start, end, f"{number}") for number, (start, end) in enumerate(spans)]
    kept, moved = without_paragraphs(text, links, dropped)
    # Lines with words stay in order; no empty line is at an end or next to another.
    assert [line for line in kept.split("\n") if line] == [
        line for number, line in enumerate(lines) if line and number not in dropped
    ]
    assert "\n\n\n" not in kept
    assert kept == kept.strip("\n")
    # A link stays if all of it stays, and its anchor has the same words.
    before = {link.target_title: text[link.start_char : link.end_char] for link in links}
    after = {link.target_title: kept[link.start_char : link.end_char] for link in moved}
    assert after == {name: before[name] for name in after}
    number_of = {link.target_title: text[: link.start_char].count("\n") for link in links}
    assert set(after) == {
        name for name, words in before.items() if "\n" not in words and number_of[name] not in dropped
    }


def test_time_is_linear_in_lines_and_links():
    n = 50_000
    text = "\n".join(f"line {number:06d}" for number in range(n))
    links = [Link(number * 12, number * 12 + 4, "T") for number in range(n)]
    kept, moved = without_paragraphs(text, links, {3})
    assert (kept.count("\n"), len(moved)) == (n - 2, n - 1)


# ---- Through the stages


def extract(folder: Path, texts: list[str], *flags: str, files: int = 1) -> Manifest:
    """Documents from JSON lines in some files."""
    source = folder / "in"
    source.mkdir(parents=True)
    for number in range(files):
        lines = [json.dumps({"text": text}) + "\n" for text in texts[number::files]]
        (source / f"{number}.jsonl").write_text("".join(lines) or "\n")
    given_inputs = corpus.given([str(source)], input_format=None)
    dataset = corpus.documents(given_inputs, parse_options(*flags), Folder(str(folder / "out")))
    assert dataset.build is not None
    run_inline(dataset.build)
    return read_manifest(dataset.folder)


def in_order(texts: list[str], files: int) -> list[str]:
    return [text for number in range(files) for text in texts[number::files]]


TEXTS = st.lists(st.lists(st.sampled_from([LONG, OTHER, SHORT]), min_size=1, max_size=4).map("\n\n".join), max_size=8)


@examples(12)
@given(TEXTS, st.sampled_from([30, 200, 10_000]), st.integers(1, 2))
def test_any_documents(tmp_path_factory, texts, shard_bytes, files):
    read = in_order(texts, files)
    folder = tmp_path_factory.mktemp("documents")
    manifest = extract(folder, texts, "--dedup=documents", f"--shard-bytes={shard_bytes}", files=files)
    kept = list(dict.fromkeys(read))
    assert [row["text"] for row in rows(Folder(str(folder / "out")))] == kept
    ledger = manifest.stage("drop").ledger
    assert ledger is not None
    assert ledger.filtered.total() == len(read) - len(kept)


@examples(12)
@given(TEXTS, st.sampled_from([30, 200, 10_000]), st.integers(1, 2))
def test_any_paragraphs(tmp_path_factory, texts, shard_bytes, files):
    folder = tmp_path_factory.mktemp("paragraphs")
    extract(folder, texts, "--dedup=paragraphs", f"--shard-bytes={shard_bytes}", files=files)
    seen: Counter[str] = Counter()
    kept = []
    for text in in_order(texts, files):
        paragraphs = []
        for paragraph in text.split("\n\n"):
            seen[paragraph] += 1
            if seen[paragraph] == 1 or len(paragraph) < MIN_PARAGRAPH:
                paragraphs.append(paragraph)
        # A document that lost a paragraph must keep one that is not a short line.
        whole = len(paragraphs) == text.count("\n\n") + 1
        if whole or any(len(paragraph) >= MIN_PARAGRAPH for paragraph in paragraphs):
            kept.append("\n\n".join(paragraphs))
    assert [row["text"] for row in rows(Folder(str(folder / "out")))] == [text for text in kept if text]


def test_only_the_shards_that_lose_something_are_written_again(tmp_path):
    texts = [f"{LONG} {number}" for number in range(6)]
    plain = extract(tmp_path / "plain", texts, "--shard-bytes=60")
    manifest = extract(tmp_path / "dedup", [*texts[:3], texts[0], *texts[3:]], "--dedup=documents", "--shard-bytes=60")
    assert [shard.rows for shard in manifest.shards] == [1, 1, 1, 0, 1, 1, 1]
    ledger = manifest.stage("drop").ledger
    assert ledger is not None
    assert (ledger.read, ledger.written) == (1, 0)
    kept = [shard.sha256 for shard in manifest.shards[:3]]
    assert kept == [shard.sha256 for shard in plain.shards[:3]]


def test_real_paragraphs_and_links(tmp_path, test_data):
    """A wiki, and a mirror in which every page has one more paragraph: of the mirror, that and short lines stay."""
    dump = bz2.decompress((test_data / "corpora/wikipedia/enwiki-minidump.xml.bz2").read_bytes()).decode()
    number = itertools.count()
    mirror = re.sub(
        r"(<text[^>]*>)(?!#)",
        lambda text: (
            f"{text[0]}The mirror says of page {next(number)} what [[Emma|nobody]] else has ever said of it before.\n\n"
        ),
        dump.replace("<dbname>enwiki<", "<dbname>mirrorwiki<"),
    )
    (tmp_path / "a.xml").write_text(dump)
    (tmp_path / "b.xml").write_text(mirror)
    found = corpus.given([str(tmp_path / "a.xml"), str(tmp_path / "b.xml")], input_format=None)
    dataset = corpus.documents(found, parse_options("--dedup=paragraphs"), Folder(str(tmp_path / "out")))
    assert dataset.build is not None
    run_inline(dataset.build)
    documents = rows(dataset.folder)
    paragraphs = Counter(line for row in documents for line in row["text"].split("\n") if len(line) >= MIN_PARAGRAPH)
    assert set(paragraphs.values()) == {1}
    anchors: dict[str, Counter[tuple[str, str]]] = {"enwiki": Counter(), "mirrorwiki": Counter()}
    for row in documents:
        for link in row["links"]:
            anchor = row["text"][link["start_char"] : link["end_char"]]
            anchors[row["doc_id"].split(":")[0]][link["target_title"], anchor] += 1
    new = ("Emma", "nobody")
    assert anchors["mirrorwiki"][new] == sum(row["doc_id"].startswith("mirrorwiki:") for row in documents) > 5
    assert +(anchors["mirrorwiki"] - anchors["enwiki"]) == {new: anchors["mirrorwiki"][new]}
    assert len(anchors["mirrorwiki"]) > 10
    assert read_manifest(dataset.folder).counter("duplicate_paragraphs") > 100
