from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.parsing.interface import Constituent
from transforms.parsing.treebank import (
    TreebankError,
    TreebankSentence,
    bare_label,
    read_treebank,
    read_trees,
    sentences_of,
    unescape,
)


def spans(*texts: str) -> list[Constituent]:
    return [Constituent(label, int(start), int(end)) for label, start, end in (text.split() for text in texts)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "(ROOT (S (NP-SBJ-1 (PRP It)) (VP (VBZ works)) (. .)))",
            TreebankSentence(["It", "works", "."], ["PRP", "VBZ", "."], spans("S 0 3", "NP 0 1", "VP 1 2")),
        ),
        (  # an empty root label, and the phrase that its trace leaves empty
            "( (VP (VB Go) (NP=2 (-NONE- *)) (PP|ADVP (IN on))) )",
            TreebankSentence(["Go", "on"], ["VB", "IN"], spans("VP 0 2", "PP 1 2")),
        ),
        (
            "((NP (-LRB- [) (CD 1\\/2) (-RRB- -RRB-)))",
            TreebankSentence(["[", "1/2", ")"], ["-LRB-", "CD", "-RRB-"], spans("NP 0 3")),
        ),
        (  # a unary chain, the outermost first; the same span twice is one
            "(TOP (NP (NP (QP (CD 3) (CD 4)))))",
            TreebankSentence(["3", "4"], ["CD", "CD"], spans("NP 0 2", "QP 0 2")),
        ),
        (  # by start, longest first
            "(S (NP (NP (DT a)) (PP (IN of) (NP (NN b)))) (VP (VB c)))",
            TreebankSentence(
                ["a", "of", "b", "c"],
                ["DT", "IN", "NN", "VB"],
                spans("S 0 4", "NP 0 3", "NP 0 1", "PP 1 3", "NP 2 3", "VP 3 4"),
            ),
        ),
    ],
)
def test_reads(text: str, expected: TreebankSentence) -> None:
    assert list(sentences_of([text])) == [expected]


def test_trees_over_many_lines_and_many_trees_on_a_line() -> None:
    lines = ["(S\n", "  (NP (NN a))\n", "\n", "  (VP (VB b))) (NP (NN c)) (NP (-NONE- *T*-1))\n"]
    assert [sentence.words for sentence in sentences_of(lines)] == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN a))\n(S (NP (NN b))", "gold.ptb:2: 1 ')' are missing from the tree that begins here"),
        ("\n(S (NN a)))", "gold.ptb:2: ')' stands outside a tree; a tree begins with '('"),
        ("word (S (NN a))", "gold.ptb:1: 'word' stands outside a tree; a tree begins with '('"),
        ("(S\n(NP a b))", "gold.ptb:2: two words, 'a' and 'b', under 'NP'"),
        ("(S (NP))", "gold.ptb:1: the node 'NP' is empty; expected (TAG word) or (LABEL (...))"),
        (
            "(S a (NN b))",
            "gold.ptb:1: the node 'S' holds the word 'a' and phrases; expected (TAG word) or (LABEL (...))",
        ),
        ("()", "gold.ptb:1: the node '' is empty; expected (TAG word) or (LABEL (...))"),
    ],
)
def test_faults_name_file_and_line(text: str, message: str) -> None:
    with pytest.raises(TreebankError) as fault:
        list(sentences_of(text.split("\n"), name="gold.ptb"))
    assert str(fault.value) == message


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "gold.ptb"
    path.write_bytes(b"\xef\xbb\xbf(NN a)\n(NN \xff)\n")
    with pytest.raises(TreebankError, match=r"gold\.ptb:2: not UTF-8 at byte 4 of the line"):
        list(read_treebank(path))


@pytest.mark.parametrize(
    ("label", "bare"), [("NP-SBJ-1", "NP"), ("NP=2", "NP"), ("-LRB-", "-LRB-"), ("ADVP|PRT", "ADVP"), ("PRP$", "PRP$")]
)
def test_bare_label(label: str, bare: str) -> None:
    assert bare_label(label) == bare


def test_unescape() -> None:
    assert [unescape(word) for word in ("-LRB-", "-rrb-", r"and\/or", "b.-LSB-")] == ["(", "-rrb-", "and/or", "b.["]


trees = st.recursive(
    st.tuples(st.sampled_from(["NN", "-LRB-", "-NONE-"]), st.text("ab[", min_size=1, max_size=3)),
    lambda below: st.tuples(st.sampled_from(["NP-SBJ", "VP", "S"]), st.lists(below, min_size=1, max_size=3)),
    max_leaves=12,
)


def brackets(tree: tuple) -> str:
    label, below = tree
    return f"({label} {below if isinstance(below, str) else ' '.join(map(brackets, below))})"


def leaves(tree: tuple) -> list[str]:
    label, below = tree
    if isinstance(below, str):
        return [] if label == "-NONE-" else [below]
    return [word for each in below for word in leaves(each)]


@given(trees)
def test_any_tree_gives_its_words_and_nested_spans(tree: tuple) -> None:
    words = leaves(tree)
    sentences = list(sentences_of([brackets(tree)]))
    assert [sentence.words for sentence in sentences] == ([words] if words else [])
    for sentence in sentences:
        found = sentence.constituents
        assert len(set(found)) == len(found)
        assert found == sorted(found, key=lambda span: (span.start_token, -span.end_token))
        assert all(0 <= start < end <= len(words) for _, start, end in found)
        assert not any(a < c < b < d for _, a, b in found for _, c, d in found)


def test_real_treebanks(test_data: Path) -> None:
    gum = list(read_treebank(test_data / "treebanks" / "gum" / "dev.ptb"))
    assert (len(gum), sum(len(sentence.words) for sentence in gum)) == (693, 16_241)
    craft = list(read_treebank(test_data / "treebanks" / "craft" / "dev.ptb"))
    assert (len(craft), sum(len(sentence.words) for sentence in craft)) == (2780, 67_652)


def test_a_faulty_tree_is_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "bank.ptb"
    path.write_text("(NP (NN one))\n(NP (NN two words))\n(S\n  (VP (VB Go)\n  (. .)))\n((NP (NN last)\n(NP (NN end))\n")
    faults: list[TreebankError] = []
    assert [sentence.words for sentence in read_trees(path, faults)] == [["one"], ["Go", "."], ["end"]]
    assert [str(fault).removeprefix(f"{tmp_path}/") for fault in faults] == [
        "bank.ptb:2: two words, 'two' and 'words', under 'NN'",
        "bank.ptb:6: 2 ')' are missing from the tree that begins here",
    ]


def test_a_real_treebank_with_faults(test_data: Path, tmp_path: Path) -> None:
    faults: list[TreebankError] = []
    path = tmp_path / "craft.ptb"
    lines = (test_data / "treebanks" / "craft" / "train.ptb").read_text().splitlines(keepends=True)
    path.write_text("".join(lines[16_000:]))
    craft = list(read_trees(path, faults))
    assert (len(craft), [str(fault).rsplit(":", 2)[1] for fault in faults]) == (
        2_947,
        ["1490", "1495", "1506", "1609"],
    )
