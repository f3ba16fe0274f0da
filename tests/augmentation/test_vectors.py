"""Words with near vectors."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from schemas.errors import UserError
from transforms.augmentation.registry import augmenter_identity, load_augmenter
from transforms.augmentation.vectors import NearestWord, read_vectors
from transforms.augmentation.wordnet import WordNet

LINES = """\
physician 1 .1 0
doctor 1 0 .1
nurse 1 0 0
Doctor 1 0 0
morning 0 1 0
evening 0 1 .1
large 0 0 1
huge 0 .1 1
small .1 0 1
physicians 1 .2 .1
"""


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    (tmp_path / "words.vec").write_text(LINES)
    return str(tmp_path / "words.vec")


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("two physicians", {"two doctors"}),  # the form is kept; a nurse is another of the same kind
        ("in the morning", {None}),  # so is the evening
        ("a large dog", {"a huge dog"}),  # and small is the contrary
        ("larger dogs", {"huger dogs"}),
        ("my Physician", {None}),
        ("of 192.168.1.1", {None}),
    ],
)
def test_near_words(database: WordNet, vectors: str, phrase: str, expected: set[str | None]) -> None:
    augmenter = NearestWord(vectors=vectors, min_cosine=0.9)
    made = augmenter.augment(pa.array([phrase] * 20), np.arange(20, dtype=np.uint64))
    assert set(made.to_pylist()) == expected


def test_a_higher_threshold_leaves_fewer(database: WordNet, vectors: str) -> None:
    augmenter = NearestWord(vectors=vectors, min_cosine=0.999)
    assert augmenter.augment(pa.array(["two physicians"]), np.zeros(1, np.uint64)).to_pylist() == [None]


def test_files(tmp_path: Path, vectors: str) -> None:
    words, matrix = read_vectors(Path(vectors))
    assert words == LINES.replace("Doctor 1 0 0\n", "").split()[::4]
    assert np.allclose(np.linalg.norm(matrix, axis=1), 1)
    (tmp_path / "headed.vec.gz").write_bytes(gzip.compress(b"10 3\n" + LINES.encode()))
    assert read_vectors(tmp_path / "headed.vec.gz").words == words
    for content, fault in (
        ("a 1 2\nb 1\n", "line 2: has 1 numbers, not 2"),
        ("a 1 2\nb 1 x\n", "line 2"),
        ("", "no vectors"),
    ):
        (tmp_path / "bad.vec").write_text(content)
        with pytest.raises(UserError, match=rf"--vectors .*bad\.vec.*{fault}"):
            read_vectors(tmp_path / "bad.vec")


def test_errors_and_identity(database: WordNet, tmp_path: Path, vectors: str) -> None:
    for place, said in ((None, "needs vectors"), ("no-such", "neither a file nor a spaCy pipeline")):
        with pytest.raises(UserError, match=rf"^--vectors.*{said}"):
            augmenter_identity("nearest_word", {"vectors": place, "min_cosine": 0.8})
    identity = augmenter_identity("nearest_word", {"vectors": vectors, "min_cosine": 0.8})
    assert identity
    assert (identity["operation"], identity["vectors"]) == ("nearest_word", "words.vec")
    assert load_augmenter("nearest_word", {"vectors": vectors, "min_cosine": 0.8, "swap": "any"})
