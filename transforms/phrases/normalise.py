"""What counts as one phrase: the normalisation, which the papers do not describe.

A constituent becomes a phrase by these steps, each an option of `PhraseRules` (options.py):

1. Its tokens are joined: by one space where the text has white space between them, otherwise directly.
2. Letters are lower-cased (NFC; typographic apostrophes and quotes count as straight ones).
3. Leading and trailing punctuation tokens are removed. Signs that carry meaning stay: $5, 50%, #1, AT&T, 5°.
   A bracket or quote stays if its other half is inside: sulfuric acid (H2SO4).
4. Leading determiners are removed: "the old man" and "an old man" are occurrences of "old man". The span of the
   occurrence shrinks with the phrase, so that the surface matches the phrase.
5. The result is left out if it is longer than `max_tokens`, is empty, holds half of a pair of brackets or quotes,
   consists of pronouns and determiners or of numbers, or holds an unknown token (WikiText's <unk>).
6. Constituents that now cover the same words count once, under the first label in the order NP, VP, PP, ADJP, ADVP.

`docs/phrases.md` is the page for users; `transforms/phrases/occurrences.py` does this for whole shards at once.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from schemas.terms import STRAIGHT_QUOTES, UNKNOWN_TOKEN
from transforms.phrases import lexicon
from transforms.phrases.lexicon import NUMBER_WORDS

_MEANINGFUL = frozenset("%\u2030#&@\u00b0\u2032\u2033\u00a7\u00b6\u2640\u2642")


@functools.lru_cache(maxsize=1 << 17)
def normalise_token(token: str, *, lowercase: bool = True) -> str:
    """The form in which a token enters a phrase."""
    token = unicodedata.normalize("NFC", token).translate(STRAIGHT_QUOTES)
    # A capital letter may have no composed form although its small letter has one: "J" with a caron.
    return unicodedata.normalize("NFC", token.lower()) if lowercase else token


def is_punctuation(token: str) -> bool:
    """Whether a token consists of punctuation, symbols and marks on them that carry no meaning in a phrase."""
    for character in token:
        category = unicodedata.category(character)
        if category[0] not in "PSMZC" or category == "Sc" or character in _MEANINGFUL:
            return False
    return True


def is_number(token: str) -> bool:
    """Whether a token is a numeral ("1984", "3.5", "$", "%") or a number word ("two", "twenty-five")."""
    lower = token.lower()
    if lower in NUMBER_WORDS:
        return True
    if any(character.isalpha() for character in token):
        parts = lower.split("-")
        return len(parts) > 1 and all(part in NUMBER_WORDS for part in parts)
    return True


class Class:
    """Classes of tokens, as bits: what a token is by its form."""

    UNKNOWN, PUNCTUATION, PAIRED, CLITIC, POSSESSIVE, ARTICLE, DETERMINER, PRONOUN = (1 << bit for bit in range(8))
    NUMBER, NUMERAL, ORDINAL, UNIT, DATE, FEW, LITTLE, HAVE, DO = (1 << bit for bit in range(8, 17))
    # What is a function word: of these whatever its tag is, unless it is a noun, unless it is of an open class.
    FUNCTION, AUXILIARY, ADVERB, ANY = (1 << bit for bit in range(17, 21))
    LETTERS = 1 << 24  # the bits from here on are the number of letters, at most MOST_LETTERS


MOST_LETTERS = 127

_LISTED: dict[str, int] = {}
for _words, _class in (
    (lexicon.CLITICS, Class.CLITIC),
    (lexicon.POSSESSIVES, Class.POSSESSIVE),
    (lexicon.ARTICLES, Class.ARTICLE),
    (lexicon.DETERMINERS, Class.DETERMINER | Class.FUNCTION),
    (lexicon.PRONOUNS, Class.PRONOUN | Class.FUNCTION),
    (lexicon.QUANTIFIERS, Class.FUNCTION),
    (lexicon.AUXILIARIES, Class.AUXILIARY),
    (lexicon.HAVE, Class.HAVE),
    (lexicon.DO, Class.DO),
    (lexicon.ADVERBS, Class.ADVERB),
    (lexicon.NUMBER_WORDS, Class.NUMBER | Class.NUMERAL),
    (lexicon.VAGUE_NUMBERS, Class.NUMERAL),
    (lexicon.ORDINALS, Class.ORDINAL),
    (lexicon.UNITS, Class.UNIT),
    (lexicon.DATE_WORDS, Class.DATE),
    (("few",), Class.FEW),
    (("little",), Class.LITTLE),
):
    for _word in _words:
        _LISTED[_word] = _LISTED.get(_word, 0) | _class


@functools.lru_cache(maxsize=1 << 17)
def classes(token: str) -> int:
    """The classes of a token in normalised form, and its letters and digits."""
    lower = token.lower()
    letters = sum(map(str.isalnum, token))
    found = _LISTED.get(lower, 0) | Class.ANY | min(letters, MOST_LETTERS) * Class.LETTERS
    if token.isalpha():
        return found
    if UNKNOWN_TOKEN in token:
        found |= Class.UNKNOWN
    if is_punctuation(token):
        found |= Class.PUNCTUATION
    if _PAIRED.search(token):
        found |= Class.PAIRED
    if is_number(token):
        found |= Class.NUMBER | (Class.NUMERAL if letters else 0)
    if _ORDINAL.fullmatch(lower):
        found |= Class.ORDINAL
    if _DECADE.fullmatch(lower):
        found |= Class.DATE | Class.NUMERAL
    if (measure := _MEASURE.fullmatch(lower)) and measure[1] in lexicon.UNITS:
        found |= Class.UNIT | Class.NUMERAL
    return found


def function_classes(tag: str) -> int:
    """The classes of which a token with this tag is a function word. An unknown tag leaves it to the lists."""
    if tag in lexicon.FUNCTION_TAGS:
        return Class.ANY
    if tag in lexicon.NOUN_TAGS:
        return Class.FUNCTION
    if tag in lexicon.ADJECTIVE_TAGS | lexicon.VERB_TAGS:
        return Class.FUNCTION | Class.AUXILIARY
    return Class.FUNCTION | Class.AUXILIARY | Class.ADVERB


_PAIRED = re.compile(r'[()\[\]{}"]')
_ORDINAL = re.compile(r"\d+(st|nd|rd|th)")
_DECADE = re.compile(r"'?\d+0'?s")
_MEASURE = re.compile(r"\d[\d.,]*([^\d.,]+)")
