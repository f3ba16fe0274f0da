"""nlpaug's augmenters of letters. Each changes one token: the others are not shown to nlpaug, which would join them.

nlpaug draws from the generators of `random` and NumPy; they are seeded for each row, and restored.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from schemas.errors import UserError
from transforms.arrays import U64
from transforms.augmentation.interface import Augmenter, pick

_ONE_TOKEN = {"tokenizer": lambda text: [text], "reverse_tokenizer": "".join}


class _Nlpaug(Augmenter):
    """One token with two letters or more, and no digit, is changed."""

    operation: ClassVar[str]

    def __init__(self) -> None:
        self._augmenter = self._load()

    @abstractmethod
    def _load(self) -> Any:
        """nlpaug's augmenter, for texts of one token."""

    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        tokens = [each.split(" ") for each in phrases.to_pylist()]
        places = [[place for place, token in enumerate(each) if _is_word(token)] for each in tokens]
        chosen = pick(seeds, 0, np.array([len(each) for each in places], np.int64)).tolist()
        states = random.getstate(), np.random.get_state()
        try:
            made = [self._one(*each) for each in zip(tokens, places, chosen, seeds.tolist(), strict=True)]
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])
        return pa.array(made, pa.string())

    def _one(self, tokens: list[str], places: list[int], chosen: int, seed: int) -> str | None:
        """The phrase with one token changed: the chosen one, or the first after it that nlpaug has something for."""
        random.seed(seed)
        np.random.seed(seed & 0xFFFFFFFF)
        for place in places[chosen:] + places[:chosen]:
            made = self._augmenter.augment(tokens[place])
            token = "".join(made)  # a list of one text, or of none
            if tokens[place].islower():
                token = token.lower()  # of "man" people make "Mom"
            if token and token.lower() != tokens[place].lower() and not any(map(str.isspace, token)):
                return " ".join((*tokens[:place], token, *tokens[place + 1 :]))
        return None

    @classmethod
    def identity(cls, **options: Any) -> dict[str, Any]:
        try:
            return {"operation": cls.operation, "libraries": {"nlpaug": version("nlpaug")}}
        except PackageNotFoundError as error:
            raise UserError(f"--operations {cls.operation}: needs nlpaug: pip install 'phrasemill[augment]'") from error


class Keyboard(_Nlpaug):
    """One letter becomes one beside it on an American keyboard."""

    operation = "nlpaug_keyboard"

    def _load(self) -> Any:
        from nlpaug.augmenter.char import KeyboardAug

        plain = {"include_special_char": False, "include_numeric": False, "include_upper_case": False}
        return KeyboardAug(aug_char_min=1, aug_char_max=1, aug_word_max=1, min_char=1, **plain, **_ONE_TOKEN)


class Ocr(_Nlpaug):
    """One character becomes another that a scanner takes it for."""

    operation = "nlpaug_ocr"

    def _load(self) -> Any:
        from nlpaug.augmenter.char import OcrAug

        return OcrAug(aug_char_min=1, aug_char_max=1, aug_word_max=1, min_char=1, **_ONE_TOKEN)


class Spelling(_Nlpaug):
    """One word becomes a misspelling of it that people made."""

    operation = "nlpaug_spelling"

    def _load(self) -> Any:
        from nlpaug.augmenter.word.spelling import SpellingAug

        return SpellingAug(aug_min=1, aug_max=1, **_ONE_TOKEN)


def _is_word(token: str) -> bool:
    return sum(map(str.isalpha, token)) > 1 and not any(map(str.isdigit, token))
