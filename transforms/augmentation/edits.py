"""Edits of many phrases at once: what their characters are, a site in each phrase, and new text at that site."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.characters import Trait, traits
from transforms.arrays import I64, U8, U64, Bools, slice_strings, string_bytes, strings_hashes
from transforms.augmentation.interface import pick

_TRAITS = np.zeros(0x110000, np.uint8)
"""The traits of code points, as far as they have occurred."""


class Characters(NamedTuple):
    """The characters of n phrases, one after the other, none of them parted (`schemas/characters.py`)."""

    data: U8  # the phrases' bytes
    edges: I64  # [n + 1] the byte at which each phrase begins, and the end
    start: I64  # [characters + 1] the byte at which each character begins, and the end
    first: I64  # [n + 1] the first character of each phrase, and the end
    traits: U8  # [characters] of its first code point

    @classmethod
    def of(cls, phrases: pa.StringArray) -> Characters:
        data, edges = string_bytes(phrases)
        found = _byte_traits()[data]
        other = data >= 0x80
        if not other.any():
            return cls(data, edges, np.arange(len(data) + 1), edges, found)
        lead = np.flatnonzero(data >= 0xC0)
        codes = np.frombuffer(data[other].tobytes().decode().encode("utf-32-le"), np.uint32)
        found[lead] = traits_of(codes)
        begins = np.ones(len(data) + 1, bool)
        begins[:-1] = (found & Trait.JOINS_PREVIOUS) == 0
        sizes = 2 + (codes >= 0x800) + (codes >= 0x10000)
        begins_phrase = np.zeros(len(data) + 1, bool)
        begins_phrase[edges] = True
        joins = (found[lead] & Trait.JOINS_NEXT) != 0
        goes_on = ((found[lead] & Trait.JOINS_PREVIOUS) != 0) & ~begins_phrase[lead]
        goes_on[1:] &= lead[1:] == (lead + sizes)[:-1]
        while (more := ~joins[1:] & goes_on[1:] & joins[:-1]).any():  # a mark on what joins the next
            joins[1:] |= more
        after = (lead + sizes)[joins]
        begins[after] = False
        begins[:-1] |= (found & Trait.SPACE) != 0
        begins[edges] = True
        start = np.flatnonzero(begins)
        found = found[start[:-1]]
        # What would join another character, if it stood before one, stays where it is.
        found[np.searchsorted(start, after[begins[after]]) - 1] &= 0xFF - Trait.LETTER
        return cls(data, edges, start, np.searchsorted(start, edges), found)

    def has(self, trait: int) -> Bools:
        """[characters] whether each has a trait."""
        return (self.traits & trait) != 0

    def begins_word(self) -> Bools:
        """[characters] whether each is white space, or begins a phrase: where a word ends or another begins."""
        begins = np.append(self.has(Trait.SPACE), False)
        begins[self.first] = True
        return begins[:-1]

    def codes(self) -> npt.NDArray[np.uint32]:
        """[characters] a number for each: its byte, or 256 and more, a hash, if it has several."""
        found = self.data[self.start[:-1]].astype(np.uint32)
        if len(found) < len(self.data):
            several = np.flatnonzero(np.diff(self.start) > 1)
            texts = slice_strings(self.data, self.start[several], self.start[several + 1])
            found[several] = strings_hashes(texts)[0] >> np.uint64(32) | np.uint64(256)
        return found


@functools.cache
def _byte_traits() -> U8:
    """[256] the traits of ASCII; the other bytes of a character join the first."""
    found = np.full(256, Trait.KNOWN | Trait.JOINS_PREVIOUS, np.uint8)
    found[:128] = traits_of(np.arange(128, dtype=np.uint32))
    return found


def traits_of(codes: npt.NDArray[np.uint32]) -> U8:
    """The traits of code points."""
    found = _TRAITS[codes]
    if not found.all():
        for code in np.unique(codes[found == 0]).tolist():
            _TRAITS[code] = traits(chr(code))
        found = _TRAITS[codes]
    return found


def of_runs(flags: Bools, begins: Bools) -> I64:
    """How many flags each run of characters has; `begins` marks the first character of each run."""
    return np.add.reduceat(flags, np.flatnonzero(begins), dtype=np.int64) if len(flags) else np.empty(0, np.int64)


def to_characters(of_run: Bools, begins: Bools) -> Bools:
    """What is true of each run, for each of its characters."""
    return np.repeat(of_run, np.diff(np.append(np.flatnonzero(begins), len(begins))))


def shifted(flags: Bools) -> Bools:
    """Each flag is that of the next place: 1 0 1 gives 0 1 0."""
    found = np.zeros_like(flags)
    found[:-1] = flags[1:]
    return found


def choose(sites: Bools, first: I64, seeds: U64) -> I64:
    """[n] for each row one of its sites, evenly, by the first choice of its seed; -1 for a row without one.

    `first` [n + 1] are the places at which rows begin, and the end.
    """
    places = np.flatnonzero(sites)
    if not len(places):
        return np.full(len(seeds), -1)
    before = np.searchsorted(places, first)
    counts = np.diff(before)
    chosen = places[np.minimum(before[:-1] + pick(seeds, 0, counts), len(places) - 1)]
    return np.where(counts > 0, chosen, -1)


def replaced(data: U8, edges: I64, known: Bools, start: I64, end: I64, source: U8, *pieces: I64) -> pa.StringArray:
    """[n] the phrases with [start, end) of `data` replaced by pieces of `source`, [start, end) each.

    Null where it is not `known` that there is something to replace.

    >>> one = [np.array([place]) for place in (0, 2, 1, 2, 0, 1)]
    >>> data = np.frombuffer(b"abc", np.uint8)
    >>> replaced(data, np.array([0, 3]), np.array([True]), one[0], one[1], data, *one[2:]).to_pylist()
    ['bac']
    """
    start, end = np.where(known, start, edges[:-1]), np.where(known, end, edges[:-1])
    starts, ends = (np.where(known[:, None], np.stack(each, axis=1), 0) for each in (pieces[::2], pieces[1::2]))
    new_lengths = (ends - starts).sum(axis=1)
    grown = np.cumsum(new_lengths - (end - start))
    new_start = start.copy()
    new_start[1:] += grown[:-1]
    out = np.empty(len(data) + int(grown[-1]) if len(grown) else 0, np.uint8)
    is_old, stays = np.ones(len(out), bool), np.ones(len(data), bool)
    stays[_places(start, end - start)] = False
    new = _places(new_start, new_lengths)
    is_old[new] = False
    out[is_old] = data[stays]
    starts, lengths = starts.ravel(), (ends - starts).ravel()
    out[new] = source[_places(starts, lengths)]
    offsets = edges.astype(np.int32)
    offsets[1:] += grown.astype(np.int32)
    whole = pa.StringArray.from_buffers(len(known), pa.py_buffer(offsets), pa.py_buffer(out))
    return whole if known.all() else pc.if_else(pa.array(known), whole, pa.scalar(None, pa.string()))


def _places(starts: I64, lengths: I64) -> I64:
    """The places of slices, one after the other: 3 4 7 for the starts 3 7 and the lengths 2 1."""
    until = np.cumsum(lengths)
    return np.repeat(starts - (until - lengths), lengths) + np.arange(until[-1] if len(until) else 0)
