"""Phrase pairs with labels, for paraphrase classification: PPDB, PPDB-filtered and PAWS-short of Phrase-BERT.

    python -m pipelines.label_pairs --input out/pairs --set ppdb_filtered --splits 70,15,15 --output out/labelled

Wang, Thompson and Iyyer 2021, section 4.1. Half of the rows mean the same.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from pipelines.options import PairInput
from schemas.options import Chosen
from transforms.options import Seed
from transforms.pairs.options import LabelRules, PairRules, SplitShares
from transforms.sources.options import Damage

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import pair_corpus

    return pair_corpus.labelled_pairs(source, options, output)


COMMAND = Command(
    module="label_pairs",
    description="Pairs to labelled ones, half of which mean the same (PPDB, PPDB-filtered, PAWS-short).",
    output="out/labelled-pairs",
    takes="a dataset of pairs, or what extract_pairs takes",
    reading=(PairInput, Damage),
    options=(LabelRules, SplitShares, Seed, PairRules),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
