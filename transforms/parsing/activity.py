"""How much the parsers of this process have parsed: a sign of life for the worker pool, as a call may take minutes."""

from __future__ import annotations

_parsed = 0


def parsed() -> int:
    """The number of sentences (for spaCy and CoreNLP: of texts) parsed so far."""
    return _parsed


def note_parsed(number: int) -> None:
    global _parsed
    _parsed += number
