"""Trains a model.

parser       the parser `phrasemill`, from treebanks and raw text to its ONNX file
entities     the entity finder `phrasemill`, from raw text and other finders to a head on the parser's network
paraphraser  a causal language model, from pairs of phrases
phrase_bert  Phrase-BERT, from triples of paraphrases and contexts
pearl     PEARL, from pairs of texts that mean the same, hard negatives and types of phrases
pgru      a GRU over the vectors of words, from pairs of phrases with contrasts (Pairwise-GRU)
uctopic   UCTopic: a transformer, from pairs of mentions in their sentences
pgru      a GRU over the vectors of words, from pairs of phrases with contrasts (Pairwise-GRU)
phrase_bert  Phrase-BERT, from triples of paraphrases and contexts
uctopic_clusters  UCTopic, fine-tuned on mentions by their clusters (CCL); their topics
pearl        PEARL, from phrases that mean the same, hard negatives and types
uctopic      UCTopic: a transformer, from pairs of mentions in their sentences
pgru         a GRU over the vectors of words, from pairs of phrases with contrasts (Pairwise-GRU)
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from schemas.commands import spelled
from schemas.errors import UserError
from trainers.parser.command import TOOL as TOOL

MODELS = {
    "parser": "trainers.parser.command",
    "entities": "trainers.entities.command",
    "paraphraser": "trainers.paraphraser.command",
    "phrase_bert": "trainers.phrase_bert.command",
    "pgru": "trainers.pgru.command",
    "pearl": "trainers.pearl.command",
    "uctopic": "trainers.uctopic.command",
    "pgru": "trainers.pgru.command",
    "phrase_bert": "trainers.phrase_bert.command",
    "pearl": "trainers.pearl.command",
    "phrase_bert": "trainers.phrase_bert.command",
    "pgru": "trainers.pgru.command",
    "uctopic_clusters": "trainers.uctopic.clusters_command",
    "pearl": "trainers.pearl.command",
    "uctopic": "trainers.uctopic.command",
    "pgru": "trainers.pgru.command",
}
"""The module of each model; it has a `main(arguments) -> exit status`."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        print(f"usage: {spelled('trainers.train')} MODEL [option ...]\n\n{__doc__.strip()}")
        return 0 if given else 2
    name, *rest = given
    name = name.replace("-", "_")
    if name not in MODELS:
        print(f"error: no model {name!r}; there are {', '.join(MODELS)}", file=sys.stderr)
        return 2
    try:
        return int(importlib.import_module(MODELS[name]).main(rest))
    except ModuleNotFoundError as error:
        print(f"error: training needs {error.name}: pip install 'phrasemill[train]'", file=sys.stderr)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
