"""Other libraries read the same rows: datasets.load_dataset, DuckDB, pandas, and our own reader."""

from __future__ import annotations

import glob
import html
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from literal import mine
from literal import shard as literal_shard

from pipelines import rejects, report
from schemas.check import main as check
from schemas.dataset import Dataset
from schemas.errors import UserError

Row = dict[str, Any]

TRIPLET = ("phrase", "context", "negative")
ROOT = Path(__file__).resolve().parents[2]
NAMES = ("contexts", "contexts-documents", "contexts-sentences", "contexts-phrases")


@pytest.fixture(scope="module")
def load_dataset(tmp_path_factory):
    """`datasets.load_dataset`, with an empty cache and no network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hf")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_DATASETS_OFFLINE", "1")
        import datasets

        cache = os.environ["HF_HOME"]
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", Path(cache))  # read from the environment at import
        datasets.disable_progress_bars()
        yield lambda path, **options: datasets.load_dataset(str(path), cache_dir=cache, **options)


def rows(folder: Path, split: str) -> list[Row]:
    return [row for table in Dataset.open(str(folder)).tables(split) for row in table.to_pylist()]


@pytest.fixture(params=[(name, "train") for name in NAMES] + [("contexts", "validation")], ids="-".join)
def part(request, mined: Path) -> tuple[Path, str, list[Row]]:
    """A dataset, one of its splits, and the rows of the split."""
    name, split = request.param
    expected = rows(mined / name, split)
    assert expected
    return mined / name, split, expected


def test_datasets(part, load_dataset):
    folder, split, expected = part
    found = load_dataset(folder)
    assert list(found) == list(Dataset.open(str(folder)).manifest.splits)
    assert found[split].to_list() == expected


def test_datasets_streaming(part, load_dataset):
    folder, split, expected = part
    assert list(load_dataset(folder, split=split, streaming=True)) == expected


def test_the_card_tells_what_is_in_the_files(part, load_dataset):
    import datasets

    folder, split, expected = part
    info = datasets.load_dataset_builder(str(folder), cache_dir=os.environ["HF_HOME"]).info
    (file, *_) = sorted(folder.glob(f"data/{split}-*.parquet"))
    assert info.features == datasets.Features.from_arrow_schema(pq.read_schema(file))
    assert info.splits[split].num_examples == len(expected)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("split", ["train", "validation"])
def test_the_triplets(mined, load_dataset, split, streaming):
    """Only the three columns, in the order in which sentence-transformers takes them."""
    folder = mined / "contexts"
    found = load_dataset(folder, name="triplets", split=split, streaming=streaming)
    assert tuple(found.column_names) == TRIPLET
    assert list(found) == [{name: row[name] for name in TRIPLET} for row in rows(folder, split)]
    whole = load_dataset(folder, split=split, streaming=streaming)
    assert list(whole.select_columns(list(TRIPLET))) == list(found)


@pytest.mark.heavy
def test_sentence_transformers_takes_the_triplets(mined, load_dataset, caplog):
    """Anchor, positive, negative by their order. The import of torch takes long."""
    pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator

    found = load_dataset(mined / "contexts", name="triplets", split="train")
    batch = SentenceTransformerDataCollator(lambda texts, **_: {"texts": texts})([*found.select(range(4))])
    assert batch == {f"{name}_texts": found[name][:4] for name in TRIPLET}
    assert not caplog.records


def test_datasets_of_one_name_are_told_apart(tmp_path, load_dataset):
    """Its cache depends on the folder's name and the card."""
    for place, noun in (("here", "whale"), ("there", "ship"), ("there", "boat")):
        shutil.rmtree(tmp_path / place, ignore_errors=True)
        mine(tmp_path / place, [literal_shard({"a:1": f"[NP The {noun}] sank ~."})])
        for _ in range(2):
            found = load_dataset(tmp_path / place / "contexts")
            assert [row["phrase"] for row in found["train"]] == [noun]


def test_datasets_with_parts_without_rows(tmp_path, load_dataset):
    """A shard or a split may be empty."""
    shards = [literal_shard({"a:1": "[NP The whale] sank ~."}), literal_shard({"a:2": "Go ~!"})]
    mine(tmp_path, shards, "--validation-rate=0.001")
    contexts = Dataset.open(str(tmp_path / "contexts"))
    assert {split: len(rows(tmp_path / "contexts", split)) for split in contexts.manifest.splits} == {
        "train": 1,
        "validation": 0,
    }
    found = load_dataset(tmp_path / "contexts")
    assert {name: split.num_rows for name, split in found.items()} == {"train": 1}
    (empty,) = (table for table in contexts.tables("validation"))
    assert empty.column_names == contexts.manifest.schema.names

    no_sentence = literal_shard({"a:3": "((Go ~!))"})
    mine(tmp_path / "some", [no_sentence, *shards])
    sentences = load_dataset(tmp_path / "some" / "sentences")
    assert sentences["train"]["doc_id"][:] == ["a:1", "a:2"]


def test_duckdb(part):
    import duckdb

    folder, split, expected = part
    files = f"read_parquet('{folder}/data/{split}-*.parquet', filename=true, file_row_number=true)"
    columns = "* EXCLUDE (filename, file_row_number)"
    found = duckdb.sql(f"SELECT {columns} FROM {files} ORDER BY filename, file_row_number").to_arrow_table()
    assert found.to_pylist() == expected
    count = f"SELECT count(*) FROM '{folder}/data/{split}-*.parquet'"
    assert duckdb.sql(count).fetchall() == [(len(expected),)]


def test_pandas(part):
    import pandas

    folder, split, expected = part
    shards = sorted((folder / "data").glob(f"{split}-*.parquet"))
    found = pandas.concat([pandas.read_parquet(shard, dtype_backend="pyarrow") for shard in shards])
    assert found.to_dict("records") == expected


def test_own_reader(mined):
    contexts = Dataset.open(str(mined / "contexts"))
    train, validation = (sum(table.num_rows for table in contexts.tables(split)) for split in ("train", "validation"))
    assert train + validation == len(contexts) == contexts.manifest.rows
    tables = list(contexts.tables(columns=TRIPLET))
    assert {tuple(table.column_names) for table in tables} == {TRIPLET}
    assert sum(table.num_rows for table in tables) == len(contexts)
    assert contexts.table(contexts.shards("train")[1]).num_rows == contexts.shards("train")[1].rows
    with pytest.raises(UserError, match="has no split 'test', only train, validation"):
        contexts.shards("test")


def test_own_reader_on_damage(copied):
    folder = copied("contexts")
    (folder / "data/train-00001-of-00003.parquet").write_bytes(b"")
    with pytest.raises(UserError, match=r"00001-of-00003\.parquet: cannot be read .*schemas\.check"):
        list(Dataset.open(str(folder)).tables())


def test_what_the_documentation_shows(mined, tmp_path, monkeypatch, load_dataset, capsys):
    import duckdb

    (tmp_path / "out").symlink_to(mined)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```(python|sql)\n(.*?)```", (ROOT / "docs/datasets.md").read_text(), re.DOTALL)
    assert [language for language, _ in blocks] == ["python", "sql", "python", "python"]
    for language, code in blocks:
        if language == "python":
            exec(compile(code, "docs/datasets.md", "exec"), {})
        else:
            assert all(duckdb.sql(query).fetchall() for query in code.split(";") if query.strip())


def snippets(report: Path) -> list[str]:
    """The blocks of Python in a report's section on loading."""
    section = report.read_text().partition('<section id="load">')[2].partition("</section>")[0]
    return [html.unescape(each) for each in re.findall("<pre><code>(.*?)</code></pre>", section, re.DOTALL)]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_report_shows_works_where_the_user_stands(mined, tmp_path, monkeypatch, load_dataset, name):
    """In any directory, and for a dataset that was moved after its report is written again."""
    moved = tmp_path / 'moved "here" \\ and ü' / name
    shutil.copytree(mined / name, moved)
    monkeypatch.chdir(tmp_path)
    assert report.main([str(moved.relative_to(tmp_path))]) == 0
    for folder in (mined / name, moved):
        manifest = Dataset.open(str(folder)).manifest
        by_datasets, *by_view, by_pyarrow, by_phrasemill = found = [
            dict[str, Any]() for _ in range(3 + len(manifest.kind.views))
        ]
        for code, names in zip(snippets(folder / "report.html"), found, strict=True):
            exec(compile(code, "report.html", "exec"), names)
        for (view, columns), names in zip(manifest.kind.views.items(), by_view, strict=True):
            assert names[view].column_names == [*columns]
        assert len(by_datasets["rows"]) == sum(each.rows for each in manifest.splits["train"])
        assert by_pyarrow["table"].num_rows == manifest.rows
        assert by_phrasemill["table"].num_rows == manifest.shards[-1].rows


@pytest.mark.parametrize("name", NAMES)
def test_usual_patterns_match_the_rows_alone(mined, load_dataset, name):
    """Not the side tables; two of the datasets have some."""
    import duckdb
    import pandas
    import pyarrow.dataset

    folder, manifest = mined / name, Dataset.open(str(mined / name)).manifest
    assert bool(manifest.sides) == (name in ("contexts-documents", "contexts-sentences"))
    files = glob.glob(f"{folder}/**/*.parquet", recursive=True)
    assert sum(pq.read_metadata(each).num_rows for each in files) == manifest.rows
    assert len(duckdb.sql(f"SELECT * FROM '{folder}/**/*.parquet'").fetchall()) == manifest.rows
    assert load_dataset("parquet", data_files=f"{folder}/**/*.parquet", split="train").num_rows == manifest.rows
    assert sum(split.num_rows for split in load_dataset(folder).values()) == manifest.rows
    assert len(pandas.read_parquet(folder / "data")) == manifest.rows
    assert pyarrow.dataset.dataset(folder / "data").count_rows() == manifest.rows


def test_side_tables_of_earlier_versions_are_read(copied, capsys):
    folder = copied("contexts-documents")
    text = (folder / "manifest.json").read_text()
    for path in folder.rglob("*.pq"):
        path.rename(path.with_suffix(".parquet"))
    (folder / "manifest.json").write_text(text.replace(".pq", ".parquet"))
    assert check([str(folder)]) == 0
    assert rejects.main([str(folder)]) == 0
    assert '{"text": cut' in capsys.readouterr().out
