"""`--plan`: the estimators as tables, and whole plans against what the runs then make."""

from __future__ import annotations

import gzip
import json
import random
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import chain_of, run_here

from pipelines import corpus
from pipelines.cli import main
from pipelines.mine_contexts import COMMAND
from pipelines.planning import pieces, text
from pipelines.planning.estimates import Estimate, growth, independent, makespan, total
from pipelines.planning.machine import available_memory
from pipelines.planning.pieces import spread
from pipelines.planning.plan import Plan
from pipelines.planning.plan import foretell as plan
from pipelines.planning.text import span_of_bytes, span_of_numbers, span_of_seconds, warnings
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from transforms.sources.sample import sample_inputs


def exactly(value: float) -> Estimate:
    return Estimate.exactly(value)


# ---- Estimators


@pytest.mark.parametrize(
    ("values", "sizes", "hits", "whole", "wanted"),
    [
        ([1, 2], [10, 20], [1, 1], 300, (30, 30, 30)),  # the same ratio everywhere
        ([1, 3], [10, 10], [1, 1], 20, (4, 4, 4)),  # all was seen
        ([1, 3], [10, 10], [3, 1], 4000, (4, 600, 2780)),  # the mean ratio is that of the points, not of the pieces
        ([2], [1], [1], 100, (100.5, 200, 299.5)),  # one piece says nothing of how pieces differ
        ([0, 0], [1, 1], [1, 1], 100, (0, 0, 0)),
        ([], [], [], 0, (0, 0, 0)),
    ],
)
def test_a_total_from_pieces(values, sizes, hits, whole, wanted):
    found = total(values, sizes, hits, whole)
    assert (found.low, found.middle, found.high) == pytest.approx(wanted, rel=0.01)


def test_nine_intervals_of_ten_hold_the_truth():
    held = 0
    for seed in range(300):
        draw = random.Random(seed)
        sizes = [draw.randint(1, 1000) for _ in range(2000)]
        values = [size * draw.lognormvariate(0, 0.5) for size in sizes]
        hits = spread(sizes, 8)
        chosen = sorted(hits)
        found = total([values[i] for i in chosen], [sizes[i] for i in chosen], [hits[i] for i in chosen], sum(sizes))
        held += found.low <= sum(values) <= found.high
    assert 0.85 < held / 300 < 0.96


def test_errors_of_independent_parts_do_not_add_up():
    parts = [Estimate(7, 10, 13), Estimate(16, 20, 24)]
    assert independent(parts) == Estimate(25, 30, 35)
    assert sum(parts, start=exactly(0)) == Estimate(23, 30, 37)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50), st.integers(1, 20))
def test_points_fall_where_the_size_is(sizes, points):
    hits = spread(sizes, points)
    assert sum(hits.values()) == (points if sum(sizes) else 0)
    for number, size in enumerate(sizes):
        share = points * size / max(sum(sizes), 1)
        assert share - 1 <= hits[number] <= share + 1


@pytest.mark.parametrize("exponent", [0.6, 0.85, 1.0])
def test_distinct_phrases_grow_by_a_power_law(exponent):
    fitted = growth([(t, t**exponent) for t in (1e5, 2e5, 4e5)])
    found = fitted.at(4e8)
    assert found.high == pytest.approx(4e8**exponent)
    assert found.low < found.middle < found.high
    inside = fitted.at(1e5)
    assert inside.low <= 1e5**exponent * 1.001
    assert inside.middle == pytest.approx(1e5**exponent, rel=0.05)


def test_phrases_that_occur_often():
    fitted = growth([(1e5, 5e4), (2e5, 9e4)], shares=[1.0, 0.2, 0.1])
    assert fitted.often(2e5, 1).middle == pytest.approx(9e4)
    assert fitted.often(2e5, 2).middle == pytest.approx(1.8e4)
    assert fitted.often(2e5, 6).middle == pytest.approx(9e4 * 0.1 * 3 / 6)
    assert fitted.often(2e7, 2).middle > fitted.at(2e7).middle * 0.2
    assert growth([]).at(1e6) == exactly(0)


@pytest.mark.parametrize(
    ("seconds", "workers", "wanted"),
    [([], 4, 0), ([5], 4, 5), ([1, 1, 1, 1], 2, 2), ([1, 1, 1], 2, 2), ([1, 9, 1, 1], 2, 9), ([4, 3, 2, 1], 2, 5)],
)
def test_when_the_last_unit_is_done(seconds, workers, wanted):
    assert makespan(seconds, workers) == wanted


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (span_of_numbers(exactly(1234567)), "1,234,567"),
        (span_of_numbers(Estimate(1234567, 0, 2345678)), "1,230,000-2,350,000"),
        (span_of_numbers(Estimate(12.2, 0, 12.4)), "12"),
        (span_of_bytes(Estimate(9.5e8, 0, 1.21e9)), "0.95-1.21 GB"),
        (span_of_bytes(exactly(0)), "0 B"),
        (span_of_seconds(Estimate(0.1, 0, 0.4)), "< 1 s"),
        (span_of_seconds(Estimate(50, 0, 130)), "0.83-2.2 min"),
        (span_of_seconds(Estimate(3600, 0, 9000)), "1.0-2.5 h"),
    ],
)
def test_figures_are_rounded(said, wanted):
    assert said == wanted


# ---- The machine


def group(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("", 8000 * 1024),  # the machine's
        ("0::/\n", 5_000_000),  # a container, which sees its own group as the root
        ("0::/job/step\n", 1_500_000),  # the closest limit counts, and files kept in memory do not
        ("4:cpu,memory:/old\n", 700_000),  # version 1
    ],
)
def test_memory_that_a_container_leaves(tmp_path, lines, wanted):
    group(tmp_path / "proc", meminfo="MemTotal: 9000 kB\nMemAvailable: 8000 kB")
    group(tmp_path / "proc/self", cgroup=lines)
    if lines:
        version_2 = tmp_path / "sys/fs/cgroup"
        stat = "anon 100\ninactive_file 500000"
        if lines.startswith("0::"):
            group(version_2, memory__max=6_000_000, memory__current=1_000_000)
            group(version_2 / "job", memory__max=2_000_000, memory__current=1_000_000, memory__stat=stat)
            group(version_2 / "job/step", memory__max="max", memory__current=1_000_000)
        else:
            limits = {"memory__limit_in_bytes": 800_000, "memory__usage_in_bytes": 100_000}
            group(version_2 / "memory/old", **limits)
    (tmp_path / "proc/self/cgroup").write_text(lines)
    assert available_memory(tmp_path) == wanted


# ---- Whole plans


@pytest.fixture(scope="module")
def book() -> str:
    """A real book, or some chapters of it."""
    with tarfile.open(sample_inputs()[1]) as archive:
        member = next(each for each in archive if each.name.endswith(".txt"))
        extracted = archive.extractfile(member)
        assert extracted is not None
        return extracted.read().decode()


@pytest.fixture(scope="module")
def tale(book: str) -> str:
    """Its beginning, 8 kB."""
    return book[: book.index("\n", 8_000)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of a moment."""
    monkeypatch.setitem(pieces.SAMPLE_TEXT, "phrasemill", 30_000)
    monkeypatch.setattr(pieces, "PARSED_BYTES", 20_000)


def foretell(output: Path, *flags: str) -> tuple[Plan, list[corpus.ChainDataset]]:
    chain = chain_of(COMMAND, *flags, f"--output={output}")
    todo = [each.build for each in chain if each.build is not None]
    return plan(chain, todo, workers=2), chain


def truth(output: Path) -> dict[str, float]:
    """What a run made, by the names of the stages that make it."""
    found: dict[str, float] = {}
    for suffix, stage in (("-documents", "drop"), ("-sentences", "parse"), ("-phrases", "select"), ("", "order")):
        manifest = read_manifest(Folder(f"{output}{suffix}"))
        found[stage] = manifest.rows
        found[f"{stage} kept"] = sum(shard.bytes for shard in manifest.shards)
        found |= {f"{each.name} units": each.units for each in manifest.stages}
    found["tokens"] = read_manifest(Folder(f"{output}-sentences")).counter("tokens")
    return found


def outside(found: Plan, real: dict[str, float]) -> list[str]:
    """What of the plan's intervals does not hold what a run made."""
    intervals = {line.stage: line.rows for line in found.lines}
    intervals |= {f"{line.stage} units": line.units for line in found.lines}
    intervals |= {f"{each.lines[-1].stage} kept": each.kept for each in found.forecasts} | {"tokens": found.tokens}
    return [
        f"{name}: {intervals[name]}, really {value}"
        for name, value in real.items()
        if not intervals[name].low * 0.999 <= value <= intervals[name].high * 1.001
    ]


@pytest.fixture(scope="module")
def sixteen_books(tale: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One book sixteen times: what one piece has, all have."""
    folder = tmp_path_factory.mktemp("books")
    for number in range(16):
        (folder / f"book{number:02}.txt").write_text(tale)
    return folder


@pytest.fixture(scope="module")
def sixteen_made(sixteen_books: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("made") / "out"
    run_here(COMMAND, f"--input={sixteen_books}", f"--output={output}", "--shard-bytes=12000")
    return output


@pytest.mark.heavy
def test_the_same_book_sixteen_times(sixteen_books, sixteen_made, tmp_path):
    found, _ = foretell(tmp_path / "out", f"--input={sixteen_books}", "--shard-bytes=12000")
    real = truth(sixteen_made)
    assert 0.05 < found.measured.pieces.share < 0.6
    by_stage = {line.stage: line for line in found.lines}
    assert by_stage["extract"].rows.middle == pytest.approx(16)
    assert found.tokens.middle == pytest.approx(real["tokens"], rel=0.001)
    assert by_stage["parse"].rows.middle == pytest.approx(real["parse"], rel=0.001)
    assert by_stage["parse"].units.middle == pytest.approx(real["parse units"], rel=0.1)
    # Sixteen times the same has no more phrases than one; real text has.
    assert by_stage["select"].rows.high >= real["select"]
    assert by_stage["extract"].work.middle > 0
    assert found.wall.low > 0
    assert found.disk.middle > found.kept.middle > 0
    assert list(tmp_path.iterdir()) == []


def test_all_of_a_small_input_is_measured(tale, tmp_path, capsys):
    (tmp_path / "tale.txt").write_text(tale)
    flags = [f"--input={tmp_path}/tale.txt", f"--output={tmp_path}/out"]
    assert main(COMMAND, [*flags, "--plan"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("all of the input was measured")
    assert said.rstrip().endswith(f"-m pipelines.mine_contexts {' '.join(flags)}")
    assert not (tmp_path / "out").exists()
    found, _ = foretell(tmp_path / "out", flags[0])
    assert main(COMMAND, flags) == 0
    assert outside(found, truth(tmp_path / "out")) == []


@pytest.mark.heavy
def test_datasets_that_are_there_are_taken(sixteen_books, sixteen_made, capsys):
    before = sorted(sixteen_made.parent.rglob("*"))
    flags = [
        f"--input={sixteen_books}",
        "--shard-bytes=12000",
        "--window=60",
        "--overwrite",
        f"--output={sixteen_made}",
    ]
    assert main(COMMAND, [*flags, "--plan", "--workers=2"]) == 0
    said = capsys.readouterr().out
    for name in ("documents", "sentences", "phrases"):
        assert f"{sixteen_made}-{name}: is there already and fits: taken as it is" in said
    stages = [line.split()[0] for line in said.splitlines() if line.startswith("  ")]
    assert stages[1:] == ["choose", "keep", "cut", "order"]  # behind the heading
    assert sorted(sixteen_made.parent.rglob("*")) == before


@pytest.mark.heavy
@pytest.mark.parametrize("given_dataset", ["documents", "sentences"])
def test_a_dataset_as_input(sixteen_made, tmp_path, given_dataset):
    found, _ = foretell(tmp_path / "out", f"--input={sixteen_made}-{given_dataset}")
    assert found.measured.pieces.share < 0.6
    real = truth(sixteen_made)
    assert found.tokens.low * 0.999 <= real["tokens"] <= found.tokens.high * 1.001
    lines = {line.stage: line for line in found.lines}
    assert "extract" not in lines
    assert ("parse" in lines) == (given_dataset == "documents")
    assert lines["choose"].units == exactly(real["choose units"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["gz", "zip"])
def test_files_that_cannot_be_split(book, tmp_path, kind):
    texts = [book[start : start + 2_000] for start in range(0, min(len(book), 160_000), 2_000)]
    if kind == "zip":
        with zipfile.ZipFile(tmp_path / "books.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for number, each in enumerate(texts):
                archive.writestr(f"{number}.txt", each)
    else:
        rows = "".join(json.dumps({"text": each, "id": number}) + "\n" for number, each in enumerate(texts))
        (tmp_path / "books.jsonl.gz").write_bytes(gzip.compress(rows.encode(), 1))
    path = next(each for each in tmp_path.iterdir())
    found, _ = foretell(tmp_path / "out", f"--input={path}")
    assert found.measured.pieces.begun == 1
    rows_found = found.lines[0].rows
    assert rows_found.low <= len(texts) <= rows_found.high
    assert len(texts) == pytest.approx(rows_found.middle, rel=0.25)
    assert "the beginning only" in text.sampled(found)


@pytest.mark.heavy
def test_the_first_documents(sixteen_books, tmp_path):
    found, _ = foretell(tmp_path / "out", f"--input={sixteen_books}", "--max-documents=12")
    assert found.lines[0].rows.middle == pytest.approx(12)
    assert not found.measured.pieces.is_whole
    few, _ = foretell(tmp_path / "out", f"--input={sixteen_books}", "--max-documents=2")
    assert few.measured.pieces.is_whole
    assert few.lines[0].rows == exactly(2)


@pytest.mark.heavy
def test_what_does_not_fit_is_said(sixteen_made, tmp_path, monkeypatch):
    found, chain = foretell(tmp_path / "out", f"--input={sixteen_made}-sentences")
    todo = [each.build for each in chain if each.build is not None]
    output = chain[-1].folder

    def said(*, disk: float = 1e15, memory: float = 1e15) -> list[str]:
        monkeypatch.setattr(text, "free_disk", lambda *_: disk)
        monkeypatch.setattr(text, "available_memory", lambda: memory)
        return warnings(found, output, todo, workers=2, max_reject_rate=0.01)

    assert said() == []
    (line,) = said(disk=10)
    assert "will not do" in line
    assert "--output" in line
    (line,) = said(disk=found.disk.middle)
    assert "may not do" in line
    (line,) = said(memory=found.main_memory + 1.5 * found.worker_memory.high)
    assert line.endswith("--workers=1")
    (line,) = said(memory=10)
    assert "not even one worker fits" in line
