"""How much the parsers of this process have parsed: a call may take minutes, and who watches wants a sign of life."""

from __future__ import annotations

_parsed = 0


def parsed() -> int:
    """Sentences (of spaCy and CoreNLP: texts) parsed so far."""
    return _parsed


def note_parsed(number: int) -> None:
    global _parsed
    _parsed += number
