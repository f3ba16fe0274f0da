"""Mentions that are dates: the forms in which an encyclopedia links to years and days.

Those of English are here, those of other languages in `transforms/mentions/languages.py`.
"""

from __future__ import annotations

import re
from functools import partial

from transforms.mentions.languages import is_english, looks_like_date

_MONTH = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_DAY = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_ORDINAL = (
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth"
    "|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|twenty-first"
)
_NUMBER = r"\d{1,4}(?:st|nd|rd|th|s)?"
_ERA = r"bce?|ad|ce|b\.c\.(?:e\.)?|a\.d\."
_SPAN = "century|centuries|decades?|millennium|millennia"
_FILLER = "the|of|in|early|mid|late|and|to|c|ca|circa|around|about"
_WORD = rf"(?:{_MONTH}|{_DAY}|{_ORDINAL}|{_NUMBER}|{_ERA}|{_SPAN}|{_FILLER})\.?"
_JOINT = r"(?:[\s,/–—-]+)"
_ONLY_DATE_WORDS = re.compile(rf"['’]?{_WORD}(?:{_JOINT}{_WORD})*", re.IGNORECASE)
_NAMES_TIME = re.compile(
    rf"\b(?:{_MONTH}|{_DAY}|{_SPAN})\b|\b\d{{3,4}}s?\b|\b(?:{_ERA})(?!\w)|['’]?\d0s\b", re.IGNORECASE
)
_DIGIT = re.compile(r"\d")


def is_date(mention: str, target_title: str, language: str = "en") -> bool:
    """Whether a mention is a date, a year or a part of one: "5 May", "1990s", "the 19th century", "300 BC".

    A word with other meanings ("May", "March", "Second") counts as a date only if the title of its target is one.
    """
    looks = _looks_like_date if is_english(language) else partial(looks_like_date, language=language)
    if not looks(mention):
        return False
    return _DIGIT.search(mention) is not None or looks(target_title)


def _looks_like_date(text: str) -> bool:
    return len(text) <= 60 and _ONLY_DATE_WORDS.fullmatch(text) is not None and _NAMES_TIME.search(text) is not None
