"""The dataset card's header, as hubs read it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from schemas.kinds import KINDS
from schemas.manifest import Input, Manifest, Shard
from transforms.reports.card import dataset_card


def manifest(
    rows: int = 1,
    *,
    record: str = "Context",
    licences: tuple[str, ...] = (),
    inputs: int = 0,
    splits: tuple[str, ...] = ("train", "validation"),
) -> Manifest:
    return Manifest(
        record=record,
        fingerprint="0" * 64,
        seed=0,
        options={},
        inputs=[Input("file", f"raw{number}.txt", "/raw", "f" * 64) for number in range(inputs)],
        splits={split: [Shard(f"data/{split}-00000-of-00001.parquet", rows, 9, "")] for split in splits},
        sides={},
        stages=[],
        licences=dict.fromkeys(licences, 1),
        models=[],
        versions={},
        cpu="",
        run={},
    )


def header(made: Manifest, *, name: str = "contexts") -> dict[str, Any]:
    return yaml.safe_load(dataset_card(made, name=name).split("---\n")[1])


@pytest.mark.parametrize(
    ("rows", "size"),
    [
        (0, "n<1K"),
        (499, "n<1K"),
        (500, "1K<n<10K"),
        (50_000, "100K<n<1M"),
        (400_000_000, "100M<n<1B"),
        (4_000_000_000, "1B<n<10B"),
        (10**15, "n>1T"),
    ],
)
def test_size_of_both_splits(rows, size):
    assert header(manifest(rows))["size_categories"] == [size]


def test_splits_are_the_default_configuration():
    assert header(manifest(record="Phrase"))["configs"] == [
        {
            "config_name": "default",
            "description": "sha256 2fc433c5ff5c11eb71fc4ee5a4030dc63914189c8d4fdc3a7e1878c409ab2e22",
            "data_files": [
                {"split": "train", "path": "data/train-*.parquet"},
                {"split": "validation", "path": "data/validation-*.parquet"},
            ],
        }
    ]


def test_a_view_is_a_configuration():
    found = header(manifest())
    whole, view = found["configs"]
    assert "columns" not in whole
    assert view == whole | {"config_name": "triplets", "columns": ["phrase", "context", "negative"]}
    info = found["dataset_info"][1]
    assert (info["config_name"], info["splits"]) == ("triplets", found["dataset_info"][0]["splits"])
    assert info["features"] == [{"name": name, "dtype": "string"} for name in ("phrase", "context", "negative")]
    assert "&" not in dataset_card(manifest(), name="contexts").split("---\n")[1]


@pytest.mark.parametrize("name", ["2024", "no", "mix: books", 'a "b"', "- x", "#1", "café"])
def test_any_folder_name_is_a_name(name):
    assert header(manifest(), name=name)["pretty_name"] == name


@pytest.mark.parametrize(
    ("licences", "expected"),
    [
        ((), {}),
        (("CC BY-SA 4.0",), {"license": "cc-by-sa-4.0"}),
        (("cc0-1.0", "CC BY-SA 3.0", "MIT"), {"license": ["cc-by-sa-3.0", "cc0-1.0", "mit"]}),
        (("unknown",), {"license": "unknown"}),
        (
            ("CC BY-SA 4.0", "public domain", "unknown"),
            {
                "license": ["cc-by-sa-4.0", "other", "unknown"],
                "license_name": "public-domain",
                "license_details": "public domain",
            },
        ),
        (
            ("Ours, v2!", "<b>theirs</b>"),
            {
                "license": "other",
                "license_name": "b-theirs-b-or-ours-v2",
                "license_details": "b theirs /b, Ours, v2!",
            },
        ),
        (("日本",), {"license": "other", "license_name": "other", "license_details": "日本"}),
    ],
)
def test_licences_are_the_hubs_own_names(licences, expected):
    found = header(manifest(licences=licences))
    assert {key: value for key, value in found.items() if key.startswith("license")} == expected


@pytest.mark.parametrize("record", KINDS)
def test_features_are_those_of_the_files(record):
    from datasets import Features

    infos = header(manifest(record=record))["dataset_info"]
    info = infos[0] if KINDS[record].views else infos
    assert Features._from_yaml_list(info["features"]) == Features.from_arrow_schema(KINDS[record].schema)


def test_rows_and_bytes_of_the_splits():
    info = header(manifest(7, record="Phrase"))["dataset_info"]
    assert info["splits"] == [
        {"name": "train", "num_bytes": 9, "num_examples": 7},
        {"name": "validation", "num_bytes": 9, "num_examples": 7},
    ]
    assert (info["download_size"], info["dataset_size"]) == (18, 18)
    assert header(manifest(0, record="Phrase"))["dataset_info"]["splits"] == []


@pytest.mark.parametrize("record", KINDS)
def test_the_hubs_own_reader_takes_it(record):
    """Its terms, as far as it knows them."""
    from huggingface_hub import DatasetCard

    card = DatasetCard(dataset_card(manifest(record=record, licences=("CC BY-SA 4.0",)), name="x"))
    assert card.data.pretty_name == "x"
    assert card.data.license == "cc-by-sa-4.0"
    assert card.data.source_datasets == ["original"]
    assert (card.data.language == ["en"]) is KINDS[record].parsed
    assert card.text.startswith("# x\n")


@pytest.mark.parametrize(
    ("record", "made"),
    [
        ("Document", None),
        ("Context", "machine-generated"),
        ("Mention", "found"),
        ("MaskedMentionPair", "found"),
        ("AliasPair", "found"),
    ],
)
def test_who_made_the_annotations(record, made):
    assert header(manifest(record=record)).get("annotations_creators") == (made and [made])


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ("Document", "Each record keeps the licence of the document that it comes from."),
        ("Context", "Each record keeps the licence"),
        ("Mention", "Each record keeps the licence"),
        ("Sentence", "that of its document, which is found by `doc_id` in the documents dataset"),
        ("MentionPair", "found by `sentence_id_1` and `sentence_id_2` in the mentions dataset"),
        ("MaskedMentionPair", "found by `sentence_id_1` and `sentence_id_2` in the mentions dataset"),
        ("Phrase", "A record comes from many documents, of any of these licences."),
        ("AliasPair", "A record comes from many documents, of any of these licences."),
    ],
)
def test_where_the_licence_of_a_record_is(record, words):
    assert words in dataset_card(manifest(record=record, licences=("CC BY-SA 4.0",)), name="x")
    without = dataset_card(manifest(record=record), name="x")
    assert ("## Licences of the text" in without) is record.endswith("MentionPair")


def test_names_of_the_corpus_cannot_become_markup():
    licence = "own\n| a | b |\n# <script>alert(1)</script> [x](javascript:y) `z`"
    card = dataset_card(manifest(licences=(licence,)), name="a|b\n# c")
    assert "<script>" not in card
    assert "- own a b # script alert(1) /script x (javascript:y) z: 1 documents" in card.splitlines()
    assert "# a b # c" in card.splitlines()
    assert yaml.safe_load(card.split("---\n")[1])["pretty_name"] == "a|b\n# c"


def test_long_lists_end():
    lines = dataset_card(manifest(inputs=102), name="x").splitlines()
    assert lines[lines.index("## Inputs") + 2] == "- file `raw0.txt` (ffffffffffffffff)"
    assert lines[lines.index("## Inputs") + 102] == "- and 2 more"
    lines = dataset_card(manifest(licences=tuple(f"own {number:03}" for number in range(103))), name="x").splitlines()
    assert "- own 099: 1 documents" in lines
    assert "- own 100: 1 documents" not in lines
    assert "- and 3 more" in lines


def test_the_card_points_to_the_report():
    assert "`report.html`" in dataset_card(manifest(), name="x")
