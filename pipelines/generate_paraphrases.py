"""Phrases -> candidates for paraphrases of each, and of a corrupted form of it, by a language model.

python -m pipelines.generate_paraphrases --input out/phrases --output out/candidates
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from schemas.options import Chosen
from transforms.options import Seed
from transforms.paraphrase.options import ConstraintRules, DrawingRules, GeneratorOptions, ParaphrasePreset

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder

DRAWING = (ParaphrasePreset, GeneratorOptions, DrawingRules, ConstraintRules, Seed)
"""The options of candidates."""


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import corpus, paraphrase_corpus

    chain = corpus.any_phrases(source, options, output)
    return [*chain, paraphrase_corpus.candidates(chain[-1], options, output)]


COMMAND = Command(
    module="generate_paraphrases",
    description="Phrases to candidates for paraphrases, drawn by a language model under a lexical constraint.",
    output="out/candidates",
    takes="a dataset of phrases, or what mine_phrases takes",
    options=DRAWING,
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
