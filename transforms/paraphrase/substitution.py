"""Paraphrases by substitution: each word of content of a phrase becomes another that means the same in its place.

What may replace a word comes from WordNet (its synsets, those of similar adjectives, the broader ones) and from lists
of related words such as Moby's. How likely it is that a person would let it stand there is estimated from measures of
both words and from what a masked language model says of the place, by a logistic model whose weights are below. The
pair of phrases has the product over its words as its score.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from schemas.errors import UserError
from transforms.augmentation.inflection import FORMS, VOWEL_SOUND, Inflection
from transforms.augmentation.wordnet import ADJECTIVE, ADVERB, NOUN, VERB, Key, Sense, WordNet
from transforms.paraphrase.constraints import banned_words, kept_words, violations
from transforms.paraphrase.contrasts import Contrasts
from transforms.paraphrase.masked_words import View
from transforms.paraphrase.words import STOPWORDS, words

_PARTS = {"N": NOUN, "V": VERB, "J": ADJECTIVE, "R": ADVERB}
"""Parts of speech by the first letter of Penn tags."""

_FORM = {
    "NN": "singular",
    "NNS": "plural",
    "VB": "base",
    "VBP": "base",
    "VBZ": "s",
    "VBD": "past",
    "VBN": "participle",
    "VBG": "ing",
    "JJ": "plain",
    "JJR": "er",
    "JJS": "est",
    "RB": "plain",
    "RBR": "er",
    "RBS": "est",
}

_RIVALS = tuple(
    frozenset(each.split())
    for each in (
        """north south east west northern southern eastern western northeast northwest southeast southwest northeastern
        northwestern southeastern southwestern northward southward eastward westward""",
        "red blue green yellow white black brown pink purple orange grey violet",
        """father mother son daughter brother sister uncle aunt nephew niece cousin grandfather grandmother grandson
        granddaughter husband wife child parent boy girl man woman king queen prince princess duke baron count earl
        emperor lord lady gentleman knight nun twin friend""",
        """year month week day hour minute second decade century fortnight semester millennium period quarter morning
        evening night afternoon noon midnight dawn""",
        "spring summer autumn winter",
        "first second third fourth fifth sixth seventh eighth ninth tenth",
        "see hear smell taste touch",
        "left right up down top bottom first last next early late more less few many open closed",
        "gold silver copper lead tin steel bronze brass zinc mercury iron",
        """arm leg hand foot head eye ear nose mouth finger toe knee ankle wrist elbow face hair neck shoulder back
        tooth tongue lip heart brain""",
        "inch mile yard pound ounce ton kilogram meter kilometer acre",
    )
)
"""Words that are near to each other by any measure, and mean different things."""

_NEVER = frozenset(
    """
    be do have get make thing nowadays stat homo h2o nigger negro negroid jap squaw mick sambo mi leap year
    oral cavity man-child bull adult male female
    """.split()
)
"""Words that WordNet has as synonyms and nobody says instead, or nobody should."""

_LETTERS = re.compile(r"[a-z]+(?:[ -][a-z]+)*")
_TOKEN = re.compile(r"""(?P<open>["'(\[]*)(?P<word>.+?)(?P<clitic>'s|'(?=$))?(?P<close>[,;:.!?)"\]]*)""")
_LEAST_ALIKE = 0.8
"""The likeness of spellings from which on two words are one: "colour" and "color"."""

_LEAST_OF_PART = 0.15
"""How much of a word's occurrences in WordNet's tagged texts have the part of speech."""

_LEAST_OF_RARE = 0.3
"""The least synonymy of a word that the language model does not know, or that is of several words."""

_LONGEST_LEMMA = 4
_SUBSTITUTES, _COMBINED, _BEAM = 12, 7, 24
_CACHED = 1 << 16


class Lexical(Protocol):
    """What is asked of words: `MaskedWords` answers."""

    def likeness(self, one: str, other: str) -> float: ...
    def knows(self, word: str) -> bool: ...
    def rarity(self, word: str) -> float: ...


class Measures(NamedTuple):
    """What is measured of a word and a substitute.

    `synonymy`: how much of what both mean is one thing, by the frequencies of senses. `lists`: how much of their lists
    of related words they share. `likeness`: the cosine of their vectors. `rarer`: how much rarer the substitute is.
    `several`: it is of several words. `sister`: both are kinds of one thing. `noun`: they are nouns.
    """

    synonymy: float
    lists: float
    likeness: float
    rarer: float
    several: float
    sister: float
    noun: float


class Fit(NamedTuple):
    """What the language model says of a substitute in its place.

    `near`: 1 for the most likely word, less by a seventh for each e-fold. `unlikely`: it is not among the likely words;
    `unseen`: it is no token, so nothing is known. `sure`: how unlikely the phrase's own word is there, at most 1.
    """

    near: float
    unlikely: float
    unseen: float
    sure: float


_WORD_WEIGHTS = (3.022, 0.889, 3.11, -0.544, -1.321, -0.435, -0.072, -1.992)
_PLACE_WEIGHTS = (3.064, 0.769, 2.675, -0.309, -1.487, -0.437, -0.02, 2.093, -0.646, -0.098, 0.526, -1.894)
"""Of the measures, of the measures and the fit, and last a constant: logistic regression on 553 substitutes in phrases
of Wikipedia and novels, with BERT base's view of the place, which one reader called acceptable (38 %) or not.
"""


def logit(measures: Measures, fit: Fit | None) -> float:
    """The log odds that a substitute is acceptable, by its measures and, where it is known, how it fits."""
    weights, values = (_WORD_WEIGHTS, measures) if fit is None else (_PLACE_WEIGHTS, (*measures, *fit))
    return weights[-1] + sum(weight * value for weight, value in zip(weights, values, strict=False))


class Substitute(NamedTuple):
    """What may stand for a word, in the word's form; `logit`: of its measures alone."""

    text: str
    logit: float
    measures: Measures


class Place(NamedTuple):
    """Tokens of a phrase that are one word or lemma, [start, end), and what may stand there; none where they stay."""

    start: int
    end: int
    substitutes: tuple[Substitute, ...]


class Candidate(NamedTuple):
    """A paraphrase, and the estimated probability that it is acceptable."""

    text: str
    score: float


class Analysed(NamedTuple):
    """A phrase whose words of content have substitutes: its tokens, its places, the words that must not come back."""

    tokens: tuple[_Token, ...]
    places: tuple[Place, ...]
    banned: tuple[str, ...]

    @property
    def asked(self) -> list[int]:
        """The tokens of which the language model is asked: single words that are replaced."""
        return [each.start for each in self.places if each.substitutes and each.end == each.start + 1]


class _Token(NamedTuple):
    open: str
    word: str
    close: str  # 's and punctuation


def read_thesaurus(path: str) -> dict[str, frozenset[str]]:
    """Lists of related words, as in Moby's thesaurus: lines of a word and those related to it, with commas between.

    UserError if a file has no such line.
    """
    found: dict[str, set[str]] = {}
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                head, *others = (each.strip().lower() for each in line.split(","))
                if head and others:
                    found.setdefault(head, set()).update(others)
    except OSError as error:
        raise UserError(
            f"--thesaurus {path}: {error.strerror}; give a file of lines such as `big,large,huge`"
        ) from None
    if not found:
        raise UserError(f"--thesaurus {path}: has no line such as `big,large,huge`; give Moby's words.txt, or none")
    return {head: frozenset(others) for head, others in found.items()}


class Substitution:
    """Substitutes of words and lemmas by a WordNet and a thesaurus, and the paraphrases that they make."""

    def __init__(self, database: WordNet, lexical: Lexical, thesaurus: Mapping[str, frozenset[str]]) -> None:
        self._database, self._lexical, self._thesaurus = database, lexical, thesaurus
        self._inflection = Inflection(database)
        self._contrasts = Contrasts(database)

    # ---- Words

    @functools.lru_cache(_CACHED)  # noqa: B019 (there is one object a process)
    def substitutes(self, text: str, part: str, form: str | None) -> tuple[Substitute, ...]:
        """What may stand for a word or lemma of a part of speech, in its form, the best first."""
        forms = self._inflection.forms(text, part)
        lemmas = [each for each in sorted(forms) if form is None or form in forms[each]]
        if not lemmas:
            return ()
        lemma = max(lemmas, key=lambda each: self._occurrences(each, part))
        own = [form] if form else sorted(forms[lemma])
        found = []
        for other, measures in self._related(lemma, part):
            made = {self._in_form(other, part, each) for each in own}
            if len(made) == 1 and (shown := made.pop()):
                found.append(Substitute(shown, logit(measures, None), measures))
        return tuple(sorted(found, key=lambda each: (-each.logit, each.text)))

    def _in_form(self, lemma: str, part: str, form: str) -> str | None:
        found = self._inflection.inflect(lemma, part, form)
        if found is None and part in (ADJECTIVE, ADVERB):
            return ("more " if form == "er" else "most ") + lemma
        return found

    @functools.lru_cache(_CACHED)  # noqa: B019
    def _related(self, lemma: str, part: str) -> tuple[tuple[str, Measures], ...]:
        """The lemmas related to a lemma that may stand for it, with their measures, the best first."""
        synonymy = self._synonymy(lemma, part)
        listed = self._listed(lemma)
        found = []
        for other in sorted(synonymy.keys() | listed):
            near = synonymy.get(other, 0.0)
            if not self._possible(lemma, other, part, near) or not self._senses(other, part):
                continue
            measures = Measures(
                synonymy=min(near, 1.0),
                lists=self._shared(lemma, other),
                likeness=self._lexical.likeness(lemma, other),
                rarer=max(self._lexical.rarity(other) - self._lexical.rarity(lemma), 0.0),
                several=float(" " in other),
                sister=float(part == NOUN and near < _LEAST_OF_RARE and self._sisters(lemma, other)),
                noun=float(part == NOUN),
            )
            found.append((logit(measures, None), other, measures))
        found.sort(key=lambda each: (-each[0], each[1]))
        checked = ((other, measures) for _, other, measures in found if self._other_word(lemma, other, part))
        return tuple(each for each, _ in zip(checked, range(_SUBSTITUTES), strict=False))

    def _possible(self, lemma: str, other: str, part: str, synonymy: float) -> bool:
        """Whether a word is one, as common as it must be, and mostly of that part of speech."""
        if synonymy < 0.1 and other not in self._both_ways(lemma):
            return False
        if len(other) < 3 or other in STOPWORDS or not _LETTERS.fullmatch(other) or not _NEVER.isdisjoint(words(other)):
            return False
        if not self._lexical.knows(other) and (synonymy < _LEAST_OF_RARE or not self._tagged(lemma, other, part)):
            return False
        return self._part_share(other, part) >= _LEAST_OF_PART

    def _other_word(self, lemma: str, other: str, part: str) -> bool:
        """Whether a word is another, and neither contrary to the lemma nor its rival; it must be a lemma itself."""
        if any(lemma in each and other in each for each in _RIVALS):
            return False
        if (len(lemma) > 3 and lemma in other) or (len(other) > 3 and other in lemma):
            return False
        if min(len(lemma), len(other)) <= 3 and (lemma.startswith(other) or other.startswith(lemma)):
            return False  # an abbreviation: "min", "apr"
        if difflib.SequenceMatcher(None, lemma, other, autojunk=False).ratio() >= _LEAST_ALIKE:
            return False
        forms = self._inflection.forms(other, part)
        if FORMS[part][0] not in forms.get(other, ()) or (part == ADJECTIVE and len(forms) > 1):
            return False
        return not self._contrasts.contrary(lemma, other)

    @functools.lru_cache(_CACHED)  # noqa: B019
    def _all(self, lemma: str, part: str) -> tuple[Sense, ...]:
        return self._database.senses(lemma, part)

    @functools.lru_cache(_CACHED)  # noqa: B019
    def _senses(self, lemma: str, part: str) -> dict[Key, float]:
        """The synsets of a lemma, each with its share of the occurrences."""
        senses = self._all(lemma, part)
        weights = [each.occurrences + 0.5 + (not number) for number, each in enumerate(senses)]
        total = sum(weights)
        return {each.synset: weight / total for each, weight in zip(senses, weights, strict=True)}

    def _occurrences(self, lemma: str, part: str) -> float:
        return sum(each.occurrences + 0.5 for each in self._all(lemma, part))

    def _tagged(self, lemma: str, other: str, part: str) -> bool:
        """Whether WordNet's tagged texts have a word in a sense of the lemma."""
        own = self._senses(lemma, part)
        return any(each.occurrences and each.synset in own for each in self._all(other, part))

    @functools.lru_cache(_CACHED)  # noqa: B019
    def _part_share(self, lemma: str, part: str) -> float:
        counts = {each: self._occurrences(lemma, each) for each in FORMS}
        return counts[part] / (sum(counts.values()) or 1.0)

    def _synonymy(self, lemma: str, part: str) -> dict[str, float]:
        """The lemmas that share a synset with a lemma, or have a similar or broader one, and how much they do."""
        own = self._senses(lemma, part)
        found: dict[str, float] = {}
        for sense in self._all(lemma, part):
            for synset, weight in _around(sense):
                for member in self._database.members(synset):
                    other = member.lemma.lower()
                    share = math.sqrt(own[sense.synset] * self._senses(other, part).get(synset, 0.0))
                    if other != lemma:
                        found[other] = found.get(other, 0.0) + weight * share
        return found

    def _listed(self, lemma: str) -> frozenset[str]:
        return self._thesaurus.get(lemma, frozenset())

    @functools.lru_cache(_CACHED)  # noqa: B019
    def _both_ways(self, lemma: str) -> frozenset[str]:
        return frozenset(each for each in self._listed(lemma) if lemma in self._listed(each))

    def _shared(self, one: str, other: str) -> float:
        """How much of two lists is the same: their cosine."""
        a, b = self._listed(one), self._listed(other)
        return len(a & b) / math.sqrt(len(a) * len(b)) if a and b else 0.0

    def _sisters(self, one: str, other: str) -> bool:
        return not self._above(one).isdisjoint(self._above(other))

    @functools.lru_cache(_CACHED)  # noqa: B019
    def _above(self, lemma: str) -> frozenset[Key]:
        senses = self._all(lemma, NOUN)[:3]
        return frozenset(key for each in senses for key in each.broader)

    # ---- Phrases

    def analyse(self, phrase: str, surface: str, tags: Sequence[str]) -> Analysed | str:
        """The places of a phrase, of tokens with Penn tags; or why it has no paraphrase (a reason of the kind).

        `surface` has the capitals, by which names are known; names and numbers stay.
        """
        texts = phrase.split(" ")
        tokens = []
        for text in texts:
            found = _TOKEN.fullmatch(text)
            if not found:
                return "no_substitute"
            tokens.append(_Token(found["open"], found["word"], (found["clitic"] or "") + found["close"]))
        kept = kept_words(phrase, surface=surface)
        banned = banned_words(phrase, inflections=True, kept=kept)
        if not banned:
            return "no_content"
        places = []
        start = 0
        while start < len(tokens):
            place = self._place(tokens, tags, start, frozenset(kept))
            if place is None:
                return "no_substitute"
            places.append(place)
            start = place.end
        if not any(each.substitutes for each in places):
            return "no_content"
        return Analysed(tuple(tokens), tuple(places), banned)

    def _place(self, tokens: Sequence[_Token], tags: Sequence[str], start: int, kept: frozenset[str]) -> Place | None:
        """The place that begins at a token: the longest lemma that has substitutes. None if the word has none."""
        word, tag = tokens[start].word, tags[start]
        own = words(word)
        if not set(own) <= kept:
            for size in range(min(_LONGEST_LEMMA, len(tokens) - start), 1, -1):
                part = self._lemma(tokens[start : start + size], tags[start : start + size], kept)
                if part:
                    end = start + size
                    form = {VERB: _FORM.get(tag), NOUN: _FORM.get(tags[end - 1])}.get(part)
                    if found := self.substitutes(" ".join(each.word for each in tokens[start:end]), part, form):
                        return Place(start, end, found)
                    if part == ADVERB:
                        return None  # "in turn" is not "in shift"
        if all(each in STOPWORDS or each in kept for each in own):
            return Place(start, start + 1, ())
        own_part = _PARTS.get(tag[:1])
        after = tags[start + 1] if start + 1 < len(tags) else ""
        if own_part is None or after == "RP":  # a particle whose verb is in no lemma with it
            return None
        found = self.substitutes(word, own_part, _FORM.get(tag))
        if own_part == VERB and not tokens[start].close:
            if after in ("IN", "TO"):  # what stands after a verb is the verb's own: "look at"
                found = tuple(each._replace(logit=each.logit - 0.4 - 0.8 * each.measures.several) for each in found)
            elif after.startswith("PRP"):
                found = tuple(each for each in found if not each.measures.several)  # "gave up it"
        if own_part in (ADJECTIVE, ADVERB) and start and tokens[start - 1].word in _DEGREES:
            found = tuple(each for each in found if not each.text.startswith(("more ", "most ")))
            if tokens[start - 1].word in ("more", "most"):  # not "more new"
                found = tuple(each for each in found if self._inflection.inflect(each.text, own_part, "er") is None)
        return Place(start, start + 1, found) if found else None

    def _lemma(self, tokens: Sequence[_Token], tags: Sequence[str], kept: frozenset[str]) -> str:
        """The part of speech of tokens that are one lemma of several words; empty if they are none."""
        if any(each.close for each in tokens[:-1]) or any(each.open for each in tokens[1:]):
            return ""
        texts = [each.word for each in tokens]
        if not kept.isdisjoint(texts) or STOPWORDS.issuperset(texts):
            return ""
        possible = [ADVERB] if tags[0] in ("IN", "RB") or tags[-1][:1] in "RIJ" else []
        if tags[0].startswith("V"):
            # "went to him" is not "attended him"
            possible = [VERB] if texts[-1] not in STOPWORDS or tags[-1] in ("RP", "RB") else []
        elif tags[-1].startswith("N"):
            possible.append(NOUN)
        return next((each for each in possible if self._inflection.forms(" ".join(texts), each)), "")

    def paraphrases(
        self, phrase: Analysed, views: Mapping[int, View], *, most: int, least: float = 0.0
    ) -> list[Candidate]:
        """The most likely combinations of substitutes, the best first; `views` by token, where there are any."""
        beam: list[tuple[float, tuple[str, ...]]] = [(0.0, ())]
        for place in phrase.places:
            options = [(0.0, "")]
            if place.substitutes:
                scored = sorted(
                    (-self._logit(each, views.get(place.start), place), each.text) for each in place.substitutes
                )
                options = [(-math.log1p(math.exp(cost)), text) for cost, text in scored[:_COMBINED]]
                options = [each for each in options if not violations(each[1], phrase.banned, inflections=True)]
            grown = [
                (log + more, (*texts, text))
                for log, texts in beam
                for more, text in options
                if not text or text not in texts
            ]
            beam = sorted(grown, key=lambda each: (-each[0], each[1]))[:_BEAM]
        found: dict[str, float] = {}
        for log, texts in beam:
            if (score := math.exp(log)) >= least:
                found.setdefault(_written(phrase, texts), score)
        return [Candidate(text, score) for text, score in [*found.items()][:most]]

    def _logit(self, substitute: Substitute, view: View | None, place: Place) -> float:
        if view is None or place.end > place.start + 1:
            return substitute.logit
        text = substitute.text.removeprefix("more ").removeprefix("most ")
        best = next(iter(view.likely.values()))
        known = self._lexical.knows(text)
        log = view.likely.get(text)
        fit = Fit(
            near=0.0 if log is None else max(1 + (log - best) / 7, 0.0),
            unlikely=float(known and log is None),
            unseen=float(not known),
            sure=min(-view.own, 10.0) / 10,
        )
        # What the place took from the measures alone, such as a preposition, it takes here, too.
        return logit(substitute.measures, fit) + substitute.logit - logit(substitute.measures, None)


_DEGREES = frozenset("more most very too so less least as".split())


def _around(sense: Sense) -> Iterator[tuple[Key, float]]:
    """The synset of a sense and those around it, each with how near it is."""
    yield sense.synset, 1.0
    yield from ((each, 0.5) for each in sense.similar)
    if sense.synset[0] in (NOUN, VERB):
        yield from ((each, 0.35) for each in sense.broader)


def _written(phrase: Analysed, texts: Sequence[str]) -> str:
    """A phrase with some texts at its places; an empty one leaves a place as it is."""
    parts = []
    for place, text in zip(phrase.places, texts, strict=True):
        tokens = phrase.tokens[place.start : place.end]
        shown = text or " ".join(each.word for each in tokens)
        parts.append(tokens[0].open + shown + tokens[-1].close)
    found = " ".join(parts).split(" ")
    for number, (token, after) in enumerate(itertools.pairwise(found)):
        if token in ("a", "an"):
            found[number] = "an" if VOWEL_SOUND.match(after) else "a"
    return " ".join(found)
