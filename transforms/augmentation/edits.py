"""Edits of many phrases at once: their characters as arrays, a site in each, and new phrases joined of slices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.characters import Trait, traits
from transforms.arrays import I64, U8, U64, Bools, character_starts, slice_hashes, slice_strings, string_bytes
from transforms.augmentation.interface import pick

_TRAITS = np.zeros(0x110000, np.uint8)
"""The traits of code points, as far as they have occurred."""


class Characters(NamedTuple):
    """The characters of n phrases, one after the other, none of them parted (`schemas/characters.py`).

    For "a cat" and "ox", `first` is 0 5 7 and `word` 0 0 1 1 1 2 2: a blank belongs to the word before it.
    """

    data: U8  # the phrases' bytes
    start: I64  # [characters + 1] the byte at which each begins, and the end
    first: I64  # [n + 1] the first character of each phrase
    row: I64  # [characters] the phrase of each
    word: I64  # [characters] the word of each
    traits: U8  # [characters] of its first code point
    code: I64  # [characters] its code point; a hash, if it has several

    @classmethod
    def of(cls, phrases: pa.StringArray) -> Characters:
        data, edges = string_bytes(phrases)
        at = character_starts(data)
        codes = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
        found = traits_of(codes)
        begins = (found & Trait.JOINS_PREVIOUS) == 0
        begins[1:] &= (found[:-1] & Trait.JOINS_NEXT) == 0
        place = np.searchsorted(at, edges)
        begins[place[:-1][edges[1:] > edges[:-1]]] = True
        begin = np.flatnonzero(begins)
        first = np.searchsorted(begin, place)
        row = np.repeat(np.arange(len(phrases)), np.diff(first))
        start, found, code = np.append(at[begin], len(data)), found[begin], codes[begin].astype(np.int64)
        several = np.flatnonzero(np.diff(np.append(begin, len(codes))) > 1)
        if len(several):
            hashes = slice_hashes(data, start[several], start[several + 1])[0]
            code[several] = hashes.astype(np.int64) | (1 << 40)
        new_word = np.zeros(len(row), bool)
        new_word[1:] = (row[1:] != row[:-1]) | (((found[:-1] & Trait.SPACE) != 0) & ((found[1:] & Trait.SPACE) == 0))
        return cls(data, start, first, row, np.cumsum(new_word), found, code)

    def has(self, trait: int) -> Bools:
        """[characters] whether each has a trait."""
        return (self.traits & trait) != 0

    def of_words(self, flags: Bools) -> I64:
        """[characters] how many characters of the word of each have a flag."""
        return np.bincount(self.word, flags, minlength=1).astype(np.int64)[self.word]

    def phrase_start(self) -> I64:
        """[n] the byte at which each phrase begins."""
        return self.start[self.first[:-1]]

    def phrase_end(self) -> I64:
        return self.start[self.first[1:]]


def traits_of(codes: npt.NDArray[np.uint32]) -> U8:
    """The traits of code points."""
    found = _TRAITS[codes]
    if not found.all():
        for code in np.unique(codes[found == 0]).tolist():
            _TRAITS[code] = traits(chr(code))
        found = _TRAITS[codes]
    return found


def shifted(flags: Bools) -> Bools:
    """Each flag is that of the next place: 1 0 1 gives 0 1 0."""
    found = np.zeros_like(flags)
    found[:-1] = flags[1:]
    return found


def choose(sites: Bools, row: I64, seeds: U64) -> I64:
    """[n] for each row one of its sites, evenly, by the first choice of its seed; -1 for a row without one."""
    places = np.flatnonzero(sites)
    counts = np.bincount(row[places], minlength=len(seeds))
    before = np.cumsum(counts) - counts
    if not len(places):
        return np.full(len(seeds), -1)
    chosen = places[np.minimum(before + pick(seeds, 0, counts), len(places) - 1)]
    return np.where(counts > 0, chosen, -1)


def joined(data: U8, known: Bools, *edges: I64) -> pa.StringArray:
    """[n] strings joined of slices of `data`, [start, end) each; null where they are not `known`.

    >>> joined(np.frombuffer(b"abc", np.uint8), np.array([True]), *map(np.array, ([1], [3], [0], [1]))).to_pylist()
    ['bca']
    """
    starts, ends = (np.where(known[:, None], np.stack(each, axis=1), 0) for each in (edges[::2], edges[1::2]))
    lengths = np.cumsum((ends - starts).sum(axis=1))
    pieces = slice_strings(data, starts.ravel(), ends.ravel())
    offsets = np.concatenate(([0], lengths)).astype(np.int32)
    whole = pa.StringArray.from_buffers(len(known), pa.py_buffer(offsets), pieces.buffers()[2] or pa.py_buffer(b""))
    return whole if known.all() else pc.if_else(pa.array(known), whole, pa.scalar(None, pa.string()))
