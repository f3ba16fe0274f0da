"""Stanza's constituency parser (Bauer et al. 2023) behind the parser interface.

Only Stanza's constituency model runs. Sentences, tokens and tags are spaCy's, as for every parser here that can take
them. So Stanza's tokenizer and tagger need not be installed, and datasets of different parsers are comparable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import stanza
import torch
from stanza.models.common.foundation_cache import FoundationCache
from stanza.models.constituency.trainer import Trainer
from stanza.resources.common import DEFAULT_MODEL_DIR

from transforms.activity import noting
from transforms.parsing import identities
from transforms.parsing.interface import Constituent, RefusedSentence, Sentence
from transforms.parsing.tokens import TOKENISED, load_spacy, tag, tokenise
from transforms.parsing.trees import (
    Parse,
    Refusal,
    batches_by_length,
    constituents_of,
    each_or_alone,
    parsed_texts,
    unplaced,
)

MAX_CELLS = 400_000
"""The most attention cells of a batch, for models with a transformer."""


class StanzaParser:
    """A constituency model of Stanza for English.

    `model` is the path of a model file, or the name of a package in Stanza's folder `resources` (by default the folder
    of `stanza.download`; nothing is downloaded here). A model file's word vectors and character models are those that
    it names, or the given ones. A sentence of more than `max_tokens` tokens is refused. `batch_tokens` limits the
    tokens of a batch, padding included. `threads` is the number of torch's threads in this process; one is fastest.
    Raises FileNotFoundError if a file is missing.
    """

    def __init__(
        self,
        model: str = identities.STANZA_MODEL,
        *,
        resources: str = DEFAULT_MODEL_DIR,
        pretrain: str | None = None,
        forward_charlm: str | None = None,
        backward_charlm: str | None = None,
        spacy_model: str = "",
        max_tokens: int = 250,
        batch_tokens: int = 2000,
        threads: int = 1,
    ) -> None:
        torch.set_num_threads(threads)
        self._nlp = load_spacy(spacy_model)
        if identities.is_stanza_file(model):
            path = Path(model)
            below = {
                "wordvec_pretrain_file": pretrain,
                "charlm_forward_file": forward_charlm,
                "charlm_backward_file": backward_charlm,
                "device": "cuda" if torch.cuda.is_available() else "cpu",
            }
            cache = FoundationCache(local_files_only=True)
            self._model = Trainer.load(filename=str(path), args=below, foundation_cache=cache).model
        else:
            path, self._model = _from_resources(model, resources)
        self._max_tokens = max_tokens
        self._batch_tokens = batch_tokens
        self.identity = identities.stanza(str(path), spacy_model=spacy_model)

    def parse_texts(self, texts: Sequence[str]) -> list[list[Sentence]]:
        return parsed_texts(
            tokenise(self._nlp, texts),
            lambda sentences: self._parse([each.words for each in sentences], [each.tags for each in sentences]),
        )

    def parse_tokens(self, sentences: Sequence[Sequence[str]]) -> list[list[Constituent] | RefusedSentence]:
        """Parse sentences of given tokens, tagged by spaCy."""
        return [unplaced(parse) for parse in self._parse(sentences, tag(self._nlp, sentences))]

    def _parse(self, words: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> list[Parse]:
        parses: list[Parse] = [Refusal("too_many_tokens") if len(each) > self._max_tokens else [] for each in words]
        todo = [index for index, each in enumerate(words) if 0 < len(each) <= self._max_tokens]

        def parse(batch: list[int]) -> Iterator[Parse]:
            tagged = [list(zip(words[index], tags[index], strict=True)) for index in batch]
            # Stanza drops a sentence that has no transition left; with too few trees, each sentence is parsed alone.
            return map(_constituents, self._model.parse_tagged_words(tagged, len(batch)))

        lengths = [len(words[index]) for index in todo]
        note = noting(sum(lengths), begin=TOKENISED)
        for batch in batches_by_length(lengths, max_padded=self._batch_tokens, max_cells=MAX_CELLS):
            for index, result in each_or_alone(parse, [todo[position] for position in batch]):
                parses[index] = result
            note(sum(lengths[position] for position in batch), len(batch))
        return parses


def _from_resources(package: str, resources: str) -> tuple[Path, Any]:
    """The model file of a package, and the model with the word vectors and character models it depends on."""
    pipeline = stanza.Pipeline(
        "en",
        dir=resources,
        package=None,
        processors={"constituency": package},
        constituency_pretagged=True,
        download_method=None,
        logging_level="ERROR",
    )
    processor = pipeline.processors["constituency"]
    return Path(processor.config["model_path"]), processor._model


def _constituents(tree: Any) -> list[Constituent]:
    return constituents_of(tree, label=lambda node: node.label, children=lambda node: node.children)
