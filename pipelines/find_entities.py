"""Raw text, documents or sentences -> the named entities of each sentence.

python -m pipelines.find_entities --input out/sentences --output out/entities
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from schemas.options import Chosen
from transforms.entities.options import EntityOptions
from transforms.parsing.options import GivenSentences, ParsingOptions

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import corpus

    chain = corpus.sentences(source, options, output.beside("-sentences"), output.beside("-documents"))
    return [*chain, corpus.entities(chain[-1], options, output)]


COMMAND = Command(
    module="find_entities",
    description="Sentences to the named entities of each, with their types.",
    output="out/entities",
    takes="raw text (a file, folder, glob or URI), or a documents or sentences dataset",
    options=(ParsingOptions, GivenSentences, EntityOptions),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
