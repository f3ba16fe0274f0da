"""The stage of entities: a row for each sentence, shard by shard; and what a check finds in a broken dataset."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from breaking import edit, field, rewrite
from literal import chain_of, dataset, rows, run_inline, shard

from pipelines import corpus, find_entities
from schemas.check import main
from schemas.dataset_checks import check_dataset
from schemas.manifest import read_manifest
from schemas.options import Chosen
from schemas.storage.folder import Folder
from transforms.entities.options import EntityOptions

SHARDS = (
    {"d:1": "Barack Obama was born in Honolulu , Hawaii ~. | The whale swam ~.", "d:2": "He saw Paris"},
    {"d:3": "((Rejected))"},
    {"d:4": "Google paid $ 2.7 billion in 1999 ~."},
)


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("found")
    shards = [shard(each) for each in SHARDS]
    documents = dataset(folder / "documents", [each.documents for each in shards])
    sentences = dataset(folder / "sentences", [each.sentences for each in shards])
    manifest = folder / "sentences/manifest.json"
    name = {"kind": "dataset", "name": "documents", "path": "../documents", "hash": documents.fingerprint, "bytes": 0}
    edit(lambda data: data.update(inputs=[name]))(manifest.parent)
    for output, order in (("entities", 1), ("again", -1)):
        chain = chain_of(find_entities.COMMAND, "--input", str(sentences.folder), "--output", str(folder / output))
        assert chain[-1].build is not None
        run_inline(chain[-1].build, order=order)
    return folder


def test_a_row_for_each_sentence_in_the_shard_of_the_same_number(found):
    manifest = read_manifest(Folder(str(found / "entities")))
    assert [each.rows for each in manifest.shards] == [3, 0, 1]
    spans = [[(*each.values(),) for each in row["entities"]] for row in rows(Folder(str(found / "entities")))]
    assert spans == [
        [(0, 2, "PERSON"), (5, 6, "GPE"), (7, 8, "GPE")],
        [],
        [(2, 3, "GPE")],
        [(0, 1, "ORG"), (2, 5, "MONEY"), (6, 7, "DATE")],
    ]
    (stage,) = manifest.stages
    assert (stage.ledger.counts, stage.ledger.read, stage.ledger.written) == ("sentences", 4, 4)
    assert stage.counters == {"entities": 7, "tokens": 24, "uncapitalised": 0}
    assert manifest.options["entity_types"] == manifest.models[0]["types"]
    assert list(check_dataset(str(found / "entities"))) == []


def test_the_order_of_units_does_not_matter(found):
    one, other = (read_manifest(Folder(str(found / name))) for name in ("entities", "again"))
    assert (one.sha256, one.fingerprint) == (other.sha256, other.fingerprint)


def test_names_without_a_capital_are_left_out_and_counted(found):
    text = "The two wolves and the wolf came from china to Rome"
    sentences = dataset(found / "wolf", [shard({"d:1": text}).sentences])
    all_ = [(1, 2, "CARDINAL"), (5, 6, "PERSON"), (8, 9, "GPE"), (10, 11, "GPE")]
    expected = {True: all_, False: [all_[0], all_[3]]}
    for keep, spans in expected.items():
        options = EntityOptions(entity_finder="spacy", keep_uncapitalised=keep)
        made = corpus.entities(sentences, Chosen([options]), Folder(str(found / f"wolf-{keep}")))
        assert made.build is not None
        run_inline(made.build)
        assert [(*each.values(),) for row in rows(made.folder) for each in row["entities"]] == spans
        (stage,) = read_manifest(made.folder).stages
        assert stage.counters.get("uncapitalised", 0) == 4 - len(spans)


def entity(first: int, last: int, type_: str = "GPE") -> dict[str, object]:
    return {"start_token": first, "end_token": last, "type": type_}


BROKEN = {
    "another sentence": (
        field(1, sentence_id="d:1#9"),
        r'row 1: the sentence is not that of the same row of .*/sentences/.*: "d:1#9", there "d:1#\d\d"',
    ),
    "a row too many": (
        lambda rows: rows.append(rows[0] | {"sentence_id": "d:9#0"}),
        'row 3: the sentences have no such row: "d:9#0"',
    ),
    "a row too few": (lambda rows: rows.pop(), 'row 1: the next sentence has no row: "d:2#0"'),
    "twice": (lambda rows: rows[1].update(sentence_id="d:1#0"), 'row 1: the sentence is not unique: "d:1#0" is in row'),
    "after the end": (field(1, entities=[entity(3, 5)]), r"row 1: an entity ends after the sentence: .*: token 5 of 4"),
    "empty": (field(1, entities=[entity(1, 1)]), r"row 1: an entity is empty or ends before it starts: .* \[1:1\]"),
    "overlap": (
        field(1, entities=[entity(0, 2), entity(1, 3)]),
        r"row 1: an entity begins before the one before it ends",
    ),
    "type": (field(1, entities=[entity(0, 1, "MISC")]), 'row 1: the type is not one of the model\'s: .*: "MISC"'),
}


@pytest.mark.parametrize(("change", "message"), BROKEN.values(), ids=BROKEN)
def test_a_check_finds_what_is_broken(found, tmp_path, capsys, change, message):
    for name in ("entities", "sentences"):
        shutil.copytree(found / name, tmp_path / name)
    rewrite(change)(tmp_path / "entities")
    assert main([str(tmp_path / "entities")]) == 1
    out = capsys.readouterr().out
    assert re.search(message, out), out
