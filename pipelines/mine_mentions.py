"""UCTopic's corpus: Wikipedia -> documents -> hyperlink mentions -> pairs of one entity or surface, and aliases.

    python -m pipelines.mine_mentions --input enwiki.xml.bz2 --output out/mention-pairs

Li, Shang and McAuley 2022, section 3: two sentences whose hyperlinked phrases have the same Wikidata id, or the same
words, are a positive pair.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from pipelines.options import RunOptions
from schemas.options import Chosen
from transforms.mentions.options import (
    AliasRules,
    CopyRules,
    MaskRules,
    MentionRules,
    PairColumns,
    PairRules,
    Tables,
)
from transforms.options import Draws

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import mention_corpus

    chain = mention_corpus.mentions(source, options, output.beside("-mentions"), output.beside("-documents"))
    pairs = mention_corpus.pairs(chain[-1], options, output)
    if options[RunOptions].units:  # a slice is of the pairs, which need no aliases
        return [*chain, pairs]
    return [*chain, mention_corpus.aliases(chain[-1], options, output.beside("-aliases")), pairs]


COMMAND = Command(
    module="mine_mentions",
    description="Wikipedia to pairs of hyperlink mentions of one entity or surface (UCTopic).",
    output="out/mention-pairs",
    takes="a Wikipedia dump (XML or HTML), or a documents or mentions dataset",
    options=(Tables, MentionRules, PairRules, CopyRules, PairColumns, MaskRules, AliasRules, Draws),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
