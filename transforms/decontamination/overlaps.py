"""Finds texts of evaluation sets in columns of texts.

Both are brought into one form: lower case, words of letters, marks and digits with single blanks between. So
"The Old-World monkey's" becomes "the old world monkey s", whether or not it was cut into tokens before ("do n't" is
"don't"). A text has an overlap with an evaluation text if, in this form,

- the two are equal, without a first "a", "an" or "the", and the evaluation text has `min_words` words or more; or
- they have `shared_words` consecutive words in common.

The words of `min_words` are those between blanks: with 2, neither "U.S." nor "old-fashioned" is looked for.

Words are hashed, and runs of words by the hashes of their words, so a column costs a few operations for each word. Runs
of equal hash are compared byte by byte.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.arrays import I64, U8, U64, Bools, run_begins, run_hashes, slice_hashes, string_bytes
from transforms.decontamination.options import OverlapRules

ARTICLES = ("a", "an", "the")

_NO_WORD = r"[^\pL\pM\pN]+"
_BETWEEN_BLANKS = r"\S*[\pL\pN]\S*"
_SPLIT_NOT = r" (n['\x{2019}]t)\b"
"""The Penn Treebank's tokens of "don't" are "do" and "n't"."""


def normal_form(texts: pa.Array) -> pa.Array:
    """
    >>> normal_form(pa.array(["The Old-World monkey's", "I do n't !", "?"])).to_pylist()
    ['the old world monkey s', 'i don t', '']
    """
    lower = pc.utf8_lower(pc.utf8_normalize(texts, form="NFD"))  # Arrow's "NFC" does not compose
    words = pc.replace_substring_regex(pc.replace_substring_regex(lower, _SPLIT_NOT, r"\1"), _NO_WORD, " ")
    return pc.utf8_trim(words, " ")


class Words(NamedTuple):
    """The words of n texts in normal form: their bytes `data[start:end]`, their hashes, and where each text begins."""

    data: U8
    start: I64
    end: I64
    hash: U64
    first: I64  # [n + 1] the number of the first word of each text, and the number of all words

    @classmethod
    def of(cls, texts: pa.Array) -> Words:
        """
        >>> words = Words.of(pa.array(["old king", "", "sea"]))
        >>> words.start, words.end, words.first
        (array([0, 4, 8]), array([ 3,  8, 11]), array([0, 2, 2, 3]))
        """
        data, edges = string_bytes(texts)
        blank = np.flatnonzero(data == ord(" "))
        filled = edges[1:] > edges[:-1]
        start = np.sort(np.concatenate([edges[:-1][filled], blank + 1]))
        end = np.sort(np.concatenate([edges[1:][filled], blank]))
        return cls(data, start, end, slice_hashes(data, start, end)[0], np.searchsorted(start, edges))

    def text(self, first: int, last: int) -> bytes:
        """The bytes of the words [first, last)."""
        return self.data[self.start[first] : self.end[last - 1]].tobytes()


class Runs(NamedTuple):
    """Runs of words [first, last), the text of each, and its hash."""

    text: I64
    first: I64
    last: I64
    hash: U64

    @classmethod
    def of(cls, words: Words, text: I64, first: I64, last: I64) -> Runs:
        return cls(text, first, last, run_hashes(words.hash, first, last))

    def take(self, rows: I64 | Bools) -> Runs:
        return Runs(self.text[rows], self.first[rows], self.last[rows], self.hash[rows])


def whole_texts(words: Words) -> Runs:
    """Each text that has a word, without a first article."""
    first, last = words.first[:-1], words.first[1:]
    begin = np.zeros(len(first), np.uint64)
    begin[first < last] = words.hash[first[first < last]]
    first = first + np.isin(begin, _article_hashes())
    text = np.flatnonzero(first < last)
    return Runs.of(words, text, first[text], last[text])


@functools.cache
def _article_hashes() -> U64:
    return Words.of(pa.array([" ".join(ARTICLES)])).hash


def parts(words: Words, rules: OverlapRules) -> Runs:
    """All runs of `shared_words` words inside of texts."""
    text = np.repeat(np.arange(len(words.first) - 1), np.diff(words.first))
    first = np.flatnonzero(np.arange(len(text)) + rules.shared_words <= words.first[1:][text])
    return Runs.of(words, text[first], first, first + rules.shared_words)


# ---- Evaluation sets


class Place(NamedTuple):
    """Where an evaluation text is: the number of its file, and the place in it."""

    file: int
    place: int


class Overlap(NamedTuple):
    """A row of a column that has words in common with a text of an evaluation set."""

    row: int
    words: str
    where: Place


class _Known(NamedTuple):
    """Runs of evaluation texts in order of their hashes; of the same one in the same file the first."""

    runs: Runs
    file: I64
    place: I64

    @classmethod
    def of(cls, runs: Runs, file: I64, place: I64) -> _Known:
        file, place = file[runs.text], place[runs.text]
        order = np.lexsort((place, file, runs.hash))
        order = order[run_begins(runs.hash[order], file[order])]
        return cls(runs.take(order), file[order], place[order])


class EvaluationTexts:
    """The texts of evaluation sets, ready to be looked for. Memory: that of the texts, and about 60 bytes a word."""

    def __init__(self, texts: Iterable[tuple[Place, str]], rules: OverlapRules) -> None:
        self._rules = rules
        places, found = list[Place](), list[str]()
        for where, text in texts:
            if len(text.split()) >= rules.min_words:  # most of some files are single words
                places.append(where)
                found.append(text)
        given = pa.array(found, pa.string())
        count = pc.count_substring_regex(given, _BETWEEN_BLANKS)
        kept = pc.and_(pc.greater_equal(count, rules.min_words), pc.match_substring_regex(given, r"\pL"))
        rows = np.flatnonzero(kept)
        file, place = (np.array([each[part] for each in places], np.int64)[rows] for part in (0, 1))
        self._words = Words.of(normal_form(given.take(pa.array(rows))))
        whole = whole_texts(self._words)
        # Without its article a text may have too few.
        few = count.to_numpy()[rows][whole.text] - (whole.first - self._words.first[whole.text]) < rules.min_words
        self._whole = _Known.of(whole.take(~few), file, place)
        self._parts = _Known.of(parts(self._words, rules), file, place)

    def of_files(self, files: int) -> list[int]:
        """The number of distinct texts in each of so many files."""
        return np.bincount(self._whole.file, minlength=files).tolist()

    def overlaps(self, texts: pa.Array) -> list[Overlap]:
        """The texts of a column that have an overlap: for each file the first, in order of rows and files."""
        words = Words.of(normal_form(texts))
        found: dict[tuple[int, int], Overlap] = {}
        for runs, known in (
            (whole_texts(words), self._whole),
            (parts(words, self._rules), self._parts),
        ):
            for overlap in self._matches(words, runs, known):
                found.setdefault((overlap.row, overlap.where.file), overlap)
        return [found[key] for key in sorted(found)]

    def _matches(self, words: Words, runs: Runs, known: _Known) -> Iterable[Overlap]:
        low, high = (np.searchsorted(known.runs.hash, runs.hash, side=side) for side in ("left", "right"))
        for number in np.flatnonzero(low < high).tolist():
            text = words.text(runs.first[number], runs.last[number])
            for item in range(low[number], high[number]):
                if self._words.text(known.runs.first[item], known.runs.last[item]) == text:
                    place = Place(int(known.file[item]), int(known.place[item]))
                    yield Overlap(int(runs.text[number]), unicodedata.normalize("NFC", text.decode()), place)
