"""Entity clustering as PEARL does it: phrases without their sentences, normalised mutual information (section 4.1)."""

from __future__ import annotations

from functools import partial

from trainers.evaluation.annotated import (
    BC5CDR_TYPES,
    CONLL_TYPES,
    CROSSNER,
    LOCATION,
    MIT_MOVIE,
    ORGANIZATION,
    PERSON,
    WNUT17_FILES,
    WNUT17_SENTENCES,
    Corpus,
    read_columns,
    read_spans,
)
from trainers.evaluation.clustering import clustered
from trainers.evaluation.measures import nmi_of
from trainers.evaluation.model import Model
from trainers.evaluation.task import Measure, Outcome, Setting, Task
from trainers.evaluation.vectors import encoded

WNUT17_TYPES = {"person": PERSON, "location": LOCATION, "corporation": ORGANIZATION, "group": ORGANIZATION}
CORPORA = (
    Corpus(
        "conll", "CoNLL", read_spans, CONLL_TYPES, ("conll2003/test.json",), 3_453, otherwise=("conll2003/dev.json",)
    ),
    Corpus("bc5cdr", "BC5CDR", read_spans, BC5CDR_TYPES, ("bc5cdr/test.json",), 7_095, otherwise=("bc5cdr/dev.json",)),
    MIT_MOVIE,
    Corpus("wnut17", "WNUT17", read_columns, WNUT17_TYPES, WNUT17_FILES, WNUT17_SENTENCES),
    CROSSNER,
)


def run(corpus: Corpus, model: Model, setting: Setting) -> Outcome:
    """Each mention counts, a phrase that is repeated too; phrases keep their case, vectors their lengths."""
    found = corpus.mentions(setting.data)
    vectors = encoded(model, [mention.phrase for mention in found.mentions])
    return clustered(found, vectors, corpus.kinds, setting)


TASKS = tuple(
    Task(
        name=f"entity_clustering_{corpus.name}",
        title=f"{corpus.title} clusters",
        files=(corpus.pattern,),
        protocol=f"normalised mutual information of types and {corpus.kinds} clusters of phrases without their "
        "sentences, by k-means (PEARL, section 4.1)",
        measures=(Measure("NMI", nmi_of("type", "cluster"), group="phrase"),),
        run=partial(run, corpus),
        seeded=True,
    )
    for corpus in CORPORA
)
