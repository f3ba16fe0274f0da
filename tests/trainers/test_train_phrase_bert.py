"""Phrase-BERT's recipe: which rows it reads, how it cuts and masks them, its loss, and that it learns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import masked_models
import numpy as np
import paraphrased
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import written
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.errors import UserError
from schemas.kinds.contexts import CONTEXTS
from schemas.kinds.phrases import PHRASES
from schemas.options import BadValue
from trainers.data import Loader
from trainers.phrase_bert.options import PhraseBertTraining
from trainers.phrase_bert.triplets import COLUMNS, cut, open_triplets
from trainers.train import main
from trainers.training.options import weights

WORDS = ["red", "blue", "boat", "ship", "house", "home", "big", "large", "cold", "icy"]


@pytest.mark.parametrize(
    ("tokens", "most", "kept"),
    [
        ([1, 10, 11, 12, 2], 5, [1, 10, 11, 12, 2]),  # it fits
        ([1, 10, 11, 12, 2], 4, [1, 10, 11, 2]),  # no mask: the first
        ([1, 9, 11, 12, 13, 14, 2], 4, [1, 9, 11, 2]),  # the mask at the beginning,
        ([1, 10, 11, 9, 13, 14, 2], 5, [1, 11, 9, 13, 2]),  # in the middle,
        ([1, 10, 11, 12, 13, 9, 2], 4, [1, 13, 9, 2]),  # at the end
        ([1, 10, 9, 12, 13, 9, 2], 3, [1, 9, 2]),  # the first of two
    ],
)
def test_cut(tokens: list[int], most: int, kept: list[int]) -> None:
    assert cut(tokens, most=most, about=9) == kept


@given(st.lists(st.integers(5, 9), max_size=40), st.integers(3, 20))
@examples(100)
def test_what_is_cut_is_a_run_with_the_mask(inner: list[int], most: int) -> None:
    found = cut([1, *inner, 2], most=most, about=9)
    assert len(found) == min(len(inner) + 2, most)
    assert (found[0], found[-1]) == (1, 2)
    runs = [inner[first : first + len(found) - 2] for first in range(len(inner) + 3 - len(found))]
    assert found[1:-1] in runs
    assert (9 in found) == (9 in inner)


@pytest.mark.parametrize(("text", "value"), [("1", (1.0,)), ("3,1", (3.0, 1.0)), ("0.5, 2", (0.5, 2.0))])
def test_weights(text: str, value: tuple[float, ...]) -> None:
    assert weights(text) == value


@pytest.mark.parametrize("text", ["", "1,0", "a", "1,,2"])
def test_what_are_no_weights(text: str) -> None:
    with pytest.raises(BadValue):
        weights(text)


def contexts(folder: Path, mask: str = "[MASK]") -> str:
    rows = [
        written.context("red boat", "a big [MASK] [UNK]", negative="a cold [MASK]", start_char=4),
        written.context("cold house", "a large [MASK]", negative="a big [MASK]", start_char=9),
    ]
    for row in rows:
        row |= {name: row[name].replace("[MASK]", mask) for name in ("context", "negative")}
    options = {"mask_token": mask, "unknown_token": "[UNK]", "negatives": "random"}
    written.write_dataset(folder, CONTEXTS, [[rows]], options=options)
    return str(folder)


def triples(place: str) -> set[tuple[str, ...]]:
    (table,) = Loader(open_triplets(place).source, batch_size=100)
    assert tuple(table.column_names) == COLUMNS
    return {tuple(row.values()) for row in table.to_pylist()}


def test_triples_of_contexts(tmp_path: Path) -> None:
    place = contexts(tmp_path / "contexts", "<gap>")
    assert open_triplets(place)[1:] == ("<gap>", "[UNK]")
    assert triples(place) == {
        ("red boat", "a big <gap> [UNK]", "a cold <gap>"),
        ("cold house", "a large <gap>", "a big <gap>"),
    }


def test_triples_of_paraphrases(tmp_path: Path) -> None:
    paraphrased.chosen(tmp_path, paraphrased.given(tmp_path / "candidates"), *paraphrased.PAPER)
    place = str(tmp_path / "chosen")
    assert open_triplets(place)[1:] == ("", "")
    assert ("the old king", "the aged ruler", "the ancient boat") in triples(place)


def parquet(path: Path, rows: Sequence[Sequence[str | None]]) -> str:
    columns = [pa.array([row[place] for row in rows], pa.string()) for place in range(3)]
    pq.write_table(pa.table(columns, names=[*COLUMNS]), path)
    return str(path)


def test_triples_of_a_parquet_file(tmp_path: Path) -> None:
    place = parquet(tmp_path / "some.parquet", [("red boat", "red ship", "blue house")])
    assert triples(place) == {("red boat", "red ship", "blue house")}


def test_a_dataset_without_triples(tmp_path: Path) -> None:
    written.write_dataset(tmp_path / "phrases", PHRASES, [[[written.phrase("red boat", 2)]]])
    with pytest.raises(
        UserError, match=r"phrases: its rows are no triples of texts; give a dataset that mine_contexts"
    ):
        open_triplets(str(tmp_path / "phrases"))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return masked_models.make_masked_lm(tmp_path_factory.mktemp("model") / "bert", WORDS)


def test_a_batch_and_its_loss(tiny: str, tmp_path: Path) -> None:
    """The model's own mask stands for that of the contexts, rows without a negative are left out, and the loss is that
    of the vectors in their order.
    """
    import torch

    from trainers.phrase_bert.recipe import PhraseBert

    data = (
        contexts(tmp_path / "contexts", "<gap>"),
        parquet(tmp_path / "more.parquet", [("red ship", "red boat", "")]),
    )
    recipe = PhraseBert(PhraseBertTraining(data=data, model=tiny, max_tokens=5))
    table = pa.concat_tables(table for source in recipe.sources for table in Loader(source, batch_size=10))
    batch = recipe.prepare(table.sort_by("anchor"))
    tokenizer = recipe.network.model.tokenizer
    assert batch.rows == 2
    assert [" ".join(tokenizer.convert_ids_to_tokens(each)[1:-1]) for each in batch.inputs] == [
        "cold house",
        "red boat",
        "a large [MASK]",
        "big [MASK] [UNK]",
        "a big [MASK]",
        "a cold [MASK]",
    ]
    assert recipe.encode(batch.inputs).vectors.shape == (6, 16)
    vectors = torch.tensor([[0, 0], [1, 1], [3, 4], [1, 1], [0, 5.5], [1, 1.25]], dtype=torch.float32)
    # |a - p| = 5 and 0, |a - n| = 5.5 and 0.25: 1 - 5.5 + 5 = 0.5, and 1 - 0.25 + 0 = 0.75.
    assert recipe.losses(vectors, batch)["triplet"].item() == pytest.approx(0.625, abs=1e-5)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            ("red boat", None, "blue house"),
            "some.parquet: a row without an anchor or a positive: {'anchor': 'red boat'",
        ),
        (("red boat", "red ship", None), "some.parquet: a batch without negatives; mine the contexts of more phrases"),
    ],
)
def test_rows_that_are_not_learned_from(
    row: tuple[str | None, ...], message: str, tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = parquet(tmp_path / "some.parquet", [row])
    assert main(["phrase_bert", "--data", place, "--model", tiny, "--output", str(tmp_path / "model")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.heavy
def test_it_learns(tiny: str, tmp_path: Path) -> None:
    """The loss falls, and synonyms of phrases come to be nearer than phrases with a word in common."""
    from sentence_transformers import SentenceTransformer

    same = [("boat", "ship"), ("house", "home"), ("big", "large"), ("cold", "icy")]
    rows = [
        (f"{a} {b}", f"{c} {d}", f"{a} {x}") for a, c in same for b, d in same for x, _ in same if len({a, b, x}) == 3
    ]
    place = parquet(tmp_path / "some.parquet", rows)
    output = tmp_path / "model"
    flags = ("--rate", "3e-3", "--epochs", "12", "--batch-size", "8", "--threads", "1")
    assert main(["phrase_bert", "--data", place, "--model", tiny, "--output", str(output), *flags]) == 0
    losses = [each["triplet"] for _, each in json.loads((output / "training.json").read_text())["losses"]]
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])

    def right(model: SentenceTransformer) -> float:
        anchors, positives, negatives = (model.encode([row[place] for row in rows]) for place in range(3))
        near, far = (np.linalg.norm(anchors - each, axis=1) for each in (positives, negatives))
        return float(np.mean(near < far))

    assert right(SentenceTransformer(tiny)) < 0.3
    assert right(SentenceTransformer(str(output))) > 0.9
