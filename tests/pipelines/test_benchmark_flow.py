"""What `benchmarks/flow.py` counts: who reads what, held against what the stages really open."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from literal import dump

from pipelines.engine import exchange
from pipelines.engine.stage import SIDE_TABLES, File, Stage, Work, run_unit
from pipelines.stages import contexts, count, extract, parse
from schemas.storage import Folder, parquet_file

# What `python -m` finds, pytest does not: the benchmarks are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from benchmarks import flow
from benchmarks.flow import Edge, Read, Written


class Opened(NamedTuple):
    """Columns that a stage read of a file: `source` and `role` as in READS, None for all columns."""

    stage: str
    source: str
    role: str
    columns: frozenset[str] | None


class Traced:
    """A Parquet file that notes what is read of it."""

    def __init__(self, reader: Any, note: Any) -> None:
        self._reader, self._note = reader, note

    def __enter__(self) -> Traced:
        return self

    def __exit__(self, *error: object) -> None:
        self._reader.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def read(self, *, columns: list[str] | None = None, use_threads: bool) -> Any:
        self._note(columns)
        return self._reader.read(columns=columns, use_threads=use_threads)

    def read_row_group(self, group: int, *, columns: list[str] | None = None, use_threads: bool) -> Any:
        self._note(columns)
        return self._reader.read_row_group(group, columns=columns, use_threads=use_threads)


@pytest.fixture(scope="module")
def traced_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[flow.Measured, set[Opened], Path]:
    """A small corpus with a duplicate id and a duplicate text, measured in this process."""
    folder = tmp_path_factory.mktemp("flow")
    same = "The old house stands near the river, and a large garden lies behind the old house."
    inputs = [
        dump(folder / "new.xml", {7: "Emma is a great novel about a small village.", 8: same}),
        dump(folder / "old.xml", {7: "Emma is a novel.", 9: same, 10: "A small village has a large garden."}),
    ]
    arguments = [*(f"--input={each}" for each in inputs), "--dedup=documents", "--validation-rate=0.5"]
    builds, raw_bytes, _ = flow.prepare(arguments, folder / "out")
    opened: set[Opened] = set()
    at_work: list[str] = []

    def traced(place: Folder, name: str) -> Traced:
        if name.startswith("_work/"):
            source, role = name.split("/")[1], name.split(".")[-2]
        else:
            source, role = (place.name.removeprefix("contexts-") if place.name != "contexts" else "contexts"), "train"

        def note(columns: list[str] | None) -> None:
            opened.add(Opened(at_work[-1], source, role, None if columns is None else frozenset(columns)))

        return Traced(parquet_file(place, name), note)

    def do(work: Work, stage: Stage, units: list[int]) -> None:
        at_work.append(stage.name)
        for unit in units:
            run_unit(work, stage, unit)

    with pytest.MonkeyPatch.context() as patch:
        for module in (exchange, contexts, count, extract, parse):
            patch.setattr(module, "parquet_file", traced)
        return flow.measure(builds, raw_bytes, do), opened, folder


def declared(read: Read, role: str) -> Opened:
    return Opened(read.stage, read.source, role, None if read.columns is None else frozenset(read.columns))


def test_stages_read_what_the_table_says(traced_run: tuple[flow.Measured, set[Opened], Path]) -> None:
    _, opened, _ = traced_run
    assert opened
    expected = {declared(read, role) for read in flow.READS for role in read.roles}
    assert expected <= opened
    # The search for negatives also reads parts of what `order` has on its list.
    columns = {each[:3]: each.columns for each in expected}
    for each in opened - expected:
        assert each.stage == "order"
        assert each.columns < columns[each[:3]]


def test_edges_are_whole(traced_run: tuple[flow.Measured, set[Opened], Path]) -> None:
    measured, _, folder = traced_run
    sizes = {(edge.source, edge.target): edge.bytes for edge in measured.edges}
    assert len(sizes) == len(measured.edges)
    assert all(sizes.values())
    assert sizes["input", "extract"] == sum(path.stat().st_size for path in folder.glob("*.xml"))
    out = folder / "out"
    for dataset, stages in flow.WRITERS.items():
        place = out / ("contexts" if dataset == "contexts" else f"contexts-{dataset}")
        published = [path for name in ("data", *SIDE_TABLES) for path in place.glob(f"{name}/*.parquet")]
        assert sum(sizes[stage, dataset] for stage in stages) == sum(path.stat().st_size for path in published)
    assert measured.moments[-1].after == "contexts finished"
    assert measured.moments[-1].bytes == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    assert flow.from_json(flow.to_json(measured)) == measured


def test_the_picture_has_a_way_for_each_edge(
    traced_run: tuple[flow.Measured, set[Opened], Path], tmp_path: Path
) -> None:
    measured, _, _ = traced_run
    flow.plot(measured, tmp_path / "flow.svg")
    assert 10_000 < (tmp_path / "flow.svg").stat().st_size < 300_000


@pytest.mark.parametrize(
    ("value", "expected"),
    [(43.407, "43.4"), (0.05, "0.1"), (0.023, "0.02"), (0.00009, "0.00009"), (0.01, "0.01"), (0.0, "0.0")],
)
def test_small_amounts_keep_a_digit(value: float, expected: str) -> None:
    assert flow.amount(value) == f"{expected} B/token"


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (None, 100),
        (("text", "tokens", "id"), 100),
        (("text",), 67),
        (("text", "tokens.list.element.start"), 87),
        (("id", "token"), 43),  # a name is a whole one
    ],
)
def test_bytes_read_are_the_file_less_other_columns(columns: tuple[str, ...] | None, expected: int) -> None:
    chunks = {"text": 27, "tokens.list.element.start": 20, "tokens.list.element.tag": 10, "id": 3}
    assert flow.bytes_read(100, chunks, columns) == expected


def test_a_replaced_shard_counts_where_it_is_replaced() -> None:
    def written(stage: str, path: str, size: int, role: str = "train", supersedes: str = "") -> Written:
        return Written("documents", stage, File(role, path, 1, size, "", supersedes), {"text": size - 10})

    files = [
        written("extract", "a", 100),
        written("extract", "b", 200),
        written("extract", "k", 50, "keys"),
        written("extract", "r", 30, "redirects"),
        written("drop", "c", 90, supersedes="a"),
    ]
    reads = [
        Read("drop", "extract", "shards", replaced=True),
        Read("find", "extract", "keys", ("keys",)),
        Read("parse", "documents", "text", columns=("id",)),
    ]
    found = [edge for edge in flow.edges_of(files, reads) if edge.bytes]
    assert found == [
        Edge("extract", "documents", "published", 2, 230),
        Edge("drop", "documents", "published", 1, 90),
        Edge("extract", "drop", "shards", 1, 100),
        Edge("extract", "find", "keys", 1, 50),
        Edge("documents", "parse", "text", 2, 20),
    ]


@pytest.mark.parametrize(
    ("units", "spread", "gather"),
    [(0, (1, 2), (1, 2)), (3, (4, 2 + 3 * 3), (4, 2 + 3 * 2)), (11, (12, 2 + 10 * 3 + 4), (12, 2 + 11 * 2))],
)
def test_shuffles_carry_a_few_bytes_a_unit(units: int, spread: tuple[int, int], gather: tuple[int, int]) -> None:
    found = flow.shuffles_of("parse", units)
    assert [(each.name, each.elements, each.bytes) for each in found] == [("Spread", *spread), ("Gather", *gather)]
