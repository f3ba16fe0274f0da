"""bzip2's blocks, each read on its own, so that a stream can be entered at any of them.

A stream is "BZh" and a digit, blocks, and an end. Each block and the end begin with a magic number of 48 bits, at any
bit. A block refers to nothing outside itself, so any library can decompress it as the only block of a new stream.

The CRC of each block is checked. The CRC of a stream combines those of its blocks; it is not checked, because a reader
of a part of a file does not see them all.
"""

from __future__ import annotations

import bz2
from collections import defaultdict
from typing import NamedTuple

import numpy as np

HEADER = b"BZh9"  # of a stream with the largest blocks; smaller ones can be decompressed under it as well
MARK_BYTES = 7  # that 48 bits touch at most, at any bit
MAX_BLOCK = 1 << 21  # bytes of a compressed block: more than 18 bits for each of 900,000 symbols

_BITS = 48
_CRC_BITS = 32
_BLOCK = 0x314159265359
_END = 0x177245385090
END_BITS = _BITS + _CRC_BITS  # followed by zeros up to a whole byte


class NotABlock(Exception):
    """The bits are not a block of bzip2, or a damaged one."""


class Mark(NamedTuple):
    """Where a block begins or a stream ends, or where compressed data look like it by chance (once in 2^48 bits)."""

    bit: int
    is_end: bool


class _Trace(NamedTuple):
    """A mark that two bytes at an even offset may be a part of."""

    before: int  # how many bytes before the two the mark begins
    offset: int  # of the mark's first bit in its first byte
    is_end: bool


def _traces() -> dict[int, list[_Trace]]:
    """The traces of each pair of bytes.

    A mark of 48 bits fills at least its bytes 1 to 5, so one of its pairs (1, 2) and (2, 3) is at an even offset. With
    8 bit offsets and 2 kinds of mark that is 32 pairs to look for: a block's at offset 0 are 59 26 (hexadecimal, its
    bytes are 31 41 59 26 53 59) and 41 59.
    """
    traces: dict[int, list[_Trace]] = defaultdict(list)
    for is_end, magic in enumerate((_BLOCK, _END)):
        for offset in range(8):
            touched = (magic << (8 - offset)).to_bytes(MARK_BYTES, "big")
            for before in (1, 2):
                pair = int.from_bytes(touched[before : before + 2], "little")
                traces[pair].append(_Trace(before, offset, bool(is_end)))
    return traces


_TRACES = _traces()
_HAS_TRACE = np.zeros(1 << 16, bool)
_HAS_TRACE[list(_TRACES)] = True


def find_marks(data: bytes) -> list[Mark]:
    """All marks in `data`, in order; bits are counted from its first bit."""
    pairs = np.frombuffer(data, "<u2", count=len(data) // 2)
    found = []
    for index in np.flatnonzero(np.take(_HAS_TRACE, pairs)).tolist():
        for before, offset, is_end in _TRACES[int(pairs[index])]:
            byte = 2 * index - before
            if byte < 0:
                continue
            touched = data[byte : byte + MARK_BYTES]
            magic = int.from_bytes(touched.ljust(MARK_BYTES, b"\0"), "big") >> (8 - offset) & ((1 << _BITS) - 1)
            if 8 * len(touched) >= offset + _BITS and magic == (_END if is_end else _BLOCK):
                found.append(Mark(8 * byte + offset, is_end))
    return sorted(found)


def read_block(data: bytes, begin: int, end: int) -> bytes:
    """The block in the bits [begin, end) of `data`, decompressed (at most 46 MB). Raises NotABlock."""
    length = end - begin
    bits = int.from_bytes(data[begin // 8 : -(-end // 8)], "big") >> (-end % 8) & ((1 << length) - 1)
    crc = bits >> max(0, length - END_BITS) & ((1 << _CRC_BITS) - 1)
    stream = (bits << _BITS | _END) << _CRC_BITS | crc  # the CRC of a stream of one block is the block's
    length += END_BITS
    decompressor = bz2.BZ2Decompressor()
    try:
        block = decompressor.decompress(HEADER + (stream << (-length % 8)).to_bytes(-(-length // 8), "big"))
    except OSError as error:
        raise NotABlock(str(error)) from error
    if not decompressor.eof or decompressor.unused_data:
        raise NotABlock("it does not end where it should")
    return block


def is_cut_block(data: bytes, begin: int) -> bool:
    """Whether `data` ends, without a fault, before the end of the block at bit `begin` and of the mark after it."""
    rest = data[begin // 8 :]
    bits = int.from_bytes(rest, "big") << begin % 8 & ((1 << 8 * len(rest)) - 1)
    decompressor = bz2.BZ2Decompressor()
    try:
        decompressor.decompress(HEADER + bits.to_bytes(len(rest), "big")[: len(rest) - (begin % 8 > 0)])
    except OSError:
        return False
    return not decompressor.eof
