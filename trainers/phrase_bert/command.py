"""Train Phrase-BERT: phrases nearer to their paraphrases and contexts than to those of others, by a triplet loss.

    python -m trainers.train phrase_bert --data out/paraphrases --data out/contexts --output out/phrase-bert

With one kind of data it is the paper's variant without the other. The output is a folder for SentenceTransformer.
"""

from __future__ import annotations

from trainers.phrase_bert.options import PhraseBertTraining
from trainers.training.command import recipe_command

TOOL, main = recipe_command(
    "phrase_bert",
    "Trains Phrase-BERT: triples of a phrase, a paraphrase or context of it, and another one.",
    PhraseBertTraining,
    recipe="trainers.phrase_bert.recipe:PhraseBert",
)
