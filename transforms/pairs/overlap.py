"""Pairs that share one word, as many negatives as positives by each word: PPDB-filtered (Phrase-BERT, section 4.1).

After Yu and Ettinger 2020: both phrases have two words, of letters, none of them of `FUNCTION_WORDS`; a positive shares
exactly one word; a negative has a phrase of a positive, and another phrase with the same word. So whether two phrases
share a word, and which, says nothing of their label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import xxhash

FUNCTION_WORDS = frozenset("and he she it has have to of him her they them is are am".split())
"""Words with which Yu and Ettinger take no phrase."""


def is_plain(phrase: str, words: int) -> bool:
    """Whether a phrase may be in the set: of so many words, all of letters and none a function word."""
    found = phrase.split(" ")
    return len(found) == words and all(each.isalpha() and each not in FUNCTION_WORDS for each in found)


def shared_word(one: str, other: str) -> str:
    """The word that two phrases share; empty if they share none, or several."""
    shared = {*one.split(" ")} & {*other.split(" ")}
    return shared.pop() if len(shared) == 1 else ""


def phrase_order(phrase: str, seed: int) -> tuple[int, str]:
    """The place of a phrase among those with a word."""
    return xxhash.xxh3_64_intdigest(phrase.encode(), seed=seed), phrase


class Match(NamedTuple):
    """A positive, by its number, and the other phrase of its negative; None if there is none."""

    positive: int
    negative: str | None


def matches(word: str, positives: Sequence[tuple[str, str]], phrases: Sequence[str], *, seed: int) -> list[Match]:
    """A negative for each positive that shares `word`: its phrase, and one of the phrases with that word.

    `phrases` are in order of hash. The negative is the first after a place that the hash of the positive says, in a
    circle, that shares exactly this word, and is no paraphrase of the phrase, also not through other positives; no pair
    is a negative twice. All positives of two of the phrases have to be given.
    """
    leader: dict[str, str] = {}

    def find(phrase: str) -> str:
        while (above := leader.get(phrase, phrase)) != phrase:
            leader[phrase] = leader.get(above, above)
            phrase = above
        return phrase

    for one, other in positives:
        leader[find(one)] = find(other)
    used: set[tuple[str, str]] = set()
    found = []
    for number, (phrase, paraphrase) in enumerate(positives):
        start = xxhash.xxh3_64_intdigest(f"match\0{phrase}\0{paraphrase}".encode(), seed=seed) % max(len(phrases), 1)
        own = find(phrase)
        negative = None
        for place in range(len(phrases)):
            other = phrases[(start + place) % len(phrases)]
            pair = (min(phrase, other), max(phrase, other))
            if pair not in used and find(other) != own and shared_word(phrase, other) == word:
                negative = other
                used.add(pair)
                break
        found.append(Match(number, negative))
    return found
