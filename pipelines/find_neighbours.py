"""Phrases -> for each the phrases that are most similar by edits, exactly.

python -m pipelines.find_neighbours --input out/phrases --output out/neighbours
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from schemas.options import Chosen
from transforms.negatives.options import NeighbourRules

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import corpus, negative_corpus

    chain = corpus.any_phrases(source, options, output)
    return [*chain, negative_corpus.neighbours(chain[-1], options, output)]


COMMAND = Command(
    module="find_neighbours",
    description="Phrases to the phrases that are most similar to each by edits.",
    output="out/neighbours",
    takes="a dataset of phrases, or what mine_phrases takes",
    options=(NeighbourRules,),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
