"""UCTopic's fine-tuning by clusters: what is labelled, what is contrasted with what; a small fine-tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from masked_models import make_masked_lm
from properties import examples

from schemas.errors import UserError


def mentions(*phrases: str) -> list[Any]:
    """Each phrase in a sentence of its own."""
    from trainers.uctopic.network import Mention

    return [Mention(f"{n} {phrase}", len(f"{n} "), len(f"{n} {phrase}")) for n, phrase in enumerate(phrases)]


def options(**given: Any) -> Any:
    from trainers.uctopic.options import ClusterTraining

    return ClusterTraining(**{"model": "none", "topics": (2,), **given})


def at(*degrees: float) -> Any:
    """[n, 2] points on a circle."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_clusters_and_their_number() -> None:
    from trainers.uctopic.clusters import topics_of

    vectors = at(0, 2, 4, 90, 92, 94, 180, 182, 184) * np.arange(1, 10)[:, None]  # lengths do not count
    found = topics_of(vectors.astype(np.float32), range(2, 6), seed=0)
    assert len(found.centroids) == 3
    assert [len({*found.labels[first : first + 3].tolist()}) for first in (0, 3, 6)] == [1, 1, 1]
    np.testing.assert_allclose(sorted(np.degrees(np.arccos(found.centroids[:, 0]))), [2, 92, 178], atol=0.01)
    np.testing.assert_allclose(found.similarities.max(axis=1), np.cos(np.radians([2, 0, 2] * 3)), atol=1e-5)


def test_too_few_mentions() -> None:
    from trainers.uctopic.clusters import topics_of

    with pytest.raises(UserError, match="3 mentions for 3 topics: give more, or a lower --topics"):
        topics_of(at(0, 1, 2), [2, 3], seed=0)


@pytest.mark.parametrize(
    ("nearest", "right"),
    [
        (0.0, {"cat": 0, "paris": 1}),  # at least one
        (0.5, {"cat": 0, "dog": 0, "paris": 1, "rome": 1}),
        # "rome" is twice in 0 and once in 1; of "dog" and "mars" as often in both, which is nearer counts
        (1.0, {"cat": 0, "dog": 0, "mars": 1, "paris": 1, "rome": 0}),
    ],
)
def test_labels_of_phrases(nearest: float, right: dict[str, int]) -> None:
    """The nearest of each cluster vote."""
    from trainers.uctopic.clusters import Topics, labels_of_phrases

    votes = [
        *(("Cat", 0, 0.99), ("dog", 0, 0.95), ("cat", 0, 0.9), ("rome", 0, 0.6), ("mars", 0, 0.5), ("rome", 0, 0.4)),
        *(("Paris", 1, 0.99), ("rome", 1, 0.9), ("mars", 1, 0.7), ("dog", 1, 0.6)),
    ]
    labels = np.array([label for _, label, _ in votes])
    similarities = np.zeros((len(votes), 2), np.float32)
    similarities[np.arange(len(votes)), labels] = [each for _, _, each in votes]
    topics = Topics(labels, np.eye(2, dtype=np.float32), similarities)
    assert labels_of_phrases(mentions(*(phrase for phrase, _, _ in votes)), topics, nearest) == right


@examples(25)
@given(
    phrases=st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=40),
    topics=st.integers(2, 4),
    unmasked=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 99),
)
def test_contrasts(phrases: list[str], topics: int, unmasked: float, seed: int) -> None:
    """Another mention of the phrase first, then one mention of each other label; never one without a label."""
    from trainers.uctopic.clusters import contrasts

    labels = {phrase: n % topics for n, phrase in enumerate("abcdefg")}  # "h" has none
    given = mentions(*phrases)
    chosen = options(seed=seed, unmasked=unmasked, steps=5, batch_size=3)
    there = {labels[each] for each in phrases if each in labels}
    twice = any(phrases.count(each) > 1 for each in labels)
    if len(there) < 2 or not twice:
        with pytest.raises(UserError, match="give more mentions, or a higher --nearest"):
            contrasts(given, labels, chosen)
        return
    rows = contrasts(given, labels, chosen)
    assert rows == contrasts(given, labels, chosen)
    assert rows.num_rows == 15
    for row in rows.to_pylist():
        anchor, (positive, *negatives) = row["anchor"], row["candidates"]
        assert phrases[positive] == phrases[anchor]
        assert positive != anchor
        assert sorted(labels[phrases[each]] for each in negatives) == sorted(there - {labels[phrases[anchor]]})
        assert len(row["unmasked"]) == len(there)
        assert unmasked == 0.5 or {*row["unmasked"]} == {bool(unmasked)}


@pytest.mark.heavy
def test_fine_tuning(tmp_path: Path) -> None:
    """By the command: anchors are masked, the loss falls, topics are written; stopped, it ends with the same bytes."""
    import trainers.uctopic.clusters as clusters
    from trainers.train import main

    folder = make_masked_lm(tmp_path / "bert", ["a", "cat", "dog", "sat", "in", "rome", "paris", "the", "town", "we"])
    told = [
        ("the {} sat", ("cat", "dog")),
        ("a {} sat in the town", ("cat", "dog")),
        ("we sat in {}", ("rome", "paris")),
    ]
    told += [("in {} a cat", ("rome", "paris")), ("{} the town", ("rome", "paris"))]
    rows = [
        {"text": said.format(phrase), "start_char": said.index("{"), "end_char": said.index("{") + len(phrase)}
        for said, phrases in told
        for phrase in phrases
    ]
    (tmp_path / "mentions").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "mentions" / "rows.parquet")
    common = f"--model {folder} --data {tmp_path / 'mentions'} --topics 2 --nearest 0.6 --steps 30 --rate 3e-3"

    def run(output: str) -> int:
        return main(
            ["uctopic_clusters", *common.split(), "--output", str(tmp_path / output), "--checkpoint-steps", "7"]
        )

    assert run("whole") == 0
    topics = pq.read_table(tmp_path / "whole" / "topics.parquet")
    assert topics.column_names == ["text", "start_char", "end_char", "topic", "similarity"]
    assert len(topics) == len(rows)
    real, calls = clusters.ClusterContrast.prepare, iter(range(100))

    def dies(recipe: Any, table: pa.Table) -> Any:
        if next(calls) == 17:
            raise KeyboardInterrupt
        batch = real(recipe, table)
        assert not any(each.keeps_words for each in batch.inputs[: batch.rows])
        return batch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters.ClusterContrast, "prepare", dies)
        with pytest.raises(KeyboardInterrupt):
            run("parts")
    assert run("parts") == 0
    for name in ("model.safetensors", "topics.parquet"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    import json

    losses = [each["contrast"] for _, each in json.loads((tmp_path / "whole" / "training.json").read_text())["losses"]]
    assert losses[-1] < 0.8 * losses[0]
