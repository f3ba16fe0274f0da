"""Wikipedia or documents -> mentions: hyperlinks in their sentences, with the entities that they link to.

python -m pipelines.find_mentions --input out/documents --output out/mentions
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from schemas.options import Chosen
from transforms.mentions.options import MentionRules, Tables

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import mention_corpus

    return mention_corpus.mentions(source, options, output, output.beside("-documents"))


COMMAND = Command(
    module="find_mentions",
    description="Wikipedia or documents to hyperlink mentions with their entities.",
    output="out/mentions",
    takes="a Wikipedia dump (XML or HTML), or a documents dataset",
    options=(
        Tables,
        MentionRules,
    ),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
