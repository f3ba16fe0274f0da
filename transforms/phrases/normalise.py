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

import unicodedata

from schemas.terms import STRAIGHT_QUOTES

DETERMINERS = frozenset(("a", "an", "the", "this", "that", "these", "those"))

PRONOUNS = frozenset(
    """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves themself one's oneself thou thee thy thine thyself ye
    who whom whose which what whoever whomever whichever whatever whosoever
    this that these those each other one another there 'em 's
    """.split()
)
"""Personal, possessive, reflexive, reciprocal, relative, demonstrative and existential.

A phrase of these words only is left out: "it", "each other", "he/she".
"""

NUMBER_WORDS = frozenset(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion
    hundreds thousands millions billions
    """.split()
)

_MEANINGFUL = frozenset("%\u2030#&@\u00b0\u2032\u2033\u00a7\u00b6\u2640\u2642")


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
