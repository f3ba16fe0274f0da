"""What `benchmarks/pairs.py` makes and counts."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from schemas.records import MENTIONS

# What `python -m` finds, pytest does not: the benchmarks are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from benchmarks import pairs


def test_mentions_are_exact_and_do_not_depend_on_shards():
    table = pairs.mentions(pairs.draw(0, 500))
    assert table.schema.equals(MENTIONS, check_metadata=True)
    rows = table.to_pylist()
    assert rows[200:] == pairs.mentions(pairs.draw(200, 300)).to_pylist()
    assert all(row["text"][row["start_char"] : row["end_char"]] == row["mention"] for row in rows)
    assert len({(row["sentence_id"], row["start_char"]) for row in rows}) == 500


def test_the_first_entity_has_a_tenth_and_many_have_one_mention():
    _, counts = np.unique(pairs.draw(0, 50_000).entity, return_counts=True)
    assert counts.max() == pytest.approx(5_000, rel=0.05)
    assert (counts == 1).sum() > 12_000


def test_all_combinations_are_those_of_two():
    drawn = pairs.draw(0, 2000)
    twos = list(itertools.combinations(zip(drawn.entity.tolist(), drawn.surface.tolist(), strict=True), 2))
    found = pairs.combinations(drawn)
    assert found == {
        "entity": sum(one[0] == other[0] for one, other in twos),
        "surface": sum(one[0] != other[0] and one[1] == other[1] for one, other in twos),
    }
    assert min(found.values()) > 0
