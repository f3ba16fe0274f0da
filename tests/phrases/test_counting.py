"""Counts of phrases: a shard, several merged, labels and shares, the order of phrases."""

from __future__ import annotations

import brute_force
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from literal import Row, Shard, shard, treebank_shards
from properties import examples

from schemas.kinds.phrases import PHRASES
from schemas.terms import PHRASE_LABELS
from transforms.phrases.counting import (
    COUNTS,
    ShardCounts,
    count_shard,
    merge_counts,
    phrase_keys,
    sort_counts,
    to_phrases,
    with_phrase_keys,
)
from transforms.phrases.options import PhraseRules

RULES = PhraseRules(labels=PHRASE_LABELS, min_letters=1)


def phrases(*tables: pa.Table) -> list[Row]:
    """The phrase records of sentence shards."""
    counts = [count_shard(table, RULES).table for table in tables]
    return to_phrases(sort_counts(merge_counts(counts))).to_pylist()


def expected(*tables: pa.Table) -> list[Row]:
    found = [each for table in tables for each in brute_force.find(table.to_pylist(), RULES).occurrences]
    return in_float32(brute_force.count(found))


def in_float32(rows: list[Row]) -> list[Row]:
    """The rows with their shares in the stored precision."""
    return pa.Table.from_pylist(rows, schema=PHRASES).to_pylist()


def test_frequency_and_document_frequency():
    tables = [
        shard({"a": "[NP x] [NP the X] | [NP x]", "b": "[NP x] [NP y y]"}).sentences,
        shard({"c": "[NP x]", "d": "[NP z]", "e": "[VP z z]"}).sentences,
    ]
    found = [(row["phrase"], row["frequency"], row["document_frequency"]) for row in phrases(*tables)]
    assert found == [("x", 5, 3), ("y y", 1, 1), ("z", 1, 1), ("z z", 1, 1)]


@pytest.mark.parametrize(
    ("sentence", "label", "shares"),
    [
        ("[NP x]", "NP", {"NP": 1.0}),
        ("[VP x] [VP x] [NP x] [VP x]", "VP", {"NP": 0.25, "VP": 0.75}),
        # ties by the order NP, VP, PP, ADJP, ADVP, not by the order in the text
        ("[VP x] [NP x]", "NP", {"NP": 0.5, "VP": 0.5}),
        ("[ADVP x] [ADJP x] [PP x] [ADVP x] [ADJP x]", "ADJP", {"PP": 0.2, "ADJP": 0.4, "ADVP": 0.4}),
        ("[ADVP x] [PP x]", "PP", {"PP": 0.5, "ADVP": 0.5}),
        # a unary chain is one occurrence
        ("[VP [NP x]] [VP x]", "NP", {"NP": 0.5, "VP": 0.5}),
    ],
)
def test_labels(sentence, label, shares):
    (row,) = phrases(shard({"d": sentence}).sentences)
    (wanted,) = in_float32([row | {"label": label, "label_shares": dict.fromkeys(PHRASE_LABELS, 0.0) | shares}])
    assert row == wanted


def test_the_order_is_by_frequency_then_by_bytes():
    words = ["c", "b b", "b-b", "Z", "é", "z", "\ufb00", "𝔸", "bb"]
    found = phrases(shard({"d": " ".join(f"[NP {word}]" for word in words) + " [NP é]"}).sentences)
    # In the order of UTF-16 the last two would be the other way round.
    assert [row["phrase"] for row in found] == ["z", "é", "b b", "b-b", "bb", "c", "\ufb00", "𝔸"]


def test_what_is_read_and_filtered_is_counted():
    table = shard({"a": "[NP It] [VP saw [NP 5]] [S [PP in [NP Rome]]]"}).sentences
    found = count_shard(table, PhraseRules())
    assert found == ShardCounts(found.table, 5, 4, 2, {"pronoun": 1, "number": 1})


def test_nothing_gives_nothing():
    empty = shard({}).sentences
    assert phrases() == phrases(empty) == phrases(empty, empty) == []
    assert merge_counts([]).schema == count_shard(empty, RULES).table.schema == COUNTS
    assert phrases(shard({"d": "no constituents"}).sentences) == []


def test_the_key_on_storage_is_a_hash_of_the_phrase():
    table = with_phrase_keys(count_shard(shard({"d": "[NP é 😀x] [NP y]"}).sentences, RULES).table)
    for row in table.to_pylist():
        assert row["key_hi"] << 64 | row["key_lo"] == xxhash.xxh3_128_intdigest(row["phrase"].encode())
    assert [len(each) for each in phrase_keys(pa.array([], pa.string()))] == [0, 0]


@pytest.mark.parametrize("shards", [1, 3])
def test_the_counts_of_a_treebank(test_data, shards):
    tables = [each.sentences for each in treebank_shards(test_data / "treebanks/gum/dev.ptb", shards=shards)]
    found = phrases(*tables)
    assert len(found) > 4_000
    assert found == expected(*tables)


WORDS = st.lists(st.sampled_from(["x", "X", "the", "y", "é", "😀", ".", "~x", "~."]), min_size=1, max_size=3)
CONSTITUENT = st.builds(lambda label, words: f"[{label} {' '.join(words)}]", st.sampled_from(PHRASE_LABELS), WORDS)
TEXT = st.lists(st.lists(CONSTITUENT, max_size=4).map(" ".join), min_size=1, max_size=3).map(" | ".join)
SHARDS = st.lists(st.lists(TEXT, max_size=3), max_size=4).map(
    lambda texts: [
        shard({f"d{number}.{place}": text for place, text in enumerate(some)}) for number, some in enumerate(texts)
    ]
)


@examples(40)
@given(SHARDS)
def test_any_shards(shards: list[Shard]):
    tables = [each.sentences for each in shards]
    assert phrases(*tables) == expected(*tables)
    assert phrases(*tables[::-1]) == phrases(*tables)


def test_keys_of_one_half_are_told_apart():
    def counts(*keys: tuple[int, int, str]) -> pa.Table:
        labels = {"NP": 1} | dict.fromkeys(PHRASE_LABELS[1:], 0)
        once = {"frequency": 1, "document_frequency": 1, **labels}
        return pa.Table.from_pylist(
            [{"key_hi": hi, "key_lo": lo, "phrase": phrase, **once} for hi, lo, phrase in keys], schema=COUNTS
        )

    merged = merge_counts([counts((7, 9, "b"), (7, 1, "a")), counts((5, 9, "c"), (7, 9, "b"))])
    found = [(row["phrase"], row["frequency"], row["NP"]) for row in merged.to_pylist()]
    assert found == [("c", 1, 1), ("a", 1, 1), ("b", 2, 2)]
