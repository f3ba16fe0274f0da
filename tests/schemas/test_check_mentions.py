"""schemas.check on real datasets of mentions, pairs and aliases: sound ones, and ones that are broken."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from breaking import Row, edit, field, ledger, rewrite

from schemas.check import main
from schemas.dataset import RowGroup
from schemas.kinds.mention_pairs import MASKED_MENTION_PAIRS
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder

NAMES = ("pairs", "masked", "pairs-aliases", "pairs-mentions", "pairs-documents")


def first(rows: list[Row], **wanted: object) -> Row:
    """The first row with these values."""
    return next(row for row in rows if all(row[name] == value for name, value in wanted.items()))


def other_entity(rows: list[Row]) -> None:
    """A pair by entity whose second mention is of another entity."""
    first(rows, kind="entity").update(entity_id_2="Q1")


def same_entity(rows: list[Row]) -> None:
    """A pair by surface of one entity."""
    row = first(rows, kind="surface")
    row.update(entity_id_2=row["entity_id_1"], target_title_2=row["target_title_1"])


def shift(rows: list[Row]) -> None:
    """The span of a mention is one character off, and so is the mention."""
    row = rows[1]
    row.update(start_char=row["start_char"] + 1, end_char=row["end_char"] + 1)
    row["mention"] = row["text"][row["start_char"] : row["end_char"]].strip()


def swap_sides(row: Row) -> Row:
    swapped = {name[:-1] + {"1": "2", "2": "1"}[name[-1]]: value for name, value in row.items() if name[-2:-1] == "_"}
    return row | swapped


CASES = {
    # Mentions
    "span": (
        "pairs-mentions",
        rewrite(field(1, end_char=3)),
        r'row 1: text\[start_char:end_char\] is not the mention: ".*" in "seawiki:\d+#\d+": \[\d+:3\] is "',
    ),
    "no mention": (
        "pairs-mentions",
        rewrite(lambda rows: rows[1].update(mention="", end_char=rows[1]["start_char"])),
        "row 1: the mention is empty or begins or ends with a blank",
    ),
    "blank": (
        "pairs-mentions",
        rewrite(lambda rows: rows[1].update(mention=rows[1]["mention"] + " ", end_char=rows[1]["end_char"] + 1)),
        "row 1: the mention is empty or begins or ends with a blank",
    ),
    "sentence_id": (
        "pairs-mentions",
        rewrite(field(1, sentence_id="seawiki:10")),
        'row 1: sentence_id is not <doc_id>#<start_char>: "seawiki:10"',
    ),
    "sentence of another document": (
        "pairs-mentions",
        rewrite(field(1, sentence_id="seawiki:99#0")),
        r'row 1: sentence_id is not that of a sentence of the document: "seawiki:99#0", document "seawiki:\d+"',
    ),
    "no title": ("pairs-mentions", rewrite(field(1, target_title="")), "row 1: target_title is empty"),
    "Wikidata id": (
        "pairs-mentions",
        rewrite(field(1, entity_id="P31", resolution="qid")),
        'row 1: entity_id is neither empty nor a Wikidata id: ".*: "P31"',
    ),
    "Wikidata id with a zero": (
        "pairs-mentions",
        rewrite(field(1, entity_id="Q01", resolution="qid")),
        "row 1: entity_id is neither empty nor a Wikidata id",
    ),
    "unknown resolution": (
        "pairs-mentions",
        rewrite(field(1, resolution="guess")),
        'row 1: resolution is not one of qid, redirect, title, NIL: .*: "guess"',
    ),
    "id of a red link": (
        "pairs-mentions",
        rewrite(lambda rows: first(rows, resolution="qid").update(resolution="NIL")),
        'resolution is not qid where the Wikidata id is known, and only there: .* resolution "NIL", entity_id "Q',
    ),
    "qid without one": (
        "pairs-mentions",
        rewrite(lambda rows: first(rows, resolution="qid").update(entity_id="")),
        'resolution is not qid where the Wikidata id is known, and only there: .* resolution "qid", entity_id ""',
    ),
    "resolutions counted": (
        "pairs-mentions",
        edit(lambda data: data["stages"][-1]["counters"].update({"resolution:qid": 1})),
        r'rows count as "resolution:qid"; the manifest says 1',
    ),
    "unknown origin": (
        "pairs-mentions",
        rewrite(field(1, origin="redlink")),
        "row 1: origin is not one of link, title, repeat",
    ),
    "source": (
        "pairs-mentions",
        rewrite(field(1, source="lakewiki")),
        'row 1: doc_id does not begin with the source: "seawiki:.*", source "lakewiki"',
    ),
    "mention twice": (
        "pairs-mentions",
        rewrite(lambda rows: rows.insert(1, rows[0])),
        "row 1: the mention begins before the one before it ends",
    ),
    "mentions in disorder": (
        "pairs-mentions",
        rewrite(lambda rows: rows.insert(0, rows.pop(1))),
        "row 1: the mention begins before the one before it ends",
    ),
    "documents in pieces": (
        "pairs-mentions",
        rewrite(lambda rows: rows.append(rows.pop(0))),
        r"row \d+: the document's mentions are not side by side",
    ),
    "documents in two shards": (
        "pairs-mentions",
        lambda folder: rewrite(lambda rows: rows.append(pq.read_table(shard(folder, 1)).slice(0, 1).to_pylist()[0]))(
            folder
        ),
        r"00001-of-\d+.parquet: row 0: the document has mentions in another shard",
    ),
    "licences": (
        "pairs-mentions",
        edit(lambda data: data.update(licences={"CC0": 99})),
        r'licences: \d+ documents are ".*"; the manifest says 0',
    ),
    "ledger and rows": (
        "pairs-mentions",
        edit(ledger("mentions", read=99, written=99, filtered={})),
        r"rows, and what the last stage wrote: \d+ is not 99",
    ),
    "ledger": (
        "pairs-mentions",
        edit(ledger("mentions", read=999)),
        "the ledger of links does not add up: 999 read",
    ),
    "sentence elsewhere": (
        "pairs-mentions",
        rewrite(lambda rows: rows[1].update(text=rows[1]["text"] + "!")),
        r'row 1: the text is not where sentence_id says: ".*" in "seawiki:\d+#\d+": ".*!", there ".*"',
    ),
    "sentence after the text": (
        "pairs-mentions",
        rewrite(lambda rows: rows[1].update(sentence_id=rows[1]["doc_id"] + "#9999")),
        "row 1: the text is not where sentence_id says",
    ),
    "no link there": (
        "pairs-mentions",
        rewrite(shift),
        "row 1: the document has no link with the mention as its anchor: ",
    ),
    "not the title": (
        "pairs-mentions",
        rewrite(lambda rows: first(rows, mention="cachalot").update(origin="title")),
        "the mention is not the document's title",
    ),
    "not repeated": (
        "pairs-mentions",
        rewrite(lambda rows: rows[0].update(origin="repeat")),
        "row 0: the document has no link with this anchor before the mention",
    ),
    "provenance": (
        "pairs-mentions",
        rewrite(field(1, title="Moby")),
        "row 1: source, title, url, licence are not the document's: .*'Moby'.* instead of ",
    ),
    "another document": (
        "pairs-mentions",
        rewrite(field(1, doc_id="seawiki:99", sentence_id="seawiki:99#0")),
        'row 1: the document is not in the documents dataset: "seawiki:99"',
    ),
    # Pairs
    "span of the first": (
        "pairs",
        rewrite(field(2, end_char_1=0)),
        r"row 2: text\[start_char:end_char\] of the first is not the mention: ",
    ),
    "span of the second": (
        "pairs",
        rewrite(field(2, end_char_2=0)),
        r"row 2: text\[start_char:end_char\] of the second is not the mention: ",
    ),
    "unknown kind": ("pairs", rewrite(field(2, kind="word")), "row 2: kind is not one of entity, surface"),
    "another entity": (
        "pairs",
        rewrite(other_entity),
        r'a pair of kind entity is of two entities: .*: "[^"]+", "Q1"',
    ),
    "one entity": ("pairs", rewrite(same_entity), "a pair of kind surface is of one entity: "),
    "key of an entity": (
        "pairs",
        rewrite(lambda rows: first(rows, kind="entity").update(key="whale?")),
        'a pair of kind entity is not its Wikidata id, or title where that is unknown, and section: .*"whale[?]"',
    ),
    "key of a surface": (
        "pairs",
        rewrite(lambda rows: first(rows, kind="surface").update(key="whale?")),
        'the key of a pair of kind surface is not the mention of both: .*"whale[?]"',
    ),
    "same words": (
        "pairs",
        rewrite(lambda rows: rows[2].update({f"{name}_2": rows[2][f"{name}_1"] for name in ("text", "start_char")})),
        "row 2: both mentions are in sentences of the same words",
    ),
    "unmasked": ("pairs", rewrite(field(2, unmasked=3)), "row 2: unmasked is not 0, 1 or 2: .*: 3"),
    "pair twice": (
        "pairs",
        rewrite(lambda rows: rows.append(rows[0])),
        r'row \d+: the two mentions are a pair already: "seawiki:.*" is in row 0 of data/train-00000',
    ),
    "pair the other way round": (
        "pairs",
        rewrite(lambda rows: rows.append(swap_sides(rows[0]))),
        r"row \d+: the two mentions are a pair already: ",
    ),
    "pair in both splits": (
        "pairs",
        lambda folder: rewrite(
            lambda rows: rows.append(pq.read_table(shard(folder, 0)).slice(0, 1).to_pylist()[0]), split="validation"
        )(folder),
        r"validation-00000-of-\d+.parquet: row \d+: the entity belongs to the other split, by its hash: ",
    ),
    "entity in both splits": (
        "pairs",
        lambda folder: rewrite(
            lambda rows: rows.append(pq.read_table(shard(folder, 0)).slice(0, 1).to_pylist()[0]), split="validation"
        )(folder),
        r"validation-00000-of-\d+.parquet: row \d+: the entity is in another split, too: ",
    ),
    "kinds counted": (
        "pairs",
        edit(lambda data: data["stages"][1]["counters"].update(entity_pairs=1)),
        r'rows count as "entity_pairs"; the manifest says 1',
    ),
    "pairs lost": (
        "pairs",
        edit(lambda data: data["stages"][1]["ledger"].update(read=1, written=1, filtered={})),
        r"pairs that were chosen, and those put in order: 1 is not \d+",
    ),
    "validation counted": (
        "pairs",
        edit(lambda data: data["stages"][3]["counters"].update(validation=0)),
        r"rows of validation, and pairs that the last stage wrote for it: \d+ is not 0",
    ),
    "not a mention": (
        "pairs",
        rewrite(field(2, entity_id_1="Q2")),
        'row 2: the first of the two is no row of .*pairs-mentions: ".*", "seawiki:',
    ),
    "not a mention either": (
        "pairs",
        rewrite(field(2, sentence_id_2="seawiki:10#999")),
        'row 2: the second of the two is no row of .*pairs-mentions: ".*", "seawiki:10#999"',
    ),
    # Masked
    "options gone": ("masked", edit(lambda data: data["options"].pop("masks")), "options lack 'masks'"),
    "anchor": (
        "masked",
        rewrite(lambda rows: first(rows, unmasked=0).update(anchor="A <mask>.")),
        'anchor is not the sentence, masked as unmasked says: "A <mask>.", not ".*" with "<mask>" for the mention',
    ),
    "positive": (
        "masked",
        rewrite(lambda rows: first(rows, unmasked=0).update(positive=first(rows, unmasked=0)["text_2"])),
        'positive is not the sentence, masked as unmasked says: ".*", not ".*" with "<mask>" for the mention',
    ),
    "two masks for one": (
        "masked",
        rewrite(
            lambda rows: rows[0].update(
                {name: rows[0][name].replace("<mask>", "<mask> <mask>") for name in ("anchor", "positive")}
            )
        ),
        "row 0: (anchor|positive) is not the sentence, masked as unmasked says",
    ),
    "masked for nothing": (
        "masked",
        rewrite(lambda rows: first(rows, unmasked=1).update(anchor="<mask>")),
        'anchor is not the sentence, masked as unmasked says: "<mask>", not ".*" as it is',
    ),
    # Aliases
    "no alias": ("pairs-aliases", rewrite(field(1, alias_2="")), "row 1: an alias is empty or begins or ends with a"),
    "aliases alike": (
        "pairs-aliases",
        rewrite(lambda rows: rows[1].update(alias_2=rows[1]["alias_1"].upper())),
        r'row 1: the aliases differ only in case: "whale" \(\d+\), "WHALE" \(\d+\) of "Q160"',
    ),
    "rare alias": ("pairs-aliases", rewrite(field(1, count_2=0)), "row 1: an alias has fewer than 1 mentions"),
    "counts": (
        "pairs-aliases",
        rewrite(field(1, count_2=999)),
        "row 1: the second alias is more frequent than the first [(]ties by UTF-8 bytes[)]",
    ),
    "ties": (
        "pairs-aliases",
        rewrite(lambda rows: rows[1].update(count_1=7, count_2=7, alias_1="b", alias_2="a")),
        "row 1: the second alias is more frequent than the first [(]ties by UTF-8 bytes[)]",
    ),
    "alias pair twice": (
        "pairs-aliases",
        rewrite(lambda rows: rows.insert(1, rows[0])),
        "row 1: the pair is not after the entity's pair before it, by the frequency of its aliases",
    ),
    "entity in pieces": (
        "pairs-aliases",
        rewrite(lambda rows: rows.append(first(rows, entity_id="Q160"))),
        r"row \d+: the entity's pairs are not side by side: .* of \"Q160\"",
    ),
    "id of an entity": (
        "pairs-aliases",
        rewrite(field(0, entity_id="whale")),
        "row 0: entity_id is neither empty nor a Wikidata id",
    ),
    # Pages
    "page without a title": (
        "pairs-documents",
        rewrite(field(1, title=""), split="pages"),
        'pages/part-00000.pq: row 1: the title is empty: page "11"',
    ),
    "id of a page": (
        "pairs-documents",
        rewrite(field(1, entity_id="whale"), split="pages"),
        'row 1: entity_id is neither empty nor a Wikidata id: "Sea": "whale"',
    ),
    "pages lost": (
        "pairs-documents",
        rewrite(lambda rows: rows.pop(), split="pages"),
        r'pages: \d+ rows of source "seawiki"; it has \d+ documents',
    ),
    "pages made up": (
        "pairs-documents",
        rewrite(lambda rows: rows.extend(rows * 9), split="pages"),
        r"pages: \d+ rows; extract read \d+ records",
    ),
    "redirects lost": (
        "pairs-documents",
        rewrite(lambda rows: rows.clear(), split="redirects"),
        "redirects: 0 rows; extract left out 2 redirects",
    ),
}


def shard(folder: Path, index: int) -> Path:
    return sorted((folder / "data").iterdir())[index]


@pytest.mark.parametrize("case", CASES)
def test_what_is_broken_is_found(copied_mentions, capsys, case):
    name, break_, expected = CASES[case]
    folder = copied_mentions(name)
    break_(folder)
    assert main([str(folder)]) == 1
    shown = capsys.readouterr().out
    assert re.search(expected, shown), shown
    assert shown.splitlines()[-1].startswith(f"{folder}: ")


def test_whole_datasets_are_ok(mined_mentions, capsys):
    assert main([str(mined_mentions / name) for name in NAMES]) == 0
    pairs, masked, aliases, mentions, documents = capsys.readouterr().out.splitlines()
    assert re.search(r"ok: \d+ MentionPair rows in \d+ shards, .*, both sides agree with .*/pairs-mentions$", pairs)
    assert re.search(r"ok: \d+ MaskedMentionPair rows .*, both sides agree with .*/masked-mentions$", masked)
    assert re.search(r"ok: \d+ AliasPair rows in 1 shard, sha256 \w+, ledgers add up$", aliases)
    assert re.search(r"ok: \d+ Mention rows in [3-9] shards, .*, offsets agree with .*/pairs-documents$", mentions)
    assert "ok: 24 Document rows" in documents


def test_what_the_sound_ones_hold(mined_mentions):
    """Otherwise a check of nothing would pass as a check."""

    def values(name: str, column: str) -> set[object]:
        return {*pq.read_table(mined_mentions / name / "data", columns=[column]).column(column).to_pylist()}

    assert values("pairs-mentions", "resolution") == {"qid", "redirect", "title", "NIL"}
    assert values("pairs-mentions", "origin") == {"link", "title", "repeat"}
    assert values("pairs", "kind") == {"entity", "surface"}
    assert values("masked", "unmasked") == {0, 1, 2}
    assert {path.name.split("-")[0] for path in (mined_mentions / "pairs/data").iterdir()} == {"train", "validation"}


def test_mentions_out_of_reach_are_said(copied_mentions, capsys, tmp_path):
    folder = copied_mentions("pairs")
    (tmp_path / "pairs-mentions").rename(tmp_path / "elsewhere")
    assert main([str(folder)]) == 0
    assert re.search(
        "sides not checked: .*pairs-mentions: no such dataset; give the mentions with --source$",
        capsys.readouterr().out,
    )


def test_documents_that_were_moved(copied_mentions, capsys, tmp_path):
    """The documents are those of the mentions; the pairs do not need them."""
    folder = copied_mentions("pairs-mentions")
    (tmp_path / "pairs-documents").rename(tmp_path / "texts")
    shutil.copytree(folder, tmp_path / "pairs-of")
    assert main([str(folder), "--documents", str(tmp_path / "texts")]) == 0
    assert "offsets agree with" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("masks", "anchor", "is_sound"),
    [
        ("one", "A  mask> of <mask>.", True),
        ("one", "A <mask> of <mask>.", False),  # the text's own mask token would look like that of a mention
        ("one", "A <mask> of whales.", False),
        ("one", "A  mask> of <mask> <mask>.", False),
        ("one", "A  mask> of .", False),
        ("one", "A  mask> of <mask>", False),
        ("subtokens", "A  mask> of <mask>.", True),
        ("subtokens", "A  mask> of <mask> <mask>.", True),
        ("subtokens", "A  mask> of <mask><mask><mask>.", True),
        ("subtokens", "A  mask> of <mask>, <mask>.", False),
        ("subtokens", "A  mask> of <mask> .", False),
    ],
)
def test_masks(mined_mentions, masks, anchor, is_sound):
    manifest = read_manifest(Folder(str(mined_mentions / "masked")))
    checks = manifest.kind.checks(replace(manifest, options=manifest.options | {"masks": masks}))
    row = pq.read_table(mined_mentions / "masked/data").slice(0, 1).to_pylist()[0]
    text = "A <mask> of whales."
    row |= {
        "text_1": text,
        "mention_1": "whales",
        "start_char_1": 12,
        "end_char_1": 18,
        "unmasked": 0,
        "anchor": anchor,
    }
    group = RowGroup(manifest.shards[0], 0, pa.Table.from_pylist([row], schema=MASKED_MENTION_PAIRS))
    broken = {each.rule for check in checks for each in check.rows(group, "train") if len(each.rows)}
    assert ("anchor is not the sentence, masked as unmasked says" not in broken) == is_sound
    group = RowGroup(
        group.shard, 0, pa.Table.from_pylist([row | {"anchor": text, "unmasked": 1}], schema=MASKED_MENTION_PAIRS)
    )
    broken = {each.rule for check in checks for each in check.rows(group, "train") if len(each.rows)}
    assert "anchor is not the sentence, masked as unmasked says" in broken
