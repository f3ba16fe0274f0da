"""Mentions: the hyperlinks of a document in their sentences.

UCTopic (Li, Shang and McAuley 2022), section 3.1: a hyperlinked span is a phrase, and the page it links to is its
meaning. In English, sentences are those of the parser `phrasemill`, so that a mention has the sentence_id of its parsed
sentence.

Optionally, a page's own title and anchors that the page has linked before are mentions where they occur without a link.
Their origin says which of these they are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from schemas.terms import ORIGINS
from transforms.mentions.dates import is_date
from transforms.mentions.languages import passages, sentence_starts
from transforms.mentions.options import MentionRules

LINK, TITLE, REPEAT = ORIGINS


class Target(NamedTuple):
    """What a title means. `resolution` says how it was found: qid, redirect, title or NIL."""

    entity_id: str
    title: str
    resolution: str
    disambiguation: bool = False
    section: str = ""


class Span(NamedTuple):
    """A candidate: code points [start, end) of a document's text, and the title it refers to."""

    start: int
    end: int
    title: str
    entity_id: str  # given by the link itself; mostly empty
    section: str  # named by the link itself
    origin: str


class Source(NamedTuple):
    """The parts of a document in which mentions are found."""

    title: str
    text: str
    links: Sequence[Mapping[str, Any]]  # as in the column `links` of documents
    language: str = "en"


class Found(NamedTuple):
    """A mention in its sentence; `sentence_start` counts code points of the document, the offsets those of `text`."""

    target: Target
    mention: str
    sentence_start: int
    text: str
    start_char: int
    end_char: int
    origin: str


def titles_of(document: Source, rules: MentionRules) -> list[str]:
    """The titles to resolve before `find_mentions`: the page's own and those it links to."""
    return [document.title, *(link["target_title"] for link in document.links)]


def find_mentions(
    document: Source, targets: Mapping[str, Target], rules: MentionRules, filtered: Counter[str]
) -> Iterator[Found]:
    """The mentions of a document in order; adds what is left out to `filtered`, by reason.

    `targets` has the meaning of each of `titles_of`. Every span of `spans_of` is either a mention or counted.
    """
    spans, ambiguous = spans_of(document, rules)
    filtered.update({"ambiguous_anchor": ambiguous} if ambiguous else {})
    own = targets.get(document.title)
    if rules.drop_lists and (is_list(document.title) or (own is not None and own.disambiguation)):
        filtered.update({"list_page": len(spans)} if spans else {})
        return
    for span, sentence in zip(spans, _sentences(document, spans), strict=True):
        if sentence is None:
            filtered["across_sentences"] += 1
            continue
        start, end = sentence
        found = Found(
            _target(span, targets),
            document.text[span.start : span.end],
            start,
            document.text[start:end],
            span.start - start,
            span.end - start,
            span.origin,
        )
        if reason := _reason(found, rules, document.language):
            filtered[reason] += 1
        else:
            yield found


def _target(span: Span, targets: Mapping[str, Target]) -> Target:
    target = targets[span.title]
    if span.section:
        target = target._replace(section=span.section)
    if span.entity_id and not target.entity_id:
        return target._replace(entity_id=span.entity_id, resolution="qid")
    return target


_LIST_TITLE = re.compile(
    r"(?:list|lists|index|outline|timeline|glossary|table|comparison|bibliography) of "
    r"|liste (?:der|des|von|de) |liste d['’]|list[ae]s? (?:de|di|dei|degli|delle|do|da) |lijst van |список |قائمة "
    r"|.*(?:の一覧|列表)$",
    re.IGNORECASE,
)
_SECTION_OF_ONE = re.compile(r"[^\W\d_]{2}")  # neither "A" nor "1990"
_WORD_CHARACTER = re.compile(r"\w")
_LETTER = re.compile(r"[^\W\d_]")
_NUMBER = re.compile(r"[\W\d_]*(?:\d(?:st|nd|rd|th|s)?[\W\d_]*)?")


def is_list(title: str) -> bool:
    """Whether a page is a list, an index or the like, by its title."""
    return _LIST_TITLE.match(title) is not None


def _reason(found: Found, rules: MentionRules, language: str) -> str:
    """Why a mention is left out: the first reason that applies; "" if it is kept."""
    mention, target = found.mention, found.target
    if not _WORD_CHARACTER.search(mention):
        return "punctuation"
    if rules.drop_dates and is_date(mention, target.title, language):
        return "date"
    if rules.drop_numbers and _NUMBER.fullmatch(mention):
        return "number"
    if len(mention.split()) > rules.max_mention_words:
        return "long_mention"
    if len(found.text.split()) > rules.max_sentence_words:
        return "long_sentence"
    if rules.drop_whole_sentences and not _LETTER.search(found.text[: found.start_char] + found.text[found.end_char :]):
        return "whole_sentence"
    if rules.drop_disambiguation and target.disambiguation:
        return "to_disambiguation"
    if rules.drop_to_lists and is_list(target.title) and not _SECTION_OF_ONE.search(target.section):
        return "to_list_page"
    if rules.drop_red_links and target.resolution == "NIL":
        return "red_link"
    return ""


# Sentences


def _sentences(document: Source, spans: Iterable[Span]) -> Iterator[tuple[int, int] | None]:
    """The sentence [start, end) that holds each span; None if none holds all of it. Spans are in order."""
    text = document.text
    waiting = passages(text, document.language)
    passage = (0, 0)
    starts: list[int] = []
    for span in spans:
        if span.start >= passage[1]:
            passage = next(each for each in waiting if span.start < each[1])
            within = text[slice(*passage)].replace("\n", " ")
            indent = len(within) - len(within.lstrip())
            starts = [passage[0] + max(each, indent) for each in sentence_starts(within, document.language)]
        place = bisect_right(starts, span.start) - 1
        start = starts[place]
        end = starts[place + 1] if place + 1 < len(starts) else passage[1]
        end = start + len(text[start:end].rstrip())
        yield (start, end) if start <= span.start and span.end <= end else None


# Spans


def spans_of(document: Source, rules: MentionRules) -> tuple[list[Span], int]:
    """The candidates of a document in order, and how many others were left out as ambiguous."""
    spans = [
        Span(link["start_char"], link["end_char"], link["target_title"], link["entity_id"], link["section"], LINK)
        for link in document.links
    ]
    if not (rules.own_titles or rules.repeated_anchors):
        return spans, 0
    further, ambiguous = _further(document, spans, rules)
    return sorted([*spans, *further]), ambiguous


def _further(document: Source, links: Sequence[Span], rules: MentionRules) -> tuple[list[Span], int]:
    """Where the text names an entity without a link: by the page's title, or by the anchor of an earlier link.

    At each word the longest known surface is taken that overlaps neither a link nor an earlier find.
    """
    text = document.text
    known = _surfaces(document, links, rules)
    by_word: dict[str, list[str]] = {}
    for surface in sorted(known, key=lambda each: (-len(each), each)):
        by_word.setdefault(_first_word(surface), []).append(surface)
    found: list[Span] = []
    ambiguous = 0
    waiting = iter([*links, Span(len(text), len(text), "", "", "", LINK)])
    link = next(waiting)
    last_end = 0
    for word in _WORD.finditer(text):
        start = word.start()
        while link.end <= start and link.start < len(text):
            link = next(waiting)
        if start < last_end or link.start <= start:
            continue
        for surface in by_word.get(word[0], ()):
            end = start + len(surface)
            of = known[surface]
            if (
                start >= of.since
                and end <= link.start
                and text.startswith(surface, start)
                and not _WORD_CHARACTER.match(text, end)
            ):
                last_end = end
                if of.span is None:
                    ambiguous += 1
                else:
                    found.append(of.span._replace(start=start, end=end))
                break
    return found, ambiguous


class _Surface(NamedTuple):
    """What a surface means in a page from the offset `since` on; `span` is None if it is linked to two targets."""

    since: int
    span: Span | None


_WORD = re.compile(r"\w+")
_QUALIFIER = re.compile(r" \([^()]*\)$")
_MIN_LETTERS = 3


def _surfaces(document: Source, links: Sequence[Span], rules: MentionRules) -> dict[str, _Surface]:
    known: dict[str, _Surface] = {}
    targets: dict[str, set[tuple[str, str]]] = {}
    for link in links:
        surface = document.text[link.start : link.end]
        targets.setdefault(surface, set()).add((link.title, link.section))
        if rules.repeated_anchors and surface not in known:
            known[surface] = _Surface(link.end, link._replace(origin=REPEAT))
    if rules.own_titles:
        name = _QUALIFIER.sub("", document.title)
        known[name] = _Surface(0, Span(0, 0, document.title, "", "", TITLE))
        targets.setdefault(name, set()).add((document.title, ""))
    return {
        surface: of if len(targets[surface]) == 1 else of._replace(span=None)
        for surface, of in known.items()
        if len(_LETTER.findall(surface)) >= _MIN_LETTERS and _WORD.match(surface)
    }


def _first_word(surface: str) -> str:
    match = _WORD.match(surface)
    assert match
    return match[0]
