"""Augmentations of a character: two neighbours swapped, one dropped, one inserted, one mistyped.

Only letters change, in words that have some: another digit would be another number, another sign another word. What
people see as one character stays whole, with its marks. A capital that lower case follows keeps its place, so that
names still look like names.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.characters import Trait
from schemas.terms import KEYBOARD
from transforms.arrays import I64, U64, Bools
from transforms.augmentation.edits import Characters, choose, joined, shifted
from transforms.augmentation.interface import Augmenter, pick

_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", np.uint8)


class _OfLetters(Augmenter):
    """An edit of a letter in a word of at least `min_word_letters` letters."""

    def __init__(self, *, min_word_letters: int) -> None:
        self._least = min_word_letters

    def _letters(self, found: Characters) -> Bools:
        letters = found.has(Trait.LETTER)
        return letters & (found.of_words(letters) >= self._least)


def _body(found: Characters) -> Bools:
    """[characters] the letters that are no capital before a letter of lower case of the same word."""
    leads = found.has(Trait.UPPER) & shifted(found.has(Trait.LOWER)) & _goes_on(found)
    return found.has(Trait.LETTER) & ~leads


def _goes_on(found: Characters) -> Bools:
    """[characters] whether the next character is of the same word."""
    goes_on = np.zeros(len(found.word), bool)
    goes_on[:-1] = found.word[1:] == found.word[:-1]
    return goes_on


class Swap(_OfLetters):
    """Two neighbouring letters change places: different ones, of the same case."""

    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        found = Characters.of(phrases)
        letters = self._letters(found) & _body(found)
        sites = letters & shifted(letters) & _goes_on(found)
        case = found.traits & (Trait.UPPER | Trait.LOWER)
        sites[:-1] &= (case[1:] == case[:-1]) & (found.code[1:] != found.code[:-1])
        site = choose(sites, found.row, seeds)
        start, middle, end = (found.start[np.minimum(site + n, len(found.start) - 1)] for n in range(3))
        return joined(
            found.data, site >= 0, found.phrase_start(), start, middle, end, start, middle, end, found.phrase_end()
        )


class Drop(_OfLetters):
    """A letter is left out."""

    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        found = Characters.of(phrases)
        site = choose(self._letters(found) & _body(found), found.row, seeds)
        return joined(
            found.data, site >= 0, found.phrase_start(), found.start[site], found.start[site + 1], found.phrase_end()
        )


class Insert(_OfLetters):
    """A letter is inserted after one: any of a to z in Latin script, else a letter of the same word.

    It is a capital only between capitals, and after one that ends the word.
    """

    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        found = Characters.of(phrases)
        body = _body(found)
        own = found.of_words(body)
        latin = found.has(Trait.LATIN)
        site = choose(self._letters(found) & (latin | (own > 0)), found.row, seeds)
        upper = (found.has(Trait.UPPER) & body)[site]
        letter = len(found.data) + pick(seeds, 1, np.full(len(site), 26)) + 26 * upper
        sources = np.flatnonzero(body)
        if len(sources):
            word_begin = np.searchsorted(found.word[sources], found.word[site])
            source = sources[np.minimum(word_begin + pick(seeds, 1, own[site]), len(sources) - 1)]
        else:
            source = np.zeros_like(site)
        new_start = np.where(latin[site], letter, found.start[source])
        new_end = np.where(latin[site], letter + 1, found.start[source + 1])
        after = found.start[site + 1]
        data = np.concatenate([found.data, _ALPHABET])
        return joined(data, site >= 0, found.phrase_start(), after, new_start, new_end, after, found.phrase_end())


def _neighbours() -> tuple[U64, I64, I64]:
    """The neighbours of the keys a to z, flat; where those of each key begin in them, and how many they are.

    Each row of keys is shifted to the right against the one above. Keys are neighbours if their centres are at most
    1.3 widths of a key apart: those of s are a d w e z x.
    """
    places = {key: (x + shift, y) for y, (shift, row) in enumerate(KEYBOARD) for x, key in enumerate(row)}
    flat: list[int] = []
    counts = []
    for key in sorted(places):
        x, y = places[key]
        near = [ord(each) for each, (x2, y2) in sorted(places.items()) if 0 < (x - x2) ** 2 + (y - y2) ** 2 <= 1.3**2]
        flat += near
        counts.append(len(near))
    return np.array(flat, np.uint64), np.cumsum([0, *counts[:-1]]), np.array(counts)


_KEYS, _FIRST, _COUNT = _neighbours()


class Keyboard(_OfLetters):
    """A letter becomes its neighbour on an English keyboard, of the same case. Only a to z are keys."""

    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        found = Characters.of(phrases)
        key = (found.code | 32) - ord("a")
        is_key = (key >= 0) & (key < 26) & self._letters(found)
        site = choose(is_key, found.row, seeds)
        key = np.where(site >= 0, key[site], 0)
        new = _KEYS[_FIRST[key] + pick(seeds, 1, _COUNT[key])].astype(np.int64) - ord("a")
        letter = len(found.data) + new + 26 * found.has(Trait.UPPER)[site]
        data = np.concatenate([found.data, _ALPHABET])
        edges = found.phrase_start(), found.start[site], letter, letter + 1, found.start[site + 1], found.phrase_end()
        return joined(data, site >= 0, *edges)
