"""The dataset card's header, as hubs read it."""

from __future__ import annotations

import pytest
import yaml

from schemas.manifest import Manifest, Shard
from transforms.sinks.card import dataset_card


def header(rows: int, *, name: str = "contexts", licences: tuple[str, ...] = ()) -> dict[str, object]:
    manifest = Manifest(
        record="Context",
        fingerprint="0" * 64,
        seed=0,
        options={},
        inputs=[],
        splits={
            split: [Shard(f"data/{split}-00000-of-00001.parquet", rows, 9, "")] for split in ("train", "validation")
        },
        sides={},
        stages=[],
        licences=dict.fromkeys(licences, 1),
        models=[],
        versions={},
        cpu="",
        run={},
    )
    return yaml.safe_load(dataset_card(manifest, name=name).split("---")[1])


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
    assert header(rows)["size_categories"] == [size]


def test_splits_are_the_default_configuration():
    assert header(1)["configs"] == [
        {
            "config_name": "default",
            "description": "sha256 2fc433c5ff5c11eb71fc4ee5a4030dc63914189c8d4fdc3a7e1878c409ab2e22",
            "data_files": [
                {"split": "train", "path": "data/train-*.parquet"},
                {"split": "validation", "path": "data/validation-*.parquet"},
            ],
        }
    ]


@pytest.mark.parametrize("name", ["2024", "no", "mix: books", 'a "b"', "- x", "#1", "café"])
def test_any_folder_name_is_a_name(name):
    assert header(1, name=name)["pretty_name"] == name


def test_licences_are_the_hubs_own_names():
    assert header(1, licences=("CC BY-SA 4.0", "public domain", "unknown"))["license"] == ["cc-by-sa-4.0", "other"]
    assert "license" not in header(1)
