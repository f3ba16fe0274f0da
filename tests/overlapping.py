"""Overlaps with evaluation texts by brute force."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence

from transforms.decontamination.options import OverlapRules


@functools.lru_cache(1 << 12)
def words(text: str) -> list[str]:
    text = re.sub(r" (n['\u2019]t)\b", r"\1", unicodedata.normalize("NFC", text).lower())
    return "".join(each if unicodedata.category(each)[0] in "LMN" else " " for each in text).split()


def without_article(found: list[str]) -> list[str]:
    return found[1:] if found[:1] in (["a"], ["an"], ["the"]) else found


def have_overlap(evaluation: str, text: str, rules: OverlapRules) -> bool:
    one, other = words(evaluation), words(text)
    pieces = [each for each in evaluation.split(" ") if words(each)]
    if len(pieces) < rules.min_words or not any(map(str.isalpha, evaluation)):
        return False
    n, whole = rules.shared_words, without_article(one)
    is_long = len(pieces) - (len(one) - len(whole)) >= rules.min_words
    if whole and is_long and whole == without_article(other):
        return True
    runs = {tuple(one[at : at + n]) for at in range(len(one) - n + 1)}
    return any(tuple(other[at : at + n]) in runs for at in range(len(other) - n + 1))


def is_known(evaluation: Sequence[str], text: str, rules: OverlapRules) -> bool:
    return any(have_overlap(each, text, rules) for each in evaluation)
