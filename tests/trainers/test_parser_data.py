from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainers.parser.data import Example, example_of, read_soft_labels, with_hyphens_merged, write_soft_labels
from transforms.parsing.interface import Constituent
from transforms.parsing.treebank import sentences_of


def example(tree: str) -> Example:
    (sentence,) = sentences_of([tree])
    return example_of(sentence, 0)


@pytest.mark.parametrize(
    ("tree", "merged"),
    [
        (
            "(NP (ADJP (NN adult) (HYPH -) (VBN learned)) (NN language))",
            "(NP (VBN adult-learned) (NN language))",
        ),
        (  # two hyphens, one word
            "(NP (ADJP (NN state) (HYPH -) (IN of) (HYPH -) (NN art)) (NN thing))",
            "(NP (NN state-of-art) (NN thing))",
        ),
        (  # the word is a whole phrase, which is removed, and the bounds of other phrases move
            "(S (NP (NN long) (HYPH -) (NN term)) (VP (VBZ is)))",
            "(S (NN long-term) (VP (VBZ is)))",
        ),
        (  # a phrase ends within the word
            "(NP (NP (DT the) (NN pre)) (HYPH -) (NN war))",
            "(NP (NP (DT the) (NN pre)) (HYPH -) (NN war))",
        ),
        (  # hanging
            "(NP (JJ pre) (HYPH -) (CC and) (JJ postwar))",
            "(NP (JJ pre) (HYPH -) (CC and) (JJ postwar))",
        ),
        ("(NP (JJ pre) (HYPH -) (, ,) (JJ late))", "(NP (JJ pre) (HYPH -) (, ,) (JJ late))"),
        ("(NP (NN one))", "(NP (NN one))"),
    ],
)
def test_hyphenated_words_become_one_token(tree: str, merged: str) -> None:
    assert with_hyphens_merged(example(tree)) == example(merged)


def test_targets_are_dense_and_leave_unknown_labels_and_tags_out() -> None:
    pytest.importorskip("torch")
    from trainers.parser.fit import Vocabulary, targets_of

    sentence = example("(NP (NN a) (FRAG (XX b)))")._replace(probabilities=[0.5, 1.0])
    targets = targets_of([sentence], Vocabulary(("NP", "VP"), ("NN",)), places=4)
    assert targets.tags.tolist() == [[0, -100, -100]]
    found = {index: float(value) for index, value in np.ndenumerate(targets.spans.numpy()) if value}
    assert found == {(0, 0, 0, 2): 0.5}


def test_soft_labels_come_back_as_they_were_written(tmp_path: Path) -> None:
    sentences = [
        Example(["a", "b"], ["DT", "NN"], [Constituent("NP", 0, 2), Constituent("VP", 1, 2)], [0.75, 0.125]),
        Example(["c"], ["UH"], [], []),
    ]
    assert write_soft_labels(tmp_path / "soft.parquet", iter([sentences[:1], sentences[1:]])) == 3
    assert list(read_soft_labels(tmp_path / "soft.parquet")) == sentences
