"""Random phrases for pairs: each uniform among all phrases, by hash, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import xxhash

from transforms.arrays import I64, mix64

ROUNDS = 64
"""After this many rounds a row goes without: nearly all phrases are paraphrases of its own."""

_STEP = np.uint64(0x9E3779B97F4A7C15)


class Wanted(NamedTuple):
    """A pair that wants phrases drawn. `taken`: those that it must not get, at least its phrase and paraphrases of it.

    Rows of one phrase may share the set.
    """

    phrase: str
    other: str
    taken: set[str]


def draw(
    wanted: Sequence[Wanted],
    draws: int,
    *,
    phrases: int,
    seed: int,
    look_up: Callable[[I64], Sequence[str]],
    apart: bool,
) -> list[list[str]]:
    """`draws` distinct phrases for each row, none of which is taken; fewer if there are not enough.

    Draw d of a pair is the phrase whose number is the hash of the pair, d and the seed, modulo the number of all
    `phrases`; one that is taken, or drawn before, is passed over. `look_up` gives the phrases of some numbers, which
    ascend. `apart`: rows that share `taken` get different phrases.
    """
    drawn: list[list[str]] = [[] for _ in wanted]
    names = (f"draw\0{each.phrase}\0{each.other}".encode() for each in wanted)
    base = np.array([xxhash.xxh3_64_intdigest(name, seed=seed) for name in names], np.uint64)
    done = np.zeros(len(wanted), dtype=np.int64)  # draws so far
    open_ = [row for row in range(len(wanted)) if phrases]
    for _ in range(ROUNDS):
        if not open_:
            break
        missing = np.array([draws - len(drawn[row]) for row in open_])
        rows = np.repeat(np.array(open_), missing)
        number = np.arange(len(rows)) - np.repeat(np.cumsum(missing) - missing, missing) + done[rows]
        places = (mix64(base[rows] + number.astype(np.uint64) * _STEP) % np.uint64(phrases)).astype(np.int64)
        done[open_] += missing
        distinct, where = np.unique(places, return_inverse=True)
        texts = look_up(distinct)
        for row, place in zip(rows.tolist(), where.tolist(), strict=True):
            text, taken, own = texts[place], wanted[row].taken, drawn[row]
            if text not in taken and text not in own:
                own.append(text)
                if apart:
                    taken.add(text)
        open_ = [row for row in open_ if len(drawn[row]) < draws]
    return drawn
