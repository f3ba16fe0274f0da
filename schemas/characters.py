"""What characters are, and which code points make one: what edits of a phrase's letters must not part."""

from __future__ import annotations

import functools
import unicodedata


class Trait:
    """Traits of a code point, as bits."""

    KNOWN, LETTER, SPACE, UPPER, LOWER, LATIN, JOINS_PREVIOUS, JOINS_NEXT = (1 << bit for bit in range(8))


_VIRAMA = 9
"""The combining class of the signs that join two consonants of an Indic script."""

_PREVIOUS = "\u0e33\u0eb3\uff9e\uff9f" + "".join(map(chr, range(0x1F3FB, 0x1F400)))
"""Thai and Lao am, half-width voiced marks, skin tones: part of the character before them, though they are no marks."""

_NEXT = "\u0d4e\U000111c2\U000111c3\U0001193f\U00011941\U00011a3a\U00011d46\U00011f02" + "".join(
    map(chr, (*range(0x11A84, 0x11A8A), *range(0x1F1E6, 0x1F200)))
)
"""Letters that are part of the character after them, and the letters of which flags are made."""


@functools.lru_cache(maxsize=1 << 16)
def traits(character: str) -> int:
    """The traits of a code point.

    Clusters that follow from them are at least as long as those of Unicode (UAX #29): a cluster of Unicode is never
    parted, except before white space, but a run of flags counts as one.
    """
    found, category = Trait.KNOWN, unicodedata.category(character)
    if category[0] == "L":
        found |= Trait.LETTER
        if category in ("Lu", "Lt"):
            found |= Trait.UPPER
        elif category == "Ll":
            found |= Trait.LOWER
        if unicodedata.name(character, "").startswith("LATIN "):
            found |= Trait.LATIN
    if character.isspace():
        return found | Trait.SPACE
    joins_both = category == "Cf"  # joiners, tags, signs before numbers
    trailing_jamo = "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7ff"
    if joins_both or category[0] == "M" or trailing_jamo or character in _PREVIOUS:
        found = (found | Trait.JOINS_PREVIOUS) & ~Trait.LETTER  # what cannot stand alone is no letter
    leading_jamo = "\u1100" <= character <= "\u115f" or "\ua960" <= character <= "\ua97f"
    if joins_both or leading_jamo or unicodedata.combining(character) == _VIRAMA or character in _NEXT:
        found |= Trait.JOINS_NEXT
    return found


def clusters(text: str) -> list[str]:
    """The characters of a text as people see them.

    >>> clusters("ae\u0301b")
    ['a', 'e\u0301', 'b']
    """
    if text.isascii():
        return list(text)
    found: list[str] = []
    joins = False
    for character in text:
        trait = traits(character)
        if found and (trait & Trait.JOINS_PREVIOUS or (joins and not trait & Trait.SPACE)):
            found[-1] += character
        else:
            found.append(character)
        joins = bool(trait & Trait.JOINS_NEXT or (joins and trait & Trait.JOINS_PREVIOUS))
    return found


def tokens(text: str) -> list[str]:
    """The tokens of a text, which are parted by white space alone, and the white space between them: token first, last.

    >>> tokens("the 1.5  kg")
    ['the', ' ', '1.5', '  ', 'kg']
    """
    found, blank = [""], False
    for cluster in clusters(text):
        if bool(traits(cluster[0]) & Trait.SPACE) != blank:
            blank = not blank
            found.append("")
        found[-1] += cluster
    return [*found, ""] if blank else found


def edit_similarity(one: str, other: str) -> float:
    """2 L / (length of both), of the length L of their longest common subsequence (Hyyrö 2004: bits in parallel).

    >>> round(edit_similarity("colour", "color"), 3)
    0.909
    """
    places: dict[str, int] = {}
    for place, char in enumerate(one):
        places[char] = places.get(char, 0) | 1 << place
    full = (1 << len(one)) - 1
    left = full  # a 0 for each character of `one` in the subsequence
    for char in other:
        found = left & places.get(char, 0)
        left = (left + found | left - found) & full
    return 2 * (len(one) - left.bit_count()) / max(len(one) + len(other), 1)
