"""`--plan` of mentions, aliases and pairs: the estimators as tables, and whole plans against what runs make."""

from __future__ import annotations

import gzip
import itertools
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import chain_of, run_here
from pyarrow import fs

from pipelines.mine_mentions import COMMAND
from pipelines.planning import pieces, tables
from pipelines.planning.estimates import Estimate
from pipelines.planning.keys import Keys, pair_weights, pairs_of_a_key
from pipelines.planning.plan import Plan
from pipelines.planning.plan import foretell as plan
from pipelines.stages.mentions import SqlFile
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from transforms.sources.sql_tables import open_table, read_facts

# ---- Keys


@pytest.mark.parametrize(
    ("n", "partners", "pairs"), [(0, 4, 0), (1, 4, 0), (2, 4, 1), (9, 4, 36), (10, 4, 40), (3, 1, 3), (4, 1, 4)]
)
def test_pairs_of_a_key(n, partners, pairs):
    assert pairs_of_a_key(n, partners=partners) == pairs
    assert sum(pair_weights(mentions_per_key=n, partners=partners)) == pairs


@pytest.mark.parametrize(
    ("weights", "seen"),
    [
        ([1], 50),  # the keys
        ([0, 1], 20),  # those with two mentions or more
        ([1, 1, 1], 50 + 20 + 10),
        ([0, 1, 2], 20 + 2 * 10),  # pairs, where each is paired with all
    ],
)
def test_keys_of_the_sample(weights, seen):
    keys = Keys([(50, 30), (100, 50)], [1.0, 0.4, 0.2])
    assert keys.seen(weights) == pytest.approx(seen)
    same = keys.foretell(Estimate.exactly(100), weights)
    assert same.middle == pytest.approx(seen)
    assert same.low < seen < same.high


def test_no_keys():
    assert Keys([], []).seen([1, 1]) == 0
    assert Keys([(10, 0)], []).foretell(Estimate.exactly(1000), [1, 1]) == Estimate.exactly(0)


@given(
    st.floats(1, 1e9),
    st.floats(1, 1e9),
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
    st.lists(st.floats(0, 4), min_size=1, max_size=40),
)
def test_more_mentions_give_no_fewer_keys(fewer, more, shares, weights):
    keys = Keys([(500, 400), (1000, 700)], sorted([1.0, *shares], reverse=True))
    fewer, more = sorted((fewer, more))
    one, other = (keys.foretell(Estimate.exactly(each), weights) for each in (fewer, more))
    assert one.middle <= other.middle * 1.000001
    assert 0 <= one.low <= one.middle <= one.high


@pytest.mark.parametrize("exponent", [0.8, 1.0, 1.2])
def test_pairs_of_a_skewed_corpus_are_foretold(exponent):
    """A quarter of mentions, of a world of 20,000 entities."""
    draw = random.Random(0)
    ends = list(itertools.accumulate(1 / rank**exponent for rank in range(1, 20_000)))
    mentions = draw.choices(range(len(ends)), cum_weights=ends, k=160_000)
    sample = [mentions[part::16] for part in range(4)]  # four parts of a sixteenth each
    parts = []
    for ways in (4, 2, 1):
        found = [{key for part in sample[way::ways] for key in part} for way in range(ways)]
        parts.append((sum(map(len, sample)) / ways, sum(map(len, found)) / ways))
    times = Counter(key for part in sample for key in part)
    keys = Keys(parts, [sum(n >= least for n in times.values()) / len(times) for least in range(1, 101)])
    weights = pair_weights(mentions_per_key=32, partners=4)
    foretold = keys.foretell(Estimate.exactly(len(mentions)), weights)
    truth = sum(pairs_of_a_key(min(n, 32), partners=4) for n in Counter(mentions).values())
    assert foretold.low < truth < foretold.high
    assert foretold.high < 12 * foretold.low


# ---- SQL dumps

_HEAD = """-- Host: db    Database: seawiki
CREATE TABLE `page` (
  `page_id` int(8) NOT NULL,
  `page_namespace` int(11) NOT NULL,
  `page_title` varbinary(255) NOT NULL,
  `page_is_redirect` tinyint(1) NOT NULL
);
/*!40000 ALTER TABLE `page` DISABLE KEYS */;
"""


def page_table(path: Path, rows: int, *, rows_a_statement: int = 100, compressed: bool = True) -> Path:
    """The dump of a page table; its titles look like the ends of statements where they can."""
    statements = []
    for first in range(0, rows, rows_a_statement):
        values = ",".join(f"({n},0,'Page_{n});\\\\n',0)" for n in range(first, min(first + rows_a_statement, rows)))
        statements.append(f"INSERT INTO `page` VALUES {values};\n")
    text = (_HEAD + "".join(statements) + "/*!40000 ALTER TABLE `page` ENABLE KEYS */;\n").encode()
    path.write_bytes(gzip.compress(text) if compressed else text)
    return path


def sql_file(path: Path) -> SqlFile:
    local = fs.LocalFileSystem()
    return SqlFile(local, open_table(local, str(path)))


def rows_of(dump: SqlFile) -> int:
    return sum(each.num_rows for each in read_facts(dump.filesystem, dump.table))


@pytest.mark.parametrize("compressed", [True, False])
def test_the_beginning_of_a_dump_is_a_dump(tmp_path, monkeypatch, compressed):
    monkeypatch.setattr(tables, "SAMPLE_SQL", 3_000_000)
    whole = sql_file(page_table(tmp_path / "page.sql.gz", 400_000, compressed=compressed))
    (part,), (larger,) = tables.cut_dumps([whole], Folder(str(tmp_path / "plan")))
    assert part.table.source == "seawiki"
    assert 0 < rows_of(part) < 200_000
    assert rows_of(part) * larger == pytest.approx(400_000, rel=0.15)


def test_a_small_dump_is_taken_as_it_is(tmp_path):
    whole = sql_file(page_table(tmp_path / "page.sql.gz", 10))
    assert tables.cut_dumps([whole], Folder(str(tmp_path / "plan"))) == ((whole,), [1.0])
    assert not (tmp_path / "plan").exists()


# ---- Whole plans


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 pages that link to each other, to few of them often; every tenth page redirects to one."""
    draw = random.Random(1)
    ends = list(itertools.accumulate(1 / rank for rank in range(1, 601)))

    def link() -> str:
        target = draw.choices(range(600), cum_weights=ends)[0]
        words = ("the town", f"Place {target}", f"place number {target}")[draw.randrange(3)]
        return f"[[Place {target}|{words}]]"

    pages = []
    for number in range(600):
        lines = [
            f"They went from {link()} to {link()} in the year of the {number} and {line} whales." for line in range(8)
        ]
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


FLAGS = ("--shard-bytes=20000", "--validation-rate=0.2")


@pytest.fixture(scope="module")
def made(wiki: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the run makes of it."""
    output = tmp_path_factory.mktemp("made") / "out"
    tables_ = f"--tables={wiki.parent}/page.sql.gz"
    run_here(COMMAND, f"--input={wiki}", f"--output={output}", tables_, *FLAGS)
    return output


def foretell(output: Path, *flags: str) -> Plan:
    chain = chain_of(COMMAND, *flags, *FLAGS, f"--output={output}")
    return plan(chain, [each.build for each in chain if each.build is not None], workers=2)


LAST = {"-documents": "drop", "-mentions": "mentions", "-aliases": "pair_aliases", "": "order_pairs"}


def outside(found: Plan, output: Path, *, rows_alone: bool = False) -> list[str]:
    """What of the plan's intervals does not hold what the run made."""
    lines = {line.stage: line for line in found.lines}
    kept = {each.lines[-1].stage: each.kept for each in found.forecasts}
    real: dict[str, tuple[Estimate, float]] = {}
    for suffix, stage in LAST.items():
        if stage not in lines:
            continue
        manifest = read_manifest(Folder(f"{output}{suffix}"))
        shards = [shard for files in (manifest.shards, *manifest.sides.values()) for shard in files]
        real[f"{stage} rows"] = lines[stage].rows, manifest.rows
        if not rows_alone:
            real[f"{stage} kept"] = kept[stage], sum(shard.bytes for shard in shards)
            real |= {f"{each.name} units": (lines[each.name].units, each.units) for each in manifest.stages}
    return [
        f"{name}: {interval}, really {value}"
        for name, (interval, value) in real.items()
        if not interval.low * 0.999 <= value <= interval.high * 1.001
    ]


@pytest.mark.heavy
def test_all_of_a_small_wiki_is_measured(wiki, made, tmp_path):
    found = foretell(tmp_path / "out", f"--input={wiki}", f"--tables={wiki.parent}/page.sql.gz")
    assert found.measured.pieces.is_whole
    assert outside(found, made) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.heavy
@pytest.mark.parametrize("given_as", ["raw", "documents", "mentions"])
def test_a_part_stands_for_the_whole(wiki, made, tmp_path, monkeypatch, given_as):
    monkeypatch.setattr(pieces, "PARSED_BYTES", {"raw": 80_000, "documents": 150_000, "mentions": 20_000}[given_as])
    monkeypatch.setattr(tables, "SAMPLE_SQL", 100_000)
    flags = [f"--input={wiki if given_as == 'raw' else f'{made}-{given_as}'}"]
    if given_as != "mentions":
        flags.append(f"--tables={wiki.parent}/page.sql.gz")
    found = foretell(tmp_path / "out", *flags)
    assert 0.05 < found.measured.pieces.share < 0.7
    assert outside(found, made, rows_alone=True) == []
    lines = {line.stage: line for line in found.lines}
    if given_as != "mentions":
        counters = read_manifest(Folder(f"{made}-mentions")).stage("read_tables").counters
        told = sum(counters[name] for name in ("pages", "redirects", "page_rows"))
        assert lines["read_tables"].rows.middle == pytest.approx(told, rel=0.2)
        assert lines["read_tables"].units == Estimate.exactly(3)
        assert max(found.measured.larger) > 1.2
    assert lines["order_pairs"].rows.high < 12 * lines["order_pairs"].rows.low
    assert found.wall.low > 0
    assert found.disk.middle > found.kept.middle > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.heavy
def test_red_links_of_a_part_are_not_taken_for_those_of_the_whole(wiki, made, tmp_path, monkeypatch):
    """Of a part of a dump nearly all links go to pages that are elsewhere."""
    monkeypatch.setattr(pieces, "PARSED_BYTES", 80_000)
    found = foretell(tmp_path / "out", f"--input={wiki}", "--drop-red-links", "--all-pairs")
    mentions = next(line for line in found.lines if line.stage == "mentions")
    assert mentions.rows.low < read_manifest(Folder(f"{made}-mentions")).rows < mentions.rows.high
    pairs = next(line for line in found.lines if line.stage == "order_pairs")
    assert pairs.rows.high > 3 * pairs.rows.low
