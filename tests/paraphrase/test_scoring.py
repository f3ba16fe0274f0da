"""Which candidates are left, why others are not, and which is the best."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from transforms.augmentation.wordnet import WordNet
from transforms.paraphrase.constraints import kept_words
from transforms.paraphrase.filters import Lexicon, numbers
from transforms.paraphrase.options import NO_FILTERS, ParaphraseFilters
from transforms.paraphrase.scoring import Judge, Judged, Original, best, score

CHEAP = replace(
    ParaphraseFilters(),
    min_similarity=-1,
    min_content_similarity=-1,
    max_similarity=1,
    max_loss=math.inf,
    score="diversity",
)
WORDS = dict.fromkeys("old house aged home building of the united arab emirates joined arabian lands".split(), 3)

TABLE = [
    ("old house", "NP", "aged home", ""),
    ("old house", "NP", "...", "empty"),
    ("old house", "NP", "the old house", "near_copy"),
    ("soon", "ADVP", "in a very short time", "length"),
    ("old house", "NP", "of it", "no_content"),
    ("old house", "NP", "aged home,", "punctuation"),
    ("old house", "NP", "aged home of the aged arabian", "length"),
    ("old house", "NP", "aged zqxhome", "unknown_word"),
    ("11th century", "NP", "eleventh age", ""),
    ("11th century", "NP", "twelfth age", "number"),
    ("united arab emirates", "NP", "joined arabian lands", "name"),
    ("likely outcome", "NP", "unlikely result", "denial"),
    ("hot house", "NP", "cold home", "denial"),
    ("their debates", "NP", "their argument", "other_form"),
    ("of the building", "PP", "of hot", "other_form"),
    ("an explanation", "NP", "an explain", "other_form"),
    ("old house", "NP", "an home", "other_form"),
    ("their debates", "NP", "their argumentes", "unknown_word"),
    ("the old regime", "NP", "former regimen", "near_word"),
    ("few months", "NP", "few years", "contrast"),
    ("not hot", "ADJP", "cold", ""),
    ("couldn't come", "VP", "could arrive", "denial"),
    ("went home", "VP", "goes back", "other_form"),
    ("larger", "ADJP", "big", "other_form"),
]


@pytest.mark.parametrize(("phrase", "label", "candidate", "reason"), TABLE)
def test_reasons(phrase: str, label: str, candidate: str, reason: str, database: WordNet) -> None:
    names = (phrase,) if phrase.startswith("united") else ()
    judge = Judge(CHEAP, lexicon=Lexicon(WORDS), wordnet=database)
    originals = [Original(phrase, label, names)]
    assert judge(originals, np.zeros(1, np.int64), [candidate]).reason == [reason]
    off = Judge(NO_FILTERS, lexicon=Lexicon({}))(originals, np.zeros(1, np.int64), [candidate])
    assert off.reason == ["empty" if reason == "empty" else ""]


def test_a_negative_that_says_what_the_positive_does(database: WordNet) -> None:
    judge = Judge(CHEAP, lexicon=Lexicon({}), wordnet=database)
    originals = [
        Original("dreadful danger", "NP", said="terrible danger dreadful risk"),
        Original("dreadful danger", "NP"),
    ]
    found = judge(originals, np.array([0, 0, 1]), ["terrible risk", "awful risk", "terrible risk"])
    assert found.reason == ["repeated", "", ""]


def test_the_best_of_each_phrase(database: WordNet) -> None:
    judge = Judge(CHEAP, lexicon=Lexicon(WORDS), wordnet=database)
    phrases = [Original("old house", "NP"), Original("old home", "NP"), Original("house", "NP")]
    owner = np.array([0, 0, 0, 1, 2])
    texts = ["old hound", "aged home", "Aged home!", "...", "home"]
    judged = judge(phrases, owner, texts)
    assert judged.reason == ["", "", "duplicate", "empty", ""]
    assert best(owner, pa.array(texts), judged, 3).tolist() == [1, -1, 4]


def test_a_judged_table(database: WordNet) -> None:
    """Candidates made of WordNet's synonyms, read and judged without any measure: what the text alone tells."""
    with (Path(__file__).parent.parent / "data" / "judged_paraphrases.tsv").open() as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    words = dict.fromkeys((word for row in rows for word in row["phrase"].split()), 1)
    judge = Judge(CHEAP, lexicon=Lexicon(words), wordnet=database)
    phrases = [
        Original(row["phrase"], row["label"], tuple(kept_words(row["phrase"], surface=row["surface"]))) for row in rows
    ]
    reasons = judge(phrases, np.arange(len(rows)), [row["candidate"] for row in rows]).reason
    refused = Counter(row["acceptable"] for row, reason in zip(rows, reasons, strict=True) if reason)
    assert Counter(row["acceptable"] for row in rows) == {"0": 258, "1": 79}
    assert refused["0"] >= 45
    assert refused["1"] <= 10
    assert {"name", "near_word", "contrast", "other_form", "near_copy"} < set(reasons)


def test_scores() -> None:
    """The weighted score grows with the cosines; what is likelier than the phrase gains nothing."""
    table = np.array([[0, 0, 0.90, 0.85, -5], [0, 0, 0.95, 0.85, -5], [0, 0, 0.95, 0.9, -5], [0, 0, 0.95, 0.9, 0]])
    table = np.vstack([table, [0, 0, 0.95, 0.9, 9], [0, 0, 0.95, 0.9, np.nan]]).astype(np.float32)
    judged = Judged([""] * 6, *table.T, np.full(6, np.nan), np.zeros(6, np.float32))
    found = score(judged, "weighted")
    assert (np.diff(found[:4]) > 0).all()
    assert found[3] == found[4] == found[5]
    assert score(judged, "similarity").tolist() == table[:, 2].tolist()
    assert score(judged, "likelihood")[4] == 9


def test_the_score_of_our_own_candidates() -> None:
    """It grows with the log probability, down to a limit, and the likeness of the words of content."""
    table = np.array([[0.85, -1], [0.9, -1], [0.9, -0.5], [0.9, -12], [0.9, -30]], np.float32)
    nothing = np.zeros(5, np.float32)
    judged = Judged([""] * 5, nothing, nothing, nothing, table[:, 0], nothing, table[:, 1], nothing)
    assert score(judged, "weighted").tolist() == pytest.approx([-0.33, 0.89, 1.225, -6.48, -6.48], abs=0.01)


class Letters:
    """An encoder whose vectors are of the letters of a text: for what is done with cosines, not for their values."""

    dimension = 26

    def encode(self, texts: Sequence[str], note: Callable[[int], None] = lambda done: None) -> np.ndarray:
        note(len(texts))
        return np.array([[text.count(chr(97 + each)) for each in range(26)] for text in texts], np.float32)


def test_bounds_of_cosines_and_scores() -> None:
    rules = replace(NO_FILTERS, min_similarity=0.45, max_similarity=0.95, score="similarity", min_score=0.75)
    rules = replace(rules, min_content_similarity=0.6, max_loss=3.0)
    likely = {"the abc": -3.0, "the abd": -5.0, "abz of the": -9.0}
    judge = Judge(
        rules,
        lexicon=Lexicon({}),
        encoder=Letters(),  # type: ignore[arg-type]
        likelihood=lambda texts: np.array([likely.get(each, -3.0) for each in texts]),
    )
    texts = ["the abd", "xyz", "the bac", "the xyz", "abz of the", "abd this here"]
    judged = judge([Original("the abc")], np.zeros(6, np.int64), texts)
    assert judged.reason == ["", "drift", "copy", "content_drift", "not_fluent", "low_score"]
    assert judged.fluency[0] == -2
    assert best(np.zeros(6, np.int64), pa.array(texts), judged, 1).tolist() == [0]


def test_numbers() -> None:
    table = {
        "twenty-one men": (21,),
        "1,300 of 2.5": (2.5, 1300),
        "three million and two": (3000002,),
        "nineteen eighty four": (19, 84),
        "world war ii": (2,),
        "one of the first": (),
        "the 1990s": (1990,),
        "one hundred": (100,),
    }
    assert {text: numbers(text) for text in table} == table
