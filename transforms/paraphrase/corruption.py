"""The corrupted phrase, of which p- is a paraphrase: one word of content replaced (Phrase-BERT, section 3.1).

Both choices are hashes of the phrase and the seed: which word is replaced, and what replaces it. In the paper that is
any word of the vocabulary. Here it is by default one of like frequency in the same group, so that the corrupted phrase
is as grammatical and as common as the phrase, and p- is not told from p+ by how odd it is. A group has words of the
same parts of speech in the same forms ("plural noun", "noun or base form of a verb") that stand mostly in the same
place (`PLACES`): the parser's labels say where words are verbs, adjectives and adverbs.

The vocabulary is made of the phrases of the dataset. Its words are those that people see: "well-known" and "o'neill"
are one word, "king's" is "king" with a clitic, which stays.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import xxhash

from transforms.augmentation.inflection import FORMS, VOWEL_SOUND
from transforms.paraphrase.words import STOPWORDS, plain_text, word_forms, words
from transforms.phrases import lexicon

NO_CONTENT, NO_REPLACEMENT = "no_content_word", "no_replacement"
"""Why a phrase has no corrupted phrase: it has stop words only; the vocabulary has no other word."""

WORDS = pa.schema([("word", pa.string()), ("count", pa.int64()), ("group", pa.string())])
"""A vocabulary: words of content, in order of their letters, with their occurrences and groups (`group_of`)."""

_WINDOW = 50
"""How many words of a group, in order of frequency, are taken for as frequent as a word, on either side."""

_ATTEMPTS = 64

_SMALL = 20
"""Groups with fewer words are put together by their first form."""

_PIECE = re.compile(r"[^\W_]+(?:(?:[-'\u2019&.]|(?<=\d),(?=\d))[^\W_]+)*")
_CLITIC = re.compile(r"(?:n['\u2019]t|['\u2019](?:s|re|ve|ll|d|m))$", re.IGNORECASE)


PLACES = ("head", "inside", "verb", "adjective", "adverb")
"""Where a word of content stands: as the first of a VP; as the last of an ADJP or ADVP; else before another word of
content ("inside", as in noun phrases adjectives do), or not ("head")."""

_LABELS = {"VP": (0, "verb"), "ADJP": (-1, "adjective"), "ADVP": (-1, "adverb")}


class Piece(NamedTuple):
    """A word of content: where it is in the text, its letters in lower case, and its place (PLACES)."""

    start: int
    end: int
    text: str
    place: str


def content_pieces(phrase: str, label: str = "") -> list[Piece]:
    """The words of a phrase that can be replaced; `label`: that of the constituent.

    >>> [each.text for each in content_pieces("The well-known king's 1,300 men don't")]
    ['well-known', 'king', '1,300', 'men']
    >>> [each.place for each in content_pieces("saw the narrow side of a hill", "VP")]
    ['verb', 'inside', 'head', 'head']
    """
    found = []
    for match in _PIECE.finditer(phrase):
        clitic = _CLITIC.search(match[0])
        text = match[0][: clitic.start()] if clitic else match[0]
        parts = plain_text(text).split()
        if parts and not STOPWORDS.issuperset(parts):
            found.append((match.start(), match.start() + len(text), text.lower()))
    if not found:
        return []
    gaps = (phrase[one[1] : other[0]] for one, other in pairwise(found))
    places = [*("inside" if gap.isspace() else "head" for gap in gaps), "head"]
    if label in _LABELS:
        number, place = _LABELS[label]
        places[number] = place
    return [Piece(*each, place) for each, place in zip(found, places, strict=True)]


# ---- The vocabulary


Counts = Counter[tuple[str, str]]
"""How often words are in places."""


def count_words(phrases: Iterable[str], labels: Iterable[str], frequencies: Iterable[int]) -> Counts:
    """How often each word of content occurs in phrases, in which place; counts of parts of a dataset can be added."""
    found: Counts = Counter()
    for phrase, label, frequency in zip(phrases, labels, frequencies, strict=True):
        for each in content_pieces(phrase, label):
            found[each.text, each.place] += frequency
    return found


def vocabulary_table(counts: Counts, *, most: int) -> pa.Table:
    """The `most` commonest words, ties by their hashes: WORDS."""
    by_word: dict[str, dict[str, int]] = {}
    for (word, place), count in counts.items():
        by_word.setdefault(word, dict.fromkeys(PLACES, 0))[place] += count
    totals = {word: sum(places.values()) for word, places in by_word.items()}
    rows = []
    for word in sorted(sorted(totals, key=lambda each: (-totals[each], _hash(each)))[:most]):
        places = by_word[word]
        rows.append((word, totals[word], group_of(word, max(PLACES, key=lambda each: places[each]))))
    return pa.table([list(each) for each in zip(*rows, strict=True)] or [[], [], []], schema=WORDS)


@lru_cache(1 << 16)
def group_of(word: str, place: str) -> str:
    """What a word is by its form and its place; words of one group can stand for each other.

    >>> [group_of(each, "head") for each in ("houses", "walked", "hurst", "1984")]
    ['n:plural v:s, head', 'v:past,participle, head', 'name, head', 'number 4, head']
    """
    return f"{_forms_of(word)}, {place}"


def _forms_of(word: str) -> str:
    if any(map(str.isdigit, word)):
        return f"number {len(word)}"
    if word in lexicon.NUMBER_WORDS:
        return "number word"
    last = words(word)[-1]
    forms = {part: word_forms().forms(last, part) for part in FORMS}
    return " ".join(f"{part}:{','.join(each)}" for part, each in forms.items() if each) or "name"


class Vocabulary:
    """The words from which replacements are drawn, of a table WORDS."""

    def __init__(self, table: pa.Table) -> None:
        self.words: list[str] = table.column("word").to_pylist()
        counts, groups = table.column("count").to_pylist(), table.column("group").to_pylist()
        self._counts = dict(zip(self.words, counts, strict=True))
        self._groups: dict[str, list[tuple[int, int, str]]] = {}
        for word, count, group in zip(self.words, counts, groups, strict=True):
            for each in (group, _first(group)):
                self._groups.setdefault(each, []).append((count, _hash(word), word))
        for found in self._groups.values():
            found.sort()

    def like(self, word: str, place: str) -> list[str]:
        """The words about as frequent of the group that a word would have there, the rarest first; maybe itself."""
        group = group_of(word, place)
        found = self._groups.get(group, [])
        if len(found) < _SMALL:
            found = self._groups.get(_first(group), [])
        rank = bisect_left(found, (self._counts.get(word, 0), _hash(word), word))
        first = max(min(rank - _WINDOW, len(found) - 2 * _WINDOW - 1), 0)
        return [each for _, _, each in found[first : first + 2 * _WINDOW + 1]]


def _first(group: str) -> str:
    """The larger group of which one is a part."""
    forms, _, place = group.partition(", ")
    return f"any {forms.split()[0]}, {place}"


# ---- The corrupted phrase


class Corruption(NamedTuple):
    """A corrupted phrase, the word that was replaced and the one instead; or no text and the reason."""

    text: str | None
    word: str = ""
    replacement: str = ""
    reason: str = ""


def corrupted(
    phrase: str, seed: int, vocabulary: Vocabulary, *, label: str = "", replacement: str = "like"
) -> Corruption:
    """A phrase with one word of content replaced, by another word that is no form of it; `label`: its constituent's.

    `replacement`: "like" for a word of like frequency and part of speech, if there is one; "uniform" for any word.
    """
    pieces = content_pieces(phrase, label)
    if not pieces:
        return Corruption(None, reason=NO_CONTENT)
    piece = pieces[_number(phrase, seed, "place", len(pieces))]
    article = re.search(r"(?:^|\s)(an?)\s+$", phrase[: piece.start], re.IGNORECASE)
    ways = (
        [vocabulary.words] if replacement == "uniform" else [vocabulary.like(piece.text, piece.place), vocabulary.words]
    )
    forms = _forms(piece.text)
    for number, among in enumerate(ways):
        for attempt in range(_ATTEMPTS if among else 0):
            chosen = among[_number(phrase, seed, f"word {number} {attempt}", len(among))]
            fits = number or replacement == "uniform" or not article or _fits(article[1], chosen)
            if fits and forms.isdisjoint(_forms(chosen)):
                text = phrase[: piece.start] + chosen + phrase[piece.end :]
                return Corruption(text, piece.text, chosen)
    return Corruption(None, piece.text, reason=NO_REPLACEMENT)


def _number(phrase: str, seed: int, choice: str, among: int) -> int:
    return _hash(f"corrupt\0{choice}\0{phrase}", seed) * among >> 64


def _hash(text: str, seed: int = 0) -> int:
    return xxhash.xxh3_64_intdigest(text.encode(), seed=seed % 2**64)


def _fits(article: str, word: str) -> bool:
    return (article.lower() == "an") == bool(VOWEL_SOUND.match(word))


@lru_cache(1 << 14)
def _forms(text: str) -> frozenset[str]:
    return frozenset().union(*map(word_forms().family, words(text)))
