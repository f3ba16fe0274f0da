"""What mentions need to know of a wiki's language: the names in its dates, and where its sentences end.

English has rules of its own: `transforms/mentions/dates.py`, and those of the parser `phrasemill`, so that a mention
has the sentence_id of its parsed sentence. For other languages the names are those of Unicode's CLDR, by Babel, and the
ends of sentences are found by sentencex, which Wikimedia wrote for its own wikis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from schemas.errors import UserError
from transforms.parsing.lines import parts as english_passages
from transforms.parsing.sentence_ends import sentence_starts as english_sentence_starts

if TYPE_CHECKING:
    from babel import Locale


def is_english(language: str) -> bool:
    """Whether the rules for English apply to a language; its code is "" where the input does not say it."""
    return re.split("[-_]", language.lower())[0] in ("", "en", "simple")


def require(language: str) -> None:
    """UserError if the libraries for a language are not installed."""
    if is_english(language):
        return
    try:
        import babel  # noqa: F401
        import sentencex  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(
            f"the documents are in the language {language!r}, whose dates and sentences need {error.name}: "
            "pip install 'phrasemill[languages]'"
        ) from error


# ---- Sentences


def passages(text: str, language: str) -> Iterator[tuple[int, int]]:
    """The parts [start, end) of a document that sentences do not cross: lines, in English those that run on as one."""
    if is_english(language):
        return english_passages(text)
    return ((line.start(), line.end()) for line in _LINE.finditer(text))


_LINE = re.compile("[^\n]+")


def sentence_starts(line: str, language: str) -> list[int]:
    """Where sentences begin in a line, in code points; the first is 0."""
    if is_english(language):
        return english_sentence_starts(line)
    require(language)
    from sentencex import segment

    # White space beyond ASCII before a full stop makes sentencex 1.0 fail.
    text = _SPACE.sub(" ", line)
    starts, end = [0], 0
    for sentence in segment(language, text):
        start, end = end + len(sentence) - len(sentence.lstrip()), end + len(sentence)
        if start and start < len(text.rstrip()) and not _NO_END.search(text, 0, start):
            starts.append(start)
    return starts


_SPACE = re.compile(r"\s")
_NO_END = re.compile(r"(?<!\w)(?:\d{1,2}|[^\W\d_])\.\s+\Z")
"""Before what sentencex takes for a beginning: an ordinal ("der 2. Weltkrieg") or an initial ("M. Dupont")."""


# ---- Dates


class DateWords(NamedTuple):
    """The words of a language's dates, in small letters."""

    every: frozenset[str]
    times: frozenset[str]  # names of months, days and spans of time
    with_number: frozenset[str]  # such as eras: those that make a date of a number


_WORD = re.compile(r"\d+|[^\s\d.,;:/()\[\]'’\"“”–—_\-\u200e\u200f،]+")
_ROMAN = re.compile(r"[ivxlcdm]{1,8}(?:e|ᵉ|er|ème|º)?\Z")
_LONGEST = 60


def words_of(text: str) -> list[str]:
    """The words and numbers of a text in small letters: "5月3日" has the words 5, 月, 3 and 日."""
    return _WORD.findall(text.lower())


def looks_like_date(text: str, language: str) -> bool:
    """Whether a text has only words and numbers of dates: with a time, a year, or a number and an era."""
    if len(text) > _LONGEST:
        return False
    names, words = date_words(language), words_of(text)
    numbers = [word for word in words if word.isdigit()]
    if not all(word in names.every or _ROMAN.match(word) for word in words if not word.isdigit()):
        return False
    if any(len(number) > 4 for number in numbers):
        return False
    return (
        not names.times.isdisjoint(words)
        or any(len(number) > 2 for number in numbers)
        or (bool(numbers) and not names.with_number.isdisjoint(words))
    )


@lru_cache(maxsize=64)
def date_words(language: str) -> DateWords:
    """The words of a language's dates; none for a language that CLDR does not have."""
    require(language)
    locale = _locale(language)
    if locale is None:
        return DateWords(frozenset(), frozenset(), frozenset())
    spans, more = OWN_WORDS.get(locale.language, ("", ""))
    months = [
        name
        for use in ("format", "stand-alone")
        for width in ("wide", "abbreviated")
        for name in locale.months[use][width].values()
    ]
    days = [name for use in ("format", "stand-alone") for name in locale.days[use]["wide"].values()]
    eras = [name for width in ("wide", "abbreviated") for name in locale.eras[width].values()]
    named, numbered = _by_digits([*months, *days, *_spans(locale)])
    skeletons = (form for name, form in locale.datetime_skeletons.items() if _OF_DATES.match(name))
    patterns = [str(form) for form in (*locale.date_formats.values(), *skeletons)]
    literals = {word for each in patterns for word in words_of(_literals(each))}
    times = named | {*spans.split()}
    with_number = numbered | {word for each in eras for word in words_of(each)} | {*"年月日"}
    return DateWords(times | with_number | literals | {*more.split()}, times, with_number)


_OF_DATES = re.compile(r"[GyMLdEc]+\Z")


def _by_digits(names: list[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The words of names, and those of names that are made with a number, such as "5月", which alone is the moon."""
    plain = {word for name in names if not re.search(r"\d", name) for word in words_of(name)}
    made = {word for name in names if re.search(r"\d", name) for word in words_of(name) if not word.isdigit()}
    return frozenset(plain), frozenset(made)


def _literals(pattern: str) -> str:
    """What a pattern writes besides its fields: "d 'de' MMMM" has "de", "y年M月" has 年 and 月."""
    return " ".join([*re.findall(r"'([^']*)'", pattern), re.sub(r"'[^']*'|[A-Za-z]+", " ", pattern)])


def _locale(language: str) -> Locale | None:
    from babel import Locale, UnknownLocaleError

    for name in (language, language.replace("-", "_").partition("_")[0]):
        try:
            return Locale.parse(name.replace("-", "_"))
        except (UnknownLocaleError, ValueError):
            continue
    return None


def _spans(locale: Locale) -> list[str]:
    """The words for centuries and decades, in their plural forms."""
    from babel.units import format_unit, get_unit_name

    units = [unit for unit in ("duration-century", "duration-decade") if get_unit_name(unit, locale=locale)]
    return [re.sub(r"\d", "", format_unit(number, unit, locale=locale)) for unit in units for number in (1, 2, 5)]


OWN_WORDS = {
    "ar": ("القرن", "عام سنة سنوات م ه"),
    "de": (
        "",
        "der die das den dem des im am um ca seit bis und jahr jahre jahren er frühe frühen späten mitte anfang",
    ),
    "es": ("", "el la los las en del y año años hacia"),
    "fr": ("", "le la les l en au du des d et er e ème an année années vers début fin"),
    "it": ("", "il lo la l gli i le in nel negli del dal al e anno anni"),
    "ja": ("世紀 年代", "頃 ごろ 前半 後半"),
    "nl": ("eeuw", "de het een in van en e ste jaar jaren"),
    "pl": ("", "w r rok roku lata latach i do od"),
    "pt": ("", "o a os as em no na do da dos e ano anos"),
    "ru": ("", "в г гг год года году годы годов и е х й го"),
    "zh": ("世纪 世紀 年代", "初 末"),
}
"""What CLDR does not have: further names of spans of time, and articles, endings of numbers and words for years."""
