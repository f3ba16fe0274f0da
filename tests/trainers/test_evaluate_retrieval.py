"""The nearest of many names, and the tasks that look for them: literal files, literal vectors, literal scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal_models import Literal
from properties import examples
from written import document, phrase, write_dataset

from schemas.errors import UserError
from schemas.kinds.documents import DOCUMENTS
from schemas.kinds.phrases import PHRASES
from trainers.evaluation import nearest as module
from trainers.evaluation.files import lines_of
from trainers.evaluation.nearest import nearest
from trainers.evaluation.registry import all_tasks
from trainers.evaluation.task import Outcome, Setting
from trainers.evaluation.tasks.autofj import read_table
from trainers.evaluation.vectors import encoded, products, unit


def run(task: str, data: Path, model: Literal, files: dict[str, str]) -> tuple[dict[str, float], Outcome]:
    """The scores of a task that reads these files, and its outcome."""
    for name, text in files.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(text, encoding="utf-8", newline="")
    found = all_tasks()[task]
    outcome = found.run(model, Setting(data, [0]))
    return {each.name: round(each.score(outcome.items[0]) * each.scale, 2) for each in found.measures}, outcome


# ---- Vectors and their nearest


def test_equal_texts_are_encoded_once():
    model = Literal({"a": [1, 0], "b": [0, 1]})
    assert encoded(model, ["a", "b", "a"]).tolist() == [[1, 0], [0, 1], [1, 0]]
    assert model.asked == ["a", "b"]


def test_unit():
    found = unit(np.array([[3, 4], [0, 0], [1e-20, 0], [1e20, 0]], np.float32))
    assert found.dtype == np.float32
    assert found == pytest.approx(np.array([[0.6, 0.8], [0, 0], [1, 0], [1, 0]]))


def brute_force(queries: np.ndarray, names: np.ndarray, top: int) -> list[list[int]]:
    rows = [[sum(float(x) * float(y) for x, y in zip(query, name, strict=True)) for name in names] for query in queries]
    return [sorted(range(len(names)), key=lambda place, row=row: (-row[place], place))[:top] for row in rows]


def vectors(most: int) -> st.SearchStrategy[np.ndarray]:
    """Vectors of few values, so that many products are equal, or are not by very little."""
    value = st.sampled_from([0.0, 1.0, -1.0, 2.0, 1 + 2.0**-20, 1 - 2.0**-22])
    rows = st.lists(st.lists(value, min_size=3, max_size=3), min_size=1, max_size=most)
    return rows.map(lambda found: np.array(found, np.float32))


@examples(80)
@given(vectors(7), vectors(40), st.integers(0, 12), st.integers(1, 9), st.booleans())
def test_nearest_is_brute_force(queries, names, top, block, faiss):
    """For any blocks, with and without faiss; equal products are in the order of the names."""
    if faiss:
        pytest.importorskip("faiss")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "QUERIES", 3)
        patch.setattr(module, "NAMES", block)
        patch.setattr(module, "SPARE", 2)
        assert nearest(queries, names, top, faiss=faiss).tolist() == brute_force(queries, names, top)


@pytest.mark.parametrize("faiss", [False, True])
def test_nearest_of_many(faiss):
    """Single precision alone puts names in another order: they differ by less than it can tell."""
    if faiss:
        pytest.importorskip("faiss")
    generator = np.random.RandomState(0)
    names = unit(np.repeat(generator.normal(size=(40, 64)), 50, axis=0) + 1e-7 * generator.normal(size=(2_000, 64)))
    queries = unit(generator.normal(size=(20, 64)))
    exact = np.argsort(-products(queries[:, None], names[None]), axis=1, kind="stable")[:, :10]
    assert (np.argsort(-(queries @ names.T), axis=1, kind="stable")[:, :10] != exact).any()
    assert (nearest(queries, names, 10, faiss=faiss) == exact).all()


# ---- Entity retrieval

MENTIONS = "J. Smith\tJohn Smith\nSmith\tJohn Smith\nParis, France\tParis\nKB-1\tX  \n"
NAMED = {
    "J. Smith": [4, 1, 0], "Smith": [3, 4, 0], "Paris, France": [0, 1, 0], "KB-1": [1, 1, 9], "John Smith": [1, 0, 0],
    "Paris": [0, 3, 0], "X": [0, 0, 1], "JOHN SMITH": [2, 0, 0], "Y": [0, 0, 1],
}  # fmt: skip


@pytest.mark.parametrize(
    ("dictionary", "right", "chosen", "remarks"),
    [
        (
            None,
            [1, 0, 1, 1],
            ["John Smith", "Paris", "Paris", "X"],
            ["among the 3 names of the mentions, not 572,000 (yago_kb.txt)"],
        ),
        (  # a name twice, once with spaces around it
            "Paris\nX\nJohn Smith\n Paris\t\nX\n",
            [1, 0, 1, 1],
            ["John Smith", "Paris", "Paris", "X"],
            ["a dictionary of 3 names, not 572,000"],
        ),
        (  # equal cosines: the first; titles are compared as they are written
            "Paris\nY\nX\nJOHN SMITH\r\nJohn Smith\n",
            [0, 0, 1, 0],
            ["JOHN SMITH", "Paris", "Paris", "Y"],
            ["a dictionary of 5 names, not 572,000"],
        ),
    ],
)
def test_entity_retrieval(tmp_path, dictionary, right, chosen, remarks):
    files = {"yago_er/yago_test_samples.txt": MENTIONS} | ({"yago_er/yago_kb.txt": dictionary} if dictionary else {})
    scores, outcome = run("yago", tmp_path, Literal(NAMED), files)
    items = outcome.items[0]
    assert (items["right"].tolist(), items["chosen"].tolist()) == (right, chosen)
    assert items["item"][3] == "KB-1 | X"
    assert scores == {"accuracy": 100 * sum(right) / 4}
    assert outcome.remarks == ["4 of 10,000 mentions", *remarks]


def test_a_mention_whose_name_is_not_in_the_dictionary_is_wrong_and_counted(tmp_path):
    files = {"umls_er/umls_test_samples.txt": MENTIONS, "umls_er/umls_kb.txt": "Paris\nX\n"}
    scores, outcome = run("umls", tmp_path, Literal(NAMED), files)
    assert scores == {"accuracy": 50.0}
    assert outcome.read == {"mentions": 4, "names": 2, "mentions without their name": 2}


def test_one_vector_for_all_texts_finds_the_first_name_only(tmp_path):
    """The released code never counts a mistake: any model would have 100 per cent."""
    scores, _ = run("yago", tmp_path, Literal([1, 1]), {"yago_er/yago_test_samples.txt": MENTIONS})
    assert scores == {"accuracy": 50.0}


# ---- AutoFJ

LEFT = 'id,title\n0,"Smith, John"\n1,Anna ""A"" Lee\n2,"The ""Rex"""\n'.replace('Anna ""A"" Lee', '"Anna ""A"" Lee"')
RIGHT = "id,title\n0,J. Smith\n1,A. Lee\n2,nobody\n3,Rex\n"
TRUE = 'id_l,title_l,id_r,title_r\n0,"Smith, John",0,J. Smith\n1,"Anna ""A"" Lee",1,A. Lee\n2,"The ""Rex""",3,Rex\n'
JOINED = {
    "Smith, John": [1, 0],
    'Anna "A" Lee': [0, 1],
    'The "Rex"': [1, 1],
    "J. Smith": [1, 0],
    "A. Lee": [0, 1],
    "Rex": [2, 9],
}


def files_of(name: str, left: str = LEFT, right: str = RIGHT, true: str = TRUE) -> dict[str, str]:
    return {f"autofj/{name}/{part}.csv": text for part, text in (("left", left), ("right", right), ("gt", true))}


def test_autofj(tmp_path):
    """The mean of the tables' accuracies, 2/3 and 1; a row without a match, as Reptile has them, is not asked."""
    small = files_of("B", "id,title\n7,J. Smith\n", "id,title\n5,Smith, John\n".replace("Smith, John", "A. Lee"),
                  "id_l,title_l,id_r,title_r\n7,J. Smith,5,A. Lee\n")  # fmt: skip
    model = Literal(JOINED)
    scores, outcome = run("autofj", tmp_path, model, files_of("A") | small)
    items = outcome.items[0]
    assert items["item"].tolist() == ["A 0: J. Smith", "A 1: A. Lee", "A 3: Rex", "B 5: A. Lee"]
    assert items["chosen"].tolist() == ["Smith, John", 'Anna "A" Lee', 'Anna "A" Lee', "J. Smith"]
    assert items["right"].tolist() == [1, 1, 0, 1]
    assert scores == {"accuracy": 83.33}
    assert outcome.read == {"tables": 2, "left titles": 4, "right titles": 5, "right titles with a match": 4}
    assert outcome.remarks == ["2 of 50 tables"]
    assert "nobody" not in model.asked


def test_tables_count_alike_when_they_are_drawn(tmp_path):
    """A draw of a bootstrap that has A twice and B once: (2 x 2/3 + 1) / 3."""
    one = "id,title\n7,J. Smith\n"
    small = files_of("B", one, one, "id_l,title_l,id_r,title_r\n7,J. Smith,7,J. Smith\n")
    _, outcome = run("autofj", tmp_path, Literal(JOINED), files_of("A") | small)
    (measure,) = all_tasks()["autofj"].measures
    assert measure.group == "table"
    assert measure.of(outcome.items[0], np.array([[2.0, 2, 2, 1]]))[0] == pytest.approx((2 * 2 / 3 + 1) / 3)


def test_titles_are_compared(tmp_path):
    """A title that is there twice is right in both rows, and a right row may have two matches."""
    left = "id,title\n0,Rex\n1,Rex\n2,A. Lee\n"
    right = "id,title\n0,J. Smith\n1,J. Smith\n"
    true = "id_l,title_l,id_r,title_r\n1,Rex,0,J. Smith\n2,A. Lee,0,J. Smith\n2,A. Lee,1,J. Smith\n"
    model = Literal({"Rex": [1, 0], "A. Lee": [0, 1], "J. Smith": [1, 0]})
    _, outcome = run("autofj", tmp_path, model, files_of("A", left, right, true))
    assert outcome.items[0]["right"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("part", "change", "error"),
    [
        ("left", ("id,title", "title,id"), "left.csv: line 1 is no line with the names of columns, id,title"),
        ("left", ('"Smith, John"', "Smith, John"), "left.csv: line 2 is no row of id, title"),
        ("left", ('"Smith, John"', ""), "left.csv: line 2 is no row of id, title"),
        ("left", ('""Rex"""', '"Rex'), "left.csv: line 4 is no row of id, title"),
        ("right", ("1,A.", "0,A."), "right.csv: line 3 is no row of its own: the id 0 is there twice"),
        ("gt", (",0,J. Smith", ",0,J. Smyth"), "gt.csv: line 2 is no match of a row of left.csv and one of right.csv"),
        ("gt", (",3,Rex", ",4,Rex"), "gt.csv: line 4 is no match of a row of left.csv and one of right.csv"),
        ("gt", (TRUE[TRUE.index("\n") + 1 :], ""), "gt.csv: line 2 is no match"),
    ],
)
def test_autofj_malformed(tmp_path, part, change, error):
    files = files_of("A")
    assert change[0] in files[f"autofj/A/{part}.csv"]
    files[f"autofj/A/{part}.csv"] = files[f"autofj/A/{part}.csv"].replace(*change, 1)
    with pytest.raises(UserError, match=error):
        run("autofj", tmp_path, Literal(JOINED), files)


def test_retrieval_malformed(tmp_path):
    bad = {"yago_er/yago_test_samples.txt": "a\tb\na b\n"}
    with pytest.raises(UserError, match=r"yago_test_samples.txt: line 2 is no mention and the name that it means"):
        run("yago", tmp_path, Literal([1]), bad)
    bad = {"yago_er/yago_test_samples.txt": "a\tb\n", "yago_er/yago_kb.txt": "a\n\nb\n"}
    with pytest.raises(UserError, match=r"yago_kb.txt: line 2 is no name"):
        run("yago", tmp_path, Literal([1]), bad)
    with pytest.raises(UserError, match=r"autofj: has no folders with gt.csv"):
        run("autofj", tmp_path, Literal([1]), {})


# ---- Diversity

VOCABULARY = ["the white whale", "a whale", "great white shark", "The White Whale", "boat"]
NEAR = {
    "The white Whale": [1, 0],
    "the white whale": [1, 0],
    "a whale": [9, 1],
    "great white shark": [3, 1],
    "boat": [0, 1],
    "ship": [1, 9],
}


def test_diversity(tmp_path):
    """The query itself, in any case, is none of its neighbours; a spelling counts once."""
    rows = [phrase(each, frequency=9 - place) for place, each in enumerate(VOCABULARY)]
    write_dataset(tmp_path / "diversity" / "vocabulary", PHRASES, [[rows]])
    queries = {"diversity/queries.txt": "The white Whale\nship\nSHIP\n"}
    scores, outcome = run("diversity", tmp_path, Literal(NEAR), queries)
    items = outcome.items[0]
    assert items["item"].tolist() == ["The white Whale", "ship"]
    # a whale: 1 of 2 new; great white shark: 2 of 3; boat: 1 of 1
    assert items["new_tokens"] == pytest.approx([100 * (1 / 2 + 2 / 3 + 1) / 3, 100])
    assert scores["new tokens"] == round(float(items["new_tokens"].mean()), 2)
    assert outcome.read == {"queries": 2, "phrases": 4}
    assert outcome.remarks == ["2 queries, 4 phrases; those of the paper are not released"]


def test_diversity_reads_phrases(tmp_path):
    write_dataset(tmp_path / "diversity" / "vocabulary", DOCUMENTS, [[[document(1)]]])
    with pytest.raises(
        UserError, match="vocabulary: has Document: give phrases, as phrasemill count-phrases writes them"
    ):
        run("diversity", tmp_path, Literal([1]), {"diversity/queries.txt": "a\n"})


# ---- The real files


def test_real_files(test_data):
    """What is read is what the files and the list of PEARL's tables say."""
    data = test_data / "eval"
    texts = {text for _, line in lines_of(data / "yago_er" / "yago_test_samples.txt") for text in line.split("\t")}
    generator = np.random.RandomState(0)
    model = Literal(dict(zip(sorted(texts), generator.normal(size=(len(texts), 4)), strict=True)))
    scores, outcome = run("yago", data, model, {})
    assert outcome.read == {"mentions": 3_020, "names": 3_020, "mentions without their name": 0}
    assert outcome.remarks[0] == "3,020 of 10,000 mentions"
    assert scores["accuracy"] < 1.0  # chance: one in 3,020
    listed = [line.split("|")[1:5] for line in (data / "autofj" / "autofj.md").read_text("utf-8").splitlines()[2:]]
    sizes = {name.strip(): (int(left), int(right), int(matches)) for name, left, right, matches in listed}
    for name in ("Reptile", "ShoppingMall", "Galaxy", "Enzyme"):
        table = read_table(data / "autofj" / name)
        assert (len(table.left), table.rights, len(table.asked)) == sizes[name]
