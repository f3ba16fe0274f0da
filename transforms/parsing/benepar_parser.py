"""benepar (Kitaev and Klein 2018; Kitaev et al. 2019), the parser of PEARL, behind the parser interface.

benepar's spaCy component parses one document at a time, and its loader supports only transformers 4. Here batches cross
documents, and `_ChartParser` and `_Tokenizers` adapt benepar to transformers 4 and 5.
"""

from __future__ import annotations

import re
import sys
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
import transformers
from benepar import InputSentence, retokenization
from benepar.parse_chart import ChartParser
from benepar.ptb_unescape import guess_space_after, ptb_unescape

from transforms.activity import noting
from transforms.libraries import quiet_transformers
from transforms.parsing import identities
from transforms.parsing.interface import Constituent, RefusedSentence, Sentence
from transforms.parsing.tokens import TOKENISED, load_spacy, tokenise
from transforms.parsing.treebank import ESCAPES, ROOTS, bare_label
from transforms.parsing.trees import (
    Parse,
    Refusal,
    batches_by_length,
    each_or_alone,
    error_text,
    parsed_texts,
    unplaced,
)

MAX_CELLS = 100_000
"""The most cells in the charts of a batch; a cell takes about 10 kB in the largest published models."""

_BRACKETS = {bracket: escape for escape, bracket in ESCAPES.items() if bracket in "()[]{}"}


class BeneparParser:
    """A benepar model: its name as `benepar.download` takes it, or the path of a checkpoint (a file or a folder).

    Sentences, tokens and tags are spaCy's. A sentence is refused if it has more than `max_tokens` tokens, more tokens
    than the model has positions, or more subwords than its encoder reads. `batch_tokens` limits the subwords of a
    batch, padding included. `threads` is the number of torch's threads in this process. Workers are processes, so one
    thread each is fastest, and the rounding of sums does not depend on the machine. Raises LookupError if there is no
    such model.
    """

    def __init__(
        self,
        model: str = identities.BENEPAR_MODEL,
        *,
        spacy_model: str = "",
        max_tokens: int = 250,
        batch_tokens: int = 2000,
        threads: int = 1,
    ) -> None:
        path = identities.locate_benepar(model)
        torch.set_num_threads(threads)
        self._nlp = load_spacy(spacy_model)
        self._parser = load_chart_parser(path)
        self._max_tokens = min(max_tokens, _positions(self._parser))
        self._max_subwords = _lift_subword_limit(self._parser)
        self._batch_tokens = batch_tokens
        self._labels = {
            index: [bare_label(label) for label in chain.split("::") if label not in ROOTS]
            for index, chain in self._parser.decoder.label_from_index.items()
        }
        self.identity = identities.benepar(model, spacy_model=spacy_model)

    def parse_texts(self, texts: Sequence[str]) -> list[list[Sentence]]:
        return parsed_texts(
            tokenise(self._nlp, texts),
            lambda sentences: self._parse([InputSentence(each.words, each.space_after) for each in sentences]),
        )

    def parse_tokens(self, sentences: Sequence[Sequence[str]]) -> list[list[Constituent] | RefusedSentence]:
        """Parse sentences of given tokens; the spaces between them are guessed as in benepar."""
        examples = []
        for words in sentences:
            escaped = [_BRACKETS.get(word, word) for word in words]
            examples.append(InputSentence(list(words), [*guess_space_after(escaped)[:-1], False]))
        return [unplaced(parse) for parse in self._parse(examples)]

    def _parse(self, examples: list[InputSentence]) -> list[Parse]:
        encoded = [self._encode(example) for example in examples]
        parses: list[Parse] = [each if isinstance(each, Refusal) else [] for each in encoded]
        todo = [index for index, each in enumerate(encoded) if each and not isinstance(each, Refusal)]
        lengths = self._parser._get_lens([encoded[index] for index in todo])

        def parse(batch: list[int]) -> Iterator[Parse]:
            outputs = self._parser._parse_encoded(
                [examples[index] for index in batch], [encoded[index] for index in batch], return_compressed=True
            )
            return map(self._constituents, outputs)

        note = noting(sum(lengths), begin=TOKENISED)
        for batch in batches_by_length(lengths, max_padded=self._batch_tokens, max_cells=MAX_CELLS):
            for index, result in each_or_alone(parse, [todo[position] for position in batch]):
                parses[index] = result
            note(sum(lengths[position] for position in batch), len(batch))
        return parses

    def _encode(self, example: InputSentence) -> Any:
        """The features of a sentence; None if it has no words."""
        if not example.words:
            return None
        if len(example.words) > self._max_tokens:
            return Refusal("too_many_tokens")
        words = [word if is_visible(word) else "*" for word in ptb_unescape(example.words)]
        try:
            encoded = self._parser.encode(InputSentence(words, example.space_after))
        except Exception as error:  # including StopIteration, for a sentence whose end has no subwords
            return Refusal("parser_error", error_text(error))
        if -100 in encoded.get("words_from_tokens", ()):
            return Refusal("parser_error", "the encoder's tokenizer drops one of the tokens")
        if self._parser._get_lens([encoded])[0] > self._max_subwords:
            return Refusal("too_many_subwords")
        return encoded

    def _constituents(self, output: Any) -> list[Constituent]:
        spans = zip(output.starts.tolist(), output.ends.tolist(), output.labels.tolist(), strict=True)
        return list(
            dict.fromkeys(
                Constituent(label, start, end) for start, end, chain in spans for label in self._labels[chain]
            )
        )


def is_visible(word: str) -> bool:
    """Whether an encoder's tokenizer keeps a part of a word; it drops controls, formats and bare marks."""
    return any(unicodedata.category(char)[0] not in "CMZ" and char != "\ufffd" for char in word)


def load_chart_parser(path: Path) -> ChartParser:
    """Load a checkpoint of benepar under transformers 4 or 5, in single precision, on the GPU if there is one.

    Raises ValueError if weights are missing or unknown.
    """
    with quiet_transformers(), patch.object(retokenization, "transformers", _Tokenizers):
        parser = _ChartParser.from_trained(str(path))
    warnings.filterwarnings("ignore", message=".*does not define `arg_constraints`", module="torch_struct")
    if torch.cuda.is_available():
        parser.cuda()
    return parser.eval()


class _ChartParser(ChartParser):
    """Loads checkpoints written under other versions of transformers."""

    def load_state_dict(self, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        self.float()  # transformers 5 builds an encoder in the precision of the checkpoint
        result = super().load_state_dict(state_dict, strict=False)
        own = self.state_dict(keep_vars=True)
        filled = {own[name].data_ptr() for name in state_dict if name in own}
        missing = [name for name in result.missing_keys if own[name].data_ptr() not in filled]  # the others are tied
        unknown = [name for name in result.unexpected_keys if not self._is_dispensable(name)]
        if missing or unknown:
            raise ValueError(
                f"the checkpoint does not fit its encoder under transformers {transformers.__version__}: "
                f"missing {missing[:5]}, unknown {unknown[:5]}; use the version that it was trained with"
            )
        return result

    def _is_dispensable(self, name: str) -> bool:
        """Whether the encoder itself ignores this weight of an older checkpoint."""
        prefix, _, rest = name.partition(".")
        patterns = getattr(self.pretrained_model, "_keys_to_ignore_on_load_unexpected", None) or []
        return prefix == "pretrained_model" and any(re.search(each, rest) for each in [r"position_ids$", *patterns])


def _with_special_tokens(tokenizer: Any, ids: list[int]) -> list[int]:
    """The ids of a sentence with the special tokens that the tokenizer puts before and after it."""
    encoded = tokenizer("a", return_special_tokens_mask=True)
    inside = [index for index, special in enumerate(encoded["special_tokens_mask"]) if not special]
    return encoded["input_ids"][: inside[0]] + ids + encoded["input_ids"][inside[-1] + 1 :]


def _tokenizer_from_pretrained(path: str, **kwargs: Any) -> Any:
    """A tokenizer with the method of transformers 4 that benepar uses to find its special tokens."""
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(path, **kwargs)
    getattr(tokenizer, "deprecation_warnings", {})["Asking-to-pad-a-fast-tokenizer"] = True  # no warning
    if not hasattr(tokenizer, "build_inputs_with_special_tokens"):
        tokenizer.build_inputs_with_special_tokens = lambda ids: _with_special_tokens(tokenizer, ids)
    return tokenizer


_Tokenizers = SimpleNamespace(AutoTokenizer=SimpleNamespace(from_pretrained=_tokenizer_from_pretrained))
"""What benepar uses of transformers to load a tokenizer."""


def _positions(parser: ChartParser) -> int:
    """How many tokens the model has positions for, without the two for the sentence's ends."""
    return sys.maxsize if parser.add_timing is None else parser.add_timing.timing_table.shape[0] - 2


def _lift_subword_limit(parser: ChartParser) -> int:
    """How many subwords the encoder reads; removes benepar's own check, which raises, so the caller has to check."""
    if parser.pretrained_model is None:
        return sys.maxsize
    tokenizer = parser.retokenizer.tokenizer
    limit = min(
        tokenizer.model_max_length, getattr(parser.pretrained_model.config, "max_position_embeddings", sys.maxsize)
    )
    tokenizer.model_max_length = sys.maxsize
    return limit - 1 if parser.retokenizer.is_t5 else limit  # T5's decoder input has one more at the start
