"""How a causal language model is asked for a paraphrase: the tokens of the prompt, and what ends the answer.

A tokenizer is one of transformers. Tokens are numbers of its vocabulary. Nothing here imports torch: the trainer uses
the same functions, so that a model is asked as it was trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from schemas.errors import UserError
from transforms.arrays import Bools


class Format(Protocol):
    """A prompt is `prefix`, which all phrases share, and `prompt(phrase)`; the answer is `answer(text)`."""

    prefix: tuple[int, ...]
    segments: tuple[int, int] | None  # token types of prompt and answer; None: the model has none

    def prompt(self, phrase: str) -> list[int]: ...

    def answer(self, text: str) -> list[int]:
        """The tokens of a paraphrase, with its end."""
        ...

    def alone(self, text: str) -> tuple[list[int], list[int]]:
        """What begins a text without a phrase before it, and the tokens of the text that are then likely or not."""
        ...

    def length(self, phrase: str) -> int:
        """The tokens of the phrase alone, which the limit of length is relative to."""
        ...

    def is_end(self, size: int) -> Bools:
        """[size] which tokens of the vocabulary end an answer."""
        ...

    def text(self, tokens: Sequence[int]) -> str:
        """The text of an answer, with or without its end."""
        ...


class PairTokens(NamedTuple):
    """The two tokens around a paraphrase: phrase, `separator`, paraphrase, `end`."""

    separator: int
    end: int


def pair_tokens(tokenizer: Any) -> PairTokens:
    """Those of a tokenizer: its begin and end of a text, or what BERT's has for them.

    UserError if it has neither.
    """
    separator = _first(tokenizer.bos_token_id, tokenizer.cls_token_id, tokenizer.eos_token_id)
    end = _first(tokenizer.eos_token_id, tokenizer.sep_token_id)
    if separator is None or end is None:
        raise UserError("its tokenizer has no token for the end of a text (eos_token or sep_token)")
    return PairTokens(separator, end)


def _first(*numbers: int | None) -> int | None:
    return next((each for each in numbers if each is not None), None)


class PairFormat:
    """Phrase, separator, paraphrase, end: what the style-transfer paraphraser reads (Krishna, Wieting and Iyyer 2020).

    Of its padding and token types only a model that was trained with them has need: `StyleTransferFormat`.
    """

    prefix: tuple[int, ...] = ()
    segments: tuple[int, int] | None = None

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._marks = pair_tokens(tokenizer)

    def prompt(self, phrase: str) -> list[int]:
        return [*self._tokens(phrase), self._marks.separator]

    def answer(self, text: str) -> list[int]:
        return [*self._tokens(text), self._marks.end]

    def alone(self, text: str) -> tuple[list[int], list[int]]:
        return [self._marks.separator], self.answer(text)

    def length(self, phrase: str) -> int:
        return len(self._tokens(phrase))

    def is_end(self, size: int) -> Bools:
        ends = np.zeros(size, bool)
        ends[self._marks.end] = True
        return ends

    def text(self, tokens: Sequence[int]) -> str:
        return decoded(self._tokenizer, tokens)

    def _tokens(self, text: str) -> list[int]:
        found: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return found


PREFIX_TOKENS = 50
"""The released paraphraser reads phrases of as many tokens: shorter ones after padding that it attends to."""

_OWN = ("<pad>", "<bos>", "<eos>", "<tokens>", "<verb>")


class StyleTransferFormat(PairFormat):
    """The released paraphraser of Krishna et al.: padding on the left to 50 tokens, and two token types.

    Its own tokens are added to those of GPT-2: `<pad>`, `<bos>` (the separator), `<eos>`, and `<tokens>` and `<verb>`,
    whose embeddings mark the phrase and the paraphrase.
    """

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer)
        vocabulary = tokenizer.get_vocab()
        self._pad, separator, end, phrase, paraphrase = (vocabulary[each] for each in _OWN)
        self._marks = PairTokens(separator, end)
        self.segments = (phrase, paraphrase)

    def prompt(self, phrase: str) -> list[int]:
        tokens = self._tokens(phrase)[:PREFIX_TOKENS]
        return [*[self._pad] * (PREFIX_TOKENS - len(tokens)), *tokens, self._marks.separator]

    @staticmethod
    def fits(tokenizer: Any) -> bool:
        """Whether a tokenizer is that of such a model."""
        return {*_OWN} <= tokenizer.get_vocab().keys()


EXAMPLES = (
    ("the large house", "a big home"),
    ("quickly ran away", "fled at high speed"),
    ("its main goals", "the primary aims"),
    ("very tired", "completely exhausted"),
    ("a group of soldiers", "a band of troops"),
    ("was built in stone", "constructed from rock"),
    ("the end of the war", "when fighting ceased"),
    ("many kinds of birds", "various avian species"),
)
"""Phrases and paraphrases of the default prompt, our own."""

TEMPLATE = (
    "Rewrite each phrase with the same meaning in other words.\n\n"
    + "".join(f"Phrase: {phrase}\nParaphrase: {paraphrase}\n\n" for phrase, paraphrase in EXAMPLES)
    + "Phrase: {phrase}\nParaphrase:"
)
"""The default prompt of language models that were not trained on pairs. The answer ends at the end of its line."""

PLACE = "{phrase}"


class PromptFormat:
    """A template with `{phrase}` in it. What is before the phrase is the prefix; the answer ends with its line.

    White space before the phrase belongs to the phrase's tokens, as most vocabularies have it.
    """

    segments: tuple[int, int] | None = None

    def __init__(self, tokenizer: Any, template: str = TEMPLATE) -> None:
        before, place, self._after = template.partition(PLACE)
        if not place:
            raise UserError(f"the prompt has no {PLACE}: it stands where the phrase goes")
        kept = before.rstrip(" ")
        self._space = before[len(kept) :]
        self._tokenizer = tokenizer
        self.prefix = (*tokenizer("")["input_ids"], *self._tokens(kept))
        self._begin, self._end = pair_tokens(tokenizer)

    def prompt(self, phrase: str) -> list[int]:
        return self._tokens(f"{self._space}{phrase}{self._after}")

    def answer(self, text: str) -> list[int]:
        return self._tokens(f" {text}\n")

    def alone(self, text: str) -> tuple[list[int], list[int]]:
        """After the beginning of a text; without an end, as texts go on."""
        return [self._begin], self._tokens(text)

    def length(self, phrase: str) -> int:
        return len(self._tokens(f" {phrase}"))

    def is_end(self, size: int) -> Bools:
        """The end of a text, and each token with a line break; what is before the break is part of the answer."""
        ends = np.zeros(size, bool)
        for number in range(min(size, len(self._tokenizer))):
            ends[number] = number == self._end or "\n" in self._tokenizer.decode([number])
        return ends

    def text(self, tokens: Sequence[int]) -> str:
        answer = self._tokenizer.decode(tokens, skip_special_tokens=True).strip().partition("\n")[0]
        return " ".join(answer.split())

    def _tokens(self, text: str) -> list[int]:
        found: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return found


TASK = "paraphrase: "
"""What Parrot's T5 reads before the phrase."""


class TaskFormat(PairFormat):
    """For sequence-to-sequence models: the encoder reads `TASK` and the phrase, the decoder writes the paraphrase."""

    def prompt(self, phrase: str) -> list[int]:
        return [*self._tokens(TASK + phrase), self._marks.end]

    def alone(self, text: str) -> tuple[list[int], list[int]]:
        raise NotImplementedError


def decoded(tokenizer: Any, tokens: Sequence[int]) -> str:
    """The text of tokens without special ones, and without white space at its ends and in a row."""
    return " ".join(tokenizer.decode(tokens, skip_special_tokens=True).split())
