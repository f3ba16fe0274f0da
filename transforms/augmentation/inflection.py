"""The forms of English words: which form of a lemma a word is, and that form of another lemma.

Rules for what is regular, WordNet's exception lists for plurals, comparatives and doubled consonants, and a table of
irregular verbs, because those lists do not tell the past tense from the participle. A word is a form of a lemma only
if the rules make it from the lemma: what they cannot make is not changed either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from transforms.augmentation.wordnet import ADJECTIVE, ADVERB, NOUN, VERB

FORMS = {
    NOUN: ("singular", "plural"),
    VERB: ("base", "s", "past", "participle", "ing"),
    ADJECTIVE: ("plain", "er", "est"),
    ADVERB: ("plain", "er", "est"),
}
"""The forms of each part of speech; the first is the lemma."""

_IRREGULAR_VERBS = """
    abide abode, arise arose arisen, awake awoke awoken, be was been, bear bore borne, beat beat beaten, become became
    become, befall befell befallen, beget begot begotten, begin began begun, behold beheld, bend bent, beseech besought,
    beset beset, bet bet, bid bade bidden, bind bound, bite bit bitten, bleed bled, blow blew blown, break broke broken,
    breed bred, bring brought, broadcast broadcast, build built, burst burst, buy bought, cast cast, catch caught,
    choose chose chosen, cling clung, come came come, cost cost, creep crept, cut cut, deal dealt, dig dug, do did done,
    draw drew drawn, drink drank drunk, drive drove driven, dwell dwelt, eat ate eaten, fall fell fallen, feed fed, feel
    felt, fight fought, find found, flee fled, fling flung, fly flew flown, forbid forbade forbidden, forecast forecast,
    foresee foresaw foreseen, forget forgot forgotten, forgive forgave forgiven, forgo forwent forgone, forsake forsook
    forsaken, freeze froze frozen, get got, give gave given, go went gone, grind ground, grow grew grown, hang hung,
    have had, hear heard, hide hid hidden, hit hit, hold held, hurt hurt, keep kept, kneel knelt, know knew known, lay
    laid, lead led, leave left, lend lent, let let, lie lay lain, light lit, lose lost, make made, mean meant, meet met,
    mislay mislaid, mislead misled, mistake mistook mistaken, misunderstand misunderstood, outdo outdid outdone, outgrow
    outgrew outgrown, outrun outran outrun, overcome overcame overcome, overhear overheard, overlay overlaid, override
    overrode overridden, overrun overran overrun, oversee oversaw overseen, overtake overtook overtaken, overthrow
    overthrew overthrown, partake partook partaken, pay paid, prove proved proven, put put, quit quit, read read,
    rebuild rebuilt, remake remade, rend rent, repay repaid, rethink rethought, rewrite rewrote rewritten, rid rid, ride
    rode ridden, ring rang rung, rise rose risen, run ran run, saw sawed sawn, say said, see saw seen, seek sought, sell
    sold, send sent, set set, sew sewed sewn, shake shook shaken, shed shed, shine shone, shoot shot, show showed shown,
    shrink shrank shrunk, shut shut, sing sang sung, sink sank sunk, sit sat, slay slew slain, sleep slept, slide slid,
    sling slung, slink slunk, slit slit, smite smote smitten, sow sowed sown, speak spoke spoken, speed sped, spend
    spent, spin spun, spit spat, split split, spread spread, spring sprang sprung, stand stood, steal stole stolen,
    stick stuck, sting stung, stink stank stunk, strew strewed strewn, stride strode stridden, strike struck, string
    strung, strive strove striven, swear swore sworn, sweep swept, swell swelled swollen, swim swam swum, swing swung,
    take took taken, teach taught, tear tore torn, tell told, think thought, throw threw thrown, thrust thrust, tread
    trod trodden, undergo underwent undergone, underlie underlay underlain, understand understood, undertake undertook
    undertaken, underwrite underwrote underwritten, undo undid undone, unwind unwound, uphold upheld, upset upset, wake
    woke woken, wear wore worn, weave wove woven, weep wept, win won, wind wound, withdraw withdrew withdrawn, withhold
    withheld, withstand withstood, wring wrung, write wrote written
"""
_IRREGULAR = {
    lemma: (past, (rest or [past])[0]) for lemma, past, *rest in (each.split() for each in _IRREGULAR_VERBS.split(","))
}
"""The past tense and the participle of each irregular verb."""

_INVARIANT = frozenset(
    """
    aircraft bison cod deer elk fish headquarters hovercraft means moose offspring pike salmon series sheep shrimp
    spacecraft species squid swine trout watercraft
    """.split()
)
"""Nouns whose plural is the same."""

_NOT_MEN = ("human", "german", "roman", "norman", "ottoman", "shaman", "talisman", "brahman", "caiman", "cayman")
"""Nouns in -man whose plural is regular."""

_REGULAR_PLURALS = frozenset(
    """
    alkali antenna aorta auditorium ban bandit beef brother bureau bus camera colon coma commando concerto crescendo cry
    dogma dwarf formula gas genius ghetto halo halter hoof lustre momentum motto no pea persona referendum retina salvo
    scarf solo soprano stadium stamen taxi tempo tobacco torso trachea turf vacuum virtuoso
    """.split()
)
"""Nouns whose usual plural is regular, beside the one in WordNet's list."""

_PREPOSITIONS = frozenset("of in at on by for to with from".split())
_SIBILANT = re.compile(r"(?:s|x|z|ch|sh)$")
_HARD_CH = re.compile(
    r"(?:(?:mon|patri|matri|olig|hier|ethn|ep|ex)arch|stomach|epoch|eunuch|loch|tech|czech|[dr]iptych)$"
)
"""Words whose "ch" is a "k": their plural is regular."""
_CONSONANT_Y = re.compile(r"[^aeiou]y$")
_VOWELS = re.compile(r"[aeiouy]+")

VOWEL_SOUND = re.compile(
    r"(?!eu|uni(?![dmns])|us[eu]|u\b|u[bt][io]|one\b|once)[aeiou]|honou?r|honest|hour|heir|8|11\b|18\b", re.IGNORECASE
)
"""How a word begins before which "an" stands."""


class Lemmas(Protocol):
    """The lemmas of each part of speech, and the irregular forms: a WordNet, or what it has of these."""

    @property
    def exceptions(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]: ...

    def has(self, lemma: str, pos: str) -> bool: ...

    def base_forms(self, word: str, pos: str, *, any_lemma: bool = False) -> list[str]: ...


class Inflection:
    """Forms by the rules, the tables and a WordNet's exceptions."""

    def __init__(self, database: Lemmas) -> None:
        self._database = database
        self._irregular = {pos: _by_base(database.exceptions[pos]) for pos in FORMS}

    def forms(self, word: str, pos: str) -> dict[str, frozenset[str]]:
        """The lemmas of which a word, or several with spaces, is a form, and the forms that it is of each."""
        words = word.split(" ")
        place = _inflected(words, pos)
        before, after = words[:place], words[place + 1 :]
        found = {}
        for base in self._database.base_forms(words[place], pos, any_lemma=len(words) > 1):
            lemma = " ".join((*before, base, *after))
            forms = frozenset(form for form in FORMS[pos] if words[place] in self._variants(base, pos, form))
            if forms and self._database.has(lemma, pos):
                found[lemma] = forms
        base = FORMS[pos][0]
        if pos != VERB and any(base not in forms for forms in found.values()):
            found = {lemma: forms for lemma, forms in found.items() if lemma != word or len(forms) > 1}
        return found  # "men" and "bigger" are also lemmas

    def inflect(self, lemma: str, pos: str, form: str) -> str | None:
        """A form of a lemma; of several words the one that is inflected changes. None if it has no such form."""
        words = lemma.split(" ")
        place = _inflected(words, pos)
        if form == "plural" and place and self._is_plural(words[place]):
            return None
        if not (changed := self._variants(words[place], pos, form)):
            return None
        return " ".join((*words[:place], changed[0], *words[place + 1 :]))

    def _is_plural(self, word: str) -> bool:
        """Whether a word is a plural: "twenty-four hours" has no further one."""
        return any(each != word and len(each) > 2 for each in self._database.base_forms(word, NOUN))  # "ga" and "gas"

    def all_forms(self, lemma: str, pos: str) -> frozenset[str]:
        """All forms of a lemma of one word, the rarer ones too, itself among them."""
        return frozenset(each for form in FORMS[pos] for each in self._variants(lemma, pos, form))

    def _variants(self, word: str, pos: str, form: str) -> tuple[str, ...]:
        """A word in a form, the usual one first."""
        if form == FORMS[pos][0]:
            return (word,)
        known = self._irregular[pos].get(word, ())
        if pos == NOUN:
            return _plurals(word, known)
        return _verbs(word, form, known) if pos == VERB else _compared(word, form, known)


def _by_base(exceptions: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The irregular forms of each lemma."""
    found: dict[str, tuple[str, ...]] = {}
    for form, bases in exceptions.items():
        for base in bases:
            if form != base:
                found[base] = (*found.get(base, ()), form)
    return found


def _inflected(words: list[str], pos: str) -> int:
    """The place of the word that is inflected: a verb's first, a noun's last, or the last before a preposition."""
    if pos != NOUN:
        return 0
    return next((place - 1 for place, word in enumerate(words) if place and word in _PREPOSITIONS), len(words) - 1)


def _plurals(word: str, known: tuple[str, ...]) -> tuple[str, ...]:
    if word in _INVARIANT:
        return (word,)
    if word.endswith("man") and len(word) > 4 and not word.endswith(_NOT_MEN):
        return (word[:-3] + "men",)
    return (_with_s(word), *known) if word in _REGULAR_PLURALS else (*known, _with_s(word))


def _with_s(word: str) -> str:
    if _SIBILANT.search(word) and not _HARD_CH.search(word):
        return word + "es"
    return word[:-1] + "ies" if _CONSONANT_Y.search(word) else word + "s"


def _verbs(word: str, form: str, known: tuple[str, ...]) -> tuple[str, ...]:
    if form == "s":
        return ({"be": "is", "have": "has"}.get(word) or (word + "es" if word.endswith("o") else _with_s(word)),)
    if form == "ing":
        doubled = [each for each in known if each.endswith("ing")]
        return (*doubled, *([] if doubled and not word.endswith("l") else [_with_vowel(word, "ing")]))
    if word in _IRREGULAR:
        return (_IRREGULAR[word][form == "participle"],)
    doubled = [each for each in known if each.endswith("ed")]
    regular = [] if doubled and not word.endswith("l") else [_with_vowel(word, "ed")]  # "traveled", but not "hoped"
    return (*doubled, *regular, *(each for each in known if each.endswith("t")))  # "learnt"


def _with_vowel(word: str, ending: str) -> str:
    """With an ending that begins with a vowel. Consonants that are doubled are in WordNet's lists."""
    if ending == "ing":
        if word.endswith("ie"):
            return word[:-2] + "ying"
        silent = word.endswith("e") and not word.endswith(("ee", "oe", "ye")) and len(word) > 2
        return word[: -1 if silent else None] + "ing"
    if word.endswith("e"):
        return word + ending[1:]
    return word[:-1] + "i" + ending if _CONSONANT_Y.search(word) else word + ending


def _compared(word: str, form: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The comparative or superlative in -er, -est; none for a word that is compared with "more"."""
    irregular = {"good": ("better", "best"), "well": ("better", "best"), "bad": ("worse", "worst")}
    if word in irregular:
        return (irregular[word][form == "est"],)
    if found := tuple(each for each in known if each.endswith(form)):
        return found
    syllables = len(_VOWELS.findall(word.removesuffix("e")))
    short = syllables == 1 or (syllables == 2 and word.endswith(("y", "ow")) and word != "okay")
    return (_with_vowel(word, form),) if short and word.isalpha() and not word.endswith(("ed", "ing")) else ()
