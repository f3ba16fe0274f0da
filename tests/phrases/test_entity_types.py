"""Entities of sentences -> the types of phrases (docs/typed-phrases.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import Row, sentences, shard, treebank_shards
from properties import examples
from typed_rows import TYPES, Spans, entities, expected, guessed

from schemas.errors import UserError
from schemas.terms import ENTITY_TYPES
from transforms.arrays import I64
from transforms.phrases.counting import count_shard, merge_counts, to_typed_phrases, total_counts, with_storage_keys
from transforms.phrases.entity_types import entity_types, ordered_types
from transforms.phrases.occurrences import Occurrences
from transforms.phrases.options import MATCHES, TYPED_RULES, PhraseRules
from transforms.phrases.tokens import Tokens

RULES = replace(TYPED_RULES, min_letters=1, nested="all")


def typed(
    tables: Sequence[pa.Table], annotated: Sequence[pa.Table], match: str, rules: PhraseRules = RULES
) -> list[Row]:
    """The typed phrases of shards of sentences with their entities, all of them."""
    counts = []
    for sentences_, entities_ in zip(tables, annotated, strict=True):

        def typing(tokens: Tokens, found: Occurrences, of: pa.Table = sentences_, with_: pa.Table = entities_) -> I64:
            return found.label * len(TYPES) + entity_types(of, tokens, found, with_, TYPES, match)

        counts.append(with_storage_keys(count_shard(sentences_, rules, typing).table))
    return to_typed_phrases(total_counts(merge_counts(counts)), TYPES).to_pylist() if counts else []


@pytest.mark.parametrize(
    ("brackets", "spans", "phrase", "exact", "head", "contained"),
    [
        # the words of the entity, whatever determiners, punctuation and possessives stand around them
        ("[NP Rome/NNP]", [("GPE", 0, 1)], "rome", "NP-GPE", "NP-GPE", "NP-GPE"),
        ("[NP the Rhine/NNP]", [("LOC", 0, 2)], "rhine", "NP-LOC", "NP-LOC", "NP-LOC"),
        ("[NP the Rhine/NNP]", [("LOC", 1, 2)], "rhine", "NP-LOC", "NP-LOC", "NP-LOC"),
        ("[NP Ahab/NNP ~'s/POS]", [("PERSON", 0, 2)], "ahab", "NP-PERSON", "NP-PERSON", "NP-PERSON"),
        ("[NP ( ~Rome/NNP ~)]", [("GPE", 0, 2)], "rome", "NP-GPE", "NP-GPE", "NP-GPE"),
        ("[ADJP British/JJ]", [("NORP", 0, 1)], "british", "ADJP-NORP", "ADJP-NORP", "ADJP-NORP"),
        ("[VP remain/VB]", [("WORK_OF_ART", 0, 1)], "remain", *["VP-WORK_OF_ART"] * 3),
        ("[ADVP [NP ten/CD years/NNS] ago/RB]", [("DATE", 0, 3)], "ten years ago", *["ADVP-DATE"] * 3),
        # the object of a PP, also in a PP in it
        ("[PP in/IN [NP the city/NN]]", [("GPE", 1, 3)], "in the city", "PP-GPE", "PP-GPE", "PP-GPE"),
        ("[PP in/IN [NP Rome/NNP]]", [("GPE", 1, 2)], "in rome", "PP-GPE", "PP-GPE", "PP-GPE"),
        ("[PP from/IN [PP near/IN [NP Rome/NNP]]]", [("GPE", 2, 3)], "from near rome", *["PP-GPE"] * 3),
        ("[PP about/IN [NP May/NNP 5/CD]]", [("DATE", 0, 3)], "about may 5", "PP-DATE", "PP-DATE", "PP-DATE"),
        (
            "[PP in/IN [NP Rome/NNP] and/CC [NP Oslo/NNP]]",
            [("GPE", 1, 2), ("LOC", 3, 4)],
            *("in rome and oslo", "PP-OTHER", "PP-OTHER", "PP-GPE"),
        ),
        # the head: the last noun, of the first NP in an NP; of a PP that of its object
        ("[NP friend/NN Tom/NNP Hill/NNP]", [("PERSON", 1, 3)], "friend tom hill", "NP-OTHER", *["NP-PERSON"] * 2),
        ("[PP for/IN [NP Mr./NNP Hill/NNP]]", [("PERSON", 2, 3)], "for mr. hill", "PP-OTHER", *["PP-PERSON"] * 2),
        ("[NP Paris/NNP street/NN]", [("GPE", 0, 1)], "paris street", "NP-OTHER", "NP-OTHER", "NP-GPE"),
        (
            "[NP [NP old/JJ Rome/NNP] [PP of/IN [NP Titus/NNP]]]",
            [("GPE", 1, 2), ("PERSON", 3, 4)],
            *("old rome of titus", "NP-OTHER", "NP-GPE", "NP-GPE"),
        ),
        (
            "[NP [NP street/NN] [PP of/IN [NP Rome/NNP]]]",
            [("GPE", 2, 3)],
            *("street of rome", "NP-OTHER", "NP-OTHER", "NP-GPE"),
        ),
        ("[VP saw/VBD [NP Rome/NNP]]", [("GPE", 1, 2)], "saw rome", "VP-OTHER", "VP-OTHER", "VP-GPE"),
        # neither a number nor anything in a coordination is the head
        (
            "[NP [NP one/CD] [PP of/IN [NP men/NNS]]]",
            [("CARDINAL", 0, 1)],
            *("one of men", "NP-OTHER", "NP-OTHER", "NP-CARDINAL"),
        ),
        ("[NP Tom/NNP and/CC Al/NNP]", [("ORG", 2, 3)], "tom and al", "NP-OTHER", "NP-OTHER", "NP-ORG"),
        ("[NP Tom/NNP and/CC Al/NNP]", [("ORG", 0, 3)], "tom and al", "NP-ORG", "NP-ORG", "NP-ORG"),
        # an entity that is longer than the phrase is not its own
        ("[NP Rome/NNP] [VP fell/VBD]", [("EVENT", 0, 2)], "rome", "NP-OTHER", "NP-OTHER", "NP-OTHER"),
        # of several inside the longest, then the first
        (
            "[NP J/NNP K/NNP L/NNP M/NNP N/NNP men/NNS]",
            [("ORG", 0, 1), ("GPE", 1, 3), ("LOC", 3, 5)],
            *("j k l m n men", "NP-OTHER", "NP-OTHER", "NP-GPE"),
        ),
        ("[NP men/NNS]", [], "men", "NP-OTHER", "NP-OTHER", "NP-OTHER"),
    ],
)
def test_the_entity_of_a_phrase(brackets, spans, phrase, exact, head, contained):
    table = sentences("[NP x]", brackets, "[NP x]")
    annotated = entities(table, [[("LAW", 0, 1)], spans, []])
    for match, type_ in zip(MATCHES, (exact, head, contained), strict=True):
        found = {row["phrase"]: row["type"] for row in typed([table], [annotated], match)}
        assert (match, found[phrase]) == (match, type_)


@pytest.mark.parametrize(
    ("texts", "type_", "shares"),
    [
        # the label of most occurrences, then the entity type of most that have the label
        (["[NP x] G", "[NP x] G", "[NP x]"], "NP-GPE", {"NP-GPE": 2 / 3, "NP-OTHER": 1 / 3}),
        (["[VP x]", "[VP x]", "[NP x] G", "[NP x] P", "[NP x] P"], "NP-PERSON", {"VP-OTHER": 0.4, "NP-PERSON": 0.4}),
        # ties by the order of the labels, and of the types: an entity before none
        (["[VP x] G", "[NP x]"], "NP-OTHER", {"NP-OTHER": 0.5, "VP-GPE": 0.5}),
        (["[NP x] G", "[NP x] P"], "NP-PERSON", {"NP-PERSON": 0.5, "NP-GPE": 0.5}),
        (["[NP x]", "[NP x] C"], "NP-CARDINAL", {"NP-CARDINAL": 0.5, "NP-OTHER": 0.5}),
    ],
)
def test_the_type_of_most_occurrences(texts, type_, shares):
    names = {"G": "GPE", "P": "PERSON", "C": "CARDINAL"}
    table = sentences(*(text.rpartition("]")[0] + "]" for text in texts))
    annotated = entities(table, [[(names[text[-1]], 0, 1)] if text[-1] in names else [] for text in texts])
    (row,) = typed([table], [annotated], "exact")
    label, _, entity_type = type_.partition("-")
    assert (row["type"], row["label"], row["entity_type"]) == (type_, label, entity_type)
    found = {each["type"]: pytest.approx(each["share"]) for each in row["type_shares"]}
    assert found.items() >= shares.items()
    assert sum(each["share"] for each in row["type_shares"]) == pytest.approx(1)


def test_types_in_order():
    assert ordered_types(["MISC", "GPE", "PERSON", "OTHER", "Art"]) == ("PERSON", "GPE", "Art", "MISC", "OTHER")


def test_entities_of_other_sentences():
    table = sentences("[NP x]", "[NP y]")
    with pytest.raises(UserError, match="entities: 1 rows for 2 sentences; find them again"):
        typed([table], [entities(table.slice(1), [[]])], "head")
    with pytest.raises(UserError, match="entities: type XY is none of those in the manifest"):
        typed([table], [entities(table, [[("XY", 0, 1)], []])], "head")


@pytest.mark.parametrize("match", MATCHES)
def test_the_types_of_a_treebank(test_data, match):
    tables = [each.sentences.slice(0, 80) for each in treebank_shards(test_data / "treebanks/gum/dev.ptb", shards=2)]
    annotated = [guessed(table) for table in tables]
    found = typed(tables, annotated, match, TYPED_RULES)
    assert found == expected(tables, annotated, match, TYPED_RULES)
    assert len({row["type"] for row in found}) > 30


WORDS = st.lists(
    st.sampled_from(["x/NN", "the/DT", "y/NNP", "~'s/POS", "and/CC", "in/IN", "4/CD", ",/,"]), min_size=1, max_size=4
)
PIECE = st.recursive(
    WORDS.map(" ".join),
    lambda inner: st.builds(
        lambda label, parts: f"[{label} {' '.join(parts)}]",
        st.sampled_from(("NP", "PP", "ADJP", "S")),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
SENTENCE = st.tuples(
    st.lists(PIECE, min_size=1, max_size=3).map(lambda pieces: f"[NP z/NN] {' '.join(pieces)}"),
    st.lists(st.tuples(st.sampled_from(ENTITY_TYPES), st.integers(0, 3), st.integers(1, 3)), max_size=4),
)
SHARDS = st.lists(st.lists(SENTENCE, min_size=1, max_size=3), max_size=3)


def of_examples(texts: Sequence[tuple[str, Spans]], name: str) -> tuple[pa.Table, pa.Table]:
    """A shard of sentences, and their entities: each so many tokens after the one before it, and so long."""
    table = shard({name: " | ".join(text for text, _ in texts)}).sentences
    spans = []
    for row, (_, steps) in zip(table.to_pylist(), texts, strict=True):
        last, own = 0, []
        for type_, gap, size in steps:
            if last + gap + size <= len(row["tokens"]):
                own.append((type_, last + gap, last + gap + size))
                last += gap + size
        spans.append(own)
    return table, entities(table, spans)


@examples(30)
@given(SHARDS, st.sampled_from(MATCHES), st.sampled_from(("base", "all")))
def test_any_shards(shards, match, nested):
    rules = replace(RULES, nested=nested)
    made = [of_examples(texts, f"d{number}") for number, texts in enumerate(shards)]
    tables, annotated = [each for each, _ in made], [each for _, each in made]
    found = typed(tables, annotated, match, rules)
    assert found == expected(tables, annotated, match, rules)
    assert found == typed(tables[::-1], annotated[::-1], match, rules)
