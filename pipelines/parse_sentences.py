"""Raw text or documents -> sentences with tokens, tags and constituents.

python -m pipelines.parse_sentences --input out/documents --output out/sentences
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from schemas.options import Chosen
from transforms.parsing.options import ParsingOptions

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import corpus

    return corpus.sentences(source, options, output, output.beside("-documents"))


COMMAND = Command(
    module="parse_sentences",
    description="Documents to sentences with tokens and constituents.",
    output="out/sentences",
    takes="raw text (a file, folder, glob or URI), or a documents dataset",
    options=(ParsingOptions,),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
