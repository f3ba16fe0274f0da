"""The filter for training pairs of Krishna, Wieting and Iyyer (2020), section 2.1: pairs of other words and order.

A pair stays if its common words stand in another order (Kendall's tau below 0), few of the paraphrase's words are the
phrase's (precision below 0.5), both have about as many words (at most 5 more), and both are English. The counting is
that of the paper's code: before tau and precision a text is put in lower case, and loses punctuation and the articles
"a", "an" and "the"; for the lengths it is divided at white space as it is.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache

from schemas.characters import Trait, traits
from transforms.paraphrase.options import TrainingPairRules

REASONS = ("length_difference", "precision", "same_order", "not_english")
"""Why a pair is filtered: the first of these that holds."""

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@lru_cache(1 << 12)
def normalised(text: str) -> tuple[str, ...]:
    """The words that tau and precision compare.

    >>> normalised("The king's, a  well-known MAN")
    ('kings', 'wellknown', 'man')
    """
    return tuple(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def precision(phrase: str, paraphrase: str) -> float:
    """The share of the paraphrase's words that are the phrase's; a word counts as often as the phrase has it.

    Two texts without words are 1, one text without them is 0, as in the paper's code.

    >>> precision("to be or not to be", "to be to be to be"), precision("the", "a"), precision("the", "man")
    (0.6666666666666666, 1.0, 0.0)
    """
    own, other = normalised(phrase), normalised(paraphrase)
    if not own and not other:
        return 1.0
    return sum((Counter(own) & Counter(other)).values()) / len(other) if other else 0.0


def kendall_tau(phrase: str, paraphrase: str) -> float:
    """How alike the order of common words is: 1 if equal, -1 if reversed, and -1 with fewer than two of them.

    A word that is there several times is matched from left to right: its first occurrence in the phrase with its first
    one in the paraphrase. So there are no ties. A text without a common order passes the filter, as in the paper's
    code.

    >>> kendall_tau("one two three", "three, two, one"), kendall_tau("one two", "two one two"), kendall_tau("a", "a")
    (-1.0, -1.0, -1.0)
    """
    places: dict[str, list[int]] = {}
    for place, word in enumerate(normalised(paraphrase)):
        places.setdefault(word, []).append(place)
    order = [found.pop(0) for word in normalised(phrase) if (found := places.get(word))]
    n = len(order)
    if n < 2:
        return -1.0
    before: list[int] = []
    inversions = 0
    for place in order:
        inversions += len(before) - bisect_left(before, place)
        insort(before, place)
    return 1 - 4 * inversions / (n * (n - 1))


def length_difference(phrase: str, paraphrase: str) -> int:
    """How many more words, divided by white space, the longer text has."""
    return abs(len(phrase.split()) - len(paraphrase.split()))


def latin(text: str) -> bool:
    """Whether all letters are Latin ones.

    >>> latin("Kraków 1795"), latin("Краков")
    (True, False)
    """
    return all(traits(each) & Trait.LATIN for each in text if traits(each) & Trait.LETTER)


def why_not(phrase: str, paraphrase: str, rules: TrainingPairRules, known: Callable[[str], float] | None = None) -> str:
    """Why a pair is no training pair, one of `REASONS`; empty if it is one.

    `known` is the share of a text's words that are known to be English (`Lexicon.known`): without it a text in Latin
    letters counts as English.
    """
    if length_difference(phrase, paraphrase) > rules.max_length_difference:
        return "length_difference"
    if precision(phrase, paraphrase) >= rules.max_precision:
        return "precision"
    if kendall_tau(phrase, paraphrase) >= rules.max_tau:
        return "same_order"
    texts = (phrase, paraphrase)
    if not all(map(latin, texts)) or (known and max(map(known, texts)) < rules.min_english):
        return "not_english"
    return ""


def training_pairs(
    pairs: Iterable[tuple[str, str]], rules: TrainingPairRules, known: Callable[[str], float] | None = None
) -> tuple[list[tuple[str, str]], Counter[str]]:
    """The pairs that stay, and how many were filtered for each reason."""
    kept, filtered = [], Counter[str]()
    for each in pairs:
        if reason := why_not(*each, rules, known):
            filtered[reason] += 1
        else:
            kept.append(each)
    return kept, filtered
