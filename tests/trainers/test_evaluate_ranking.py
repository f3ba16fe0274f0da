"""Tasks that choose among candidates or correlate similarities: literal files, literal vectors, literal scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal_models import Literal
from properties import examples
from written import write_dataset

from schemas.errors import UserError
from schemas.keys import pair_name, split_of
from schemas.kinds.contrast_pairs import CONTRAST_PAIRS
from schemas.kinds.phrases import PHRASES
from trainers.evaluation.measures import spearman_of
from trainers.evaluation.registry import all_tasks
from trainers.evaluation.task import Outcome, Setting
from trainers.evaluation.tasks.bigrams import SEMEVAL_TRAIN, instances, shared_first, threshold

WORDS = {
    "double star": [4, 0],
    "star double": [0, 2],
    "binary": [1, 1],
    "dual": [2, 9],
    "lumen": [0, 1],
    "neutralism": [0, 1],
    "keratoplasty": [-1, 0],
}
QUESTION = "double star | binary | double | star | dual | lumen | neutralism | keratoplasty\n"
BIRD_HEADER = "pair\tterm1\tterm2\tterm2: unigram or bigram\tsource\trelation\trelatedness score\tpos\n"
INSTANCE = "double\tJJ\nstar\tNN\nbinary\ndouble\nstar\ndual\nlumen\nneutralism\nkeratoplasty\n"


def bird(*pairs: tuple[str, str, float]) -> str:
    rows = (f"({one}, {other})\t{one}\t{other}\tunigram\tsource\tNone\t{score}\tn-n\n" for one, other, score in pairs)
    return BIRD_HEADER + "".join(rows)


def semeval(*pairs: tuple[str, str, int]) -> str:
    return "".join("{}\tJJ\n{}\tNN\n{}\n{}\n".format(*bigram.split(), word, same) for bigram, word, same in pairs)


def run(task: str, data: Path, model: Literal, files: dict[str, str]) -> tuple[dict[str, float], Outcome]:
    """The scores of a task that reads these files, and its outcome."""
    for name, text in files.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(text, encoding="utf-8", newline="")
    found = all_tasks()[task]
    outcome = found.run(model, Setting(data, [0]))
    (items,) = outcome.items
    assert len({*items["item"]}) == len(items["item"])
    return {each.name: round(each.score(items) * each.scale, 2) for each in found.measures}, outcome


# ---- Turney


@pytest.mark.parametrize(
    ("vectors", "by_product", "by_cosine"),
    [
        (WORDS, 0.0, 100.0),  # dual is longer, binary has the nearer direction
        (WORDS | {"dual": [1, 9]}, 0.0, 100.0),  # equal products: none is right
        (WORDS | {"dual": [0, 9]}, 100.0, 100.0),
        (WORDS | {"lumen": [1, 0]}, 0.0, 0.0),
        ([1, 1], 0.0, 0.0),  # one vector for all texts: the released code has 100
        ([0, 0], 0.0, 0.0),
    ],
)
def test_turney(tmp_path, vectors, by_product, by_cosine):
    scores, outcome = run("turney", tmp_path, Literal(vectors), {"turney/turney.txt": QUESTION})
    assert scores == {"accuracy": by_product, "accuracy by cosine": by_cosine}
    assert outcome.read == {"questions": 1}
    assert outcome.remarks == ["1 of 2,180 questions"]
    assert outcome.items[0]["item"].tolist() == ["double star | binary | dual | lumen | neutralism | keratoplasty"]


def test_each_text_is_encoded_once_without_the_words_of_the_bigram(tmp_path):
    model = Literal(WORDS)
    run("turney", tmp_path, model, {"turney/turney.txt": QUESTION})
    assert model.asked == ["double star", "binary", "dual", "lumen", "neutralism", "keratoplasty"]


# ---- BiRD


def test_bird(tmp_path):
    """Cosines 1, 0, -1 and 0.6; whatever the lengths."""
    vectors = {"a b": [2, 0], "c": [5, 0], "d": [0, 1], "e f": [-3, 0], "g": [3, 4]}
    pairs = [("a b", "c", 0.9), ("a b", "d", 0.5), ("a b", "e f", 0.1), ("a b", "g", 0.2)]
    scores, outcome = run("bird", tmp_path, Literal(vectors), {"bird/bird.txt": bird(*pairs)})
    x, y = np.array([1, 0, -1, 0.6]), np.array([0.9, 0.5, 0.1, 0.2])
    assert outcome.items[0]["cosine"] == pytest.approx(x)
    assert scores == {"Pearson": round(100 * np.corrcoef(x, y)[0, 1], 2), "Spearman": 80.0}
    assert outcome.remarks == ["4 of 3,345 pairs"]


def test_a_constant_model_correlates_with_nothing(tmp_path):
    files = {"bird/bird.txt": bird(("a b", "c", 0.9), ("a b", "d", 0.5))}
    assert run("bird", tmp_path, Literal([1, 1]), files)[0] == {"Pearson": 0.0, "Spearman": 0.0}


@examples(30)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_spearman(rows):
    """Pearson's of the ranks, counted one by one."""
    columns = dict(zip(("one", "other"), (np.array(each, float) for each in zip(*rows, strict=True)), strict=True))
    ranks = [[(each < x).sum() + ((each == x).sum() + 1) / 2 for x in each] for each in columns.values()]
    known = 0.0 if any(len({*each}) == 1 for each in ranks) else np.corrcoef(*ranks)[0, 1]
    assert spearman_of("one", "other")(columns, np.ones((1, len(rows))))[0] == pytest.approx(known, abs=1e-12)


# ---- SemEval-2013 task 5(a)


@pytest.mark.parametrize(
    ("similar", "same", "limit"),
    [
        ([1, 2, 3, 4], [0, 0, 1, 1], 2.5),
        ([4, 1, 3, 2], [1, 0, 1, 0], 2.5),
        ([1, 2, 3, 4], [0, 1, 0, 1], 1.5),  # as good as 3.5: the lowest
        ([1, 2], [1, 0], -np.inf),  # all are said to be the same
        ([1, 2], [0, 0], np.inf),
        ([1, 1, 1], [1, 0, 0], np.inf),  # equal ones are not parted
    ],
)
def test_threshold(similar, same, limit):
    assert threshold(np.array(similar, float), np.array(same, bool)) == limit


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=9))
def test_no_other_threshold_is_better(rows):
    similar, same = (np.array(each) for each in zip(*rows, strict=True))

    def right(limit: float) -> int:
        return int(((similar >= limit) == same).sum())

    others = {limit: right(limit) for limit in (-np.inf, 0.5, 1.5, 2.5, 3.5, np.inf)}
    assert right(threshold(similar.astype(float), same)) == max(others.values())


SPELLED = {"hot dog": [1, 0], "cold cut": [0, 1], "sausage": [3, 1], "meat": [1, 3], "ice": [-1, -1]}
TRAIN = semeval(("hot dog", "sausage", 1), ("cold cut", "meat", 1), ("hot dog", "meat", 0), ("cold cut", "sausage", 0))


def test_semeval(tmp_path):
    """The threshold of the training set, 2 by the product, is that of the test set."""
    test = semeval(
        ("hot dog", "sausage", 0), ("cold cut", "meat", 1), ("hot dog", "ice", 0), ("cold cut", "hot dog", 0)
    )
    test = test.replace("hot dog\n0", "meat\n0")  # a word
    files = {
        "semeval2013_5a/en.trainSet": TRAIN,
        "semeval2013_5a/en.testSet": test[: -len("cold\tJJ\ncut\tNN\nmeat\n0\n")],
    }
    scores, outcome = run("semeval2013_5a", tmp_path, Literal(SPELLED), files)
    assert outcome.items[0]["right"].tolist() == [0, 1, 1]
    assert scores["accuracy"] == 66.67
    assert not outcome.remarks


def test_semeval_without_its_test_set(tmp_path):
    """Each half has the threshold of the other half, and the remark says so."""
    places = range(12)
    train = semeval(*((f"b{place} c", f"w{place}", place % 2) for place in places))
    vectors = {f"b{place} c": [1] for place in places} | {
        f"w{place}": [10 * (place % 2) + place / 100] for place in places
    }
    scores, outcome = run("semeval2013_5a", tmp_path, Literal(vectors), {"semeval2013_5a/en.trainSet": train})
    assert scores == {"accuracy": 100.0, "accuracy by cosine": 50.0}  # all cosines are 1
    assert outcome.read == {"pairs": 12}
    remark = "en.testSet is not there: 12 pairs of en.trainSet, each half with the threshold of the other half"
    assert outcome.remarks == [remark]
    # Where all of one half are the same and all of the other are not, an own threshold would be right everywhere.
    texts = [(f"b{place} c", f"w{place}") for place in places]
    opposite = semeval(*((*each, split_of(pair_name(*each), shares=(1, 1), seed=0)) for each in texts))
    assert "w0\n0" in opposite
    assert "\n1\n" in opposite
    scores, _ = run("semeval2013_5a", tmp_path, Literal([1]), {"semeval2013_5a/en.trainSet": opposite})
    assert scores["accuracy"] == 0.0


# ---- Turney 2012


@pytest.mark.parametrize(
    ("vectors", "five", "ten", "alone"),
    [
        (WORDS | {"dual": [0, 1]}, 100.0, 100.0, 100.0),
        (WORDS | {"dual": [0, 3]}, 100.0, 0.0, 0.0),  # the reversal with dual
        (WORDS | {"dual": [0, 2]}, 100.0, 50.0, 0.0),  # as large as the bigram with binary
        (WORDS | {"dual": [0, 1], "star double": [4, 0]}, 100.0, 50.0, 0.0),  # both orders are one
        ([1, 1], 0.0, 10.0, 0.0),  # one vector for all texts: chance
    ],
)
def test_turney_2012(tmp_path, vectors, five, ten, alone):
    files = {"turney2012/jair.train": INSTANCE}
    scores, outcome = run("turney2012_5", tmp_path, Literal(vectors), files)
    assert scores["accuracy"] == five
    assert outcome.remarks == ["jair.test is not there: 1 questions of jair.train"]
    scores, _ = run("turney2012_10", tmp_path, Literal(vectors), files)
    assert (scores["accuracy"], scores["accuracy where equal ones are wrong"]) == (ten, alone)


def test_turney_2012_with_its_test_set(tmp_path):
    files = {"turney2012/jair.train": INSTANCE * 2, "turney2012/jair.test": INSTANCE}
    _, outcome = run("turney2012_5", tmp_path, Literal(WORDS), files)
    assert (outcome.read, outcome.remarks) == ({"questions": 1}, [])


def test_shares_of_the_first():
    scores = np.array([[3, 2, 1], [3, 3, 1], [3, 3, 3], [3, 4, 1.0]])
    assert shared_first(scores).tolist() == [1, 1 / 2, 1 / 3, 0]


# ---- PPDB, 1 of 100


CONTRASTS = [("a b", "c", ["d", "e f"]), ("d", "e f", ["a b", "c"]), ("g", "d", ["c", "e f"])]
MEANT = {"a b": [1, 0], "c": [2, 0], "d": [0, 1], "e f": [1, 1], "g": [1, 1]}


@pytest.mark.parametrize(
    ("vectors", "by_product", "by_cosine"),
    [
        (MEANT, [1, 1, 0], [1, 1, 0]),  # g: e f
        (MEANT | {"a b": [1, 3]}, [0, 0, 0], [0, 0, 0]),
        (MEANT | {"e f": [3, 3]}, [0, 1, 0], [1, 1, 0]),
        ([1], [0, 0, 0], [0, 0, 0]),  # one vector for all texts
    ],
)
def test_ppdb_choice(tmp_path, vectors, by_product, by_cosine):
    rows = [dict(zip(CONTRAST_PAIRS.names, row, strict=True)) for row in CONTRASTS]
    write_dataset(tmp_path / "ppdb_choice", CONTRAST_PAIRS, [[rows]], split="test")
    _, outcome = run("ppdb_choice", tmp_path, Literal(vectors), {})
    items = outcome.items[0]
    assert items["right"].tolist() == by_product
    assert items["right_by_cosine"].tolist() == by_cosine
    assert items["item"].tolist() == ["a b | c", "d | e f", "g | d"]
    assert outcome.remarks == [
        "2 contrasts, not 99",
        "3 pairs; the 40,617 of the paper were drawn at random and are not released",
    ]


def test_ppdb_choice_reads_no_other_kind(tmp_path):
    write_dataset(tmp_path / "ppdb_choice", PHRASES, [[[]]])
    with pytest.raises(UserError, match="ppdb_choice: has Phrase: give what phrasemill contrast-pairs writes"):
        run("ppdb_choice", tmp_path, Literal([1]), {})


# ---- Malformed files

GOOD = {
    "turney": ("turney/turney.txt", QUESTION),
    "bird": ("bird/bird.txt", bird(("a b", "c", 0.5))),
    "semeval2013_5a": ("semeval2013_5a/en.trainSet", TRAIN),
    "turney2012_5": ("turney2012/jair.train", INSTANCE),
}


@pytest.mark.parametrize(
    ("task", "change", "error"),
    [
        ("turney", (" | dual", ""), "turney.txt: line 1 is no bigram with seven words"),
        ("turney", ("dual", ""), "turney.txt: line 1 is no bigram with seven words"),
        ("turney", (QUESTION, ""), "turney.txt: is empty; fetch it again"),
        ("bird", ("term2\t", "term\t"), "bird.txt: line 1 is no line with the names of columns, pair, term1, term2"),
        ("bird", ("\tn-n", ""), "bird.txt: line 2 is no pair with its 8 fields"),
        ("bird", ("0.5", "1.5"), r"bird.txt: line 2 is no pair whose relatedness is from 0 to 1 \('1.5'\)"),
        ("bird", ("0.5", "nan"), r"bird.txt: line 2 is no pair whose relatedness is from 0 to 1 \('nan'\)"),
        ("bird", ("0.5", "high"), r"bird.txt: line 2 is no pair whose relatedness is from 0 to 1 \('high'\)"),
        ("semeval2013_5a", ("meat\n0", "meat\n2"), "en.trainSet: line 9 is no first of 4 lines of an instance"),
        ("semeval2013_5a", ("cut\tNN\nmeat", "cut\nmeat"), "en.trainSet: line 5 is no first of 4 lines"),
        ("turney2012_5", ("keratoplasty\n", ""), "jair.train: line 1 is no first of 9 lines of an instance"),
    ],
)
def test_malformed(tmp_path, task, change, error):
    name, text = GOOD[task]
    assert change[0] in text
    with pytest.raises(UserError, match=error):
        run(task, tmp_path, Literal([1]), {name: text.replace(*change, 1)})


def test_vectors_have_to_be_finite(tmp_path):
    with pytest.raises(UserError, match="literal: the vector of 'dual' is not finite"):
        run("turney", tmp_path, Literal(WORDS | {"dual": [0, np.nan]}), {"turney/turney.txt": QUESTION})


# ---- The real files


def test_real_files(test_data):
    data = Setting(test_data / "eval", [0])
    for task, read in (
        ("turney", {"questions": 2_180}),
        ("bird", {"pairs": 1_688}),
        ("turney2012_5", {"questions": 1_500}),
    ):
        assert all_tasks()[task].run(Literal([1, 0]), data).read == read
    assert len(list(instances(data.data / SEMEVAL_TRAIN, 4, last=("0", "1")))) == 11_175
