"""How far this process is in what it reads and parses: a sign of life, as one call may take minutes.

Readers and parsers say it here; who called them may ask, from any thread.
"""

from __future__ import annotations

from collections.abc import Callable

_byte = 0
_parsed = 0
_share = 0.0


def read_up_to() -> int:
    """The byte of the stored input file up to which was read."""
    return _byte


def note_read(byte: int) -> None:
    global _byte
    _byte = byte


def parsed() -> int:
    """The number of sentences (for spaCy and CoreNLP: of texts) parsed so far."""
    return _parsed


def parsed_share() -> float:
    """How much of the current or last call of a parser is done, from 0 to 1."""
    return _share


def begin_call() -> None:
    """A call of a parser begins: nothing of it is done."""
    global _share
    _share = 0.0


def noting(total: int, *, begin: float = 0.0, end: float = 1.0) -> Callable[[int, int], None]:
    """What a parser calls after each batch, with its size, of `total` of the call, and the number of its sentences.

    The batches are the part of the call from `begin` to `end`.
    """
    global _share
    _share, done = begin, 0

    def note(size: int, number: int) -> None:
        global _parsed, _share
        nonlocal done
        _parsed += number
        done += size
        _share = begin + (end - begin) * done / max(total, 1)

    return note
