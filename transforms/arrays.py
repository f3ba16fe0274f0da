"""Arrays that the kernels share: slices of a text's bytes as strings and as hashes, runs of flags, flat lists."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[Any]


def slice_strings(buffer: U8, start: I64, end: I64) -> pa.StringArray:
    """The slices `buffer[start:end]`, whole UTF-8 characters, as an array of strings.

    For the slices [0, 3) and [4, 7) `edges` is 0 3 6. The bytes to copy are 0 0 0 1 1 1 + 0 1 2 3 4 5 = 0 1 2 4 5 6.

    >>> slice_strings(np.frombuffer(b"the cat", np.uint8), np.array([0, 4]), np.array([3, 7])).to_pylist()
    ['the', 'cat']
    """
    lengths = end - start
    edges = np.zeros(len(start) + 1, dtype=np.int64)
    np.cumsum(lengths, out=edges[1:])
    data = buffer[np.repeat(start - edges[:-1], lengths) + np.arange(edges[-1])]
    large = pa.LargeStringArray.from_buffers(len(start), pa.py_buffer(edges), pa.py_buffer(data))
    return large.cast(pa.string())


def slice_hashes(buffer: U8, start: I64, end: I64) -> tuple[U64, U64]:
    """Two 64-bit hashes of each slice `buffer[start:end]`, a function of its bytes alone.

    A polynomial hash modulo 2^64 over random values of the bytes, from prefix sums: one pass over the buffer, three
    operations a slice. It groups phrases inside a process; keys on storage are xxh3 of the phrase.

    With the base 10, plain integers and the values 7 1 2 1 2, the prefix sums are 0 7 17 217 1217 21217. The slices
    [1, 3) and [3, 5) both have the hash 21: (217 - 7) / 10 and (21217 - 217) / 1000.
    """
    longest = len(buffer) + 1
    hashes = []
    for seed in (1, 2):
        values, powers, inverses = _hash_tables(seed, longest)
        hashes.append(mix64(_run_hash(values[buffer], start, end, powers, inverses) + (end - start).astype(np.uint64)))
    return hashes[0], hashes[1]


def run_hashes(values: U64, start: I64, end: I64) -> U64:
    """A 64-bit hash of each run `values[start:end]` of numbers that are hashes or 0; 0 if all of the run are 0."""
    _, powers, inverses = _hash_tables(1, len(values) + 1)
    return _run_hash(values, start, end, powers, inverses)


def strings_hashes(strings: pa.Array) -> tuple[U64, U64]:
    """The `slice_hashes` of whole strings."""
    data, edges = string_bytes(strings)
    return slice_hashes(data, edges[:-1], edges[1:])


def _run_hash(values: U64, start: I64, end: I64, powers: U64, inverses: U64) -> U64:
    prefix = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values * powers[: len(values)], out=prefix[1:])
    return (prefix[end] - prefix[start]) * inverses[start]


_TABLES: dict[int, tuple[U64, U64, U64]] = {}


def _hash_tables(seed: int, size: int) -> tuple[U64, U64, U64]:
    """Values of the 256 bytes, and at least `size` powers each of an odd base and of its inverse modulo 2^64."""
    known = _TABLES.get(seed)
    if known is None or len(known[1]) < size:
        values = mix64(np.arange(256, dtype=np.uint64) + np.uint64(1000 * seed))
        base = int(mix64(np.array([seed], dtype=np.uint64))[0]) | 1
        size = 1 << (size - 1).bit_length()
        known = _TABLES[seed] = values, _powers(base, size), _powers(pow(base, -1, 1 << 64), size)
    return known


def _powers(base: int, size: int) -> U64:
    powers = np.full(size, base, dtype=np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)


def mix64(x: U64) -> U64:
    """The finaliser of splitmix64: a bijection in which each bit affects all others (Steele, Lea and Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def next_not(flags: Bools) -> I64:
    """[n] for each place the first at or after it where the flag is not set; n if there is none.

    >>> next_not(np.array([True, False, True, True]))
    array([1, 1, 4, 4])
    """
    n = len(flags)
    places = np.where(flags, n, np.arange(n))
    return np.minimum.accumulate(places[::-1])[::-1]


def previous_not(flags: Bools) -> I64:
    """[n] for each place the last at or before it where the flag is not set; -1 if there is none.

    >>> previous_not(np.array([True, False, True, True]))
    array([-1,  1,  1,  1])
    """
    places = np.where(flags, -1, np.arange(len(flags)))
    return np.maximum.accumulate(places)


def single(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    column = table.column(name)
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else (pa.array([], column.type))
    )


def offsets_of(array: Any) -> I64:
    """[n + 1] the offsets of a list or string array.

    >>> offsets_of(pa.array([[5, 6], [], [7]]))
    array([0, 2, 2, 3])
    """
    if pa.types.is_list(array.type):
        offsets = array.offsets.to_numpy().astype(np.int64)
        return offsets - offsets[0]  # `flatten` of a slice begins with its first element
    raw = np.frombuffer(array.buffers()[1] or b"\0\0\0\0", dtype=np.int32)
    return raw[array.offset : array.offset + len(array) + 1].astype(np.int64)


def string_bytes(strings: Any) -> tuple[U8, I64]:
    """The UTF-8 bytes of n strings, one after the other, and where each begins in them, with the end, [n + 1].

    >>> string_bytes(pa.array(["ab", "é"]))
    (array([ 97,  98, 195, 169], dtype=uint8), array([0, 2, 4]))
    """
    edges = offsets_of(strings)
    raw = np.frombuffer(strings.buffers()[2] or b"", dtype=np.uint8)
    return raw[edges[0] : edges[-1]], edges - edges[0]


def character_starts(data: U8) -> I64:
    """[characters + 1] the byte at which each UTF-8 character begins, and the end.

    >>> character_starts(np.frombuffer("aéb".encode(), np.uint8))
    array([0, 1, 3, 4])
    """
    return np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))


def run_begins(*columns: Numbers) -> Bools:
    """[n] whether each row differs from the one before it in any column; the first row does.

    >>> run_begins(np.array([4, 4, 4]), np.array([1, 1, 2]))
    array([ True, False,  True])
    """
    new = np.zeros(len(columns[0]), dtype=bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def run_starts(*columns: Numbers) -> I64:
    """Where each run of equal rows begins.

    >>> run_starts(np.array([1, 1, 1], np.uint64), np.array([4, 4, 7], np.uint64))
    array([0, 2])
    """
    return np.flatnonzero(run_begins(*columns))


def run_sizes(starts: I64, n: int) -> I64:
    """The sizes of the runs of n rows that begin at `starts`: 2 1 for the starts 0 2 of 3 rows."""
    return np.diff(np.append(starts, n))


def places_in_runs(new: Bools) -> I64:
    """[n] the place of each row in its run; `new` marks the first row of each run.

    >>> places_in_runs(np.array([True, False, True]))
    array([0, 1, 0])
    """
    starts = np.flatnonzero(new)
    return np.arange(len(new)) - np.repeat(starts, run_sizes(starts, len(new)))
