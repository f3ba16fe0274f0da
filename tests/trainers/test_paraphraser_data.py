"""What a paraphraser learns from: pairs in both directions, parted without leaks, in batches of one length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from trainers.paraphraser.data import Encoded, Pairs, batches, examples_of, part, read_pairs, steps_of_epoch


def write(path: Path, rows: list[tuple[str, str, float | None]]) -> str:
    ones, others, scores = zip(*rows, strict=True)
    pq.write_table(pa.table({"phrase": ones, "paraphrase": others, "score": pa.array(scores, pa.float32())}), path)
    return str(path)


def said(pairs: Pairs) -> set[tuple[str, str, float]]:
    rows = zip(pairs.one.tolist(), pairs.other.tolist(), pairs.weight.tolist(), strict=True)
    return {(pairs.texts[one], pairs.texts[other], round(weight, 3)) for one, other, weight in rows}


def test_pairs(tmp_path: Path) -> None:
    """In both directions, once, with the higher weight: the score over the mean of its source."""
    one = write(tmp_path / "one.parquet", [("a", "b", 1.0), ("b", "a", 3.0), ("c", "c", 2.0), ("d", "e", None)])
    two = write(tmp_path / "two.parquet", [("a", "b", None), ("f", "g", None)])
    both = {("a", "b", 1.5), ("b", "a", 1.5), ("d", "e", 1.0), ("e", "d", 1.0), ("f", "g", 1.0), ("g", "f", 1.0)}
    assert said(read_pairs([one, two], most=10, one_direction=False)) == both
    as_given = {("a", "b", 1.0), ("b", "a", 1.5), ("d", "e", 1.0), ("f", "g", 1.0)}
    assert said(read_pairs([two, one], most=10, one_direction=True)) == as_given
    assert said(read_pairs([two, one], most=2, one_direction=True)) < as_given


letters = st.sampled_from("abcdefghijklmnop")


@given(st.lists(st.tuples(letters, letters), min_size=1, max_size=30), st.floats(0, 0.9))
@examples(50)
def test_no_phrase_of_a_held_out_pair_is_learned(rows: list[tuple[str, str]], rate: float) -> None:
    texts = sorted({each for row in rows for each in row})
    keys = np.array([int.from_bytes(each.encode() * 8, "big") for each in texts], np.uint64)
    one, other = (np.array([texts.index(row[side]) for row in rows]) for side in (0, 1))
    pairs = Pairs(texts, keys, one, other, np.ones(len(rows), np.float32))
    learned, held_out, left_out = part(pairs, rate)
    assert len(learned.one) + len(held_out.one) + left_out == len(rows)
    apart = [set(each.one.tolist()) | set(each.other.tolist()) for each in (learned, held_out)]
    assert apart[0].isdisjoint(apart[1])


@given(
    st.lists(st.lists(st.integers(10, 99), min_size=1, max_size=6), min_size=2, max_size=12, unique_by=tuple),
    st.integers(1, 60),
    st.integers(0, 3),
)
@examples(50)
def test_each_epoch_has_each_example_once(texts: list[list[int]], batch_tokens: int, epoch: int) -> None:
    """Rows are phrase, separator, paraphrase, end; a training that begins within an epoch has its later batches."""
    n = len(texts)
    one, other = np.arange(n), (np.arange(n) + 1) % n
    keys = np.arange(1, n + 1).astype(np.uint64)
    pairs = Pairs([""] * n, keys, one, other, np.ones(n, np.float32))
    tokens = np.array([each for row in texts for each in row], np.int32)
    encoded = Encoded(tokens, np.append(0, np.cumsum([len(each) for each in texts])))
    found = examples_of(pairs, encoded, separator=1, end=2, alone=0.5, max_tokens=11)
    made = list(batches(found, batch_tokens=batch_tokens, seed=3, epoch=epoch))
    assert len(made) == steps_of_epoch(found, batch_tokens)
    rows = [row for batch in made for row in batch.tokens.tolist()]
    wanted = [[*texts[a], 1, *texts[b], 2] for a, b in zip(one, other, strict=True)]
    wanted = [each for each in wanted if len(each) <= 11]
    assert sorted(each for each in rows if each[0] != 1) == sorted(wanted)
    assert all(
        [1, *text, 2] in [[1, *each, 2] for each in texts] for text in (row[1:-1] for row in rows if row[0] == 1)
    )
    for batch in made:
        assert batch.tokens.size <= batch_tokens or len(batch.tokens) == 1
        for row, learned in zip(batch.tokens.tolist(), batch.learned.tolist(), strict=True):
            assert learned == [place > row.index(1) for place in range(len(row))]
    later = list(batches(found, batch_tokens=batch_tokens, seed=3, epoch=epoch, first=1))
    assert [each.tokens.tolist() for each in later] == [each.tokens.tolist() for each in made[1:]]
