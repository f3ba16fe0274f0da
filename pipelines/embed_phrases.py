"""Phrases -> the vector that an encoder gives each.

python -m pipelines.embed_phrases --input out/phrases --output out/embeddings --encoder intfloat/e5-small-v2
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from schemas.options import Chosen
from transforms.encoders.options import EncoderOptions

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import corpus, negative_corpus

    chain = corpus.any_phrases(source, options, output)
    return [*chain, negative_corpus.embeddings(chain[-1], options, output)]


COMMAND = Command(
    module="embed_phrases",
    description="Phrases to the vectors that an encoder gives them.",
    output="out/embeddings",
    takes="a dataset of phrases, or what mine_phrases takes",
    options=(EncoderOptions,),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
