from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.parsing.interface import Constituent, ParsedSentence, RefusedSentence
from transforms.parsing.tokens import TokenisedSentence
from transforms.parsing.trees import (
    Refusal,
    batches_by_length,
    constituents_of,
    each_or_alone,
    parsed_texts,
    tree_of,
    unplaced,
)


@pytest.mark.parametrize(
    ("brackets", "expected"),
    [
        ("(ROOT (NP (NN dog)))", [("NP", 0, 1)]),
        (
            "(ROOT (S (NP-SBJ-1 (DT The) (NN dog)) (VP (VBZ sleeps)) (. .)))",
            [("S", 0, 4), ("NP", 0, 2), ("VP", 2, 3)],
        ),
        ("(TOP (S (VP (VB Go))))", [("S", 0, 1), ("VP", 0, 1)]),
        ("(ROOT (NP (NP (NN dog))))", [("NP", 0, 1)]),
        ("(X (NN a) (NN b))", [("X", 0, 2)]),
        ("(ROOT (-LRB- -LRB-))", []),
    ],
)
def test_constituents_of_a_tree(brackets, expected):
    from nltk import Tree

    tree = Tree.fromstring(brackets)
    found = constituents_of(
        tree,
        label=lambda node: node.label(),
        children=lambda node: () if isinstance(node, str) else list(node),
    )
    assert found == [Constituent(*each) for each in expected]


def test_a_tree_deeper_than_the_stack():
    tree = ["dog"]
    for _ in range(5000):
        tree = [tree]
    assert constituents_of(tree, label=lambda _: "NP", children=lambda node: () if node == "dog" else node) == [
        Constituent("NP", 0, 1)
    ]


@given(
    st.lists(st.integers(0, 300)),
    st.integers(1, 2000),
    st.integers(1, 100_000),
)
def test_batches_hold_every_item_once_and_keep_to_the_caps(lengths, max_padded, max_cells):
    batches = list(batches_by_length(lengths, max_padded=max_padded, max_cells=max_cells))
    order = [index for batch in batches for index in batch]
    assert order == sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    for batch in batches:
        longest = lengths[batch[0]]
        assert len(batch) == 1 or (len(batch) * longest <= max_padded and len(batch) * longest**2 <= max_cells)


@given(st.lists(st.booleans(), min_size=1))
def test_only_what_fails_alone_is_refused(good):
    def parse(batch):
        if not all(good[index] for index in batch):
            raise KeyError("bad")
        return [[index] for index in batch]

    expected = [[index] if fine else Refusal("parser_error", "KeyError: 'bad'") for index, fine in enumerate(good)]
    assert list(each_or_alone(parse, list(range(len(good))))) == list(enumerate(expected))


def test_a_batch_that_comes_back_short_is_parsed_one_by_one():
    assert list(each_or_alone(lambda batch: [[7]] * min(1, len(batch)), [3, 4])) == [(3, [7]), (4, [7])]


def test_parses_are_put_back_in_their_texts():
    def tokenised(start):
        return TokenisedSentence(["a", "b"], ["DT", "NN"], [True, False], [start, start + 2], [start + 1, start + 3])

    refused = RefusedSentence(0, 9, "too_many_tokens")
    span = Constituent("NP", 0, 2)
    parsed = parsed_texts(
        [[tokenised(0), tokenised(4)], [], [refused], [tokenised(1)]],
        lambda sentences: [[span], Refusal("parser_error", "E: x"), []][: len(sentences)],
    )
    assert parsed == [
        [
            ParsedSentence(0, 3, [0, 2], [1, 3], ["DT", "NN"], [span]),
            RefusedSentence(4, 7, "parser_error", "E: x"),
        ],
        [],
        [refused],
        [ParsedSentence(1, 4, [1, 3], [2, 4], ["DT", "NN"], [])],
    ]
    assert unplaced(Refusal("too_many_tokens")) == RefusedSentence(0, 0, "too_many_tokens")
    assert unplaced([span]) == [span]


@pytest.mark.parametrize(
    "brackets",
    [
        "(ROOT (NP (NN dog)))",
        "(ROOT (S (VP (VB Go))))",
        "(ROOT (S (NP (NP (DT The) (NN dog)) (PP (IN of) (NP (NNP Ann)))) (VP (VBZ is)) (. .)) (: -) (NP (NN end)))",
        "(ROOT (UH Oh))",
        "(ROOT )",
    ],
)
def test_a_tree_from_its_constituents(brackets: str) -> None:
    from nltk import Tree

    tree = Tree.fromstring(brackets)
    words, tags = zip(*tree.pos(), strict=True) if tree.leaves() else ((), ())
    spans = constituents_of(
        tree,
        label=lambda node: node if isinstance(node, str) else node.label(),
        children=lambda node: [] if isinstance(node, str) else node,
    )
    assert tree_of(words, tags, spans) == tree
