"""Raw text, documents or sentences -> the most frequent phrases, counted exactly.

python -m pipelines.count_phrases --input out/sentences --output out/phrases
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from schemas.options import Chosen
from transforms.parsing.options import GivenSentences, ParsingOptions
from transforms.phrases.options import PhraseRules, Vocabulary

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import corpus

    chain = corpus.sentences(source, options, output.beside("-sentences"), output.beside("-documents"))
    return [*chain, corpus.phrases(chain[-1], options, output)]


COMMAND = Command(
    module="count_phrases",
    description="Sentences to the most frequent phrases, counted exactly.",
    output="out/phrases",
    takes="raw text (a file, folder, glob or URI), or a documents or sentences dataset",
    options=(ParsingOptions, GivenSentences, PhraseRules, Vocabulary),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
