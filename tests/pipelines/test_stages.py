"""The stage runner and the exchange on a toy word count, through Beam and real worker processes."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from toy import WORDS, AddUp, CountWords, poisoned_words, word_count

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.driver import run
from pipelines.engine.executors import Executor, InlineExecutor, PoolExecutor
from pipelines.engine.progress import Progress
from pipelines.engine.stage import StageError, close_stage, open_stage
from pipelines.engine.task_writer import do_unit
from schemas.errors import UserError
from schemas.kinds.documents import REDIRECTS
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder

TEXTS = (
    "the cat sat on the mat",
    "",
    "the dog",
    "the cat and the dog and the cat",
    "the only unicorn",
)
COUNTS = Counter(" ".join(TEXTS).split())


def run_build(build: DatasetBuild, executor: Executor | None = None, *, resume: bool = False) -> str:
    shown = io.StringIO()
    if build.check(resume=resume, overwrite=False, reuse=False):
        build.begin(resume=resume)
        run([build], executor or InlineExecutor(), progress=Progress(shown))
    return shown.getvalue()


def run_by_hand(build: DatasetBuild, *, order: int = 1, twice: bool = False) -> None:
    """Do the stages without an executor, units in any order, each unit twice if wanted."""
    build.begin(resume=False)
    for stage in build.stages:
        for unit in open_stage(build.work, stage)[::order]:
            do_unit(build.work, stage, unit)
            if twice:
                do_unit(build.work, stage, unit)
        close_stage(build.work, stage)
    build.finish()


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.p*q*"))
    }


def counted(folder: Path) -> dict[str, int]:
    rows = [row for path in sorted(folder.glob("data/*.parquet")) for row in pq.read_table(path).to_pylist()]
    return {row["title"]: int(row["target_title"]) for row in rows}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reference") / "words"
    run_by_hand(word_count(folder, TEXTS))
    assert counted(folder) == COUNTS
    return hashes(folder)


def beam() -> Executor:
    from pipelines.engine.beam import BeamExecutor

    return BeamExecutor(workers=2)


@pytest.mark.parametrize("executor", [InlineExecutor, lambda: PoolExecutor(1), lambda: PoolExecutor(2), beam])
def test_the_same_bytes_and_lines_for_any_executor(tmp_path, reference, executor):
    shown = run_build(word_count(tmp_path / "words", TEXTS), executor())
    assert hashes(tmp_path / "words") == reference
    assert [line.partition(",")[0] for line in shown.splitlines()] == ["count: 5 units", "add: 3 units"]


def test_the_same_bytes_for_any_order_of_units(tmp_path, reference):
    run_by_hand(word_count(tmp_path / "words", TEXTS), order=-1)
    assert hashes(tmp_path / "words") == reference


def test_a_unit_attempted_twice_counts_once(tmp_path, reference):
    run_by_hand(word_count(tmp_path / "words", TEXTS), twice=True)
    assert hashes(tmp_path / "words") == reference


def test_a_unit_failing_once_is_tried_again(tmp_path, reference):
    run_build(word_count(tmp_path / "words", TEXTS, fail_once=str(tmp_path / "mark")))
    assert (tmp_path / "mark").exists()
    assert hashes(tmp_path / "words") == reference


def test_the_figures_are_metrics_of_beam(tmp_path):
    executor = beam()
    run_build(word_count(tmp_path / "words", TEXTS), executor)
    found = executor.counters
    words = sum(COUNTS.values())
    assert {name: found[f"count/{name}"] for name in ("units", "read", "written", "rejected", "tokens")} == {
        "units": 5,
        "read": words,
        "written": words,
        "rejected": 0,
        "tokens": words,
    }
    assert (found["add/units"], found["add/written"]) == (3, len(COUNTS))


def test_a_killed_worker_is_noticed_and_its_units_tried_again(tmp_path, reference):
    run_build(word_count(tmp_path / "words", TEXTS, die_once=str(tmp_path / "mark")), PoolExecutor(2))
    assert (tmp_path / "mark").exists()
    assert hashes(tmp_path / "words") == reference


@pytest.mark.parametrize("executor", [InlineExecutor, lambda: PoolExecutor(2), beam])
def test_what_a_user_can_mend_is_said_alike_by_any_executor(tmp_path, executor):
    with pytest.raises(UserError, match=r"^a model is missing$"):
        run_build(poisoned_words(tmp_path / "words", ("a", "USER"), isolates=False), executor())


@pytest.mark.parametrize("executor", [InlineExecutor, lambda: PoolExecutor(2), beam])
def test_a_unit_that_always_fails_stops_the_run_and_leaves_no_dataset(tmp_path, executor):
    with pytest.raises(StageError, match=r"count: unit . .* failed 3 times, last: ValueError: it always fails"):
        run_build(word_count(tmp_path / "words", TEXTS, fail_always=True), executor())
    assert not (tmp_path / "words" / "manifest.json").exists()
    assert not list((tmp_path / "words").glob("_work/count/done/*"))
    with pytest.raises(UserError, match=r"not a dataset: it has no manifest\.json"):
        read_manifest(Folder(str(tmp_path / "words")))


def test_resume_after_a_failure_gives_the_same_bytes_and_redoes_nothing(tmp_path, reference):
    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    first, _ = build.stages
    open_stage(build.work, first)
    for unit in (0, 3):
        do_unit(build.work, first, unit)
    assert open_stage(build.work, first) == [1, 2, 4]
    with pytest.raises(UserError, match="unfinished run; --resume continues it"):
        build.check(resume=False, overwrite=False, reuse=False)
    shown = run_build(build, resume=True)
    assert "count: 5 units (2 done before)" in shown
    assert hashes(tmp_path / "words") == reference


def test_an_attempt_goes_on_from_the_last_checkpoint(tmp_path):
    """What was written before a checkpoint is kept; the rest is written again. The ledger counts each row once."""
    read: list[int] = []

    class Numbers(CountWords):
        def process(self, unit, write):
            for number in range(write.resumed or 0, 6):
                read.append(number)
                row = {"source": "toy", "title": str(number), "target_title": "", "section": ""}
                write.ledger.read += 1
                if number % 2:
                    write.reject("bad_record", source="toy", position=f"number {number}")
                else:
                    write.table("train", pa.Table.from_pylist([row], schema=REDIRECTS))
                    write.ledger.written += 1
                    write.counters["even"] += 1
                if read == [0, 1, 2, 3, 4]:
                    raise ValueError("the first attempt dies")
                if number == 3:
                    write.checkpoint(4)

    stage = Numbers(texts=("a",))
    for folder, attempts in (("interrupted", 2), ("whole", 1)):
        build = DatasetBuild(Folder(str(tmp_path / folder)), WORDS, (stage,), (), {})
        build.begin(resume=False)
        open_stage(build.work, stage)
        if attempts == 2:
            with pytest.raises(ValueError, match="the first attempt dies"):
                do_unit(build.work, stage, 0)
            assert sorted(each.name.split(".", 2)[2] for each in (tmp_path / folder).glob("_work/count/files/*")) == [
                "000.train.parquet",
                "001.train.parquet",
                "002.rejects.parquet",
            ]
        done = do_unit(build.work, stage, 0)
        assert (done.ledger.read, done.ledger.written, done.ledger.rejected) == (6, 3, {"bad_record": 3})
        assert done.counters == {"even": 3}
        close_stage(build.work, stage)
        build.finish()
    assert read == [0, 1, 2, 3, 4, 4, 5, 0, 1, 2, 3, 4, 5]
    assert hashes(tmp_path / "interrupted") == hashes(tmp_path / "whole")


def test_an_empty_input_gives_an_empty_dataset(tmp_path):
    run_by_hand(word_count(tmp_path / "words", ()))
    assert counted(tmp_path / "words") == {}


@pytest.mark.parametrize("ranges", [1, 2, 7, 64])
def test_any_number_of_ranges_counts_the_same(tmp_path, ranges):
    run_by_hand(word_count(tmp_path / "words", TEXTS, ranges=ranges))
    assert counted(tmp_path / "words") == COUNTS


def test_the_manifest_says_what_was_made(tmp_path):
    run_by_hand(word_count(tmp_path / "words", TEXTS))
    manifest = read_manifest(Folder(str(tmp_path / "words")))
    assert manifest.rows == len(COUNTS)
    assert manifest.stage("count").ledger.read == sum(COUNTS.values())
    assert manifest.counter("tokens") == sum(COUNTS.values())
    for shard in manifest.shards:
        data = (tmp_path / "words" / shard.path).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (shard.bytes, shard.sha256)
    assert sorted(path.name for path in (tmp_path / "words").iterdir()) == [
        "README.md",
        "data",
        "manifest.json",
        "report.html",
    ]


def test_the_output_folder_is_not_overwritten_by_chance(tmp_path):
    output = tmp_path / "words"
    run_by_hand(word_count(output, TEXTS))
    with pytest.raises(UserError, match="holds this dataset, finished; choose another --output, or replace it"):
        word_count(output, TEXTS).check(resume=False, overwrite=False, reuse=False)
    assert not word_count(output, TEXTS).check(resume=True, overwrite=False, reuse=False)
    assert not word_count(output, TEXTS).check(resume=False, overwrite=False, reuse=True)
    with pytest.raises(UserError, match=r"other settings \(ranges: 3 -> 4\)"):
        word_count(output, TEXTS, ranges=4).check(resume=True, overwrite=False, reuse=True)
    (output / "mine.txt").write_text("my notes")
    other = word_count(output, TEXTS, ranges=4)
    assert other.check(resume=False, overwrite=True, reuse=False)
    other.begin(resume=False)
    assert (output / "mine.txt").read_text() == "my notes"


def test_a_foreign_folder_is_never_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="is not empty and holds no phrasemill dataset"):
        word_count(tmp_path, TEXTS).check(resume=False, overwrite=True, reuse=False)


def test_resume_refuses_other_settings_and_names_them(tmp_path):
    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    other = word_count(tmp_path / "words", TEXTS, ranges=4)
    assert other.check(resume=True, overwrite=False, reuse=False), "nothing was done yet, so nothing is lost"
    open_stage(build.work, build.stages[0])
    do_unit(build.work, build.stages[0], 0)
    with pytest.raises(UserError, match=r"other settings \(ranges: 3 -> 4\)"):
        other.check(resume=True, overwrite=False, reuse=False)


def test_the_fingerprint_leaves_out_where_things_lie():
    base = word_count(Path("a"), TEXTS)
    assert word_count(Path("b"), TEXTS, fail_once="elsewhere").fingerprint == base.fingerprint
    assert word_count(Path("a"), TEXTS[:2]).fingerprint != base.fingerprint
    assert replace(base, models=({"model": "another"},)).fingerprint != base.fingerprint


def test_a_ledger_that_does_not_add_up_stops_the_unit(tmp_path):
    class Forgetful(CountWords):
        def process(self, unit, write):
            super().process(unit, write)
            write.ledger.read += 1

    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    stage = Forgetful(texts=TEXTS)
    open_stage(build.work, stage)
    with pytest.raises(RuntimeError, match="lost 1 words"):
        do_unit(build.work, stage, 0)


def test_rows_that_disagree_with_the_ledger_stop_the_dataset(tmp_path):
    class Overstated(AddUp):
        def process(self, unit, write):
            super().process(unit, write)
            write.ledger.read += 1
            write.ledger.written += 1

    build = word_count(tmp_path / "words", TEXTS)
    build = DatasetBuild(build.output, build.kind, (build.stages[0], Overstated()), build.inputs, {})
    with pytest.raises(RuntimeError, match="add: the ledger does not add up"):
        run_by_hand(build)


def test_an_unpublished_file_that_vanished_is_named(tmp_path):
    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    for stage in build.stages:
        for unit in open_stage(build.work, stage):
            do_unit(build.work, stage, unit)
        close_stage(build.work, stage)
    done = json.loads((tmp_path / "words/_work/add/completions.json").read_text())
    Path(tmp_path / "words" / done[1]["files"][0][1]).unlink()
    with pytest.raises(UserError, match="is gone; it was deleted during the run"):
        build.finish()


def test_a_publication_that_fails_leaves_no_dataset_and_can_be_finished(tmp_path, reference):
    build = word_count(tmp_path / "words", TEXTS)
    build.begin(resume=False)
    for stage in build.stages:
        for unit in open_stage(build.work, stage):
            do_unit(build.work, stage, unit)
        close_stage(build.work, stage)
    in_the_way = tmp_path / "words/README.md"
    in_the_way.mkdir()
    with pytest.raises(UserError, match="a folder is where a file should be"):
        build.finish()
    assert not (tmp_path / "words/manifest.json").exists()
    in_the_way.rmdir()
    build.finish()
    assert hashes(tmp_path / "words") == reference


def test_a_flipped_bit_in_an_exchanged_file_is_noticed(tmp_path):
    build = word_count(tmp_path / "words", TEXTS, ranges=1)
    build.begin(resume=False)
    count, add = build.stages
    for unit in open_stage(build.work, count):
        do_unit(build.work, count, unit)
    close_stage(build.work, count)
    path = sorted((tmp_path / "words/_work/count/files").iterdir())[0]
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    data[len(data) - 8 - footer - 1] ^= 1  # the last byte of the last page
    path.write_bytes(data)
    (unit,) = open_stage(build.work, add)
    with pytest.raises(UserError, match=r"add: unit 0 reads a file that was damaged after it was written .*CRC"):
        do_unit(build.work, add, unit)


def test_an_interrupted_publication_is_finished_by_the_next(tmp_path, reference, monkeypatch):
    build = word_count(tmp_path / "words", TEXTS)
    moves = []

    def move(self, name, to):
        moves.append(name)
        if len(moves) == 9:
            raise KeyboardInterrupt
        original(self, name, to)

    original = Folder.move
    monkeypatch.setattr(
        Folder,
        "move",
        lambda self, name, to: (
            move(self, name, to) if "/files/" in name and not name.endswith(".part") else original(self, name, to)
        ),
    )
    moves.extend(["counted from the second published shard on"] * 7)
    with pytest.raises(KeyboardInterrupt):
        run_by_hand(build)
    monkeypatch.undo()
    run_build(build, resume=True)
    assert hashes(tmp_path / "words") == reference


def test_read_tables_carry_their_schema(tmp_path):
    run_by_hand(word_count(tmp_path / "words", TEXTS))
    schema = pq.read_schema(next((tmp_path / "words/data").iterdir()))
    assert schema.metadata[b"phrasemill.record"] == b"Redirect"
    assert schema.field("title").type == pa.string()
