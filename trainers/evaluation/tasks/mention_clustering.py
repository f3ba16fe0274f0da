"""Entity clustering as UCTopic does it: mentions in their sentences, accuracy and mutual information (section 4.1)."""

from __future__ import annotations

from functools import partial

from trainers.evaluation.annotated import (
    BC5CDR_TYPES,
    CONLL_TYPES,
    CROSSNER,
    MIT_MOVIE,
    WNUT17_FILES,
    WNUT17_SENTENCES,
    Corpus,
    read_columns,
    read_spans,
)
from trainers.evaluation.clustering import clustered
from trainers.evaluation.measures import matched_of, nmi_of
from trainers.evaluation.model import Model
from trainers.evaluation.task import Measure, Outcome, Setting, Task
from trainers.evaluation.vectors import finite, unit

PARTS = ("train", "dev", "test")
WNUT17_TYPES = {each: each for each in ("person", "location", "corporation", "group", "creative-work", "product")}
CORPORA = (
    Corpus("conll", "CoNLL", read_spans, CONLL_TYPES, tuple(f"conll2003/{part}.json" for part in PARTS), 20_744),
    Corpus("bc5cdr", "BC5CDR", read_spans, BC5CDR_TYPES, tuple(f"bc5cdr/{part}.json" for part in PARTS), 18_307),
    MIT_MOVIE,
    Corpus("wnut17", "WNUT17", read_columns, WNUT17_TYPES, WNUT17_FILES, WNUT17_SENTENCES),
    CROSSNER,
)


def run(corpus: Corpus, model: Model, setting: Setting) -> Outcome:
    """Vectors are brought to length 1; each mention has its own."""
    found = corpus.mentions(setting.data)
    phrases = [mention.phrase for mention in found.mentions]
    vectors = finite(model, phrases, model.encode_spans([mention.passage for mention in found.mentions]))
    outcome = clustered(found, unit(vectors), corpus.kinds, setting)
    if model.contextual:
        return outcome
    return outcome._replace(remarks=[*outcome.remarks, "vectors of phrases without their sentences"])


TASKS = tuple(
    Task(
        name=f"mention_clustering_{corpus.name}",
        title=f"{corpus.title} mentions",
        files=(corpus.pattern,),
        protocol="accuracy (clusters matched with types one to one) and normalised mutual information of types and "
        f"{corpus.kinds} clusters of mentions in their sentences, by k-means (UCTopic, section 4.1; no fine-tuning)",
        measures=(
            Measure("accuracy", matched_of("type", "cluster"), group="sentence"),
            Measure("NMI", nmi_of("type", "cluster"), group="sentence"),
        ),
        run=partial(run, corpus),
        in_context=True,
        seeded=True,
    )
    for corpus in CORPORA
)
