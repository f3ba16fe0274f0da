"""Phrase-BERT's context corpus: raw text -> documents -> sentences -> phrases -> masked contexts in triplets.

    python -m pipelines.mine_contexts --input enwiki.xml.bz2 --output out/contexts

Wang, Thompson and Iyyer 2021, section 3: the most frequent NP, VP, ADJP and ADVP of at most 10 tokens; for each a
context of 120 tokens with the phrase replaced by one [MASK], and the context of another phrase.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from schemas.options import Chosen
from transforms.contexts.options import NegativeRules, Occurrences, WindowRules
from transforms.options import Draws
from transforms.parsing.options import GivenSentences, ParsingOptions
from transforms.phrases.options import PhraseRules, Vocabulary

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import corpus

    chain = corpus.sentences(source, options, output.beside("-sentences"), output.beside("-documents"))
    documents, sentences = chain
    phrases = corpus.phrases(sentences, options, output.beside("-phrases"))
    return [*chain, phrases, corpus.contexts(documents, sentences, phrases, options, output)]


COMMAND = Command(
    module="mine_contexts",
    description="Raw text to masked contexts of the most frequent phrases, in triplets (Phrase-BERT).",
    output="out/contexts",
    takes="raw text (a file, folder, glob or URI), or a documents or sentences dataset",
    options=(ParsingOptions, GivenSentences, PhraseRules, Vocabulary, Occurrences, WindowRules, NegativeRules, Draws),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
