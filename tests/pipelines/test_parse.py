"""The parse stage: verse; and after workers died on a unit, document by document, rejecting those on which they die."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from pipelines import extract_documents, mine_contexts
from pipelines.cli import main
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.stage import Isolation, close_stage, open_stage
from pipelines.engine.task_writer import do_unit
from pipelines.stages.parse import Parse
from schemas.dataset_checks import check_dataset
from schemas.kinds import sentences
from schemas.manifest import Fault, Input, read_manifest
from schemas.storage.folder import Folder

TEXTS = {
    "a.txt": "The cat sat on the mat.\n\nIt purred.",
    "b.txt": "A poisoned document.",
    "c.txt": "The dog barked at the cat. The cat ran.",
}


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parse")
    (folder / "books").mkdir()
    for name, text in TEXTS.items():
        (folder / "books" / name).write_text(text)
    assert not main(
        extract_documents.COMMAND, ["--input", str(folder / "books"), "--output", str(folder / "documents")]
    )
    return folder / "documents"


def parse(documents, output, isolation):
    stage = Parse(parser="spacy", parser_options=(), documents=str(documents))
    given = Input("dataset", "documents", str(documents), read_manifest(Folder(str(documents))).fingerprint)
    build = DatasetBuild(Folder(str(output)), sentences.KIND, (stage,), (given,), {})
    build.begin(resume=False)
    (unit,) = open_stage(build.work, stage)
    do_unit(build.work, stage, unit, isolation=isolation)
    close_stage(build.work, stage)
    build.finish()
    return read_manifest(build.output)


def test_a_document_that_brings_workers_down_is_one_reject(tmp_path, documents):
    begun: list[int] = []
    fault = Fault("parse", 0, 3, "worker_died", "the worker died of SIGKILL", 1, 0.0)
    manifest = parse(documents, tmp_path / "out", Isolation({1: fault}, begun.append))
    assert begun == [0, 2]
    (ledger,) = [stage.ledger for stage in manifest.stages]
    assert (ledger.read, ledger.written, dict(ledger.rejected)) == (5, 4, {"worker_died": 1})
    (reject,) = pq.read_table(tmp_path / "out/rejects/part-00000.pq").to_pylist()
    assert reject == {
        "stage": "parse",
        "reason": "worker_died",
        "source": "books:b.txt",
        "position": "the whole document",
        "excerpt": "A poisoned document.",
        "exception": "the worker died of SIGKILL",
    }
    sentences = pq.read_table(tmp_path / "out/data/train-00000-of-00001.parquet")["text"].to_pylist()
    assert sentences == ["The cat sat on the mat.", "It purred.", "The dog barked at the cat.", "The cat ran."]
    assert list(check_dataset(str(tmp_path / "out"))) == []


def test_document_by_document_is_the_same_as_all_at_once(tmp_path, documents):
    at_once = parse(documents, tmp_path / "a", None)
    apart = parse(documents, tmp_path / "b", Isolation({}, lambda record: None))
    assert at_once.sha256 == apart.sha256


VERSE = """Song

The little boy was lost in the dark
Forest of the night,
And the old sad king, with a lamp
In his hand, came by. He wept,
And led him home."""


def test_a_sentence_runs_over_lines_of_verse_and_so_do_phrases_and_contexts(tmp_path):
    (tmp_path / "song.txt").write_text(VERSE)
    arguments = ["--input", str(tmp_path / "song.txt"), "--output", str(tmp_path / "c"), "--min-frequency", "1"]
    assert not main(mine_contexts.COMMAND, arguments)
    rows = pq.read_table(tmp_path / "c-sentences/data").to_pylist()
    stanza = VERSE.partition("\n\n")[2]
    assert [row["text"] for row in rows] == ["Song", stanza[:112], stanza[113:]]
    assert [row["start_char"] for row in rows] == [VERSE.index(row["text"]) for row in rows]
    words = [[VERSE[each["start_char"] : each["end_char"]] for each in row["tokens"]] for row in rows]
    assert words[2] == ["He", "wept", ",", "And", "led", "him", "home", "."]
    (found,) = [row for row in pq.read_table(tmp_path / "c/data").to_pylist() if row["phrase"] == "dark forest"]
    assert found["surface"] == "dark Forest"
    assert VERSE[found["start_char"] : found["end_char"]] == "dark\nForest"
    assert "lost in the [MASK] of the night, And the old" in found["context"]
    for name in ("c", "c-phrases", "c-sentences", "c-documents"):
        assert list(check_dataset(str(tmp_path / name))) == []
