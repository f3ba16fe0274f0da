"""PEARL's typed phrases: raw text -> documents -> sentences -> entities -> phrases with their types.

    python -m pipelines.mine_phrases --input enwiki.xml.bz2 --output out/typed-phrases

Chen, Varoquaux and Suchanek 2024, section 4.1: NP, VP, PP, ADVP and ADJP of any length that occur at least twice, each
with one of 95 types: its label, and its entity type or OTHER.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from pipelines.options import TYPED_PHRASES
from schemas.options import Chosen

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import corpus

    chain = corpus.with_entities(source, options, output)
    sentences, entities = chain[-2:]
    return [*chain, corpus.typed_phrases(sentences, entities, options, output)]


COMMAND = Command(
    module="mine_phrases",
    description="Raw text to phrases with their types: label and entity type (PEARL).",
    output="out/typed-phrases",
    takes="raw text (a file, folder, glob or URI), or a documents, sentences or entities dataset",
    options=TYPED_PHRASES,
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
