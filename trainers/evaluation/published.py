"""Published scores, as the papers print them. The only place where they are said, and which task is whose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

Figures = tuple[float | None, ...]


class Source(NamedTuple):
    """A table of a paper.

    paper    whose tasks these are, a key of PAPERS
    where    the table, or another place with its address
    columns  task and measure of each column; tasks without rows belong to the paper, but no figure could be verified
    rows     the figures of each model; None: not given
    """

    paper: str
    where: str
    columns: tuple[tuple[str, str], ...]
    rows: Mapping[str, Figures]


class Published(NamedTuple):
    """A published score."""

    paper: str
    model: str
    task: str
    measure: str
    figure: float
    where: str


PAPERS = {
    "phrase_bert": "Phrase-BERT (Wang, Thompson and Iyyer, EMNLP 2021)",
    "pearl": "PEARL (Chen, Varoquaux and Suchanek, Findings of EACL 2024)",
    "uctopic": "UCTopic (Li, Shang and McAuley, ACL 2022)",
    "pairwise_gru": "Pairwise-GRU (Zhou, Huang and Ji, 2017)",
}
"""The papers whose protocols the tasks follow; also names of groups of tasks."""

_PEARL = (
    ("ppdb", "accuracy"),
    ("ppdb_filtered", "accuracy"),
    ("turney", "accuracy"),
    ("bird", "Pearson"),
    ("yago", "accuracy"),
    ("umls", "accuracy"),
    ("entity_clustering_conll", "NMI"),
    ("entity_clustering_bc5cdr", "NMI"),
    ("autofj", "accuracy"),
)

SOURCES = (
    Source(
        "phrase_bert",
        "sections 4.1 and 4.2",
        (
            ("turney", "accuracy"),
            ("bird", "Pearson"),
            ("ppdb_filtered", "accuracy"),
            ("ppdb", "accuracy"),
            ("paws_short", "accuracy"),
        ),
        {"Phrase-BERT": (57.2, 68.8, 68.0, 97.6, 58.9)},
    ),
    Source(
        "phrase_bert",
        "lexical diversity of the top 10 neighbours, queries from Storium",
        (("diversity", "new tokens"), ("diversity", "LCS precision"), ("diversity", "edit distance")),
        {"Phrase-BERT": (5.3, 47.6, 8.7)},
    ),
    Source(
        "pearl",
        "table 1",
        _PEARL,
        {
            "E5-small": (96.0, 56.8, 55.9, 63.1, 43.3, 42.0, 27.6, 53.7, 74.8),
            "PEARL-small": (97.2, 69.2, 56.1, 69.7, 48.1, 43.4, 48.7, 61.0, 74.6),
        },
    ),
    Source(
        "pearl",
        "README of github.com/tigerchen52/PEARL, whose PEARL-small differs from the paper's",
        _PEARL,
        {
            "FastText": (94.4, 61.2, 59.6, 58.9, 16.9, 14.5, 3.0, 0.2, 53.6),
            "Sentence-BERT": (94.6, 66.8, 50.4, 62.6, 21.6, 23.6, 25.5, 48.4, 57.2),
            "Phrase-BERT": (96.8, 68.7, 57.2, 68.8, 23.7, 26.1, 35.4, 59.5, 66.9),
            "E5-small": (96.0, 56.8, 55.9, 63.1, 43.3, 42.0, 27.6, 53.7, 74.8),
            "E5-base": (95.4, 65.6, 59.4, 66.3, 47.3, 44.0, 32.0, 69.3, 76.1),
            "PEARL-small": (97.0, 70.2, 57.9, 68.1, 48.1, 44.5, 42.4, 59.3, 75.2),
            "PEARL-base": (97.3, 72.2, 59.7, 72.6, 50.7, 45.8, 39.3, 69.4, 77.1),
        },
    ),
    Source(
        "pearl",
        "short text classification",
        tuple((each, "accuracy") for each in ("twitter_s", "twitter_l", "atis_s", "atis_l")),
        {},
    ),
    Source(
        "uctopic",
        "entity clustering, after fine-tuning with CCL",
        tuple(
            (f"mention_clustering_{corpus}", measure)
            for corpus in ("conll", "bc5cdr", "mit_movie", "wnut17")
            for measure in ("accuracy", "NMI")
        ),
        {"UCTopic": (74.3, 49.5, 98.1, 86.5, 94.2, 66.1, 52.1, 31.4)},
    ),
    Source(
        "pairwise_gru",
        "phrase similarity; trained on PPDB only, and on the training set of the task",
        (
            ("semeval2013_5a", "accuracy"),
            ("turney2012_5", "accuracy"),
            ("turney2012_10", "accuracy"),
            ("ppdb_choice", "accuracy"),
        ),
        {
            "GRU (PPDB)": (71.29, 41.44, 26.37, None),
            "GRU (task)": (73.44, 48.88, 39.23, None),
            "AVG": (None, None, None, 88.0),
        },
    ),
)

OWN = ("Phrase-BERT", "PEARL-small", "UCTopic", "GRU (PPDB)", "AVG")
"""Shown where no model like the one that is evaluated has a figure: the papers' own, in this order."""

_LIKE = (
    (r"pearl.*base", "PEARL-base"),
    (r"pearl", "PEARL-small"),
    (r"phrase.?bert", "Phrase-BERT"),
    (r"e5.*base", "E5-base"),
    (r"e5", "E5-small"),
    (r"minilm|mpnet|sbert|sentence|bert|bge|gte", "Sentence-BERT"),
    (r"vec|glove|fasttext|spacy|core-web|\.txt|\.bin", "FastText"),
)
"""Which published model is the nearest to one of a name: the first pattern that is found in it."""


def figures() -> Iterator[Published]:
    """All figures, those of the papers before those of other places."""
    for source in SOURCES:
        for model, row in source.rows.items():
            for (task, measure), figure in zip(source.columns, row, strict=True):
                if figure is not None:
                    yield Published(source.paper, model, task, measure, figure, source.where)


def groups() -> dict[str, list[str]]:
    """The tasks of each paper, each once, in the order of its tables."""
    found: dict[str, dict[str, None]] = {paper: {} for paper in PAPERS}
    for source in SOURCES:
        found[source.paper].update(dict.fromkeys(task for task, _ in source.columns))
    return {paper: [*tasks] for paper, tasks in found.items()}


def models() -> list[str]:
    """The names of the models that have figures."""
    return [*dict.fromkeys(each.model for each in figures())]


def nearest(name: str) -> str | None:
    """The published model that is most like one of this name; None if none is."""
    place = name.casefold().replace("_", "-")
    return next((model for pattern, model in _LIKE if re.search(pattern, place)), None)


def shown(task: str, measure: str, model: str | None) -> Published | None:
    """The figure beside the score of a task: that of `model`, otherwise the paper's own; None if there is none."""
    found = [each for each in figures() if (each.task, each.measure) == (task, measure)]
    for wanted in (model, *OWN):
        for each in found:
            if each.model == wanted:
                return each
    return None
