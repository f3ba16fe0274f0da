"""Whether two English phrases are variants of one: other spelling, hyphens, inflection or articles."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_ARTICLES = frozenset({"a", "an", "the"})
_SPELLINGS = (
    (re.compile(r"(?<=..)our"), "or"),  # colour, neighbours
    (re.compile(r"(?<=...)(i|y)s(?=e|ing|at)"), r"\1z"),  # realise, analysing, organisation
    (re.compile(r"(?<=..[^aeiou])re(?=s?$)"), "er"),  # centre
    (re.compile(r"ogue(?=s?$)"), "og"),  # catalogue
    (re.compile(r"(?<=.)ae(?=..)"), "e"),  # archaeology
    (re.compile(r"^grey"), "gray"),
)
_ENDING = re.compile(r"(?<=[aeiouy])(.*?)(?:(?<!e)ed|ing)$")


def is_variant(one: str, other: str) -> bool:
    """Whether two phrases have the same letters and digits, or the same words but for articles and endings.

    >>> [is_variant("e-mail lists", "the email list"), is_variant("four", "for")]
    [True, False]
    """
    return any(map(str.__eq__, _bare(one), _bare(other)))


@lru_cache(maxsize=1 << 16)
def _bare(phrase: str) -> tuple[str, str]:
    """The letters and digits of a phrase without diacritics; and those of its stems without articles."""
    folded = unicodedata.normalize("NFKD", phrase.casefold())
    plain = "".join(char for char in folded if not unicodedata.combining(char))
    words = _WORD.findall(plain)
    # A phrase of signs alone stays as it is.
    return "".join(words) or plain, "".join(map(stem, [each for each in words if each not in _ARTICLES])) or plain


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """A word without its regular ending (plural, 's, -ed, -ing), in American spelling; not always a word.

    >>> [stem(each) for each in ("colours", "travelling", "hoped", "parties", "realised", "bus", "king")]
    ['color', 'travel', 'hop', 'party', 'realiz', 'bus', 'king']
    """
    word = re.sub(r"['\u2019]s?$", "", word)
    for pattern, by in _SPELLINGS:
        word = pattern.sub(by, word)
    if re.search(r"..ies$", word):
        word = word[:-3] + "y"
    elif re.search(r"(?:s|x|z|ch|sh|..o)es$", word):
        word = word[:-2]
    elif re.search(r"..[^sui]s$", word):
        word = word[:-1]
    if len(word) > 4 or word.endswith("ed"):
        word = _ENDING.sub(r"\1", word)
    word = re.sub(r"(?<=.)e$", "", word)
    return re.sub(r"([^aeious])\1$", r"\1", word)
