"""From words to the arrays that the network reads: WordPieces, shapes, and where each word begins and ends.

    words      the       unaffordableness      .
    pieces     [CLS] the una  ##ff  ##ness     .  [SEP]    at most three of a word: first, second, last
    shapes     0     0   0    0     0          6  0
    fenceposts      0   1                     2  3         left: the piece before it, 0 1 4 5; right: after it, 1 2 5 6

The pieces are those of BERT's uncased tokenizer (Devlin et al. 2019, section 3), found word by word and kept.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]

PADDING, UNKNOWN, CLS, SEP = 0, 100, 101, 102
"""Their ids in the vocabulary."""

MAX_PIECES = 512
"""The most pieces of a sentence, with [CLS] and [SEP]: the encoder has no more positions."""

MAX_WORDS = MAX_PIECES - 2
"""The most words of a sentence; with one piece for each word it just fits."""

PIECES_A_WORD = 3
MAX_CHARACTERS = 100  # of a basic token, as in BERT; a longer one is [UNK]
CACHED_CHARACTERS = 1 << 20  # about 150,000 words, 20 MB

LOWER, CAPITALISED, CAPITALS, MIXED, CAPITAL, DIGITS, SYMBOLS = range(7)
"""The shapes of words: `word_shape`."""

GUM, CRAFT = 0, 7
"""The shapes of [CLS] and [SEP], which say whose bracketing the network should follow."""

_CJK = [
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
]


class Batch(NamedTuple):
    """Sentences of at most L pieces and N words, padded with 0."""

    pieces: Ints  # [B, L]: ids
    shapes: Ints  # [B, L]
    left: Ints  # [B, N + 1]: for each fencepost the place of the piece before it, in 0..L-1
    right: Ints  # [B, N + 1]: the place of the piece after it; 0 is padding


class Encoded(NamedTuple):
    """s sentences, one after the other, with p pieces and w words in total."""

    pieces: Ints  # [p]
    shapes: Ints  # [p]
    left: Ints  # [w + s]: in a sentence's own pieces
    right: Ints  # [w + s]
    lengths: Ints  # [s]: pieces, with [CLS] and [SEP]
    words: Ints  # [s]

    def batches(self, max_pieces: int) -> Iterator[tuple[Ints, Batch]]:
        """Padded batches of sentences of similar length, the longest first, with the numbers of their sentences.

        A batch has at most `max_pieces` pieces, padding included, or one sentence. Sentences of equal length keep
        their order. With `max_pieces` 12, the lengths 3 6 4 6 give the batches 1 3 and 2 0, the second padded to 4.
        """
        order = np.lexsort((-self.words, -self.lengths))
        start = 0
        while start < len(order):
            longest = int(self.lengths[order[start]])
            chosen = order[start : start + max(1, max_pieces // longest)]
            yield chosen, self.batch(chosen)
            start += len(chosen)

    def equal_batches(self, max_pieces: int) -> Iterator[tuple[Ints, Batch]]:
        """Like `batches`, but all sentences of a batch have the same number of pieces, so no piece is padding."""
        order = np.lexsort((-self.words, -self.lengths))
        starts = np.flatnonzero(np.diff(self.lengths[order], prepend=0))
        for equal in np.split(order, starts[1:]) if len(order) else ():
            step = max(1, max_pieces // int(self.lengths[equal[0]]))
            for start in range(0, len(equal), step):
                chosen = equal[start : start + step]
                yield chosen, self.batch(chosen)

    def batch(self, sentences: Ints) -> Batch:
        """The sentences with these numbers, padded to the longest of them."""
        lengths, posts = self.lengths[sentences], self.words[sentences] + 1
        at_piece = np.cumsum(self.lengths)[sentences] - lengths
        at_post = np.cumsum(self.words + 1)[sentences] - posts
        return Batch(
            _padded(self.pieces, at_piece, lengths),
            _padded(self.shapes, at_piece, lengths),
            _padded(self.left, at_post, posts),
            _padded(self.right, at_post, posts),
        )


class Encoder:
    """Encodes sentences; keeps the pieces of words (at most 20 MB, plus those of the current call)."""

    def __init__(self, vocabulary: Sequence[str] | None = None) -> None:
        """`vocabulary`: WordPieces in order of id, by default those of bert-base-uncased."""
        self._places = _Places({piece: id for id, piece in enumerate(vocabulary or read_vocabulary())})

    def word(self, word: str) -> tuple[list[int], int]:
        """The ids of a word's first, second and last piece (fewer if it has fewer), and its shape."""
        place = self._places[word]
        row = PIECES_A_WORD * place
        return list(self._places.pieces[row : row + self._places.counts[place]]), self._places.shapes[place]

    def encode(self, sentences: Sequence[Sequence[str]], convention: int | Sequence[int] = GUM) -> Encoded:
        """Encode sentences of words; `convention`: the bracketing to follow, one for all or one for each sentence.

        Three pieces of each word are kept; in a sentence with more than `MAX_PIECES` two, or else one. Raises
        ValueError for a sentence of more than `MAX_WORDS` words.
        """
        self._places.forget()
        words = np.fromiter(map(len, sentences), np.int64, len(sentences))
        if (words > MAX_WORDS).any():
            raise ValueError(f"a sentence of {words.max():,} words; at most {MAX_WORDS} can be parsed, split it")
        total = int(words.sum())
        places = np.fromiter(map(self._places.__getitem__, chain.from_iterable(sentences)), np.int64, total)
        word_pieces = np.frombuffer(self._places.pieces, np.uint16).reshape(-1, PIECES_A_WORD)[places]
        counts = np.frombuffer(self._places.counts, np.uint8)[places].astype(np.int64)
        sentence_of_word = np.repeat(np.arange(len(words)), words)

        for most in (2, 1):
            too_long = np.bincount(sentence_of_word, counts, len(words)) > MAX_PIECES - 2
            cut = too_long[sentence_of_word] & (counts > most)
            if most == 2:
                word_pieces[cut, 1] = word_pieces[cut, 2]
            counts[cut] = most

        lengths = np.bincount(sentence_of_word, counts, len(words)).astype(np.int64) + 2
        ends = np.cumsum(lengths)
        # A word's first piece, counted over all sentences: after the pieces of earlier words, [CLS] of its sentence,
        # and [CLS] and [SEP] of each earlier one. With the counts 1 3 in one sentence and 1 in the next: 1 2 7.
        firsts = np.cumsum(counts) - counts + 2 * sentence_of_word + 1
        pieces = np.empty(int(lengths.sum()), np.int64)
        shapes = np.empty_like(pieces)
        word_shapes = np.frombuffer(self._places.shapes, np.uint8)[places]
        for k in range(PIECES_A_WORD):
            has = counts > k
            pieces[firsts[has] + k] = word_pieces[has, k]
            shapes[firsts[has] + k] = word_shapes[has]
        pieces[ends - lengths], pieces[ends - 1] = CLS, SEP
        shapes[ends - lengths] = shapes[ends - 1] = convention

        firsts -= (ends - lengths)[sentence_of_word]
        posts = np.arange(total) + sentence_of_word
        left = np.zeros(total + len(words), np.int64)
        right = np.empty_like(left)
        left[posts + 1] = firsts + counts - 1
        right[posts] = firsts
        right[np.cumsum(words + 1) - 1] = lengths - 1
        return Encoded(pieces, shapes, left, right, lengths, words)


def read_vocabulary() -> list[str]:
    """The WordPieces of bert-base-uncased, in order of id."""
    return (resources.files(__package__) / "model" / "vocab.txt").read_text("utf-8").splitlines()


class _Places(dict[str, int]):
    """The place of each word in the tables of pieces, counts and shapes; a new word is added to them."""

    def __init__(self, ids: dict[str, int]) -> None:
        super().__init__()
        self.ids = ids
        self.characters = 0
        self.forget(-1)

    def forget(self, most: int = CACHED_CHARACTERS) -> None:
        """Start again if the kept words have more than this many characters."""
        if self.characters > most:
            self.clear()
            self.characters = 0
            self.pieces = array("H")
            self.counts = array("B")
            self.shapes = array("B")

    def __missing__(self, word: str) -> int:
        place = self[word] = len(self)
        self.characters += len(word)
        pieces = [piece for token in basic_tokens(word) for piece in wordpieces(token, self.ids)] or [UNKNOWN]
        if len(pieces) > PIECES_A_WORD:
            pieces[PIECES_A_WORD - 1 :] = pieces[-1:]
        self.counts.append(len(pieces))
        self.pieces.extend(pieces + [PADDING] * (PIECES_A_WORD - len(pieces)))
        self.shapes.append(word_shape(word))
        return place


def basic_tokens(word: str) -> list[str]:
    """The word in lower case without accents and control characters, split at punctuation and CJK characters.

    The Penn Treebank's quotation marks (`` and '') are read as ".
    """
    if word in ("``", "''"):
        return ['"']
    if word.isascii() and word.isalnum():
        return [word.lower()]
    return "".join(map(_spaced, unicodedata.normalize("NFD", word))).split()


def wordpieces(token: str, ids: dict[str, int]) -> list[int]:
    """The ids of the longest pieces from the left, all but the first with "##"; [UNK] if the vocabulary lacks one.

    >>> wordpieces("unable", {"un": 7, "##a": 8, "##able": 9})
    [7, 9]
    """
    if token in ids:
        return [ids[token]]
    if len(token) > MAX_CHARACTERS:
        return [UNKNOWN]
    pieces: list[int] = []
    start = 0
    while start < len(token):
        prefix = "##" if start else ""
        end = next((end for end in range(len(token), start, -1) if prefix + token[start:end] in ids), None)
        if end is None:
            return [UNKNOWN]
        pieces.append(ids[prefix + token[start:end]])
        start = end
    return pieces


def word_shape(word: str) -> int:
    """The shape of a word: DIGITS if it has one, LOWER also for scripts without case, CAPITAL for a single letter."""
    if any(map(str.isdigit, word)):
        return DIGITS
    letters = [*filter(str.isalpha, word)]
    capitals = sum(map(str.isupper, letters))
    if not letters:
        return SYMBOLS
    if not capitals:
        return LOWER
    if capitals == len(letters):
        return CAPITAL if capitals == 1 else CAPITALS
    return CAPITALISED if capitals == 1 and letters[0].isupper() else MIXED


def _spaced(character: str) -> str:
    """A character as in BERT's basic tokenizer: dropped, between spaces, or in lower case."""
    category = unicodedata.category(character)
    if character in " \t\n\r" or category[0] == "Z":
        return " "
    if category == "Mn" or category[0] == "C" or character == "\ufffd":
        return ""
    # ASCII's symbols ($+<=>^`|~) count as punctuation.
    if category[0] == "P" or (category[0] == "S" and character.isascii()):
        return f" {character} "
    if any(first <= ord(character) <= last for first, last in _CJK):
        return f" {character} "
    return character.lower()


def _padded(values: Ints, starts: Ints, lengths: Ints) -> Ints:
    """Slices of `values` as the rows of a matrix, padded with 0.

    >>> _padded(np.array([5, 6, 7, 8]), np.array([0, 3]), np.array([3, 1])).tolist()
    [[5, 6, 7], [8, 0, 0]]
    """
    columns = np.arange(lengths.max(initial=0))
    inside = columns < lengths[:, None]
    return np.where(inside, values[np.where(inside, starts[:, None] + columns, 0)], 0) if len(values) else inside * 0
