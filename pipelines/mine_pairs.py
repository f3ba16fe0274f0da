"""Pairs to train a paraphraser on: phrases -> paraphrases by words that mean the same there.

    python -m pipelines.mine_pairs --input out/phrases --output out/pairs

WordNet and a thesaurus say what may stand for a word, BERT whether it fits in the phrase.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from schemas.options import Chosen
from transforms.paraphrase.options import SubstitutionRules

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import corpus, pair_corpus

    chain = corpus.any_phrases(source, options, output)
    return [*chain, pair_corpus.mined_pairs(chain[-1], options, output)]


COMMAND = Command(
    module="mine_pairs",
    description="Phrases to pairs of a phrase and a paraphrase without its words, to train a paraphraser on.",
    output="out/pairs",
    takes="a dataset of phrases, or what mine_phrases takes",
    options=(SubstitutionRules,),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
