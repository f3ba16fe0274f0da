"""What tells of a candidate, by its text alone, whether it is a paraphrase of a phrase: pure functions of both.

What is about meanings and forms is in `contrasts.py`; `scoring.py` has what needs a model, and puts all together.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.characters import edit_similarity
from transforms.augmentation.inflection import FORMS, VOWEL_SOUND
from transforms.paraphrase.words import STOPWORDS, content_words, word_forms, words

_CACHED = 1 << 16
_TOKEN = re.compile(r"\d[\d.,]*\d|[^\W_]+")
_ARTICLE = re.compile(r"\b(an?)\s+(\w+)", re.IGNORECASE)
_MARK = re.compile(r"[^\w\s'\u2019-]|_")


def near_copy(phrase: str, candidate: str) -> float:
    """How much the words of content are alike in letters, from 0 to 1; texts of stop words are compared whole.

    >>> near_copy("the colours of it", "its colors"), near_copy("a big house", "the large home") < 0.6
    (0.9230769230769231, True)
    """
    one, other = content_words(phrase), content_words(candidate)
    if not one or not other:
        one, other = words(phrase), words(candidate)
    return edit_similarity(" ".join(one), " ".join(other))


def near_word(phrase: str, candidate: str) -> float:
    """How much another word of content of the candidate is at most alike one of the phrase in letters, from 0 to 1.

    >>> near_word("the destruction", "the destructive") > 0.8, near_word("old regime", "the old order") < 0.6
    (True, True)
    """
    pairs = itertools.product(content_words(phrase), content_words(candidate))
    return max((edit_similarity(*each) for each in pairs if each[0] != each[1]), default=0.0)


def length_ratio(phrase: str, candidate: str) -> float:
    """How many times as many words the longer one has.

    >>> length_ratio("in a short time", "soon"), length_ratio("soon", "...")
    (4.0, inf)
    """
    short, long = sorted((len(words(phrase)), len(words(candidate))))
    return long / short if short else math.inf


def marks(phrase: str, candidate: str) -> bool:
    """Whether a candidate has a mark that the phrase lacks: punctuation inside or at its ends.

    >>> marks("my position", "my stand,"), marks("u.s. army", "american army."), marks("a king", "a well-known king")
    (True, False, False)
    """
    return not frozenset(_MARK.findall(phrase)).issuperset(_MARK.findall(candidate))


def wrong_article(text: str) -> bool:
    """Whether "a" stands before a vowel, or "an" before a consonant.

    >>> wrong_article("find a opportunity"), wrong_article("for an hour"), wrong_article("such a union")
    (True, False, False)
    """
    return any((article.lower() == "an") != bool(VOWEL_SOUND.match(word)) for article, word in _ARTICLE.findall(text))


def repeats(said: str, candidate: str) -> bool:
    """Whether a candidate has no word of content but those of what was said.

    >>> repeats("terrible danger, dreadful risk", "terrible risk"), repeats("soft, gentle", "gorgeous")
    (True, False)
    """
    return frozenset(content_words(said)).issuperset(content_words(candidate))


# ---- Words that are known


class Lexicon:
    """The words that are known to be English, and how common each is.

    They are those of the phrases of a corpus, each with its number of occurrences, and the forms of the lemmas that
    the base install has (`words.py`).
    """

    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts
        self._all = max(sum(counts.values()), 1)

    @classmethod
    def of_phrases(cls, phrases: pa.Array, occurrences: pa.Array) -> Lexicon:
        """The words of phrases, parted by spaces, with the occurrences of those."""
        split = pc.split_pattern(phrases, " ")
        tokens = split.flatten().dictionary_encode()
        counts = np.repeat(occurrences.to_numpy(), np.diff(split.offsets.to_numpy()))
        totals = np.bincount(tokens.indices.to_numpy(), counts, len(tokens.dictionary)).astype(np.int64)
        found: Counter[str] = Counter()
        for token, total in zip(tokens.dictionary.to_pylist(), totals.tolist(), strict=True):
            for word in words(token):
                found[word] += total
        return cls(dict(found))

    def known(self, text: str) -> float:
        """The share of a text's words that are known; those of digits and stop words are."""
        found = [self._knows(each) for each in words(text)]
        return sum(found) / len(found) if found else 0.0

    def commonness(self, text: str) -> float:
        """How common the rarest word of content is: its occurrences of ten million on a scale of logarithms, 0 to 1.

        A word that occurs once in ten million is 0, "time" about 0.6; a text of stop words is 1.
        """
        rarest = min((self._counts.get(each, 0) for each in content_words(text)), default=self._all)
        return min(max(math.log10((rarest + 0.1) / self._all * 1e7) / 7, 0.0), 1.0)

    def _knows(self, word: str) -> bool:
        if word in self._counts or word in STOPWORDS or any(map(str.isdigit, word)):
            return True
        return any(word_forms().forms(word, part) for part in FORMS)


# ---- Numbers and names

_SMALL = {word: number for number, word in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen".split()
)}  # fmt: skip
_SMALL |= {
    word: 10 * number for number, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}
_SMALL |= {word: number for number, word in enumerate(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth".split(), 1
)}  # fmt: skip
_SMALL |= {word[:-1] + "ieth": number for word, number in list(_SMALL.items()) if word.endswith("ty")}
_SMALL |= {word + "s": number for word, number in list(_SMALL.items()) if word.endswith("ty")}
_SMALL["dozen"] = _SMALL["dozens"] = 12
_LARGE = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_LARGE |= {word + ending: number for word, number in list(_LARGE.items()) for ending in ("s", "th")}
_ROMAN = {word: number for number, word in enumerate("ii iii iv".split(), 2)} | {"vi": 6, "vii": 7, "viii": 8, "ix": 9}
_ROMAN |= {"xi": 11, "xii": 12, "xiii": 13, "xiv": 14, "xv": 15, "xvi": 16, "xvii": 17, "xviii": 18, "xix": 19}
_DIGITS = re.compile(r"(\d[\d.,]*?)(?:st|nd|rd|th|s|bn|m|k)?")
_NOT_COUNTED = frozenset(("one", "ones", "first"))
"""Words that mostly are no numbers: "the first to come", "one of those"."""


@lru_cache(_CACHED)
def numbers(text: str) -> tuple[float, ...]:
    """The numbers in a text, in order of size: written in digits, in words, as ordinals, in Roman numerals.

    >>> numbers("the 11th century"), numbers("eleventh century"), numbers("two hundred and five"), numbers("part iv")
    ((11.0,), (11.0,), (205.0,), (4.0,))
    """
    found: list[float] = []
    whole, part, inside = 0.0, 0.0, False
    tokens = [*_TOKEN.findall(text.lower()), ""]
    for place, word in enumerate(tokens):
        digits = _DIGITS.fullmatch(word)
        if digits and (number := _parsed(digits[1])) is not None:
            if inside:
                found.append(whole + part)
            whole, part, inside = 0.0, number, True
        elif word in _LARGE:
            part = max(part, 1.0) * _LARGE[word]
            if _LARGE[word] > 100:
                whole, part = whole + part, 0.0
            inside = True
        elif word in _SMALL and not (word in _NOT_COUNTED and not inside and tokens[place + 1] not in _LARGE):
            if inside and part % 100 and not (part % 10 == 0 and part % 100 >= 20 and _SMALL[word] < 10):
                found.append(whole + part)
                whole, part = 0.0, 0.0
            part, inside = part + _SMALL[word], True
        elif word == "and" and inside and tokens[place + 1] in _SMALL and part % 100 == 0:
            pass
        else:
            if inside:
                found.append(whole + part)
            whole, part, inside = 0.0, 0.0, False
            if word in _ROMAN and place:
                found.append(float(_ROMAN[word]))
    return tuple(sorted(found))


def _parsed(digits: str) -> float | None:
    try:
        return float(digits.replace(",", ""))
    except ValueError:
        return None


def lacks_name(candidate: str, names: Iterable[str]) -> bool:
    """Whether a candidate lacks a name, or a word of one.

    >>> lacks_name("realms of england", ["England"]), lacks_name("joined arabian lands", ["united arab emirates"])
    (False, True)
    """
    own = frozenset(words(candidate))
    return any(not own.issuperset(words(each)) for each in names)


def duplicates(owner: Sequence[int], candidates: Sequence[str]) -> list[bool]:
    """[m] whether the same phrase has the candidate before: the same words."""
    seen: set[tuple[int, tuple[str, ...]]] = set()
    found = []
    for each, text in zip(owner, candidates, strict=True):
        key = each, tuple(words(text))
        found.append(key in seen)
        seen.add(key)
    return found
