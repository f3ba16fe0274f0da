"""PEARL's augmentations: phrases -> misspelt, reordered and reworded forms of each.

    python -m pipelines.augment --input out/phrases --output out/augmentations

Chen, Varoquaux and Suchanek 2024: for each draw one granularity at random (character, token, phrase), and
one of its operations.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from schemas.options import Chosen
from transforms.augmentation.options import AugmenterOptions, DrawRules
from transforms.options import Seed

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import augmentation_corpus, corpus

    chain = corpus.any_phrases(source, options, output)
    return [*chain, augmentation_corpus.augmentations(chain[-1], options, output)]


COMMAND = Command(
    module="augment",
    description="Phrases to misspelt, reordered and reworded forms of each (PEARL).",
    output="out/augmentations",
    takes="a dataset of phrases, or what mine_phrases takes",
    options=(DrawRules, AugmenterOptions, Seed),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
