"""Synonyms from WordNet: a word of a phrase, or several that are one lemma, replaced in the same form.

Phrases have no tags. A word's part of speech is the one that it has most often in WordNet's tagged texts, if its place
in the phrase allows that: the last word after "of" or "her" is a noun, the one before it a noun, adjective or adverb.
Where that is not sure, a word stays. Two words are synonyms if they share the senses that the first mostly has and the
second often has, so that neither is taken in a rare sense.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator, Set
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.arrays import I64, U64
from transforms.augmentation.inflection import FORMS, VOWEL_SOUND, Inflection
from transforms.augmentation.interface import Augmenter, pick
from transforms.augmentation.wordnet import (
    ADJECTIVE,
    ADVERB,
    NOUN,
    VERB,
    Member,
    Sense,
    WordNet,
    find_wordnet,
    identify,
    wordnet,
)
from transforms.phrases import lexicon

LEAST_OF_WORD, LEAST_OF_SYNONYM, LEAST_OF_PART = 0.5, 0.3, 0.8
"""How much of a word's occurrences in WordNet's tagged texts have senses that it shares with a synonym; how much of the
synonym's; how much of the word's have the part of speech."""

_UNTAGGED = 0.5
"""What is added to the occurrences of each sense."""

_LEAST_ALIKE = 0.8
"""The likeness of spellings from which on two words are one: "colour" and "color"."""

_LONGEST_LEMMA = 4
_CACHED = 1 << 16

FUNCTION_WORDS = frozenset().union(
    lexicon.DETERMINERS,
    lexicon.PRONOUNS,
    lexicon.NUMBER_WORDS,
    lexicon.VAGUE_NUMBERS,
    lexicon.CLITICS,
    lexicon.QUANTIFIERS,
    lexicon.AUXILIARIES,
    lexicon.ADVERBS,
    lexicon.DATE_WORDS,
    lexicon.UNITS,
    lexicon.ORDINALS,
)
_BEFORE_NOUN = lexicon.DETERMINERS | frozenset("my our your his its their of in at on by for from with into".split())
"""Function words after which no verb stands, but for one in -ing."""

_DEGREES = frozenset("very so too quite rather".split())

_NOT_SYNONYMS = (frozenset(("say", "tell")),)
"""Words that share a sense and no construction, in spite of what WordNet says."""

_WORD = re.compile(r"""(?P<open>["'(\[{]*)(?P<word>[a-z]+(?:-[a-z]+)*)(?P<rest>(?:'s|')?[^\w\s'-]*)""", re.IGNORECASE)
_LEMMA = re.compile(r"[a-z]+(?:[- ][a-z]+)*")


_ALONE, _FIRST, _SECOND = 1, 2, 4
"""What a word may be in some phrase: replaced alone; the first or the second word of a lemma that is replaced."""


class Word(NamedTuple):
    """A word of a phrase, from `start` to `end` of its token.

    `kind`: "content", "function" or "other" (a name, a number, what is no word). `ends`: the punctuation or 's that
    follows. `seconds`: its base forms that are the second word of a lemma; `after`: those that follow it in one;
    `after_shared`: those of lemmas that may have a synonym.
    """

    start: int
    end: int
    text: str
    kind: str
    ends: str
    capital: bool
    may: int = 0
    seconds: tuple[str, ...] = ()
    after: Set[str] = frozenset()
    after_shared: Set[str] = frozenset()
    upper: bool = False
    as_name: Word | None = None
    """The same word where its capitals make it a name."""


class Replaceable(NamedTuple):
    """A place in a phrase and what may stand there instead."""

    start: int
    end: int
    synonyms: tuple[str, ...]


class Synonym(Augmenter):
    """One word of content becomes a synonym of it."""

    def __init__(self) -> None:
        self._synonyms = Synonyms(wordnet())

    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        rows = self._synonyms.worth_a_look(phrases)
        texts, seeds = phrases.take(pa.array(rows)).to_pylist(), seeds[rows]
        found = [self._synonyms.replaceable(each) for each in texts]
        places = pick(seeds, 0, np.array([len(each) for each in found], np.int64)).tolist()
        chosen = [each[place] if each else None for each, place in zip(found, places, strict=True)]
        numbers = pick(seeds, 1, np.array([len(each.synonyms) if each else 0 for each in chosen], np.int64)).tolist()
        made = [
            text[: each.start] + each.synonyms[number] + text[each.end :] if each else None
            for text, each, number in zip(texts, chosen, numbers, strict=True)
        ]
        places_made = np.full(len(phrases), -1)
        places_made[rows] = np.arange(len(rows))
        return pa.array(made, pa.string()).take(pa.array(places_made, mask=places_made < 0))

    @classmethod
    def identity(cls, **options: Any) -> dict[str, Any]:
        version, sha256 = identify(find_wordnet())
        return {"operation": "synonym", "model": "WordNet", "model_version": version, "model_sha256": sha256}


class Synonyms:
    """The synonyms of words in a WordNet, cached by word."""

    def __init__(self, database: WordNet) -> None:
        self._database = database
        self._inflection = Inflection(database)
        tagged = (sense for part in FORMS for each in database.tagged(part) for sense in database.senses(each, part))
        shared = {each.lemma.lower() for sense in tagged if sense.occurrences for each in sense.members}
        # The second words of lemmas by the first; of all, and of those that may have a synonym.
        self._after: dict[str, set[str]] = {}
        self._after_shared: dict[str, set[str]] = {}
        for lemma in (each for part in FORMS for each in database.compounds(part)):
            first, second = lemma.split(" ", 2)[:2]
            for after in (self._after, self._after_shared) if lemma in shared else (self._after,):
                after.setdefault(first, set()).add(second)
        self._seconds = frozenset().union(*self._after.values())

    def worth_a_look(self, phrases: pa.StringArray) -> I64:
        """The rows of phrases in which something may be replaced, as their tokens say: a third of all."""
        split = pc.split_pattern(phrases, " ")
        tokens = split.values.dictionary_encode()
        codes, words = tokens.indices.to_numpy(), list(map(self._word, tokens.dictionary.to_pylist()))
        may = np.array([each.may for each in words], np.int64)[codes]
        worth = (may & _ALONE) > 0
        pairs = np.flatnonzero((may[:-1] & _FIRST > 0) & (may[1:] & _SECOND > 0))
        worth[pairs] |= np.fromiter(
            (
                not words[first].after_shared.isdisjoint(words[second].seconds)
                for first, second in zip(codes[pairs].tolist(), codes[pairs + 1].tolist(), strict=True)
            ),
            np.bool_,
        )
        return np.flatnonzero(np.logical_or.reduceat(worth, split.offsets.to_numpy()[:-1]))

    @functools.lru_cache(1 << 10)  # noqa: B019 (there is one object a process; the draws of a phrase come together)
    def replaceable(self, phrase: str) -> tuple[Replaceable, ...]:
        """What can be replaced in a phrase, from left to right."""
        tokens = phrase.split()
        words = list(map(self._word, tokens))
        if phrase != phrase.lower():
            # One capital letter, at the beginning, may be that of a sentence.
            named = sum(each.capital for each in words) > 1 or tokens == [phrase]
            words = [
                each.as_name if each.as_name and (named or place or each.upper) else each
                for place, each in enumerate(words)
            ]
        found = []
        place = 0
        while place < len(words):
            word = words[place]
            size = 1
            if place + 1 < len(words) and not word.after.isdisjoint(words[place + 1].seconds):
                size = self._lemma_size(words, place)
            last = place + size - 1
            fits = word.may & _ALONE if size == 1 else word.kind == "content"
            if fits and (synonyms := self._fitting(words, place, last)):
                start = _place(phrase, tokens, place) + word.start
                end = (_place(phrase, tokens, last) if size > 1 else start - word.start) + words[last].end
                shown = phrase[start:end]
                found.append(Replaceable(start, end, tuple(in_case_of(shown, each) for each in synonyms)))
            place += size
        return tuple(found)

    @functools.lru_cache(_CACHED)  # noqa: B019
    def _word(self, token: str) -> Word:
        """The word of a token, wherever that stands."""
        found = _WORD.fullmatch(token)
        if not found:
            # White space other than one space each parts words that are not looked at here.
            may = 0 if token.split() == [token] else _ALONE
            return Word(0, len(token), token.lower(), "other", ".", token[:1].isupper(), may)
        word, ends = found["word"], found["rest"]
        text = word.lower()
        kind = "function" if text in FUNCTION_WORDS or len(text) < 3 else "content"
        forms = {each for part in FORMS for each in self._database.base_forms(text, part, any_lemma=True)}
        begins = not ends and text not in lexicon.DETERMINERS
        after, after_shared = (
            frozenset().union(*(lemmas[each] for each in forms if begins and each in lemmas))
            for lemmas in (self._after, self._after_shared)
        )
        seconds = tuple(forms & self._seconds)
        may = _SECOND * bool(seconds)
        if kind == "content":
            may |= _FIRST * bool(after_shared)
            may |= _ALONE * any(self._synonyms_as(text, possible) for possible in _POSSIBLE)
        name = Word(*found.span("word"), text, "other", ends, token[0].isupper(), upper=word.isupper())
        return name._replace(
            kind=kind,
            may=may,
            seconds=seconds,
            after=after,
            after_shared=after_shared,
            as_name=name if word != text else None,
        )

    def _lemma_size(self, words: list[Word], place: int) -> int:
        """How many words from there on are one lemma: "young ladies", "took part", "of course"."""
        most = 1
        while most < min(_LONGEST_LEMMA, len(words) - place) and not words[place + most - 1].ends:
            if words[place + most].kind == "other":
                break
            most += 1
        for size in range(most, 1, -1):
            text = " ".join(each.text for each in words[place : place + size])
            if self._parts(text):
                return size
        return 1

    def _fitting(self, words: list[Word], place: int, last: int) -> tuple[str, ...]:
        """The synonyms that fit where the words stand."""
        if last > place and words[last].kind == "function":
            return ()  # "went to him" is not "attended him"
        text = " ".join(each.text for each in words[place : last + 1])
        wrong = "p" if last + 1 < len(words) and not words[last].ends and words[last + 1].kind != "function" else "a"
        article = words[place - 1].text if place and words[place - 1].text in lexicon.ARTICLES else ""
        return self._fitting_there(text, _possible_parts(words, place, last), wrong, article)

    @functools.lru_cache(_CACHED)  # noqa: B019
    def _fitting_there(self, text: str, possible: tuple[str, ...], wrong: str, article: str) -> tuple[str, ...]:
        """The synonyms of a word that are one of some parts of speech, without those of a place, after an article."""
        return tuple(
            each.lemma
            for each in self._synonyms_as(text, possible)
            if each.place not in (wrong, "ip")
            and (not article or bool(VOWEL_SOUND.match(each.lemma)) == (article == "an"))
        )

    def _synonyms_as(self, text: str, possible: tuple[str, ...]) -> tuple[Member, ...]:
        """The synonyms of a word as the part of speech that it has of those possible."""
        if self._is_name(text) or not (part := self._part(text, possible)):
            return ()
        return self._synonyms(text, part)

    @functools.lru_cache(_CACHED)  # noqa: B019
    def _is_name(self, text: str) -> bool:
        """Whether a word is also a name: phrases in lower case do not say which it is."""
        members = (each.lemma for sense in self._senses(text, NOUN) for each in sense.members)
        return any(each != text and each.lower() == text for each in members)

    def _part(self, text: str, possible: tuple[str, ...]) -> str:
        """The part of speech of a word, of those possible where it stands; empty where that is not sure."""
        parts = self._parts(text)
        if not (found := [part for part in possible if part in parts]):
            return ""
        best = max(found, key=lambda part: parts[part])
        if best == VERB and ADJECTIVE in parts:
            return ""  # "living beings"
        least = LEAST_OF_PART if len(possible) > 1 else LEAST_OF_SYNONYM
        return best if parts[best] >= least * sum(parts.values()) else ""

    @functools.lru_cache(_CACHED)  # noqa: B019
    def _parts(self, text: str) -> dict[str, float]:
        """The parts of speech of a word, weighted by its occurrences."""
        weights = {part: sum(self._lemmas(text, part).values()) for part in FORMS}
        return {part: weight for part, weight in weights.items() if weight}

    def _lemmas(self, text: str, part: str) -> dict[str, float]:
        """The lemmas of which a word is a form, weighted by their occurrences."""
        return {lemma: sum(_weights(self._senses(lemma, part))) for lemma in self._inflection.forms(text, part)}

    @functools.lru_cache(_CACHED)  # noqa: B019
    def _senses(self, lemma: str, part: str) -> tuple[Sense, ...]:
        return self._database.senses(lemma, part)

    @functools.lru_cache(_CACHED)  # noqa: B019
    def _synonyms(self, text: str, part: str) -> tuple[Member, ...]:
        """The synonyms of a word, in its form."""
        lemmas = self._lemmas(text, part)
        lemma = max(lemmas, key=lambda each: lemmas[each])
        if lemmas[lemma] < LEAST_OF_PART * sum(lemmas.values()):
            return ()
        forms = self._inflection.forms(text, part)[lemma]
        own = {self._inflection.inflect(lemma, part, form) for form in FORMS[part]}
        found: dict[str, Member] = {}
        for member in self._shared(lemma, part):
            made = {self._inflection.inflect(member.lemma, part, form) for form in forms}
            if len(made) == 1 and (form := made.pop()) and form not in own:
                found.setdefault(form, member._replace(lemma=form))
        return tuple(found.values())

    def _shared(self, lemma: str, part: str) -> Iterator[Member]:
        """The lemmas that share a lemma's commonest senses, and have few others."""
        senses = self._senses(lemma, part)
        antonyms = {each for sense in senses for each in sense.antonyms}
        shared: dict[str, list[Member]] = {}
        for sense in senses:
            this = next((each for each in sense.members if each.lemma.lower() == lemma), None)
            for member in sense.members:
                if (
                    this
                    and member is not this
                    and member.frames == this.frames
                    and self._usable(member.lemma, lemma, part)
                ):
                    shared.setdefault(member.lemma, []).append(member)
        for other, members in shared.items():
            others = self._senses(other, part)
            common = {each.synset for each in senses} & {each.synset for each in others}
            if (
                not antonyms & {each.synset for each in others}
                and sum(each.occurrences for each in others if each.synset in common) > 0
                and _share(senses, common) >= LEAST_OF_WORD
                and _share(others, common) >= LEAST_OF_SYNONYM
            ):
                yield members[0]

    def _usable(self, synonym: str, lemma: str, part: str) -> bool:
        """Whether a synonym is as plain a word as the lemma, mostly of that part of speech, and no other form of it."""
        if not _LEMMA.fullmatch(synonym) or synonym in FUNCTION_WORDS or {synonym, lemma} in _NOT_SYNONYMS:
            return False
        if any(sign in synonym and sign not in lemma for sign in " -"):
            return False
        if synonym.startswith(lemma[:-1]) or lemma.startswith(synonym[:-1]):
            return False
        if difflib.SequenceMatcher(None, synonym, lemma, autojunk=False).ratio() >= _LEAST_ALIKE:
            return False
        if synonym not in self._inflection.forms(synonym, part):
            return False  # a form of another lemma: "receipts"
        parts = self._parts(synonym)
        return parts[part] >= LEAST_OF_WORD * sum(parts.values())


def _place(phrase: str, tokens: list[str], number: int) -> int:
    """Where a token begins."""
    place = 0
    for each in tokens[:number]:
        place = phrase.index(each, place) + len(each)
    return phrase.index(tokens[number], place)


_AFTER_DEGREE, _LAST, _NO_VERB, _ANY = (ADJECTIVE, ADVERB), (NOUN,), (NOUN, ADJECTIVE, ADVERB), tuple(FORMS)
_POSSIBLE = (_AFTER_DEGREE, _LAST, _NO_VERB, _ANY)


def _possible_parts(words: list[Word], place: int, last: int) -> tuple[str, ...]:
    """The parts of speech that words can have by their place among the words of content around them."""
    first = place
    while first and words[first - 1].kind != "function" and not words[first - 1].ends:
        first -= 1
    ends = last + 1 == len(words) or words[last].ends or words[last + 1].kind == "function"
    before = words[first - 1].text if first else ""
    if before in _DEGREES and place == first:
        return _AFTER_DEGREE
    if before in _BEFORE_NOUN or (first and words[first - 1].ends.startswith("'")):
        return _LAST if ends else _NO_VERB
    if place > first:
        return _NO_VERB
    # Before another word of content, "mean" and "leading" may be a verb or not.
    return _ANY


def _weights(senses: tuple[Sense, ...]) -> list[float]:
    return [sense.occurrences + _UNTAGGED for sense in senses]


def _share(senses: tuple[Sense, ...], synsets: set[tuple[str, int]]) -> float:
    """How much of a word's occurrences have one of those senses."""
    weights = _weights(senses)
    return sum(weight for each, weight in zip(senses, weights, strict=True) if each.synset in synsets) / sum(weights)


def in_case_of(shown: str, text: str) -> str:
    if len(shown) > 1 and shown.isupper():
        return text.upper()
    return text[0].upper() + text[1:] if shown[0].isupper() else text
