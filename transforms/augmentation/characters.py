"""Augmentations of a character: two neighbours swapped, one dropped, one inserted, one mistyped.

Only letters change, in words that have some: another digit would be another number, another sign another word. What
people see as one character stays whole, with its marks. A capital that lower case follows keeps its place, so that
names still look like names.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa

from schemas.characters import Trait
from schemas.terms import KEYBOARD
from transforms.arrays import I64, U64, Bools
from transforms.augmentation.edits import Characters, choose, of_runs, replaced, shifted, to_characters
from transforms.augmentation.interface import Augmenter, pick

_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", np.uint8)


class _OfLetters(Augmenter):
    """An edit of a letter in a word of at least `min_word_letters` letters."""

    def __init__(self, *, min_word_letters: int) -> None:
        self._least = min_word_letters

    def augment(self, phrases: pa.StringArray, seeds: U64) -> pa.StringArray:
        found = Characters.of(phrases)
        return self._edit(found, seeds) if len(found.traits) else pa.nulls(len(seeds), pa.string())

    @abstractmethod
    def _edit(self, found: Characters, seeds: U64) -> pa.StringArray:
        """What `augment` returns, if there is a character."""

    def _letters(self, found: Characters, begins: Bools) -> Bools:
        letters = found.has(Trait.LETTER)
        long: Bools = to_characters(of_runs(letters, begins) >= self._least, begins)
        return letters & long


def _body(found: Characters, begins: Bools) -> Bools:
    """[characters] the letters that are no capital before a letter of lower case of the same word."""
    leads = found.has(Trait.UPPER)
    if leads.any():
        leads &= shifted(found.has(Trait.LOWER) & ~begins)
    return found.has(Trait.LETTER) & ~leads


class Swap(_OfLetters):
    """Two neighbouring letters change places: different ones, of the same case."""

    def _edit(self, found: Characters, seeds: U64) -> pa.StringArray:
        begins, codes = found.begins_word(), found.codes()
        letters = self._letters(found, begins) & _body(found, begins)
        sites = letters & shifted(letters & ~begins)
        case = found.traits & (Trait.UPPER | Trait.LOWER)
        sites[:-1] &= (case[1:] == case[:-1]) & (codes[1:] != codes[:-1])
        site = choose(sites, found.first, seeds)
        start, middle, end = (found.start[np.minimum(site + n, len(found.start) - 1)] for n in range(3))
        return replaced(found.data, found.edges, site >= 0, start, end, found.data, middle, end, start, middle)


class Drop(_OfLetters):
    """A letter is left out."""

    def _edit(self, found: Characters, seeds: U64) -> pa.StringArray:
        begins = found.begins_word()
        site = choose(self._letters(found, begins) & _body(found, begins), found.first, seeds)
        start, end = found.start[site], found.start[site + 1]
        return replaced(found.data, found.edges, site >= 0, start, end, found.data, start, start)


class Insert(_OfLetters):
    """A letter is inserted after one: any of a to z in Latin script, else a letter of the same word.

    It is a capital only between capitals, and after one that ends the word.
    """

    def _edit(self, found: Characters, seeds: U64) -> pa.StringArray:
        begins = found.begins_word()
        body, latin = _body(found, begins), found.has(Trait.LATIN)
        sites = self._letters(found, begins)
        only_latin = not (sites & ~latin).any()
        if not only_latin:
            sites &= latin | to_characters(of_runs(body, begins) > 0, begins)
        site = choose(sites, found.first, seeds)
        new_start = _letter(found, pick(seeds, 1, np.full(len(site), 26)), (found.has(Trait.UPPER) & body)[site])
        new_end = new_start + 1
        if not only_latin:
            words, own = np.append(np.flatnonzero(begins), len(begins)), np.flatnonzero(body)
            word = np.searchsorted(words, site, side="right")
            low, high = (np.searchsorted(own, words[word - n]) for n in (1, 0))
            source = own[np.minimum(low + pick(seeds, 1, high - low), len(own) - 1)] if len(own) else site
            new_start = np.where(latin[site], new_start, found.start[source])
            new_end = np.where(latin[site], new_end, found.start[source + 1])
        after = found.start[site + 1]
        source_data = np.concatenate([found.data, _ALPHABET])
        return replaced(found.data, found.edges, site >= 0, after, after, source_data, new_start, new_end)


def _letter(found: Characters, number: I64, upper: Bools) -> I64:
    """The place of a letter of _ALPHABET after the phrases' bytes."""
    return len(found.data) + number + 26 * upper


def _neighbours() -> tuple[I64, I64, I64]:
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
    return np.array(flat), np.cumsum([0, *counts[:-1]]), np.array(counts)


_KEYS, _FIRST, _COUNT = _neighbours()


class Keyboard(_OfLetters):
    """A letter becomes its neighbour on an English keyboard, of the same case. Only a to z are keys."""

    def _edit(self, found: Characters, seeds: U64) -> pa.StringArray:
        key = (found.codes() | 32) - np.uint32(ord("a"))  # what is less becomes very large
        site = choose((key < 26) & self._letters(found, found.begins_word()), found.first, seeds)
        key = np.where(site >= 0, key[site], 0)
        new = _KEYS[_FIRST[key] + pick(seeds, 1, _COUNT[key])] - ord("a")
        letter = _letter(found, new, found.has(Trait.UPPER)[site])
        start, source = found.start[site], np.concatenate([found.data, _ALPHABET])
        return replaced(found.data, found.edges, site >= 0, start, start + 1, source, letter, letter + 1)
