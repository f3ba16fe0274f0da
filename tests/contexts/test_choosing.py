"""Which occurrences are chosen: those with the lowest hash, for any shards in any order."""

from __future__ import annotations

from collections import Counter

import brute_force
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import Shard, shard
from properties import examples

from transforms.arrays import strings_hashes
from transforms.contexts.choosing import CHOSEN, Vocabulary, keep_lowest, occurrences_of
from transforms.phrases.occurrences import find_occurrences
from transforms.phrases.options import PhraseRules
from transforms.phrases.tokens import read_tokens

RULES = PhraseRules(min_letters=1)


def chosen(shards: list[Shard], phrases: list[str], *, most: int, seed: int) -> set[tuple[str, str, int]]:
    """The chosen occurrences: (phrase, document, start_char)."""
    vocabulary = Vocabulary.of(pa.array(phrases, pa.string()))
    tables, starts = [], {}
    for number, each in enumerate(shards):
        tokens = read_tokens(each.sentences, lowercase=True)
        found = find_occurrences(each.sentences, tokens, RULES)
        tables.append(occurrences_of(vocabulary, tokens, found, shard=number, seed=seed))
        for sentence, row in enumerate(each.sentences.to_pylist()):
            for place, token in enumerate(row["tokens"]):
                starts[number, sentence, place] = row["doc_id"], token["start_char"]
    kept = keep_lowest(pa.concat_tables([CHOSEN.empty_table(), *tables]).combine_chunks(), most=most).to_pylist()
    assert kept == sorted(kept, key=lambda row: (row["phrase_index"], row["priority"]))
    return {(phrases[row["phrase_index"]], *starts[row["shard"], row["sentence"], row["start_token"]]) for row in kept}


def expected(shards: list[Shard], phrases: list[str], *, most: int, seed: int) -> set[tuple[str, str, int]]:
    found = [each for table in shards for each in brute_force.find(table.sentences.to_pylist(), RULES).occurrences]
    return {
        (each.phrase, each.doc_id, each.start_char) for each in brute_force.choose(found, phrases, most=most, seed=seed)
    }


TEXT = st.lists(st.sampled_from(["[NP x]", "[VP x]", "[NP the y]", "[NP é [NP y]]", "z", "|"]), min_size=1).map(
    " ".join
)
SHARDS = st.lists(st.lists(TEXT, max_size=3), min_size=1, max_size=4).map(
    lambda texts: [
        shard({f"d{number}.{place}": text for place, text in enumerate(some)}) for number, some in enumerate(texts)
    ]
)


@examples(25)
@given(SHARDS, st.sampled_from([[], ["x"], ["y", "x"], ["é y", "nowhere", "y"]]), st.integers(1, 4), st.integers(0, 9))
def test_any_shards(shards, phrases, most, seed):
    wanted = expected(shards, phrases, most=most, seed=seed)
    assert chosen(shards, phrases, most=most, seed=seed) == wanted
    assert chosen(shards[::-1], phrases[::-1], most=most, seed=seed) == wanted


def test_every_occurrence_has_the_same_chance():
    documents = {f"d{number}": "[NP x] a [NP x] b | [NP x]\n\n[NP x]" for number in range(50)}
    seeds = range(200)
    found = [next(iter(chosen([shard(documents)], ["x"], most=1, seed=seed))) for seed in seeds]
    assert len(set(found)) > 100, "200 draws of 200 occurrences hit 126 of them on average"
    assert set(Counter(start for _, _, start in found)) == {0, 4, 8, 11}


def test_phrases_choose_independently():
    documents = {f"d{number}": "[NP x] [NP y]" for number in range(100)}
    phrases = ["x", "y"]
    found = [chosen([shard(documents)], phrases, most=1, seed=seed) for seed in range(20)]
    assert sum(len({document for _, document, _ in each}) == 1 for each in found) <= 2


def test_the_vocabulary_finds_its_phrases_and_no_others():
    words = [f"{number:x}" for number in range(5000)]
    vocabulary = Vocabulary.of(pa.array(words[::2]), first_index=10)
    found = vocabulary.find(*strings_hashes(pa.array(words))).tolist()
    assert found[::2] == list(range(10, 10 + 2500))
    assert set(found[1::2]) == {-1}
    empty = Vocabulary.of(pa.array([], pa.string()))
    assert empty.find(*strings_hashes(pa.array(["x"]))).tolist() == [-1]


def test_two_phrases_of_one_half_of_the_hash_are_told_apart():
    hi = np.array([5, 7, 7, 9], dtype=np.uint64)
    lo = np.array([1, 2, 3, 4], dtype=np.uint64)
    vocabulary = Vocabulary(hi, lo, np.arange(4))
    assert vocabulary.find(hi, lo).tolist() == [0, 1, 2, 3]
    assert vocabulary.find(hi, lo + np.uint64(9)).tolist() == [-1] * 4
    assert vocabulary.find(np.array([0, 6, 8, 10], dtype=np.uint64), lo).tolist() == [-1] * 4


@pytest.mark.parametrize(("most", "kept"), [(1, [3, 1]), (2, [3, 0, 1]), (9, [3, 0, 2, 1])])
def test_the_lowest_are_kept(most, kept):
    rows = [(7, 20, 0), (8, 5, 1), (7, 30, 2), (7, 10, 3)]
    table = pa.Table.from_pylist(
        [
            {"phrase_index": i, "priority": p, "shard": s, "sentence": 0, "start_token": 0, "end_token": 1}
            for i, p, s in rows
        ],
        schema=CHOSEN,
    )
    assert keep_lowest(table, most=most).column("shard").to_pylist() == kept
