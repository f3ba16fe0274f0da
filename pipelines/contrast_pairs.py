"""Pairwise-GRU's training set: pairs of PPDB, each with k random contrast phrases.

    python -m pipelines.contrast_pairs --input ppdb-1.0-s-phrasal.gz --vocabulary vectors.txt --contrasts 29

Zhou, Huang and Ji 2017: pairs by the preset pgru, 80/10/10, k in 9, 29, 99.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from pipelines.options import PairInput
from schemas.options import Chosen
from transforms.options import Seed
from transforms.pairs.options import ContrastRules, PairRules, SplitShares
from transforms.sources.options import Damage

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import pair_corpus

    return pair_corpus.contrast_pairs(source, options, output)


COMMAND = Command(
    module="contrast_pairs",
    description="Pairs, each with random contrast phrases (Pairwise-GRU).",
    output="out/contrast-pairs",
    takes="a dataset of pairs, or what extract_pairs takes",
    reading=(PairInput, Damage),
    options=(ContrastRules, SplitShares(splits="80,10,10"), Seed, PairRules),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
