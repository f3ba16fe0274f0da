"""Whether two English phrases are variants of one: other spelling, hyphens, inflection, determiners; "of" before it.

Numbers and the signs at them must be the same. Negations and quantifiers are words like all others, and so are
prepositions where each phrase begins with one: "before the war" is no variant of "after the war".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

_WORD = re.compile(r"\S*\d\S*|[^\W_]+(?:['\u2019][^\W_]+)*")
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u2010\u2011](?=\w)|(?<=\w)[-\u2010\u2011](?=[^\W\d_])")
_ARTICLES = frozenset("a an the".split())
_DEMONSTRATIVES = frozenset("this that these those".split())
_POSSESSIVES = frozenset("my your his her its our their thy".split())
_PREPOSITIONS = frozenset("by for from in into of to toward towards with".split())
"""Those that add little to what follows. Others often make idioms: "as possible", "at best", "on purpose"."""
_APART = frozenset.union(_ARTICLES, _DEMONSTRATIVES, _POSSESSIVES, _PREPOSITIONS) | frozenset(
    "all and any as at be but here is may no not on or over so some than there under up upon".split()
)
"""Words that are not joined with others: "in justice" is not "injustice", "a way" not "away"."""
_OTHER_MEANING = frozenset(
    "aged bearing founded founding goods humanities interesting missing news odds parted parting tens united wicked"
    " willing".split()
)
"""Words that look like regular forms and mean something else."""
_AMERICAN = (
    (re.compile(r"(?<=..)our"), "or"),  # colour, neighbours
    (re.compile(r"(?<=...)(i|y)s(?=e|ing|at)"), r"\1z"),  # realise, analysing, organisation
    (re.compile(r"(?<=..[bghptv])re(?=s?$)"), "er"),  # centre
    (re.compile(r"ogue(?=s?$)"), "og"),  # catalogue
    (re.compile(r"(?<=.)ae(?=..)"), "e"),  # archaeology
    (re.compile(r"(?<=..[aeiou])ll(?=ers?$)"), "l"),  # traveller
    (re.compile(r"^grey"), "gray"),
)
_SIBILANT = re.compile(r"(?:s|x|z|ch|sh|.o)es$")
_ONE_SYLLABLE = re.compile(r"[^aeiouy]*[aeiouy][^aeiouwxy]")


def is_variant(one: str, other: str) -> bool:
    """Whether two phrases have the same letters and numbers, or the same words but for what is said above.

    Articles, endings and spelling may all differ at once. Where another determiner or a preposition at the beginning
    is more, less or another, the other words must be equal: "his rooms" is no variant of "her room". Nor is "in this
    way" of "in his way".

    >>> [is_variant("e-mail", "email"), is_variant("the old man's hopes", "old man hoped"), is_variant("hop", "hope")]
    [True, True, False]
    >>> [is_variant("of russia", "russia"), is_variant("of russia", "to russia"), is_variant("our life", "your life")]
    [True, False, True]
    """
    a, b = _parts(one), _parts(other)
    return (
        a.letters == b.letters
        or a.named == b.named
        or a.content == b.content
        or a.object == b.named
        or b.object == a.named
        or (len(a.forms) == len(b.forms) > 0 and not any(map(frozenset.isdisjoint, a.forms, b.forms)))
    )


class _Parts(NamedTuple):
    """A phrase without diacritics, in ways that make variants equal."""

    letters: str
    """Without hyphens, and blanks but for those at function words and numbers."""
    forms: tuple[frozenset[str], ...]
    """What each word, but for articles, may be a form of."""
    named: tuple[str, ...]
    """The words without articles and demonstratives."""
    object: tuple[str, ...] | None
    """Those after a preposition at the beginning, if there is one."""
    content: tuple[str, ...]
    """The words without articles and possessives."""


@lru_cache(maxsize=1 << 16)
def _parts(phrase: str) -> _Parts:
    folded = unicodedata.normalize("NFKD", phrase.casefold())
    plain = "".join(char for char in folded if not unicodedata.combining(char))
    joined = _WORD.findall(_HYPHEN.sub("", plain))
    letters = "".join(f" {each} " if each in _APART or _has_digit(each) else each for each in joined) or plain
    words = [each for each in _WORD.findall(_HYPHEN.sub(" ", plain)) if each not in _ARTICLES]
    # At the end they are pronouns: "told her".
    named, content = (
        (*(each for each in words[:-1] if each not in left_out), *(words[-1:] or [plain]))
        for left_out in (_DEMONSTRATIVES, _POSSESSIVES)
    )
    led = len(named) > 1 and named[0] in _PREPOSITIONS
    return _Parts(letters, tuple(map(forms, words)), named, named[1:] if led else None, content)


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


@lru_cache(maxsize=1 << 16)
def forms(word: str) -> frozenset[str]:
    """The words, in American spelling, of which a word may be a regular form (plural, 's, -s, -ed, -ing); and itself.

    >>> sorted(forms("hoping")), sorted(forms("visits")), sorted(forms("king"))
    (['hope', 'hoping'], ['visit', 'visits'], ['king'])
    """
    if word in _OTHER_MEANING or _has_digit(word):
        return frozenset({word})
    word = re.sub(r"['\u2019]s?$", "", word)
    for pattern, by in _AMERICAN:
        word = pattern.sub(by, word)
    return frozenset({word, *_without_ending(word)})


def _without_ending(word: str) -> Iterator[str]:
    if word.endswith("ies") and len(word) > 4:
        yield word[:-3] + "y"
    elif _SIBILANT.search(word):
        yield word[:-2]
        yield word[:-1]
    elif re.search(r"..[^sui]s$", word):
        yield word[:-1]
    found = re.fullmatch(r"(.*[aeiouy].*)(?:(?<!e)ed|ing)", word)
    if not found:
        return
    stem = found[1]
    yield stem + "e"
    # hoped is not of hop, nor pleased of pleas, but visited is of visit
    if not _ONE_SYLLABLE.fullmatch(stem) and not re.search(r"[^su]s$", stem):
        yield stem
    if stem[-1] == stem[-2:-1] != "s":  # discussed is not of discus
        yield stem[:-1]
    if stem.endswith("i"):
        yield stem[:-1] + "y"
