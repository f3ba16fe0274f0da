"""Raw text -> documents: plain text with the places of links, from Wikipedia dumps, books, JSON lines, Parquet.

python -m pipelines.extract_documents --input enwiki.xml.bz2 --output out/documents
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from schemas.options import Chosen

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import corpus

    return [corpus.documents(source, options, output)]


COMMAND = Command(
    module="extract_documents",
    description="Raw text to documents: plain text with links.",
    output="out/documents",
    takes="a file, folder, glob or URI of raw text",
    options=(),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
