"""What fools an embedding: candidates that say the contrary, or something beside it, or in another form.

"few years" is near to "few months", "esoteric" to "exoteric", "the king" to "kings". WordNet tells of two words whether
they are contrary, or sisters: both kinds of one thing. Affixes alone tell of some that they are contrary.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from transforms.augmentation.inflection import FORMS, Inflection
from transforms.augmentation.wordnet import ADJECTIVE, NOUN, VERB, Key, Sense, WordNet
from transforms.paraphrase.words import content_words, word_forms, words

_CACHED = 1 << 16
_LEAST_OF_WORD = 0.2
"""How much of a word's occurrences have a sense that counts."""
_UNTAGGED = 0.5
"""What is added to the occurrences of each sense."""

_DENIALS = frozenset("not no never none nor neither without nobody nothing nowhere cannot unable hardly".split())
_SHORT_NOT = re.compile(r"n['\u2019]t\b")
_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "mis")
_PREPOSITIONS = frozenset("of in at on by for to with from into about against between under over as than that".split())
_MORE, _MOST = frozenset("more less".split()), frozenset("most least".split())


class _Meanings(NamedTuple):
    """What a word may mean as one part of speech: its common synsets, all of them, what is above the common ones and
    above all, what is similar, what is contrary.
    """

    common: frozenset[Key]
    all: frozenset[Key]
    above: frozenset[Key]
    broader: frozenset[Key]
    similar: frozenset[Key]
    antonyms: frozenset[Key]


class Contrasts:
    """What is contrary by a WordNet, or (None) by affixes alone."""

    def __init__(self, database: WordNet | None) -> None:
        self._database = database
        self._inflection = Inflection(database) if database else None

    def denies(self, phrase: str, candidate: str) -> bool:
        """Whether one text denies what the other says: one word of contrary meaning or "not" does, two do not.

        >>> by_affixes = Contrasts(None)
        >>> by_affixes.denies("likely case", "unlikely event"), by_affixes.denies("not likely", "unlikely")
        (True, False)
        """
        pairs = [(one, other) for one in content_words(phrase) for other in content_words(candidate)]
        found = sum(self.contrary(one, other) for one, other in pairs)
        for text in (phrase, candidate):
            found += sum(each in _DENIALS for each in words(text)) + len(_SHORT_NOT.findall(text.lower()))
        return found % 2 == 1

    def contrary(self, one: str, other: str) -> bool:
        """Whether two words are of contrary meaning."""
        if one == other:
            return False
        return _opposite(one, other) or self._antonyms(*sorted((one, other)))

    def sisters(self, phrase: str, candidate: str) -> bool:
        """Whether a noun of the candidate is beside one of the phrase: both are kinds of one thing, and of no other
        word of the phrase it is a synonym or a broader or narrower word.
        """
        if not self._database:
            return False
        own = content_words(phrase)
        return any(
            any(self._related(one, other) == "sister" for one in own)
            and not any(self._related(one, other) == "kin" for one in own)
            for other in content_words(candidate)
        )

    @lru_cache(_CACHED)  # noqa: B019 (there is one object a process)
    def _antonyms(self, one: str, other: str) -> bool:
        for part in FORMS:
            a, b = self._meanings(one, part), self._meanings(other, part)
            if not a or not b or a.all & b.all:
                continue
            around_a, around_b = a.common | a.similar, b.common | b.similar
            if (a.antonyms & around_b or b.antonyms & around_a) and not around_a & around_b:
                return True
        return False

    @lru_cache(_CACHED)  # noqa: B019
    def _related(self, one: str, other: str) -> str:
        """ "kin" if one is a synonym of the other, or broader; "sister" if both have one broader word; else empty."""
        found = ""
        for part in FORMS:
            a, b = self._meanings(one, part), self._meanings(other, part)
            if not a or not b:
                continue
            if a.all & b.all or a.broader & b.all or b.broader & a.all:
                return "kin"
            if part == NOUN and a.above & b.above:
                found = "sister"
        return found

    @lru_cache(_CACHED)  # noqa: B019
    def _meanings(self, word: str, part: str) -> _Meanings | None:
        if not self._database:
            return None
        senses: list[Sense] = []
        for lemma in self._inflection.forms(word, part) if self._inflection else ():
            senses += self._database.senses(lemma, part)
        if not senses:
            return None
        weights = [each.occurrences + _UNTAGGED for each in senses]
        common = [
            each for each, weight in zip(senses, weights, strict=True) if weight >= _LEAST_OF_WORD * sum(weights)
        ] or senses[:1]
        similar = frozenset(key for each in common for key in each.similar)
        antonyms = frozenset(key for each in common for key in each.antonyms)
        return _Meanings(
            frozenset(each.synset for each in common),
            frozenset(each.synset for each in senses),
            frozenset(key for each in common for key in each.broader),
            frozenset(key for each in senses for key in each.broader),
            similar,
            antonyms | frozenset(key for each in similar for key in self._antonyms_of(each)),
        )

    @lru_cache(_CACHED)  # noqa: B019
    def _antonyms_of(self, synset: Key) -> tuple[Key, ...]:
        return self._database.antonyms(synset) if self._database else ()


def other_form(phrase: str, candidate: str, label: str) -> bool:
    """Whether the candidate's head is no noun (of NP and PP) or verb (of VP) where the phrase's is one, or has another
    number, tense or degree (of ADJP and ADVP), as far as the forms of both say.

    >>> other_form("their debates", "their argument", "NP"), other_form("went home", "goes back", "VP")
    (True, True)
    >>> other_form("larger", "big", "ADJP"), other_form("sheep", "ewes", "NP"), other_form("of energy", "of hot", "PP")
    (True, False, True)
    """
    if label == "PP":
        phrase, candidate = (" ".join(words(each)[1:]) for each in (phrase, candidate))
    if label in ("NP", "PP"):
        return _apart(_head(phrase), _head(candidate), NOUN)
    if label == "VP":
        return _apart(_first(phrase), _first(candidate), VERB)
    return label in ("ADJP", "ADVP") and _degree(phrase) != _degree(candidate)


def _apart(one: str, other: str, part: str) -> bool:
    own, others = word_forms().forms(one, part), word_forms().forms(other, part)
    if own and not others:
        return any(word_forms().forms(other, each) for each in FORMS)
    return bool(own) and frozenset(own).isdisjoint(others)


def _degree(text: str) -> str:
    found = frozenset(words(text))
    if found & _MOST or any(word_forms().forms(each, ADJECTIVE) == ["est"] for each in found):
        return "est"
    return "er" if found & _MORE or any(word_forms().forms(each, ADJECTIVE) == ["er"] for each in found) else "plain"


@lru_cache(_CACHED)
def _opposite(one: str, other: str) -> bool:
    """Whether an affix makes one word the contrary of the other."""
    short, long = sorted((one, other), key=len)
    if len(short) < 4:
        return False
    if any(long == prefix + short for prefix in _PREFIXES):
        return True
    return short.endswith(("ful", "less")) and {one, other} == {
        short.removesuffix("ful").removesuffix("less") + ending for ending in ("ful", "less")
    }


def _head(phrase: str) -> str:
    """The word that is the head of a noun phrase: the last before a preposition."""
    found = words(phrase)
    for place, word in enumerate(found):
        if place and word in _PREPOSITIONS:
            return found[place - 1]
    return found[-1] if found else ""


def _first(phrase: str) -> str:
    found = words(phrase)
    return found[0] if found else ""
