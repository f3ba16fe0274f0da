"""Counts of phrases: a shard, several merged, labels and shares, the order of phrases."""

from __future__ import annotations

import itertools
import string
from collections import Counter

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
    FREQUENCIES,
    Cut,
    ShardCounts,
    count_shard,
    cut_at,
    frequencies_of,
    merge_counts,
    phrase_keys,
    to_phrases,
    total_counts,
    with_storage_keys,
)
from transforms.phrases.options import PhraseRules

RULES = PhraseRules(labels=PHRASE_LABELS, min_letters=1)


def phrases(*tables: pa.Table) -> list[Row]:
    """The phrase records of sentence shards."""
    counts = [with_storage_keys(count_shard(table, RULES).table) for table in tables]
    return to_phrases(total_counts(pa.concat_tables([COUNTS.empty_table(), *counts]))).to_pylist()


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


def test_the_order_is_by_frequency_then_by_hash():
    words = ["c", "b b", "b-b", "Z", "é", "z", "\ufb00", "𝔸", "bb"]
    found = phrases(shard({"d": " ".join(f"[NP {word}]" for word in words) + " [NP é]"}).sentences)
    # The hashes begin with 7c 90, then 02 12 18 4d 79 db.
    assert [row["phrase"] for row in found] == ["z", "é", "b b", "c", "b-b", "𝔸", "\ufb00", "bb"]


NAMES = st.tuples(
    st.permutations(string.ascii_lowercase),
    st.text(alphabet="abcmnyz éж", max_size=3),
    st.sampled_from(["{letter}{number}{more}", "{letter}{more} {number:04}", "{letter} {more}{number:x}"]),
)
"""Names for 26 times 100 phrases: which letters come first, and what follows."""


@examples(20)
@given(NAMES, st.integers(1, 9))
def test_ties_favour_no_letter_whatever_the_phrases_are_called(names, tenths):
    letters, more, form = names
    phrases = [form.format(letter=letter, more=more, number=number) for letter in letters for number in range(100)]
    labels = {"NP": 1} | dict.fromkeys(PHRASE_LABELS[1:], 0)
    once = {"key_hi": 0, "key_lo": 0, "surface_key": 0, "frequency": 1, "document_frequency": 1, **labels}
    counts = pa.Table.from_pylist([{"phrase": phrase, **once} for phrase in phrases], schema=COUNTS)
    most = len(phrases) * tenths // 10
    kept = total_counts(with_storage_keys(counts)).slice(0, most).column("phrase").to_pylist()
    shares = Counter(phrase[0] for phrase in kept)
    # Of 100 phrases with a letter, `10 * tenths` are expected, with a standard deviation of 5 at most.
    assert all(abs(shares[letter] - 10 * tenths) <= 30 for letter in letters)


@pytest.mark.parametrize(
    ("frequencies", "most", "cut"),
    [
        ({9: 5, 1: 5}, 6, Cut(6, 1, 4)),
        ({9: 5, 1: 5}, 5, Cut(5, 9, 0)),
        ({9: 5, 1: 5}, 4, Cut(4, 9, 1)),
        ({9: 5, 1: 5}, 10, Cut(10, 1, 0)),
        ({9: 5, 1: 5}, 11, Cut(10, 1, 0)),
        ({9: 5, 1: 5}, None, Cut(10, 1, 0)),
        ({}, 5, Cut(0, 0, 0)),
        ({}, None, Cut(0, 0, 0)),
    ],
)
def test_the_cut(frequencies, most, cut):
    rows = [{"frequency": frequency, "phrases": number} for frequency, number in frequencies.items()]
    assert cut_at(pa.Table.from_pylist(rows, schema=FREQUENCIES), most) == cut


@given(st.lists(st.lists(st.integers(1, 6)), max_size=4), st.integers(1, 20) | st.none())
def test_any_cut_of_any_ranges(ranges, most):
    tables = [frequencies_of(pa.table({"frequency": pa.array(each, pa.int64())})) for each in ranges]
    found = sorted(itertools.chain(*ranges), reverse=True)
    kept, dropped = found[:most], found[len(found[:most]) :]
    wanted = Cut(len(kept), kept[-1], dropped.count(kept[-1])) if kept else Cut(0, 0, 0)
    assert cut_at(pa.concat_tables([FREQUENCIES.empty_table(), *tables]), most) == wanted


@pytest.mark.parametrize(
    ("texts", "surfaces"),
    [
        (["[NP x]"], {"x": ("x", 1.0)}),
        (["[NP The May/NNP] [NP may/NN] [NP May/NNP]"], {"may": ("May", 2 / 3)}),
        # in shards and documents; a document counts once although it has two surfaces
        (["[NP US Army] [NP Us army]", "[NP us Army] [NP US Army]"], {"us army": ("US Army", 0.5)}),
        # ties by hash, which begins with 0f for "X y", 1f for "x Y", 96 for "x y"
        (["[NP x y] [NP x Y] [NP X y]"], {"x y": ("X y", 1 / 3)}),
        (["[NP x y] [NP x Y]"], {"x y": ("x Y", 1 / 2)}),
        # the same surface in other tokens
        (["[NP LAPTOP] [NP LAPTOP] [NP Lap ~top]", "[NP Laptop] [NP Lap ~top]"], {"laptop": ("Laptop", 3 / 5)}),
        # quotes and composed letters
        (["[NP x\u2019s] [NP x's] [NP x\u2019s]"], {"x's": ("x\u2019s", 2 / 3)}),
        (["[NP cafe\u0301] [NP caf\xe9] [NP cafe\u0301]"], {"caf\xe9": ("cafe\u0301", 2 / 3)}),
    ],
)
def test_the_commonest_surface(texts, surfaces):
    tables = [shard({f"d{number}": text}).sentences for number, text in enumerate(texts)]
    found = {row["phrase"]: (row["surface"], row["surface_share"]) for row in phrases(*tables)}
    assert found == {phrase: (surface, pytest.approx(share)) for phrase, (surface, share) in surfaces.items()}


def test_a_line_break_is_a_blank_in_a_surface():
    table = shard({"d": "[NP Right Whale] [NP right whale] [NP Right Whale]"}).sentences
    lines = [{**row, "text": row["text"].replace(" ", "\n")} for row in table.to_pylist()]
    (row,) = phrases(pa.Table.from_pylist(lines, schema=table.schema), table)
    assert (row["surface"], row["surface_share"]) == ("Right Whale", pytest.approx(4 / 6))


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
    table = with_storage_keys(count_shard(shard({"d": "[NP é 😀x] [NP y]"}).sentences, RULES).table)
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


@examples(25)
@given(SHARDS)
def test_any_shards(shards: list[Shard]):
    tables = [each.sentences for each in shards]
    assert phrases(*tables) == expected(*tables)
    assert phrases(*tables[::-1]) == phrases(*tables)


def test_keys_of_one_half_are_told_apart():
    def counts(*keys: tuple[int, int, str]) -> pa.Table:
        labels = {"NP": 1} | dict.fromkeys(PHRASE_LABELS[1:], 0)
        once = {"surface_key": 0, "frequency": 1, "document_frequency": 1, **labels}
        return pa.Table.from_pylist(
            [{"key_hi": hi, "key_lo": lo, "phrase": phrase, **once} for hi, lo, phrase in keys], schema=COUNTS
        )

    merged = merge_counts([counts((7, 9, "b"), (7, 1, "a")), counts((5, 9, "c"), (7, 9, "b"))])
    found = [(row["phrase"], row["frequency"], row["NP"]) for row in merged.to_pylist()]
    assert found == [("c", 1, 1), ("a", 1, 1), ("b", 2, 2)]
