"""`--plan`: the estimates as tables, and plans of real runs against what those then make."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from literal import chain_of, document_row, dump, run_here
from pyarrow import fs
from toy import word_count

from pipelines import extract_documents, mine_contexts, mine_mentions
from pipelines.cli import Command, main
from pipelines.engine import plan
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.executors import InlineExecutor
from pipelines.engine.machine import available_memory
from pipelines.engine.plan import Figures, Forecast, Line, Part, Plan, grow, linear, power, spread, squared
from pipelines.engine.stage import StageError
from pipelines.stages import extract, mentions
from pipelines.stages import parse as parse_steps
from pipelines.stages.count import Select
from pipelines.stages.mentions import SqlFile
from schemas.kinds import KINDS
from schemas.kinds.documents import DOCUMENTS
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from transforms.reports.figures import between, roughly, rounded, size
from transforms.sources.sql_tables import open_table, read_facts

# ---- Estimates


@pytest.mark.parametrize(("n", "wanted"), [(0, []), (1, [0]), (5, [2, 1, 4, 3, 0]), (8, [4, 0, 6, 2, 5, 1, 7, 3])])
def test_any_first_few_numbers_are_spread(n, wanted):
    assert spread(n) == wanted


@pytest.mark.parametrize("n", [2, 31, 64, 1000])
def test_all_numbers_come_once(n):
    assert sorted(spread(n)) == list(range(n))


@pytest.mark.parametrize(
    ("values", "sizes", "whole", "wanted"),
    [
        ([1, 2], [10, 20], 300, (30, 30, 30)),  # the same ratio everywhere
        ([1, 3], [10, 10], 20, (4, 4, 4)),  # all was seen
        ([2], [1], 100, (134, 200, 299)),  # one unit does not tell how units differ
        ([9, 11, 10, 10], [1, 1, 1, 1], 400, (3598, 4000, 4447)),
        ([1, 300], [1, 1], 200, (15_124, 30_100, 59_900)),  # never beyond twice as much
        ([0, 0], [1, 1], 100, (0, 0, 0)),
        ([], [], 100, (0, 0, 0)),
    ],
)
def test_a_whole_from_units(values, sizes, whole, wanted):
    found = [linear(values, sizes, whole, end) for end in (-1, 0, 1)]
    assert found == pytest.approx(wanted, rel=0.01)


def test_the_range_holds_most_wholes():
    held = 0
    for seed in range(300):
        draw = random.Random(seed)
        sizes = [draw.randint(1, 1000) for _ in range(2000)]
        values = [size * draw.lognormvariate(0, 0.5) for size in sizes]
        chosen = draw.sample(range(2000), 8)
        of_sample = [values[i] for i in chosen], [sizes[i] for i in chosen]
        low, high = (linear(*of_sample, sum(sizes), end) for end in (-1, 1))
        held += low <= sum(values) <= high
    assert 0.8 < held / 300 < 0.95  # less than nine of ten, for a few units are far above the others


@pytest.mark.parametrize(
    ("values", "sizes", "whole", "wanted"),
    [
        ([3, 6], [10, 20], 1000, (10_002, 12_250, 15_000)),  # 2 and a hundredth of the square; no more than the square
        ([1, 4], [10, 20], 1000, (10_000, 10_000, 10_000)),
        ([6], [20], 1000, (300, 2_105, 15_000)),  # in proportion, or with the square
        ([3, 6], [10, 20], 20, (6, 6, 6)),  # all was seen
    ],
)
def test_the_time_of_all_pairs_grows_with_the_square(values, sizes, whole, wanted):
    assert [round(squared(values, sizes, whole, end)) for end in (-1, 0, 1)] == pytest.approx(wanted, rel=0.001)


@pytest.mark.parametrize("exponent", [0.6, 0.85, 1.0])
def test_distinct_things_grow_by_a_power(exponent):
    sizes = [1e5, 2e5, 4e5]
    low, middle, high = (power([size**exponent for size in sizes], sizes, 4e8, end) for end in (-1, 0, 1))
    assert high == pytest.approx(4e8**exponent)
    assert low < middle < high


@pytest.mark.parametrize(
    ("values", "sizes", "whole", "wanted"),
    [
        ([100], [10], 1000, (1000, 10_000)),  # one part has no exponent
        ([10, 100], [10, 100], 1000, (631, 1000)),
        ([10, 80, 400], [10, 100, 1000], 10_000, (1265, 2000)),  # it fell by 0.2; 0.5 at least
        ([10, 300], [10, 100], 1000, (3000, 11_330)),  # pairs: 1.48, and 0.1 more
        ([10, 100, 2000], [10, 100, 1000], 10_000, (20_000, 79_621)),  # after 1 comes 1.3, then 1.6
        ([100, 100], [10, 100], 1000, (100, 100)),  # bounded
        ([0, 0], [10, 100], 1000, (0, 0)),
        ([50, 70], [10, 100], 100, (70, 70)),  # it is all there
    ],
)
def test_what_brings_things_together(values, sizes, whole, wanted):
    found = [power(values, sizes, whole, end) for end in (-1, 1)]
    assert found == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize(
    ("sizes", "cost", "wanted"),
    [
        ([1] * 100, 0.0, [2, 16, 100]),  # eight times as much each time
        ([1] * 100, 1.0, [2, 16]),  # 16 took 16 s of 40, the next would take as long at least
        ([1] * 100, 30.0, [2]),
        ([1, 1, 30, 30], 0.1, [2, 3, 4]),  # pieces that are larger than all before
        ([1], 30.0, [1]),
    ],
)
def test_parts_grow_as_long_as_there_is_time(sizes, cost, wanted, monkeypatch):
    now = 0.0
    monkeypatch.setattr(plan.time, "monotonic", lambda: now)
    runs = []

    def run(number: int) -> Part:
        nonlocal now
        runs.append(number)
        seconds = cost * sum(sizes[:number])
        now += seconds
        return Part(Folder("x"), sum(sizes[:number]), seconds=seconds)

    assert [part.size for part in grow(run, sizes, first=2, seconds=40)] == [sum(sizes[:n]) for n in runs]
    assert runs == wanted


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (between((1234567, 1234567), rounded), "1,230,000"),
        (between((12.2, 15.4), rounded), "12-15"),
        (between((0, 999.9), rounded), "0-1,000"),
        (between((9.5e8, 1.21e9), size), "950.0 MB-1.2 GB"),
        (between((1.1e9, 2e9, 1.21e12), size), "1.1 GB-1.2 TB"),
        (between((1.1e9, 1.2e9), size), "1.1-1.2 GB"),
        (between((0.1, 0.4), roughly), "0.1-0.4 s"),
        (between((50, 130), roughly), "50 s-2.2 min"),
        (between((7200, 9000), roughly), "2.0-2.5 h"),
        (between((200_000, 9_000_000), roughly), "2.3-104.2 days"),
    ],
)
def test_ranges(said, wanted):
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


def expected(*, disk: float, memory: float, rejected: int) -> Plan:
    build = DatasetBuild(Folder("out"), KINDS["Context"], (), (), {})
    figures = Figures({("ledger", "read"): 1000, ("ledger", "rejected"): rejected})
    line = Line(Select(max_phrases=None), 1, figures, 1.0)
    forecasts = [[Forecast(build, [line], 1, disk * more, 0)] for more in (0.5, 1, 1.5)]
    return Plan(forecasts, 1.0, 1.0, (1, 1, 1), (memory / 2, memory, memory * 1.5), 100)


# ---- Real plans


def plan_of(command: Command, output: Path, *flags: str, workers: int = 2) -> Plan:
    chain = chain_of(command, *flags, f"--output={output}")
    todo = [each.build for each in chain if each.build is not None]
    return plan.plan([(each.folder, each.build) for each in chain], todo, InlineExecutor(), workers=workers)


def outside(found: Plan, *, made: Path, output: Path, rows_alone: bool = False) -> list[str]:
    """What of the ranges does not hold what a run made. The bytes of small files are mostly those of their footers."""
    wrong = []
    for ends in zip(*found.forecasts, strict=True):
        name = ends[0].build.output.name.replace(output.name, made.name)
        manifest = read_manifest(Folder(str(made.parent / name)))
        sides = [file for files in manifest.sides.values() for file in files]
        real: list[tuple[str, Sequence[float], float]] = [("rows", [each.rows for each in ends], manifest.rows)]
        if not rows_alone:
            real.append(("kept", [each.kept for each in ends], sum(file.bytes for file in [*manifest.shards, *sides])))
            for number, stage in enumerate(manifest.stages):
                real.append((f"units of {stage.name}", [each.lines[number].units for each in ends], stage.units))
        wrong += [
            f"{name} {what}: {low:,.0f}-{high:,.0f}, really {value:,}"
            for what, (low, _, high), value in ((what, sorted(span), value) for what, span, value in real)
            if not low * 0.999 <= value <= high * 1.001
        ]
    return wrong


@pytest.fixture
def first_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time for a second part."""
    monkeypatch.setattr(plan, "RAW_SECONDS", 0.0)
    monkeypatch.setattr(plan, "SECONDS", 0.0)


TALE = (
    "The old captain of the {n} whale ship saw a white sail on the far horizon. "
    "He called his {n} men to the narrow deck, and a boy brought the long brass glass. "
    "Nobody had seen the coast of the green island since the great storm of the year {n}.\n\n"
)


@pytest.fixture(scope="module")
def tales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen tales of four paragraphs."""
    folder = tmp_path_factory.mktemp("tales")
    for number in range(16):
        (folder / f"tale{number:02}.txt").write_text("".join(TALE.format(n=f"n{number}x{n}") for n in range(4)))
    return folder


SMALL = ("--shard-bytes", "2000", "--min-frequency", "1")


@pytest.fixture(scope="module")
def told(tales: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the run makes of them."""
    output = tmp_path_factory.mktemp("told") / "out"
    run_here(mine_contexts.COMMAND, f"--input={tales}", f"--output={output}", *SMALL)
    return output


def test_all_of_a_small_input_is_measured(tales, told, tmp_path, monkeypatch, capsys):
    plans: list[Plan] = []
    real_plan = plan.plan
    monkeypatch.setattr(plan, "plan", lambda *given, **more: plans.append(real_plan(*given, **more)) or plans[0])
    flags = ["--input", str(tales), *SMALL, "--output", f"{tmp_path}/out"]
    assert main(mine_contexts.COMMAND, [*flags, "--plan"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("measured on all of the input")
    assert said.rstrip().endswith(f"-m pipelines.mine_contexts {' '.join(flags)}")
    assert list(tmp_path.iterdir()) == []
    (found,) = plans
    assert found.share == 1
    assert outside(found, made=told, output=tmp_path / "out") == []
    assert found.wall[0] > 0
    assert found.disk[1] > sum(each.kept for each in found.forecasts[1])


def test_a_part_stands_for_the_whole(tales, told, tmp_path, first_part_alone):
    found = plan_of(mine_contexts.COMMAND, tmp_path / "out", f"--input={tales}", *SMALL, workers=6)
    assert 0.1 < found.share < 0.8
    assert outside(found, made=told, output=tmp_path / "out", rows_alone=True) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "#REDIRECT [[Elsewhere]]"])
def test_an_input_without_documents(tmp_path, text):
    path = dump(tmp_path / "sea.xml", {1: text} if text else {})
    found = plan_of(mine_contexts.COMMAND, tmp_path / "out", f"--input={path}")
    assert [[each.rows for each in of] for of in found.forecasts] == [[0, 0, 0, 0]] * 3


@pytest.mark.parametrize("given", ["documents", "sentences"])
def test_a_dataset_as_input(told, tmp_path, first_part_alone, given):
    found = plan_of(mine_contexts.COMMAND, tmp_path / "out", f"--input={told}-{given}", *SMALL[2:], workers=3)
    assert found.share < 0.8
    assert outside(found, made=told, output=tmp_path / "out", rows_alone=True) == []
    stages = [line.stage.name for each in found.forecasts[1] for line in each.lines]
    assert stages[0] == {"documents": "parse", "sentences": "count"}[given]


def test_datasets_that_are_there_are_taken(tales, told, capsys):
    before = sorted(told.parent.rglob("*"))
    flags = [f"--input={tales}", *SMALL, "--window=60", "--overwrite", f"--output={told}"]
    assert main(mine_contexts.COMMAND, [*flags, "--plan"]) == 0
    said = capsys.readouterr().out
    for name in ("documents", "sentences", "phrases"):
        assert f"{told}-{name}: is there already and fits: taken as it is" in said
    stages = [line.split()[0] for line in said.splitlines() if line.startswith("  ")]
    assert stages[1:] == ["choose", "keep", "cut", "order"]  # after the heading
    assert sorted(told.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("flag", "wanted"), [("--max-documents=3", ("documents", 3)), ("--max-phrases=20", ("phrases", 20))]
)
def test_what_options_limit(tales, tmp_path, first_part_alone, flag, wanted):
    found = plan_of(mine_contexts.COMMAND, tmp_path / "out", f"--input={tales}", *SMALL, flag)
    kind, rows = wanted
    assert [each.rows for of in found.forecasts for each in of if each.build.kind.rows == kind] == [rows] * 3
    assert [of[-1].rows for of in found.forecasts] <= [found.forecasts[2][2].rows] * 3


@pytest.mark.parametrize("kind", ["gz", "zip"])
def test_of_files_that_cannot_be_split_the_beginning_is_read(tmp_path, monkeypatch, first_part_alone, kind):
    monkeypatch.setattr(extract, "SAMPLE_BYTES", 10_000)
    draw = random.Random(0)
    texts = ["".join(draw.choices("abcdefgh ", k=400)) for _ in range(200)]
    path = tmp_path / {"gz": "texts.jsonl.gz", "zip": "texts.zip"}[kind]
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, each in enumerate(texts):
                archive.writestr(f"{number}.txt", each)
    else:
        rows = "".join(json.dumps({"text": each, "id": number}) + "\n" for number, each in enumerate(texts))
        path.write_bytes(gzip.compress(rows.encode()))
    found = plan_of(extract_documents.COMMAND, tmp_path / "out", f"--input={path}")
    low, middle, high = (of[0].rows for of in found.forecasts)
    assert low < 200 < high
    assert middle == pytest.approx(200, rel=0.15)
    assert found.share < 0.5
    assert [line.figures["ledger", "rejected"] for line in found.forecasts[1][0].lines] == [0, 0, 0, 0]


def test_a_chain_that_nobody_thought_of(tmp_path, first_part_alone):
    """Its stages are all that a plan needs."""
    draw = random.Random(0)
    texts = tuple(" ".join(f"w{min(int(draw.paretovariate(0.7)), 5000)}" for _ in range(100)) for _ in range(40))
    build = word_count(tmp_path / "out", texts)
    found = plan.plan([(build.output, build)], [build], InlineExecutor(), workers=8)
    assert found.share == pytest.approx(8 / 40)
    count, add = zip(*(each[0].lines for each in found.forecasts), strict=True)
    assert [line.units for line in count] == [40] * 3
    assert [line.units for line in add] == [3] * 3
    words, distinct = (len(each) for each in ([*itertools.chain(*map(str.split, texts))], {*" ".join(texts).split()}))
    for lines, value in ((count, words), (add, distinct)):
        low, _, high = sorted(line.figures["ledger", "written"] for line in lines)
        assert low <= value <= high
    assert list(tmp_path.iterdir()) == []


# ---- Mentions, and tables of a wiki

_HEAD = """-- Host: db    Database: seawiki
CREATE TABLE `page` (
  `page_id` int(8) NOT NULL,
  `page_namespace` int(11) NOT NULL,
  `page_title` varbinary(255) NOT NULL,
  `page_is_redirect` tinyint(1) NOT NULL
);
/*!40000 ALTER TABLE `page` DISABLE KEYS */;
"""


def page_table(path: Path, rows: int, *, compressed: bool = True) -> Path:
    """The dump of a page table; its titles look like the ends of statements where they can."""
    statements = []
    for first in range(0, rows, 100):
        values = ",".join(f"({n},0,'Page_{n});\\\\n',0)" for n in range(first, min(first + 100, rows)))
        statements.append(f"INSERT INTO `page` VALUES {values};\n")
    text = (_HEAD + "".join(statements) + "/*!40000 ALTER TABLE `page` ENABLE KEYS */;\n").encode()
    path.write_bytes(gzip.compress(text) if compressed else text)
    return path


@pytest.mark.parametrize("compressed", [True, False])
def test_the_beginning_of_a_dump_is_a_dump(tmp_path, monkeypatch, compressed):
    monkeypatch.setattr(mentions, "SAMPLE_SQL", 1_500_000)
    path, local = page_table(tmp_path / "page.sql.gz", 200_000, compressed=compressed), fs.LocalFileSystem()
    whole = SqlFile(local, open_table(local, str(path)), path.stat().st_size)
    stage = mentions.ReadTables(documents="", dumps=(whole,)).sample(Folder(str(tmp_path / "plan")))
    (part,) = stage.dumps
    rows = sum(each.num_rows for each in read_facts(part.filesystem, part.table))
    assert 0 < rows < 100_000
    assert rows * whole.stored / part.stored == pytest.approx(200_000, rel=0.15)


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 pages that link to each other, to few of them often; every tenth page redirects to one."""
    draw = random.Random(1)
    ends = list(itertools.accumulate(1 / rank for rank in range(1, 301)))

    def link() -> str:
        target = draw.choices(range(300), cum_weights=ends)[0]
        return f"[[Place {target}|{('the town', f'Place {target}', f'place number {target}')[draw.randrange(3)]}]]"

    pages = []
    for number in range(300):
        lines = [f"They went from {link()} to {link()} in the year of {line} whales." for line in range(8)]
        text = f"#REDIRECT [[Place {number + 1}]]" if number % 10 == 9 else "\n\n".join(lines)
        pages.append(
            f"<page><title>Place {number}</title><ns>0</ns><id>{number + 1}</id><revision><id>1</id>"
            f"<model>wikitext</model><text>{text}</text></revision></page>\n"
        )
    path = tmp_path_factory.mktemp("wiki") / "sea.xml"
    path.write_text(
        "<mediawiki><siteinfo><dbname>seawiki</dbname><base>https://sea.example.org/wiki/Main_Page</base>"
        '<case>first-letter</case><namespaces><namespace key="0" case="first-letter" /></namespaces></siteinfo>\n'
        + "".join(pages)
        + "</mediawiki>"
    )
    page_table(path.with_name("page.sql.gz"), 20_000)
    return path


@pytest.fixture(scope="module")
def mined(wiki: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the run makes of it."""
    output, tables = tmp_path_factory.mktemp("mined") / "out", f"--tables={wiki.parent}/page.sql.gz"
    run_here(mine_mentions.COMMAND, f"--input={wiki}", f"--output={output}", tables, "--shard-bytes=20000")
    return output


@pytest.mark.heavy
def test_all_of_a_small_wiki_is_measured(wiki, mined, tmp_path):
    flags = f"--input={wiki}", f"--tables={wiki.parent}/page.sql.gz", "--shard-bytes=20000"
    found = plan_of(mine_mentions.COMMAND, tmp_path / "out", *flags)
    assert found.share == 1
    assert outside(found, made=mined, output=tmp_path / "out") == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given",
    [pytest.param("raw", marks=pytest.mark.heavy), pytest.param("documents", marks=pytest.mark.heavy), "mentions"],
)
def test_a_part_of_a_wiki_stands_for_the_whole(wiki, mined, tmp_path, monkeypatch, first_part_alone, given):
    monkeypatch.setattr(mentions, "SAMPLE_SQL", 100_000)
    flags = [f"--input={wiki if given == 'raw' else f'{mined}-{given}'}", "--shard-bytes=20000"]
    if given != "mentions":
        flags.append(f"--tables={wiki.parent}/page.sql.gz")
    found = plan_of(mine_mentions.COMMAND, tmp_path / "out", *flags, workers=24)
    assert 0.02 < found.share < 0.8
    rows = {each.build.kind.rows: [of[n].rows for of in found.forecasts] for n, each in enumerate(found.forecasts[1])}
    for name, kind in (("-mentions", "mentions"), ("", "pairs")):
        if kind in rows:
            low, _, high = sorted(rows[kind])
            assert low * 0.99 <= read_manifest(Folder(f"{mined}{name}")).rows <= high * 1.01
    if given != "mentions":
        lines = {line.stage.name: line for each in found.forecasts[1] for line in each.lines}
        counters = read_manifest(Folder(f"{mined}-mentions")).stage("read_tables").counters
        facts = lines["read_tables"].figures["counter", "page_rows"]
        assert facts == pytest.approx(counters["page_rows"], rel=0.2)
        assert lines["read_tables"].units == 3


# ---- What does not fit


@pytest.mark.parametrize(
    ("disk", "memory", "rejected", "wanted"),
    [
        (100, 1e3, 0, []),
        (1e6, 1e3, 0, ["the disk may be too small: it has 1.0 MB for the 500.0 kB-1.5 MB"]),
        (1e7, 1e3, 0, ["the disk is too small"]),
        (100, 1e6, 0, ["memory may be too small: 2.0 MB are free for the 1.0-3.0 MB of 2 workers; --workers=1"]),
        (100, 5e6, 0, ["memory is too small: 2.0 MB are free for the 5.0-15.0 MB of 2 workers; not even one"]),
        (100, 1e3, 21, ["select rejects 2.1 % of its phrases, more than --max-reject-rate=0.01; the run would stop"]),
        (100, 1e3, 9, []),
    ],
)
def test_what_does_not_fit_is_said(disk, memory, rejected, wanted):
    found = expected(disk=disk, memory=memory, rejected=rejected)
    said = [*plan.warnings(found, 1_000_000, 2_000_000, workers=2, max_reject_rate=0.01)]
    assert [f"warning: {each}" in line for each, line in zip(wanted, said, strict=True)] == [True] * len(wanted)
    assert [*plan.warnings(found, None, 10**9, workers=2, max_reject_rate=1.0)] == []


def test_a_plan_for_a_cluster_has_no_time_of_its_own(tales, tmp_path, capsys):
    flags = [f"--input={tales}", f"--output={tmp_path}/out", "--plan", "--runner=FlinkRunner"]
    assert main(extract_documents.COMMAND, flags) == 0
    said = capsys.readouterr().out
    assert "of a core of a machine like this one" in said
    assert "  time\n" not in said


def test_a_part_that_takes_too_long_is_given_up():
    runs: list[int] = []
    ended = threading.Event()

    def run(number: int) -> Part:
        runs.append(number)
        if len(runs) == 2:
            assert ended.wait(60)
            raise StageError("the run was stopped")
        return Part(Folder("x"), float(number), seconds=0.001)

    assert [part.size for part in grow(run, [1.0] * 9, first=1, seconds=0.5, stop=ended.set)] == [1.0]
    assert len(runs) == 2


def test_long_documents_of_a_sample_are_cut(monkeypatch):
    monkeypatch.setattr(parse_steps, "SAMPLE_TEXT", 6)
    long = document_row("d:long", "One two.\nThree four.\nFivesixseveneight")
    rows = pa.Table.from_pylist([document_row("d:short", "Short."), long], schema=DOCUMENTS)
    found = parse_steps.Parse("phrasemill", (), "").shorter(rows).select(["doc_id", "text"]).to_pylist()
    assert [(each["doc_id"], each["text"]) for each in found] == [
        ("d:short", "Short."),
        ("d:long~0", "One two.\n"),
        ("d:long~1", "Three four.\n"),
        ("d:long~2", "Fivesi"),
        ("d:long~3", "xseveneight"),
    ]
