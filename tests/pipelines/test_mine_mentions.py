"""The whole chain from dumps to mentions, pairs and aliases: small wikis row by row, real ones by brute force."""

from __future__ import annotations

import gzip
import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from literal import Row, parse_options, rows, run_here, run_inline
from xxhash import xxh3_64_intdigest

from pipelines import corpus, find_mentions, mine_mentions
from pipelines.cli import main
from pipelines.corpus import to_build
from pipelines.stages import mentions as mention_steps
from pipelines.stages import pairs as pair_steps
from pipelines.stages import units as unit_steps
from schemas.dataset_checks import check_dataset
from schemas.errors import UserError
from schemas.keys import is_validation
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from transforms.parsing.lines import parts
from transforms.parsing.sentences import Tokenizer

SMALL = (
    (unit_steps, "MOST_SHARDS", 2),
    (mention_steps, "ROWS_A_RANGE", 20),
    (mention_steps, "FACTS_A_FILE", 2),
    (mention_steps, "SIDES_A_UNIT", 1),
    (pair_steps, "MEMBERS_A_RANGE", 500),
    (pair_steps, "PAIRS_A_SHARD", 300),
    (pair_steps, "SIDES_A_FILE", 200),
    (pair_steps, "ROW_GROUP", 64),
)
"""Makes many units, ranges and shards of a small corpus."""

PAGES = {
    "Ada Lovelace": "'''Ada Lovelace''' lived in [[London]], knew [[babbage|Charles Babbage]]. She wrote [[Note G]].",
    "London": "[[London]] is not [[London, Ontario]]. The [[capital city|capital]] of [[U.K.]] has [[Mercury]].",
    "Charles Babbage": "[[London|He]] built it in [[london#Old_town|london]]. "
    "[[Ada]] and [[Ada Lovelace|Lady Lovelace]] go.",
    "Mercury": "'''Mercury''' may refer to:\n* [[Mercury (planet)]], near [[London]] or not\n{{disambiguation}}",
    "United Kingdom": "The [[United_Kingdom]] has [[England|many]] &amp; [[&#76;ondon]].",
    "List of cities": "They are [[London]] and more.",
}
REDIRECTS = {
    "Babbage": "Charles Babbage",
    "U.K.": "UK",
    "UK": "U. K.",
    "U. K.": "United Kingdom",
    "Ada": "Ada Lovelace#Life",
    "Loop": "Noop",
    "Noop": "Loop",
    "Note G": "Loop",
    "England": "Nowhere",
}


def wiki(
    path: Path, pages: Mapping[str, str] = PAGES, redirects: Mapping[str, str] = REDIRECTS, language: str = "en"
) -> Path:
    """A dump with these pages, numbered from 1."""
    texts = {**pages, **{title: f"#REDIRECT [[{target}]]" for title, target in redirects.items()}}
    body = "".join(
        f"<page><title>{escape(title)}</title><ns>0</ns><id>{number}</id>"
        + (f'<redirect title="{escape(redirects[title].partition("#")[0])}"/>' if title in redirects else "")
        + f"<revision><id>1</id><model>wikitext</model><text>{escape(text)}</text></revision></page>"
        for number, (title, text) in enumerate(texts.items(), start=1)
    )
    path.write_text(
        f'<mediawiki xml:lang="{language}"><siteinfo><dbname>{language}wiki</dbname>'
        f"<base>https://{language}.wikipedia.org/wiki/Main_Page</base>"
        "<case>first-letter</case><namespaces/></siteinfo>" + body + "</mediawiki>"
    )
    return path


def sql(folder: Path, table: str, columns: Sequence[str], values: Sequence[tuple[Any, ...]]) -> Path:
    """A dump of one table as mysqldump writes it."""
    path = folder / f"enwiki-20240101-{table}.sql.gz"
    defined = ",\n".join(f"  `{name}` int(8) NOT NULL" for name in columns)
    quoted = ",".join(
        "(" + ",".join(str(each) if isinstance(each, int) else f"'{each}'" for each in row) + ")" for row in values
    )
    text = (
        "-- MariaDB dump 10.19  Distrib 10.5.23-MariaDB\n--\n-- Host: db1206    Database: enwiki\n"
        f"CREATE TABLE `{table}` (\n{defined}\n) ENGINE=InnoDB;\nINSERT INTO `{table}` VALUES {quoted};\n"
        "-- Dump completed on 2024-01-01  1:02:03\n"
    )
    path.write_bytes(gzip.compress(text.encode()))
    return path


def props(folder: Path) -> Path:
    """Wikidata ids of some of PAGES and of pages that are not in the dump, by their numbers."""
    values = [(1, "wikibase_item", "Q7259", 0), (2, "wikibase_item", "Q84", 0), (3, "wikibase_item", "Q46633", 0)]
    more = [(99, "wikibase_item", "Q308", 0), (98, "disambiguation", "", 0), (97, "wikibase_item", "Q1", 0)]
    return sql(folder, "page_props", ("pp_page", "pp_propname", "pp_value", "pp_sortkey"), [*values, *more])


def page_table(folder: Path) -> Path:
    """Numbers and titles, including those of pages that are not in the dump."""
    columns = ("page_id", "page_namespace", "page_title", "page_is_redirect")
    values = [(99, 0, "Mercury_(planet)", 0), (98, 0, "Capital_city", 0), (50, 0, "England", 1), (97, 14, "Cities", 0)]
    return sql(folder, "page", columns, values)


def redirect_table(folder: Path) -> Path:
    columns = ("rd_from", "rd_namespace", "rd_title", "rd_interwiki", "rd_fragment")
    return sql(folder, "redirect", columns, [(50, 0, "United_Kingdom", "", "")])


def run(folder: Path, inputs: Sequence[Path], *flags: str, order: int = 1) -> Path:
    """Make all datasets of the command in this process. With `order=-1` the units of each stage are done in reverse."""
    chosen = parse_options(*flags, command=mine_mentions.COMMAND)
    source = corpus.given([str(path) for path in inputs], input_format=None)
    for build in to_build(mine_mentions.build(source, chosen, Folder(str(folder)))):
        run_inline(build, order=order)
    return folder


def mentions_of(folder: Path) -> list[Row]:
    return rows(Folder(f"{folder}-mentions"))


def told(row: Row) -> tuple[str, ...]:
    """A short form of a mention."""
    marked = f"{row['text'][: row['start_char']]}[{row['mention']}]"
    target = "#".join(filter(None, (row["target_title"], row["section"])))
    return (row["doc_id"], marked, row["entity_id"], target, row["resolution"], row["origin"])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in SMALL:
        monkeypatch.setattr(module, name, value)


# ---- A small wiki, row by row


def test_targets_without_tables(tmp_path, small):
    out = run(tmp_path / "out", [wiki(tmp_path / "w.xml")], "--shard-bytes=60")
    assert [told(row) for row in mentions_of(out)] == [
        ("enwiki:1", "Ada Lovelace lived in [London]", "", "London", "title", "link"),
        ("enwiki:1", "Ada Lovelace lived in London, knew [Charles Babbage]", "", "Charles Babbage", "redirect", "link"),
        ("enwiki:1", "She wrote [Note G]", "", "Note G", "NIL", "link"),
        ("enwiki:2", "[London]", "", "London", "title", "link"),
        ("enwiki:2", "London is not [London, Ontario]", "", "London, Ontario", "NIL", "link"),
        ("enwiki:2", "The [capital]", "", "Capital city", "NIL", "link"),
        ("enwiki:2", "The capital of [U.K.]", "", "United Kingdom", "redirect", "link"),
        ("enwiki:3", "[He]", "", "London", "title", "link"),
        ("enwiki:3", "He built it in [london]", "", "London#Old town", "title", "link"),
        ("enwiki:3", "[Ada]", "", "Ada Lovelace#Life", "redirect", "link"),
        ("enwiki:3", "Ada and [Lady Lovelace]", "", "Ada Lovelace", "title", "link"),
        ("enwiki:5", "The [United Kingdom]", "", "United Kingdom", "title", "link"),
        ("enwiki:5", "The United Kingdom has [many]", "", "Nowhere", "NIL", "link"),
        ("enwiki:5", "The United Kingdom has many & [London]", "", "London", "title", "link"),
    ]  # fmt: skip
    ledger = read_manifest(Folder(f"{out}-mentions")).stage("mentions").ledger
    assert (ledger.read, dict(ledger.filtered)) == (18, {"list_page": 3, "to_disambiguation": 1})


def test_targets_with_tables(tmp_path, small):
    tables = [f"--tables={make(tmp_path)}" for make in (props, page_table, redirect_table)]
    out = run(tmp_path / "out", [wiki(tmp_path / "w.xml")], *tables)
    found = {(row["mention"], row["entity_id"], row["target_title"], row["resolution"]) for row in mentions_of(out)}
    assert found == {
        ("London", "Q84", "London", "qid"),
        ("He", "Q84", "London", "qid"),
        ("london", "Q84", "London", "qid"),
        ("Charles Babbage", "Q46633", "Charles Babbage", "qid"),
        ("Ada", "Q7259", "Ada Lovelace", "qid"),
        ("Lady Lovelace", "Q7259", "Ada Lovelace", "qid"),
        ("Note G", "", "Note G", "NIL"),
        ("London, Ontario", "", "London, Ontario", "NIL"),
        ("U.K.", "", "United Kingdom", "redirect"),
        ("United Kingdom", "", "United Kingdom", "title"),
        ("many", "", "United Kingdom", "redirect"),  # by the table; of two targets the one of the lowest key counts
    }
    manifest = read_manifest(Folder(f"{out}-mentions"))
    assert manifest.stage("mentions").ledger.filtered["to_disambiguation"] == 2  # Capital city is one, by the table
    assert manifest.counter("facts_of_unknown_pages") == 1


def test_further_mentions(tmp_path):
    pages = {"Rome (city)": "Rome is old. In [[Italy]] is Rome; Italy is not."}
    out = run(tmp_path / "out", [wiki(tmp_path / "w.xml", pages, {})], "--own-titles", "--repeated-anchors")
    assert [(told(row)[1], row["target_title"], row["origin"]) for row in mentions_of(out)] == [
        ("[Rome]", "Rome (city)", "title"),
        ("In [Italy]", "Italy", "link"),
        ("In Italy is [Rome]", "Rome (city)", "title"),
        ("In Italy is Rome; [Italy]", "Italy", "repeat"),
    ]


GERMAN = {
    "Köln": "Am [[3. Oktober]] [[1990]] kam z. B. [[Johann I. (Berg)|Johann I.]] nach [[Bonn]]. Der 2. [[Weltkrieg]].",
    "Liste der Orte": "[[Bonn]] und [[Köln]].",
}


def test_a_wiki_in_german(tmp_path):
    """Its own dates are left out, and its sentences end where they do in German."""
    dump = wiki(tmp_path / "w.xml", GERMAN, {"Bonn": "Liste der Orte#Bonn", "Weltkrieg": "Liste der Orte"}, "de")
    out = run(tmp_path / "out", [dump])
    assert [(told(row)[1], *told(row)[2:5]) for row in mentions_of(out)] == [
        ("Am 3. Oktober 1990 kam z. B. [Johann I.]", "", "Johann I. (Berg)", "NIL"),
        ("Am 3. Oktober 1990 kam z. B. Johann I. nach [Bonn]", "", "Liste der Orte#Bonn", "redirect"),
    ]
    ledger = read_manifest(Folder(f"{out}-mentions")).stage("mentions").ledger
    assert dict(ledger.filtered) == {"date": 2, "to_list_page": 1, "list_page": 2}


def test_a_wiki_in_german_without_the_extra(tmp_path, monkeypatch, capsys):
    dump = wiki(tmp_path / "w.xml", GERMAN, {}, "de")
    monkeypatch.setitem(sys.modules, "sentencex", None)
    assert main(find_mentions.COMMAND, [f"--input={dump}", f"--output={tmp_path}/out"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "'de', whose dates and sentences need sentencex: pip install 'phrasemill[languages]'" in said


def test_pairs_and_aliases_of_the_small_wiki(tmp_path):
    out = run(tmp_path / "out", [wiki(tmp_path / "w.xml")], "--min-alias-count=1")
    pairs = [(row["kind"], row["key"], *sorted([row["mention_1"], row["mention_2"]])) for row in rows(Folder(str(out)))]
    assert sorted(pairs) == sorted(
        [
            *[("entity", "London", "London", "London")] * 3,
            *[("entity", "London", "He", "London")] * 3,
            ("entity", "United Kingdom", "U.K.", "United Kingdom"),
        ]
    )
    assert {tuple(row.values()) for row in rows(Folder(f"{out}-aliases"))} == {
        ("", "London", "", "London", "He", 3, 1),
        ("", "United Kingdom", "", "U.K.", "United Kingdom", 1, 1),
    }


# ---- Real text


@pytest.fixture(scope="session")
def minidump(test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The datasets of a real dump, in a few shards, all pairs."""
    out = tmp_path_factory.mktemp("minidump") / "out"
    dump = test_data / "corpora/wikipedia/enwiki-minidump.xml.bz2"
    return run(out, [dump], "--shard-bytes=60000", *ALL_PAIRS)


ALL_PAIRS = ("--all-pairs", "--validation-rate=0.3", "--seed=3", "--near-copies=0.7")


def pairs_of(folder: Path) -> list[Row]:
    return [row for split in ("train", "validation") for row in rows(Folder(str(folder)), split)]


def sides(row: Row) -> frozenset[tuple[str, int]]:
    """The two mentions of a pair."""
    return frozenset((row[f"sentence_id_{side}"], row[f"start_char_{side}"]) for side in (1, 2))


def by_brute_force(mentions: Sequence[Row], *, rate: float, seed: int) -> tuple[set[tuple[str, Any]], Counter[str]]:
    """All pairs of mentions of an entity or surface, as docs/mentions.md defines them, and counts of those left out."""
    found: set[tuple[str, Any]] = set()
    filtered: Counter[str] = Counter()

    def page(row: Row) -> str:
        return row["entity_id"] or f"{row['source']}\0{row['target_title']}"

    def entity(row: Row) -> str:
        return f"{page(row)}#{row['section']}"

    def words(row: Row) -> set[str]:
        """Characters of "桂C—Guilin", which has Chinese and no blank."""
        text = row["text"]
        return set(text) if " " not in text and max(text) > "\u3400" else set(text.lower().split())

    def priority(row: Row) -> int:
        return xxh3_64_intdigest(f"{row['sentence_id']}\0{row['start_char']}".encode(), seed=seed)

    for kind, key in (("entity", entity), ("surface", lambda row: row["mention"])):
        groups: dict[str, list[Row]] = defaultdict(list)
        for row in sorted(mentions, key=priority):
            groups[key(row)].append(row)
        for group in groups.values():
            distinct = {(entity(row), row["text"], row["start_char"], row["end_char"]): row for row in group[::-1]}
            if kind == "surface" and len({each[0] for each in distinct}) == 1:
                continue
            for one, other in combinations(distinct.values(), 2):
                if one["text"] == other["text"]:
                    filtered["same_sentence"] += 1
                elif kind == "surface" and entity(one) == entity(other):
                    filtered["same_entity"] += 1
                elif is_validation(page(one), rate=rate, seed=seed) != is_validation(page(other), rate=rate, seed=seed):
                    filtered["crosses_splits"] += 1
                elif len(words(one) & words(other)) >= 0.7 * len(words(one) | words(other)):
                    filtered["near_copy"] += 1
                else:
                    places = frozenset((row["sentence_id"], row["start_char"]) for row in (one, other))
                    found.add((kind, places))
    return found, filtered


def test_all_pairs_are_those_of_brute_force(minidump):
    pairs = pairs_of(minidump)
    wanted, filtered = by_brute_force(mentions_of(minidump), rate=0.3, seed=3)
    assert len(pairs) == len({(row["kind"], sides(row)) for row in pairs})
    assert {(row["kind"], sides(row)) for row in pairs} == wanted
    chosen, ordered = (read_manifest(Folder(str(minidump))).stage(stage).ledger for stage in ("pair", "order_pairs"))
    assert dict(chosen.filtered + ordered.filtered) == dict(filtered)
    assert filtered["near_copy"] > 0
    assert chosen.written == ordered.read == len(pairs) + filtered["near_copy"] > 500


def test_no_entity_is_in_two_splits(minidump):
    entities = {
        split: {
            row[f"entity_id_{side}"] or row[f"target_title_{side}"]
            for row in rows(Folder(str(minidump)), split)
            for side in (1, 2)
        }
        for split in ("train", "validation")
    }
    assert entities["train"]
    assert entities["validation"]
    assert not entities["train"] & entities["validation"]


def test_every_mention_is_where_it_says(minidump):
    texts = {row["doc_id"]: row["text"] for row in rows(Folder(f"{minidump}-documents"))}
    links = {
        (row["doc_id"], link["start_char"], link["end_char"])
        for row in rows(Folder(f"{minidump}-documents"))
        for link in row["links"]
    }
    mentions = mentions_of(minidump)
    assert len(mentions) > 4000
    for row in mentions:
        assert row["text"][row["start_char"] : row["end_char"]] == row["mention"]
        start = int(row["sentence_id"].rpartition("#")[2])
        assert texts[row["doc_id"]].startswith(row["text"], start)
        assert (row["doc_id"], start + row["start_char"], start + row["end_char"]) in links
    ledger = read_manifest(Folder(f"{minidump}-mentions")).stage("mentions").ledger
    assert ledger.read == len(links) == len(mentions) + ledger.filtered.total()


def test_sentences_are_those_of_the_parsers(minidump):
    tokenizer = Tokenizer()
    parsed: set[tuple[str, str]] = set()
    for row in rows(Folder(f"{minidump}-documents")):
        for start, end in parts(row["text"]):
            passage = row["text"][start:end]
            for tokens in tokenizer.sentences([passage.replace("\n", " ")])[0]:
                sentence = passage[tokens.starts[0] : tokens.ends[-1]]
                parsed.add((f"{row['doc_id']}#{start + tokens.starts[0]}", sentence))
    assert {(row["sentence_id"], row["text"]) for row in mentions_of(minidump)} <= parsed


def test_the_datasets_pass_their_checks(minidump):
    for name in ("", "-mentions", "-aliases", "-documents"):
        assert list(check_dataset(f"{minidump}{name}")) == []


def shards_of(folder: Path) -> dict[str, str]:
    """The sha256 of each shard of the four datasets by its path."""
    return {
        f"{name}{shard.path}": hashlib.sha256(Path(f"{folder}{name}/{shard.path}").read_bytes()).hexdigest()
        for name in ("", "-mentions", "-aliases", "-documents")
        for shard in read_manifest(Folder(f"{folder}{name}")).shards
    }


def test_same_bytes_whatever_the_order_of_units_and_inputs(tmp_path, test_data, small):
    wikis = test_data / "corpora/wikipedia"
    inputs = [wikis / "enwiki-minidump.xml.bz2", wiki(tmp_path / "w.xml")]
    flags = ("--shard-bytes=60000", "--validation-rate=0.2")
    one = shards_of(run(tmp_path / "one", inputs, *flags))
    other = shards_of(run(tmp_path / "other", inputs[::-1], *flags, order=-1))
    assert one == other
    assert len(one) > 20


def test_pairs_do_not_depend_on_units_and_ranges(tmp_path, minidump, small):
    """With other units and shards, the same pairs in the same order."""
    again = tmp_path / "again"
    run(again, [Path(f"{minidump}-mentions")], *ALL_PAIRS)
    assert pairs_of(again) == pairs_of(minidump)
    assert len(read_manifest(Folder(str(again))).shards) > len(read_manifest(Folder(str(minidump))).shards)


@pytest.mark.parametrize(("most", "partners"), [(2, 1), (5, 1), (5, 2), (8, 3), (100, 2)])
def test_a_cap_gives_the_documented_number(tmp_path, minidump, most, partners):
    no_others = ("--mentions-per-surface=1000", "--mentions-per-document=1000", "--pairs-by=entity")
    flags = (f"--mentions-per-key={most}", f"--partners={partners}", *no_others)
    out = run(tmp_path / "out", [Path(f"{minidump}-mentions")], *flags)
    distinct: dict[str, set[Any]] = defaultdict(set)
    for row in mentions_of(minidump):
        distinct[f"{row['target_title']}#{row['section']}"].add((row["text"], row["start_char"], row["end_char"]))
    sizes = [min(len(each), most) for each in distinct.values()]
    ledger = read_manifest(Folder(str(out))).stage("pair").ledger
    assert ledger.read == sum(min(n * partners, n * (n - 1) // 2) for n in sizes)
    per_key = Counter(row["key"] for row in pairs_of(out))
    assert max(per_key.values()) <= most * partners


def test_surfaces_and_documents_differ_where_they_can(minidump, tmp_path):
    """With the default caps, no pair has the same surface in the same document, and no near copies."""
    out = run(tmp_path / "out", [Path(f"{minidump}-mentions")])
    pairs = pairs_of(out)
    for row in pairs:
        documents = {row[f"sentence_id_{side}"].rpartition("#")[0] for side in (1, 2)}
        assert row["kind"] == "surface" or len(documents) == 2 or row["mention_1"].lower() != row["mention_2"].lower()
        one, other = (set(row[f"text_{side}"].lower().split()) for side in (1, 2))
        assert len(one & other) < 0.8 * len(one | other)

    def different(some: Sequence[Row]) -> float:
        by_entity = [row for row in some if row["kind"] == "entity"]
        return sum(row["mention_1"] != row["mention_2"] for row in by_entity) / len(by_entity)

    assert different(pairs) > 1.3 * different(pairs_of(minidump))


def test_masked_pairs(tmp_path, minidump):
    flags = ("--masked", "--mask-token=<mask>", "--mentions-per-document=9")
    out = run(tmp_path / "out", [Path(f"{minidump}-mentions")], *flags)
    unmasked: Counter[int] = Counter()
    for row in rows(Folder(str(out))):
        unmasked[row["unmasked"]] += 1
        for side, name in ((1, "anchor"), (2, "positive")):
            text, start, end = (row[f"{column}_{side}"] for column in ("text", "start_char", "end_char"))
            assert row[name] == (text if row["unmasked"] == side else f"{text[:start]}<mask>{text[end:]}")
    total = unmasked.total()
    assert abs(unmasked[0] / total - 0.5) < 0.05
    assert abs(unmasked[1] / total - 0.25) < 0.05
    assert list(check_dataset(str(out))) == []


@pytest.mark.heavy
def test_by_the_command_with_workers(tmp_path, test_data, capsys):
    dump = test_data / "corpora/wikipedia/enwiki-minidump.xml.bz2"
    flags = ("--shard-bytes=60000",)
    command = [f"--input={dump}", f"--output={tmp_path}/out", "--workers=2", *flags]
    assert main(mine_mentions.COMMAND, command) == 0
    assert shards_of(tmp_path / "out") == shards_of(run(tmp_path / "one", [dump], *flags))
    said = capsys.readouterr().out
    assert "targets: " in said
    assert "few of the pages linked to are known: give the whole dump, or its page table" in said
    run_here(mine_mentions.COMMAND, *command[:2], *flags, "--seed=9", "--overwrite")
    said = capsys.readouterr().out
    for name in ("-documents", "-mentions", "-aliases"):
        assert f"{tmp_path}/out{name}: is there already and fits" in said


# ---- Mistakes of users


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--input={folder}/book.txt"], "--input: has no hyperlinks, being text; mentions are mined from hyperlinks"),
        (["--input={folder}/w.xml", "--tables={folder}/none.sql.gz"], "--tables {folder}/none.sql.gz: is not a file"),
        (["--input={folder}/w.xml", "--tables={folder}/book.txt"], "book.txt"),
        (["--input={folder}/w.xml", "--tables={folder}/enwiki-20240101-redirect.sql.gz"],
         "--tables: the redirect table of enwiki names its pages by number; give its page table"),
        (["--input={folder}/w.xml", "--pairs-by=words"], "--pairs-by: choose among entity, surface, not words"),
        (["--input={folder}/w.xml", "--masked", "--masks=subtokens"], "--masks=subtokens: name the model"),
        (["--input={folder}/w.xml", "--masks=subtokens", "--tokenizer=x"], "--masks: says how --masked masks"),
        (["--input={folder}/w.xml", "--tokenizer=x"], "--tokenizer: is for --masks=subtokens"),
        (["--input={folder}/w.xml", "--partners=0"], "--partners: must be a whole number of 1 or more"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(flags, message, tmp_path, capsys):
    wiki(tmp_path / "w.xml")
    redirect_table(tmp_path)
    (tmp_path / "book.txt").write_text("It was a dark and stormy night.\n" * 20)
    given = [each.format(folder=tmp_path) for each in flags]
    assert main(mine_mentions.COMMAND, [*given, f"--output={tmp_path / 'out'}"]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 1
    assert message.format(folder=tmp_path) in shown[0]


def test_what_does_not_fit_a_dataset_given(tmp_path, minidump, capsys):
    given = f"--input={minidump}-mentions"
    assert main(mine_mentions.COMMAND, [given, f"--output={tmp_path}/o", f"--tables={props(tmp_path)}"]) == 2
    assert "are resolved already" in capsys.readouterr().err
    assert main(find_mentions.COMMAND, [given, f"--output={tmp_path}/o"]) == 2
    assert "nothing to do" in capsys.readouterr().err
    assert main(mine_mentions.COMMAND, [f"--input={minidump}", f"--output={tmp_path}/o"]) == 2
    assert "holds MentionPair records; give raw text, documents or mentions" in capsys.readouterr().err


def test_tables_of_another_wiki_are_refused(tmp_path):
    table = props(tmp_path)
    other = tmp_path / "dewiki-20240101-page_props.sql.gz"
    other.write_bytes(gzip.compress(gzip.decompress(table.read_bytes()).replace(b"enwiki", b"dewiki")))
    with pytest.raises(UserError, match="is from dewiki, and the documents are from enwiki; give tables"):
        run(tmp_path / "out", [wiki(tmp_path / "w.xml")], f"--tables={other}")


def test_a_key_with_too_many_pairs_is_refused(tmp_path, minidump, monkeypatch):
    monkeypatch.setattr(pair_steps, "MOST_PAIRS_OF_A_KEY", 10)
    with pytest.raises(UserError, match="--all-pairs: one entity or surface alone has"):
        run(tmp_path / "out", [Path(f"{minidump}-mentions")], "--all-pairs")
