"""Raw text, documents or sentences -> the most frequent phrases, counted exactly.

python -m pipelines.count_phrases --input out/sentences --output out/phrases
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from pipelines import options
from pipelines.cli import Command, main

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: argparse.Namespace, output: Folder) -> list[ChainDataset]:
    from pipelines import corpus

    chain = corpus.sentences(source, options, output.beside("-sentences"), output.beside("-documents"))
    return [*chain, corpus.phrases(chain[-1], options, output)]


COMMAND = Command(
    module="count_phrases",
    description="Sentences to the most frequent phrases, counted exactly.",
    output="out/phrases",
    takes="raw text (a file, folder, glob or URI), or a documents or sentences dataset",
    groups=(options.add_parsing, options.add_phrases),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
