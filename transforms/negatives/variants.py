"""Whether two English phrases are variants of one: other spelling, hyphens, inflection or articles."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_ARTICLES = frozenset({"a", "an", "the"})
_AMERICAN = (
    (re.compile(r"(?<=..)our"), "or"),  # colour, neighbours
    (re.compile(r"(?<=...)(i|y)s(?=e|ing|at)"), r"\1z"),  # realise, analysing, organisation
    (re.compile(r"(?<=..[^aeiou])re(?=s?$)"), "er"),  # centre
    (re.compile(r"ogue(?=s?$)"), "og"),  # catalogue
    (re.compile(r"(?<=.)ae(?=..)"), "e"),  # archaeology
    (re.compile(r"(?<=..[aeiou])ll(?=ers?$)"), "l"),  # traveller
    (re.compile(r"^grey"), "gray"),
)
_SIBILANT = re.compile(r"(?:s|x|z|ch|sh|.o)es$")
_ONE_SYLLABLE = re.compile(r"[^aeiouy]*[aeiouy][^aeiouwxy]")


def is_variant(one: str, other: str) -> bool:
    """Whether two phrases have the same letters and digits, or the same words but for articles, endings and spelling.

    >>> [is_variant("e-mail", "email"), is_variant("the old man's hopes", "old man hoped"), is_variant("hop", "hope")]
    [True, True, False]
    """
    letters, words = _parts(one)
    other_letters, other_words = _parts(other)
    if letters == other_letters:
        return True
    return len(words) == len(other_words) > 0 and not any(map(frozenset.isdisjoint, words, other_words))


@lru_cache(maxsize=1 << 16)
def _parts(phrase: str) -> tuple[str, tuple[frozenset[str], ...]]:
    """The letters and digits of a phrase without diacritics; and what each word, but for articles, may be a form of."""
    folded = unicodedata.normalize("NFKD", phrase.casefold())
    plain = "".join(char for char in folded if not unicodedata.combining(char))
    words = _WORD.findall(plain)
    return "".join(words) or plain, tuple(forms(each) for each in words if each not in _ARTICLES)


@lru_cache(maxsize=1 << 16)
def forms(word: str) -> frozenset[str]:
    """The words, in American spelling, of which a word may be a regular form (plural, 's, -s, -ed, -ing); and itself.

    >>> sorted(forms("hoping")), sorted(forms("visits")), sorted(forms("king"))
    (['hope', 'hoping'], ['visit', 'visits'], ['king'])
    """
    word = re.sub(r"['\u2019]s?$", "", word)
    for pattern, by in _AMERICAN:
        word = pattern.sub(by, word)
    return frozenset({word, *_without_ending(word)})


def _without_ending(word: str) -> Iterator[str]:
    if word.endswith("ies") and len(word) > 4:
        yield word[:-3] + "y"
    elif _SIBILANT.search(word):
        yield word[:-2]
        yield word[:-1]
    elif re.search(r"..[^sui]s$", word):
        yield word[:-1]
    found = re.fullmatch(r"(.*[aeiouy].*)(?:(?<!e)ed|ing)", word)
    if not found:
        return
    stem = found[1]
    yield stem + "e"
    if not _ONE_SYLLABLE.fullmatch(stem):  # hoped is not of hop, but visited is of visit
        yield stem
    if stem[-1] == stem[-2:-1]:
        yield stem[:-1]
    if stem.endswith("i"):
        yield stem[:-1] + "y"
