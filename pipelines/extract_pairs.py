"""Pairs of phrases that mean the same, from files: PPDB, PAWS, JSON, tab-separated.

    python -m pipelines.extract_pairs --input ppdb-2.0-s-phrasal.gz --output out/pairs

Zhou, Huang and Ji 2017 (--preset pgru): pairs of letters only, of known words, not of two single words.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from pipelines.options import PairInput
from schemas.options import Chosen
from transforms.pairs.options import PairRules
from transforms.sources.options import Damage

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import pair_corpus

    return [pair_corpus.phrase_pairs(source, options, output)]


COMMAND = Command(
    module="extract_pairs",
    description="Files of phrases that mean the same, such as PPDB, to pairs.",
    output="out/pairs",
    takes="files of PPDB, PAWS, JSON or tab-separated pairs",
    reading=(PairInput, Damage),
    options=(PairRules,),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
