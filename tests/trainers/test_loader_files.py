"""The loader on files: the rows that the arithmetic says, errors before and during training, memory."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from written import context, write_dataset

from schemas.errors import UserError
from schemas.kinds.contexts import CONTEXTS
from trainers.data import Loader, Position, Source
from trainers.loading.reader import Reader

ROOT = Path(__file__).resolve().parent.parent.parent


SCHEMA = pa.schema([("id", pa.int32()), ("phrase", pa.string()), ("labels", pa.list_(pa.string()))])


def table(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    rows = [{"id": n, "phrase": f"phrase {n}" * (n % 3), "labels": [f"{n}", None] if n % 4 else None} for n in numbers]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """1,000 rows: ten row groups of 70, one of 0 rows, ten of 30."""
    folder = tmp_path_factory.mktemp("files")
    pq.write_table(table(0, 700), folder / "a.parquet", row_group_size=70)
    pq.write_table(table(700, 700), folder / "b.parquet")
    pq.write_table(table(700, 1000), folder / "c.parquet", row_group_size=30)
    (folder / "notes.txt").write_text("is not read")
    return sorted(folder.glob("*.parquet"))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Contexts: 4 + 3 rows in two shards."""
    path = tmp_path_factory.mktemp("dataset") / "contexts"
    rows = [context(f"phrase {n}", f"Here is [MASK] number {n}.") for n in range(7)]
    write_dataset(path, CONTEXTS, [[rows[:4]], [rows[4:]]])
    return path


READERS = st.tuples(st.integers(1, 3), st.integers(1, 2), st.integers(20, 400))


@given(
    st.fixed_dictionaries(
        {
            "seed": st.integers(0, 3),
            "shuffle": st.booleans(),
            "window": st.integers(1, 200),
            "lanes": st.integers(1, 5),
            "run": st.integers(4, 90),
            "prefetch": st.integers(1, 3),
        }
    ),
    READERS,
    st.integers(0, 1000),
    st.booleans(),
)
@examples(10)
def test_the_files_rows_come_once_whole_and_in_the_order_that_one_reader_has(files, rules, readers, start, mixed):
    ranks, workers, batch_size = readers
    sources = [Source.open(files)] + [Source.open(files[2:])] * mixed
    one = Loader(sources, batch_size=1000, **rules)
    expected = pa.concat_tables(one.batches(Position(1, 0)))
    if not mixed:
        assert expected.sort_by("id") == table(0, 1000)
        assert rules["shuffle"] or expected == table(0, 1000)
    made = [
        Loader(sources, batch_size=batch_size, rank=rank, ranks=ranks, **rules).batches(
            Position(1, start), worker=worker, workers=workers
        )
        for worker in range(workers)
        for rank in range(ranks)
    ]
    found = []
    for each in itertools.cycle(made):
        batch = next(each, None)
        if batch is None:
            break
        found.append(batch)
    assert pa.concat_tables([expected[:0], *found]) == expected[start:]


def test_a_loop_over_epochs_goes_on_where_it_stopped(files):
    source = Source.open(files[0].parent, columns=["id"])
    whole = Loader(source, batch_size=64, window=100)
    epochs = [[batch["id"].to_pylist() for batch in whole] for _ in range(2)]
    assert [len(each) for each in epochs[0]] == [64] * 15 + [40]
    assert sorted(itertools.chain(*epochs[0])) == sorted(itertools.chain(*epochs[1])) == [*range(1000)]
    assert epochs[0] != epochs[1]
    first = Loader(source, batch_size=64, window=100)
    found = []
    for batch in first:
        found.append(batch["id"].to_pylist())
        if len(found) == 5:
            break
    assert (len(first), first.position) == (11, (0, 320))
    found += [batch["id"].to_pylist() for batch in first]
    assert found == epochs[0]
    other = Loader(source, batch_size=64, window=100)
    other.load_state_dict(json.loads(json.dumps(first.state_dict())))
    other.set_epoch(1)  # as in a loop over epochs
    assert [batch["id"].to_pylist() for batch in other] == epochs[1]
    assert other.position == (2, 0)


def test_columns_come_in_the_order_in_which_they_are_named_and_without_metadata(dataset):
    source = Source.open(str(dataset), columns=["context", "frequency", "phrase"], verify=True)
    assert source.rows == 7
    batch = next(iter(Loader(source, batch_size=7, shuffle=False)))
    assert batch.schema.equals(source.schema, check_metadata=True)
    assert batch.to_pylist()[6] == {"context": "Here is [MASK] number 6.", "frequency": 1, "phrase": "phrase 6"}


def test_columns_by_other_names_mix_with_those_of_another_source(files, dataset):
    contexts = Source.open(dataset, columns={"context": "text"})
    other = Source.open(files, columns={"phrase": "text"})
    batch = next(iter(Loader(contexts, batch_size=7, shuffle=False)))
    assert batch.to_pylist()[6] == {"text": "Here is [MASK] number 6."}
    mixed = Loader([contexts, other], weights=[1, 1], batch_size=8, run=8)
    assert sum("[MASK]" in row["text"] for row in next(iter(mixed)).to_pylist()) == 4
    with pytest.raises(UserError, match="has no column 'words'"):
        Source.open(dataset, columns={"words": "text"})


def test_a_reader_has_its_lanes_and_the_windows_it_reads_before_their_turn(files):
    loader = Loader(Source.open(files), batch_size=8, window=1, lanes=3, run=8, prefetch=2)
    orders = loader.orders()
    reader = Reader(loader.sources, orders, prefetch=2)
    most = 0
    for batch in reader.batches(loader.plans(orders, Position(0, 0))):
        most = max(most, len(reader._windows))
        assert batch.nbytes < 2000  # no batch keeps the window that it is from
    assert most in (4, 5)
    assert len(reader._windows) <= 4  # of 20 row groups; those of the lanes' ends


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def spoil(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0xFF
    path.write_bytes(data)


def rename(path: Path) -> None:
    """Give a column another name of as many letters."""
    path.write_bytes(path.read_bytes().replace(b"surface", b"SURFACE"))


SHARD = "data/train-00001-of-00002.parquet"
CHECK = "; .*python -m schemas.check .* says what is damaged"
COPY = "; copy the dataset again, or write it again with --overwrite"


@pytest.mark.parametrize(
    ("damage", "options", "message"),
    [
        (lambda path: (path / SHARD).unlink(), {}, f"{SHARD}: is missing{COPY}"),
        (lambda path: cut(path / SHARD), {}, rf"{SHARD}: has [\d,]+ bytes instead of [\d,]+{COPY}"),
        (lambda path: spoil(path / SHARD, -6), {}, rf"{SHARD}: cannot be read \(.*\){CHECK}"),
        (lambda path: spoil(path / SHARD, 40), {"verify": True}, f"{SHARD}: its sha256 is not the manifest's{COPY}"),
        (lambda path: rename(path / SHARD), {}, f"{SHARD}: has other columns than its manifest says{CHECK}"),
        (
            lambda path: shutil.copy(path / SHARD.replace("1-", "0-", 1), path / SHARD),
            {},
            rf"{SHARD}: has [\d,]+ bytes instead of [\d,]+{COPY}",
        ),
        (lambda path: (path / "manifest.json").unlink(), {}, ": not a dataset: it has no manifest.json, .*"),
        (shutil.rmtree, {}, ": no such dataset"),
        (lambda path: None, {"split": "test"}, ": has no split 'test', only train"),
        (lambda path: None, {"columns": ["phrase", "text"]}, ", train: has no column 'text', only phrase, label, .*"),
    ],
)
def test_damage_is_found_before_training(dataset, tmp_path, damage: Callable[[Path], None], options, message):
    path = tmp_path / "contexts"
    shutil.copytree(dataset, path)
    damage(path)
    with pytest.raises(UserError) as raised:
        Source.open(path, **options)
    assert re.fullmatch(f"{re.escape(str(path))}/?{message}", str(raised.value)), raised.value


def test_the_folder_of_a_datasets_files_is_refused(dataset):
    """Its files are those of all splits."""
    with pytest.raises(UserError, match=rf"{dataset}/data: has the files .*; give the dataset, {dataset}, and a split"):
        Source.open(dataset / "data")
    assert Source.open(dataset / SHARD).rows == 3


def test_a_page_that_is_damaged_is_found_when_it_is_read(dataset, tmp_path):
    path = tmp_path / "contexts"
    shutil.copytree(dataset, path)
    spoil(path / SHARD, 40)
    loader = Loader(Source.open(path), batch_size=2, shuffle=False, window=1)
    given = iter(loader)
    assert next(given).num_rows == 2
    with pytest.raises(UserError, match=f"{SHARD}: cannot be read .*; .*python -m schemas.check"):
        list(given)


@pytest.mark.parametrize(
    ("arrange", "options", "message"),
    [
        (lambda path: [], {}, "an empty list of files: name at least one .parquet file"),
        (lambda path: [path / "no.parquet"], {}, r".*/no.parquet: no such file; write it again, or leave it out"),
        (lambda path: cut(path / "a.parquet"), {}, r".*/a.parquet: cannot be read \(.*\); write it again, or leave .*"),
        (lambda path: None, {"split": "train"}, ".*: has no manifest, and so no split 'train'; leave the option out"),
        (lambda path: None, {"verify": True}, ".*: has no manifest, and so no sha256 to verify; leave the option out"),
        (lambda path: None, {"columns": []}, r"columns=\[\]: give a list of names of columns, or nothing for all"),
        (lambda path: None, {"columns": "id"}, "columns='id': give a list of names of columns, or nothing for all"),
        (
            lambda path: pq.write_table(table(0, 3).drop_columns("id"), path / "d.parquet"),
            {"columns": ["id"]},
            ".*/d.parquet: has no column 'id', which .*/a.parquet has; write it again, or leave it out",
        ),
        (
            lambda path: pq.write_table(pa.table({"id": ["1"]}), path / "d.parquet"),
            {"columns": ["id"]},
            ".*/d.parquet: column 'id' is string, and int32 in .*/a.parquet; convert one of them, or leave it out",
        ),
        (lambda path: path / "b.parquet", {}, ".*/b.parquet: has no rows; choose another split or source"),
    ],
)
def test_files_that_do_not_fit(files, tmp_path, arrange, options, message):
    for file in files:
        shutil.copy(file, tmp_path)
    chosen = arrange(tmp_path)
    with pytest.raises(UserError) as raised:
        Source.open(tmp_path if chosen is None else chosen, **options)
    assert re.fullmatch(message, str(raised.value)), raised.value


def test_a_state_of_other_files_is_refused(files, tmp_path):
    state = Loader(Source.open(files), batch_size=4).state_dict(Position(0, 40))
    for file in files:
        shutil.copy(file, tmp_path)
    Loader(Source.open(tmp_path), batch_size=5).load_state_dict(state)
    pq.write_table(table(700, 1000), tmp_path / "c.parquet", row_group_size=60)
    with pytest.raises(UserError, match=r"the loader's state: has the sources .* of 1,000 rows, quota 256, and this "):
        Loader(Source.open(tmp_path), batch_size=4).load_state_dict(state)


def test_sources_of_a_mixture_have_the_same_columns(files, dataset):
    sources = [Source.open(files, columns=["id"]), Source.open(dataset, columns=["phrase"])]
    with pytest.raises(UserError, match=r"train: its columns are not those of .* and 2 more \(phrase: string; id: int"):
        Loader(sources, batch_size=4)


def test_torch_is_not_imported(files):
    code = """
import sys
sys.modules["torch"] = sys.modules["pandas"] = None  # as if they were not installed
from trainers.data import Loader, Source
print(sum(len(batch) for batch in Loader(Source.open(sys.argv[1]), batch_size=3)))
"""
    command = [sys.executable, "-c", code, str(files[0].parent)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1000\n", "")
