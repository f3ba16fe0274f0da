"""Raw files -> documents through the stage runner: units, samples, damage, duplicates, the ledger."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import io
import itertools
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from literal import chain_of, dump

from pipelines.cli import main
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.stage import close_stage, open_stage
from pipelines.engine.task_writer import TaskWriter, do_unit
from pipelines.extract_documents import COMMAND
from pipelines.stages import extract as step
from pipelines.stages.extract import Extract
from schemas.errors import UserError
from schemas.manifest import Manifest
from transforms.sources.items import Item


def begun(output: Path, *arguments: str) -> DatasetBuild:
    """The build of the command's last dataset."""
    build = chain_of(COMMAND, f"--output={output}", *arguments)[-1].build
    assert build is not None
    assert build.check(resume=False, overwrite=False, reuse=False)
    build.begin(resume=False)
    return build


def extract(output: Path, *arguments: str) -> Manifest:
    """Run the command's stages in this process, without Beam."""
    return finished(begun(output, *arguments))


def finished(build: DatasetBuild) -> Manifest:
    for stage in build.stages:
        for unit in open_stage(build.work, stage):
            do_unit(build.work, stage, unit)
        close_stage(build.work, stage)
    return build.finish()


def rows(folder: Path, side: str = "data") -> list[dict]:
    return [row for path in sorted((folder / side).iterdir()) for row in pq.read_table(path).to_pylist()]


def json_lines(path: Path, *texts: str) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


@pytest.fixture
def books(tmp_path: Path) -> Path:
    folder = tmp_path / "books"
    folder.mkdir()
    for name in ("emma", "persuasion", "sanditon"):
        (folder / f"{name}.txt").write_text(f"{name.title()} had lived in the world.\n\nShe was of {name}.\n" * 20)
    return folder


def test_documents_in_the_order_of_names_whatever_the_order_of_inputs(tmp_path, books):
    names = ["persuasion", "emma", "sanditon"]
    extract(tmp_path / "a", *(f"--input={books}/{name}.txt" for name in names))
    extract(tmp_path / "b", *(f"--input={books}/{name}.txt" for name in reversed(names)))
    assert [row["doc_id"] for row in rows(tmp_path / "a")] == [f"books:{name}.txt" for name in sorted(names)]
    assert _bytes(tmp_path / "a") == _bytes(tmp_path / "b")


def test_shards_hold_the_bytes_asked_for_and_documents_stay_whole(tmp_path, books):
    manifest = extract(tmp_path / "a", f"--input={books}", "--shard-bytes=100")
    assert [shard.rows for shard in manifest.shards] == [1, 1, 1]
    assert manifest.stage("extract").units == 3


def test_the_first_documents_only(tmp_path):
    source = json_lines(tmp_path / "a.jsonl", *(f"Text number {n} stands here." for n in range(50)))
    manifest = extract(tmp_path / "out", f"--input={source}", "--max-documents=7", "--shard-bytes=64")
    assert [row["text"] for row in rows(tmp_path / "out")] == [f"Text number {n} stands here." for n in range(7)]
    assert manifest.stage("extract").ledger.read == 7


def test_a_sample_is_by_hash_of_the_id_and_nested_in_a_larger_one(tmp_path):
    source = json_lines(tmp_path / "a.jsonl", *(f"Text number {n} stands here." for n in range(400)))
    small = extract(tmp_path / "small", f"--input={source}", "--sample-documents=0.25")
    extract(tmp_path / "large", f"--input={source}", "--sample-documents=0.5")
    extract(tmp_path / "other", f"--input={source}", "--sample-documents=0.25", "--sample-seed=1")
    ids = {name: {row["doc_id"] for row in rows(tmp_path / name)} for name in ("small", "large", "other")}
    assert 70 < len(ids["small"]) < 130
    assert ids["small"] < ids["large"]
    assert ids["small"] != ids["other"]
    ledger = small.stage("extract").ledger
    assert (ledger.read, ledger.filtered["not_sampled"]) == (400, 400 - len(ids["small"]))


def test_damage_stops_the_run_or_becomes_a_reject(tmp_path):
    source = tmp_path / "a.jsonl.bz2"
    lines = json_lines(tmp_path / "a.jsonl", *(f"Text number {n}: {hashlib.md5(b'%d' % n)}" for n in range(5000)))
    whole = bz2.compress(lines.read_bytes())
    source.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"a\.jsonl\.bz2.* byte .*--on-corrupt=skip"):
        extract(tmp_path / "stopped", f"--input={source}")
    manifest = extract(tmp_path / "skipped", f"--input={source}", "--on-corrupt=skip")
    ledger = manifest.stage("extract").ledger
    assert ledger.rejected["truncated"] == 1
    assert ledger.read == ledger.written + 1
    [reject] = rows(tmp_path / "skipped", "rejects")
    assert (reject["stage"], reject["reason"], reject["source"]) == ("extract", "truncated", "a.jsonl.bz2")
    assert reject["position"].startswith("byte ")
    assert reject["exception"].startswith("'a.jsonl.bz2' "), "no path of this machine"


def test_with_skip_the_other_files_of_a_folder_are_read(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    bad = pa.table({"text": pa.array([b"x" * 9_000] * 30), "id": range(30)})
    pq.write_table(bad, folder / "a.parquet", row_group_size=1, use_dictionary=False, compression="none")
    pq.write_table(pa.table({"text": ["Two."]}), folder / "b.parquet")
    (folder / "c.jsonl").write_text('{"text": 5}\n{"text": "Three."}\n{"body": "x"}\n')
    options = [f"--input={folder}", "--shard-bytes=1000"]  # the bad file is in many segments
    with pytest.raises(UserError, match=r"holds binary, not text, in its column 'text'; .* --on-corrupt=skip$"):
        extract(tmp_path / "stopped", *options)
    manifest = extract(tmp_path / "skipped", *options, "--on-corrupt=skip")
    assert [row["text"] for row in rows(tmp_path / "skipped")] == ["Two.", "Three."]
    assert manifest.stage("extract").ledger.rejected == {"bad_record": 3}
    assert [each["source"] for each in rows(tmp_path / "skipped", "rejects")] == ["a.parquet", "c.jsonl", "c.jsonl"]


LONG = "It is a truth universally acknowledged, that a single man in possession of a fortune wants a wife."
OTHER = "However little known the feelings of such a man may be, this truth is so well fixed in the minds."


@pytest.mark.parametrize(
    ("dedup", "texts", "expected", "filtered"),
    [
        ("off", [LONG, LONG], [LONG, LONG], {}),
        ("documents", [LONG, OTHER, LONG, LONG], [LONG, OTHER], {"duplicate_document": 2}),
        ("documents", [LONG, LONG + "!"], [LONG, LONG + "!"], {}),
        (
            "paragraphs",
            [f"{LONG}\n\nYes.", f"Yes.\n\n{LONG}\n\n{OTHER}\n\nNo.", OTHER],
            [f"{LONG}\n\nYes.", f"Yes.\n\n{OTHER}\n\nNo."],
            {"duplicate_paragraph": 1},
        ),
    ],
)
@pytest.mark.parametrize("shard_bytes", [50, 1000])
def test_exact_duplicates(tmp_path, dedup, texts, expected, filtered, shard_bytes):
    source = json_lines(tmp_path / "a.jsonl", *texts)
    manifest = extract(tmp_path / "out", f"--input={source}", f"--dedup={dedup}", f"--shard-bytes={shard_bytes}")
    assert [row["text"] for row in rows(tmp_path / "out")] == expected
    ledger = manifest.stage("drop").ledger
    assert dict(ledger.filtered) == filtered
    assert manifest.rows == manifest.stage("extract").ledger.written - ledger.filtered.total()


def test_two_dumps_of_one_wiki_share_ids(tmp_path):
    old = dump(tmp_path / "old.xml", {7: "Emma is a novel."})
    new = dump(tmp_path / "new.xml", {7: "Emma is a great novel."})
    manifest = extract(tmp_path / "out", f"--input={old}", f"--input={new}")
    assert [row["text"] for row in rows(tmp_path / "out")] == ["Emma is a great novel."], "new.xml comes before old.xml"
    assert manifest.stage("drop").ledger.rejected == {"duplicate_id": 1}
    [reject] = rows(tmp_path / "out", "rejects")
    assert (reject["reason"], reject["position"]) == ("duplicate_id", "enwiki:7")


@pytest.mark.parametrize("dedup", ["documents", "paragraphs"])
def test_a_document_dropped_for_its_id_is_not_the_first_with_its_text(tmp_path, dedup):
    one = dump(tmp_path / "a.xml", {7: "An article."})
    two = dump(tmp_path / "b.xml", {7: LONG, 8: LONG})
    extract(tmp_path / "out", f"--input={one}", f"--input={two}", f"--dedup={dedup}")
    assert [row["text"] for row in rows(tmp_path / "out")] == ["An article.", LONG]


def test_real_dumps_keep_every_link_in_place(tmp_path, test_data):
    wikipedia = test_data / "corpora" / "wikipedia"
    manifest = extract(tmp_path / "out", f"--input={wikipedia}/enwiki-minidump.xml.bz2")
    documents = rows(tmp_path / "out")
    assert len(documents) == manifest.rows > 10
    links = [(row["text"], link) for row in documents for link in row["links"]]
    assert len(links) > 1000
    for text, link in links:
        anchor = text[link["start_char"] : link["end_char"]]
        assert anchor
        assert anchor == anchor.strip()
    assert rows(tmp_path / "out", "redirects") or manifest.stage("extract").ledger.filtered["redirect"] == 0


# ---- Interruptions inside a unit


def many_pages(folder: Path) -> bytes:
    """Articles of different lengths; every fifth page redirects, every seventh is empty, one is too deep."""
    pages = {n: f"Text {n} stands here. " * (n % 9 + 1) for n in range(60)}
    pages |= dict.fromkeys(range(0, 60, 5), "#REDIRECT [[Page 1]]") | dict.fromkeys(range(0, 60, 7), "{{stub}}")
    return dump(folder / "source.xml", pages | {23: "{{a|" * 200 + "}}" * 200}).read_bytes()


def text_of(number: int) -> str:
    return f"Book {number} tells of things that nobody knew.\n\nThe end of it is sad. " * (number % 4 + 1)


def tar_of_texts(folder: Path) -> Path:
    path = folder / "books.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for number in range(40):
            member = tarfile.TarInfo(f"books/{number % 30}.{'png' if number % 9 == 2 else 'txt'}")
            data = b"\xff" if number == 11 else text_of(number).encode()
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def folder_of_texts(folder: Path) -> Path:
    books = folder / "books"
    books.mkdir()
    for number in range(40):
        (books / f"{number:02}.txt").write_bytes(b"\xff" if number == 11 else text_of(number).encode())
    return books


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def many_lines(folder: Path) -> bytes:
    lines = [json.dumps({"text": text_of(number) if number % 6 else None}) for number in range(50)]
    return "\n\n".join([*lines[:17], "{", *lines[17:]]).encode()


NOT_SPLIT: dict[str, Callable[[Path], Path]] = {
    "xml.gz": lambda folder: written(folder / "a.xml.gz", gzip.compress(many_pages(folder))),
    "xml.zst": lambda folder: written(folder / "a.xml.zst", zstandard.compress(many_pages(folder))),
    "tar.gz": tar_of_texts,
    "jsonl.gz": lambda folder: written(folder / "a.jsonl.gz", gzip.compress(many_lines(folder))),
    "cut jsonl.gz": lambda folder: written(folder / "a.jsonl.gz", gzip.compress(many_lines(folder))[:-20]),
    "folder": folder_of_texts,
}


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        *((kind, []) for kind in NOT_SPLIT),
        *((kind, ["--dedup=paragraphs", "--sample-documents=0.8"]) for kind in ("xml.gz", "folder")),
        *((kind, ["--max-documents=25"]) for kind in ("jsonl.gz", "tar.gz")),
    ],
)
def test_an_interrupted_unit_goes_on_from_its_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, arguments: list[str]
) -> None:
    """Attempts die at every third new record. The files are the same, and what a checkpoint keeps is not read again."""
    monkeypatch.setattr(step, "CHECKPOINT_SHARDS", 2)
    monkeypatch.setattr(step, "SEGMENT_BYTES", 1_000)
    source = NOT_SPLIT[kind](tmp_path)
    arguments = [f"--input={source}", "--shard-bytes=200", "--on-corrupt=skip", *arguments]
    whole = extract(tmp_path / "whole", *arguments)
    assert whole.stage("extract").units == 1

    died: list[int] = []
    taken: list[int] = []  # numbers of the records that went into rows or counts
    kept: list[int] = []
    take, checkpoint = Extract._take, TaskWriter.checkpoint

    def dying(self: Extract, item: Item, file: object, shards: object, write: TaskWriter) -> None:
        if write.ledger.read % 3 == 2 and write.ledger.read not in died:
            died.append(write.ledger.read)
            raise ConnectionResetError
        taken.append(write.ledger.read)
        take(self, item, file, shards, write)

    def noted(self: TaskWriter, state: object) -> None:
        checkpoint(self, state)
        kept.append(self.ledger.read)

    monkeypatch.setattr(Extract, "_take", dying)
    monkeypatch.setattr(TaskWriter, "checkpoint", noted)
    build = begun(tmp_path / "cut", *arguments)
    manifest = None
    while manifest is None:
        with contextlib.suppress(ConnectionResetError):
            manifest = finished(build)
    for part in ("splits", "sides", "stages", "licences"):
        assert getattr(manifest, part) == getattr(whole, part), part
    restarts = {at for before, at in itertools.pairwise(taken) if at <= before}
    assert kept == sorted(set(kept)), "no checkpoint is made twice"
    assert len(kept) > 3
    assert restarts <= {0, *kept}


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "data").iterdir())}


def test_an_input_that_changed_between_runs_is_named(tmp_path: Path, books: Path, capsys):
    interrupted = begun(tmp_path / "out", "--input", str(books))
    stage = interrupted.stages[0]
    do_unit(interrupted.work, stage, open_stage(interrupted.work, stage)[0])
    (books / "emma.txt").write_text("Another novel.")
    assert main(COMMAND, ["--input", str(books), "--output", str(tmp_path / "out"), "--resume"]) == 2
    assert (
        "out: holds an unfinished run with other settings (input emma.txt has changed); give the same"
        in capsys.readouterr().err
    )
