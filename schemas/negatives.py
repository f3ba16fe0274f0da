"""The negative of a context: the context of the next eligible row (Phrase-BERT's c-).

The rows of a split are a circle, in order of their hashes. A row is eligible if it is of another phrase, its context
does not hold the words of the phrase, and it fulfils the conditions of `--negatives` (`NEGATIVES`): another document,
the same source, the same label. If none of the next LOOK_AHEAD rows is eligible, the last condition is given up, then
the one before it. If they are all given up and there is still none, the negative is empty.

The stage that orders contexts finds negatives by this module, and the check of contexts compares with it.
"""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from schemas.terms import NEGATIVES, STRAIGHT_QUOTES

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

LOOK_AHEAD = 100_000
"""How many rows are looked at for each negative and each set of conditions. It bounds the shards that are read again
for rows of which nothing else is, such as a source of one document."""

KEY_COLUMNS = ("phrase", "doc_id", "source", "label")
"""The columns that decide whether a row is eligible."""

WITHOUT = "without_negative"
"""The counter of the rows that have no negative."""


def given_up(condition: str) -> str:
    """The counter of negatives that were found only after this condition, and those after it, were given up."""
    return f"negatives_of_any_{condition}"


class Keys(NamedTuple):
    """What decides whether n rows are eligible: the hashes of their values."""

    phrase: U64
    document: U64
    source: U64
    label: U64

    @classmethod
    def of(cls, table: pa.Table) -> Keys:
        """From the columns KEY_COLUMNS."""
        return cls(*(_hashes(table.column(name)) for name in KEY_COLUMNS))

    def take(self, rows: I64) -> Keys:
        return Keys(*(each[rows] for each in self))

    def group(self, conditions: Sequence[str]) -> U64:
        """[n] a hash of what has to be the same."""
        found = np.zeros(len(self.phrase), np.uint64)
        for name in ("source", "label"):
            if name in conditions:
                found = found * np.uint64(0x9E3779B97F4A7C15) + getattr(self, name)
        return found


def _hashes(strings: pa.ChunkedArray) -> U64:
    encoded = strings.combine_chunks().dictionary_encode()
    values = encoded.dictionary.cast(pa.binary()).to_pylist()
    found = np.fromiter(map(xxhash.xxh3_64_intdigest, values), np.uint64, len(values))
    return found[encoded.indices.to_numpy()]


class Eligible:
    """Finds the first of n rows, from a place on, that is of another phrase and fulfils conditions for a given row.

    Rows are put side by side by what has to be the same, in their order. Of these, rows that agree in what has to
    differ are skipped a run at a time: a corpus may be a single document. Here the query is phrase 7 of document 2: row
    0 has its phrase, so the search goes to the end of the run of 7, row 2. That row has its document, so the search
    goes to the end of the run of 2, row 3.

    >>> def keys(phrase, document, source):
    ...     return Keys(*(np.array(each, np.uint64) for each in (phrase, document, source, [0] * len(phrase))))
    >>> given = keys([7, 7, 8, 8, 9], [1, 2, 2, 3, 4], [1, 1, 1, 1, 2])
    >>> query = dict(query=keys([7], [2], [2]), start=np.array([0]), stop=np.array([5]))
    >>> Eligible(given, ("document",)).first(**query), Eligible(given, ("document", "source")).first(**query)
    (array([3]), array([4]))
    """

    def __init__(self, keys: Keys, conditions: Sequence[str]) -> None:
        self._conditions = conditions
        self._n = len(keys.phrase)
        group = keys.group(conditions)
        self._order = np.argsort(group, kind="stable")
        self._groups, number = np.unique(group[self._order], return_inverse=True)
        self._places = number * (self._n + 1) + self._order
        self._keys = [key[self._order] for key in self._differing(keys)]
        self._ends = [_run_ends(key) for key in self._keys]

    def _differing(self, keys: Keys) -> list[U64]:
        return [keys.phrase, keys.document] if "document" in self._conditions else [keys.phrase]

    def first(self, query: Keys, start: I64, stop: I64) -> I64:
        """For each query the first eligible row in [start, stop); -1 if there is none."""
        group = query.group(self._conditions)
        number = np.searchsorted(self._groups, group)
        number[number == len(self._groups)] = 0
        if len(self._groups):
            stop = np.where(self._groups[number] == group, stop, start)
        place, end = (np.searchsorted(self._places, number * (self._n + 1) + each) for each in (start, stop))
        wanted = self._differing(query)
        open_ = np.flatnonzero(place < end)
        while len(open_):
            here = place[open_]
            beyond = here
            for key, ends, own in zip(self._keys, self._ends, wanted, strict=True):
                beyond = np.maximum(beyond, np.where(key[here] == own[open_], ends[here], here))
            place[open_] = beyond
            open_ = open_[(beyond > here) & (beyond < end[open_])]
        found = np.full(len(place), -1)
        inside = place < end
        found[inside] = self._order[place[inside]]
        return found


def _run_ends(key: U64) -> I64:
    """[n] the end of the run of equal values that each row is in.

    >>> _run_ends(np.array([7, 7, 9, 7], np.uint64))
    array([2, 2, 3, 4])
    """
    last = np.append(key[1:] != key[:-1], True)[: len(key)]
    ends = np.flatnonzero(last) + 1
    return np.repeat(ends, np.diff(ends, prepend=0))


class Phrase:
    """Tells whether the words of a phrase occur in a context: in any case, and not as a part of longer words.

    Words are letters, digits and underscores. The masks of the context are none of them.

    >>> [Phrase("old man").is_in(text, mask="[MASK]") for text in ("The Old Man [MASK].", "an old manor", "old [MASK]")]
    [True, False, False]
    >>> Phrase("mask").is_in("a [MASK]", mask="[MASK]"), Phrase("$5").is_in("US$5", mask="[MASK]")
    (False, True)
    """

    __slots__ = ("_words",)

    def __init__(self, phrase: str) -> None:
        self._words = _folded(phrase)

    def is_in(self, context: str, *, mask: str) -> bool:
        words = self._words
        if words not in _folded(context):  # nearly always
            return False
        before, after = (r"(?<!\w)" if re.match(r"\w", words) else "", r"(?!\w)" if re.search(r"\w\Z", words) else "")
        return re.search(before + re.escape(words) + after, _folded(context.replace(mask, "\0"))) is not None


_STRAIGHT = [(chr(curly), straight) for curly, straight in STRAIGHT_QUOTES.items()]


def _folded(text: str) -> str:
    """A text without differences of case, of composition, and between straight and curly quotes."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFC", text)
    for curly, straight in _STRAIGHT:  # much faster than `translate`: nearly no text has one
        if curly in text:
            text = text.replace(curly, straight)
    return unicodedata.normalize("NFC", text.casefold())


class Circle(ABC):
    """The rows of a split in `ranges` parts, in order."""

    ranges: int

    @abstractmethod
    def keys(self, number: int) -> Keys:
        """What decides whether the rows of a part are eligible."""

    @abstractmethod
    def contexts(self, number: int) -> pa.ChunkedArray:
        """The contexts of a part."""

    def each(self, numbers: Sequence[int]) -> Iterable[int]:
        """The numbers, one after the other; a subclass may show how far it is."""
        return numbers


def find_negatives(
    circle: Circle, number: int, phrases: Sequence[str], *, negatives: str, mask: str
) -> tuple[list[str], Counter[str]]:
    """The negatives of the rows of part `number`, and the counters of those for which a condition was given up.

    `phrases` are those of its rows, `negatives` is a key of NEGATIVES.
    """
    search = _Search(circle, number, [Phrase(each) for each in phrases], mask)
    seeking = np.arange(len(phrases))
    counters: Counter[str] = Counter()
    conditions = NEGATIVES[negatives]
    for kept in range(len(conditions), -1, -1):
        missing = search.fill(seeking, conditions[:kept])
        if kept < len(conditions):
            counters[given_up(conditions[kept])] += len(seeking) - len(missing)
        seeking = missing
    counters[WITHOUT] += len(seeking)
    return search.negative, +counters


class _Search:
    """Finds the negatives of the rows of one part of a circle."""

    def __init__(self, circle: Circle, number: int, phrases: Sequence[Phrase], mask: str) -> None:
        self._circle, self._number, self._phrases, self._mask = circle, number, phrases, mask
        self._own = circle.keys(number)
        self._last: tuple[int, pa.ChunkedArray] = number, circle.contexts(number)
        self.negative = [""] * len(phrases)

    def fill(self, seeking: I64, conditions: Sequence[str]) -> I64:
        """Fill in the negatives of the rows `seeking`; returns the rows that have none.

        Of parts 0 1 2, part 1 is followed by 2 and 0 and then by 1 again. Keys 0 1 2 of part 1 have the phrases a b b,
        each row its own document; the rows of 2 and 0 are of phrase b. In part 1, from the row after each: row 0 finds
        row 1, rows 1 and 2 find none. They find none in 2 and 0 either. In part 1 again, from its first row, both find
        row 0.
        """
        missing = [seeking[:0]]
        start, left = seeking + 1, np.full(len(seeking), LOOK_AHEAD)
        for step in self._circle.each(range(self._circle.ranges + 1)):
            if not len(seeking):
                break
            number = (self._number + step) % self._circle.ranges
            keys = self._own if number == self._number else self._circle.keys(number)
            n = len(keys.phrase)
            found = self._fill_from(number, Eligible(keys, conditions), seeking, start, np.minimum(start + left, n))
            left = left - (n - start)
            missing.append(seeking[~found & (left <= 0)])
            kept = ~found & (left > 0)
            seeking, left = seeking[kept], left[kept]
            start = np.zeros(len(seeking), dtype=np.int64)
        return np.sort(np.concatenate([*missing, seeking]))

    def _fill_from(self, number: int, eligible: Eligible, seeking: I64, start: I64, stop: I64) -> npt.NDArray[np.bool_]:
        """The same with the rows [start, stop) of one part; returns which rows found a negative."""
        open_ = np.arange(len(seeking))
        start = start.copy()
        found = np.zeros(len(seeking), dtype=bool)
        while len(open_):
            place = eligible.first(self._own.take(seeking[open_]), start[open_], stop[open_])
            open_, place = open_[place >= 0], place[place >= 0]
            texts = self._contexts(number).take(pa.array(place)).to_pylist() if len(place) else []
            for at, row, text in zip(open_.tolist(), seeking[open_].tolist(), texts, strict=True):
                if not self._phrases[row].is_in(text, mask=self._mask):
                    self.negative[row] = text
                    found[at] = True
            start[open_] = place + 1
            open_ = open_[~found[open_]]
        return found

    def _contexts(self, number: int) -> pa.ChunkedArray:
        """The contexts of a part; the last that were asked for stay in memory."""
        if self._last[0] != number:
            self._last = -1, pa.chunked_array([], pa.string())
            self._last = number, self._circle.contexts(number)
        return self._last[1]
