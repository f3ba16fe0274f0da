"""What a report measures, on literal rows; sampling of large datasets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written import alias_pair, context, document, mention, mention_pair, phrase, sentence, write_dataset

from schemas.kinds import KINDS
from schemas.kinds.alias_pairs import ALIAS_PAIRS
from schemas.kinds.contexts import CONTEXTS
from schemas.kinds.documents import DOCUMENTS
from schemas.kinds.mention_pairs import MASKED_MENTION_PAIRS, MENTION_PAIRS
from schemas.kinds.mentions import MENTIONS
from schemas.kinds.phrases import PHRASES
from schemas.kinds.sentences import SENTENCES
from transforms.reports.statistics import (
    Bin,
    Categories,
    Histogram,
    Ranks,
    categories,
    histogram,
    ranks,
    spread,
    survey,
)


@pytest.mark.parametrize(
    ("length", "number", "indices"),
    [
        (0, 5, []),
        (3, 5, [0, 1, 2]),
        (5, 5, [0, 1, 2, 3, 4]),
        (10, 1, [5]),
        (10, 2, [2, 7]),
        (9, 3, [1, 4, 7]),
        (1000, 4, [125, 375, 625, 875]),
    ],
)
def test_spread(length, number, indices):
    assert spread(length, number) == indices


@given(st.integers(0, 10_000), st.integers(1, 200))
def test_spread_is_in_order_inside_and_even(length, number):
    found = spread(length, number)
    assert len(found) == min(length, number)
    assert found == sorted({*found})
    assert all(0 <= place < length for place in found)
    gaps = np.diff(found)
    assert not len(gaps) or gaps.max() - gaps.min() <= 1


@pytest.mark.parametrize(
    ("numbers", "bins"),
    [
        ([3], [("3", 1)]),
        ([1, 1, 2, 4], [("1", 2), ("2", 1), ("3", 0), ("4", 1)]),
        ([0, 39], [("0", 1), *((str(number), 0) for number in range(1, 39)), ("39", 1)]),
        # Equal widths: the last bin has the 1 of 100 that is far away.
        (
            [*range(1, 100)] * 10 + [400],
            [("1–4", 40), *((f"{start}–{start + 4}", 50) for start in range(5, 95, 5)), ("≥ 95", 51)],
        ),
        # Far from the median: 1, 2, 5, 10 ...
        ([1] * 90 + [30] * 10, [("1", 90), *((str(number), 0) for number in range(2, 30)), ("30", 10)]),
        ([1] * 90 + [300] * 10, [("1", 90), ("2–4", 0), ("5–9", 0), ("10–19", 0), ("20–49", 0), ("50–99", 0)]),
    ],
)
def test_bins(numbers, bins):
    found = histogram("", "", pa.array(numbers))
    assert found
    assert [(each.label, each.times) for each in found.bins][: len(bins)] == bins


def test_figures_of_a_histogram():
    found = histogram("Length", "words", pa.array([1, 2, 2, 3, 12]))
    assert found
    assert (found.least, found.median, found.mean, found.p95, found.most) == (1, 2, 4, pytest.approx(10.2), 12)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200))
def test_every_number_is_in_one_bin(numbers):
    found = histogram("", "", pa.array(numbers))
    assert found
    assert len(found.bins) <= 60
    for each, after in zip(found.bins, found.bins[1:], strict=False):
        assert each.end is not None
        assert each.end + 1 == after.start
    for each in found.bins:
        inside = [number for number in numbers if each.start <= number and (each.end is None or number <= each.end)]
        assert len(inside) == each.times
    assert sum(each.times for each in found.bins) == len(numbers)


def test_categories_are_the_most_frequent_ties_by_value():
    values = [*("b" * 3), *("a" * 3), "c"]
    assert categories("Label", "rows", pa.array(values)) == Categories(
        "Label", "rows", [("a", 3), ("b", 3), ("c", 1)], 0, 3
    )
    many = [f"{number:02}" for number in range(20)]
    found = categories("", "", pa.array([*many, "19"]))
    assert found
    assert found.values == [("19", 2), *((name, 1) for name in many[:11])]
    assert (found.others, found.distinct) == (8, 20)


def test_thirteen_categories_need_no_others():
    found = categories("", "", pa.array([f"{number:02}" for number in range(13)]))
    assert found
    assert (len(found.values), found.others) == (13, 0)


def test_points_of_ranks():
    found = ranks("", "", np.arange(1, 6), np.array([9, 5, 5, 2, 1]))
    assert found
    assert found.points == [(1, 9), (2, 5), (3, 5), (4, 2), (5, 1)]
    large = ranks("", "", np.arange(1, 10**6 + 1), np.arange(10**6, 0, -1))
    assert large
    assert large.points[0] == (1, 10**6)
    assert large.points[-1] == (10**6, 1)
    assert 100 < len(large.points) <= 240
    assert all(rank + frequency == 10**6 + 1 for rank, frequency in large.points)


def test_nothing_is_measured_of_nothing():
    assert histogram("", "", pa.array([], pa.int64())) is None
    assert categories("", "", pa.array([], pa.string())) is None
    assert ranks("", "", np.arange(1, 2), np.array([1])) is None


def found_in(path, schema, shards, **options) -> dict[str, Histogram | Categories | Ranks]:
    written = write_dataset(path, schema, shards)
    return {each.title: each for each in survey(written.folder, written.manifest, **options).distributions}


def times(found: Histogram | Categories | Ranks) -> dict[str, int]:
    assert isinstance(found, Histogram)
    return {each.label: each.times for each in found.bins if each.times}


def test_documents(tmp_path):
    link = {"start_char": 0, "end_char": 1, "target_title": "A", "entity_id": "", "section": ""}
    rows = [document(1, text="Å" * 7), document(2, text="abc", links=[link, link])]
    found = found_in(tmp_path / "d", DOCUMENTS, [[rows[:1]], [rows[1:]]])
    assert times(found["Length of a document"]) == {"3": 1, "7": 1}
    assert times(found["Links in a document"]) == {"0": 1, "2": 1}
    assert found["Source"] == Categories("Source", "documents", [("wiki", 2)], 0, 1)
    assert found["Licence"] == Categories("Licence", "documents", [("CC BY-SA 4.0", 2)], 0, 1)


def test_sentences(tmp_path):
    rows = [sentence("the old man", [("NP", 0, 3), ("ADJP", 1, 2)]), sentence("go", [])]
    found = found_in(tmp_path / "s", SENTENCES, [[rows]])
    assert times(found["Length of a sentence"]) == {"1": 1, "3": 1}
    assert times(found["Length of a constituent"]) == {"1": 1, "3": 1}
    assert found["Label of a constituent"] == Categories(
        "Label of a constituent", "constituents", [("ADJP", 1), ("NP", 1)], 0, 2
    )
    assert found["Part of speech"] == Categories("Part of speech", "tokens", [("NN", 4)], 0, 1)


def test_phrases(tmp_path):
    rows = [phrase("sea", 9), phrase("old man", 4), phrase("see it", 4, label="VP")]
    found = found_in(tmp_path / "p", PHRASES, [[rows[:2]], [rows[2:]]])
    assert times(found["Length of a phrase"]) == {"1": 1, "2": 2}
    assert found["Label"] == Categories("Label", "phrases", [("NP", 2), ("VP", 1)], 0, 2)
    assert found["Frequency against rank"] == Ranks("Frequency against rank", "occurrences", [(1, 9), (2, 4), (3, 4)])


def test_contexts(tmp_path):
    rows = [
        context("sea", "the [MASK] is wide", frequency=5),
        context("sea", "[MASK] of ice", frequency=5),
        context("old man", "an [MASK]", frequency=7),
    ]
    found = found_in(tmp_path / "c", CONTEXTS, [[rows]])
    assert times(found["Length of a phrase"]) == {"1": 2, "2": 1}
    assert times(found["Length of a context"]) == {"2": 1, "3": 1, "4": 1}
    assert times(found["Place of the mask"]) == {"0": 1, "22": 1, "33": 1}
    curve = found["Frequency of the phrases against rank"]
    assert isinstance(curve, Ranks)
    assert curve.points == [(1, 7), (2, 5)]


WHALES = [
    mention("The [white whale] sank it.", "Whale", "Q160"),
    mention("A [whale] breathes air.", "Whale", "Q160"),
    mention("See [Whale] there today.", "Whale (band)", resolution="redirect", origin="repeat"),
]


def points(found: Histogram | Categories | Ranks) -> list[tuple[int, int]]:
    assert isinstance(found, Ranks)
    return found.points


def shares(found: Histogram | Categories | Ranks) -> dict[str, int]:
    assert isinstance(found, Categories)
    return dict(found.values)


def test_mentions(tmp_path):
    found = found_in(tmp_path / "m", MENTIONS, [[WHALES]])
    assert shares(found["Resolution"]) == {"qid": 2, "redirect": 1}
    assert shares(found["Origin"]) == {"link": 2, "repeat": 1}
    assert times(found["Length of a mention"]) == {"1": 2, "2": 1}
    assert times(found["Length of a sentence"]) == {"4": 2, "5": 1}
    assert times(found["Place of the mention"]) == {"9": 1, "16": 1, "18": 1}
    assert points(found["Mentions of an entity against its rank"]) == [(1, 2), (2, 1)]
    assert points(found["Mentions of a surface against its rank"]) == [(1, 1), (2, 1), (3, 1)]


def test_pairs_of_mentions(tmp_path):
    rows = [
        mention_pair(WHALES[0], WHALES[1]),
        mention_pair(WHALES[1], WHALES[2] | {"entity_id": "Q160"}, unmasked=2),
        mention_pair(WHALES[1], WHALES[2] | {"mention": "whale"}, kind="surface"),
    ]
    masked = [each | {"anchor": "[MASK]", "positive": "[MASK]"} for each in rows]
    found = found_in(tmp_path / "p", MENTION_PAIRS, [[rows]])
    assert found == found_in(tmp_path / "masked", MASKED_MENTION_PAIRS, [[masked]])
    assert shares(found["Kind"]) == {"entity": 2, "surface": 1}
    assert shares(found["How the surfaces of one entity differ"]) == {"in case only": 1, "one is part of the other": 1}
    assert times(found["Length of a mention"]) == {"1": 5, "2": 1}
    assert times(found["Length of a sentence"]) == {"4": 5, "5": 1}
    assert points(found["Pairs of a key against its rank"]) == [(1, 2), (2, 1)]
    assert times(found["Which of the two keeps its words"]) == {"0": 2, "2": 1}


def test_pairs_of_aliases(tmp_path):
    rows = [
        alias_pair("whale", "Whale", 9, 4),
        alias_pair("whale", "white whale", 9, 1),
        alias_pair("USA", "United States", 5, 5, title="United States"),
    ]
    found = found_in(tmp_path / "a", ALIAS_PAIRS, [[rows]])
    assert times(found["Length of an alias"]) == {"1": 4, "2": 2}
    assert shares(found["How the aliases differ"]) == {
        "in case only": 1,
        "one is part of the other": 1,
        "otherwise": 1,
    }
    assert times(found["Mentions by the more frequent alias"]) == {"5": 1, "9": 2}
    assert times(found["Mentions by the other alias"]) == {"1": 1, "4": 1, "5": 1}
    assert points(found["Pairs of an entity against its rank"]) == [(1, 2), (2, 1)]


def test_a_large_dataset_is_measured_by_evenly_spread_row_groups(tmp_path):
    """The rows that are read keep their ranks in the whole dataset."""
    frequency = [10_000 - 100 * shard - group for shard in range(4) for group in range(25)]
    groups = [[phrase(str(number), number)] for number in frequency]
    shards = [groups[start : start + 25] for start in range(0, 100, 25)]
    written = write_dataset(tmp_path / "p", PHRASES, shards)
    whole = survey(written.folder, written.manifest)
    assert (whole.rows, whole.of) == (100, 100)
    part = survey(written.folder, written.manifest, budget=2_000)
    assert part == survey(written.folder, written.manifest, budget=2_000)
    assert 1 < part.rows < 50
    assert part.of == 100
    curve = next(each for each in part.distributions if isinstance(each, Ranks))
    gaps = np.diff([rank for rank, _ in curve.points])
    assert gaps.max() - gaps.min() <= 1
    assert all(frequency[rank - 1] == found for rank, found in curve.points)


def test_contexts_of_a_sample_have_no_ranks(tmp_path):
    groups = [[context(f"p{number}", f"{'x' * 500} [MASK]")] for number in range(50)]
    written = write_dataset(tmp_path / "c", CONTEXTS, [groups])
    part = survey(written.folder, written.manifest, budget=5_000)
    assert 0 < part.rows < 50
    assert not any(isinstance(each, Ranks) for each in part.distributions)
    assert any(isinstance(each, Histogram) for each in part.distributions)


def test_samples_are_the_first_rows_of_evenly_spread_row_groups(tmp_path):
    shards = [[[document(100 * shard + row) for row in range(50)]] for shard in range(4)]
    written = write_dataset(tmp_path / "d", DOCUMENTS, shards)
    found = survey(written.folder, written.manifest, samples=6).samples
    assert [row.origin for row in found] == ["wiki:0", "wiki:1", "wiki:100", "wiki:101", "wiki:200", "wiki:300"]


def test_samples_of_phrases_are_ever_rarer(tmp_path):
    rows = [phrase(str(number), 2000 - number) for number in range(1, 1001)]
    written = write_dataset(tmp_path / "p", PHRASES, [[rows[:300], rows[300:600]], [rows[600:]]])
    found = survey(written.folder, written.manifest, samples=4).samples
    assert [row.heading for row in found] == ["1", "10", "100", "1000"]


@pytest.mark.parametrize("schema", [kind.schema for kind in KINDS.values()])
@pytest.mark.parametrize("shards", [[], [[]], [[], []]])
def test_a_dataset_without_rows(schema, shards, tmp_path):
    written = write_dataset(tmp_path / "e", schema, shards)
    found = survey(written.folder, written.manifest)
    assert (found.rows, found.of, found.distributions, found.samples) == (0, 0, [], [])


def test_labels_of_bins():
    assert [Bin(0, 0, 1).label, Bin(1000, 1999, 1).label, Bin(5000, None, 1).label] == ["0", "1,000–1,999", "≥ 5,000"]
