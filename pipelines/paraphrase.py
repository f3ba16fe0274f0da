"""Phrase-BERT's paraphrases: phrases -> candidates under a lexical constraint -> (p, p+, p-).

    python -m pipelines.paraphrase --input out/phrases --output out/paraphrases

Wang, Thompson and Iyyer 2021, section 3: p+ is a paraphrase of p without p's own words of content; p- is one of p with
a word replaced.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from pipelines.generate_paraphrases import DRAWING
from schemas.options import Chosen
from transforms.encoders.options import EncoderOptions
from transforms.paraphrase.options import ParaphraseFilters

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import paraphrase_corpus

    chain = paraphrase_corpus.any_candidates(source, options, output)
    return [*chain, paraphrase_corpus.paraphrases(chain[-1], options, output)]


COMMAND = Command(
    module="paraphrase",
    description="Phrases to paraphrases without their words, and of phrases that differ in one (Phrase-BERT).",
    output="out/paraphrases",
    takes="a dataset of phrases or of candidates, or what mine_phrases takes",
    options=(*DRAWING, ParaphraseFilters, EncoderOptions),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
