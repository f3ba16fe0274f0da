"""UCTopic's corpus: Wikipedia -> documents -> hyperlink mentions -> pairs of one entity or surface, and aliases.

    python -m pipelines.mine_mentions --input enwiki.xml.bz2 --output out/mention-pairs

Li, Shang and McAuley 2022, section 3: two sentences whose hyperlinked phrases have the same Wikidata id, or the same
words, are a positive pair.
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
    from pipelines import mention_corpus

    chain = mention_corpus.mentions(source, options, output.beside("-mentions"), output.beside("-documents"))
    pairs = mention_corpus.pairs(chain[-1], options, output)
    if options.units:  # a slice is of the pairs, which need no aliases
        return [*chain, pairs]
    return [*chain, mention_corpus.aliases(chain[-1], options, output.beside("-aliases")), pairs]


COMMAND = Command(
    module="mine_mentions",
    description="Wikipedia to pairs of hyperlink mentions of one entity or surface (UCTopic).",
    output="out/mention-pairs",
    takes="a Wikipedia dump (XML or HTML), or a documents or mentions dataset",
    groups=(options.add_mentions, options.add_pairs),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
