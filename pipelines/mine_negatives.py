"""PEARL's hard negatives: phrases -> neighbours by edits, embeddings -> neighbours that mean something else.

    python -m pipelines.mine_negatives --input out/phrases --output out/negatives --encoder intfloat/e5-small-v2

Chen, Varoquaux and Suchanek 2024, section 3.2: phrases that are near in letters, of which those are kept whose
embeddings are not.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from schemas.options import Chosen
from transforms.encoders.options import EncoderOptions
from transforms.negatives.options import HardNegativeRules, NeighbourRules

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import corpus, negative_corpus

    chain = corpus.any_phrases(source, options, output)
    phrases = chain[-1]
    neighbours = negative_corpus.neighbours(phrases, options, output.beside("-neighbours"))
    embeddings = negative_corpus.embeddings(phrases, options, output.beside("-embeddings"))
    negatives = negative_corpus.hard_negatives(phrases, neighbours, embeddings, options, output)
    return [*chain, neighbours, embeddings, negatives]


COMMAND = Command(
    module="mine_negatives",
    description="Phrases to others that are near in letters and far in meaning (PEARL).",
    output="out/negatives",
    takes="a dataset of phrases, or what mine_phrases takes",
    options=(NeighbourRules, EncoderOptions, HardNegativeRules),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
