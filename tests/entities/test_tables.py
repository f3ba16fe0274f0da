"""Between tables and finders: words of sentences, groups, and tables of entities; what labels mean."""

from __future__ import annotations

import pyarrow as pa
import pytest
from literal import sentences, shard

from schemas.kinds.entities import ENTITIES
from schemas.kinds.sentences import SENTENCES
from transforms.entities.interface import Entity, Words, types_of
from transforms.entities.tables import entities_table, groups, is_uncapitalised, read_words, slices
from transforms.entities.tags import Tag, spans, tags_of


def test_the_words_of_sentences_in_the_middle_of_documents():
    table = shard({"d": "I saw Ahab ~'s whale ~.\nIt | \U0001f40b swam ~.", "e": "No"}).sentences
    assert read_words(table) == [
        Words(["I", "saw", "Ahab", "'s", "whale", "."], [True, True, False, True, False, False]),
        Words(["It"], [False]),
        Words(["\U0001f40b", "swam", "."], [True, False, False]),
        Words(["No"], [False]),
    ]
    assert read_words(table.slice(0, 0)) == []


def test_a_line_of_verse_begins_with_a_small_letter_unless_with_a_name():
    text = "The boy\nDrew near\nAhab and\nI"
    starts = [text.index(word) for word in text.split()]
    tags = ["DT", "NN", "VBD", "IN", "NNP", "CC", ""]
    tokens = [
        {"start_char": 100 + start, "end_char": 100 + start + len(word), "tag": tag}
        for start, word, tag in zip(starts, text.split(), tags, strict=True)
    ]
    row = {"sentence_id": "d#100", "doc_id": "d", "start_char": 100, "text": text, "tokens": tokens, "constituents": []}
    (found,) = read_words(pa.Table.from_pylist([row], schema=SENTENCES))
    assert found == Words(["The", "boy", "drew", "near", "Ahab", "and", "I"], [True] * 6 + [False])


@pytest.mark.parametrize(
    ("words", "type_", "expected"),
    [
        ("grey wolf", "PERSON", True),
        ("thou", "NORP", True),
        ("ἰδέα", "ORG", True),
        ("iTunes", "PRODUCT", False),
        ("University of nowhere", "ORG", False),
        ("横面打ち", "GPE", False),
        ("42", "ORG", False),
        ("two", "CARDINAL", False),
        ("lithium", "Chemical", False),
    ],
)
def test_a_name_without_a_capital_is_none(words, type_, expected):
    assert is_uncapitalised(["The", *words.split()], Entity(1, 1 + len(words.split()), type_)) == expected


def test_groups_of_about_so_many_tokens():
    lengths = [2, 3, 1, 9, 1]
    given = [Words(["x"] * length, [True] * length) for length in lengths]
    for tokens, expected in ((1, [[2], [3], [1], [9], [1]]), (5, [[2, 3], [1, 9], [1]]), (99, [lengths])):
        assert [[len(each.words) for each in group] for group in groups(given, tokens)] == expected
    assert list(groups([], 5)) == []
    table = shard({"d": "One two | Three four five | Six"}).sentences
    assert [each.num_rows for each in slices(table, 4)] == [2, 1]
    assert [words for each in slices(table, 4) for words in read_words(each)] == read_words(table)


def test_a_row_for_each_sentence():
    ids = sentences("One", "Two", "Three").column("sentence_id")
    table = entities_table(ids, [[Entity(0, 1, "CARDINAL")], [], [Entity(0, 2, "ORG"), Entity(3, 4, "GPE")]])
    assert table.schema.equals(ENTITIES, check_metadata=True)
    assert [[[*each.values()] for each in row["entities"]] for row in table.to_pylist()] == [
        [[0, 1, "CARDINAL"]],
        [],
        [[0, 2, "ORG"], [3, 4, "GPE"]],
    ]
    assert entities_table(pa.chunked_array([], pa.string()), []).num_rows == 0


@pytest.mark.parametrize(
    ("labels", "given", "expected"),
    [
        ("PER LOC ORG MISC", "", {"PER": "PERSON", "LOC": "LOC", "ORG": "ORG", "MISC": "MISC"}),
        ("person corporation product", "", {"person": "PERSON", "corporation": "corporation", "product": "PRODUCT"}),
        ("PER LOC MISC", "LOC:GPE,MISC:", {"PER": "PERSON", "LOC": "GPE", "MISC": ""}),
        ("Disease", "", {"Disease": "Disease"}),
    ],
)
def test_the_types_of_labels(labels, given, expected):
    assert types_of(labels.split(), given) == expected


@pytest.mark.parametrize("given", ["MISC:X", "PER", "PER=X"])
def test_a_type_for_no_label_is_refused(given):
    with pytest.raises(ValueError, match=r"types: '.*' is not LABEL:TYPE with a label of the model: LOC, PER"):
        types_of(["PER", "LOC"], given)


LABELS = [
    # scheme, the tags of words, the entities
    ("BIO", "O B-PER I-PER O", [(1, 3, "PER")]),
    ("BIO, side by side", "B-PER B-PER I-PER", [(0, 1, "PER"), (1, 3, "PER")]),
    ("BIO with I at the beginning", "O I-PER I-PER I-ORG", [(1, 3, "PER"), (3, 4, "ORG")]),
    ("underscores", "B_PER I_PER O", [(0, 2, "PER")]),
    ("IO", "PER PER O ORG", [(0, 2, "PER"), (3, 4, "ORG")]),
    ("BILOU", "B-PER L-PER U-PER U-ORG O", [(0, 2, "PER"), (2, 3, "PER"), (3, 4, "ORG")]),
    ("BILOU without an end", "B-PER I-PER O", [(0, 2, "PER")]),
    ("BIOES", "B-PER E-PER S-PER I-PER", [(0, 2, "PER"), (2, 3, "PER"), (3, 4, "PER")]),
    ("no entity", "O O", []),
    ("a type with a dash", "B-work-of-art I-work-of-art", [(0, 2, "work-of-art")]),
    ("to the end", "O B-PER", [(1, 2, "PER")]),
]


@pytest.mark.parametrize(("scheme", "words", "expected"), LABELS, ids=[each[0] for each in LABELS])
def test_the_spans_of_tags(scheme, words, expected):
    names = ["O", *sorted({*words.split()} - {"O"})]
    known = tags_of(dict(enumerate(names)))
    types = {each.type: each.type for each in known}
    assert spans([known[names.index(word)] for word in words.split()], types) == [Entity(*each) for each in expected]


def test_a_type_that_is_left_out():
    assert spans([Tag(True, False, "PER"), Tag(True, False, "MISC")], {"PER": "PERSON", "MISC": ""}) == [
        Entity(0, 1, "PERSON")
    ]


@pytest.mark.parametrize("labels", ["NN VB DT", "LABEL_0 LABEL_1", "O LABEL_1", ""])
def test_labels_of_other_classifiers_are_refused(labels):
    with pytest.raises(ValueError, match="its labels are not those of entities"):
        tags_of(dict(enumerate(labels.split())))
